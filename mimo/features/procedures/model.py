"""What running a procedure needs of the command set, which lies above the services."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from mimo.frozen import frozen
from mimo.mind import Mind

# What a procedure is: a name, a version, limits, and states with actions and transitions.


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


# Whether a value is of a type, as rules and schemas name types.


NUMBERS = (int, float)
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "float": (float,),
    "number": NUMBERS,
    "boolean": (bool,),
    "list": (list,),
    "array": (list,),
    "map": (dict,),
    "object": (dict,),
    "null": (type(None),),
}


def is_of(value: Any, kind: str) -> bool:
    """Returns whether a value is of the type with that name; true is no number."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind])


def is_number(value: Any) -> bool:
    """Returns whether a value can be compared with numbers."""
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


# What came of an action.


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


# Values with `{{name}}` in them -> values filled in from the context of a run.


_PLACE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
OWN = "run"
"""`{{run.id}}`, `{{run.name}}`, `{{run.state}}`, `{{run.error}}` are the run's own."""


def filled(value: Any, context: Mapping[str, Any]) -> Any:
    """Returns a value with every `{{name}}` in its texts replaced; names may be dotted.

    A text that is one place and nothing else becomes what stands there, whatever its type.
    Raises `Refused` where there is nothing of that name.
    """
    if isinstance(value, str):
        return _text(value, context)
    if isinstance(value, dict):
        return {key: filled(item, context) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, context) for item in value]
    return value


def _text(text: str, context: Mapping[str, Any]) -> Any:
    if whole := _PLACE.fullmatch(text.strip()):
        return found(whole[1], context)
    return _PLACE.sub(lambda place: spelled(found(place[1], context)), text)


def found(name: str, context: Mapping[str, Any]) -> Any:
    """Returns what a dotted name means in the context. Raises `Refused` where there is nothing."""
    value: Any = context
    if name in context:
        return context[name]
    for part in name.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            raise Refused(f"`{{{{{name}}}}}` is not in the context")
    return value


def spelled(value: Any) -> str:
    """Returns a value within a text: texts as they are, anything else as JSON."""
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, ensure_ascii=False)


# A procedure as a diagram: Mermaid's language, and lines for a terminal.


def mermaid(procedure: Procedure) -> str:
    """Returns a state diagram in Mermaid's language."""
    names = {name: f"s{number}" for number, name in enumerate(procedure.states, 1)}
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{_label(name)}" as {short}' for name, short in names.items()]
    lines.append(f"    [*] --> {names[procedure.initial_state]}")
    for name, state in procedure.states.items():
        for event, target in state.transitions.items():
            lines.append(f"    {names[name]} --> {names[target]}: {_label(event)}")
        if state.terminal:
            lines.append(f"    {names[name]} --> [*]")
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    """Returns a name as Mermaid shows it, with what it would take for its own syntax spelt out."""
    safe = "".join(c if c.isalnum() or c in " _-." else f"#{ord(c)};" for c in text)
    return safe or "#8203;"


def drawn(definition: Mapping[str, Any]) -> list[str]:
    """Returns a definition as a tree of its states, each with what it does.

    A state that was drawn before is only named.
    """
    states = definition["states"]
    lines: list[str] = []
    seen: set[str] = set()
    # A stack instead of recursion: a chain of states may be longer than Python's stack is deep.
    open_: list[tuple[str, str, str]] = [(definition["initial_state"], "", "")]
    while open_:
        name, lead, rest = open_.pop()
        state = states[name] or {}
        below = [(item["event"], item["target"]) for item in state.get("transitions") or ()]
        known = name in seen
        seen.add(name)
        action = state.get("action")
        did = f"  {_told(action)}" if action and not known else ""
        lines.append(f"{lead}{name}{' ↺' if known else '' if below else ' ■'}{did}")
        if not known:
            open_ += reversed(list(_branches(below, rest)))
    return lines


def _branches(below: list[tuple[str, str]], rest: str) -> Iterator[tuple[str, str, str]]:
    """Yields what stands under a state: the target, what leads to it, and what to its own."""
    for number, (event, target) in enumerate(below, 1):
        last = number == len(below)
        branch, trunk = ("└─", "   ") if last else ("├─", "│  ")
        yield target, f"{rest}{branch} {event} → ", f"{rest}{trunk}"


def _told(action: Mapping[str, Any]) -> str:
    args = action.get("args") or []
    words = args if isinstance(args, list) else [args]
    return _said(action["module"], action["function"], words)


def told(action: Action) -> str:
    """Returns what an action does, in one line."""
    return _said(action.module, action.function, list(action.args))


def _said(module: str, function: str, args: list[Any]) -> str:
    # One line for each action: none may look like several.
    return _in_words(module, function, args).replace("\n", "\\n").replace("\r", "\\r")


def _in_words(module: str, function: str, args: list[Any]) -> str:
    if module == Module.SHELL:
        return f"$ {' '.join(_word(word) for word in args)}"
    if module == Module.STEP:
        name = function
    else:
        name = f"mind {function}" if module == Module.COMMAND else module.rpartition(".")[2]
    named = args[0] if args and isinstance(args[0], dict) else {}
    said = ", ".join(f"{key}: {spelled(value)}" for key, value in named.items())
    return f"[{name}{f' {said}' if said else ''}]"


def _word(word: object) -> str:
    text = str(word)
    plain = text and all(c.isalnum() or c in "-_./={}:,@+" for c in text)
    return text if plain else "'" + text.replace("'", "'\\''") + "'"


class Commands(Protocol):
    """Mind's own commands, by name."""

    def fault(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Returns why a procedure can't call that command with arguments of these names."""

    def call(self, mind: Mind, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what a command answers, as JSON. Raises `MindError`."""
