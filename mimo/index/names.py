"""Names of memories and ingested files: ids, their abbreviations, and handles."""

from __future__ import annotations

import sqlite3
from itertools import groupby
from operator import itemgetter
from os.path import commonprefix

from mimo.frozen import NamedTuple
from mimo.index.schema import from_sql
from mimo.memory.ids import HANDLE_LENGTH, begins_handle, handle_of
from mimo.memory.model import topic_key

_SUGGESTED = 3
_CUTOFF = 0.75
"""The least likeness of a suggestion: a wrong one is worse than none."""
_COMPARED_TOPICS = 200
_COMPARED_IDS = 2_000
"""The number of ids that a misspelled id is compared with; difflib takes about 20 µs each."""


class Handle(NamedTuple):
    """The name of a memory, or of an ingested file, in people's output."""

    text: str
    """Its handle, or its id if another one has the same handle."""
    unique: int
    """The number of letters at its beginning that abbreviate it alone; 0 if not known."""


_AROUND = (
    "SELECT handle FROM {0} WHERE handle < :handle ORDER BY handle DESC LIMIT 1",
    "SELECT handle FROM {0} WHERE handle > :handle ORDER BY handle LIMIT 1",
    "SELECT handle FROM {0} WHERE handle = :handle AND id <> :id LIMIT 1",
)
"""The queries for the neighbours of a handle in a table."""

_BEGINNINGS = ", ".join(f"substr(:handle, 1, {length})" for length in range(1, HANDLE_LENGTH + 1))
NEIGHBOURS = (
    "SELECT EXISTS (SELECT 1 FROM memories WHERE handle = :handle AND id = :id)"
    " OR EXISTS (SELECT 1 FROM parents WHERE handle = :handle AND id = :id),"
    f" (SELECT max(length(id)) FROM memories WHERE id IN ({_BEGINNINGS}) AND id <> :id), "
) + ", ".join(f"({query.format(table)})" for table in ("memories", "parents") for query in _AROUND)
"""An id: if it exists, the longest other id with which its handle begins, and its neighbours."""


def handle(sql: sqlite3.Connection, id: str) -> Handle | None:
    """Returns the name of a memory or an ingested file; None if it is not one of the index."""
    text = handle_of(id)
    exists, longest, *peers = sql.execute(NEIGHBOURS, {"handle": text, "id": id}).fetchone()
    if not exists:
        return None
    unique = (longest or 0) + 1  # An exact id takes precedence over the beginning of a handle.
    for peer in peers:
        if peer is not None:
            unique = max(unique, len(commonprefix((text, peer))) + 1)  # noqa: RUF071 - of letters
    return Handle(id, 0) if unique > len(text) else Handle(text, unique)


def apart(sql: sqlite3.Connection, name: Handle, id: str) -> Handle:
    """Returns the name of another index's memory, which no memory or file of this one has.

    An abbreviation that fits one of this index would lead there: it needs more letters.
    """
    for length in range(name.unique or len(name.text) + 1, len(name.text) + 1):
        start = name.text[:length]
        if not matching(sql, start) and not matching(sql, start, sources=True):
            return Handle(name.text, length)
    return Handle(id, 0)


def matching(
    sql: sqlite3.Connection, abbreviation: str, *, sources: bool = False
) -> tuple[str, ...]:
    """Returns the ids that an abbreviation fits, sorted; a full id matches itself.

    The beginning of a handle fits the ids with that handle, and no others: the letters that an
    output shows as unique are unique. Any other abbreviation fits the ids that begin or end with
    it. The ids are of memories or, with `sources`, of ingested files.
    """
    column = "parent" if sources else "id"
    if not abbreviation:
        return ()
    exact = f"SELECT 1 FROM memories WHERE {column} = ? AND shadowed = 0"
    if sql.execute(exact, (abbreviation,)).fetchone():
        return (abbreviation,)
    if begins_handle(abbreviation):
        memories, parents = _with_handle(sql, abbreviation)
        if memories or parents:
            return parents if sources else memories
    length = len(abbreviation)
    selected = sql.execute(
        f"SELECT DISTINCT {column} FROM memories WHERE {column} IS NOT NULL AND shadowed = 0"
        f" AND (substr({column}, 1, ?) = ? OR substr({column}, ?) = ?) ORDER BY {column}",
        (length, abbreviation, -length, abbreviation),
    )
    return tuple(id for (id,) in selected)


def _with_handle(
    sql: sqlite3.Connection, beginning: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the ids of the memories, and of the ingested files, with handles that begin so."""
    of_memories, of_sources = (
        tuple([id for (id,) in sql.execute(query, (beginning, f"{beginning}{{"))])  # After "z".
        for query in (
            "SELECT DISTINCT id FROM memories WHERE handle >= ? AND handle < ? ORDER BY id",
            "SELECT DISTINCT id FROM parents WHERE handle >= ? AND handle < ? ORDER BY id",
        )
    )
    return of_memories, of_sources


def nearest_ids(sql: sqlite3.Connection, wrong: str) -> tuple[str, ...]:
    """Returns up to three ids that `wrong` may mean, the nearest first.

    These have most of its words, which are those of a title, or are spelled like it.
    """
    import re
    from difflib import get_close_matches

    # If there are more ids than can be compared, those that share a word are compared first.
    words = _long_words(re.sub(r"\W", "_", wrong.lower()))
    shared = " + ".join("(instr('_' || id || '_', '_' || ? || '_') > 0)" for _ in words) or "0"
    selected = sql.execute(
        f"SELECT id, {shared} AS shared FROM memories WHERE shadowed = 0"
        " ORDER BY shared DESC, id LIMIT ?",
        (*words, _COMPARED_IDS),
    ).fetchall()
    # An abbreviation is compared with as many characters of the beginning and end of each id.
    id_by_text: dict[str, str] = {}
    for id, _ in selected:
        ends = (id[: len(wrong)], id[-len(wrong) :]) if len(wrong) > 2 else ()
        for text in (id, *ends):
            id_by_text.setdefault(text, id)
    near = get_close_matches(wrong, id_by_text, n=3 * _SUGGESTED, cutoff=_CUTOFF)
    ids = [id_by_text[text] for text in near]
    ids += [id for id, count in selected[:_SUGGESTED] if 2 * count > len(words)]
    return tuple(dict.fromkeys(ids))[:_SUGGESTED]


def nearest_topics(sql: sqlite3.Connection, wrong: str) -> tuple[str, ...]:
    """Returns up to three topics that are spelled most like `wrong` or share a word with it.

    They are those of approved memories, because an agent reads a suggestion without a label.
    """
    from difflib import get_close_matches

    key = topic_key(wrong)
    words = _long_words(key)
    shared = (
        " + ".join("(instr('_' || topic_key || '_', '_' || ? || '_') > 0)" for _ in words) or "0"
    )
    selected = sql.execute(
        f"SELECT topic_key, max(topic), {shared} AS shared FROM memories"
        " WHERE topic_key IS NOT NULL AND shadowed = 0 AND approved(approval) GROUP BY topic_key"
        " ORDER BY shared DESC, max(created) DESC, topic_key LIMIT ?",
        (*words, _COMPARED_TOPICS),
    ).fetchall()
    topics = {candidate: topic for candidate, topic, _ in selected}
    spelled = get_close_matches(key, topics, n=_SUGGESTED, cutoff=_CUTOFF)
    alike = [candidate for candidate, _, count in selected if count]
    return tuple(topics[candidate] for candidate in dict.fromkeys([*spelled, *alike]))[:_SUGGESTED]


def _long_words(name: str) -> list[str]:
    return [word for word in name.split("_") if len(word) > 2][:8]


# Ids that several memories have.


def precedence(
    id: str, path: str | bytes, parent: str | None, position: int, approved: int
) -> tuple[bool, bool, str, int]:
    """Returns the sort key of a memory among several with one id; the lowest keeps it.

    It is an approved memory, the file of that name, or else the first path.
    """
    name = from_sql(path)
    stem = name.rpartition("/")[2].rpartition(".")[0]
    return not approved, stem not in (id, parent), name, position


def outdated(sql: sqlite3.Connection, _approvals: object = None) -> list[str]:
    """Returns the ids that belong to another of their memories, since approvals have changed.

    `Index.kept` asks again if `_approvals` is another object.
    """
    selected = sql.execute(
        "SELECT id, path, parent, position, approved(approval), shadowed FROM memories"
        " WHERE id IN (SELECT id FROM memories WHERE shadowed = 1) ORDER BY id"
    )
    groups = groupby(selected, key=itemgetter(0))
    return [id for id, rivals in groups if min(rivals, key=lambda row: precedence(*row[:5]))[5]]
