"""The user's running servers: each holds the lock of a file in `$MIND_HOME/run/` while it runs.

The files are of class C: one without a holder is removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from mimo.data import disk, locks
from mimo.data.loads import loads
from mimo.errors import MindError
from mimo.frozen import NamedTuple
from mimo.project import projects

_SUFFIX = ".server"


class Kind(StrEnum):
    """The kinds of processes that run until they are stopped."""

    DAEMON = "daemon"
    STDIO = "mcp"
    HTTP = "mcp --http"
    WEB = "web"


class Server(NamedTuple):
    """A server that runs until the client or the user stops it."""

    since: datetime
    kind: Kind
    pid: int


def _folder(home: Path) -> Path:
    return home / "run"


@contextmanager
def registered(home: Path, kind: Kind, root: Path | None, now: datetime) -> Iterator[None]:
    """Lists this process as a server of a project while the block runs; None is all projects.

    A home that can't be written, or is not mind's own, does not stop the server.
    """
    path, descriptor = _folder(home) / f"{os.getpid()}-{kind.name.lower()}{_SUFFIX}", None
    named = os.fsencode(root).decode("utf-8", "replace") if root else None
    state = {"kind": kind, "pid": os.getpid(), "since": now.isoformat(), "root": named}
    with suppress(MindError, OSError):
        projects.check_home(home)
        descriptor = locks.hold(path, wait=0)
        if descriptor is not None:
            os.ftruncate(descriptor, 0)  # A process that was killed may have had the same id.
            disk.overwrite(descriptor, json.dumps(state).encode())
    try:
        yield
    finally:
        if descriptor is not None:
            disk.discard(path)
            os.close(descriptor)


def servers(home: Path, root: Path | None) -> list[Server]:
    """Returns the servers that answer for a project, oldest first; without one, all servers."""
    named = os.fsencode(root).decode("utf-8", "replace") if root else None
    listed = []
    for path in _folder(home).glob(f"*{_SUFFIX}"):
        with suppress(OSError, KeyError, TypeError, ValueError):
            if not locks.is_held(path):
                path.unlink(missing_ok=True)
                continue
            state = loads(disk.read(path))
            if named is None or state["root"] in (None, named):
                since = datetime.fromisoformat(state["since"])
                listed.append(Server(since, Kind(state["kind"]), int(state["pid"])))
    return sorted(listed)
