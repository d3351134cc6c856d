"""An index that grew by changes gives the answers of one that is made from the last state."""

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.data.disk import Stamp
from mimo.features.hooks.related import matches
from mimo.frozen import replace
from mimo.index import doubles
from mimo.index.catalog import Catalog
from mimo.index.index import Index
from mimo.index.rows import Change, Request
from mimo.index.schema import Approves
from mimo.memory.model import Filter, Kind, Link, Memory, Place, Problem, Record, Sort
from mimo.memory.note import Note
from tests.index.conftest import HashEmbedder

NOW = datetime(2026, 11, 20, tzinfo=UTC)
PATHS = ["a.md", "b.md", "c/a.md", "c/d.md", "e.md"]
IDS = ["a", "b", "d", "e"]
WORDS = ["green", "tea", "wombat", "sleeps", "Größe", "데이터베이스", "数据", "x1", "\n", "."]


links = st.builds(Link, to=st.sampled_from(IDS), type=st.sampled_from(["supersedes", "refines"]))
memories = st.builds(
    Memory,
    id=st.sampled_from(IDS),
    type=st.sampled_from([Kind.FACT, Kind.PLAN]),
    content=st.lists(st.sampled_from(WORDS), max_size=150).map(" ".join),
    created=st.integers(0, 3).map(lambda day: NOW - timedelta(days=day)),
    title=st.none() | st.sampled_from(WORDS),
    topic=st.none() | st.sampled_from(["tea", "Tea"]),
    tags=st.lists(st.sampled_from(["red", "Red", "blue"]), max_size=2).map(tuple),
    importance=st.sampled_from([0.0, 0.5, 1.0]),
    links=st.lists(links, max_size=2).map(tuple),
)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """A file that is new, edited, removed or unreadable."""
    path = draw(st.sampled_from(PATHS))
    stamp = Stamp(size=draw(st.integers(0, 3)), mtime_ns=1, ctime_ns=1, inode=1)
    what = draw(st.sampled_from(["gone", "bad", "one", "parts"]))
    if what == "gone":
        return Change(path=path, stamp=None)
    if what == "bad":
        return Change(path=path, stamp=stamp, problem=Problem(path=path, line=1, reason="bad"))
    place = Place(path=path, line=1, digest="")
    if what == "one":
        records = [Record(memory=draw(memories), place=place)]
    else:
        found = draw(st.lists(memories, min_size=1, max_size=3))
        records = [
            Record(memory=memory, place=place, parent="whole", position=number)
            for number, memory in enumerate(found)
        ]
    return Change(path=path, stamp=stamp, records=tuple(records))


DIGESTS = [number * 64 for number in "123"]


def shared(path: str, id: str, digest: str | None) -> Change:
    """A file whose id another file may have, with a text that may be approved, or a missing one."""
    if digest is None:
        return Change(path=path, stamp=None)
    memory = Memory(id=id, type=Kind.FACT, content=f"{path} {digest}", created=NOW)
    record = Record(memory=memory, place=Place(path=path, line=1, digest=digest))
    stamp = Stamp(size=1, mtime_ns=1, ctime_ns=1, inode=1)
    return Change(path=path, stamp=stamp, records=(record,))


files = st.builds(
    shared,
    st.sampled_from(PATHS[:4]),
    st.sampled_from(IDS[:2]),
    st.sampled_from([*DIGESTS, *DIGESTS, None]),
)
approvals = st.frozensets(st.sampled_from(DIGESTS))


def related(sql: sqlite3.Connection, prompt: str) -> list[Note]:
    return list(matches(Catalog(sql), prompt, limit=3).by_words)


def answers(index: Index) -> dict[str, Any]:
    """Everything that the index can be asked."""
    filters = [
        Filter(),
        Filter(types=frozenset({Kind.PLAN})),
        Filter(tags=frozenset({"red"})),
        Filter(topic="tea"),
        Filter(since=NOW - timedelta(days=1)),
    ]
    queries = ["green tea", "wombat", "데이터", "数据", "grosse", "unheard of", "the"]
    stats = index.stats()
    names = {
        name
        for (name,) in index.ask(lambda sql: sql.execute("SELECT vector FROM units").fetchall())
    }
    assert index._vectors is not None
    return {
        "stamps": index.stamps(),
        "problems": index.problems(),
        "lists": [index.records(f, sort=sort) for f in filters for sort in Sort],
        "counts": [index.count(f) for f in filters],
        "ids": [index.get(id) for id in IDS],
        "links": (index.superseded_by(IDS), index.loose_links()),
        "totals": (stats.memories, stats.units, len(index._vectors.known(names)), stats.files),
        "doubles": doubles.near_duplicates(index, 3),
        "alike": [index.much_like(record.memory) for record in index.records(Filter())],
        "related": [index.ask(related, query) for query in queries],
        "found": [
            [
                replace(hit, key=None)
                for hit in index.search(Request(q, filter=f, limit=20, now=NOW)).hits
            ]
            for q in queries
            for f in filters
        ],
    }


@given(st.lists(st.lists(changes(), min_size=1, max_size=4), max_size=6))
def test_changes_one_by_one_come_to_the_same_as_a_rebuild(history: list[list[Change]]) -> None:
    check(history)


def approving(digests: frozenset[str]) -> Callable[[], Approves]:
    return lambda: digests.__contains__


@given(st.lists(st.tuples(st.lists(files, max_size=3), approvals), min_size=1, max_size=6))
def test_ids_follow_approvals_as_in_a_new_index(
    history: list[tuple[list[Change], frozenset[str]]],
) -> None:
    grown = Index.in_memory(HashEmbedder())
    final: dict[str, Change] = {}
    for number, (batch, approved) in enumerate(history):
        grown.approvals.checker = approving(approved)
        if batch:
            grown.apply(batch, now_ns=number)
        grown.resolve_ids()
        final |= {change.path: change for change in batch}
        rebuilt = Index.in_memory(HashEmbedder())
        rebuilt.approvals.checker = grown.approvals.checker
        rebuilt.apply(final.values(), now_ns=number)

        assert [grown.get(id) for id in IDS] == [rebuilt.get(id) for id in IDS]
        assert grown.problems() == rebuilt.problems()
        assert grown.records(Filter()) == rebuilt.records(Filter())
        assert grown.count(Filter()) == rebuilt.count(Filter())
        rebuilt.close()
    grown.close()


equal = st.builds(
    Memory,
    id=st.sampled_from("abcdefgh"),
    type=st.sampled_from([Kind.FACT, Kind.PLAN]),
    content=st.sampled_from(["green tea", "green wombat", "wombat sleeps", "green 데이터"]),
    created=st.integers(0, 3).map(lambda day: NOW - timedelta(days=day)),
)


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    """Limits that a few memories exceed."""
    limits = {
        "index.selection": {"UNITS": 3, "READ": 4, "DOCUMENTS": 2, "NEAR": 2, "_MANY": 2},
        "features.hooks.related": {"_UNITS": 2, "_MARGIN": 1},
        "index.writing": {"_COMPARED": 1},
    }
    with pytest.MonkeyPatch.context() as patch:
        for module, values in limits.items():
            for name, value in values.items():
                patch.setattr(f"mimo.{module}.{name}", value)
        yield


@pytest.mark.usefixtures("small")
@given(st.lists(st.lists(equal, min_size=1, max_size=4), min_size=2, max_size=6))
def test_equally_good_memories_come_in_the_same_order(history: list[list[Memory]]) -> None:
    check([[file_of(memory) for memory in batch] for batch in history])


def file_of(memory: Memory) -> Change:
    path = f".mind/facts/{memory.id}.md"
    record = Record(memory=memory, place=Place(path=path, line=1, digest=""))
    stamp = Stamp(size=1, mtime_ns=1, ctime_ns=1, inode=1)
    return Change(path=path, stamp=stamp, records=(record,))


def check(history: list[list[Change]]) -> None:
    """Compares an index that grew with one that is made from the last state."""
    grown = Index.in_memory(HashEmbedder())
    for number, batch in enumerate(history):
        grown.apply(batch, now_ns=number)

    final = {change.path: (change, n) for n, batch in enumerate(history) for change in batch}
    rebuilt = Index.in_memory(HashEmbedder())
    for path in sorted(final):
        change, number = final[path]
        rebuilt.apply([change], now_ns=number)

    assert answers(grown) == answers(rebuilt)
    grown.close()
    rebuilt.close()
