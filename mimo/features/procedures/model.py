"""Procedures: their states, actions and limits, the outcome of an action, and diagrams."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from mimo.frozen import field, frozen
from mimo.text.clean import in_mermaid, one_line, visible

LATEST = "latest"
ERROR = "error"
"""The event of a failed action, if its state has a transition for it."""
SUCCESS = "success"

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_PART = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}(?:\.{_NUMBER})?"
    rf"(?:-{_PART}(?:\.{_PART})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
"""Semantic versions, whose last number may be left out: `1.0`, `1.0.2`, `2.0.0-rc.1`."""
LONGEST_VERSION = 64

TIMEOUT_MS = 300_000
MAX_RETRIES = 3
ACTION_TIMEOUT_MS = 30_000
LONGEST_MS = 31 * 24 * 3600 * 1000
MOST_RETRIES = 20

OWN = "run"
OWN_FACTS = ("id", "name", "state", "error", "started")
"""The values of the run itself, such as `{{run.id}}`. The time of an action is `{{now}}`."""
TIME = "%Y-%m-%dT%H:%M:%SZ"
"""The format of times in arguments, which are in UTC."""
_PLACE = re.compile(r"[0-9]{1,9}")
_AMBIGUOUS = re.compile(r'[\s"\[{]|.*(?:\]|, \S+: |\s$)|$')
"""A text that is shown in quotes: it could end the list of arguments, or look like the next."""
_PLACEHOLDER = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")


class Module(StrEnum):
    """The owner of the function that an action calls. Nothing is imported by these names."""

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
    ASK = "ask"


@frozen
class Action:
    """The work of a state, done when the state is entered."""

    module: Module
    function: str
    """The step, the command (`save/decision`) or `run` for a program."""
    args: tuple[Any, ...] = ()
    timeout_ms: int | None = None
    result: str | None = None
    """The context key that receives the whole result, which is merged otherwise."""

    @property
    def named(self) -> Mapping[str, Any]:
        """Returns the arguments of an action that takes them by name."""
        return self.args[0] if self.args and isinstance(self.args[0], dict) else {}

    @property
    def limit_ms(self) -> int | None:
        """Returns its timeout. The default for `delay` and `ask`, which wait, is None."""
        waits = self.module is Module.STEP and self.function in (Step.DELAY, Step.ASK)
        return self.timeout_ms or (None if waits else ACTION_TIMEOUT_MS)


@frozen
class State:
    """A state: its action, and the target of each event."""

    action: Action | None = None
    transitions: Mapping[str, str]
    """Target by event, in the order of the file."""

    @property
    def terminal(self) -> bool:
        """Returns whether the procedure ends here."""
        return not self.transitions

    @property
    def asks(self) -> bool:
        """Returns whether it asks the user a question."""
        action = self.action
        return bool(action and action.module is Module.STEP and action.function == Step.ASK)


@frozen
class Procedure:
    """A checked procedure."""

    name: str
    version: str
    description: str = ""
    active: bool = True
    timeout_ms: int = TIMEOUT_MS
    max_retries: int = MAX_RETRIES
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

    @property
    def runs_programs(self) -> bool:
        """Returns whether one of its actions runs a program."""
        return any(action.module is Module.SHELL for action in self.actions)


def is_version(text: str) -> bool:
    """Returns whether a text is a version, which is also a part of a file's name."""
    return len(text) <= LONGEST_VERSION and VERSION.fullmatch(text) is not None


def version_key(version: str) -> tuple[object, ...]:
    """Returns the sort key of a version: 1.10 comes after 1.9, and 2.0.0 after 2.0.0-rc.1.

    What follows a `+` does not count. A text that is not a version comes first.
    """
    if not is_version(version):
        return ((),)
    numbers, _, prerelease = version.partition("+")[0].partition("-")
    parts = tuple(int(number) for number in numbers.split("."))
    words = tuple(
        (False, int(word), "") if word.isdecimal() else (True, 0, word)
        for word in prerelease.split(".")
        if word
    )
    return (*parts, 0)[:3], not prerelease, words


def split_reference(text: str) -> tuple[str, str] | None:
    """Returns the name and the version in `name` or `name@version`; None for any other text."""
    name, _, version = text.partition("@")
    good = NAME.fullmatch(name) and (is_version(version) or version in ("", LATEST))
    return (name, version or LATEST) if good else None


@frozen
class Outcome:
    """The result of an action: its event and additions to the context, or its error."""

    event: str = SUCCESS
    merge: Mapping[str, Any] = field(default_factory=dict)
    log: str | None = None
    """A line for the run's log."""
    question: str | None = None
    """A question to the user: the state waits for an event that answers it."""
    error: str | None = None
    again: bool = True
    """True if a failed action may be retried."""


class Refused(Exception):
    """An action that can't succeed, however often it is retried; the text is the reason."""


def failed(reason: str, *, again: bool = True) -> Outcome:
    """Returns the outcome of an action that failed."""
    return Outcome(event=ERROR, error=reason, again=again)


def filled(value: Any, context: Mapping[str, Any]) -> Any:
    """Returns a value with every `{{name}}` in its texts replaced; names may be dotted.

    A text that is only a placeholder becomes the context's value, of any type. Raises `Refused`
    for an unknown name.
    """
    if isinstance(value, str):
        if match := _PLACEHOLDER.fullmatch(value.strip()):
            return lookup(match[1], context)
        return _PLACEHOLDER.sub(lambda place: as_text(lookup(place[1], context)), value)
    if isinstance(value, dict):
        return {key: filled(item, context) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, context) for item in value]
    return value


def unknown_facts(value: Any, names: Iterable[str]) -> list[str]:
    """Returns the names, and those in placeholders of a value, of facts that no run has."""
    names = [*_PLACEHOLDER.findall(str(value)), *names]
    return [n for n in names if n.startswith(f"{OWN}.") and n.partition(".")[2] not in OWN_FACTS]


def lookup(name: str, context: Mapping[str, Any]) -> Any:
    """Returns the value of a dotted name in the context. Raises `Refused` if there is none.

    A key of the context may have dots, but none can stand for a value of the run itself.
    """
    value: Any = context
    if name in context and not name.startswith(f"{OWN}."):
        return context[name]
    for part in name.split("."):
        if isinstance(value, list) and _PLACE.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            raise Refused(f"`{{{{{name}}}}}` is not in the context")
    return value


def as_text(value: Any) -> str:
    """Returns a value as a part of a text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Diagrams.

_WIDEST_INDENT = 96
"""The columns after which a tree is not indented any further: a chain may have 10,000 states."""


def mermaid(procedure: Procedure) -> str:
    """Returns a state diagram in Mermaid's language."""
    names = {name: f"s{number}" for number, name in enumerate(procedure.states, 1)}
    lines = ["stateDiagram-v2"]
    lines += [
        f'    state "{in_mermaid(one_line(name))}" as {short}' for name, short in names.items()
    ]
    lines.append(f"    [*] --> {names[procedure.initial_state]}")
    for name, state in procedure.states.items():
        for event, target in state.transitions.items():
            lines.append(f"    {names[name]} --> {names[target]}: {in_mermaid(one_line(event))}")
        if state.terminal:
            lines.append(f"    {names[name]} --> [*]")
    return "\n".join(lines) + "\n"


def tree(definition: Mapping[str, Any]) -> list[str]:
    """Returns the lines of a definition as a tree of its states and their actions.

    A state that appears again has only its name.
    """
    states = definition["states"]
    lines: list[str] = []
    seen: set[str] = set()
    # A stack instead of recursion: a chain of states may be longer than Python's stack is deep.
    stack: list[tuple[str, str, str]] = [(definition["initial_state"], "", "")]
    while stack:
        name, lead, indent = stack.pop()
        state = states[name] or {}
        below = [(item["event"], item["target"]) for item in state.get("transitions") or ()]
        if name in seen:
            lines.append(f"{lead}{name} ↺")
            continue
        seen.add(name)
        action = state.get("action")
        end, work = "" if below else " ■", f"  {describe(action)}" if action else ""
        lines.append(f"{lead}{name}{end}{work}")
        for event, target in reversed(below):
            is_final = (event, target) == below[-1]
            branch, trunk = ("└─", "   ") if is_final else ("├─", "│  ")
            below_it = f"{indent}{trunk}" if len(indent) < _WIDEST_INDENT else indent
            stack.append((target, f"{indent}{branch} {event} → ", below_it))
    return lines


def describe(action: Mapping[str, Any]) -> str:
    """Returns a one-line description of an action of a definition, with all of its arguments.

    A person approves the action by it: nothing is left out, and no value looks like another.
    """
    module, function, args = action["module"], action["function"], action.get("args") or []
    if module == Module.SHELL:
        return f"$ {' '.join(map(_quoted, args))}"
    name = f"mind {function}" if module == Module.COMMAND else module.rpartition(".")[2]
    name = function if module == Module.STEP else name
    named = args if isinstance(args, dict) else args[0] if args else {}
    pairs = ", ".join(f"{visible(key)}: {_value(value)}" for key, value in named.items())
    return f"[{name}{f' {pairs}' if pairs else ''}]"


def _quoted(word: object) -> str:
    """Returns a word of a program as a shell would read it."""
    text = as_text(word)
    if visible(text) != text:
        return "$'" + visible(text.replace("\\", r"\\").replace("'", r"\'")) + "'"
    plain = text and all(c.isalnum() or c in "-_./={}:,@+" for c in text)
    return text if plain else "'" + text.replace("'", "'\\''") + "'"


def _value(value: object) -> str:
    """Returns an argument: a text as it is if it can't be mistaken, the rest as JSON."""
    if isinstance(value, str) and not _AMBIGUOUS.match(value) and visible(value) == value:
        return value
    return visible(json.dumps(value, ensure_ascii=False))
