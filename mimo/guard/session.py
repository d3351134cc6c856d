"""Who is at work, since when, and which tools were called: what `getContext` tells."""

import re
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

MOST_CALLS = 100
"""Calls that are remembered, the last ones."""

_NAME = re.compile(r"[\w.:@/ -]{1,128}")


class Used(NamedTuple):
    """One call of a tool."""

    tool: str
    at: datetime
    success: bool


class Session:
    """One process's work; a client may say in the environment what it belongs to."""

    def __init__(self, environ: Mapping[str, str], started: datetime) -> None:
        """Keep when it began; nothing was called yet."""
        self._environ = environ
        self.started = started
        self.calls = 0
        """How many were made in all."""
        self.answers: dict[object, tuple[datetime, object, object]] = {}
        """What was asked about the session lately: when, at which state, and the answer."""
        self._history: deque[Used] = deque(maxlen=MOST_CALLS)

    @property
    def id(self) -> str:
        """Returns `MIND_SESSION_ID`, or else a name made of the time when it began."""
        return self.said("MIND_SESSION_ID") or f"session_{int(self.started.timestamp())}"

    @property
    def history(self) -> tuple[Used, ...]:
        """Returns the last calls, oldest first; the one that is still at work is none of them."""
        return tuple(self._history)

    def said(self, name: str) -> str | None:
        """Returns what the environment says, where that is a harmless name."""
        text = self._environ.get(name, "").strip()
        return text if _NAME.fullmatch(text) else None

    def elsewhere(self) -> "Session":
        """Returns the same session for another project, with no calls yet."""
        return Session(self._environ, self.started)

    def note(self, tool: str, at: datetime, *, success: bool) -> None:
        """Remembers a call."""
        self.calls += 1
        self._history.append(Used(tool, at, success))
