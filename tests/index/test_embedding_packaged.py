"""The lean reader, model2vec and the files in the package agree."""

import hashlib
import json
import subprocess
import sys
import unicodedata
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model2vec import StaticModel
from safetensors import safe_open

from mimo.index.embedding import open_embedder, packaged
from mimo.index.embedding.packaged import DIMS, MAX_TOKENS, PackagedModel
from mimo.index.embedding.wordpiece import FOLDER, MAX_CHARACTERS

TEXTS = [
    "How do we retry a failed database connection after a timeout?",
    "Use JWT with refresh tokens, 15 minutes and 30 days.",
    "def getUserByID(self, *, x: int=0xFF) -> dict[str, Any]:",
    "the façade of Größenänderung",
    "done 🎉 [PAD] [UNK] x",
    "a",
    "the quick brown fox " * 400,
    "x" * 80 + "-" + "the wordpiece " * 400,
    "",
    "☃ \t\n",
    "mem\ud800ory \udfff",
]


@cache
def lean() -> PackagedModel:
    return PackagedModel()


@cache
def stock() -> StaticModel:
    return StaticModel.from_pretrained(FOLDER)


def numbers(vector: bytes) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.frombuffer(vector, dtype=np.int8).astype(np.float64)


@pytest.mark.parametrize("text", TEXTS[:9])
def test_a_vector_points_where_the_vector_of_model2vec_points(text: str) -> None:
    theirs = stock().encode([text])[0].astype(np.float64)
    ours = numbers(lean().encode(text)) if lean().encode(text) else np.zeros(DIMS)

    if not theirs.any():
        assert not ours.any()
    else:
        assert ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs) > 0.999
        assert np.abs(ours - 127 * theirs).max() <= 0.5 + 1e-4


@pytest.mark.parametrize("text", TEXTS[:9])
def test_tokens_are_those_of_model2vec(text: str) -> None:
    """`tokenize` leaves out the cut by characters that its `encode` makes first."""
    stock().tokenizer.enable_truncation(MAX_TOKENS)

    assert lean().tokens(text) == stock().tokenize([text[:MAX_CHARACTERS]])[0]


@given(st.lists(st.text(st.characters(), max_size=60), max_size=8))
def test_vectors_do_not_depend_on_how_many_texts_are_encoded_at_once(texts: list[str]) -> None:
    assert lean().encode_many(texts) == [lean().encode(text) for text in texts]


def test_much_text_is_read_by_model2vec_to_the_same_vectors() -> None:
    model = PackagedModel()
    texts = [
        *TEXTS,
        "데이터베이스 연결",
        "wie hoch ist der Turm?",
        "x y " * packaged.BULK_CHARACTERS,
    ]

    assert model.encode_many(texts) == [model.encode(text) for text in texts]


@pytest.mark.parametrize("library", ["model2vec", "numpy"])
def test_much_text_needs_no_library(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    texts = ["some text of a note"] * (packaged.BULK_CHARACTERS // 10)
    monkeypatch.delitem(sys.modules, "model2vec", raising=False)
    monkeypatch.setitem(sys.modules, library, None)

    assert PackagedModel().encode_many(texts) == [lean().encode(texts[0])] * len(texts)


def test_no_texts_have_no_vectors() -> None:
    assert lean().encode_many([]) == []


@pytest.mark.parametrize("text", ["", " \n", "[UNK]", "☃", "x" * 101, "\ud800"])
def test_a_text_without_a_known_token_has_no_vector(text: str) -> None:
    assert lean().encode(text) == b""


@pytest.mark.parametrize("text", TEXTS[:7])
def test_a_vector_has_256_bytes_and_length_127(text: str) -> None:
    vector = lean().encode(text)

    assert len(vector) == DIMS
    assert np.linalg.norm(numbers(vector)) == pytest.approx(127, rel=0.01)


def test_texts_of_like_meaning_are_nearer_than_others() -> None:
    """Each question is nearest to its own answer, though hardly a word is the same."""
    questions = ["how do users sign in?", "the query is slow", "holiday in the mountains"]
    answers = ["authentication by login and password", "database performance", "ski trip"]
    vectors = {text: numbers(lean().encode(text)) for text in questions + answers}

    def nearest_answer(question: str) -> str:
        return max(answers, key=lambda answer: float(vectors[question] @ vectors[answer]))

    assert [nearest_answer(question) for question in questions] == answers


@pytest.mark.parametrize(
    "text", ["wie hoch ist der Turm?", "如何更改文件的权限", "как хранится сессия"]
)
def test_other_languages_have_no_static_vector(text: str) -> None:
    assert lean().encode(text) == b""


def test_korean_has_the_vector_of_its_gloss() -> None:
    vectors = [
        numbers(lean().encode(text)) for text in ("쿠키를 삭제", "delete cookies", "a ski trip")
    ]

    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.3 * 127**2


def test_decomposed_hangul_has_the_vector_of_its_syllables() -> None:
    text = "한글 검색"

    assert lean().encode(unicodedata.normalize("NFD", text)) == lean().encode(text) != b""


def test_the_name_holds_the_hash_of_the_weights() -> None:
    digest = hashlib.sha256((FOLDER / "model.safetensors").read_bytes()).hexdigest()

    assert digest == packaged.SHA256
    assert lean().model.endswith(f":{digest[:12]}")


def test_the_constants_match_the_files() -> None:
    config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    with safe_open(FOLDER / "model.safetensors", framework="numpy") as tensors:
        rows = tensors.get_tensor("embeddings")
    pieces = (FOLDER / "vocab.txt").read_bytes().decode().split("\n")

    assert config["hidden_dim"] == DIMS
    assert config["max_length"] == MAX_TOKENS
    assert stock().median_token_length * MAX_TOKENS == MAX_CHARACTERS
    assert dict(zip(pieces, range(len(pieces)), strict=True)) == tokenizer["model"]["vocab"]
    assert rows.dtype == np.int8
    assert rows.shape == (len(pieces), DIMS)


def test_no_setting_is_the_packaged_model() -> None:
    assert open_embedder().model == open_embedder(None).model == lean().model


def loaded_by(statement: str) -> set[str]:
    code = f"from mimo.index.embedding import *\n{statement}\nimport sys; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert run.stderr == ""
    return set(run.stdout.split())


def test_a_query_is_encoded_without_heavy_packages() -> None:
    loaded = loaded_by("open_embedder().encode('how do we retry?')")

    assert not loaded & {"numpy", "model2vec", "tokenizers", "safetensors"}
