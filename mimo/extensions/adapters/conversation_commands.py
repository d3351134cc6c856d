"""The commands of conversations, which the session of the Agents SDK calls."""

from typing import Annotated

from mimo.api import Arg, Call, Effect, Invalid, Json, StorageFailed, Tool, command, frozen
from mimo.extensions.adapters import conversations

CONVERSATIONS = Tool(name="conversations", description="Turns of conversations")

Name = Annotated[str, Arg("Name of the conversation")]


@frozen
class Turns:
    """Turns of a conversation, in their order."""

    turns: tuple[Json, ...]


@frozen
class Counted:
    """The number of turns that were added or removed."""

    count: int


@command(
    CONVERSATIONS,
    operation="read",
    effect=Effect.READ,
    toolset="adapters",
    errors=(Invalid, StorageFailed),
)
def read(
    call: Call,
    conversation: Name,
    *,
    limit: Annotated[int | None, Arg("Number of turns; all by default, and below 0")] = None,
) -> Turns:
    """Return the last turns of a conversation"""
    return Turns(turns=tuple(conversations.newest(call, conversation, limit)))


@command(
    CONVERSATIONS,
    operation="add",
    effect=Effect.WRITE,
    toolset="adapters",
    errors=(Invalid, StorageFailed),
)
def add(
    call: Call,
    conversation: Name,
    turns: Annotated[Json, Arg("List of turns; secrets are masked", compared=True)],
) -> Counted:
    """Add turns to a conversation"""
    if not isinstance(turns, list):
        raise Invalid("`turns` must be a list")
    return Counted(count=conversations.add(call, conversation, turns))


@command(
    CONVERSATIONS,
    operation="pop",
    effect=Effect.DESTROY,
    toolset="adapters",
    errors=(Invalid, StorageFailed),
)
def pop(call: Call, conversation: Name) -> Turns:
    """Remove and return the last turn of a conversation"""
    turn = conversations.pop(call, conversation)
    return Turns(turns=() if turn is None else (turn,))


@command(
    CONVERSATIONS,
    operation="clear",
    effect=Effect.DESTROY,
    toolset="adapters",
    errors=(Invalid, StorageFailed),
)
def clear(call: Call, conversation: Name) -> Counted:
    """Remove all turns of a conversation"""
    return Counted(count=conversations.clear(call, conversation))
