"""Questions to an index within one process, in processor time, the median of many.

By type, topic, outcome and time they are asked with the index's own indexes and without them: other
systems keep such fields in a JSON column, and what an index on them is worth shows in the ratio.

Searches narrowed to a time stand beside the same ones that are not. The memories are spread over a
year, once with every subject at all times, and once with the subjects one after the other, when a
time leaves words nothing to find and meaning has to look at all that is of that time.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.stores import QUERIES, TOPICS, subject, text
from mimo.data.disk import Stamp
from mimo.index.embedding import open_embedder
from mimo.index.index import Index
from mimo.index.rows import Change, Request
from mimo.memory.model import Filter, Kind, Memory, Outcome, Place, Record

NOW = datetime(2026, 11, 20, tzinfo=UTC)
_YEAR = 365 * 24 * 60
_TIMES, _ROUNDS = 30, 8
SPANS = {"half a year": 182, "a month": 30, "a week": 7, "a day": 1}
FIELDS = {
    "type": Filter(types=frozenset({Kind.CHECKPOINT})),
    "topic": Filter(topic="topic 7"),
    "outcome": Filter(outcomes=frozenset({Outcome.FAILED})),
    "time": Filter(since=NOW - timedelta(days=3)),
    "all four": Filter(
        types=frozenset({Kind.DECISION}),
        topic="topic 7",
        outcomes=frozenset({Outcome.FAILED}),
        since=NOW - timedelta(days=365),
    ),
}

Figure = tuple[str, str]
"""What was asked, and how long the answer took."""


def change_of(memory: Memory, number: int, path: str = "") -> Change:
    """Returns the file of a memory as new; its stamp and digest are of the number."""
    place = Place(
        path=path or f".mind/{memory.type.folder}/{memory.id}.md", line=1, digest=f"{number:064x}"
    )
    record = Record(memory=memory, place=place)
    return Change(path=place.path, stamp=Stamp(1, number, number, number), records=(record,))


def by_fields(size: int) -> Iterator[Figure]:
    """Yields the questions about fields of that many memories."""
    index = Index.in_memory(None)
    index.apply((change_of(_varied(number), number) for number in range(size)), now_ns=1)

    def median(asked: Filter) -> float:
        return _median(lambda _: index.records(asked, limit=10), range(_TIMES))

    after = {name: median(asked) for name, asked in FIELDS.items()}
    with index._tables.writing() as sql:
        kept = "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'memories_%'"
        for (name,) in sql.execute(kept).fetchall():
            sql.execute(f"DROP INDEX {name}")
    for name, asked in FIELDS.items():
        before = median(asked)
        figure = f"{1000 * after[name]:.2f} ms, without an index {1000 * before:.2f} ms"
        yield f"newest 10 by {name}, of {size:,}", f"{figure} ({before / after[name]:.1f} ×)"
    index.close()


def _varied(number: int) -> Memory:
    draw = random.Random(number)
    kind = draw.choice([Kind.DECISION] * 10 + [Kind.FACT] * 9 + [Kind.CHECKPOINT])
    return Memory(
        id=f"{kind}_{number}",
        type=kind,
        content=f"note {number}",
        created=NOW - timedelta(hours=number),
        topic=f"topic {draw.randrange(500)}" if kind is Kind.DECISION else None,
        outcome=draw.choice([None, None, None, Outcome.SUCCESS, Outcome.FAILED]),
    )


def narrowed(size: int) -> Iterator[Figure]:
    """Yields searches of that many memories that are narrowed to a time."""
    for clustered in (False, True):
        index = Index.in_memory(open_embedder(None))
        index.apply((change_of(_dated(n, clustered=clustered), n) for n in range(size)), now_ns=1)

        def median(asked: Filter, index: Index = index) -> float:
            return _median(
                lambda query: index.search(Request(query, asked, 10, NOW)),
                QUERIES * _ROUNDS,
            )

        median(Filter())  # The first searches of a process read what the others find ready.
        whole = median(Filter())
        how = "subjects one after the other" if clustered else "subjects at all times"
        asked = f"search of {size:,}, {how}"
        yield f"{asked}, no time", f"p50 {1000 * whole:.1f} ms"
        for name, days in SPANS.items():
            took = median(Filter(since=NOW - timedelta(days=days)))
            yield f"{asked}, {name}", f"p50 {1000 * took:.1f} ms ({took / whole:.2f} × without)"
        index.close()


def _dated(number: int, *, clustered: bool) -> Memory:
    minute = random.Random(-1 - number).randrange(_YEAR)
    minute = (subject(number) * _YEAR + minute) // len(TOPICS) if clustered else minute
    made = NOW - timedelta(minutes=minute)
    return Memory(id=f"fact_{number}", type=Kind.FACT, content=text(number), created=made)


def _median(work: Callable[[Any], object], steps: Iterable[Any]) -> float:
    """Returns the processor seconds that one step takes."""
    took = []
    for step in steps:
        start = time.process_time()
        work(step)
        took.append(time.process_time() - start)
    return statistics.median(took)
