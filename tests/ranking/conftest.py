"""A store of words, and rankings in it."""

from typing import Any

from mimo.index.rows import SURE
from mimo.ranking import Candidate, Cosines, Ranked, Ranker, Statistics, understand

STORE = Statistics(
    units=1000,
    frequencies={"socket": 10, "kei": 20, "gatewai": 5, "deploi": 30, "us": 300},
    document_tokens=80.0,
    passage_tokens=80.0,
    memories=500,
)


NO_COSINES = Cosines({})


def candidate(key: int, *units: str, **fields: Any) -> Candidate:
    """Returns a candidate whose units have vectors named by key and number."""
    vectors = [f"{key}.{number}".encode() for number in range(len(units))]
    return Candidate(key=key, units=units, vectors=vectors, **fields)


def cosines(of: dict[int, float | list[float]], *, is_guessed: bool = False) -> Cosines:
    """Returns the cosines of candidates, by key: of their first unit, or of each."""
    every = {key: [near] if isinstance(near, float) else near for key, near in of.items()}
    named = {
        f"{key}.{number}".encode(): cosine
        for key, near in every.items()
        for number, cosine in enumerate(near)
    }
    return Cosines(named, is_guessed)


def ranked(question: str, candidates: Any, near: Cosines = NO_COSINES, **more: Any) -> list[Ranked]:
    """Returns the ranking of candidates for a question."""
    ranker = Ranker(understand(question, more.pop("asked", None)), more.pop("store", STORE), SURE)
    return list(ranker.rank(candidates, more.pop("around", ()), near))


def keys(question: str, candidates: Any, near: Cosines = NO_COSINES, **more: Any) -> list[int]:
    """Returns the keys of the ranked candidates."""
    return [item.key for item in ranked(question, candidates, near, **more)]
