"""The turns of conversations, for frameworks that keep them: on this machine only, never in git.

Turns are not memories: no search finds them, and the trash does not keep them. The commands are for
`openai_agents`.
"""

import json
from contextlib import closing
from functools import partial
from typing import Annotated, Any

from mimo.api import (
    Arg,
    Call,
    Database,
    Effect,
    Invalid,
    Json,
    StorageFailed,
    Tool,
    command,
    files,
    frozen,
    projects,
    redacted,
)

CONVERSATIONS = Tool(name="conversations", description="Turns of conversations")
MOST_NAME = 400
"""The longest name of a conversation, in characters."""
MOST_CHARACTERS = 20_000_000
"""The longest turn, as JSON: pictures are part of it."""
_SCHEMA = (
    "CREATE TABLE turns (conversation TEXT NOT NULL, place INTEGER NOT NULL, turn TEXT NOT NULL, "
    "added REAL NOT NULL, PRIMARY KEY (conversation, place)) WITHOUT ROWID"
)

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
    query = "SELECT turn FROM turns WHERE conversation = ? ORDER BY place DESC LIMIT ?"
    values = (_checked(conversation), -1 if limit is None else max(-1, limit))
    with _database(call) as database, database.reading() as connection:
        rows = connection.execute(query, values).fetchall() if connection else []
    return Turns(turns=tuple(json.loads(text) for (text,) in reversed(rows)))


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
    """Add turns to the end of a conversation, all or none"""
    if not isinstance(turns, list):
        raise Invalid("`turns` must be a list")
    # The mark that permits a secret is not a person's here.
    texts = [_packed(turn) for turn in redacted(turns, allowing=False).value]
    now = call.mind.now().timestamp()
    with _database(call) as database, database.writing() as connection:
        query = "SELECT COALESCE(MAX(place), 0) FROM turns WHERE conversation = ?"
        (offset,) = connection.execute(query, (_checked(conversation),)).fetchone()
        rows = [(conversation, offset + n, text, now) for n, text in enumerate(texts, 1)]
        connection.executemany("INSERT INTO turns VALUES (?, ?, ?, ?)", rows)
    return Counted(count=len(rows))


@command(
    CONVERSATIONS,
    operation="pop",
    effect=Effect.DESTROY,
    toolset="adapters",
    errors=(Invalid, StorageFailed),
)
def pop(call: Call, conversation: Name) -> Turns:
    """Remove and return the last turn of a conversation"""
    query = "SELECT place, turn FROM turns WHERE conversation = ? ORDER BY place DESC LIMIT 1"
    remove = "DELETE FROM turns WHERE conversation = ? AND place = ?"
    with _database(call) as database, database.writing() as connection:
        row = connection.execute(query, (_checked(conversation),)).fetchone()
        if row is None:
            return Turns(turns=())
        connection.execute(remove, (conversation, row[0]))
    return Turns(turns=(json.loads(row[1]),))


@command(
    CONVERSATIONS,
    operation="clear",
    effect=Effect.DESTROY,
    toolset="adapters",
    errors=(Invalid, StorageFailed),
)
def clear(call: Call, conversation: Name) -> Counted:
    """Remove all turns of a conversation"""
    remove = "DELETE FROM turns WHERE conversation = ?"
    with _database(call) as database, database.writing() as connection:
        return Counted(count=connection.execute(remove, (_checked(conversation),)).rowcount)


def _database(call: Call) -> closing[Database]:
    # A clone may bring conversations, but not under this name.
    owner = projects.index_owner(call.mind.home, call.mind.randomness)
    name = f"{files.own_name('conversations', owner)}.db"
    return closing(Database(partial(files.local, call.mind.project.root, name), _SCHEMA))


def _checked(conversation: str) -> str:
    if not conversation.strip() or len(conversation) > MOST_NAME:
        raise Invalid(f"a conversation has a name of 1 to {MOST_NAME} characters")
    return conversation


def _packed(turn: Any) -> str:
    text = json.dumps(turn, separators=(",", ":"))
    if len(text) > MOST_CHARACTERS:
        raise Invalid(f"a turn has {len(text):,} characters, at most {MOST_CHARACTERS:,} are kept")
    return text
