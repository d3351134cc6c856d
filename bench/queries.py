"""Questions about type, topic, outcome and time, with the index's own indexes and without them.

Asked within one process, the median of many. Other systems keep such fields in a JSON column; what
an index on them is worth shows in the ratio of the two.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from mimo.data.disk import Stamp
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Filter, Kind, Memory, Outcome, Place, Record

_NOW = datetime(2026, 11, 20, tzinfo=UTC)
_TIMES = 30

QUESTIONS = {
    "type": Filter(types=frozenset({Kind.CHECKPOINT})),
    "topic": Filter(topic="topic 7"),
    "outcome": Filter(outcomes=frozenset({Outcome.FAILED})),
    "time": Filter(since=_NOW - timedelta(days=3)),
    "all four": Filter(
        types=frozenset({Kind.DECISION}),
        topic="topic 7",
        outcomes=frozenset({Outcome.FAILED}),
        since=_NOW - timedelta(days=365),
    ),
}


def rows(size: int) -> Iterator[tuple[str, str]]:
    """Yields what was asked of that many memories, and how long the answer took."""
    index = Index.in_memory(None)
    index.apply((_change(number) for number in range(size)), now_ns=1)
    after = {name: _median(index, asked) for name, asked in QUESTIONS.items()}
    with index._tables.writing() as sql:
        kept = "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'memories_%'"
        for (name,) in sql.execute(kept).fetchall():
            sql.execute(f"DROP INDEX {name}")
    for name, asked in QUESTIONS.items():
        before = _median(index, asked)
        ratio = before / after[name]
        figure = f"{1000 * after[name]:.2f} ms, without an index {1000 * before:.2f} ms"
        yield f"newest 10 by {name}, of {size:,}", f"{figure} ({ratio:.1f} ×)"
    index.close()


def _median(index: Index, asked: Filter) -> float:
    def once() -> float:
        start = time.perf_counter()
        index.records(asked, limit=10)
        return time.perf_counter() - start

    return statistics.median(once() for _ in range(_TIMES))


def _change(number: int) -> Change:
    draw = random.Random(number)
    kind = draw.choice([Kind.DECISION] * 10 + [Kind.FACT] * 9 + [Kind.CHECKPOINT])
    memory = Memory(
        id=f"{kind}_{number}",
        type=kind,
        content=f"note {number}",
        created=_NOW - timedelta(hours=number),
        topic=f"topic {draw.randrange(500)}" if kind is Kind.DECISION else None,
        outcome=draw.choice([None, None, None, Outcome.SUCCESS, Outcome.FAILED]),
    )
    place = Place(path=f".mind/{kind.folder}/{memory.id}.md", line=1, digest=f"{number:064x}")
    stamp = Stamp(size=1, mtime_ns=number, ctime_ns=number, inode=number)
    record = Record(memory=memory, place=place)
    return Change(path=place.path, stamp=stamp, records=(record,), problem=None)


if __name__ == "__main__":
    for asked, figure in rows(10_000):
        print(f"{asked}: {figure}")
