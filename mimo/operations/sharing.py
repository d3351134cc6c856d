"""The index that several projects share, which an extension offers."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Annotated, Protocol

from mimo.call import Call
from mimo.call.spec import Out
from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.mind import Mind


@frozen
class SharedRole:
    """The right of a role of the database."""

    role: Annotated[str, Out("Its name, or `everyone`")]
    right: Annotated[str, Out("`read`, `write`, or `admin`, who pushed the project first")]


@frozen
class Shared:
    """The state of the project in the shared index."""

    place: Annotated[str, Out("The server and the database")]
    memories: Annotated[int, Out("Memories that were pushed; private ones never are")]
    added: Annotated[int, Out("Memories that the shared index did not have")]
    removed: int
    vectors: Annotated[int, Out("Vectors that it did not have")]
    left_out: Annotated[int, Out("Memories that PostgreSQL can't store")]
    roles: Annotated[tuple[SharedRole, ...], Out("The roles of the database that may use it")]
    withdrawn: Annotated[bool, Out("Whether the project was removed from it")] = False


@frozen
class SharedState:
    """The state of this working copy in the shared index."""

    place: Annotated[str, Out("The server and the database")]
    pushed: Annotated[datetime, Out("When it was last pushed from here")]
    memories: Annotated[int, Out("Memories that were pushed; private ones never are")]
    changes: Annotated[int | None, Out("About the number of changes since; null if not known")]


class SharedIndex(Protocol):
    """The functions of the module that an extension names. Each may raise `MindError`."""

    def publish(self, call: Call, levels: Mapping[str, str], *, join: bool) -> Shared:
        """Pushes the project, and gives `read` or `write` to roles."""

    def restrict(self, call: Call, revoked: Sequence[str], *, withdraw: bool) -> Shared:
        """Takes the rights of roles, or withdraws the project."""

    def push_if_behind(self, call: Call) -> object:
        """Pushes what changed since the last push; nothing if the project was never pushed."""

    def state(self, call: Call) -> SharedState | None:
        """Returns the state as last pushed from here; None if nothing was."""

    def described(self, call: Call) -> str:
        """Returns the state for `mind doctor`, after asking the server."""

    def fetch_vectors(self, call: Call) -> object:
        """Gets vectors that others have made. Does nothing if the server can't be used."""


def url_of(mind: Mind) -> str:
    """Returns the URL of the shared index; empty if no setting names one."""
    return mind.environ.get("MIND_INDEX_URL") or str(mind.config["index.url"] or "")


def shared_index(call: Call) -> SharedIndex:
    """Returns the functions of the shared index. Raises `Invalid` if no extension has them."""
    from mimo.call.extensions import extensions

    for extension in extensions().values():
        if extension.shared_index:
            module: SharedIndex = import_module(extension.shared_index)
            return module
    raise Invalid(
        "no extension of mind that is installed offers a shared index",
        hint="install mind with its extension `team`, or remove the setting `index.url`",
    )
