"""Sessions of OpenCode: its database `opencode.db`, and the files of older versions.

The database is opened read-only and for a moment at a time. Each session in it is a source, whose
size and time are those of its messages and parts.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from mimo.api import NamedTuple, disk
from mimo.extensions.sessions.model import Facts, Kind, Part, Progress, Source
from mimo.extensions.sessions.readers.lines import (
    LONGEST_LINE,
    files_in,
    inner,
    items,
    mapping,
    moment,
    plain_id,
    read_json,
    small,
    source_of,
    text,
)
from mimo.extensions.sessions.readers.parts import Parts
from mimo.extensions.sessions.readers.places import opened_database

_LATEST = 9_000_000_000_000
"""Milliseconds since 1970: of later times, the nanoseconds are no number of SQLite."""

_EDITORS = frozenset({"edit", "multiedit", "write", "patch", "apply_patch"})
_PATHS = ("filePath", "path")
_PIECES = frozenset(
    "agent compaction file patch reasoning retry snapshot step-finish step-start subtask text"
    " tool".split()
)
"""Types of the parts of a message."""

_UNNAMED = re.compile(r"(?:New|Child) session - [-0-9T:.Z]+")
"""A title that nothing was chosen for."""

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
"""A prompt as `opencode run` stores it."""

_WATERMARKS = """
SELECT s.id,
    (SELECT count(*) FROM message m WHERE m.session_id = s.id),
    (SELECT count(*) FROM part p WHERE p.session_id = s.id),
    s.time_updated,
    (SELECT max(m.time_updated) FROM message m WHERE m.session_id = s.id),
    (SELECT max(p.time_updated) FROM part p WHERE p.message_id = (
        SELECT m.id FROM message m WHERE m.session_id = s.id
        ORDER BY m.time_created DESC, m.id DESC LIMIT 1))
FROM session s ORDER BY s.time_updated DESC, s.id
"""
# The client has indexes for all but the times. Parts of earlier messages change with these.

_SESSION = """
SELECT s.*, p.worktree AS project_worktree
FROM session s LEFT JOIN project p ON p.id = s.project_id WHERE s.id = ?
"""
_MESSAGES = f"""
SELECT id, time_created, CASE WHEN length(data) <= {LONGEST_LINE} THEN data END
FROM message WHERE session_id = ? ORDER BY time_created, id
"""
_PARTS = f"""
SELECT id, CASE WHEN length(data) <= {LONGEST_LINE} THEN data END
FROM part WHERE message_id = ? ORDER BY id
"""


class OpenCode:
    """Reads the sessions of OpenCode."""

    client = "opencode"

    def sources(self, environment: Mapping[str, str], home: Path) -> Iterator[Source]:
        """Yields the sessions of the databases, and those that are in files alone.

        A database that can't be read is a source itself, whose reading raises the error.
        """
        data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
        migrated: set[str] = set()
        can_read = True
        moved = environment.get("OPENCODE_DB", "")
        for database in [source_of(data / moved)] if moved else files_in(data, "opencode*.db"):
            if database:
                try:
                    sessions = _sessions_of(database)
                except (OSError, sqlite3.Error):
                    can_read = False
                    yield database
                else:
                    migrated.update(session.key for session in sessions)
                    yield from sessions
        if can_read:  # Else the files may be older than what was read from the database.
            for file in files_in(data / "storage" / "session", "*/*.json"):
                if file.path.stem not in migrated:
                    messages = disk.stamp(data / "storage" / "message" / file.path.stem)
                    times = [each.mtime_ns for each in (file, messages) if each]
                    yield file._replace(mtime_ns=max(times))

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        """Yields the parts of a session, from its start."""
        if source.path.suffix == ".json":
            yield from _read_files(source)
        elif source.key:
            with opened_database(source.path) as sql:
                yield from _read_database(sql, source.key)
        else:
            _sessions_of(source)


class _Message(NamedTuple):
    """A message with its parts, as both forms store them."""

    id: str
    created: Any
    data: Mapping[str, Any] | None
    """None, as for a part, if it is too long, or no object of JSON."""
    pieces: Sequence[tuple[str, Mapping[str, Any] | None]]
    """The ids and values of its parts."""


# The database.


def _sessions_of(database: Source) -> list[Source]:
    """Returns the sessions of a database, latest first; without a time, they have the file's."""
    with opened_database(database.path) as sql:
        rows = sql.execute(_WATERMARKS).fetchall()
    return [
        Source(
            database.path,
            id,
            messages + parts,
            1_000_000 * max(map(_milliseconds, times)) or database.mtime_ns,
        )
        for id, messages, parts, *times in rows
        if isinstance(id, str) and id
    ]


def _milliseconds(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < _LATEST else 0


def _read_database(sql: sqlite3.Connection, id: str) -> Iterator[Part]:
    cursor = sql.execute(_SESSION, (id,))
    names = [column[0] for column in cursor.description]
    if (row := cursor.fetchone()) is None:
        return
    session = dict(zip(names, row, strict=True))
    folder, worktree = text(session, "directory"), text(session, "project_worktree")
    is_beside = worktree.strip("/") and not f"{folder}/".startswith(f"{worktree}/")
    parts = Parts(
        Facts(
            client=OpenCode.client,
            native_id=plain_id(id),
            kind=Kind.SUBAGENT if session.get("parent_id") else Kind.MAIN,
            cwd=folder,
            repository=worktree if is_beside else "",
            title=_title(session),
            parent=plain_id(session.get("parent_id")),
        )
    )
    messages = sql.execute(_MESSAGES, (id,)).fetchall()
    if not messages:
        parts.records = parts.unknown = _newer(sql, id)
    forms = (
        _Message(
            str(id),
            created,
            mapping(data),
            [(str(id), mapping(data)) for id, data in sql.execute(_PARTS, (id,)).fetchall()],
        )
        for id, created, data in messages
    )
    yield from parts.of(forms, lambda message: _take(message, parts))


def _newer(sql: sqlite3.Connection, id: str) -> int:
    """Returns the number of the messages of a session that a newer version stores elsewhere."""
    query = "SELECT count(*) FROM session_message WHERE session_id = ?"
    try:
        return int(sql.execute(query, (id,)).fetchone()[0])
    except sqlite3.OperationalError:
        return 0


# The files of older versions: one for each session, message and part.


def _read_files(source: Source) -> Iterator[Part]:
    storage = source.path.parent.parent.parent
    session = read_json(source)
    parts = Parts(
        Facts(
            client=OpenCode.client,
            native_id=plain_id(source.path.stem),
            kind=Kind.SUBAGENT if text(session, "parentID") else Kind.MAIN,
            cwd=text(session, "directory"),
            title=_title(session),
            parent=plain_id(text(session, "parentID")),
        )
    )
    forms = (
        _Message(id, None, data, list(_values_in(storage / "part" / id)))
        for id, data in _values_in(storage / "message" / source.path.stem)
    )
    yield from parts.of(forms, lambda message: _take(message, parts))


def _values_in(folder: Path) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Yields the ids of the files of a folder, in the order of time, and their objects."""
    for file in sorted(files_in(folder, "*.json")):
        yield file.path.stem, mapping(small(file.path, LONGEST_LINE))


# Both forms.


def _title(session: Any) -> str:
    title = text(session, "title")
    return "" if _UNNAMED.fullmatch(title) else title


def _take(message: _Message, parts: Parts) -> bool:
    """Adds a message, and counts its pieces; returns whether it has a known shape."""
    pieces = [(id, piece) for id, piece in message.pieces if piece is not None]
    strange = [piece for _, piece in pieces if text(piece, "type") not in _PIECES]
    role = text(message.data, "role")
    parts.records += len(message.pieces)
    parts.unknown += len(message.pieces) - len(pieces) + len(strange)
    at = moment(message.created) or moment(inner(message.data, "time").get("created"))
    if role == "user":
        texts = [_quoted(text(piece, "text")) for _, piece in pieces if _is_said(piece)]
        is_typed = parts.facts.kind is Kind.MAIN
        parts.say("\n".join(filter(None, texts)), at, message.id, is_typed=is_typed)
    elif role == "assistant":
        is_summary = inner(message.data).get("summary") is True
        if not is_summary and text(message.data, "mode") != "compaction":
            _add_answer(parts, message.id, pieces, at)
    return role in ("user", "assistant")


def _is_said(piece: Mapping[str, Any]) -> bool:
    """Returns whether a part has words of the conversation, which the client did not add."""
    return text(piece, "type") == "text" and not (piece.get("synthetic") or piece.get("ignored"))


def _quoted(words: str) -> str:
    """Returns a prompt without the quotation marks that `opencode run` puts around it."""
    match = _QUOTED.fullmatch(words)
    return match.group(1).replace('\\"', '"') if match else words


def _add_answer(
    parts: Parts, message: str, pieces: Sequence[tuple[str, Mapping[str, Any]]], at: datetime | None
) -> None:
    calls = [_call(piece) for _, piece in pieces if text(piece, "type") == "tool"]
    patched = dict.fromkeys(
        file
        for _, piece in pieces
        if text(piece, "type") == "patch"
        for file in items(piece, "files")
        if isinstance(file, str)
    )
    unnamed = tuple(file for file in patched if not any(file in call.files for call in calls))
    count = 0
    for id, piece in pieces:
        if _is_said(piece):
            parts.answer(text(piece, "text"), at, message, message)
        elif text(piece, "type") == "tool":
            call, count = calls[count], count + 1
            # What no call names was edited by a command: the last one is taken for it.
            files = (*call.files, *(unnamed if count == len(calls) else ()))
            parts.call(call.line, at, message, id=id, files=files)
            if call.error is not None:
                parts.fail(id, call.error)
    if unnamed and not calls:
        parts.call(" ".join(("patch", *unnamed)), at, message, files=unnamed)


class _Call(NamedTuple):
    """The call of a tool."""

    line: str
    files: tuple[str, ...]
    error: str | None
    """The output of a call that failed; None if it did not."""


def _call(piece: Mapping[str, Any]) -> _Call:
    name, state = text(piece, "tool"), inner(piece, "state")
    paths = tuple(filter(None, (text(state, "input", key) for key in _PATHS)))
    status, exit_code = text(state, "status"), inner(state, "metadata").get("exit")
    has_failed = isinstance(exit_code, int) and exit_code != 0
    error = text(state, "error") if status == "error" else text(state, "output")
    return _Call(
        text(state, "input", "command") or " ".join((name, *paths)),
        paths if name in _EDITORS and status != "error" else (),
        error if status == "error" or has_failed else None,
    )
