"""Where a query's terms stand in a candidate: the one walk over its tokens."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mimo.domain.ranking import lexical
from mimo.domain.ranking.lexical import Hits, Place, together
from mimo.domain.ranking.model import Candidate


@dataclass(slots=True)
class Reading:
    """A candidate as the query sees it; everything in it is read under its title and topic."""

    candidate: Candidate
    title: Hits
    topic: Hits
    units: list[Hits]
    passages: list[Hits]
    document: Hits


class Reader:
    """Reads candidates for one query; what siblings share is read once."""

    def __init__(self, terms: Collection[str], before: Mapping[str, str]) -> None:
        """Look for `terms`, and for phrases of those that `before` names with each other."""
        self._terms = terms
        self._before = before
        self._hits: dict[str, Hits] = {"": Hits()}
        self._held: dict[str, list[str]] = {}

    def find(self, tokens: str) -> Hits:
        """Returns the terms in `tokens`, which are joined by spaces."""
        found = self._hits.get(tokens)
        if found is None:
            text = f" {tokens} "
            places = lexical.places(text, self._terms)
            found = lexical.hits(text, places, tokens.count(" ") + 1, self._before)
            self._hits[tokens] = found
        return found

    def held(self, tokens: str) -> list[str]:
        """Returns which terms are among `tokens` at all, for texts that are long and shared."""
        found = self._held.get(tokens)
        if found is None:
            text = f" {tokens} "
            found = self._held[tokens] = [term for term in self._terms if f" {term} " in text]
        return found

    def read(self, candidate: Candidate) -> Reading:
        """Returns where the terms stand in `candidate`."""
        units, passages = self._stretches(candidate)
        title, topic = self.find(candidate.title), self.find(candidate.topic)
        document = units[0] if len(units) == 1 else together(units)
        if title.length or topic.length:
            heading = together((title, topic))
            whole = len(units) == 1
            headed = [together((heading, unit)) for unit in units] or [heading]
            if passages is units:
                passages = headed
            else:
                passages = [together((heading, passage)) for passage in passages] or [heading]
            units = headed
            document = units[0] if whole else together((heading, document))
        return Reading(candidate, title, topic, units, passages, document)

    def _stretches(self, candidate: Candidate) -> tuple[list[Hits], list[Hits]]:
        if not candidate.passages:
            units = [self.find(unit) for unit in candidate.units]
            return units, units
        text = f" {' '.join(candidate.units)} "
        places = lexical.places(text, self._terms)
        units = self._cut(text, places, candidate.units)
        # Passages of the same tokens are cut from the same walk; a chat's hold fewer.
        if sum(map(len, candidate.passages)) + len(candidate.passages) + 1 == len(text):
            return units, self._cut(text, places, candidate.passages)
        return units, [self.find(passage) for passage in candidate.passages]

    def _cut(self, text: str, places: list[Place], parts: Sequence[str]) -> list[Hits]:
        """Returns the hits of neighbouring parts of `text`."""
        found, first, end = [], 0, 0
        for part in parts:
            end += len(part) + 1
            last = first
            while last < len(places) and places[last][0] < end:
                last += 1
            length = part.count(" ") + 1
            found.append(lexical.hits(text, places[first:last], length, self._before))
            first = last
        return found
