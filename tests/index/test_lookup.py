"""A filter changes what is found, and never how it is ordered, whichever way it is applied."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from mimo.index import selection
from mimo.index.index import Index
from mimo.index.selection import NEAR, memories_near
from mimo.memory.model import Filter
from tests.index.conftest import HashEmbedder, Make

START = datetime(2026, 1, 1, tzinfo=UTC)
SIZE = 1_200
MANY = 10**9

SPANS = {
    "most": (0, 1_100),
    "half": (600, SIZE),
    "a third": (300, 700),
    "few": (100, 130),
    "none": (SIZE + 1, SIZE + 2),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, change_of: Make) -> Iterator[Index]:
    """An index over memories an hour apart; the oldest ones say most about tea."""
    draw = random.Random(7)
    words = "tea milk sugar lemon honey cup kettle spoon".split()
    changes = []
    for number in range(SIZE):
        text = " ".join(draw.choices(words, k=draw.randint(3, 12)))
        text += " tea tea" * (number < 500)
        created = START + timedelta(hours=number)
        changes.append(change_of(f"m{number}", text, created=created))
    index = Index.open(tmp_path_factory.mktemp("filled"), HashEmbedder())
    index.apply(changes, now_ns=1)
    yield index
    index.close()


def span(first: int, last: int) -> Filter:
    return Filter(since=START + timedelta(hours=first), until=START + timedelta(hours=last))


@pytest.mark.parametrize("name", SPANS)
@pytest.mark.parametrize("terms", [["tea"], ["tea", "honey", "spoon"]])
def test_every_way_finds_the_same_in_the_same_order(
    filled: Index, name: str, terms: list[str]
) -> None:
    narrowed = span(*SPANS[name])
    ways: dict[str, dict[str, Any]] = {
        "among the best": {"memories": SIZE, "admitted": SIZE - 1, "matches": MANY},
        "of the admitted": {"memories": MANY, "admitted": 1, "matches": SIZE},
        "one by one": {"memories": SIZE, "admitted": SIZE - 1, "matches": 0},
    }
    with filled.reading() as sql:
        results = {way: selection.memories_with(sql, terms, narrowed, **ways[way]) for way in ways}
        admitted = selection.count(sql, narrowed)

    assert results["among the best"] == results["of the admitted"] == results["one by one"]
    assert (len(results["one by one"]) > 0) == (admitted > 0)


def test_a_filter_that_admits_everything_changes_nothing(filled: Index) -> None:
    reach: dict[str, Any] = {"memories": SIZE, "admitted": SIZE, "matches": SIZE}
    with filled.reading() as sql:
        plainly = selection.memories_with(sql, ["tea"], Filter(), **reach)
        assert selection.memories_with(sql, ["tea"], span(0, SIZE), **reach) == plainly


@pytest.mark.parametrize("name", SPANS)
@pytest.mark.parametrize("of", ["units", "memories"])
def test_near_vectors_are_fetched_as_deep_as_a_filter_needs(
    filled: Index, monkeypatch: pytest.MonkeyPatch, name: str, of: Literal["units", "memories"]
) -> None:
    narrowed, query, vectors = span(*SPANS[name]), b"\x10" * 64, filled._vectors
    assert vectors is not None
    with filled.reading() as sql:
        filled.make_static(sql)
        in_depth = memories_near(sql, vectors, query, narrowed, of=of)
        monkeypatch.setattr("mimo.index.selection._COMPARED_EACH", 0)
        one_by_one = memories_near(sql, vectors, query, narrowed, of=of)
        admitted = selection.count(sql, narrowed)

    assert len(in_depth) == (min(NEAR, admitted) if of == "memories" else len(in_depth)) <= NEAR
    assert list(in_depth.items()) == list(one_by_one.items())
