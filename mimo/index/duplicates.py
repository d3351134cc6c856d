"""Memories that say the same as a new one: word for word by a hash, or nearly."""

import sqlite3

from mimo.index import rows, words
from mimo.index.documents import Document, document, statement_of
from mimo.index.schema import IN_FORCE
from mimo.index.vectors import Vectors, cosines
from mimo.memory import duplicates
from mimo.memory.model import Filter, Kind, Memory, Place, Record

_PLACE = Place(path="", line=1, digest="")
_COMPARED = 20
"""Among so many memories that words find, best first, the one most alike is looked for."""


def draft_of(memory: Memory) -> Document:
    """Returns a memory that has no file yet, as the index would keep it."""
    return document(Record(memory=memory, place=_PLACE))


def same(sql: sqlite3.Connection, memory: Memory) -> tuple[Record, ...]:
    """Returns the memories in force that say the same, oldest first."""
    # The plus keeps SQLite from walking all that is not shadowed, oldest first, to spare the sort.
    in_force = IN_FORCE.format("m")
    rest = f"WHERE m.statement = ? AND +m.shadowed = 0 AND {in_force} ORDER BY m.created, m.id"
    return tuple(rows.select(sql, rest, (statement_of(memory),)))


def alike(sql: sqlite3.Connection, draft: Document, vectors: Vectors | None) -> Record | None:
    """Returns the memory in force that is most like a draft, if any is much like it."""
    own = duplicates.words_of(" ".join([draft.title, *(unit.tokens for unit in draft.units)]))
    found = _texts(sql, _sharing(sql, own), draft.record.memory.id)
    names = {key: name for key, (name, _) in found.items()}
    known = vectors.get({draft.vector, *names.values()}) if vectors else {}
    mine = known.get(draft.vector)
    compared = {key: known[name] for key, name in names.items() if mine and known.get(name)}
    near = dict(zip(compared, cosines(mine or b"", list(compared.values())), strict=True))
    scored = [
        (duplicates.likeness(own, duplicates.words_of(tokens), near.get(key)), -key)
        for key, (_, tokens) in found.items()
    ]
    likeness, best = max(scored, default=(0.0, 0))
    return rows.by_key(sql, [-best])[-best] if likeness >= duplicates.ALIKE else None


def _sharing(sql: sqlite3.Connection, own: frozenset[str]) -> list[int]:
    """Returns the memories that share most of the words that tell a text from others."""
    asked = duplicates.sample(own)
    frequencies = {term: words.frequency(sql, term) for term in asked}
    terms = [term for term in duplicates.telling(frequencies) if frequencies[term]]
    every = words.totals(sql).memories
    matches = sum(frequencies[term] for term in terms)
    reach = words.Reach(memories=every, admitted=every, matches=matches)
    return words.memories_with(sql, terms, Filter(), reach)[:_COMPARED]


def _texts(sql: sqlite3.Connection, keys: list[int], own: str) -> dict[int, tuple[bytes, str]]:
    """Returns the vector's name and the tokens of each of these memories that may be a double."""
    found = sql.execute(
        "SELECT m.key, m.vector, m.title_tokens || ' ' || group_concat(u.tokens, ' ')"
        " FROM memories m JOIN units u ON u.memory = m.key"
        f" WHERE m.key IN ({rows.marks(keys)}) AND m.shadowed = 0 AND m.type <> ? AND m.id <> ?"
        f" AND {IN_FORCE.format('m')} GROUP BY m.key",
        (*keys, Kind.CHECKPOINT.value, own),
    )
    return {key: (vector, tokens) for key, vector, tokens in found}
