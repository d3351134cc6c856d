"""Searches narrowed to a time, beside the same ones that are not.

Asked within one process over an index without files, in processor time. The memories are spread
over a year, once with every subject at all times, and once with the subjects one after the other,
when a time leaves words nothing to find and meaning has to look at all that is of that time.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from mimo.data.disk import Stamp
from mimo.index.embedding import open_embedder
from mimo.index.index import Index
from mimo.index.rows import Change, Request
from mimo.memory.model import Filter, Kind, Memory, Place, Record

_NOW = datetime(2026, 11, 20, tzinfo=UTC)
_YEAR = 365 * 24 * 60
_ROUNDS = 8
TIMES = {"half a year": 182, "a month": 30, "a week": 7, "a day": 1}


def rows(
    size: int, text: Callable[[int], str], subject: Callable[[int], int], queries: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yields what was asked of that many memories, and how long the answers took."""
    subjects = 1 + max(subject(number) for number in range(100))
    for clustered in (False, True):

        def minutes(number: int, clustered: bool = clustered) -> int:
            minute = random.Random(-1 - number).randrange(_YEAR)
            return (subject(number) * _YEAR + minute) // subjects if clustered else minute

        index = Index.in_memory(open_embedder(None))
        index.apply((_change(n, text(n), minutes(n)) for n in range(size)), now_ns=1)
        # The first searches of a process read what the others find ready.
        _median(index, Filter(), queries)
        whole = _median(index, Filter(), queries)
        how = "subjects one after the other" if clustered else "subjects at all times"
        asked = f"search of {size:,}, {how}"
        yield f"{asked}, no time", f"p50 {1000 * whole:.1f} ms"
        for name, days in TIMES.items():
            took = _median(index, Filter(since=_NOW - timedelta(days=days)), queries)
            yield f"{asked}, {name}", f"p50 {1000 * took:.1f} ms ({took / whole:.2f} × without)"
        index.close()


def _median(index: Index, asked: Filter, queries: Sequence[str]) -> float:
    def once(query: str) -> float:
        start = time.process_time()
        index.search(Request(query, filter=asked, limit=10, threshold=0.3, nearest=3, now=_NOW))
        return time.process_time() - start

    return statistics.median(once(query) for _ in range(_ROUNDS) for query in queries)


def _change(number: int, text: str, minutes: int) -> Change:
    made = _NOW - timedelta(minutes=minutes)
    memory = Memory(id=f"fact_{number}", type=Kind.FACT, content=text, created=made)
    place = Place(path=f".mind/facts/{memory.id}.md", line=1, digest=f"{number:064x}")
    record = Record(memory=memory, place=place)
    return Change(path=place.path, stamp=Stamp(1, number, number, number), records=(record,))
