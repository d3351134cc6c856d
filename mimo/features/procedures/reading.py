"""Reads a procedure's Markdown: the procedure, or every fault with its line."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mimo.features.procedures import steps
from mimo.features.procedures.model import (
    LONGEST_MS,
    MAX_RETRIES,
    MOST_RETRIES,
    NAME,
    SUCCESS,
    TIMEOUT_MS,
    VERSION,
    Action,
    Fault,
    Module,
    Procedure,
    State,
    Step,
    split_reference,
)
from mimo.frozen import frozen
from mimo.memory.codec import document
from mimo.memory.codec.document import Unreadable
from mimo.memory.codec.front_matter import NotAMapping, Reader, loader_class, reported

CommandFault = Callable[[str, Mapping[str, Any]], str | None]
"""Returns why an action can't call the command of that name with these arguments, or None."""

KEYS = (
    "name",
    "version",
    "description",
    "active",
    "timeout_ms",
    "max_retries",
    "rollback_procedure",
    "context_schema",
    "metadata",
)
_TOP = ("initial_state", "states", "name", "version", "context_schema")
_ACTION = ("module", "function", "args", "timeout", "result")
_WORD = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_UPSTREAM = "Mimo.ProceduralStore.Steps."
"""The prefix of the built-in steps in definitions written for Mimo."""
_STEPS = {"".join(part.title() for part in step.split("_")): step for step in Step}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w-]*)")
_STATES = re.compile(r"^[ \t{\"]*(?:states|initial_state)\"?[ \t]*:", re.MULTILINE)


@frozen
class Reading:
    """The result of reading a file: a procedure unless there are faults."""

    procedure: Procedure | None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    """Valid parts that are probably mistakes."""


def read(data: bytes, command_fault: CommandFault = lambda *_: None) -> Reading:
    """Returns the procedure in a file's bytes, or every fault with its line."""
    try:
        parts = document.split(data)
        header = _load(parts.header, 2) if parts.syntax == "yaml" else None
    except Unreadable as error:
        return Reading(procedure=None, faults=(Fault(line=error.line, reason=error.reason),))
    if header is None:
        reason = "no header: the file must begin with `---` and `name:`"
        return Reading(procedure=None, faults=(Fault(line=1, reason=reason),))
    faults = list(_header_faults(header))
    reader = _DefinitionReader(command_fault)
    definition: _Mapping = _Mapping()
    states: dict[str, State] = {}
    try:
        block, line = _states_block(parts.body, parts.body_line)
        definition = _load(block, line)
        states = reader.read(definition, line)
    except Unreadable as error:
        faults.append(Fault(line=error.line, reason=error.reason))
    faults += reader.faults
    if faults:
        faults.sort(key=lambda fault: fault.line or 0)
        return Reading(procedure=None, faults=tuple(faults))
    procedure = _procedure(header, definition, states)
    return Reading(procedure=procedure, warnings=tuple(reader.warnings))


def _procedure(
    header: Mapping[str, Any], definition: Mapping[str, Any], states: Mapping[str, State]
) -> Procedure:
    retries = header.get("max_retries")
    return Procedure(
        name=header["name"],
        version=_version(header["version"]),
        description=header.get("description") or "",
        active=header.get("active") is not False,
        timeout_ms=header.get("timeout_ms") or TIMEOUT_MS,
        max_retries=MAX_RETRIES if retries is None else retries,
        rollback=header.get("rollback_procedure"),
        context_schema=_plain(header.get("context_schema") or {}),
        initial_state=definition["initial_state"],
        states=states,
        definition=_plain({key: definition[key] for key in ("initial_state", "states")}),
    )


def _plain(value: Any) -> Any:
    """Returns data as built-in types, without line numbers."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


# YAML with the line of every key and item.


class _Mapping(dict[str, Any]):
    """A mapping with the line of each of its keys."""

    lines: dict[str, int]


class _List(list[Any]):
    """A list with the line of each of its items."""

    lines: list[int]


class _LocatedReader(Reader):
    deepest = 16

    def __init__(self, text: str, first_line: int) -> None:
        super().__init__(loader_class()(text))
        self._starts = [at + 1 for at, char in enumerate(text) if char == "\n"]
        self._first_line = first_line

    def mapping(self) -> _Mapping:
        return self._located({entry.key: entry for entry in self.header().entries})

    def _located(self, entries: dict[str, Any]) -> _Mapping:
        located = _Mapping({key: entry.value.data for key, entry in entries.items()})
        located.lines = {key: self._line(entry.start) for key, entry in entries.items()}
        return located

    def _line(self, position: int) -> int:
        return self._first_line + bisect_right(self._starts, position)

    def _items(self, depth: int) -> tuple[list[Any], int | None]:
        values = []
        while not isinstance(event := self._loader.get_event(), self._yaml.SequenceEndEvent):
            values.append(self._value(event, depth + 1))
        self._closed = event
        located = _List(value.data for value in values)
        located.lines = [self._line(value.start) for value in values]
        return located, values[-1].end if values else None

    def _mapping(self, depth: int) -> tuple[dict[str, Any], int | None]:
        entries, self._closed = self._entries(depth)
        located = self._located({entry.key: entry for entry in entries})
        return located, entries[-1].value.end if entries else None


def _load(text: str, first_line: int) -> _Mapping:
    """Returns the mapping in a YAML text whose first line in the file is `first_line`.

    Raises `Unreadable` with the line in the file.
    """
    try:
        with reported(text):
            return _LocatedReader(text, first_line).mapping()
    except NotAMapping:
        raise Unreadable("it must be a mapping of `key: value` lines", first_line) from None
    except Unreadable as error:
        reason = error.reason.removeprefix("header: ")
        raise Unreadable(reason, first_line + (error.line or 1) - 1) from None


def _states_block(body: str, first_line: int) -> tuple[str, int]:
    """Returns the fenced YAML block that holds the states, and the line on which it begins.

    Of several YAML blocks it is the one with `states`. Raises `Unreadable` unless there is exactly
    one.
    """
    blocks = _yaml_blocks(body, first_line)
    if len(blocks) > 1:
        blocks = [block for block in blocks if _STATES.search(block[0])]
    if not blocks:
        raise Unreadable("no states: there is no block fenced by ```yaml", first_line)
    if len(blocks) > 1:
        first = blocks[0][1] - 1
        raise Unreadable(f"states a second time: the first are on line {first}", blocks[1][1] - 1)
    return blocks[0]


def _yaml_blocks(body: str, first_line: int) -> list[tuple[str, int]]:
    blocks: list[tuple[str, int]] = []
    fence: re.Match[str] | None = None
    begin = 0
    lines: list[str] = []
    for number, line in enumerate(body.splitlines(keepends=True), first_line):
        closing = line.strip()
        if fence is None:
            if fence := _FENCE.match(line):
                begin, lines = number + 1, []
        elif len(closing) >= len(fence[1]) and set(closing) == {fence[1][0]}:
            if fence[2].lower() in ("yaml", "yml"):
                blocks.append(("".join(lines), begin))
            fence = None
        else:
            lines.append(line)
    if fence is not None and fence[2].lower() in ("yaml", "yml"):
        raise Unreadable("the block that begins here is never closed by a fence", begin - 1)
    return blocks


# The header.


def _header_faults(header: _Mapping) -> Iterator[Fault]:
    for key in header:
        if key not in KEYS:
            reason = f"`{key}` is not a key of a procedure's header; put your own under `metadata`"
            yield Fault(line=header.lines[key], reason=reason)
    for key in ("name", "version"):
        if header.get(key) is None:
            yield Fault(line=header.lines.get(key, 1), reason=f"`{key}` is missing")
    for key, value in header.items():
        if value is not None and (message := _value_fault(key, value)):
            yield Fault(line=header.lines[key], reason=message)
    schema = header.get("context_schema")
    if isinstance(schema, dict):
        yield from steps.schema_faults(schema, lambda mapping, key: int(mapping.lines[key]))
    elif schema is not None:
        reason = "`context_schema` must be a mapping"
        yield Fault(line=header.lines["context_schema"], reason=reason)


def _value_fault(key: str, value: Any) -> str | None:
    good: object
    match key:
        case "name":
            good = isinstance(value, str) and NAME.fullmatch(value)
            reason = f"must be letters, digits, `-` and `_`, 64 at most; not `{value}`"
        case "version":
            good = VERSION.fullmatch(_version(value))
            reason = f"must be two numbers such as 1.0, not `{value}`"
        case "description":
            good, reason = isinstance(value, str), "must be text; put it in quotes"
        case "active":
            good, reason = isinstance(value, bool), "must be true or false"
        case "timeout_ms" | "max_retries":
            low, high = (1, LONGEST_MS) if key == "timeout_ms" else (0, MOST_RETRIES)
            good = type(value) is int and low <= value <= high
            reason = f"must be a whole number from {low} to {high}"
        case "rollback_procedure":
            good = isinstance(value, str) and split_reference(value)
            reason = f"must be `name` or `name@1.0`, not `{value}`"
        case _:
            return None
    return None if good else f"`{key}` {reason}"


def _version(value: Any) -> str:
    """Returns a version as it was written: `1.0` without quotes is a number to YAML."""
    return repr(value) if isinstance(value, float) else str(value)


# The states.


class _DefinitionReader:
    """Reads one definition and collects its faults and warnings."""

    def __init__(self, command_fault: CommandFault) -> None:
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []
        self._command_fault = command_fault

    def read(self, definition: _Mapping, first_line: int) -> dict[str, State]:
        """Returns the states, which are complete only if there are no `faults`."""
        for key in definition:
            if key not in _TOP:
                self._fault(definition.lines[key], f"`{key}` is not initial_state or states")
        for key in ("initial_state", "states"):
            if key not in definition:
                self._fault(first_line, f"`{key}` is missing")
        if "states" not in definition:
            return {}
        listed = definition["states"]
        if not isinstance(listed, _Mapping):
            self._fault(definition.lines["states"], "`states` must be a mapping of names to states")
            return {}
        if not listed:
            self._fault(definition.lines["states"], "`states` is empty")
        states = {name: self._state(name, listed) for name in listed}
        if "initial_state" in definition and listed:
            self._check_reachable(definition, listed, states)
        return states

    def _fault(self, line: int, reason: str) -> None:
        self.faults.append(Fault(line=line, reason=reason))

    def _check_reachable(
        self, definition: _Mapping, listed: _Mapping, states: Mapping[str, State]
    ) -> None:
        """Adds a fault for a missing initial state, and for each unreachable state."""
        initial = definition["initial_state"]
        line = definition.lines["initial_state"]
        if not isinstance(initial, str):
            self._fault(line, f"`initial_state` must be the name of a state, not `{initial}`")
        elif initial not in listed:
            names = ", ".join(listed)
            self._fault(line, f"`initial_state`: there is no state `{initial}`; states are {names}")
        else:
            reached = reachable(initial, states)
            for name in listed:
                if name not in reached:
                    reason = f"state `{name}` can't be reached from `{initial}`"
                    self._fault(listed.lines[name], reason)

    def _state(self, name: str, listed: _Mapping) -> State:
        line, state = listed.lines[name], listed[name]
        if not _WORD.fullmatch(name):
            self._fault(line, f"`{name}` is not a name of a state")
        if state is None:
            return State(transitions={})
        if not isinstance(state, _Mapping):
            self._fault(line, f"state `{name}` must be a mapping with `action` and `transitions`")
            return State(transitions={})
        for key in state:
            if key not in ("action", "transitions"):
                self._fault(state.lines[key], f"state `{name}`: `{key}` is not a part of a state")
        transitions = self._transitions(name, state, listed)
        action = self._action(name, state) if state.get("action") is not None else None
        self._warn(name, line, action, transitions)
        return State(action=action, transitions=transitions)

    def _transitions(self, name: str, state: _Mapping, listed: _Mapping) -> dict[str, str]:
        items = state.get("transitions")
        if items is None:
            return {}
        if not isinstance(items, _List):
            self._fault(state.lines["transitions"], f"state `{name}`: `transitions` must be a list")
            return {}
        transitions: dict[str, str] = {}
        for line, item in zip(items.lines, items, strict=True):
            if self._check_transition(name, line, item, listed):
                if item["event"] in transitions:
                    self._fault(line, f"state `{name}`: event `{item['event']}` appears twice")
                transitions[item["event"]] = item["target"]
        return transitions

    def _check_transition(self, name: str, line: int, item: Any, listed: _Mapping) -> bool:
        """Returns whether a transition has no fault."""
        where = f"state `{name}`: a transition"
        if not isinstance(item, _Mapping):
            self._fault(line, f"{where} must be a mapping with `event` and `target`")
            return False
        before = len(self.faults)
        for key in item:
            if key not in ("event", "target"):
                self._fault(item.lines[key], f"{where} has no `{key}`")
        for key in ("event", "target"):
            value = item.get(key)
            if value is None:
                self._fault(line, f"{where} needs `{key}`")
            elif not isinstance(value, str) or not _WORD.fullmatch(value):
                reason = f"{where}: `{key}` must be text, not `{value}`; put it in quotes"
                self._fault(item.lines[key], reason)
            elif key == "target" and value not in listed:
                self._fault(item.lines[key], f"{where} leads to `{value}`, which is not a state")
        return len(self.faults) == before

    def _action(self, name: str, state: _Mapping) -> Action | None:
        line, action = state.lines["action"], state["action"]
        where = f"state `{name}`:"
        if not isinstance(action, _Mapping):
            self._fault(line, f"{where} `action` must be a mapping")
            return None
        before = len(self.faults)
        for key in action:
            if key not in _ACTION:
                reason = f"{where} `{key}` is not a part of an action, which has "
                self._fault(action.lines[key], f"{reason}{', '.join(_ACTION)}")
        for key in ("module", "function"):
            if not isinstance(action.get(key), str):
                reason = "is missing" if action.get(key) is None else "must be text"
                self._fault(action.lines.get(key, line), f"{where} `{key}` {reason}")
        timeout, result, args = (action.get(key) for key in ("timeout", "result", "args"))
        if timeout is not None and not (type(timeout) is int and 0 < timeout <= LONGEST_MS):
            reason = f"{where} `timeout` must be a whole number of milliseconds"
            self._fault(action.lines["timeout"], reason)
        if result is not None and not isinstance(result, str):
            self._fault(action.lines["result"], f"{where} `result` must be a name")
        if args is not None and not isinstance(args, dict | list):
            self._fault(action.lines["args"], f"{where} `args` must be a list or a mapping")
        if len(self.faults) > before:
            return None
        listed = () if args is None else (args,) if isinstance(args, dict) else tuple(args)
        return self._resolved(where, line, action, listed)

    def _resolved(
        self, where: str, line: int, action: _Mapping, args: tuple[Any, ...]
    ) -> Action | None:
        target = _called(action["module"], action["function"])
        if isinstance(target, str):
            self._fault(action.lines["module"], f"{where} {target}")
            return None
        module, function = target
        if module is Module.STEP and "result" in action:
            reason = f"{where} `result` is only for commands and programs"
            self._fault(action.lines["result"], reason)
        at = action.lines.get("args", line)
        for fault_line, reason in self._argument_faults(module, function, args, at):
            self._fault(fault_line, f"{where} {reason}")
        return Action(
            module=module,
            function=function,
            args=args,
            timeout_ms=action.get("timeout"),
            result=action.get("result"),
        )

    def _argument_faults(
        self, module: Module, function: str, args: tuple[Any, ...], at: int
    ) -> Iterator[tuple[int, str]]:
        if module is Module.SHELL:
            if not args or not all(isinstance(word, str | int) for word in args):
                yield at, "`shell` needs `args`, a list of the program and its words"
            elif "{{" in str(args[0]):
                yield at, f"the program `{args[0]}` can't come from the context; its words can"
            return
        if len(args) > 1 or (args and not isinstance(args[0], dict)):
            yield at, f"`{function}` takes one mapping of arguments"
            return
        named: _Mapping = args[0] if args else _Mapping()
        if module is Module.COMMAND:
            if reason := self._command_fault(function, named):
                yield at, reason
            return
        for argument, reason in steps.argument_faults(Step(function), named):
            yield (named.lines[argument] if argument else at), reason

    def _warn(
        self, name: str, line: int, action: Action | None, transitions: Mapping[str, str]
    ) -> None:
        """Adds a warning for each event of the action that no transition takes."""
        if action is None or not transitions:
            return
        expected = {SUCCESS}
        if action.module is Module.STEP and action.function == Step.ASK:
            return
        if action.module is Module.STEP and action.function == Step.CONDITIONAL:
            expected = {str(action.named.get(f"{word}_event", word)) for word in ("true", "false")}
        for event in sorted(expected - transitions.keys()):
            reason = f"state `{name}`: its action ends with `{event}`, which has no transition"
            self.warnings.append(Fault(line=line, reason=f"{reason}: it will wait there"))


def _called(module: str, function: str) -> tuple[Module, str] | str:
    """Returns the function that an action calls, or why it can't be called."""
    if module.startswith(_UPSTREAM):
        step = _STEPS.get(module.removeprefix(_UPSTREAM).removesuffix("Step"))
        return (Module.STEP, step) if step else f"there is no step `{module}`"
    if module not in tuple(Module):
        known = ", ".join(Module)
        return f"`module` must be one of {known}, not `{module}`; nothing else is ever loaded"
    if module == Module.STEP and function not in tuple(Step):
        return f"there is no step `{function}`; steps are {', '.join(Step)}"
    if module == Module.SHELL and function != "run":
        return f"`shell` has one function, `run`, not `{function}`"
    return Module(module), function


def reachable(initial: str, states: Mapping[str, State]) -> set[str]:
    """Returns the states that can be reached from the initial one, which is included."""
    seen, stack = {initial}, [initial]
    while stack:
        for target in states[stack.pop()].transitions.values():
            if target in states and target not in seen:
                seen.add(target)
                stack.append(target)
    return seen
