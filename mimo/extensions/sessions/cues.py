"""The cues of sentences that are worth keeping: decisions, rules, preferences, corrections.

Regular expressions, no model: `cues.toml` has them. Each cue has a strength; a sentence is proposed
from `ENOUGH` on.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path

from mimo.api import STOP_WORDS, NamedTuple, tokenize

LONGEST_TURN = 450
"""Characters of a turn that may have cues: a longer one is a paste, or an order for a task."""

ENOUGH = 2.0
"""The strength from which a sentence is proposed."""

_LONGEST = 300
"""Characters of a sentence."""


class Family(StrEnum):
    """The kinds of cues, which the user's acceptances and rejections are counted by."""

    DECIDE = "decide"
    RULE = "rule"
    PREFER = "prefer"
    CORRECT = "correct"
    MEND = "mend"
    """A failure and its mend."""


class Cue(NamedTuple):
    """The worth of a sentence by its words."""

    family: Family
    strength: float


_STRENGTHS = {"sure": 2.0, "partly": 1.5, "weak": 1.0}


class _Patterns(NamedTuple):
    cues: tuple[tuple[Family, float, re.Pattern[str]], ...]
    """The patterns of each family, the strongest first."""
    shifts: tuple[tuple[float, re.Pattern[str]], ...]
    never: re.Pattern[str]
    cause: re.Pattern[str]
    reply: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    """Returns the patterns of `cues.toml`."""
    table = tomllib.loads(Path(__file__).with_name("cues.toml").read_text("utf-8"))

    def joined(patterns: Iterable[str]) -> re.Pattern[str]:
        return re.compile("|".join(patterns), re.I)

    cues = [
        (family, strength, joined(table[family][name]))
        for family in (Family.DECIDE, Family.RULE, Family.PREFER, Family.CORRECT)
        for name, strength in _STRENGTHS.items()
    ]
    shifts = [(1.0, joined(patterns)) for patterns in table["raise"].values()]
    shifts += [(-1.0, joined(patterns)) for patterns in table["lower"].values()]
    shifts.append((0.5, joined(table["scope"]["patterns"])))
    single = [joined(table[name]["patterns"]) for name in ("never", "cause", "reply")]
    return _Patterns(tuple(cues), tuple(shifts), *single)


_FENCE = re.compile(r"^ *(```|~~~).*?(^ *\1|\Z)", re.S | re.M)
_QUOTED = re.compile('["\u201c\u201d\u201e\u300c][^"\u201c\u201d\u300d]{12,}["\u201c\u201d\u300d]')
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_FILLER = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|yeah|right|good|great|nice|perfect|hm+|ah|also|and|well|fine|cool|then|so"
    r"|super|gut|danke|thx|thanks|좋아|네)\b[,.!: ]*)+|^\(",
    re.I,
)


def sentences(text: str) -> Iterator[str]:
    """Yields the sentences of a user's turn that are the user's own words, as they would be kept.

    None of a turn that is long; no fenced block, quoted line or record of a program.
    """
    if len(text) > LONGEST_TURN:
        return
    lines = _FENCE.sub("", text).splitlines()
    for line in lines:
        if line.lstrip().startswith((">", "<", "|", "$", "[", "{", "@", "#", "/")):
            continue
        for part in _SENTENCE.split(_BULLET.sub("", line)):
            sentence = " ".join(_FILLER.sub("", part.strip()).split())
            if sentence and len(sentence) <= _LONGEST:
                yield sentence


def cue_of(sentence: str, *, is_answer: bool = False) -> Cue | None:
    """Returns the strongest cue of a sentence; None if it has none or states nothing.

    With `is_answer`, it answers a question of the agent, which counts as a reason.
    """
    words = _QUOTED.sub("", sentence)
    patterns = _patterns()
    bare = patterns.reply.sub("", words)
    if patterns.never.search(bare):
        return None
    strengths: dict[Family, float] = {}
    for family, strength, pattern in patterns.cues:
        if family not in strengths and pattern.search(words):
            strengths[family] = strength
    if not strengths:
        return None
    best = max(strengths, key=lambda family: strengths[family])
    more = sum(strengths.values()) - strengths[best]
    total = strengths[best] + min(more, 1.0) + is_answer
    total += sum(shift for shift, pattern in patterns.shifts if pattern.search(bare))
    return Cue(best, total)


def without_reply(sentence: str) -> str:
    """Returns a sentence without the word with which it replies, as a memory has it."""
    text = _patterns().reply.sub("", sentence) or sentence
    return f"{text[0].upper()}{text[1:]}"


def words_of(sentence: str) -> frozenset[str]:
    """Returns the distinct words of a sentence without stop words, as the index has them."""
    return frozenset(tokenize(sentence)) - STOP_WORDS


def cause_in(text: str) -> str:
    """Returns the sentence in which an agent states the cause of a failure; empty if none does."""
    for line in _FENCE.sub("", text).splitlines():
        for part in _SENTENCE.split(line):
            sentence = " ".join(part.split())
            if len(sentence) <= _LONGEST and _patterns().cause.search(sentence):
                return sentence
    return ""
