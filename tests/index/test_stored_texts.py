"""Texts, digests and passages come out of the tables as they went in."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.index.rows import from_passages, to_passages
from mimo.index.schema import from_digest, packed, to_digest, unpacked

tokens = st.lists(st.text("abé", min_size=1, max_size=3), min_size=1, max_size=12)


@given(st.text(), st.integers(1, 40))
def test_a_text_is_unpacked_unchanged(text: str, times: int) -> None:
    assert unpacked(packed(text * times)) == text * times


def test_a_long_text_takes_less_space() -> None:
    text = "the queue of workers is drained before a deploy; " * 8

    assert len(packed(text)) < len(text) / 2


def test_a_damaged_text_is_an_error_that_means_damage() -> None:
    with pytest.raises(ValueError, match="content"):
        unpacked(b"\xff\xfe" * 40)


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
