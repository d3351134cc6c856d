"""Failed decisions as edges: they warn of being repeated, also after another replaced them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from mimo.features.edges.edge import Edge, Severity, subject
from mimo.text.background import rarity
from mimo.text.tokens import tokenize

RARE = 6.0
"""The rarity from which a capitalised word is a name: `Redis` (8.6), but not `Cache` (4.2)."""

UNKNOWN = 10.0
"""The rarity from which any word is a name: `thanos`, `paypal`."""

MOST_HOLDING = 3
"""A word that more memories contain does not distinguish a decision."""

_START = r"(?:(?<![^\W_])|(?<=[a-z])(?=[A-Z]))"
"""The start of a word, or of a part of an identifier in camel case."""


def as_edge(edge: Edge, warning: str, successor: str, held: Callable[[str], int]) -> Edge | None:
    """Returns a failed decision as an edge with a warning.

    `successor` is the heading of the decision that replaced it, if any, and `held` returns the
    number of memories that contain a token. Returns None if the successor has all of its words.
    """
    if not subject(edge.title) - subject(successor):
        return None
    if successor and successor not in warning:
        warning = f"{warning}; superseded by {successor}"
    names = tuple(names_of(edge.title, successor, held))
    return edge._replace(workaround=warning, severity=Severity.WARNING, names=names)


def naming(names: Sequence[str]) -> re.Pattern[str]:
    """Returns a pattern that finds any of these names in prose or code."""
    return re.compile(rf"{_START}(?i:{'|'.join(names)})")


def names_of(title: str, successor: str, held: Callable[[str], int]) -> Iterator[str]:
    """Yields the words of a title each of which alone shows that a text is about the decision."""
    others = subject(successor)
    for word in dict.fromkeys(re.findall(r"[a-zA-Z][a-zA-Z0-9]{2,}", title)):
        stems = tokenize(word)
        enough = UNKNOWN if word.isalpha() and word.islower() else RARE
        is_rare = all(rarity(stem) >= enough for stem in tokenize(word.lower()))
        if is_rare and not others.issuperset(stems) and min(map(held, stems)) <= MOST_HOLDING:
            yield word.lower()
