"""Reads the approved memories that an agent gets without a search. Hooks wait for its imports."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path

from mimo.errors import Misread
from mimo.index.schema import (
    BEST,
    COLUMNS,
    CURRENT,
    CURRENT_IF_SHARED,
    VOUCHED,
    Approvals,
    Approves,
    checksum,
    frequency,
    from_digest,
    from_sql,
    marks,
    newest_first,
    open_cache,
    to_digest,
    to_number,
    to_sql,
    to_time,
    totals,
    unpacked,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mimo.memory.note import Note

_COLUMNS = f"m.{COLUMNS}".replace(", ", ", m.")
_APPROVED = "m.shadowed = 0 AND approved(m.approval)"
_FAILED = "FAILED"
_USABLE = f"m.outcome IS '{_FAILED}' OR {CURRENT.format('m')}"
_IMPORTANT = 0.8
_MOST_READ = 500
"""The number of approved rows of a kind that are read."""
_SAMPLE = 64
"""The number of units with a word of which the approved ones are counted."""
_PROTECTED = (
    "m.key IN (SELECT key FROM memories WHERE shadowed = 0 AND path = '.mind/MEMORY.md' UNION ALL"
    " SELECT key FROM (SELECT key FROM memories m INDEXED BY memories_important"
    f" WHERE importance >= {_IMPORTANT} AND parent IS NULL AND {_APPROVED}"
    f" ORDER BY importance DESC, {newest_first('m')} LIMIT {_MOST_READ}))"
)


@contextmanager
def open_catalog(
    folder: Path,
    owner: str,
    approves: Approves,
    root: Path,
    allowed: Collection[str] | None = None,
    *,
    year: int = 0,
) -> Iterator[Catalog | None]:
    """Yields the catalog in a folder, or None; one that `owner` has not made is empty.

    It creates, refreshes and embeds nothing, so it may lag behind the files. Its memories from
    files that have changed since are left out. If approved texts are few, `allowed` has all their
    names, and other memories are not read. `year` is the current one.
    """
    approvals = Approvals()
    approvals.approves = cache(approves)
    with closing(open_cache(folder, owner, approvals)) as tables:
        if not tables.exists:
            yield None
        else:
            with tables.reading() as sql:
                yield Catalog(sql, root, allowed, year=year)


class Catalog:
    """Reads approved memories from the index."""

    def __init__(
        self,
        sql: sqlite3.Connection,
        root: Path | None = None,
        allowed: Collection[str] | None = None,
        *,
        year: int = 0,
    ) -> None:
        """Takes a connection on which all reads see the same state.

        Without the project's root, no file is checked for changes.
        """
        self.sql = sql
        self._root, self._year = root, year
        self._approved, self._protected, self._of_few = _APPROVED, _PROTECTED, ""
        self._by, self._by_importance = "", "INDEXED BY memories_important"
        if allowed is not None:
            among = f"shadowed = 0 AND approval IN ({marks(allowed)})"
            query = f"SELECT key FROM memories WHERE {among}"
            keys = ",".join(str(key) for (key,) in sql.execute(query, [*map(to_digest, allowed)]))
            self._approved, self._protected = f"m.key IN ({keys})", "1"
            # Without `+`, FTS5 would look for the words once for each unit.
            self._of_few = f"AND +words.rowid IN (SELECT key FROM units WHERE memory IN ({keys}))"
            self._by = self._by_importance = "NOT INDEXED"

    def newest(
        self,
        kind: str,
        limit: int,
        *,
        where: str = "1",
        private: bool = False,
        accepts: Callable[[Note], bool] | None = None,
    ) -> list[Note]:
        """Returns the newest approved memories of a type, without private ones unless asked."""
        where = f"m.type = ? AND {where}"
        return self._notes(where, limit, (kind,), accepts, by=self._by, private=private)

    def since(
        self,
        time: datetime,
        now: datetime,
        limit: int,
        *,
        accepts: Callable[[Note], bool] | None = None,
    ) -> list[Note]:
        """Returns the newest approved memories from a time to now, without parts of other texts.

        Private ones are included.
        """
        between = (to_number(time.replace(microsecond=0)), to_number(now))
        where = "m.created BETWEEN ? AND ? AND m.parent IS NULL"
        return self._notes(where, limit, between, accepts, by=self._by)

    def decisions(self, limit: int, *, private: bool = False) -> list[Note]:
        """Returns the newest current decisions, without rejected and deprecated ones."""
        from mimo.memory.note import closed_as

        return self.newest(
            "decision",
            limit,
            where=_current(private=private),
            private=private,
            accepts=lambda note: closed_as(note.kind, note.status) is None,
        )

    def failed(self, limit: int, *, private: bool = False) -> list[Note]:
        """Returns the newest decisions that failed, replaced ones included."""
        return self.newest("decision", limit, where=f"m.outcome = '{_FAILED}'", private=private)

    def protected(self, limit: int, *, private: bool = False) -> list[Note]:
        """Returns the newest important memories that are protected from fading.

        Reads all of MEMORY.md, and the most important of the others.
        """
        where = (
            f"{self._protected} AND m.importance >= {_IMPORTANT}"
            " AND m.rest LIKE '%\"protected\":true%'"
        )
        return self._notes(where, limit, accepts=lambda note: note.keep, private=private)

    def facts(self, limit: int, *, private: bool = False) -> list[Note]:
        """Returns the most important facts and lessons, the newest of equal ones first.

        Included documents and their parts, and what was superseded, are left out.
        """
        where = (
            "m.type IN ('fact', 'insight', 'observation', 'plan') AND m.parent IS NULL"
            f" AND CAST(m.path AS TEXT) LIKE '.mind/%' AND {_current(private=private)}"
        )
        by, order = self._by_importance, "m.importance DESC, "
        return self._notes(where, limit, by=by, private=private, order=order)

    def memories(self) -> int:
        """Returns the number of memories; an ingested file is one."""
        counted = "SELECT count(DISTINCT coalesce(parent, key)) FROM memories WHERE +shadowed = 0"
        return int(self.sql.execute(counted).fetchone()[0])

    def stack(self) -> list[str]:
        """Returns the technologies in the approved entries of the log's project state."""
        rows = self.sql.execute(
            f"SELECT t.tag FROM memories m JOIN tags t ON t.memory = m.key WHERE {_APPROVED}"
            " AND m.topic_key = 'project_state' AND m.rest LIKE '%\"category\":\"stack\"%'"
        )
        return [tag for (tag,) in rows]

    def left_out(self, path: str) -> int:
        """Returns the number of memories in a file that are not approved."""
        query = "SELECT count(*) FROM memories WHERE shadowed = 0 AND path = ? AND NOT"
        (count,) = self.sql.execute(f"{query} approved(approval)", (path,)).fetchone()
        return int(count)

    def by_id(self, id: str) -> list[Note]:
        """Returns the approved memory with that id, if there is one."""
        # SQLite would go through all memories in the order of their times.
        return self._notes("m.id = ?", 1, (id,), by="INDEXED BY memories_id")

    def holding(self, term: str, limit: int) -> int:
        """Returns the number of memories, approved or not, that contain a token, up to a limit."""
        (count,) = self.sql.execute(
            "SELECT count(*) FROM (SELECT DISTINCT u.memory FROM words"
            " JOIN units u ON u.key = words.rowid WHERE words MATCH ? LIMIT ?)",
            (f'"{term}"', limit),
        ).fetchone()
        return int(count)

    def sizes(self) -> tuple[int, int]:
        """Returns the numbers of units and of memories: of approved ones if approved texts are few.

        Otherwise they are those of all, as asking for each approval would take too long.
        """
        if not self._of_few:
            sums = totals(self.sql)
            return sums.units, sums.visible
        units, memories = self.sql.execute(
            "SELECT count(*), count(DISTINCT u.memory) FROM units u"
            f" JOIN memories m ON m.key = u.memory WHERE {self._approved}"
        ).fetchone()
        return int(units), int(memories)

    def frequency(self, term: str) -> int:
        """Returns the number of units of approved memories with a token, estimated if it is large.

        Others don't count: many unapproved texts would make a word of an approved one common.
        """
        read, approved = self.sql.execute(
            f"SELECT count(*), coalesce(sum({self._approved}), 0) FROM (SELECT rowid FROM words"
            f" WHERE words MATCH ? {self._of_few} LIMIT ?) w JOIN units u ON u.key = w.rowid"
            " JOIN memories m ON m.key = u.memory",
            (f'"{term}"', -1 if self._of_few else _SAMPLE),
        ).fetchone()
        if read < _SAMPLE or self._of_few:
            return int(approved)
        return frequency(self.sql, term) * int(approved) // int(read)

    def passages(self, terms: Iterable[str], limit: int, margin: int) -> list[Sequence[Any]]:
        """Returns the best units of approved memories for any of some words, best first.

        Each has the id of its memory, its tokens, those of the memory's title, topic and tags, and
        the memory's type and path. Unapproved units never displace approved ones: `margin` more are
        read for them, or all.
        """
        match = " OR ".join(f'"{term}"' for term in terms)
        row_limit = limit + margin
        while True:
            ordered = self.sql.execute(
                f"SELECT w.unit, w.weight FROM ({BEST.format(self._of_few)}) w"
                " JOIN units u ON u.key = w.unit JOIN memories m ON m.key = u.memory"
                f" ORDER BY w.weight, {newest_first('m')}",
                (match, row_limit),
            ).fetchall()
            is_all = len(ordered) < row_limit
            # Some of the units that equal the last one may be missing.
            complete = [unit for unit, weight in ordered if is_all or weight < ordered[-1][1]]
            approved: list[Sequence[Any]] = []
            # Checking an approval takes longer than ranking a unit, so the first ones are checked.
            for start in range(0, len(complete), limit):
                some = complete[start : start + limit]
                rows = {}
                for unit, *row in self.sql.execute(
                    "SELECT u.key, m.id, unpacked(u.tokens),"
                    " m.title_tokens || ' ' || m.topic_tokens, m.type, CAST(m.path AS TEXT)"
                    " FROM units u CROSS JOIN memories m ON m.key = u.memory"
                    f" WHERE u.key IN ({marks(some)}) AND {self._approved}",
                    some,
                ):
                    rows[unit] = row
                approved += filter(None, map(rows.get, some))
                if len(approved) >= limit:
                    return approved[:limit]
            if is_all:
                return approved
            row_limit *= 8

    def current_id(self, id: str) -> str | None:
        """Returns the id of an approved memory, or of the newest one that replaced it at last.

        A decision that failed counts as current. Returns None if the memory is not approved, or if
        the text of the one that replaced it is not approved any more.
        """
        row = self.sql.execute(
            f"SELECT {_USABLE} FROM memories m WHERE m.id = ? AND {self._approved}", (id,)
        ).fetchone()
        if row is None or row[0]:
            return row and id
        seen, approved = {id}, True
        while (row := self._successor(id, "s.id")) and row[1] not in seen:
            approved, id = row
            seen.add(id)
        return id if approved else None

    def _successor(self, id: str, columns: str, condition: str = "1") -> Sequence[Any] | None:
        """Returns whether the memory that supersedes one is approved, and columns of it.

        It is the newest approved one, or else the newest.
        """
        row: Sequence[Any] | None = self.sql.execute(
            f"SELECT approved(s.approval) AS is_approved, {columns}"
            " FROM links l CROSS JOIN memories s ON s.key = l.source"
            " WHERE l.target = ? AND l.type = 'supersedes' AND s.id <> l.target"
            f" AND s.shadowed = 0 AND {VOUCHED} AND {condition}"
            f" ORDER BY is_approved DESC, {newest_first('s')} LIMIT 1",
            (id,),
        ).fetchone()
        return row

    def _notes(
        self,
        where: str,
        limit: int,
        values: Sequence[object] = (),
        accepts: Callable[[Note], bool] | None = None,
        *,
        by: str = "",
        private: bool = True,
        order: str = "",
    ) -> list[Note]:
        """Returns the newest approved memories that meet a condition and are accepted.

        Those whose files have changed are left out. `by` names an index, `order` what precedes the
        time. Private memories are returned and named only if `private` is set.
        """
        shared = "" if private else "AND m.private = 0"
        rows = self.sql.execute(
            f"SELECT {_COLUMNS} FROM memories m {by} WHERE {where} AND {self._approved} {shared}"
            f" ORDER BY {order}{newest_first('m')} LIMIT {_MOST_READ}",
            values,
        )
        notes: list[Note] = []
        for row in rows:
            note = _note(row, self._year)
            if self._is_fresh(note) and (accepts is None or accepts(note)):
                is_failed = note.outcome == _FAILED
                notes.append(self._with_successor(note, private=private) if is_failed else note)
                if len(notes) == limit:
                    break
        return notes

    def _with_successor(self, note: Note, *, private: bool) -> Note:
        """Returns a failed decision with the heading of the newest one that replaced it."""
        columns = _COLUMNS.replace("m.", "s.")
        row = self._successor(note.id, columns, "1" if private else "s.private = 0")
        return note._replace(superseded_by=_note(row[1:]).heading) if row and row[0] else note

    def _is_fresh(self, note: Note) -> bool:
        if self._root is None:
            return True
        row = self.sql.execute(
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


def _note(row: Sequence[Any], year: int = 0) -> Note:
    """Returns the note of a row. Raises `Misread` if it is not as it was written."""
    from mimo.memory.note import Note

    if checksum(row) != row[18]:
        raise Misread("checksum")
    fields = json.loads(row[15])
    id, path, _, digest, private, _, kind, title, topic, created, importance, *_ = row
    return Note(
        id=id,
        kind=kind,
        title=title or "",
        created=to_time(created),
        topic=topic or "",
        outcome=row[12] or "",
        importance=importance,
        private=bool(private),
        text=unpacked(row[16]),
        category=fields.get("category") or "",
        status=fields.get("status") or "",
        keep=fields.get("protected") is True,
        sections=fields.get("sections", {}),
        extra=fields.get("extra", {}),
        path=from_sql(path),
        digest=from_digest(digest),
        year=year,
    )
