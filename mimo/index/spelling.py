"""The words of a store that are nearest to a word that no memory has: typing errors of a query."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from os.path import commonprefix

from mimo.index import rows, selection
from mimo.index.rows import Found
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


def nearest(sql: sqlite3.Connection, word: str, filter: Filter) -> list[tuple[int, bool, int, str]]:
    """Returns the words of the memories that pass a filter that are near to another.

    Each has the number of errors, whether it ends in another letter, and the negative number of
    units with it. An error is a letter that is missing, superfluous or wrong, or two swapped ones.
    """
    typed, limit = word.casefold(), 1 + (len(word) >= _LONG)
    terms = []
    # The tokens of the store are stems, so each is compared with the beginnings of the word.
    for term, units in sql.execute(
        "SELECT term, doc FROM vocabulary WHERE length(term) BETWEEN ? AND ?",
        (len(typed) // 2, len(typed) + limit),
    ):
        stem = term.rstrip("ie")
        if term.isalpha() and len({*stem}.difference(typed)) <= limit:
            terms.append((_errors(stem, typed, limit, begins=True), -len(term), term, units))
    terms = sorted(each for each in terms if each[0] <= limit)[:_TERMS]
    where, values = selection.condition(filter)
    holding = "SELECT n.memory FROM words JOIN units n ON n.key = words.rowid WHERE words MATCH ?"
    near: list[tuple[int, bool, int, str]] = []
    for *_, term, units in terms:
        clause = f"WHERE m.key IN ({holding}) AND {where} LIMIT {_READ // len(terms)}"
        some = rows.select(sql, clause, (f'"{term}"', *values))
        text = "\n".join(f"{each.memory.heading}\n{each.memory.text}" for each in some)
        near += [
            (_errors(typed, each.casefold(), limit), each[-1] != word[-1], -units, each)
            for each in dict.fromkeys(compiled(r"[^\W\d_]+").findall(text))
            if abs(len(each) - len(typed)) <= limit and term in tokenize(each)
        ]
    return [each for each in near if each[0] <= limit]


def _errors(left: str, right: str, limit: int, *, begins: bool = False) -> int:
    """Returns the number of errors between two words, `limit` + 1 for more.

    With `begins`, the second word may go on after the first.
    """
    start = len(commonprefix((left, right)))  # noqa: RUF071 - of letters
    left, right = left[start:], right[start:]
    if not left and (begins or not right):
        return 0
    if not limit:
        return 1
    pairs = [(left[1:], right), (left, right[1:]), (left[1:], right[1:])]
    if left[:2] == right[1::-1]:
        pairs.append((left[2:], right[2:]))
    return 1 + min(_errors(*pair, limit - 1, begins=begins) for pair in pairs)
