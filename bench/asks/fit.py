"""Fit the score's weights again, on the stores in this folder.

    python -m bench.asks.fit [NAME …]

Every question is asked twice: once as it is, and once without the memories that answer it and those
of their chain. The first answer is right or not, and `ahead` is its distance in the order to the
next ones. A logistic regression on `ahead` gives the bias and the weight for
`mimo/ranking/score.py`. Each store is then measured with the weights that the others give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from math import inf, log
from typing import NamedTuple

import numpy as np

import mimo.index.search
from bench.asks.__main__ import chosen, questions, right_of, stored
from mimo.index.rows import SURE, Request
from mimo.memory.model import Filter
from mimo.ranking import Candidate, Cosines, Ranked, Ranker
from mimo.ranking.score import _FAR


class First(NamedTuple):
    """The first answer to a question."""

    ahead: float
    contained: float
    """The logit of its score by its words alone."""
    is_right: bool
    kind: str
    """`real`, `near`, `far`, or `without` for a question that is asked without its answers."""


class Recorder(Ranker):
    """Keeps what was ranked last, and can rank it again without some memories."""

    last: tuple[Recorder, Sequence[Candidate], Sequence[Candidate], Cosines | None]

    def rank(
        self,
        candidates: Sequence[Candidate],
        around: Iterable[Candidate] = (),
        cosines: Cosines | None = None,
    ) -> Iterator[Ranked]:
        """Returns the ranking, and notes what was ranked."""
        Recorder.last = (self, candidates, list(around), cosines)
        return super().rank(candidates, around, cosines)


def first_answer(without: set[int], right: set[int], kind: str) -> First | None:
    """Returns the first answer of the last ranking without some memories; None without two."""
    ranker, candidates, around, cosines = Recorder.last
    rest = [item for item in candidates if item.key not in without]
    ranked = list(super(Recorder, ranker).rank(rest, around, cosines))
    if len(ranked) < 2:
        return None
    is_guessed = cosines is None or cosines.is_guessed
    contained = ranker._reader.score(ranked[0].key, -inf)
    return First(
        ahead=ranker.ahead([match.order for match in ranked], is_guessed)[0],
        contained=log(contained / (1 - contained)),
        is_right=ranked[0].key in right and not without,
        kind=kind,
    )


def answers_of(name: str) -> list[First]:
    """Returns the first answers in a store."""
    answers: list[First | None] = []
    with stored(name) as store:
        data, index = store.data, store.mind.index
        index.make_meanings(lambda done, of: None)
        rows = index.ask(lambda sql: sql.execute("SELECT key, id, path FROM memories").fetchall())
        keys = {store.names.get(id) or store.names.get(str(path)): key for key, id, path in rows}
        chains = [
            {keys[row["key"]], keys[row["supersedes"]]}
            for row in data.get("memory", ())
            if row.get("supersedes")
        ]
        for question in (*questions(data), *data.get("long", ())):
            now = datetime.now(UTC)  # noqa: TID251 - spans such as `last month` are relative to it
            index.search(Request(question["ask"], filter=Filter(), limit=1, now=now))
            right = {keys[answer] for answer in right_of(question) if answer in keys}
            kind = question.get("kind", "near") if not right else "real"
            answers.append(first_answer(set(), right, kind))
            if right:
                of_chains = [chain for chain in chains if chain & right]
                answers.append(first_answer(right.union(*of_chains), right, "without"))
    return [answer for answer in answers if answer]


def fitted(answers: Sequence[First]) -> tuple[float, float]:
    """Returns the bias and the weight of `ahead` by logistic regression (Newton's method)."""
    rows = np.array([[1.0, min(_FAR, max(-_FAR, answer.ahead))] for answer in answers])
    right = np.array([float(answer.is_right) for answer in answers])
    weights = np.zeros(2)
    for _ in range(30):
        expected = 1 / (1 + np.exp(-rows @ weights))
        curve = (rows * (expected * (1 - expected))[:, None]).T @ rows
        weights -= np.linalg.solve(curve, rows.T @ (expected - right))
    return float(weights[0]), float(weights[1])


def row_of(name: str, answers: Sequence[First], weights: tuple[float, float]) -> str:
    """Returns a line of the table."""
    bias, slope = weights
    logits = [
        max(bias + slope * min(_FAR, max(-_FAR, answer.ahead)), answer.contained)
        for answer in answers
    ]
    scored = [
        (1 / (1 + np.exp(-logit)), answer) for logit, answer in zip(logits, answers, strict=True)
    ]
    right = [score for score, answer in scored if answer.is_right]
    wrong = [score for score, answer in scored if not answer.is_right]
    area = np.mean([(a > b) + (a == b) / 2 for a in right for b in wrong])
    quiet = [
        f"{100 * np.mean([score < SURE for score, answer in scored if answer.kind == kind]):.0f}"
        for kind in ("near", "far", "without")
    ]
    sure = 100 * np.mean([score >= SURE for score in right])
    return f"| {name} | {bias:.1f} | {slope:.1f} | {area:.2f} | {sure:.0f} | {' | '.join(quiet)} |"


def main() -> None:
    """Print the weights that the stores give, and how they do on each store that is left out."""
    names = chosen(__doc__)
    vars(mimo.index.search).update(Ranker=Recorder, words_suffice=lambda _: False)
    answers = {name: answers_of(name) for name in names}
    print("| store | bias | ahead | area | right sure | near quiet | far | without answers |")
    print("|---" * 8 + "|")
    for name, own in answers.items():
        rest = [answer for other, some in answers.items() if other != name for answer in some]
        print(row_of(name, own, fitted(rest or own)))
    together = [answer for some in answers.values() for answer in some]
    print(row_of("all", together, fitted(together)))


if __name__ == "__main__":
    main()
