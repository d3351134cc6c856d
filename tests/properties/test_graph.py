"""Walks over the index, remembered or not, are those of a plain search over the memories."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.data.disk import Stamp
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Kind, Link, Memory, Place, Record

NOW = datetime(2026, 11, 20, tzinfo=UTC)
IDS = ["a", "b", "c", "d", "e", "f"]
NAMES = [*IDS, "Tea", "Milk", "gone"]
"""What links lead to: ids, titles, and one name that nothing ever has."""
PATHS = [*(f"{id}.py" for id in IDS), "x/a.py", "x/b.py", "y.py", "z.py"]
TYPES = ["supersedes", "refines"]

memories = st.builds(
    Memory,
    id=st.sampled_from(IDS),
    type=st.just(Kind.FACT),
    content=st.just("tea"),
    created=st.integers(0, 2).map(lambda day: NOW - timedelta(days=day)),
    title=st.none() | st.sampled_from(["Tea", "Milk", "a"]),
    links=st.lists(
        st.builds(
            Link,
            to=st.sampled_from(NAMES),
            type=st.sampled_from(TYPES),
            given=st.none() | st.just("as"),
        ),
        max_size=4,
        unique_by=lambda link: (link.to, link.type),
    ).map(tuple),
)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    path = draw(st.sampled_from(PATHS))
    stamp = Stamp(size=1, mtime_ns=1, ctime_ns=1, inode=1)
    found = draw(st.lists(memories, max_size=2) | st.lists(memories, min_size=1, max_size=1))
    place = Place(path=path, line=1, digest="")
    records = tuple(
        Record(memory=memory, place=place, position=number) for number, memory in enumerate(found)
    )
    return Change(path=path, stamp=stamp if records else None, records=records)


questions = st.tuples(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple),
    st.integers(0, 5),
    st.sampled_from([(), ("supersedes",), ("refines", "supersedes")]),
    st.none() | st.integers(1, 4),
)


def answered(index: Index, question: Any) -> Any:
    start, depth, types, limit = question
    graph = index.graph(start, depth=depth, types=types, limit=limit, now=NOW)
    return (
        list(graph.start),
        [(node.record, node.depth) for node in graph.nodes],
        [(edge.source, edge.target, edge.type, edge.given) for edge in graph.edges],
        list(graph.missing),
        graph.cut,
    )


def owners(files: dict[str, Change]) -> dict[str, Record]:
    """Returns the memory that has each id: that of a file of this name, or else the first."""
    found: dict[str, list[Record]] = {}
    for change in files.values():
        for record in change.records:
            found.setdefault(record.memory.id, []).append(record)
    return {id: min(records, key=lambda one: _claim(id, one)) for id, records in found.items()}


def _claim(id: str, record: Record) -> tuple[bool, str, int]:
    return Path(record.place.path).stem != id, record.place.path, record.position


def expected(files: dict[str, Change], question: Any) -> Any:
    """Returns what `answered` must give, the plain way."""
    start, depth, types, limit = question
    known = owners(files)
    titles: dict[str, str] = {}
    for id in sorted(known, reverse=True):
        if (title := known[id].memory.title) is not None:
            titles[title] = id

    def led(name: str) -> str | None:
        return name if name in known else titles.get(name)

    def held(id: str) -> list[Link]:
        return [one for one in known[id].memory.links if not types or one.type in types]

    pairs = {(id, led(link.to)) for id in known for link in held(id)}
    depths = {led_to: 0 for name in start if (led_to := led(name))}
    for step in range(1, depth + 1):
        if limit is not None and len(depths) > limit:
            break
        adjacent = [
            b for pair in pairs for a, b in (pair, pair[::-1]) if depths.get(a or "") is not None
        ]
        for other in adjacent:
            if other is not None:
                depths.setdefault(other, step)
    order = sorted(depths, key=lambda id: (depths[id], -known[id].memory.created.timestamp(), id))
    nodes = order if limit is None else order[:limit]
    return (
        list(dict.fromkeys(led_to for name in start if (led_to := led(name)))),
        [(known[id], depths[id]) for id in nodes],
        _edges(nodes, held, led),
        sorted({name for name in _named(start, nodes, held) if led(name) is None}),
        len(nodes) < len(order),
    )


def _named(start: Sequence[str], nodes: Iterable[str], held: Any) -> list[str]:
    return [*start, *(link.to for id in nodes for link in held(id))]


def _edges(nodes: list[str], held: Any, led: Any) -> list[Any]:
    found = []
    for source in nodes:
        for target in nodes:
            for kind in sorted(TYPES):
                links = [one for one in held(source) if led(one.to) == target and one.type == kind]
                if links and source != target:
                    # Of several the one that gives the id, or else the first title.
                    best = min(links, key=lambda one: (one.to != target, one.to))
                    found.append((source, target, kind, best.given))
    return found


@given(
    st.lists(
        st.tuples(st.lists(changes(), min_size=1, max_size=3), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    st.lists(questions, min_size=1, max_size=6),
)
@pytest.mark.req("004-53", "004-57")
def test_remembered_walks_stay_right_whoever_changes_the_memories(
    history: list[tuple[list[Change], bool]], asked: list[Any]
) -> None:
    """Half of the changes come from another process: from a second index over the same files."""
    with TemporaryDirectory() as folder:
        ours, theirs = (Index.open(Path(folder), None) for _ in range(2))
        files: dict[str, Change] = {}
        for number, (batch, by_us) in enumerate(history):
            (ours if by_us else theirs).apply(batch, now_ns=number)
            files.update((change.path, change) for change in batch)
            for question in asked:
                right = expected(files, question)
                assert answered(ours, question) == right
                assert answered(ours, question) == right
        ours.close()
        theirs.close()
