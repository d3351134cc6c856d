"""Mind's own commands as actions of procedures, on the path of all surfaces."""

from collections.abc import Mapping, Sequence
from typing import Any

from mimo.commands import all_commands, called, near
from mimo.commands.arguments import choose, decode
from mimo.commands.invoke import Caller, invoke
from mimo.commands.spec import OPERATION, Spec, Surface, to_json
from mimo.errors import Denied, Invalid
from mimo.mind import Mind

TOOLSET = "procedures"
"""The toolset that procedures can't call: procedures that start each other might never end."""


def fault(name: str, arguments: Mapping[str, Any]) -> str | None:
    """Returns why a procedure can't call a command with arguments of these names, or None."""
    tools = all_commands().tools()
    specs = called(tools, name)
    if specs is None:
        nearest = near(tools, name, "slash")
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        return f"there is no command `{name}`{hint}"
    if specs[0].toolset == TOOLSET:
        return f"a procedure can't call `{name}`: procedures don't run procedures"
    return _argument_fault(specs, arguments)


def _argument_fault(specs: Sequence[Spec], arguments: Mapping[str, Any]) -> str | None:
    name = specs[0].name
    params = [p for spec in specs for p in spec.params if Surface.MCP in p.arg.surfaces]
    accepted = {word for param in params for word in (param.name, *param.aliases)}
    if specs[0].operation:
        accepted.add(OPERATION)
    for given in arguments:
        if given not in accepted:
            takes = f"it takes {', '.join(sorted(accepted))}" if accepted else "it takes none"
            return f"`{name}` takes no argument `{given}`; {takes}"
    for param in params if len(specs) == 1 else ():
        if param.required and not {param.name, *param.aliases} & {*arguments}:
            return f"`{name}` needs the argument `{param.name}`"
    return None


def call(mind: Mind, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the result of a command as JSON; its caller is that of the procedure.

    Raises `MindError`.
    """
    if reason := fault(name, arguments):
        raise Denied(reason)
    spec, rest = choose(called(all_commands().tools(), name) or (), arguments)
    decode(spec, rest, Surface.MCP)  # arguments of the command line alone are for people
    is_person = mind.author is None and Surface.CLI in spec.surfaces
    surface = Surface.CLI if is_person else Surface.MCP
    caller = Caller(surface=surface, name=mind.author, agent=mind.agent)
    answer = to_json(invoke(spec, mind, caller, rest))
    if not isinstance(answer, dict):
        raise Invalid(f"the result of `{name}` is not an object")
    return answer
