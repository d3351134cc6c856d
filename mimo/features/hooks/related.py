"""The memories that are related to a prompt so clearly that an agent gets them unasked.

It compares words, in natural logarithms: a word that occurs in one of a thousand stretches of text
is worth 6.9. If a server has compared the prompt by meaning, that counts as well. An account of
what was done, a plan or a document needs more evidence than a decision. See docs/lab/retrieval.md
for the origin of the constants.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice

from mimo.frozen import NamedTuple
from mimo.index.catalog import Catalog
from mimo.memory.note import Note
from mimo.text.background import rarity
from mimo.text.clean import compiled
from mimo.text.tokens import QUESTION_WORDS, UNSPACED, is_chore, query_terms, tokenize

_READ = 4_000
"""The number of characters of a prompt that are read for words."""

_UNITS, _MARGIN = 40, 20
"""The number of approved units that are weighed, and of those read beyond them, as for a search."""

MAX_NOTES = 2
"""The number of memories that a prompt gets, at most."""

_BESIDE = 1.0
"""Memories are given beside the best one if their evidence is weaker by this at most."""

_ACCOUNTS = frozenset(("action", "checkpoint", "context", "observation", "plan"))
_STATEMENTS = frozenset(("fact", "edge"))
_REMOTE_EVIDENCE, _REMOTE_COSINE = 2.5, 0.2
"""The distance of an account, or of a part of a document, to a decision; of a statement, a quarter.

Of the memories that should be given with the labelled prompts, 1 in 20 accounts is one, 1 in 5
statements, and every other decision or failure.
"""

_BELIEF = 2_000
"""The background list weighs as much as this number of the store's units."""

_FEWEST_MEMORIES = 10
"""A smaller store counts as one of this size."""

_LONGEST_WORD = 7.5
"""The most that neighbouring pairs of characters are worth as one word."""

_NOUN = -1.0
"""The weight of a pitfall that shares a single word, if no server compares it by meaning."""

_UNCERTAIN = -7.1
_RAREST, _COVERAGE, _HEADING, _SHARED, _MEMORIES = 1.0, 5.1, 0.14, 0.11, -0.5
_MOST_HEADING, _MOST_SHARED = 15.0, 25.0
_CHORE, _ASKING = -4.2, 1.5
"""The weights of the evidence: logistic regression on prompts with labels, rounded."""

_LEAST_MEANING = 0.47
_OF_WORK, _OF_CHORE = 1.5, -0.6
"""The least sum of the best cosine and its lead, with the weights of the kind of work beside them.

A second regression on those prompts, divided by the weight of the cosine.
"""

_FOLLOWERS = 5
"""The best cosine leads by its distance to the mean of so many next ones."""

_BESIDE_NEAREST = 0.03
"""Memories are given beside the nearest one if their cosines are lower by this at most."""

_SHORT = 2.0
"""It is added to the worth of a prompt, so that one word is not all of a short prompt."""

_MOST_TERMS = 24

_WORK = (
    "add after again back bad before better big branch break broken bug build bump button call"
    " case change check class clean code color colour column comment commit continue cool copy"
    " correct crash create date debug delete diff directory doc docstring document done down"
    " draft edit empty end error every everywhere example except extract fail failure field file"
    " fine first fix folder format formatter function go good great header helper implement"
    " import improve install instead issue last like line lint linter list log look loop make"
    " merge message method missing module move name new next nice now number off ok okay old open"
    " option order out over page part pr prefix print problem pull push put readme rebase"
    " refactor regex regexp release remove rename replace request revert review right run same"
    " save script see set setup show simplify sort split start still stop style suffix summary"
    " sure table tag take task test text thank three tidy todo top try two type typo undo unused"
    " up update upgrade use value variable version wait way whole work write wrong yes"
)
"""English words of everyday work, which name no subject that a memory could be about."""

_ENDINGS = (
    "에서 으로 에게 까지 부터 하는 해서 하고 하면 합니 니다 있는 있음 없는 이다 했다 한다 해줘"
    " 지만 는데 처리 하나 만들 들어 어줘 바꿔 꿔줘 인데 이고 되면 면서 마다 보다 처럼 라고"
)
"""Pairs of Hangul in the endings and auxiliaries of Korean words."""

_QUESTIONS = (
    r"\b(?:did|do|have|had|are|were|should) (?:we|our|i)\b"
    r"|\bwe (?:ever )?(?:use|decid|cho|pick|agree|settl|go with|went with|switch)"
    r"|\bwhy (?:not |no )?(?!do|is|are|did|was|were|can|am)\w|\bdecisions?\b"
)
"""Questions about what the project decided or knows."""


class Likeness(NamedTuple):
    """A memory and its cosine with a prompt, less what its type lacks."""

    note: Note
    cosine: float


class Matches(NamedTuple):
    """The memories of one store that a prompt may concern."""

    by_words: Sequence[Note] = ()
    """Memories that share enough words with it, best first."""
    by_meaning: Sequence[Likeness] = ()
    """Memories that are nearest to it; none if it names no subject."""


_NONE = Matches()


def matches(
    catalog: Catalog, prompt: str, near: Sequence[tuple[str, float]] = (), limit: int = MAX_NOTES
) -> Matches:
    """Returns the approved memories that a prompt may concern, at most `limit` by its words.

    `near` has the ids and cosines of the memories nearest to it by meaning, if known.
    """
    words = Prompt(prompt[:_READ], catalog.frequency, *catalog.sizes())
    if not words.weights:
        return _NONE
    best: dict[str, float] = {}
    for id, tokens, heading, kind, path in catalog.passages(words.weights, _UNITS, _MARGIN):
        is_alone = kind == "edge" and not near
        odds = words.evidence(tokens, heading, is_alone=is_alone)
        odds -= _REMOTE_EVIDENCE * _remoteness(kind, path)
        if odds > 0 and (current := catalog.current_id(id)):
            best[current] = max(odds, best.get(current, odds))
    least = max(best.values(), default=0.0) - _BESIDE
    ids = sorted((id for id in best if best[id] >= least), key=best.__getitem__, reverse=True)
    notes = (note for id in ids for note in catalog.by_id(id))
    return Matches(list(islice(notes, limit)), _likenesses(catalog, near) if near else ())


def chosen(
    prompt: str,
    project: Matches,
    user: Matches = _NONE,
    *,
    work: float,
    edges: Collection[str] | None = None,
) -> tuple[list[Note], list[Note]]:
    """Returns the memories to give with a prompt, of the project and of the user, best first.

    `work` is the likeness of the prompt with work of consequence, less that with routine work, and
    `edges` has the ids of the project's pitfalls that apply to it, if known: others are left out.
    """
    near = [*project.by_meaning, *user.by_meaning]
    meant = _meant(prompt[:_READ], near, work) if near else []
    of_user = {note.mark for note in (*user.by_words, *(each.note for each in user.by_meaning))}
    by_mark = {note.mark: note for note in (*project.by_words, *user.by_words, *meant)}
    notes = [
        note
        for mark, note in islice(by_mark.items(), MAX_NOTES)
        if note.kind != "edge" or edges is None or note.id in edges or mark in of_user
    ]
    return (
        [note for note in notes if note.mark not in of_user],
        [note for note in notes if note.mark in of_user],
    )


def _likenesses(catalog: Catalog, near: Iterable[tuple[str, float]]) -> list[Likeness]:
    """Returns the current memories for those nearest to a prompt by meaning."""
    best: dict[str, float] = {}
    for id, cosine in near:
        if current := catalog.current_id(id):
            best[current] = max(cosine, best.get(current, cosine))
    return [
        Likeness(note, cosine - _REMOTE_COSINE * _remoteness(note.kind, note.path))
        for id, cosine in best.items()
        for note in catalog.by_id(id)
    ]


def _meant(prompt: str, likenesses: Iterable[Likeness], work: float) -> list[Note]:
    """Returns the memories that a prompt concerns by meaning, most similar first."""
    likely = sorted(likenesses, key=lambda each: -each.cosine)
    best, followers = likely[0].cosine, [each.cosine for each in likely[1 : _FOLLOWERS + 1]]
    lead = best - sum(followers) / len(followers) if followers else 0.0
    kind = _OF_WORK * work + _OF_CHORE * is_chore(prompt.lower())
    if best + lead + kind <= _LEAST_MEANING:
        return []
    return [each.note for each in likely if each.cosine >= best - _BESIDE_NEAREST]


def _remoteness(kind: str, path: str) -> float:
    """Returns how far a memory is from deciding how work is done: 0 for a decision, up to 1."""
    if kind in _ACCOUNTS or "/sources/" in path:
        return 1.0
    return 0.25 if kind in _STATEMENTS else 0.0


class Prompt:
    """The words of a prompt, with their worth in a store."""

    def __init__(self, text: str, holding: Callable[[str], int], units: int, memories: int) -> None:
        """Weighs the words; `holding` returns the number of the store's units with a token."""
        terms = [t for t in query_terms(text).content if len(t) > 1 and not t.isdigit()]
        weights = {
            term: _worth(term, holding(term), units)
            for term in terms[: 8 * _MOST_TERMS]
            if term not in QUESTION_WORDS
        }
        self._total = sum(weights.values()) + _SHORT
        work = _work({term[:2] for term in weights})
        subjects = [term for term in weights if term not in work]
        rarest = sorted(subjects, key=lambda term: -weights[term])[:_MOST_TERMS]
        is_one_word = len(re.findall(r"[^\W\d]+", text)) < 2  # It asks nothing.
        self.weights = {} if is_one_word else {term: weights[term] for term in rarest}
        """The worth of the words to search for; empty if the prompt names no subject."""
        runs = [] if text.isascii() else compiled(f"[{UNSPACED}]+").findall(text)
        self._runs = [tokenize(run) for run in runs]
        self._bias = _UNCERTAIN + _MEMORIES * math.log(max(memories, _FEWEST_MEMORIES))
        if is_chore(text.lower()):
            self._bias += _CHORE
        elif compiled(f"(?i){_QUESTIONS}").search(text):
            self._bias += _ASKING

    def evidence(self, tokens: str, heading: str, *, is_alone: bool = False) -> float:
        """Returns the logarithm of the odds that a memory is related.

        With `is_alone`, it is a pitfall that only its words are evidence for.
        `tokens` are those of one of its units, `heading` those of its title, topic and tags.
        """
        named = self.weights.keys() & heading.split()
        shared = named.union(self.weights.keys() & tokens.split())
        if not shared:
            return -math.inf
        worth = self._sum(shared)
        return (
            self._bias
            + _RAREST * self._rarest(shared)
            + _COVERAGE * worth / self._total
            + _HEADING * min(self._sum(named), _MOST_HEADING)
            + _SHARED * min(worth, _MOST_SHARED)
            + _NOUN * (is_alone and len(shared) == 1)
        )

    def _sum(self, terms: Iterable[str]) -> float:
        return sum([self.weights[term] for term in terms])

    def _rarest(self, shared: set[str]) -> float:
        """Returns the worth of the rarest word, of which neighbouring pairs are parts."""
        rarest = max(self.weights[term] for term in shared)
        for run in self._runs:
            word = 0.0
            for pair in run:
                word = word + self.weights[pair] if pair in shared else 0.0
                rarest = max(rarest, min(word, _LONGEST_WORD))
        return rarest


def _worth(term: str, holding: int, units: int) -> float:
    expected = _BELIEF * math.exp(-rarity(term))
    return max(0.0, -math.log((holding + expected) / (units + _BELIEF)))


def _work(beginnings: Collection[str]) -> frozenset[str]:
    """Returns those tokens of `_WORK` that begin with one of these pairs of letters, and endings.

    The token of a word begins as the word itself.
    """
    words = (word for word in _WORK.split() if word[:2] in beginnings)
    # A word at a time: reading a long text at once prepares for many.
    return frozenset(_ENDINGS.split()).union(*map(tokenize, words))
