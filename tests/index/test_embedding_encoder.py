"""The encoder in numpy gives the vectors of the network that its weights come from."""

import hashlib
import json
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from mimo.errors import Invalid
from mimo.index.embedding import ENCODED_LENGTH, transformer
from mimo.index.embedding.encoder import Encoder, packaged_encoder
from mimo.index.embedding.wordpiece import FOLDER

SHA256 = "0ad277d097df912afa3d6cbefb95d5008e37623adc498ae6a0aae54cf9083411"
REFERENCE = json.loads(Path(__file__).with_name("encoder_vectors.json").read_text("utf-8"))
"""Vectors in float64, with exact GELU and the weights before they were rounded."""


def cosine(a, b):
    a, b = (np.frombuffer(v, np.int8).astype(float) if isinstance(v, bytes) else v for v in (a, b))
    return float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))


def test_the_packaged_weights_are_the_built_ones():
    assert hashlib.sha256((FOLDER / "encoder.bin").read_bytes()).hexdigest() == SHA256


@pytest.fixture(scope="module")
def alone():
    """The vector of each text, encoded alone."""
    return {text: packaged_encoder().encode(text) for text in REFERENCE}


@pytest.fixture(scope="module")
def together():
    """The vectors of the texts and of the texts in reverse order, encoded in one batch."""
    return packaged_encoder().encode_many([*REFERENCE, *reversed(REFERENCE)])


@pytest.mark.parametrize("text", REFERENCE)
def test_a_vector_equals_the_exact_network(alone, text):
    assert cosine(alone[text], np.array(REFERENCE[text])) > 0.995


def test_cosines_between_texts_equal_those_of_the_exact_network(together):
    vectors = dict(zip(REFERENCE, together, strict=False))

    for left, right in combinations(REFERENCE, 2):
        exact = cosine(np.array(REFERENCE[left]), np.array(REFERENCE[right]))
        assert cosine(vectors[left], vectors[right]) == pytest.approx(exact, abs=0.02)


def test_a_vector_does_not_depend_on_the_other_texts_of_a_batch(alone, together):
    sentence = "the brokers keep no order among partitions so readers sort by time".split()
    texts = [" ".join(sentence[start:end]) for end in range(13) for start in range(end)]

    assert together == [*alone.values(), *reversed(alone.values())]
    vectors = packaged_encoder().encode_many(texts)
    assert vectors == [packaged_encoder().encode_many([text])[0] for text in texts]


def test_vectors_have_one_length(together):
    for vector in together:
        numbers = np.frombuffer(vector, np.int8).astype(float)
        assert np.linalg.norm(numbers) == pytest.approx(ENCODED_LENGTH, rel=0.02)
        assert len(vector) == 384


@pytest.fixture
def own_products():
    """Lets encoders choose again how they multiply."""
    transformer._dots.cache_clear()
    yield
    transformer._dots.cache_clear()


def test_vectors_are_the_same_without_numkong(alone, monkeypatch, own_products):
    monkeypatch.setitem(sys.modules, "numkong", None)

    vectors = Encoder().encode_many(list(alone))

    for vector, expected in zip(vectors, alone.values(), strict=True):
        assert cosine(vector, expected) > 0.9999


def test_a_numkong_that_multiplies_wrongly_here_is_not_used(monkeypatch, own_products):
    numkong = pytest.importorskip("numkong")
    assert transformer._dots() is numkong
    transformer._dots.cache_clear()
    right = numkong.dots_packed
    monkeypatch.setattr(numkong, "dots_packed", lambda a, b: np.asarray(right(a, b)) + 1)

    assert transformer._dots() is None


@pytest.mark.parametrize("text", ["", "   \n", "\ud800", "🔥 → ✅"])
def test_text_without_words_has_no_vector(text):
    assert packaged_encoder().encode_many(["a word", text])[1] == b""


def test_a_file_that_is_not_of_weights_is_refused(tmp_path):
    for content in (b"", b"something else entirely"):
        (tmp_path / "encoder.bin").write_bytes(content)
        with pytest.raises(Invalid):
            Encoder(tmp_path).encode("text")

    with pytest.raises(Invalid):
        Encoder(tmp_path / "missing").encode("text")
