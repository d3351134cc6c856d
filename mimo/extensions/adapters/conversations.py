"""The turns of conversations, for frameworks that keep them: on this machine only, never in git.

Turns are not memories: no search finds them, and the trash does not keep them.
"""

from __future__ import annotations

import json
from contextlib import closing
from functools import partial
from typing import Any

from mimo.api import Call, Database, Invalid, files, projects, redacted

_SCHEMA = (
    "CREATE TABLE turns (conversation TEXT NOT NULL, place INTEGER NOT NULL, turn TEXT NOT NULL, "
    "added REAL NOT NULL, PRIMARY KEY (conversation, place)) WITHOUT ROWID"
)
MOST_NAME = 400
"""The longest name of a conversation, in characters."""
MOST_CHARACTERS = 20_000_000
"""The longest turn, as JSON: pictures are part of it."""


def _database(call: Call) -> closing[Database]:
    # A clone may bring conversations, but not under this name.
    owner = projects.index_owner(call.mind.home, call.mind.randomness)
    name = f"{projects.own_name('conversations', owner)}.db"
    return closing(Database(partial(files.local, call.mind.project.root, name), _SCHEMA))


def _checked(conversation: str) -> str:
    if not conversation.strip() or len(conversation) > MOST_NAME:
        raise Invalid(f"a conversation has a name of 1 to {MOST_NAME} characters")
    return conversation


def add(call: Call, conversation: str, turns: list[Any]) -> int:
    """Adds turns at the end of a conversation, all or none, and returns their number.

    Secrets in them are masked first: the mark that permits one is not a person's here. Raises
    `Invalid` and `StorageFailed`.
    """
    texts = [_packed(turn) for turn in redacted(turns, allowing=False).value]
    now = call.mind.now().timestamp()
    with _database(call) as database, database.writing() as connection:
        query = "SELECT COALESCE(MAX(place), 0) FROM turns WHERE conversation = ?"
        (offset,) = connection.execute(query, (_checked(conversation),)).fetchone()
        rows = [(conversation, offset + n, text, now) for n, text in enumerate(texts, 1)]
        connection.executemany("INSERT INTO turns VALUES (?, ?, ?, ?)", rows)
    return len(rows)


def _packed(turn: Any) -> str:
    text = json.dumps(turn, separators=(",", ":"))
    if len(text) > MOST_CHARACTERS:
        raise Invalid(f"a turn has {len(text):,} characters, at most {MOST_CHARACTERS:,} are kept")
    return text


def newest(call: Call, conversation: str, limit: int | None) -> list[Any]:
    """Returns the last turns of a conversation in their order; all without a limit, or below 0."""
    query = "SELECT turn FROM turns WHERE conversation = ? ORDER BY place DESC LIMIT ?"
    values = (_checked(conversation), -1 if limit is None else max(-1, limit))
    with _database(call) as database, database.reading() as connection:
        rows = connection.execute(query, values).fetchall() if connection else []
    return [json.loads(text) for (text,) in reversed(rows)]


def pop(call: Call, conversation: str) -> Any:
    """Removes the last turn of a conversation and returns it; None if there is none."""
    query = "SELECT place, turn FROM turns WHERE conversation = ? ORDER BY place DESC LIMIT 1"
    with _database(call) as database, database.writing() as connection:
        row = connection.execute(query, (_checked(conversation),)).fetchone()
        if row is None:
            return None
        remove = "DELETE FROM turns WHERE conversation = ? AND place = ?"
        connection.execute(remove, (conversation, row[0]))
    return json.loads(row[1])


def clear(call: Call, conversation: str) -> int:
    """Removes all turns of a conversation and returns their number."""
    with _database(call) as database, database.writing() as connection:
        remove = "DELETE FROM turns WHERE conversation = ?"
        return connection.execute(remove, (_checked(conversation),)).rowcount
