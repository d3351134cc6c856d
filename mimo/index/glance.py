"""Fast reading of a few rows of the index, for hooks and the context block.

Loads little of mind. It creates, refreshes and embeds nothing, so it may lag behind the files.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from mimo.errors import Misread
from mimo.index.schema import (
    BM25,
    COLUMNS,
    CURRENT,
    CURRENT_IF_SHARED,
    VOUCHED,
    Approvals,
    Approves,
    checksum,
    from_digest,
    from_sql,
    marks,
    newest_first,
    open_cache,
    to_digest,
    to_sql,
    unpacked,
)
from mimo.index.unasked import BESIDE_NEAREST, Prompt
from mimo.memory.note import Note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from mimo.index.index import Index

    Answer = TypeVar("Answer")

_COLUMNS = ", ".join([f"m.{name}" for name in COLUMNS.split(", ")])
_APPROVED = "m.shadowed = 0 AND approved(m.digest)"
_FAILED = "FAILED"
_IMPORTANT = 0.8
_MOST_READ = 500
"""The number of approved rows of a kind that are read."""
_WHERE_KEPT = (
    "m.key IN (SELECT key FROM memories WHERE path = '.mind/MEMORY.md' UNION ALL"
    " SELECT key FROM (SELECT key FROM memories m INDEXED BY memories_important"
    f" WHERE importance >= {_IMPORTANT} AND parent IS NULL AND {_APPROVED}"
    f" ORDER BY importance DESC, {newest_first('m')} LIMIT {_MOST_READ}))"
)

_READ = 4_000
"""The number of characters of a prompt that are read for words."""

_UNITS, _MARGIN = 40, 20
"""The number of approved units that are weighed, and of those read beyond them, as for a search."""

_BESIDE = 1.0
"""Memories are given beside the best one if their evidence is weaker by this at most."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def open_index(
    folder: Path, owner: str, approves: Approves, root: Path, allowed: Collection[str] | None = None
) -> Iterator[Glance | None]:
    """Yields the index of a folder, or None; one that `owner` has not made is empty.

    Its memories from files that have changed since are left out. If approved texts are few,
    `allowed` has all their digests, and other memories are not read.
    """
    approvals = Approvals()
    approvals.approves = approves
    tables = open_cache(folder, owner, approvals)
    try:
        if not tables.exists:
            yield None
        else:
            with tables.reading() as sql:
                yield Glance(sql, root, allowed)
    finally:
        tables.close()


def ask(index: Index, reads: Callable[[Glance], Answer]) -> Answer:
    """Returns what `reads` returns about an open index."""
    return index.ask(lambda sql: reads(Glance(sql)))


class Glance:
    """Reads approved memories from the index."""

    def __init__(
        self,
        sql: sqlite3.Connection,
        root: Path | None = None,
        allowed: Collection[str] | None = None,
    ) -> None:
        """Takes a connection on which all reads see the same state.

        Without the project's root, no file is checked for changes.
        """
        self._sql = sql
        self._root = root
        self._approved, self._kept, self._units = _APPROVED, _WHERE_KEPT, ""
        self._by, self._by_importance = "", "INDEXED BY memories_important"
        if allowed is not None:
            query = f"SELECT key FROM memories WHERE shadowed = 0 AND digest IN ({marks(allowed)})"
            keys = ",".join(str(key) for (key,) in sql.execute(query, [*map(to_digest, allowed)]))
            self._approved, self._kept = f"m.key IN ({keys})", "1"
            # Without `+`, FTS5 would look for the words once for each unit.
            self._units = f"AND +words.rowid IN (SELECT key FROM units WHERE memory IN ({keys}))"
            self._by = self._by_importance = "NOT INDEXED"

    def count(self) -> int:
        """Returns the number of memories, approved or not."""
        (memories,) = self._sql.execute("SELECT memories - shadowed FROM totals").fetchone()
        return int(memories)

    def newest(
        self,
        kind: str,
        limit: int,
        *,
        where: str = "1",
        private: bool = False,
        accepts: Callable[[Note], bool] = lambda _: True,
    ) -> list[Note]:
        """Returns the newest approved memories of a type, without private ones unless asked."""
        condition = where if private else f"m.private = 0 AND {where}"
        rows = self._sql.execute(
            f"SELECT {_COLUMNS} FROM memories m {self._by} WHERE m.type = ? AND {self._approved}"
            f" AND {condition} ORDER BY {newest_first('m')} LIMIT ?",
            (kind, _MOST_READ),
        )
        return self._notes(rows, limit, accepts, private=private)

    def one(self, id: str) -> Note | None:
        """Returns the memory with that id, if it is approved."""
        row = self._sql.execute(
            f"SELECT {_COLUMNS} FROM memories m WHERE m.id = ? AND {_APPROVED}", (id,)
        ).fetchone()
        return next(iter(self._notes([row] if row else [], 1)), None)

    def since(
        self,
        time: datetime,
        now: datetime,
        limit: int,
        *,
        accepts: Callable[[Note], bool] = lambda _: True,
    ) -> list[Note]:
        """Returns the newest approved memories from a time to now, without parts of other texts.

        Private ones are included.
        """
        first, last = (
            (moment - _EPOCH) // timedelta(microseconds=1)
            for moment in (time.replace(microsecond=0), now)
        )
        rows = self._sql.execute(
            f"SELECT {_COLUMNS} FROM memories m {self._by} WHERE m.created BETWEEN ? AND ?"
            f" AND m.parent IS NULL AND {self._approved} ORDER BY {newest_first('m')} LIMIT ?",
            (first, last, _MOST_READ),
        )
        return self._notes(rows, limit, accepts)

    def decisions(self, limit: int, *, private: bool = False) -> list[Note]:
        """Returns the newest current decisions."""
        return self.newest("decision", limit, where=_current(private=private), private=private)

    def failed(self, limit: int, *, private: bool = False) -> list[Note]:
        """Returns the newest decisions that failed, replaced ones included."""
        return self.newest("decision", limit, where=f"m.outcome = '{_FAILED}'", private=private)

    def stack(self) -> list[str]:
        """Returns the technologies in the approved entries of the log's project state."""
        rows = self._sql.execute(
            f"SELECT t.tag FROM memories m JOIN tags t ON t.memory = m.key WHERE {_APPROVED}"
            " AND m.topic_key = 'project_state' AND m.rest LIKE '%\"category\":\"stack\"%'"
        )
        return [tag for (tag,) in rows]

    def holding(self, term: str) -> int:
        """Returns the number of memories, approved or not, that contain a token."""
        (count,) = self._sql.execute(
            "SELECT count(DISTINCT u.memory) FROM words JOIN units u ON u.key = words.rowid"
            " WHERE words MATCH ?",
            (f'"{term}"',),
        ).fetchone()
        return int(count)

    def kept(self, limit: int, *, private: bool = False) -> list[Note]:
        """Returns the newest important memories that are protected from fading.

        Reads all of MEMORY.md, and the most important of the others.
        """
        condition = "" if private else "AND m.private = 0"
        rows = self._sql.execute(
            f"SELECT {_COLUMNS} FROM memories m WHERE {self._approved} {condition}"
            f" AND {self._kept} AND m.importance >= {_IMPORTANT}"
            f" AND m.rest LIKE '%\"protected\":true%' ORDER BY {newest_first('m')}"
        )
        return self._notes(rows, limit, lambda note: note.keep, private=private)

    def facts(self, limit: int, *, private: bool = False) -> list[Note]:
        """Returns the most important facts and lessons, the newest of equal ones first.

        Included documents and their parts, and what was superseded, are left out.
        """
        condition = "" if private else "AND m.private = 0"
        rows = self._sql.execute(
            f"SELECT {_COLUMNS} FROM memories m {self._by_importance}"
            " WHERE m.type IN ('fact', 'insight', 'observation', 'plan') AND m.parent IS NULL"
            f" AND CAST(m.path AS TEXT) LIKE '.mind/%' AND {self._approved}"
            f" AND {_current(private=private)} {condition}"
            f" ORDER BY m.importance DESC, {newest_first('m')} LIMIT ?",
            (_MOST_READ,),
        )
        return self._notes(rows, limit, private=private)

    def related(
        self, prompt: str, limit: int, near: Sequence[tuple[str, float]] = ()
    ) -> list[Note]:
        """Returns the approved memories that are clearly related to a prompt, best first.

        `near` has the ids and cosines of the memories nearest to it by meaning, if known.
        """
        totals = self._sql.execute("SELECT memories - shadowed, units FROM totals").fetchone()
        words = Prompt(prompt[:_READ], self._units_with, *totals)
        if not words.weights:
            return []
        match = " OR ".join(f'"{term}"' for term in words.weights)
        best: dict[int, float] = {}
        most = -math.inf
        for tokens, title, topic, key, is_current in self._best_units(match):
            odds = words.evidence(tokens, f"{title} {topic}")
            most = max(most, odds)
            if odds > 0:
                current = key if is_current else self._current(key)
                if current is not None:
                    best[current] = max(odds, best.get(current, odds))
        least = max(best.values(), default=0.0) - _BESIDE
        keys = sorted((key for key in best if best[key] >= least), key=lambda key: -best[key])
        if near and words.is_meant(most, near[0][1]):
            ids = [id for id, cosine in near if cosine >= near[0][1] - BESIDE_NEAREST]
            keys = list(dict.fromkeys([*keys, *self._currents(ids)]))
        by_key = f"SELECT {_COLUMNS} FROM memories m WHERE m.key = ?"
        rows = (self._sql.execute(by_key, (key,)).fetchone() for key in keys)
        return self._notes(rows, limit)

    def _currents(self, ids: Iterable[str]) -> Iterator[int]:
        """Yields the keys of approved memories, or of those that replaced them."""
        for id in ids:
            row = self._sql.execute(
                f"SELECT m.key, m.outcome IS '{_FAILED}' OR {CURRENT.format('m')}"
                f" FROM memories m WHERE m.id = ? AND {_APPROVED}",
                (id,),
            ).fetchone()
            key = row and (row[0] if row[1] else self._current(row[0]))
            if key is not None:
                yield key

    def _units_with(self, term: str) -> int:
        row = self._sql.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
        return int(row[0]) if row else 0

    def _current(self, key: int) -> int | None:
        """Returns the key of the newest approved memory that supersedes one, over all steps.

        Returns None if the text of the last one is not approved any more.
        """
        seen, approved = {key}, True
        while True:
            row = self._sql.execute(
                "SELECT s.key, approved(s.digest) FROM memories m JOIN links l ON l.target = m.id"
                " AND l.type = 'supersedes' CROSS JOIN memories s ON s.key = l.source"
                f" WHERE m.key = ? AND s.shadowed = 0 AND {VOUCHED} AND s.id <> m.id"
                f" ORDER BY approved(s.digest) DESC, {newest_first('s')} LIMIT 1",
                (key,),
            ).fetchone()
            if row is None or row[0] in seen:
                return key if approved else None
            key, approved = row
            seen.add(key)

    def _best_units(self, match: str) -> list[Sequence[Any]]:
        """Returns the tokens of the best units, and what `related` needs of their memories.

        Unapproved units never displace approved ones.
        """
        most = _UNITS + _MARGIN
        while True:
            ordered = self._sql.execute(
                f"SELECT w.unit, w.weight FROM (SELECT words.rowid AS unit, {BM25} AS weight"
                f" FROM words WHERE words MATCH ? {self._units} ORDER BY weight LIMIT ?) w"
                " JOIN units u ON u.key = w.unit JOIN memories m ON m.key = u.memory"
                f" ORDER BY w.weight, {newest_first('m')}",
                (match, most),
            ).fetchall()
            is_all = len(ordered) < most
            # Some of the units that equal the last one may be missing.
            complete = [key for key, weight in ordered if is_all or weight < ordered[-1][1]]
            approved: list[Sequence[Any]] = []
            # Checking an approval takes longer than ranking a unit, so the first ones are checked.
            for start in range(0, len(complete), _UNITS):
                some = complete[start : start + _UNITS]
                rows = {}
                for key, *row in self._sql.execute(
                    "SELECT u.key, u.tokens, m.title_tokens, m.topic_tokens, m.key,"
                    f" m.outcome IS '{_FAILED}' OR {CURRENT.format('m')}"
                    " FROM units u CROSS JOIN memories m ON m.key = u.memory"
                    f" WHERE u.key IN ({marks(some)}) AND {_APPROVED}",
                    some,
                ):
                    rows[key] = row
                approved += filter(None, map(rows.get, some))
                if len(approved) >= _UNITS:
                    return approved[:_UNITS]
            if is_all:
                return approved
            most *= 8

    def _notes(
        self,
        rows: Iterable[Sequence[Any]],
        limit: int,
        accepts: Callable[[Note], bool] = lambda _: True,
        *,
        private: bool = True,
    ) -> list[Note]:
        """Returns the first accepted notes of rows, without those whose files have changed.

        They name private memories only if `private` is set.
        """
        notes = map(_note, rows)
        kept = islice((n for n in notes if self._is_fresh(n) and accepts(n)), limit)
        return [
            self._with_successor(note, private=private) if note.outcome == _FAILED else note
            for note in kept
        ]

    def _with_successor(self, note: Note, *, private: bool) -> Note:
        """Returns a failed decision with the heading of the newest one that replaced it."""
        condition = "" if private else "AND m.private = 0"
        row = self._sql.execute(
            f"SELECT {_COLUMNS} FROM links l CROSS JOIN memories m ON m.key = l.source"
            " WHERE l.target = ? AND l.type = 'supersedes' AND m.id <> l.target"
            f" AND {_APPROVED} {condition} ORDER BY {newest_first('m')} LIMIT 1",
            (note.id,),
        ).fetchone()
        return note._replace(superseded_by=_note(row).heading) if row else note

    def _is_fresh(self, note: Note) -> bool:
        if self._root is None:
            return True
        row = self._sql.execute(
            "SELECT size, mtime_ns, inode FROM files WHERE path = ?", (to_sql(note.path),)
        ).fetchone()
        try:
            now = os.lstat(self._root / note.path)
        except OSError:
            return note.path.startswith(".git/")
        return row is not None and row == (now.st_size, now.st_mtime_ns, str(now.st_ino))


def _current(*, private: bool) -> str:
    """Returns the condition of a current memory; unless `private`, private ones do not matter."""
    return (CURRENT if private else CURRENT_IF_SHARED).format("m")


def _note(row: Sequence[Any]) -> Note:
    """Returns the note of a row. Raises `Misread` if it is not as it was written."""
    if checksum(row) != row[17]:
        raise Misread("checksum")
    id, path, _, digest, private, _, kind, title, topic, created, importance, *_ = row
    rest = json.loads(row[15])
    return Note(
        id=id,
        kind=kind,
        title=title or "",
        created=_EPOCH + timedelta(microseconds=created),
        topic=topic or "",
        outcome=row[12] or "",
        importance=importance,
        private=bool(private),
        text=unpacked(row[16]),
        category=rest.get("category") or "",
        status=rest.get("status") or "",
        keep=rest.get("protected") is True,
        sections=rest.get("sections", {}),
        extra=rest.get("extra", {}),
        path=from_sql(path),
        digest=from_digest(digest),
    )
