"""One call, as everything that guards it sees it."""

import re
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from mimo.errors import Denied, MindError, PiiDetected, RateLimited, SecretDetected
from mimo.frozen import frozen
from mimo.guard.policy import Operation

# How a call ended.


class Status(StrEnum):
    """Whether a call did what it should."""

    OK = "ok"
    DENIED = "denied"
    FAILED = "failed"


@frozen
class Ending:
    """What came of a call."""

    status: Status = Status.OK
    error: str | None = None
    """The code of the error."""
    reason: str | None = None
    """Why it was denied, in one word."""
    redactions: int = 0
    """How many secrets and personal data were taken out of the answer."""
    seconds: float = 0.0


def ended_by(error: BaseException) -> Ending:
    """Returns how a call ended that raised this."""
    if not isinstance(error, MindError):
        return Ending(status=Status.FAILED, error=type(error).__name__)
    reason = _reason(error)
    status = Status.DENIED if reason else Status.FAILED
    return Ending(status=status, error=error.code, reason=reason)


def _reason(error: MindError) -> str | None:
    """Returns the word for why a call was denied, or None where it was not."""
    if isinstance(error, Denied):
        return error.reason or "surface"
    known = {RateLimited: "rate_limit", SecretDetected: "secret", PiiDetected: "pii"}
    return known.get(type(error))


# Who is at work, since when, and which tools were called: what `getContext` tells.


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


@frozen
class Call:
    """Who wants to do what, and to which namespace."""

    tool: str
    """The canonical name."""
    like: str | None = None
    """The tool whose rules and limits bind the call as well, as for a deprecated name."""
    operation: Operation
    governed: bool = True
    """Whether a policy binds it and it is recorded: not what a person does with the machine."""
    diagnosis: bool = False
    """Whether it shows what is wrong, and must do so while the policy is invalid."""
    agent: str | None = None
    """The program that asks; None for a person."""
    at: datetime
    namespace: str | None = None
    key: str | None = None
    context: str | None = None
    """The type of context that is asked for."""
    ttl_seconds: int | None = None
