"""What was said in the sessions of clients, so that nothing is said twice.

`.mind/.local/sessions/<hash of a key>.json`, one small JSON object each; it can be deleted at any
time, and a file that can't be read counts as empty. The key is the client's name of the session and
the user's secret, so that a file which came with a clone is never read.
"""

import json
import os
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from mimo.errors import MindError
from mimo.store import files
from mimo.store.locking import lock
from mimo.store.names import LOCAL

FOLDER = f"{LOCAL}/sessions"
MOST_MARKS = 500
"""So many things said are remembered of a session, the newest."""
MOST_SESSIONS = 50
LONGEST_LAST = 8_000
_MOST_BYTES = 200_000
_OLD_SECONDS = 7 * 24 * 3600
_WAIT_SECONDS = 0.3


class Session(NamedTuple):
    """What is remembered of one session."""

    shown: tuple[str, ...] = ()
    """Marks of the notes that were put before the agent."""
    warned: tuple[str, ...] = ()
    """Ids of the edges that were told."""
    last: str = ""
    """What the agent said last."""
    memory: str = ""
    """The id of the memory that holds the session's summary."""

    def and_shown(self, marks: Iterable[str]) -> "Session":
        """Returns the session after these were put before the agent, too."""
        return self._replace(shown=tuple(dict.fromkeys((*self.shown, *marks)))[-MOST_MARKS:])

    def and_warned(self, ids: Iterable[str]) -> "Session":
        """Returns the session after these were told, too."""
        return self._replace(warned=tuple(dict.fromkeys((*self.warned, *ids)))[-MOST_MARKS:])


def held(root: Path) -> AbstractContextManager[None]:
    """Keeps other hooks of the project waiting. Raises `StorageFailed`."""
    return lock(files.safe_path(root, f"{FOLDER}/lock"), wait=_WAIT_SECONDS)


def load(root: Path, name: str) -> Session:
    """Returns what is remembered of a session; nothing of a new one."""
    try:
        data, _ = files.look(_path(root, name), limit=_MOST_BYTES)
        told = json.loads(data)
        return Session(
            shown=_texts(told["shown"]),
            warned=_texts(told["warned"]),
            last=_text(told["last"]),
            memory=_text(told["memory"]),
        )
    except (OSError, MindError, ValueError, TypeError, KeyError, RecursionError):
        return Session()


def save(root: Path, name: str, session: Session) -> None:
    """Remembers a session. Raises `StorageFailed`."""
    told = session._replace(last=session.last[-LONGEST_LAST:])._asdict()
    files.replace(_path(root, name), f"{json.dumps(told)}\n".encode(), mode=0o600)


def clean(root: Path) -> None:
    """Forgets sessions that are a week old, and of the others all but the newest."""
    with suppress(OSError, MindError):
        folder = files.safe_path(root, FOLDER)
        with os.scandir(folder) as entries:
            files_ = [one for one in entries if one.name.endswith(".json")]
        found = [(one.stat(follow_symlinks=False).st_mtime, one.path) for one in files_]
        newest = sorted(found, reverse=True)
        oldest = time.time() - _OLD_SECONDS
        for position, (at, path) in enumerate(newest):
            if position >= MOST_SESSIONS or at < oldest:
                files.remove(Path(path))


def _path(root: Path, name: str) -> Path:
    key = sha256(name.encode("utf-8", "replace")).hexdigest()[:24]
    return files.safe_path(root, f"{FOLDER}/{key}.json")


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_text(one) for one in value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
