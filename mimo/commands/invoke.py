"""The one path from any surface to a command."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimo import disk
from mimo.commands.arguments import decode
from mimo.commands.spec import Effect, Spec, Surface
from mimo.errors import Denied, Internal, MindError, NoProject
from mimo.frozen import frozen
from mimo.guard import privacy
from mimo.guard.audit import Ending, ended_by
from mimo.guard.guard import span
from mimo.guard.policy import Call
from mimo.memory.ids import check_namespace

if TYPE_CHECKING:
    from mimo.guard.privacy import Redacted
    from mimo.mind import Mind

_NAMING = ("namespace", "key", "context", "ttl_seconds")


@frozen
class Caller:
    """Who asks, and through what."""

    surface: Surface
    name: str | None = None
    """The program that asks, such as `claude-code`; what it writes is signed with it."""
    agent: str | None = None
    """The agent that runs the command line in its shell, which a policy binds as any other."""
    allows_secrets: bool = False
    """Whether a person said that what looks like a secret is to be stored."""


def invoke(spec: Spec, mind: "Mind", caller: Caller, arguments: Mapping[str, Any]) -> object:
    """Returns the result of a command, whose arguments are as the surface got them.

    Raises `MindError`s only: those that the command documents, `Invalid` for wrong arguments,
    `NoProject` where it needs one, and `Internal` (with the true error as its cause) for anything
    unforeseen. Whatever must hold for every call, on every surface, is a step of this function.
    """
    if caller.surface not in spec.surfaces:
        raise Denied(f"`{spec.key}` is not offered here")
    if not spec.needs.diagnosis:
        mind.check()
    mind = mind.acting_as(_author(caller))
    mind.agent = _agent(caller)
    mind.allows_secrets = caller.allows_secrets
    for about in ("trust", "checkpoint"):
        mind.note(about, None)  # An earlier call's: in this one, no success hides a failure.
    try:
        with disk.shared():
            return _guarded(spec, mind, caller, arguments)
    except MindError as error:
        privacy.redact_error(error, personal=spec.is_of_values, key=_key(spec, arguments))
        raise
    except OSError as error:
        failed = _storage_failed(error)
        privacy.redact_error(failed, personal=spec.is_of_values, key=_key(spec, arguments))
        raise failed from error
    except Exception as error:
        raise fault() from error


def _key(spec: Spec, arguments: Mapping[str, Any]) -> str | None:
    """Returns the key of a value that a call names."""
    key = arguments.get(spec.needs.key) if spec.needs.key else None
    return key if isinstance(key, str) else None


def _guarded(spec: Spec, mind: "Mind", caller: Caller, arguments: Mapping[str, Any]) -> object:
    """Returns the result of a call that passes every step; what comes of it is recorded."""
    call, guard = _call(spec, mind, caller), mind.guard
    ending, started = Ending(), mind.timer.monotonic()
    try:
        with span("memory.tool", _attributes(call)):
            values = decode(spec, arguments, caller.surface)
            if spec.needs_project:
                _ = mind.project
            call = _named(call, spec, values)
            with span("memory.permission_check", _attributes(call)):
                guard.authorise(call)
            guard.limit(call)
            guard.check_record(call)
            values = _admitted(spec, mind, values)
            with _recorded(spec, mind, call):
                done = spec.function(mind, **values)
            result = _redacted(spec, done)
        ending = Ending(redactions=len(result.kinds))
        return result.value
    except BaseException as error:
        ending = ended_by(error)
        raise
    finally:
        guard.record(call, replace(ending, seconds=mind.timer.monotonic() - started))


def _recorded(spec: Spec, mind: "Mind", call: Call) -> AbstractContextManager[object]:
    """Lets what a command removes or replaces go to the trash first."""
    if spec.effect is Effect.READ or not (spec.needs_project or _has_project(mind)):
        return nullcontext()
    from mimo.operations.undoing import recorded

    return recorded(
        mind,
        call,
        command=spec.path,
        is_tool=Surface.MCP in spec.surfaces,
        memory_only=not spec.needs_project,
    )


def _has_project(mind: "Mind") -> bool:
    try:
        return mind.has_project
    except NoProject:
        return False


def _redacted(spec: Spec, result: object) -> "Redacted[object]":
    """Returns a result without what nobody may see, and the kinds of that."""
    with span("memory.pii_filtering", {"tool_name": spec.name}) as tracing:
        shown = privacy.redacted(result, personal=spec.is_of_values)
        if tracing is not None:
            tracing.set_attribute("redactions", len(shown.kinds))
    return shown


def _attributes(call: Call) -> dict[str, str | None]:
    """Returns what a span tells of a call."""
    return {
        "tool_name": call.tool,
        "operation": call.operation.value,
        "namespace": call.namespace,
    }


def _admitted(spec: Spec, mind: "Mind", values: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments as they may be stored; raises `SecretDetected` and `PiiDetected`.

    What a command itself holds against what is there already is left to it.
    """
    if spec.effect is not Effect.WRITE:
        return values
    given = {
        param.name: values[param.attribute]
        for param in spec.params
        if param.attribute in values and not param.arg.compared
    }
    if not mind.allows_secrets:
        privacy.check_secrets(given, by_person=mind.author is None)
    if not spec.is_of_values:
        return values
    return privacy.admitted(
        values, mind.guard.on_write, names=(spec.needs.namespace, spec.needs.key)
    )


def _call(spec: Spec, mind: "Mind", caller: Caller) -> Call:
    """Returns what is known of a call before its arguments are."""
    return Call(
        tool=spec.name,
        like=spec.like,
        operation=spec.needs.operation,
        diagnosis=spec.needs.diagnosis,
        governed=not spec.needs.person or _agent(caller) is not None,
        agent=_agent(caller),
        at=mind.now(),
    )


def _named(call: Call, spec: Spec, values: Mapping[str, Any]) -> Call:
    """Returns the call with what its arguments name; raises `Invalid` for a name that is none."""
    needs = spec.needs
    if needs.namespace is None and needs.context is None:
        return call
    said = {
        part: values[parameter]
        for part, parameter in needs._asdict().items()
        if part in _NAMING and parameter is not None
    }
    if "namespace" in said:
        check_namespace(said["namespace"])
    return replace(call, **said)


def _author(caller: Caller) -> str | None:
    """Returns whom a call acts for: None for a person, never for an agent without a name."""
    return caller.name or ("mcp" if caller.surface is Surface.MCP else None)


def _agent(caller: Caller) -> str | None:
    """Returns the program that asks; None for a person."""
    return _author(caller) or caller.agent


def _storage_failed(error: OSError) -> MindError:
    from mimo.mind import no_working_directory
    from mimo.store.files import failure
    from mimo.surroundings import working_directory

    if error.filename is None and working_directory() is None:
        return no_working_directory()
    return failure("use", Path(str(error.filename or "a file")), error)


def fault() -> Internal:
    """Returns what is said of an unforeseen error, whose own text may hold a memory."""
    return Internal(
        "something went wrong inside mind; nothing was lost",
        hint="set MIND_DEBUG=1 to see what, and report it",
    )
