"""Walks along links that are remembered, so that a question asked again costs next to nothing."""

import sqlite3
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Lock
from typing import TypeAlias

from mimo.domain.graph import Graph
from mimo.frozen import frozen
from mimo.index import touched
from mimo.index.links import Walked, walk

MOST_WALKS = 100
MOST_NODES = 10_000
"""So many memories are kept in all of them together, which bounds what they take."""

LIFE = timedelta(minutes=5)

_Key: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], int, int | None]


@frozen
class _Kept:
    """A walk, and when it was true."""

    walked: Walked
    revision: int
    made: datetime


class Walks:
    """The walks of the last minutes over one index, the one asked last at the end."""

    def __init__(self) -> None:
        """Start with none."""
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._turn = Lock()

    def graph(
        self,
        sql: sqlite3.Connection,
        start: Sequence[str],
        *,
        depth: int,
        types: Collection[str],
        most: int | None,
        now: datetime,
    ) -> Graph:
        """Returns what `walk` would: a remembered graph where nothing of it has changed since."""
        key = (tuple(start), tuple(sorted(set(types))), depth, most)
        ((revision,),) = sql.execute("SELECT revision FROM totals")
        with self._turn:
            self._drop_stale(sql, revision, now)
            if kept := self._kept.get(key):
                self._kept.move_to_end(key)
                return kept.walked.graph
        walked = walk(sql, start, depth=depth, types=types, most=most)
        with self._turn:
            self._keep(key, _Kept(walked=walked, revision=revision, made=now))
        return walked.graph

    def _drop_stale(self, sql: sqlite3.Connection, revision: int, now: datetime) -> None:
        """Forgets what is old, and what a change since may have made wrong."""
        changes: dict[int, set[str] | None] = {revision: set()}
        for key, kept in list(self._kept.items()):
            if kept.revision not in changes:
                changes[kept.revision] = touched.since(sql, kept.revision)
            names = changes[kept.revision]
            aged = not timedelta(0) <= now - kept.made < LIFE
            if aged or names is None or not names.isdisjoint(kept.walked.names):
                del self._kept[key]
            else:
                self._kept[key] = replace(kept, revision=revision)

    def _keep(self, key: _Key, new: _Kept) -> None:
        self._kept[key] = new
        self._kept.move_to_end(key)
        held = sum(len(kept.walked.graph.nodes) for kept in self._kept.values())
        while self._kept and (len(self._kept) > MOST_WALKS or held > MOST_NODES):
            _, oldest = self._kept.popitem(last=False)
            held -= len(oldest.walked.graph.nodes)
