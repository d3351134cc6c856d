"""Which part of the memory a question is about, told from its words.

Serves the retired `ask_mimo` tool: each part scores a point for each of its words in the question,
and the episodic part one more; a part with more than a fifth of all points is asked as well.
"""

import re
from enum import StrEnum

from mimo.domain.memory import Kind
from mimo.frozen import frozen


class Store(StrEnum):
    """The parts that the retired tool knew."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


KINDS: dict[Store, tuple[str, ...]] = {
    Store.EPISODIC: (Kind.OBSERVATION, Kind.ACTION, Kind.CHECKPOINT, Kind.CONTEXT, Kind.ISSUE),
    Store.SEMANTIC: (Kind.FACT, Kind.DECISION, Kind.INSIGHT, Kind.EDGE, Kind.PLAN),
    Store.PROCEDURAL: (),
}
"""The types of memory that each part holds; procedures are no memories."""

_WORDS = {
    Store.EPISODIC: frozenset(
        "remember recall when before after yesterday last happened did".split()
    ),
    Store.SEMANTIC: frozenset("relationship between depends graph related what who is why".split()),
    Store.PROCEDURAL: frozenset("code bug fix function how run implement build deploy".split()),
}
_SHARE_OF_SECONDARY = 0.2
_SURE = 0.7
_PRIMARY_LIMIT, _SECONDARY_LIMIT = 10, 5


@frozen
class Route:
    """Where to look first, where else, and why."""

    primary: Store
    secondary: tuple[Store, ...]
    confidence: float
    reasoning: str

    @property
    def requires_synthesis(self) -> bool:
        """Returns whether the answer has to be put together from several parts."""
        return self.confidence < _SURE or bool(self.secondary)

    def limit(self, part: Store) -> int:
        """Returns how many memories of a part to answer with."""
        if part is self.primary:
            return _PRIMARY_LIMIT
        return _SECONDARY_LIMIT if part in self.secondary else 0


def route(question: str) -> Route:
    """Returns the parts of the memory that a question is about."""
    words = set(re.findall(r"\w+", question.lower()))
    points = {part: len(words & known) for part, known in _WORDS.items()}
    points[Store.EPISODIC] += 1
    total = sum(points.values())
    primary = max(points, key=lambda part: points[part])
    secondary = tuple(
        part
        for part, n in points.items()
        if part is not primary and n / total > _SHARE_OF_SECONDARY
    )
    told = ", ".join(sorted(words & _WORDS[primary])) or "nothing points elsewhere"
    return Route(
        primary=primary,
        secondary=secondary,
        confidence=round(points[primary] / total, 2),
        reasoning=f"{primary}: {told}",
    )
