"""Paragraphs and sentences of plain text."""

import re
from collections.abc import Iterator
from functools import cache

from mimo.domain.chunking.cutting import by_words, fitting
from mimo.domain.chunking.model import Layout, Part, Stretch, trimmed

# Quotes and brackets, those of other scripts too.
_CLOSING = "\"')\\]}*_`\u00bb\u201d\u2019\u300d\u300f\uff09\u3011\u3009\u300b"
_OPENING = "\"'([{*_`\u00ab\u201c\u2018\u300c\u300e\uff08"

_ALWAYS_SHORT = frozenset(
    "e.g i.e eg ie cf viz vs al approx ca dr mr mrs ms prof st mt sr rev hon gen col capt lt sgt "
    "dept est incl excl resp z.b d.h u.a bzw usw ggf evtl vgl nr bspw p.ej ph.d".split()
)
"""Abbreviations, without their last full stop, after which a sentence goes on."""

_SHORT_BEFORE_NUMBERS = frozenset(
    "no nos fig figs eq eqs sec ch vol p pp art par ver v tab table ex approx rev".split()
)
"""Those after which it goes on where a number follows."""


def paragraphs(text: str) -> Layout:
    """Returns the paragraphs of a text: what blank lines part."""
    found = [Part(*stretch) for stretch in by_paragraphs(text, 0, len(text), 0)]
    return Layout(found, cut=cut_prose, packs=True)


def sentences(text: str) -> Layout:
    """Returns the sentences of a text."""
    found = [Part(*stretch) for stretch in _by_paragraphs_and_sentences(text)]
    return Layout(found, cut=cut_prose, packs=True)


def cut_prose(text: str, start: int, end: int, size: int) -> list[Stretch]:
    """Returns a stretch of prose in sentences, and those in words where they are too long."""
    return list(fitting(text, start, end, size, (by_paragraphs, by_sentences, by_words)))


def by_paragraphs(text: str, start: int, end: int, _: int) -> list[Stretch]:
    """Returns what blank lines part."""
    found = []
    for blank in _blank_lines().finditer(text, start, end):
        found.append(trimmed(text, start, blank.start()))
        start = blank.end()
    return [part for part in (*found, trimmed(text, start, end)) if part[0] < part[1]]


def by_sentences(text: str, start: int, end: int, _: int) -> list[Stretch]:
    """Returns the sentences of a paragraph; each item of a list begins one."""
    found = []
    for stop in (*_sentence_ends(text, start, end), end):
        first, last = trimmed(text, start, stop)
        while first < last and text[first].isspace():
            first += 1
        if first < last:
            found.append((first, last))
        start = stop
    return found


def _by_paragraphs_and_sentences(text: str) -> Iterator[Stretch]:
    for start, end in by_paragraphs(text, 0, len(text), 0):
        yield from by_sentences(text, start, end, 0)


def _sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    for found in _stops().finditer(text, start, end):
        if found["stop"] is None or _ends_sentence(text, found, start):
            start = found.end()
            yield start


def _ends_sentence(text: str, found: re.Match[str], start: int) -> bool:
    """Returns whether a full stop (or the like) followed by a space ends a sentence."""
    following = _next(text, found.end())
    if following.islower():
        return False
    if found["stop"] != ".":
        return True
    before = _last_word().search(text, max(start, found.start() - 30), found.start())
    word = before[0].lower() if before else ""
    at_start = before is not None and not text[start : before.start()].strip()
    if word in _ALWAYS_SHORT or (following.isdigit() and word in _SHORT_BEFORE_NUMBERS):
        return False
    # An initial (J. Smith), U.S., and the number of an item.
    return not (_initials().fullmatch(word) or (at_start and word.isdigit()))


def _next(text: str, position: int) -> str:
    """Returns the first character from `position` on that is no space, quote or bracket."""
    for character in text[position : position + 80]:
        if not character.isspace() and character not in _OPENING:
            return character
    return ""


@cache
def _blank_lines() -> re.Pattern[str]:
    return re.compile(r"\r?\n(?:[ \t]*\r?\n)+")


@cache
def _stops() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<stop>[.!?…]+)[{_CLOSING}]*(?=\s)"
        rf"|[\u3002\uff01\uff1f\uff61\u0964]+[{_CLOSING}]*"
        r"|\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t])"
    )


@cache
def _last_word() -> re.Pattern[str]:
    return re.compile(r"[^\W_](?:[\w.]*[^\W_])?$")


@cache
def _initials() -> re.Pattern[str]:
    return re.compile(r"[^\W\d_](?:\.[^\W\d_])*")
