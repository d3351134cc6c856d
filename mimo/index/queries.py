"""The queries of an index, as methods of its readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from mimo.data.sqlite import Connection
from mimo.index import names, schema, selection, targets, tracking
from mimo.memory.model import Memory, Record

Answer = TypeVar("Answer")
P = ParamSpec("P")


def _query(
    query: Callable[Concatenate[Connection, P], Answer],
) -> Callable[Concatenate[Queries, P], Answer]:
    """Returns a function over the tables as a method of `Queries`."""

    @wraps(query)
    def method(queries: Queries, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return queries.ask(query, *args, **kwargs)

    return method


class Queries:
    """The queries of an index, which each reader asks in its own way."""

    def ask(
        self,
        query: Callable[Concatenate[Connection, P], Answer],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        """Returns the result of a query over the tables."""
        raise NotImplementedError

    stamps = _query(tracking.stamps)
    paths = _query(tracking.paths_of_files)
    file_count = _query(tracking.count_files)
    has_all = _query(tracking.has_all)
    has_below = _query(tracking.has_below)
    get = _query(selection.get)
    named = _query(targets.named)
    titled = _query(targets.titled)
    matching = _query(names.matching)
    handle = _query(names.handle)
    apart = _query(names.apart)
    nearest_ids = _query(names.nearest_ids)
    nearest_topics = _query(names.nearest_topics)
    parts = _query(selection.parts)
    chunks = _query(selection.chunks)
    records = _query(selection.records)
    among = _query(selection.among)
    folded = _query(selection.folded)
    folded_records = _query(selection.folded_records)
    chunk_counts = _query(selection.chunk_counts)
    count = _query(selection.count)
    newer = _query(selection.newer)
    current = _query(selection.current)
    competing = _query(selection.competing)
    loose_links = _query(targets.loose_links)
    totals = _query(schema.totals)
    latest = _query(tracking.latest)
    changes_since = _query(tracking.changes_since)
    fingerprint = _query(tracking.fingerprint)

    def superseded_by(self, ids: Sequence[str]) -> dict[str, str]:
        """Returns the superseded ones among these ids, each with the newest memory that does so."""
        return {old: new.successor for old, new in self.newer(ids).items() if new.successor}

    def saying(self, memory: Memory) -> tuple[Record, ...]:
        """Returns the current memories with the same statement as a new one, oldest first."""
        from mimo.index import writing

        return self.ask(writing.same, memory)

    def much_like(self, memory: Memory) -> Record | None:
        """Returns the current memory that is a near-duplicate of a new one, if there is one."""
        from mimo.index import writing

        return self.ask(writing.alike, memory)

    def changed_at(self) -> datetime | None:
        """Returns the time of the last change, UTC; None if the index was never written."""
        query = "SELECT changed_ns FROM totals"
        (changed_ns,) = self.ask(lambda sql: sql.execute(query).fetchone())
        return None if changed_ns is None else schema.to_time(changed_ns // 1000)
