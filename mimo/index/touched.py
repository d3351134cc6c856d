"""What the last changes of the index may have changed for somebody who follows links.

A memory is found, and found linked, by its id, its title and the targets of its links. Each change
leaves those names of every memory that it wrote, removed or gave another owner of its id. An answer
of which no name was touched since is still right, whichever process made the changes.
"""

import sqlite3
from collections.abc import Iterable

_MOST = 1_000
"""So many names are kept; after more, such as of a first index, nothing older is known."""


def names_of(sql: sqlite3.Connection, key: int) -> set[str]:
    """Returns the names of a row of `memories`."""
    found = sql.execute(
        "SELECT id FROM memories WHERE key = :key UNION SELECT title FROM memories WHERE key = :key"
        " AND title IS NOT NULL UNION SELECT target FROM links WHERE source = :key",
        {"key": key},
    )
    return {name for (name,) in found}


def note(sql: sqlite3.Connection, names: Iterable[str]) -> None:
    """Keeps what the change that made the index's present revision has touched."""
    ((revision,),) = sql.execute("SELECT revision FROM totals")
    found = [(revision, name) for name in names]
    ((kept,),) = sql.execute("SELECT count(*) FROM touched")
    if kept + len(found) > _MOST:
        forget(sql)
        return
    sql.executemany("INSERT INTO touched VALUES (?, ?)", found)


def forget(sql: sqlite3.Connection) -> None:
    """Lets nothing be known of the changes up to the present revision."""
    sql.execute("DELETE FROM touched")
    sql.execute("UPDATE totals SET touched_after = revision")


def since(sql: sqlite3.Connection, revision: int) -> set[str] | None:
    """Returns all that was touched after a revision; None where that is not known any more."""
    ((known_after, present),) = sql.execute("SELECT touched_after, revision FROM totals")
    if not known_after <= revision <= present:
        return None
    found = sql.execute("SELECT name FROM touched WHERE revision > ?", (revision,))
    return {name for (name,) in found}
