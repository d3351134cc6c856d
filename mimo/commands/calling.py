"""The command set as procedures call it: by name, on the path that every surface takes."""

from collections.abc import Mapping, Sequence
from typing import Any

from mimo.commands import all_commands
from mimo.commands.arguments import choose, decode
from mimo.commands.invoke import Caller, invoke
from mimo.commands.registry import Registry
from mimo.commands.schema import OPERATION, to_json
from mimo.commands.spec import Spec, Surface
from mimo.commands.tools import called, near
from mimo.errors import Denied, Invalid
from mimo.mind import Mind

OWN = "procedures"
"""The toolset that procedures can't call: one that starts another could go on for ever."""


class CommandSet:
    """Mind's own commands for procedures; they are loaded with the first question."""

    def __init__(self, registry: Registry | None = None) -> None:
        """Take the table of commands."""
        self._registry = registry

    def _tools(self) -> Mapping[str, Any]:
        self._registry = self._registry or all_commands()
        return self._registry.tools()

    def fault(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Returns why a procedure can't call that command with arguments of these names."""
        specs = called(self._tools(), name)
        if specs is None:
            nearest = near(self._tools(), name, "slash")
            told = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
            return f"there is no command `{name}`{told}"
        if specs[0].toolset == OWN:
            return f"a procedure can't call `{name}`: procedures don't run procedures"
        return _argument_fault(specs, arguments)

    def call(self, mind: Mind, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what a command answers, as JSON. Raises `MindError`."""
        if told := self.fault(name, arguments):
            raise Denied(told)
        spec, rest = choose(called(self._tools(), name) or (), arguments)
        decode(spec, rest, Surface.MCP)  # what only the command line takes is for people
        answer = to_json(invoke(spec, mind, _caller(spec, mind), rest))
        if not isinstance(answer, dict):
            raise Invalid(f"`{name}` answers with no object")
        return answer


def _argument_fault(specs: Sequence[Spec], arguments: Mapping[str, Any]) -> str | None:
    """Returns which argument no operation of a command takes, or which its only one needs."""
    name = specs[0].name
    params = [p for spec in specs for p in spec.params if Surface.MCP in p.arg.surfaces]
    taken = {word for param in params for word in (param.name, *param.aliases)}
    if specs[0].operation:
        taken.add(OPERATION)
    for given in arguments:
        if given not in taken:
            known = f"it takes {', '.join(sorted(taken))}" if taken else "it takes none"
            return f"`{name}` takes no argument `{given}`; {known}"
    for param in params if len(specs) == 1 else ():
        if param.required and not {param.name, *param.aliases} & {*arguments}:
            return f"`{name}` needs the argument `{param.name}`"
    return None


def _caller(spec: Spec, mind: Mind) -> Caller:
    """Returns whom a procedure acts for: whoever runs it, so that a person's notes are theirs."""
    is_person = mind.author is None and Surface.CLI in spec.surfaces
    surface = Surface.CLI if is_person else Surface.MCP
    return Caller(surface=surface, name=mind.author, agent=mind.agent)
