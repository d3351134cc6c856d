"""Walks along links, in both directions, and a cache of the latest walks."""

from __future__ import annotations

import json
import sqlite3
from _thread import allocate_lock
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from mimo.frozen import NamedTuple, replace
from mimo.index import rows
from mimo.index.schema import from_sql, marks, newest_first, portions, totals
from mimo.index.targets import LinkTarget, named_links, resolved
from mimo.index.tracking import has_changes_since
from mimo.memory.model import Record
from mimo.memory.naming import key_of, tail_of
from mimo.memory.relations import MAX_DEPTH, Edge, Graph, Node

MOST_WALKS = 100
MOST_NODES = 10_000
"""The number of memories in all cached walks together, which bounds their size."""

LIFE = timedelta(minutes=5)


class Walked(NamedTuple):
    """A graph, and the names of all memories whose change could change it."""

    graph: Graph
    names: frozenset[str]


class _Place(NamedTuple):
    """A memory that a walk reached; sorts as the nodes of a graph do."""

    depth: int
    age: int
    id: str
    key: int
    path: str


class _Stored(NamedTuple):
    """A row of `links`."""

    source: int
    target: str
    type: str
    given: str | None
    confidence: float | None


def walk(
    sql: sqlite3.Connection,
    start: Sequence[str],
    *,
    depth: int,
    types: Collection[str] = (),
    limit: int | None = None,
    shared: bool = False,
) -> Walked:
    """Returns the memories at most `depth` links away from `start` (ids or names).

    Only links of `types` are followed; empty means all. The nearest `limit` memories are kept. With
    `shared`, the walk enters no private memory.
    """
    return _Walker(sql, sorted(types), shared=shared).walk(start, depth=depth, limit=limit)


def newest(
    sql: sqlite3.Connection, types: Collection[str], limit: int, *, shared: bool = False
) -> Graph:
    """Returns up to `limit` linked memories, and the links between them.

    If there are more, the newest come with those around them: alone they would show no links. With
    `shared`, private memories and their links do not matter.
    """
    named = sorted(types)
    of_types = f" AND links.type IN ({marks(named)})" if named else ""
    among, private = ("AND m.private = 0", "AND private = 0") if shared else ("", "")
    by_name = [link for _, link, _ in named_links(sql, named, shared=shared)]
    walker = _Walker(sql, named, shared=shared)
    by_keys = walker.resolve(by_name)
    held = f"links CROSS JOIN memories m ON m.key = source WHERE 1{of_types} {among}"
    selected = sql.execute(
        f"WITH linked (key) AS (SELECT source FROM {held} UNION SELECT t.key FROM"
        f" (SELECT target FROM {held}) CROSS JOIN memories t ON t.id = target"
        " UNION SELECT value FROM json_each(?))"
        f" SELECT id FROM linked CROSS JOIN memories USING (key) WHERE shadowed = 0 {private}"
        f" ORDER BY {newest_first('memories')} LIMIT ?",
        (*named, *named, json.dumps(list(by_keys)), limit + 1),
    )
    ids = [id for (id,) in selected]
    members = dict.fromkeys(ids if len(ids) <= limit else ())
    for id in ids if len(ids) > limit else ():
        if id not in members and len(members) < limit:
            near = walker.walk([id], depth=MAX_DEPTH, limit=limit).graph.nodes
            fresh = [node.record.memory.id for node in near if node.record.memory.id not in members]
            members.update(dict.fromkeys(fresh[: limit - len(members)]))
    graph = walker.walk(list(members), depth=0).graph
    return replace(graph, start=(), cut=len(ids) > limit)


class _Walker:
    """The state of a walk; several one after another resolve each link once."""

    def __init__(self, sql: sqlite3.Connection, types: Sequence[str], *, shared: bool) -> None:
        """Takes the tables, and the types of links to follow."""
        self._sql = sql
        self._shared = shared
        self._types = types
        self._of_types = f" AND links.type IN ({marks(types)})" if types else ""
        self.places: dict[int, _Place] = {}
        self._held: dict[int, list[_Stored]] = {}
        """The links that each memory holds, as far as they were read."""
        self._keys: dict[LinkTarget, int | None] = {}
        """The memory that each link leads to, as far as it was resolved."""

    def walk(self, start: Sequence[str], *, depth: int, limit: int | None = None) -> Walked:
        """Returns a new walk, as the function `walk` does."""
        self.places = {}
        frontier = self.arrive(self.resolve(map(LinkTarget, start)), 0)
        for step in range(1, depth + 1):
            if not frontier or (limit is not None and len(self.places) > limit):
                break
            frontier = self.arrive(self.neighbours(frontier), step)
        return self.walked(start, limit)

    def resolve(self, links: Iterable[LinkTarget]) -> set[int]:
        """Returns the memories that these links lead to."""
        all_links = list(dict.fromkeys(links))
        unknown = [link for link in all_links if link not in self._keys]
        keys = resolved(self._sql, unknown, shared=self._shared)
        self._keys.update({link: keys.get(link, (None,))[0] for link in unknown})
        return {key for link in all_links if (key := self._keys[link]) is not None}

    def arrive(self, keys: Collection[int], depth: int) -> list[_Place]:
        """Adds memories to the walk and returns those that are new to it."""
        new = [key for key in keys if key not in self.places]
        among = " AND private = 0" if self._shared else ""
        places = [
            _Place(depth, -created, id, key, from_sql(path))
            for created, id, key, path in self._select(
                f"SELECT created, id, key, path FROM memories WHERE key IN ({{}}){among}", new
            )
        ]
        self.places.update((place.key, place) for place in places)
        return places

    def neighbours(self, frontier: Sequence[_Place]) -> set[int]:
        """Returns the memories that links of `frontier` lead to or come from."""
        self._read_links([place.key for place in frontier])
        return self.resolve(self._link_targets(frontier)) | self._pointing_at(frontier)

    def _link_targets(self, places: Iterable[_Place]) -> Iterator[LinkTarget]:
        """Yields what the links of these memories want."""
        for place in places:
            yield from (LinkTarget(link.target, place.path) for link in self._held[place.key])

    def walked(self, start: Sequence[str], limit: int | None) -> Walked:
        """Returns the graph of the nearest `limit` memories."""
        places = sorted(self.places.values())
        nearest = places if limit is None else places[: max(limit, 0)]
        self._read_links([place.key for place in nearest if place.key not in self._held])
        links = list(self._link_targets(nearest))
        self.resolve(links)
        records: dict[int, Record] = {}
        for chunk in portions([place.key for place in nearest]):
            records |= rows.by_key(self._sql, chunk)
        wanted = [*map(LinkTarget, start), *links]
        starts = [key for key in map(self._keys.get, wanted[: len(start)]) if key is not None]
        led = {link.target for link in wanted if self._keys[link] is not None}
        names = {link.target for link in wanted}
        graph = Graph(
            start=tuple(dict.fromkeys(self.places[k].id for k in starts if k in self.places)),
            nodes=tuple([Node(records[place.key], place.depth) for place in nearest]),
            edges=self._edges(nearest),
            missing=tuple(sorted(names - led)),
            cut=len(nearest) < len(places),
        )
        names.update([tail_of(key_of(name)) for name in names])
        names.update(place.id for place in places)
        names.update(tail for tail, _ in self._tails([place.key for place in places]))
        return Walked(graph, frozenset(names))

    def _tails(self, keys: Sequence[int]) -> list[Any]:
        """Returns the handles of memories and the tails of their names, each with its memory."""
        handles = self._select("SELECT handle, key FROM memories WHERE key IN ({})", keys)
        return handles + self._select("SELECT tail, memory FROM names WHERE memory IN ({})", keys)

    def _read_links(self, keys: Sequence[int]) -> None:
        """Reads the links that these memories hold."""
        self._held.update((key, []) for key in keys)
        query = (
            "SELECT source, target, type, given, confidence FROM links"
            f" WHERE source IN ({{}}){self._of_types}"
        )
        for row in self._select(query, keys, self._types):
            self._held[row[0]].append(_Stored(*row))

    def _pointing_at(self, frontier: Sequence[_Place]) -> set[int]:
        """Returns the memories with a link that leads to one of `frontier`."""
        query = (
            "SELECT target, source, path FROM links CROSS JOIN memories ON key = source"
            f" WHERE {{}} IN ({{{{}}}}) AND shadowed = 0{self._of_types}"
        )
        by_target, by_tail = query.format("target"), query.format("tail")
        ids = [place.id for place in frontier]
        sources = {source for _, source, _ in self._select(by_target, ids, self._types)}
        # A name leads to one memory only, and to none if it is the id of another memory.
        reached = {place.key for place in frontier}
        tails = list({tail for tail, _ in self._tails(list(reached))})
        named = [
            row for each in (by_target, by_tail) for row in self._select(each, tails, self._types)
        ]
        links = {(LinkTarget(target, from_sql(path)), source) for target, source, path in named}
        self.resolve(link for link, _ in links)
        return sources | {source for link, source in links if self._keys[link] in reached}

    def _edges(self, places: Sequence[_Place]) -> tuple[Edge, ...]:
        """Returns the links between the memories; of duplicates, the one that names the id."""
        order = {place.key: number for number, place in enumerate(places)}
        between = []
        for place in places:
            for _, name, kind, label, confidence in self._held[place.key]:
                target = order.get(self._keys[LinkTarget(name, place.path)] or 0)
                if target is not None and target != order[place.key]:
                    is_name = name != places[target].id
                    between.append(
                        (order[place.key], target, kind, is_name, name, label, confidence)
                    )
        between.sort()  # A source has one link of a type to a name: the rest is not compared.
        edges = {}
        for source, target, kind, _, _, label, confidence in between:
            if (source, target, kind) not in edges:
                edge = Edge(places[source].id, places[target].id, kind, label, confidence)
                edges[source, target, kind] = edge
        return tuple(edges.values())

    def _select(self, query: str, names: Sequence[Any], more: Sequence[str] = ()) -> list[Any]:
        """Returns the rows of a query over many names, which replace its `{}`."""
        selected: list[Any] = []
        for chunk in portions(names):
            selected += self._sql.execute(query.format(marks(chunk)), (*chunk, *more))
        return selected


class Walks:
    """The cached walks over one index, the last used one at the end."""

    def __init__(self) -> None:
        """Starts with an empty cache."""
        self._kept: OrderedDict[object, tuple[Walked, int, datetime]] = OrderedDict()
        """Each walk with the revision for which it holds, and its time."""
        self._turn = allocate_lock()

    def graph(
        self,
        sql: sqlite3.Connection,
        start: Sequence[str],
        *,
        depth: int,
        types: Collection[str],
        limit: int | None,
        shared: bool,
        now: datetime,
    ) -> Graph:
        """Returns the graph of a walk, from the cache unless one of its memories has changed."""
        key = (tuple(start), tuple(sorted(set(types))), depth, limit, shared)
        revision = totals(sql).revision
        with self._turn:
            self._drop_stale(sql, revision, now)
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0].graph
        walked = walk(sql, start, depth=depth, types=types, limit=limit, shared=shared)
        with self._turn:
            self._kept[key] = (walked, revision, now)
            self._kept.move_to_end(key)
            nodes = sum(len(entry.graph.nodes) for entry, *_ in self._kept.values())
            while self._kept and (len(self._kept) > MOST_WALKS or nodes > MOST_NODES):
                _, (oldest, *_) = self._kept.popitem(last=False)
                nodes -= len(oldest.graph.nodes)
        return walked.graph

    def _drop_stale(self, sql: sqlite3.Connection, revision: int, now: datetime) -> None:
        """Removes walks that are old or that a later change may affect."""
        changes: dict[int, set[str] | None] = {revision: set()}
        for key, (walked, since, cached_at) in list(self._kept.items()):
            if since not in changes:
                changes[since] = _touched_since(sql, since)
            names = changes[since]
            aged = not timedelta(0) <= now - cached_at < LIFE
            if aged or names is None or not names.isdisjoint(walked.names):
                del self._kept[key]
            else:
                self._kept[key] = (walked, revision, cached_at)


def _touched_since(sql: sqlite3.Connection, revision: int) -> set[str] | None:
    """Returns the names that changed after a revision; None if they are not stored any more."""
    if not has_changes_since(sql, revision):
        return None
    selected = sql.execute("SELECT name FROM touched WHERE revision > ?", (revision,))
    return {name for (name,) in selected}
