"""Failed decisions as edges: they warn of being repeated, also after another replaced them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from mimo.features.pitfalls.edge import Edge, Severity, subject
from mimo.text.background import rarity
from mimo.text.tokens import query_terms, tokenize

RARE = 6.0
"""The rarity from which a capitalised word is a name: `Redis` (8.6), but not `Cache` (4.2)."""

UNKNOWN = 10.0
"""The rarity from which any word is a name: `thanos`, `paypal`."""

MOST_HOLDING = 3
"""A word that more memories contain does not distinguish a decision."""

_START = r"(?:(?<![^\W_])|(?<=[a-z])(?=[A-Z]))"
"""The start of a word, or of a part of an identifier in camel case."""


Holding = Callable[[str, int], int]
"""Returns the number of memories that contain a token, up to a limit."""


def as_edge(
    edge: Edge, warning: str, successor: str, holding: Holding, text: str | None = None
) -> Edge | None:
    """Returns a failed decision as an edge with a warning.

    `successor` is the heading of the decision that replaced it, if any. With `text`, the edge has
    names for this text alone. Returns None if the successor has all of its words.
    """
    if not subject(edge.title) - subject(successor):
        return None
    if successor and successor not in warning:
        warning = f"{warning}; superseded by {successor}"
    names = tuple(names_of(edge.title, successor, holding, text))
    return edge._replace(workaround=warning, severity=Severity.WARNING, names=names)


def naming(names: Sequence[str]) -> re.Pattern[str]:
    """Returns a pattern that finds any of these names in prose or code."""
    return re.compile(rf"{_START}(?ai:{'|'.join(names)})")


def names_of(
    title: str, successor: str, holding: Holding, text: str | None = None
) -> Iterator[str]:
    """Yields the words of a title each of which alone shows that a text is about the decision.

    With `text`, which is in lower case, only the words that occur in it.
    """
    words = dict.fromkeys(re.findall(r"[a-zA-Z][a-zA-Z0-9]{2,}", title))
    for word in words:
        if text is not None and word.lower() not in text:
            continue
        stems = query_terms(word).full
        enough = UNKNOWN if word.isalpha() and word.islower() else RARE
        is_rare = all(rarity(stem) >= enough for stem in tokenize(word.lower()))
        if not is_rare or subject(successor).issuperset(stems):
            continue
        if any(holding(stem, MOST_HOLDING + 1) <= MOST_HOLDING for stem in stems):
            yield word.lower()
