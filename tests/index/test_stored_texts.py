"""Texts, digests and passages come out of the tables as they went in."""

from itertools import pairwise
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mimo
from mimo.index import schema
from mimo.index.documents import embedded_texts, name_of
from mimo.index.index import Index
from mimo.index.rows import from_passages, to_passages
from mimo.index.schema import from_digest, packed, to_digest, unpacked
from mimo.memory.model import Section, Version
from tests.index.conftest import Make

tokens = st.lists(st.text("abé", min_size=1, max_size=3), min_size=1, max_size=12)


@given(st.text(), st.integers(1, 40))
def test_a_text_is_unpacked_unchanged(text: str, times: int) -> None:
    assert unpacked(packed(text * times)) == text * times


def test_a_long_text_takes_less_space() -> None:
    text = "the queue of workers is drained before a deploy; " * 8

    assert len(packed(text)) < len(text) / 2


@pytest.mark.parametrize("damaged", [b"\xff\xfe" * 40, packed("of workers and queues " * 4)[:-3]])
def test_a_damaged_text_is_an_error_that_means_damage(damaged: bytes) -> None:
    with pytest.raises(ValueError, match="content"):
        unpacked(damaged)


def test_texts_of_this_format_are_compressed_by_these_words() -> None:
    words = (Path(mimo.__file__).parent / "model" / "frequent.txt").read_bytes()

    assert (schema.FORMAT, crc32(words)) == (24, 1927423102)  # Other words need another format.


@pytest.mark.parametrize("digest", ["", "ab" * 32, "AB" * 32, f"alone:{'ab' * 32}", "ab cd"])
def test_a_digest_comes_back(digest: str) -> None:
    assert from_digest(to_digest(digest)) == digest


@given(st.lists(tokens, min_size=1, max_size=4), st.data())
def test_passages_with_the_tokens_of_the_units_are_kept_as_lengths(
    units: list[list[str]], data: st.DataObject
) -> None:
    every = [token for unit in units for token in unit]
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(every) - 1)), max_size=3)))
    bounds = [0, *(cut for cut in cuts if cut < len(every)), len(every)]
    passages = [" ".join(every[start:end]) for start, end in pairwise(bounds)]
    texts = list(map(" ".join, units))

    stored = to_passages(passages, texts)

    assert stored is not None
    assert stored.startswith("=")
    assert list(from_passages(stored, texts)) == passages


@given(st.lists(tokens, max_size=3), st.lists(tokens, min_size=1, max_size=3))
def test_other_passages_are_kept_as_they_are(
    passages: list[list[str]], units: list[list[str]]
) -> None:
    joined, texts = list(map(" ".join, passages)), list(map(" ".join, units))

    assert list(from_passages(to_passages(joined, texts), texts)) == joined


def test_the_embedded_texts_of_stored_units_are_those_that_their_vectors_are_named_for(
    index: Index, change_of: Make
) -> None:
    long = "The Größe of a queue is read. " * 40
    changes = [
        change_of("short", "tea", topic="kitchen_rules"),
        change_of("titled", f"# Queues\n\n{long}", title="Queues"),
        change_of("untitled", f"\n\n  {long}\n{'x' * 300}\n", title="Of queues"),
        change_of("words", "…"),
        change_of("sections", long, sections={Section.REASONING: long}, topic="a"),
        change_of("disputed", "tea", competing=(Version(field="content", text=long),)),
        change_of("chat", f"User: {long}\nAssistant: yes\nUser: {long}\n"),
        change_of("unspaced", "데이터베이스연결에실패하면다시시도한다" * 20),
    ]
    index.apply(changes, now_ns=0)

    with index.reading() as sql:
        keys = [key for (key,) in sql.execute("SELECT key FROM memories")]
        texts = embedded_texts(sql, keys)
        names = {name for (name,) in sql.execute("SELECT vector FROM units")}

    assert len(texts) == len(changes)
    assert sum(map(len, texts.values())) == index.totals().units > 2 * len(changes)
    assert {name for units in texts.values() for name, _ in units} == names


def test_a_text_whose_place_is_damaged_gives_no_vector_the_name_of_another(
    index: Index, change_of: Make
) -> None:
    index.apply([change_of("words", "The queue of workers is drained.")], now_ns=0)

    with index.reading() as sql:
        sql.execute("UPDATE units SET start = 4")
        (text,) = embedded_texts(sql, [1])[1]
    assert text == (name_of("queue of workers is drained."), "queue of workers is drained.")
