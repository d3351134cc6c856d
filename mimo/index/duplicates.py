"""Duplicates of a new memory: exact ones by a hash, near-duplicates by words and vectors."""

import sqlite3

from mimo.index import lookup, rows
from mimo.index.documents import Document, document, statement_of
from mimo.index.schema import CURRENT
from mimo.index.vectors import Vectors, cosines
from mimo.memory import duplicates
from mimo.memory.model import Filter, Kind, Memory, Place, Record

_PLACE = Place(path="", line=1, digest="")
_COMPARED = 20
"""The number of memories, best first, that words find and that are compared."""


def draft_of(memory: Memory) -> Document:
    """Returns a memory without a file, as the index would store it."""
    return document(Record(memory=memory, place=_PLACE))


def same(sql: sqlite3.Connection, memory: Memory) -> tuple[Record, ...]:
    """Returns the current memories with the same statement, oldest first."""
    # The plus keeps SQLite from scanning `memories_created` to avoid sorting.
    current = CURRENT.format("m")
    rest = f"WHERE m.statement = ? AND +m.shadowed = 0 AND {current} ORDER BY m.created, m.id"
    return tuple(rows.select(sql, rest, (statement_of(memory),)))


def alike(sql: sqlite3.Connection, draft: Document, vectors: Vectors | None) -> Record | None:
    """Returns the current memory that is the nearest duplicate of a draft, if there is one."""
    own = duplicates.words_of(" ".join([draft.title, *(unit.tokens for unit in draft.units)]))
    texts = _texts(sql, _sharing(sql, own), draft.record.memory.id)
    names = {key: name for key, (name, _) in texts.items()}
    stored = vectors.get({draft.vector, *names.values()}) if vectors else {}
    vector = stored.get(draft.vector)
    compared = {key: stored[name] for key, name in names.items() if vector and stored.get(name)}
    near = dict(zip(compared, cosines(vector or b"", list(compared.values())), strict=True))
    scored = [
        (duplicates.likeness(own, duplicates.words_of(tokens), near.get(key)), -key)
        for key, (_, tokens) in texts.items()
    ]
    likeness, best = max(scored, default=(0.0, 0))
    return rows.by_key(sql, [-best])[-best] if likeness >= duplicates.ALIKE else None


def _sharing(sql: sqlite3.Connection, own: frozenset[str]) -> list[int]:
    """Returns the memories that share most of the rare words of a text."""
    frequencies = {term: lookup.frequency(sql, term) for term in duplicates.sample(own)}
    terms = [term for term in duplicates.telling(frequencies) if frequencies[term]]
    memories = lookup.totals(sql).memories
    matches = sum(frequencies[term] for term in terms)
    reach = lookup.Reach(memories=memories, admitted=memories, matches=matches)
    return lookup.memories_with(sql, terms, Filter(), reach)[:_COMPARED]


def _texts(sql: sqlite3.Connection, keys: list[int], own: str) -> dict[int, tuple[bytes, str]]:
    """Returns the vector's name and the tokens of each memory that may be a duplicate."""
    selected = sql.execute(
        "SELECT m.key, m.vector, m.title_tokens || ' ' || group_concat(u.tokens, ' ')"
        " FROM memories m JOIN units u ON u.memory = m.key"
        f" WHERE m.key IN ({rows.marks(keys)}) AND m.shadowed = 0 AND m.type <> ? AND m.id <> ?"
        f" AND {CURRENT.format('m')} GROUP BY m.key",
        (*keys, Kind.CHECKPOINT.value, own),
    )
    return {key: (vector, tokens) for key, vector, tokens in selected}
