"""What the newest prompt asked for, handed from a client's hook to the server by a file.

`.mind/.local/exposure.json` is one JSON object; whatever can't be read counts as none.
"""

import json
import os
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from mimo.errors import MindError
from mimo.features.hooks.exposure import Intent
from mimo.store import files
from mimo.store.files import LOCAL
from mimo.store.locking import lock

# What was said in the sessions of clients, so that nothing is said twice.


FOLDER = f"{LOCAL}/sessions"
MOST_MARKS = 500
"""So many things said are remembered of a session, the newest."""
MOST_SESSIONS = 50
LONGEST_LAST = 8_000
_SESSIONS_MOST_BYTES = 200_000
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
        data, _ = files.look(_path(root, name), limit=_SESSIONS_MOST_BYTES)
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


PLACE = ".mind/.local/exposure.json"
_MOST_BYTES = 16_384
_MOST_TOOLS = 100
_LONGEST = 200


class Exposure(NamedTuple):
    """What a prompt asked for, in which session, and when."""

    session: str
    """The client's own name of the session."""
    intent: Intent
    confidence: float
    tools: tuple[str, ...] | None
    """Canonical names, those that come first in front; None for every tool."""
    at: datetime
    """Time zone aware, UTC."""


def write(root: Path, exposure: Exposure) -> None:
    """Puts the exposure in the place of the last one. Raises `StorageFailed`."""
    told = {
        "session": exposure.session[:_LONGEST],
        "intent": exposure.intent.value,
        "confidence": exposure.confidence,
        "tools": exposure.tools,
        "at": exposure.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }
    files.replace(files.safe_path(root, PLACE), f"{json.dumps(told)}\n".encode(), mode=0o600)


def read(root: Path) -> Exposure | None:
    """Returns what the newest prompt asked for; None where there is nothing that can be read."""
    try:
        data, _ = files.look(files.safe_path(root, PLACE), limit=_MOST_BYTES)
        return _exposure(json.loads(data))
    except (OSError, MindError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _exposure(told: Any) -> Exposure:
    """Returns the exposure that a file tells; raises `ValueError` where it tells none."""
    session, confidence, tools = told["session"], told["confidence"], told["tools"]
    at = datetime.fromisoformat(told["at"])
    listed = tools is None or (isinstance(tools, list) and len(tools) <= _MOST_TOOLS)
    texts = [session, *(tools or ())] if listed else [None]
    if not all(isinstance(text, str) and len(text) <= _LONGEST for text in texts):
        raise ValueError(told)
    if type(confidence) not in (int, float) or not 0 <= confidence <= 1 or at.tzinfo is None:
        raise ValueError(told)
    return Exposure(
        session=session,
        intent=Intent(told["intent"]),
        confidence=float(confidence),
        tools=None if tools is None else tuple(tools),
        at=at.astimezone(UTC),
    )
