"""Fit and check how likely a first answer is right, given its score, on labelled data.

    python -m tests.bench.calibration --bench FOLDER [--words-only]

FOLDER (or the environment's MIND_BENCH) is that of retrieval.py. Each question is one search as
`recall_memory` makes it; after every fourth a question of another set is asked, to which nothing
here is the answer. The sets of one origin (such as the four languages of XQuAD) count as one.
Prints the knots for `mimo/features/search/__init__.py`, and Brier score and expected
calibration error (ten bands) of the bare score and of the knots; "held out" fits them without the
origin's sets.
"""

import importlib
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from mimo.features.search.recall import KNOTS, MOST_CANDIDATES
from mimo.index.embedding import open_embedder
from tests.bench.retrieval import SETS, Engine, dated, parsed

EDGES = (0.0, 0.3, 0.5, 0.7, 0.85, 0.95, 1.01)
"""Bands of the score; each gives a knot at its mean."""

FOREIGN = 4
"""One foreign question for so many own ones."""


class Asked(NamedTuple):
    """The first match of one question."""

    origin: str
    score: float
    right: bool
    weight: float


Knots = tuple[Sequence[float], Sequence[float]]


def main() -> None:
    """Print the knots and how well they tell."""
    arguments = parsed()
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(arguments.bench) / "eval"))
    harness = importlib.import_module("run_eval")
    dated(harness)
    asked: list[Asked] = []
    with TemporaryDirectory() as scratch:
        engine = Engine(Path(scratch), None if arguments.words_only else open_embedder())
        for name in arguments.sets:
            asked += weighed(harness, engine, name, arguments.sets)
    print("knots:", " ".join(f"({s:.2f}, {p:.2f})" for s, p in zip(*fitted(asked), strict=True)))
    print("| origin | questions | right | score: Brier | ECE | held out: Brier | ECE | now: ECE |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    origins = dict.fromkeys(one.origin for one in asked)
    held: list[tuple[Asked, float]] = []
    for origin in origins:
        own = [one for one in asked if one.origin == origin]
        knots = fitted([one for one in asked if one.origin != origin])
        told = list(zip(own, at(knots, own), strict=True))
        held += told
        print(line(origin, told))
    print(line("all", held))


def origin_of(name: str) -> str:
    """Returns what sets made from the same data have in common."""
    return name.partition("-")[0]


def weighed(harness: ModuleType, engine: Engine, name: str, names: Sequence[str]) -> list[Asked]:
    """Returns what came first for the questions of a set, which weigh 1 with those of its kin."""
    found = list(answered(harness, engine, name))
    kin = sum(origin_of(other) == origin_of(name) for other in names)
    weight = 1 / kin / len(found)
    print(f"{name}: {len(found)} questions", file=sys.stderr, flush=True)
    return [Asked(origin_of(name), score, right, weight) for score, right in found]


def answered(harness: ModuleType, engine: Engine, name: str) -> Iterator[tuple[float, bool]]:
    """Yields the score of what came first, and whether it is right, for each question."""
    data, options = SETS[name]
    others = list(foreign(harness, name))
    number = 0
    for corpus in harness.load(data, **options):
        find = engine.opened(corpus.docs)
        for query in corpus.queries:
            found = find(query.text, MOST_CANDIDATES)
            best = corpus.docs[found[0][0]] if found else None
            by_session = query.extra.get("labels") == "session"
            label = (best.session if by_session else best.id) if best else None
            yield first_score(found), label in query.rel
            number += 1
            if number % FOREIGN == 0:
                yield first_score(find(others[number * 7 % len(others)], MOST_CANDIDATES)), False


def foreign(harness: ModuleType, name: str) -> Iterator[str]:
    """Yields some sixty questions of each set of another origin."""
    for other, (data, options) in SETS.items():
        if origin_of(other) != origin_of(name):
            texts = [q.text for corpus in harness.load(data, **options) for q in corpus.queries]
            yield from texts[:: max(1, len(texts) // 60)]


def first_score(found: Sequence[tuple[int, float]]) -> float:
    """Returns the score that the service gives to what stands first: no later one is higher."""
    return max((score for _, score in found), default=0.0)


def fitted(asked: Sequence[Asked]) -> Knots:
    """Returns mean score and share of right answers in each band; the shares never fall."""
    scores, shares = [0.0], [0.0]
    for low, high in pairwise(EDGES):
        band = [one for one in asked if low <= one.score < high]
        weight = sum(one.weight for one in band)
        if weight:
            share = sum(one.weight * one.right for one in band) / weight
            scores.append(sum(one.weight * one.score for one in band) / weight)
            shares.append(max(share, shares[-1]))
    return [*scores, 1.0], [*shares, shares[-1]]


def at(knots: Knots, asked: Sequence[Asked]) -> list[float]:
    """Returns what the knots say for each."""
    return [float(np.interp(one.score, *knots)) for one in asked]


def line(origin: str, told: Sequence[tuple[Asked, float]]) -> str:
    """Returns a line of the table."""
    asked = [one for one, _ in told]
    now: Knots = ([s for s, _ in KNOTS], [p for _, p in KNOTS])
    weight = sum(one.weight for one in asked)
    right = sum(one.weight * one.right for one in asked) / weight
    scores, held = [one.score for one in asked], [share for _, share in told]
    figures = [right, *measures(asked, scores), *measures(asked, held)]
    figures.append(measures(asked, at(now, asked))[1])
    return f"| {origin} | {len(asked)} | {' | '.join(f'{figure:.3f}' for figure in figures)} |"


def measures(asked: Sequence[Asked], shares: Sequence[float]) -> tuple[float, float]:
    """Returns Brier score and expected calibration error."""
    weights = np.array([one.weight for one in asked])
    right = np.array([float(one.right) for one in asked])
    said: Any = np.array(shares)
    brier = float((weights * (said - right) ** 2).sum() / weights.sum())
    bands = np.minimum((said * 10).astype(int), 9)
    errors = [abs(float((weights * (said - right))[bands == band].sum())) for band in range(10)]
    return brier, sum(errors) / float(weights.sum())


if __name__ == "__main__":
    main()
