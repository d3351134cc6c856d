"""An expression -> the words of the grammar, in one pass over it."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from unicodedata import normalize

from mimo.domain.when.vocabulary import (
    ENGLISH,
    FILLERS,
    KOREAN,
    LONGEST_KOREAN,
    PAIRS,
)

MOST_CHARACTERS = 200
MOST_WORDS = 24

_MANY = "9999999999"
"""Stands for every count that is larger."""

_PATTERN = r"""
    (?P<week>\d{4}-?w\d\d(?:-?\d)?(?!\d))
  | (?P<date>\d{4}(?P<s>[-/]|\.\ ?)\d{1,2}(?P=s)\d{1,2}(?!\d)(?:\.(?!\.))?
      (?:(?:t\d\d|\ \d{1,2}(?=:))(?::\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?
         (?:\ ?(?:z|utc|gmt)\b|[+-]\d\d(?::?\d\d)?)?(?![\d:]))?)
  | (?P<month>\d{4}[-/.]\d{1,2}(?!\d))
  | (?P<basic>\d{8}(?!\d))
  | (?P<quarter>(?:\d{4}[-\ ]?)?[qh][1-4]\b(?:[-\ ]?\d{4}(?!\d))?)
  | (?P<numeric>\d{1,2}[-.]\d{1,2}[-.]\d{2,4}(?!\d)|\d{1,2}/\d{1,2}(?:/\d{2,4})?(?!\d))
  | (?P<time>\d{1,2}:\d\d(?!\d))
  | (?P<ordinal>\d{1,2}(?:st|nd|rd|th)\b)
  | (?P<number>\d+(?:\.\d+)?)
  | (?P<korean>[가-힣]+)
  | (?P<word>[^\W\d_가-힣]+)
  | (?P<blank>['’]s\b|[\s,'’]+|(?:(?<=early)|(?<=mid)|(?<=late))-)
  | (?P<to>\.{2,}|[-~–—/])
"""


@cache
def _pattern() -> re.Pattern[str]:
    """Returns the pattern of one piece of text; no part of it can be read in many ways."""
    return re.compile(_PATTERN, re.VERBOSE)


def tidy(expression: str) -> str:
    """Returns the expression in lower case, its blanks single and its digits plain."""
    text = " ".join(normalize("NFKC", expression).lower().split())
    return text[:-1].rstrip() if text.endswith((".", "。")) and not text.endswith("..") else text


def words_of(expression: str) -> tuple[str, ...] | None:
    """Returns the words that an expression consists of; None where some of it can be no word."""
    text = tidy(expression[: 4 * MOST_CHARACTERS])
    if len(text) > MOST_CHARACTERS or len(expression) > 4 * MOST_CHARACTERS:
        return None
    found = list(_joined(_split(text)))
    return tuple(found) if len(found) <= MOST_WORDS and "?" not in found else None


def _split(text: str) -> Iterator[str]:
    """Yields the words one by one; `?` for what is none."""
    place = 0
    while place < len(text):
        match = _pattern().match(text, place)
        if match is None:
            yield "?"
            return
        place = match.end()
        yield from _meant(match.lastgroup or "", match[0])


def _meant(kind: str, text: str) -> Iterable[str]:
    """Returns the words of the grammar that one piece of text stands for."""
    match kind:
        case "korean":
            return _korean(text)
        case "blank":
            return ()
        case "to":
            return ("..",)
        case "word":
            word = ENGLISH.get(text, text)
            return () if word in FILLERS else (word,)
        case "quarter":
            return re.findall(r"[qh]\d|\d{4}", text)
        case "number":
            return (text if len(text) < 10 else _MANY,)
    return (text,)


def _korean(text: str) -> Iterable[str]:
    """Returns the meanings of the longest known parts, from left to right."""
    found: list[str] = []
    while text:
        for length in range(min(LONGEST_KOREAN, len(text)), 0, -1):
            if (meant := KOREAN.get(text[:length])) is not None:
                found.extend(meant)
                text = text[length:]
                break
        else:
            return ("?",)
    return found


def _joined(words: Iterable[str]) -> Iterator[str]:
    """Yields the words, those joined that say one thing together."""
    held = ""
    for word in words:
        if one := PAIRS.get((held, word)) or _year(held, word):
            held = one
        elif word != "in" or not held:
            if held:
                yield held
            held = word
    if held:
        yield held


def _year(before: str, word: str) -> str | None:
    """Returns a year that is followed by its Korean mark."""
    return before if word == "년" and len(before) == 4 and before.isdigit() else None
