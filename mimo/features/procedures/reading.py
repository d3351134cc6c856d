"""A procedure's Markdown file -> a procedure, or everything that is wrong with it."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mimo.features.procedures import steps, yaml
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
from mimo.features.procedures.yaml import Items
from mimo.features.procedures.yaml import Mapping as Located
from mimo.frozen import frozen
from mimo.memory.codec import document
from mimo.memory.codec.document import Unreadable

# Finding the states: the one fenced YAML block of a procedure's Markdown.


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w-]*)")
_STATES = re.compile(r"^[ \t{\"]*(?:states|initial_state)\"?[ \t]*:", re.MULTILINE)


@frozen
class Block:
    """A fenced block: its text, and the 1-based line on which that begins."""

    text: str
    line: int


def states_block(body: str, first_line: int) -> Block:
    """Returns the block that holds the states.

    Where several blocks are YAML it is the one that says `states`. Raises `Unreadable` where there
    is none, or more than one.
    """
    blocks = _yaml_blocks(body, first_line)
    if len(blocks) > 1:
        blocks = [block for block in blocks if _STATES.search(block.text)]
    if not blocks:
        raise Unreadable("no states: there is no block fenced by ```yaml", first_line)
    if len(blocks) > 1:
        first = blocks[0].line - 1
        raise Unreadable(f"states a second time: they stand on line {first}", blocks[1].line - 1)
    return blocks[0]


def _yaml_blocks(body: str, first_line: int) -> list[Block]:
    found: list[Block] = []
    opened: re.Match[str] | None = None
    begun = 0
    lines: list[str] = []
    for number, line in enumerate(body.splitlines(keepends=True), first_line):
        if opened is None:
            if opened := _FENCE.match(line):
                begun, lines = number + 1, []
        elif _closes(line, opened[1]):
            if opened[2].lower() in ("yaml", "yml"):
                found.append(Block(text="".join(lines), line=begun))
            opened = None
        else:
            lines.append(line)
    if opened is not None and opened[2].lower() in ("yaml", "yml"):
        raise Unreadable("the block that begins here is never closed by a fence", begun - 1)
    return found


def _closes(line: str, fence: str) -> bool:
    closing = line.strip()
    return len(closing) >= len(fence) and set(closing) == {fence[0]}


# The states of a definition, checked: all faults at once, each with its line.


CommandFault = Callable[[str, Mapping[str, Any]], str | None]
"""Returns why an action can't call the command of that name with arguments of these names."""

_ACTION = ("module", "function", "args", "timeout", "result")
_TOP = ("initial_state", "states", "name", "version", "context_schema")
_WORD = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_UPSTREAM = "Mimo.ProceduralStore.Steps."
"""Names under which definitions written for Mimo know the built-in steps."""
_STEPS = {"".join(part.title() for part in step.split("_")): step for step in Step}


class Reader:
    """Reads one definition and collects what is wrong with it."""

    def __init__(self, command_fault: CommandFault) -> None:
        """Keep what tells which commands can be called."""
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []
        self._command_fault = command_fault

    def read(self, definition: Located, first_line: int) -> Mapping[str, State]:
        """Returns the states; they are of use only where there are no `faults`."""
        for key in definition:
            if key not in _TOP:
                known = "initial_state and states"
                self._fault(definition.lines[key], f"`{key}` is not {known}")
        missing = [key for key in ("initial_state", "states") if key not in definition]
        for key in missing:
            self._fault(first_line, f"`{key}` is missing")
        if "states" not in definition:
            return {}
        states = definition["states"]
        if not isinstance(states, Located):
            self._fault(definition.lines["states"], "`states` must be a mapping of names to states")
            return {}
        if not states:
            self._fault(definition.lines["states"], "`states` is empty")
        found = {name: self._state(name, states) for name in states}
        if "initial_state" in definition and states:
            self._reach(definition, states, found)
        return found

    def _fault(self, line: int, reason: str) -> None:
        self.faults.append(Fault(line=line, reason=reason))

    def _reach(self, definition: Located, states: Located, found: Mapping[str, State]) -> None:
        """Adds the faults of an initial state and of targets that aren't there, and of orphans."""
        initial = definition["initial_state"]
        line = definition.lines["initial_state"]
        if not isinstance(initial, str):
            self._fault(line, f"`initial_state` must be the name of a state, not `{initial}`")
        elif initial not in states:
            known = ", ".join(states)
            self._fault(line, f"`initial_state`: there is no state `{initial}`; states are {known}")
        else:
            seen = reachable(initial, found)
            for name in states:
                if name not in seen:
                    reason = f"state `{name}` can't be reached from `{initial}`"
                    self._fault(states.lines[name], reason)

    def _state(self, name: str, states: Located) -> State:
        line, said = states.lines[name], states[name]
        if not _WORD.fullmatch(name):
            self._fault(line, f"`{name}` is no name of a state")
        if said is None:
            return State(transitions={})
        if not isinstance(said, Located):
            self._fault(line, f"state `{name}` must be a mapping with `action` and `transitions`")
            return State(transitions={})
        for key in said:
            if key not in ("action", "transitions"):
                self._fault(said.lines[key], f"state `{name}`: `{key}` is no part of a state")
        transitions = self._transitions(name, said, states)
        action = self._action(name, said) if said.get("action") is not None else None
        self._warn(name, line, action, transitions)
        return State(action=action, transitions=transitions)

    def _transitions(self, name: str, said: Located, states: Located) -> dict[str, str]:
        listed = said.get("transitions")
        if listed is None:
            return {}
        if not isinstance(listed, Items):
            self._fault(said.lines["transitions"], f"state `{name}`: `transitions` must be a list")
            return {}
        found: dict[str, str] = {}
        for line, item in zip(listed.lines, listed, strict=True):
            if pair := self._transition(name, line, item, states):
                event, target = pair
                if event in found:
                    self._fault(line, f"state `{name}`: event `{event}` stands twice")
                found[event] = target
        return found

    def _transition(
        self, name: str, line: int, item: Any, states: Located
    ) -> tuple[str, str] | None:
        where = f"state `{name}`: a transition"
        if not isinstance(item, Located):
            self._fault(line, f"{where} must be a mapping with `event` and `target`")
            return None
        before = len(self.faults)
        for key in item:
            if key not in ("event", "target"):
                self._fault(item.lines[key], f"{where} has no `{key}`")
        for key in ("event", "target"):
            value = item.get(key)
            if value is None:
                self._fault(line, f"{where} needs `{key}`")
            elif not isinstance(value, str) or not _WORD.fullmatch(value):
                told = f"{where}: `{key}` must be text, not `{value}`; put it in quotes"
                self._fault(item.lines[key], told)
            elif key == "target" and value not in states:
                self._fault(item.lines[key], f"{where} leads to `{value}`, which is no state")
        return (item["event"], item["target"]) if len(self.faults) == before else None

    def _action(self, name: str, said: Located) -> Action | None:
        line, action = said.lines["action"], said["action"]
        if not isinstance(action, Located):
            self._fault(line, f"state `{name}`: `action` must be a mapping")
            return None
        before = len(self.faults)
        for key in action:
            if key not in _ACTION:
                told = f"state `{name}`: `{key}` is no part of an action, which has "
                self._fault(action.lines[key], f"{told}{', '.join(_ACTION)}")
        for key in ("module", "function"):
            if not isinstance(action.get(key), str):
                what = "is missing" if action.get(key) is None else "must be text"
                self._fault(action.lines.get(key, line), f"state `{name}`: `{key}` {what}")
        self._timeout_and_result(name, action)
        args = self._arguments(name, action)
        if len(self.faults) > before:
            return None
        return self._resolved(name, line, action, args)

    def _timeout_and_result(self, name: str, action: Located) -> None:
        timeout, result = action.get("timeout"), action.get("result")
        if timeout is not None and not (type(timeout) is int and 0 < timeout <= LONGEST_MS):
            told = f"state `{name}`: `timeout` must be a whole number of milliseconds"
            self._fault(action.lines["timeout"], told)
        if result is not None and not isinstance(result, str):
            self._fault(action.lines["result"], f"state `{name}`: `result` must be a name")

    def _arguments(self, name: str, action: Located) -> tuple[Any, ...]:
        args = action.get("args")
        if args is None:
            return ()
        if isinstance(args, dict):
            return (args,)
        if isinstance(args, list):
            return tuple(args)
        self._fault(action.lines["args"], f"state `{name}`: `args` must be a list or a mapping")
        return ()

    def _resolved(
        self, name: str, line: int, action: Located, args: tuple[Any, ...]
    ) -> Action | None:
        called = _called(action["module"], action["function"])
        if isinstance(called, str):
            self._fault(action.lines["module"], f"state `{name}`: {called}")
            return None
        module, function = called
        if module is Module.STEP and "result" in action:
            told = f"state `{name}`: `result` is for commands and programs alone"
            self._fault(action.lines["result"], told)
        at = action.lines.get("args", line)
        for told_line, told in self._argument_faults(module, function, args, at):
            self._fault(told_line, f"state `{name}`: {told}")
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
        named: Located = args[0] if args else Located()
        if module is Module.COMMAND:
            if told := self._command_fault(function, named):
                yield at, told
            return
        for argument, told in steps.argument_faults(Step(function), named):
            yield (named.lines[argument] if argument else at), told

    def _warn(
        self, name: str, line: int, action: Action | None, transitions: Mapping[str, str]
    ) -> None:
        """Adds what is allowed but leaves a procedure waiting for an event that nobody sends."""
        if action is None or not transitions:
            return
        events = set(transitions)
        expected = {SUCCESS}
        if action.function == Step.ASK and action.module is Module.STEP:
            return
        if action.function == Step.CONDITIONAL and action.module is Module.STEP:
            named = action.named
            expected = {
                str(named.get("true_event", "true")),
                str(named.get("false_event", "false")),
            }
        for event in sorted(expected - events):
            told = f"state `{name}`: its action ends with `{event}`, which leads nowhere"
            self.warnings.append(Fault(line=line, reason=f"{told}: it will wait there"))


def _called(module: str, function: str) -> tuple[Module, str] | str:
    """Returns what an action calls, or why it can't."""
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
    """Returns the states that can be reached, the initial one included."""
    seen, open_ = {initial}, [initial]
    while open_:
        for target in states[open_.pop()].transitions.values():
            if target in states and target not in seen:
                seen.add(target)
                open_.append(target)
    return seen


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


@frozen
class Reading:
    """What reading a file came to: a procedure where there are no faults."""

    procedure: Procedure | None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    """What is allowed but hardly meant."""


def read(data: bytes, command_fault: CommandFault = lambda *_: None) -> Reading:
    """Returns the procedure that a file's bytes say, with every fault and its line."""
    try:
        parts, header = _parts(data)
    except Unreadable as error:
        return Reading(procedure=None, faults=(Fault(line=error.line, reason=error.reason),))
    faults = list(_header_faults(header))
    states = Reader(command_fault)
    try:
        block = states_block(parts.body, parts.body_line)
        definition = yaml.load(block.text, block.line)
    except Unreadable as error:
        faults.append(Fault(line=error.line, reason=error.reason))
        return Reading(procedure=None, faults=_in_order(faults))
    found = states.read(definition, block.line)
    if faults or states.faults:
        return Reading(procedure=None, faults=_in_order([*faults, *states.faults]))
    return Reading(procedure=_procedure(header, definition, found), warnings=tuple(states.warnings))


def _procedure(
    header: Mapping[str, Any], definition: Mapping[str, Any], states: Mapping[str, State]
) -> Procedure:
    return Procedure(
        name=header["name"],
        version=_version(header["version"]),
        description=header.get("description") or "",
        active=header.get("active") is not False,
        timeout_ms=header.get("timeout_ms") or TIMEOUT_MS,
        max_retries=_given(header.get("max_retries"), MAX_RETRIES),
        rollback=header.get("rollback_procedure"),
        context_schema=plain(header.get("context_schema") or {}),
        initial_state=definition["initial_state"],
        states=states,
        definition=plain({key: definition[key] for key in ("initial_state", "states")}),
    )


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


def _parts(data: bytes) -> tuple[document.Document, yaml.Mapping]:
    parts = document.split(data)
    if parts.syntax != "yaml":
        raise Unreadable("no header: the file must begin with `---` and `name:`", 1)
    return parts, yaml.load(parts.header, 2)


def plain(value: Any) -> Any:
    """Returns data without the lines that it came with."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _in_order(faults: list[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.line or 0))


def _version(value: Any) -> str:
    """Returns a version as it was written: `1.0` without quotes is a number to YAML."""
    return repr(value) if isinstance(value, float) else str(value)


def _line(mapping: Any, key: Any) -> int:
    line: int = mapping.lines[key]
    return line


def _header_faults(header: yaml.Mapping) -> Iterator[Fault]:
    for key in header:
        if key not in KEYS:
            reason = f"`{key}` is no key of a procedure's header; what is your own goes under "
            yield Fault(line=_line(header, key), reason=f"{reason}`metadata`")
    for key in ("name", "version"):
        if header.get(key) is None:
            yield Fault(line=header.lines.get(key, 1), reason=f"`{key}` is missing")
    for key, check in _CHECKS.items():
        if header.get(key) is not None and (told := check(header[key])):
            yield Fault(line=_line(header, key), reason=told)
    schema = header.get("context_schema")
    if isinstance(schema, dict):
        yield from steps.faults(schema, _line)
    elif schema is not None:
        yield Fault(line=_line(header, "context_schema"), reason="context_schema is no mapping")


def _name_fault(value: Any) -> str | None:
    if isinstance(value, str) and NAME.fullmatch(value):
        return None
    return f"`name` must be letters, digits, `-` and `_`, 64 at most; not `{value}`"


def _version_fault(value: Any) -> str | None:
    good = VERSION.fullmatch(_version(value))
    return None if good else f"`version` must be two numbers such as 1.0, not `{value}`"


def _whole(key: str, low: int, high: int) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        good = type(value) is int and low <= value <= high
        return None if good else f"`{key}` must be a whole number from {low} to {high}"

    return check


def _rollback_fault(value: Any) -> str | None:
    good = isinstance(value, str) and split_reference(value)
    return None if good else f"`rollback_procedure` must be `name` or `name@1.0`, not `{value}`"


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "name": _name_fault,
    "version": _version_fault,
    "description": lambda value: (
        None if isinstance(value, str) else "`description` must be text; put it in quotes"
    ),
    "active": lambda value: None if isinstance(value, bool) else "`active` must be true or false",
    "timeout_ms": _whole("timeout_ms", 1, LONGEST_MS),
    "max_retries": _whole("max_retries", 0, MOST_RETRIES),
    "rollback_procedure": _rollback_fault,
}
