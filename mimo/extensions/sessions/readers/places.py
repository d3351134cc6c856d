"""The folders and databases of desktop applications."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mimo.extensions.sessions.model import Source
from mimo.extensions.sessions.readers.lines import source_of

_WAIT_SECONDS = 0.5
"""The time to wait for a lock of the client."""

_LONGEST_SECONDS = 120.0
"""The time for what is done with an opened database: a view in it may have rows without end."""


def settings_folders(environment: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Returns the folders of applications' settings on Linux, macOS and Windows, or in WSL."""
    return (
        Path(environment.get("XDG_CONFIG_HOME") or home / ".config"),
        home / "Library" / "Application Support",
        Path(environment.get("APPDATA") or home / "AppData" / "Roaming"),
    )


@contextmanager
def opened_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Opens a database, and leaves no file beside it. Raises `sqlite3.Error` and `OSError`.

    SQLite would make the two files of a log that the client has closed, and the second one of a log
    in a copied home. So what no client has open is read without locks; if it changed meanwhile, an
    error is raised.
    """
    states = _states(path)
    database, log, shared, journal = states
    if database is None:
        raise OSError("not a regular file")
    is_live = bool(journal or (log and shared))
    has_log = log is not None and log.size > 0
    unlocked = "unix-none" if os.name == "posix" else "win32-none"
    closed = f"vfs={unlocked}" if has_log else "immutable=1"
    uri = f"{path.absolute().as_uri()}?mode=ro{'' if is_live else f'&{closed}'}"
    sql = sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    sql.text_factory = lambda raw: raw.decode("utf-8", "replace")
    end = time.monotonic() + _LONGEST_SECONDS
    sql.set_progress_handler(lambda: time.monotonic() > end, 100_000)
    try:
        if not is_live and has_log:
            sql.execute("PRAGMA locking_mode = EXCLUSIVE")  # The log needs no second file then.
        yield sql
        if not is_live and _states(path) != states:
            raise sqlite3.OperationalError("the database changed while it was read")
    except (UnicodeDecodeError, MemoryError) as error:
        # Python's module decodes names and messages itself.
        raise sqlite3.DatabaseError("the schema of the database is damaged") from error
    finally:
        sql.close()


def _states(path: Path) -> list[Source | None]:
    """Returns the states of a database, of its log with the index of that, and of its journal."""
    return [source_of(Path(f"{path}{end}")) for end in ("", "-wal", "-shm", "-journal")]
