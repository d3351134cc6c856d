"""The one path from any surface to a command."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimo.commands.arguments import decode
from mimo.commands.spec import Spec, Surface
from mimo.domain.names import check_namespace
from mimo.errors import Denied, Internal, MindError, StorageFailed
from mimo.frozen import frozen
from mimo.guard.call import Call

if TYPE_CHECKING:
    from mimo.mind import Mind


_NAMING = ("namespace", "key", "context", "ttl_seconds")


@frozen
class Caller:
    """Who asks, and through what."""

    surface: Surface
    name: str | None = None
    """The program that asks, such as `claude-code`; what it writes is signed with it."""


def invoke(spec: Spec, mind: "Mind", caller: Caller, arguments: Mapping[str, Any]) -> object:
    """Returns the result of a command, whose arguments are as the surface got them.

    Raises `MindError`s only: those that the command documents, `Invalid` for wrong arguments,
    `NoProject` where it needs one, and `Internal` (with the true error as its cause) for anything
    unforeseen. Whatever must hold for every call, on every surface, is a step of this function.
    """
    if caller.surface not in spec.surfaces:
        raise Denied(f"`{spec.key}` is not offered here")
    mind = mind.acting_as(_author(caller))
    try:
        return _guarded(spec, mind, caller, arguments)
    except MindError:
        raise
    except OSError as error:
        raise _storage_failed(error) from error
    except Exception as error:
        raise fault() from error


def _guarded(spec: Spec, mind: "Mind", caller: Caller, arguments: Mapping[str, Any]) -> object:
    """Returns the result of a call that passes every step; what comes of it is recorded."""
    call, done = _call(spec, mind, caller), False
    guard = mind.guard
    try:
        values = decode(spec, arguments, caller.surface)
        if spec.needs_project:
            _ = mind.project
        call = _named(call, spec, values)
        guard.authorise(call)
        guard.limit(call)
        result = spec.function(mind, **values)
        done = True
        return result
    finally:
        guard.record(call, success=done)


def _call(spec: Spec, mind: "Mind", caller: Caller) -> Call:
    """Returns what is known of a call before its arguments are."""
    return Call(
        tool=spec.name,
        replaced=spec.instead.split()[0] if spec.instead else None,
        operation=spec.needs.operation,
        diagnosis=spec.needs.diagnosis,
        governed=Surface.MCP in spec.surfaces,
        agent=_author(caller),
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


def _storage_failed(error: OSError) -> StorageFailed:
    from mimo.store.files import failure

    return failure("use", Path(str(error.filename or "a file")), error)


def fault() -> Internal:
    """Returns what is said of an unforeseen error, whose own text may hold a memory."""
    return Internal(
        "something went wrong inside mind; nothing was lost",
        hint="set MIND_DEBUG=1 to see what, and report it",
    )
