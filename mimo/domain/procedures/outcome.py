"""What came of an action."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from mimo.domain.procedures.procedure import SUCCESS
from mimo.frozen import frozen


@frozen
class Outcome:
    """The event that an action ends with and what it adds to the context, or why it failed."""

    event: str = SUCCESS
    merge: Mapping[str, Any] = field(default_factory=dict)
    log: str | None = None
    """A line for people."""
    question: str | None = None
    """What only an event from outside can answer: the state waits for one."""
    error: str | None = None
    again: bool = True
    """Whether a failed action is worth another try."""


class Refused(Exception):
    """An action that can't succeed, however often it is tried; the text says why."""


def failed(reason: str, *, again: bool = True) -> Outcome:
    """Returns the outcome of an action that failed."""
    return Outcome(event="error", error=reason, again=again)
