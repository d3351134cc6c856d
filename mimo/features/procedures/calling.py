"""Mind's own commands as actions of procedures, on the path of all surfaces."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from mimo.call import Call, Caller, Permissions, Surface
from mimo.call.arguments import choose, decode
from mimo.call.extensions import named
from mimo.call.spec import OPERATION, Effect, Spec, to_json
from mimo.call.table import all_commands, called, near
from mimo.errors import Denied, Invalid, MindError
from mimo.frozen import replace
from mimo.operations.invoke import invoke
from mimo.project import projects

TOOLSET = "procedures"
"""The toolset that procedures can't call: procedures that start each other might never end."""

UNKNOWN = {"author": "mcp", "agent": "mcp"}
"""The caller of a run that an earlier version of mind began, as recorded since: any agent."""


def fault(name: str, arguments: Mapping[str, Any]) -> str | None:
    """Returns why a procedure can't call a command with arguments of these names, or None."""
    tools = all_commands().tools()
    specs = called(tools, name)
    if specs is None:
        return f"there is no command `{name}`{near(tools, name, 'slash')}"
    if specs[0].toolset == TOOLSET:
        return f"a procedure can't call `{name}`: procedures don't run procedures"
    return _argument_fault(specs, arguments)


def _argument_fault(specs: Sequence[Spec], arguments: Mapping[str, Any]) -> str | None:
    name = specs[0].name
    params = [p for spec in specs for p in spec.params if Surface.MCP in p.arg.surfaces]
    accepted = {word for param in params for word in (param.name, *param.aliases)}
    if specs[0].operation:
        accepted.add(OPERATION)
    for argument in arguments:
        if argument not in accepted:
            takes = f"it takes {', '.join(sorted(accepted))}" if accepted else "it takes none"
            return f"`{name}` takes no argument `{argument}`; {takes}"
    for param in params if len(specs) == 1 else ():
        if param.required and not {param.name, *param.aliases} & {*arguments}:
            return f"`{name}` needs the argument `{param.name}`"
    return None


def run_command(call: Call, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the result of a command as JSON; its caller is that of the procedure.

    Raises `MindError`.
    """
    if reason := fault(name, arguments):
        raise Denied(reason)
    spec, values = choose(called(all_commands().tools(), name) or (), arguments)
    decode(spec, values, Surface.MCP)  # arguments of the command line alone are for people
    is_person = call.author is None and Surface.CLI in spec.surfaces
    surface = Surface.CLI if is_person else Surface.MCP
    caller = Caller(
        surface=surface,
        name=call.author,
        agent=call.agent,
        permissions=call.permissions,
        sees_sessions=False,
    )
    nested = call.by(caller)
    with nullcontext() if spec.effect is Effect.READ else call.console.committing():
        answer = to_json(invoke(spec, nested, values))
    call.notices.update(nested.notices)  # The caller of the run may show them.
    if not isinstance(answer, dict):
        raise Invalid(f"the result of `{name}` is not an object")
    return answer


# The caller of a run, who is recorded with it: a run may go on in another process.


def caller_of(call: Call) -> dict[str, str | None]:
    """Returns the caller as it is recorded: the program, the agent, and the user of a server."""
    return {
        "author": call.author,
        "agent": call.agent,
        "user": call.account,
        "tokens": call.permissions.reference if call.permissions else None,
    }


def for_caller(call: Call, recorded: Sequence[Mapping[str, str | None]]) -> Call:
    """Returns the memory as a run uses it that the recorded callers began and continued.

    If one of them was an agent, the run acts as an agent, also if a person continues it now. One
    of several users of a server has the present rights. Raises `Denied` if another user of it
    continues the run, or if the rights are not valid for the project any more.
    """
    author, agent, user, tokens = map(_caller(recorded).get, ("author", "agent", "user", "tokens"))
    permissions = call.permissions
    if user is not None and permissions is None:
        permissions = _permissions(call, user, tokens)
    elif user is not None:
        check_user(call, recorded)
    name = call.author or author
    actor = name or call.agent or agent
    return call.by(replace(call.caller, name=name, agent=actor, permissions=permissions))


def check_user(call: Call, recorded: Sequence[Mapping[str, str | None]]) -> None:
    """Raises `Denied` if one of several users would act on a run of another."""
    if call.permissions is not None and call.account != _caller(recorded).get("user"):
        raise Denied(
            "another user began or continued the run",
            hint="only that user can continue it: run the procedure again",
        )


def _caller(recorded: Sequence[Mapping[str, str | None]]) -> Mapping[str, str | None]:
    """Returns the last agent of recorded callers; nothing if none was an agent."""
    return next((each for each in reversed(recorded) if each.get("agent")), {})


def _permissions(call: Call, user: str, reference: str | None) -> Permissions:
    """Returns the rights of a recorded user. Raises `Denied` unless they are valid."""
    registered = projects.registered(call.mind.home).projects
    for stated in named("permissions") if reference else ():
        permissions: Permissions | None = stated(reference, user)
        if (
            permissions is not None
            and permissions.is_current(call.mind.now())
            and permissions.may_open(call.mind.project.root, registered)
        ):
            return permissions
    raise Denied(
        f"the token of `{user}`, who began or continued the run, is not valid for this project",
        hint="run the procedure again",
    )


def validity(call: Call) -> Callable[[], bool]:
    """Returns a function that returns whether the rights of the caller are still valid."""

    def is_valid() -> bool:
        with suppress(MindError):
            return call.permissions is None or call.permissions.is_current(call.mind.now())
        return False

    return is_valid
