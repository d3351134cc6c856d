"""The words of a store that are nearest to a word that no memory has: typing errors of a query."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from os.path import commonprefix

from mimo.index import rows, selection
from mimo.index.rows import Found
from mimo.index.schema import frequency
from mimo.memory.model import Filter
from mimo.text.clean import compiled
from mimo.text.tokens import tokenize

_SHORTEST, _LONG = 4, 8
"""The letters of a word from which it may have one error, and from which two."""

_TERMS, _READ = 20, 200
"""The number of terms that are tried, the nearest first, and of memories that are read for all."""


def unknown(text: str, answers: Sequence[Found]) -> list[str]:
    """Returns the words of a short query that no index holds and that may have typing errors.

    These are plain words, not identifiers, nor in a quoted phrase of several words.
    """
    evidence = [answer.evidence for answer in answers if answer.evidence]
    if not evidence or evidence[0].query.literal != evidence[0].query.content:
        return []
    counts = [each.statistics.frequencies for each in evidence]
    terms = [[t] for t in evidence[0].query.content if not any(count.get(t) for count in counts)]
    words = compiled(rf"\w{{{_SHORTEST},}}").findall(text)
    plain = (word for word in words if word.isalpha() and word[1:].islower())
    return [word for word in plain if tokenize(word) in terms]


def terms(sql: sqlite3.Connection) -> str:
    """Returns the tokens of an index that are words, one in each line; reading them takes long."""
    tokens = sql.execute("SELECT term FROM vocabulary")
    return "\n".join(token for (token,) in tokens if token.isalpha())


def nearest(
    sql: sqlite3.Connection, tokens: str, word: str, filter: Filter
) -> list[tuple[int, bool, int, str]]:
    """Returns the words of the memories that pass a filter that are near to another.

    Each has the number of errors, whether it ends in another letter, and the negative number of
    units with it. An error is a letter that is missing, superfluous or wrong, or two swapped ones.
    `tokens` are those of the store, as `terms` returns them.
    """
    typed, limit = word.casefold(), 1 + (len(word) >= _LONG)
    # The tokens are stems, so each is compared with the beginnings of the word. Each letter that
    # the word does not have near its place is an error.
    places = [typed[max(0, place - limit) : place + limit + 1] for place in range(len(typed))]
    near_terms = []
    for term in tokens.split("\n"):
        if len(typed) // 2 <= len(term) <= len(typed) + limit:
            stem = term.rstrip("ie")
            pairs = zip(stem, places, strict=False)
            if sum(letter not in place for letter, place in pairs) <= limit:
                errors = _errors(stem, typed, limit, begins=True)
                near_terms.append((errors, -len(term), term))
    near_terms.sort()
    tried = [term for errors, _, term in near_terms if errors <= limit][:_TERMS]
    where, values = selection.condition(filter)
    holding = "SELECT n.memory FROM words JOIN units n ON n.key = words.rowid WHERE words MATCH ?"
    near: list[tuple[int, bool, int, str]] = []
    for term in tried:
        clause = f"WHERE m.key IN ({holding}) AND {where} LIMIT {_READ // len(tried)}"
        some = rows.select(sql, clause, (f'"{term}"', *values))
        units = frequency(sql, term)
        text = "\n".join(f"{each.memory.heading}\n{each.memory.text}" for each in some)
        for each in dict.fromkeys(compiled(r"[^\W\d_]+").findall(text)):
            is_far = abs(len(each) - len(typed)) > limit
            errors = limit + 1 if is_far else _errors(typed, each.casefold(), limit)
            if errors <= limit and term in tokenize(each):
                near.append((errors, each[-1] != word[-1], -units, each))
    return near


def _errors(left: str, right: str, limit: int, *, begins: bool = False) -> int:
    """Returns the number of errors between two words, `limit` + 1 for more.

    With `begins`, the second word may go on after the first.
    """
    if left == right or (begins and right.startswith(left)):
        return 0
    if not limit or len(left) > len(right) + limit:
        return limit + 1
    start = len(commonprefix((left, right)))  # noqa: RUF071 - of letters
    left, right = left[start:], right[start:]
    pairs = [(left[1:], right), (left, right[1:]), (left[1:], right[1:])]
    if left[:2] == right[1::-1]:
        pairs.append((left[2:], right[2:]))
    return 1 + min(_errors(*pair, limit - 1, begins=begins) for pair in pairs)
