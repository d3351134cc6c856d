"""What a procedure is: a name, a version, limits, and states with actions and transitions."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from mimo.frozen import frozen

T = TypeVar("T")

LATEST = "latest"
ERROR = "error"
"""The event of an action that failed, where its state has a transition for it."""
SUCCESS = "success"

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
VERSION = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")

TIMEOUT_MS = 300_000
MAX_RETRIES = 3
ACTION_TIMEOUT_MS = 30_000
LONGEST_MS = 31 * 24 * 3600 * 1000
MOST_RETRIES = 20


class Module(StrEnum):
    """Whose function an action calls. Nothing is ever imported by these names."""

    STEP = "step"
    """One of the steps built into mind."""
    COMMAND = "mind"
    """One of mind's own commands."""
    SHELL = "shell"
    """A program on this machine."""


class Step(StrEnum):
    """The steps built into mind."""

    LOG = "log"
    VALIDATE = "validate"
    DELAY = "delay"
    CONDITIONAL = "conditional"
    SET_CONTEXT = "set_context"
    HTTP_REQUEST = "http_request"
    ASK = "ask"


@frozen
class Action:
    """What a state does when it is entered."""

    module: Module
    function: str
    """The step, the command (`save/decision`) or `run` for a program."""
    args: tuple[Any, ...] = ()
    timeout_ms: int | None = None
    result: str | None = None
    """The key of the context under which the whole result is kept, instead of merging it."""

    @property
    def named(self) -> Mapping[str, Any]:
        """Returns the arguments of an action that takes them by name."""
        return self.args[0] if self.args and isinstance(self.args[0], dict) else {}

    @property
    def reaches_out(self) -> bool:
        """Returns whether it runs a program or speaks to another machine."""
        return self.module is Module.SHELL or self.function == Step.HTTP_REQUEST

    @property
    def limit_ms(self) -> int | None:
        """Returns how long it may take; None for what waits by its nature, unless said."""
        waits = self.module is Module.STEP and self.function in (Step.DELAY, Step.ASK)
        return self.timeout_ms or (None if waits else ACTION_TIMEOUT_MS)


@frozen
class State:
    """A state: its action, and where each event leads."""

    action: Action | None = None
    transitions: Mapping[str, str]
    """Target by event, in the order of the file."""

    @property
    def terminal(self) -> bool:
        """Returns whether the procedure ends here."""
        return not self.transitions


@frozen
class Procedure:
    """A checked procedure."""

    name: str
    version: str
    description: str = ""
    active: bool = True
    timeout_ms: int = TIMEOUT_MS
    max_retries: int = MAX_RETRIES
    rollback: str | None = None
    """The procedure that undoes what a failed one did: `name` or `name@version`."""
    context_schema: Mapping[str, Any]
    initial_state: str
    states: Mapping[str, State]
    definition: Mapping[str, Any]
    """`initial_state` and `states` as plain data."""

    @property
    def key(self) -> str:
        """Returns `name@version`."""
        return f"{self.name}@{self.version}"

    @property
    def actions(self) -> tuple[Action, ...]:
        """Returns all its actions."""
        return tuple(state.action for state in self.states.values() if state.action)


@frozen
class Fault:
    """Something wrong in a procedure's file, and where."""

    line: int | None
    reason: str


def version_key(version: str) -> tuple[int, int]:
    """Returns what versions are ordered by: 1.10 comes after 1.9."""
    major, minor = version.split(".")
    return int(major), int(minor)


def split_reference(text: str) -> tuple[str, str] | None:
    """Returns the name and the version that `name` or `name@version` says; None for neither."""
    name, _, version = text.partition("@")
    good = NAME.fullmatch(name) and (VERSION.fullmatch(version) or version in ("", LATEST))
    return (name, version or LATEST) if good else None


def newest(found: Iterable[tuple[str, T]]) -> T | None:
    """Returns the item with the highest version, or None where there is none."""
    items = sorted(found, key=lambda pair: version_key(pair[0]))
    return items[-1][1] if items else None
