"""Which decisions of a topic are in force: those that nothing supersedes."""

import sqlite3
from collections.abc import Sequence

from mimo.domain.memory import Record
from mimo.domain.topics import topic_key
from mimo.index import rows
from mimo.index.schema import IN_FORCE, newest_first

_NEAREST = 200
"""How many topics a misspelt one is compared with."""


def _in_force(memory: str) -> str:
    """Returns the condition that a row of `memories` is a decision that nothing supersedes."""
    decision = f"{memory}.type = 'decision' AND {memory}.shadowed = 0"
    return f"{decision} AND {IN_FORCE.format(memory)}"


def current(sql: sqlite3.Connection, topic: str) -> tuple[Record, ...]:
    """Returns the current decisions on a topic, newest first; two after a merge of branches.

    Those that are not approved are only returned if none is approved.
    """
    of_topic = f"WHERE m.topic_key = ? AND {_in_force('m')}"
    for condition in ("approved(m.digest)", "1"):
        rest = f"{of_topic} AND {condition} ORDER BY {newest_first('m')}"
        if found := tuple(rows.select(sql, rest, (topic_key(topic),))):
            return found
    return ()


def competing(sql: sqlite3.Connection, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns, for those decisions that compete with others of their topic, the others' ids.

    Both are in force; the others come newest first. What is approved competes with nothing that is
    not.
    """
    found = sql.execute(
        "SELECT m.id, o.id FROM memories m CROSS JOIN memories o"
        " ON o.topic_key = m.topic_key AND o.key <> m.key"
        f" WHERE m.id IN ({rows.marks(ids)}) AND {_in_force('m')} AND {_in_force('o')}"
        " AND NOT approved(m.digest) = NOT approved(o.digest)"
        f" ORDER BY {newest_first('o')}",
        ids,
    )
    others: dict[str, tuple[str, ...]] = {}
    for id_, other in found:
        others[id_] = (*others.get(id_, ()), other)
    return others


def nearest_topics(sql: sqlite3.Connection, wrong: str, n: int) -> tuple[str, ...]:
    """Returns up to `n` topics that are spelled most like `wrong`, or that share a word with it."""
    from difflib import get_close_matches

    key = topic_key(wrong)
    words = [word for word in key.split("_") if len(word) > 2][:8]
    shared = " + ".join("(instr(topic_key, ?) > 0)" for _ in words) or "0"
    found = sql.execute(
        f"SELECT topic_key, max(topic), {shared} AS shared FROM memories"
        " WHERE topic_key IS NOT NULL AND shadowed = 0 GROUP BY topic_key"
        " ORDER BY shared DESC, max(created) DESC, topic_key LIMIT ?",
        (*words, _NEAREST),
    ).fetchall()
    known = {other: topic for other, topic, _ in found}
    spelled = get_close_matches(key, known, n=n, cutoff=0.6)
    alike = [other for other, _, count in found if count]
    return tuple(known[other] for other in dict.fromkeys([*spelled, *alike]))[:n]
