"""Reads a procedure's Markdown: the procedure, or every fault with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mimo.features.procedures import schemas, steps
from mimo.features.procedures.model import (
    LONGEST_MS,
    MAX_RETRIES,
    MOST_RETRIES,
    NAME,
    OWN_FACTS,
    SUCCESS,
    TIMEOUT_MS,
    Action,
    Module,
    Procedure,
    State,
    Step,
    is_version,
    unknown_facts,
)
from mimo.features.procedures.steps import anything, is_mapping, is_text, must
from mimo.frozen import frozen
from mimo.memory.codec import document
from mimo.memory.codec.document import Unreadable
from mimo.memory.codec.front_matter import Fault, Located, Place

CommandFault = Callable[[str, Mapping[str, Any]], str | None]
"""Returns why an action can't call the command of that name with these arguments, or None."""

_DEEPEST = 16
_TOP = ("initial_state", "states", "name", "version", "context_schema")
_WORD = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_UPSTREAM = "Mimo.ProceduralStore.Steps."
"""The prefix of the built-in steps in definitions written for Mimo."""
_REQUEST = (
    "the step `http_request` is not supported any more; run a program instead, such as "
    "`{module: shell, function: run, args: [curl, --fail, URL]}`"
)
_STEPS = {"".join(part.title() for part in step.split("_")): step for step in Step}
_BLOCK = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w-]*).*\n"
    r"(?P<text>(?:.*\n)*?)"
    r"(?:(?P<end>[ \t]*(?P=fence)[`~]*[ \t\r]*$)|\Z)",
    re.MULTILINE,
)
"""A fenced block; one that is never closed reaches to the end of the text."""
_STATES = re.compile(r"^[ \t{\"]*(?:states|initial_state)\"?[ \t]*:", re.MULTILINE)


def _integer_check(low: int, high: int) -> steps.Check:
    test = range(low, high + 1).__contains__
    return must(lambda n: type(n) is int and test(n), f"be a whole number from {low} to {high}")


_HEADER: dict[str, steps.Check] = {
    "name": must(
        lambda name: isinstance(name, str) and NAME.fullmatch(name),
        "be letters, digits, `-` and `_`, 64 at most",
    ),
    "version": must(
        lambda version: is_version(_version(version)), "be a version such as 1.0 or 1.0.2"
    ),
    "description": must(is_text, "be text in quotes"),
    "active": must(lambda active: isinstance(active, bool), "be true or false"),
    "timeout_ms": _integer_check(1, LONGEST_MS),
    "max_retries": _integer_check(0, MOST_RETRIES),
    "rollback_procedure": lambda _: (
        "is not supported any more; let the transition on `error` of a state lead to states that "
        "undo its work"
    ),
    "context_schema": must(is_mapping, "be a mapping"),
    "metadata": anything,
}
_ACTION: dict[str, steps.Check] = {
    "module": must(is_text, "be text"),
    "function": must(is_text, "be text"),
    "args": must(lambda args: isinstance(args, dict | list), "be a list or a mapping"),
    "timeout": _integer_check(1, LONGEST_MS),
    "result": must(is_text, "be a name"),
}


@frozen
class Reading:
    """The result of reading a file: a procedure unless there are faults."""

    procedure: Procedure | None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    """Valid parts that are probably mistakes."""


def read(data: bytes, command_fault: CommandFault | None = None) -> Reading:
    """Returns the procedure in a file's bytes, or every fault with its line.

    Without `command_fault`, as for a list or a run that has begun, the calls of commands are not
    checked, and the schema is not compared with the standard.
    """
    faults: list[Fault] = []
    try:
        parts = document.split(data)
        header = _header(parts)
        faults += [
            Fault(header.line(place), reason)
            for place, reason in _header_faults(header, command_fault)
        ]
        block, line = _states_block(parts.body, parts.body_line)
        definition = Located(block, first_line=line, deepest=_DEEPEST)
        reader = _DefinitionReader(definition.data, command_fault or (lambda *_: None))
        states = reader.states()
        faults += [Fault(definition.line(place), reason) for place, reason in reader.faults]
        if not faults:
            warnings = [Fault(definition.line(place), text) for place, text in reader.warnings]
            procedure = _procedure(header.data, definition.data, states)
            return Reading(procedure=procedure, warnings=tuple(warnings))
    except Unreadable as error:
        faults.append(Fault(error.line, error.reason))
    faults.sort(key=lambda fault: fault.line or 0)
    return Reading(procedure=None, faults=tuple(faults))


def _header(parts: document.Document) -> Located:
    if parts.syntax != "yaml":
        raise Unreadable("no header: the file must begin with `---` and `name:`", 1)
    return Located(parts.header, first_line=2, deepest=_DEEPEST)


def _procedure(
    header: Mapping[str, Any], definition: Mapping[str, Any], states: Mapping[str, State]
) -> Procedure:
    fields = {key: value for key, value in header.items() if value is not None}
    return Procedure(
        name=fields["name"],
        version=_version(fields["version"]),
        description=fields.get("description", ""),
        active=fields.get("active", True),
        timeout_ms=fields.get("timeout_ms", TIMEOUT_MS),
        max_retries=fields.get("max_retries", MAX_RETRIES),
        context_schema=fields.get("context_schema", {}),
        initial_state=definition["initial_state"],
        states=states,
        definition={key: definition[key] for key in ("initial_state", "states")},
    )


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
        line = blocks[0][1] - 1
        raise Unreadable(f"states a second time: the first are on line {line}", blocks[1][1] - 1)
    return blocks[0]


def _yaml_blocks(body: str, first_line: int) -> list[tuple[str, int]]:
    blocks = []
    line, counted = first_line, 0
    for block in _BLOCK.finditer(f"{body}\n"):
        line += body.count("\n", counted, block.start("text"))
        counted = block.start("text")
        if block["language"].lower() in ("yaml", "yml"):
            if block["end"] is None:
                raise Unreadable("the block that begins here is never closed by a fence", line - 1)
            blocks.append((block["text"], line))
    return blocks


def _header_faults(
    header: Located, command_fault: CommandFault | None
) -> Iterator[tuple[Place, str]]:
    for key in ("name", "version"):
        if header.data.get(key) is None:
            yield (key,), f"`{key}` is missing"
    unknown = "is not a key of a procedure's header; put your own under `metadata`"
    for key, reason in steps.faults(header.data, _HEADER, unknown, nulls=True):
        yield (key,), reason
    schema = header.data.get("context_schema")
    if isinstance(schema, dict):
        for place, reason in schemas.faults(schema, by_standard=command_fault is not None):
            yield ("context_schema", *place), f"context_schema: {reason}"


def _version(value: Any) -> str:
    """Returns a version as it was written: `1.0` without quotes is a number to YAML."""
    return repr(value) if isinstance(value, float) else str(value)


class _DefinitionReader:
    """Reads one definition, and collects its faults and warnings with their places."""

    def __init__(self, definition: Mapping[str, Any], command_fault: CommandFault) -> None:
        self.faults: list[tuple[Place, str]] = []
        self.warnings: list[tuple[Place, str]] = []
        self._definition = definition
        self._command_fault = command_fault

    def states(self) -> dict[str, State]:
        """Returns the states, which are complete only if there are no `faults`."""
        for key in self._definition:
            if key not in _TOP:
                self._fault((key,), f"`{key}` is not initial_state or states")
        for key in ("initial_state", "states"):
            if key not in self._definition:
                self._fault((), f"`{key}` is missing")
        listed = self._definition.get("states", {})
        if not isinstance(listed, dict):
            self._fault(("states",), "`states` must be a mapping of names to states")
            return {}
        if "states" in self._definition and not listed:
            self._fault(("states",), "`states` is empty")
        states = {name: self._state(name, content) for name, content in listed.items()}
        if "initial_state" in self._definition and states:
            self._check_reachable(states)
        return states

    def _fault(self, place: Place, reason: str) -> None:
        self.faults.append((place, reason))

    def _check_reachable(self, states: Mapping[str, State]) -> None:
        """Adds a fault for a missing initial state, and for each unreachable state."""
        initial = self._definition["initial_state"]
        if not isinstance(initial, str):
            reason = f"`initial_state` must be the name of a state, not `{initial}`"
            self._fault(("initial_state",), reason)
            return
        if initial not in states:
            reason = f"there is no state `{initial}`; states are {', '.join(states)}"
            self._fault(("initial_state",), f"`initial_state`: {reason}")
            return
        reached, left = {initial}, [initial]
        while left:
            for target in states[left.pop()].transitions.values():
                if target in states and target not in reached:
                    reached.add(target)
                    left.append(target)
        for name in states:
            if name not in reached:
                reason = f"state `{name}` can't be reached from `{initial}`"
                self._fault(("states", name), reason)

    def _state(self, name: str, content: Any) -> State:
        place = ("states", name)
        if not _WORD.fullmatch(name):
            self._fault(place, f"`{name}` is not a name of a state")
        if content is None:
            return State(transitions={})
        if not isinstance(content, dict):
            reason = f"state `{name}` must be a mapping with `action` and `transitions`"
            self._fault(place, reason)
            return State(transitions={})
        for key in content:
            if key not in ("action", "transitions"):
                self._fault((*place, key), f"state `{name}`: `{key}` is not a part of a state")
        action = content.get("action")
        state = State(
            action=None if action is None else self._action(place, action),
            transitions=self._transitions(place, content.get("transitions")),
        )
        for event in sorted(_events(state.action) - state.transitions.keys()):
            if state.transitions:
                reason = f"its action ends with `{event}`, which has no transition"
                self.warnings.append((place, f"state `{name}`: {reason}: it will wait there"))
        return state

    def _transitions(self, state: Place, items: Any) -> dict[str, str]:
        if items is None:
            return {}
        where = f"state `{state[-1]}`:"
        if not isinstance(items, list):
            self._fault((*state, "transitions"), f"{where} `transitions` must be a list")
            return {}
        transitions: dict[str, str] = {}
        for number, item in enumerate(items):
            place = (*state, "transitions", number)
            if self._check_transition(place, f"{where} a transition", item):
                if item["event"] in transitions:
                    self._fault(place, f"{where} event `{item['event']}` appears twice")
                transitions[item["event"]] = item["target"]
        return transitions

    def _check_transition(self, place: Place, where: str, item: Any) -> bool:
        """Returns whether a transition has no fault."""
        if not isinstance(item, dict):
            self._fault(place, f"{where} must be a mapping with `event` and `target`")
            return False
        fault_count = len(self.faults)
        for key in item:
            if key not in ("event", "target"):
                self._fault((*place, key), f"{where} has no `{key}`")
        for key in ("event", "target"):
            value = item.get(key)
            if value is None:
                self._fault(place, f"{where} needs `{key}`")
            elif not isinstance(value, str) or not _WORD.fullmatch(value):
                reason = f"{where}: `{key}` must be text, not `{value}`; put it in quotes"
                self._fault((*place, key), reason)
            elif key == "target" and value not in self._definition["states"]:
                self._fault((*place, key), f"{where} leads to `{value}`, which is not a state")
        return len(self.faults) == fault_count

    def _action(self, state: Place, action: Any) -> Action | None:
        """Returns an action, or None if it has a fault."""
        place, where = (*state, "action"), f"state `{state[-1]}`:"
        if not isinstance(action, dict):
            self._fault(place, f"{where} `action` must be a mapping")
            return None
        fault_count = len(self.faults)
        unknown = f"is not a part of an action, which has {', '.join(_ACTION)}"
        for key, reason in steps.faults(action, _ACTION, unknown, nulls=True):
            self._fault((*place, key), f"{where} {reason}")
        for key in ("module", "function"):
            if action.get(key) is None:
                self._fault(place, f"{where} `{key}` is missing")
        if len(self.faults) > fault_count:
            return None
        target = _called(action["module"], action["function"])
        if isinstance(target, str):
            self._fault((*place, "module"), f"{where} {target}")
            return None
        module, function = target
        if module is Module.STEP and "result" in action:
            reason = "`result` is only for commands and programs"
            self._fault((*place, "result"), f"{where} {reason}")
        value = action.get("args")
        args = () if value is None else (value,) if isinstance(value, dict) else tuple(value)
        inside = (*place, "args") if isinstance(value, dict) else (*place, "args", 0)
        for below, reason in self._argument_faults(module, function, args):
            at = (*inside, *below) if below else (*place, "args")
            self._fault(at, f"{where} {reason}")
        return Action(
            module=module,
            function=function,
            args=args,
            timeout_ms=action.get("timeout"),
            result=action.get("result"),
        )

    def _argument_faults(
        self, module: Module, function: str, args: tuple[Any, ...]
    ) -> Iterator[tuple[Place, str]]:
        """Yields the faults of arguments, with their places within the first one."""
        names = steps.names_read(args) if module is Module.STEP else ()
        for name in unknown_facts(args, names):
            facts = ", ".join(OWN_FACTS)
            yield (), f"`{{{{{name}}}}}` is not a value of a run, which has {facts}"
        if module is Module.SHELL:
            if not args or not all(isinstance(word, str | int) for word in args):
                yield (), "`shell` needs `args`, a list of the program and its words"
            elif "{{" in str(args[0]):
                yield (), f"the program `{args[0]}` can't come from the context; its words can"
        elif len(args) > 1 or (args and not isinstance(args[0], dict)):
            yield (), f"`{function}` takes one mapping of arguments"
        elif module is Module.STEP:
            yield from steps.argument_faults(Step(function), args[0] if args else {})
        elif reason := self._command_fault(function, args[0] if args else {}):
            yield (), reason


def _events(action: Action | None) -> set[str]:
    """Returns the events that a successful action ends with; those of `ask` are the answers."""
    if action is None or (action.module, action.function) == (Module.STEP, Step.ASK):
        return set()
    if (action.module, action.function) == (Module.STEP, Step.CONDITIONAL):
        return {str(action.named.get(f"{word}_event", word)) for word in ("true", "false")}
    return {SUCCESS}


def _called(module: str, function: str) -> tuple[Module, str] | str:
    """Returns the function that an action calls, or why it can't be called."""
    if (module, function) == (Module.STEP, "http_request") or module == f"{_UPSTREAM}HttpRequest":
        return _REQUEST
    if module.startswith(_UPSTREAM):
        step = _STEPS.get(module.removeprefix(_UPSTREAM).removesuffix("Step"))
        return (Module.STEP, step) if step else f"there is no step `{module}`"
    if module not in tuple(Module):
        modules = ", ".join(Module)
        return f"`module` must be one of {modules}, not `{module}`; nothing else is ever loaded"
    if module == Module.STEP and function not in tuple(Step):
        return f"there is no step `{function}`; steps are {', '.join(Step)}"
    if module == Module.SHELL and function != "run":
        return f"`shell` has one function, `run`, not `{function}`"
    return Module(module), function
