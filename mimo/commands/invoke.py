"""The one path from any surface to a command."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimo.commands.arguments import decode
from mimo.commands.spec import Spec, Surface
from mimo.errors import Denied, Internal, MindError, StorageFailed
from mimo.frozen import frozen

if TYPE_CHECKING:
    from mimo.mind import Mind


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
    values = decode(spec, arguments, caller.surface)
    try:
        if spec.needs_project:
            _ = mind.project
        return spec.function(mind.acting_as(_author(caller)), **values)
    except MindError:
        raise
    except OSError as error:
        raise _storage_failed(error) from error
    except Exception as error:
        raise fault() from error


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
