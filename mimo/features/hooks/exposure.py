"""Which tools fit what a user just said.

The words and the rules are those of MAMA's design: resuming comes before deciding, anything else
shows every tool. What is narrowed is only what a client lists, never what it may call.
"""

import re
from enum import StrEnum
from typing import NamedTuple

CORE = ("save/decision", "load/checkpoint")
"""Tools that are listed whatever the user said."""

SURE = 0.7
"""Below this confidence every tool is listed."""

_MOST_READ = 20_000
"""Characters of a message that are read: nobody says what they want after so many."""

_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


class Intent(StrEnum):
    """What a message is about."""

    RESUMING = "resuming"
    DECIDING = "deciding"
    SEARCHING = "searching"
    TRACKING = "tracking"
    OTHER = "other"


_WORDS = {
    Intent.RESUMING: re.compile(r"어제|이어서|continue|resume", re.IGNORECASE),
    Intent.DECIDING: re.compile(r"결정|decide|choice|선택", re.IGNORECASE),
    Intent.SEARCHING: re.compile(r"찾아|search|recall|어떻게 했", re.IGNORECASE),
    Intent.TRACKING: re.compile(r"실패|성공|failed|success", re.IGNORECASE),
}
"""In the order in which they are tried."""

_TOOLS: dict[Intent, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Intent.RESUMING: (("load/checkpoint", "load/context"), ("load/checkpoint",)),
    Intent.DECIDING: (("save/decision", "save/insight", "search/by_context"), ("save/decision",)),
}
"""What each intent allows, and what of it comes first."""


class Exposure(NamedTuple):
    """What a message asks for, and the tools that fit it."""

    intent: Intent
    confidence: float
    """0..1: how surely the message is about that."""
    tools: tuple[str, ...] | None
    """Canonical names, those that come first in front; None for every tool."""


EVERYTHING = Exposure(intent=Intent.OTHER, confidence=1.0, tools=None)


def classify(message: str) -> Exposure:
    """Returns the tools that fit what a user said.

    Text in backticks does not count: code says `continue` all the time. Every tool fits where no
    rule does, and where it is less than `SURE` which one.
    """
    said = _QUOTED.sub(" ", message[:_MOST_READ])
    matched = [intent for intent, words in _WORDS.items() if words.search(said)]
    if not matched:
        return EVERYTHING
    confidence = _confidence(said, len(matched))
    rule = _TOOLS.get(matched[0])
    if rule is None or confidence < SURE:
        return Exposure(intent=matched[0], confidence=confidence, tools=None)
    allowed, first = rule
    tools = dict.fromkeys([*first, *allowed, *CORE])
    return Exposure(intent=matched[0], confidence=confidence, tools=tuple(tools))


def _confidence(said: str, matched: int) -> float:
    """Returns how surely one word tells what a message is about.

    It tells less with every other intent that has a word in it too, and in a long message, where
    any word may stand by chance: a tenth for each 25 words after the first 25.
    """
    length = len(said.split())
    return round(max(0.0, 0.95 - 0.1 * (matched - 1) - 0.1 * max(0, (length - 25) // 25)), 2)
