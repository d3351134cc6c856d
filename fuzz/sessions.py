"""The transcripts of each client of which some bytes were changed, also while they are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from fuzz.project import scratch
from mimo.extensions.sessions.model import Reader, Role, Source, Unavailable
from mimo.extensions.sessions.readers import CLIENTS, reader_of
from tests.extensions.sessions.homes import Read, home_of, read
from tests.extensions.sessions.homes import source as state

_SQLITE = b"SQLite format 3\0"
_GROWING = frozenset({"claude-code", "codex"})
"""Clients whose files are read from where they ended, with the same result as at once."""


@cache
def _home(client: str) -> tuple[Path, Mapping[Path, bytes]]:
    """Returns a home with the story of a client, and its files."""
    home = home_of(client, scratch() / f"sessions-{client}")
    paths = sorted(path for path in home.rglob("*") if path.is_file())
    return home, {path: path.read_bytes() for path in paths}


def transcripts(client: str, data: bytes) -> None:
    """A file of any bytes is read or refused, and what is read can be stored.

    The first byte chooses the file; two others, where it ends when it is read first.
    """
    home, files = _home(client)
    path = list(files)[data[0] % len(files)] if data else next(iter(files))
    cut, content = int.from_bytes(data[1:3], "big"), data[3:]
    if files[path].startswith(_SQLITE) and not content.startswith(_SQLITE):
        content = files[path][:cut] + content + files[path][cut + len(content) :]
    path.write_bytes(content)
    try:
        reader = reader_of(client)
        for source in _sources(reader, home, path):
            with suppress(OSError, sqlite3.Error, Unavailable):
                _check(session := read(reader, source))
                if source.path == path and client in _GROWING and path.suffix == ".jsonl":
                    _check_steps(reader, source, session, content, cut % (len(content) + 1))
    finally:
        path.write_bytes(files[path])


def _sources(reader: Reader, home: Path, path: Path) -> Sequence[Source]:
    """Returns the source that a file is; all of them if it is only beside one."""
    with suppress(OSError, sqlite3.Error):
        sources = list(reader.sources({}, home))
        return [source for source in sources if source.path == path] or sources
    return ()


def _check(session: Read) -> None:
    values = [str(getattr(session.facts, name)) for name in type(session.facts).__annotations__]
    for turn in session.turns:
        values += [turn.text, turn.native_id, turn.error, *turn.files]
        assert turn.at is None or 2000 <= turn.at.year < 2200
        assert turn.role is Role.TOOL or turn.text.strip()
    for value in values:
        value.encode()


def _check_steps(reader: Reader, source: Source, session: Read, content: bytes, cut: int) -> None:
    """Checks that a file that was read when half of it was written holds the same."""
    source.path.write_bytes(content[:cut])
    before = read(reader, state(source.path))
    source.path.write_bytes(content)
    assert read(reader, state(source.path), before) == session


def seeds(client: str) -> Iterator[bytes]:
    """Yields the files of the story."""
    _, files = _home(client)
    for number, content in enumerate(files.values()):
        yield bytes([number, 4, 0]) + content


NAMES = {f"sessions-{client}": client for client in CLIENTS}
"""The clients by the names of their targets."""
