"""The states of a definition, checked: all faults at once, each with its line."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mimo.domain.codec.located_yaml import Items
from mimo.domain.codec.located_yaml import Mapping as Located
from mimo.domain.procedures import steps
from mimo.domain.procedures.procedure import (
    LONGEST_MS,
    SUCCESS,
    Action,
    Fault,
    Module,
    State,
    Step,
)

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
