"""The memories that are related to a prompt so clearly that an agent gets them unasked.

It compares words, in natural logarithms: a word that occurs in one of a thousand stretches of text
is worth 6.9. If a server has compared the prompt by meaning, that counts as well. See
docs/lab/retrieval.md for the origin of the constants.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import islice

from mimo.index.catalog import Catalog
from mimo.index.schema import frequency, totals
from mimo.memory.note import Note
from mimo.text.background import rarity
from mimo.text.clean import compiled
from mimo.text.tokens import QUESTION_WORDS, UNSPACED, query_terms, tokenize

_READ = 4_000
"""The number of characters of a prompt that are read for words."""

_UNITS, _MARGIN = 40, 20
"""The number of approved units that are weighed, and of those read beyond them, as for a search."""

_BESIDE = 1.0
"""Memories are given beside the best one if their evidence is weaker by this at most."""

_BELIEF = 2_000
"""The background list weighs as much as this number of the store's units."""

_FEWEST_MEMORIES = 10
"""A smaller store counts as one of this size."""

_LONGEST_WORD = 7.5
"""The most that neighbouring pairs of characters are worth as one word."""

_UNCERTAIN = -7.6
_RAREST, _COVERAGE, _HEADING, _SHARED, _MEMORIES = 1.0, 5.1, 0.14, 0.11, -0.5
_MOST_HEADING, _MOST_SHARED = 15.0, 25.0
_ROUTINE, _ASKING = -4.2, 1.5
"""The weights of the evidence: logistic regression on prompts with labels, rounded."""

_BY_COSINE, _BY_WORDS, _OF_CHORE = 13.0, 0.25, -3.5
_LEAST_MEANING, _LEAST_WORDS = 4.0, -9.0
"""The weights and the least sum with the encoder's cosine: a second regression on those prompts."""

_BESIDE_NEAREST = 0.08
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

_CHORES = frozenset(
    "rename reformat typo typos docstring docstrings kdoc javadoc doxygen jsdoc comment comments"
    " formatter prettier ruff eslint unused commit rebase conflict conflicts undo regex regexp"
    " thanks translate color colors colour colours icon icons label labels bold padding margin"
    " diff diagram summarise summarize".split()
)
_CHORES_BEGIN = ("lint", "alphabetical", "indent")
_KOREAN_CHORES = "린트 커밋 오타 주석 정규식 고마워 목차 배경색 말줄임 임포트 리베이스".split()
_CHORE_PHRASES = (
    r"\b(?:format (?:the|this|all)|unit tests?|type hints?|\w+-format|thank you|pull request"
    r"|split (?:this|the|up|\S+\.\w+|\S+ into)|bump \S+ (?:from|to)"
    r"|(?:write|add) (?:an? |the |some |more )?(?:\w+ )?\w*tests?"
    r"|explain (?:what|this|line|how th)|what (?:does|do) (?:this|that|the)"
    r"|show me (?:the|an?|all))\b|\bimport 정리|test\S*+(?: \S++)? fail"
)
_OF_PHRASES = (
    "format",
    "test",
    "hint",
    "thank",
    "pull",
    "split",
    "bump",
    "explain",
    "what",
    "show",
)
"""Tasks that change no behaviour, for which a shared word rarely means that a memory matters.

Each phrase contains one of `_OF_PHRASES`, or `정리`. Compiling a pattern of all words and phrases
would take longer than all else that is done with a prompt.
"""

_QUESTIONS = (
    r"\b(?:did|do|have|had|are|were|should) (?:we|our|i)\b"
    r"|\bwe (?:ever )?(?:use|decid|cho|pick|agree|settl|go with|went with|switch)"
    r"|\bwhy (?:not |no )?(?!do|is|are|did|was|were|can|am)\w|\bdecisions?\b"
)
"""Questions about what the project decided or knows."""


def related(
    catalog: Catalog, prompt: str, limit: int, near: Sequence[tuple[str, float]] = ()
) -> list[Note]:
    """Returns the approved memories that are clearly related to a prompt, best first.

    `near` has the ids and cosines of the memories nearest to it by meaning, if known.
    """
    sums = totals(catalog.sql)
    holding = partial(frequency, catalog.sql)
    words = Prompt(prompt[:_READ], holding, sums.units, sums.visible)
    if not words.weights:
        return []
    best: dict[str, float] = {}
    strongest = -math.inf
    for id, tokens, heading, *_ in catalog.passages(words.weights, _UNITS, _MARGIN):
        odds = words.evidence(tokens, heading)
        strongest = max(strongest, odds)
        if odds > 0 and (current := catalog.current_id(id)):
            best[current] = max(odds, best.get(current, odds))
    least = max(best.values(), default=0.0) - _BESIDE
    ids = sorted((id for id in best if best[id] >= least), key=best.__getitem__, reverse=True)
    if near and words.is_meant(strongest, near[0][1]):
        close = [id for id, cosine in near if cosine >= near[0][1] - _BESIDE_NEAREST]
        ids = list(dict.fromkeys([*ids, *filter(None, map(catalog.current_id, close))]))
    notes = (note for id in ids for note in catalog.by_id(id))
    return list(islice(notes, limit))


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
        subjects = [term for term in weights if term not in _work()]
        rarest = sorted(subjects, key=lambda term: -weights[term])[:_MOST_TERMS]
        is_one_word = len(re.findall(r"[^\W\d]+", text)) < 2  # It asks nothing.
        self.weights = {} if is_one_word else {term: weights[term] for term in rarest}
        """The worth of the words to search for; empty if the prompt names no subject."""
        runs = [] if text.isascii() else compiled(f"[{UNSPACED}]+").findall(text)
        self._runs = [tokenize(run) for run in runs]
        self._bias = _UNCERTAIN + _MEMORIES * math.log(max(memories, _FEWEST_MEMORIES))
        self._is_chore = _is_chore(text.lower())
        if self._is_chore:
            self._bias += _ROUTINE
        elif compiled(f"(?i){_QUESTIONS}").search(text):
            self._bias += _ASKING

    def evidence(self, tokens: str, heading: str) -> float:
        """Returns the logarithm of the odds that a memory is related.

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
        )

    def is_meant(self, odds: float, cosine: float) -> bool:
        """Returns whether the nearest memory is related, by its cosine with the prompt.

        `odds` are the largest by words, of any memory.
        """
        total = _BY_COSINE * cosine + _BY_WORDS * max(odds, _LEAST_WORDS)
        return total + (_OF_CHORE if self._is_chore else 0.0) > _LEAST_MEANING

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


def _is_chore(text: str) -> bool:
    """Returns whether a prompt in lower case names a task that changes no behaviour."""
    words = compiled(r"\w+").findall(text)
    if not _CHORES.isdisjoint(words) or any(map(text.__contains__, _KOREAN_CHORES)):
        return True
    for word in words:
        if word.startswith(_CHORES_BEGIN) or word.endswith("fmt"):
            return True
    has_phrase = "정리" in text or any(map(text.__contains__, _OF_PHRASES))
    return has_phrase and compiled(_CHORE_PHRASES).search(text) is not None


def _worth(term: str, holding: int, units: int) -> float:
    expected = _BELIEF * math.exp(-rarity(term))
    return max(0.0, -math.log((holding + expected) / (units + _BELIEF)))


@cache
def _work() -> frozenset[str]:
    # A word at a time: reading a long text at once prepares for many.
    return frozenset(_ENDINGS.split()).union(*map(tokenize, _WORK.split()))
