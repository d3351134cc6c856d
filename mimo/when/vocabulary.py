"""English and Korean expressions -> the words of the grammar.

A synonym, an abbreviation or a word of another language is added to `model/words.txt`, a pair of
words here, and a new kind of phrase in `grammar`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from unicodedata import normalize

from mimo.text.calendar import MONTHS, NUMBERS, WEEKDAYS
from mimo.text.clean import compiled
from mimo.text.families import LISTS

PARTS = {
    "morning": (6, 12),
    "afternoon": (12, 18),
    "evening": (18, 24),
    "night": (18, 30),
    "dawn": (0, 6),
    "am": (0, 12),
    "pm": (12, 24),
}
"""Parts of a day, in hours from its midnight."""
VAGUE = {"couple": 2, "few": 5, "several": 7}
"""Counts for vague words, on the high side: a longer span includes everything that is meant."""

_UNIT_WORDS = {
    "second": "s sec secs seconds",
    "minute": "min mins minutes",
    "hour": "h hr hrs hours",
    "day": "d days",
    "week": "w wk wks weeks",
    "month": "mo mos months",
    "quarter": "quarters qtr",
    "year": "y yr yrs years",
}
UNITS = {unit: unit for unit in _UNIT_WORDS} | {
    "일": "day",
    "분기": "quarter",
    "초": "second",
    "년": "year",
}
"""Words for a unit that is counted; these Korean ones have other meanings as well."""


def _table(name: str) -> dict[str, list[str]]:
    """Returns the words of a list in `words.txt`, by the word before the colon that they mean."""
    rows = (line.partition(":") for line in LISTS[name])
    return {meaning: words.split() for meaning, _, words in rows}


ENGLISH: dict[str, str] = {
    **{word: name for name, words in _UNIT_WORDS.items() for word in [name, *words.split()]},
    **{word: name for name, words in _table("english times").items() for word in words},
    **{word: str(number) for number, word in enumerate(NUMBERS)},
    **{name[:3]: name for name in [*MONTHS, *WEEKDAYS]},
}
"""Other spellings; a word that is not listed means itself."""

FILLERS = frozenset("the of on at during within throughout".split())
"""Words without a meaning of their own."""

_PAIRS = {
    ("older", "than"): "before",
    ("earlier", "than"): "before",
    ("prior", "to"): "before",
    ("newer", "than"): "since",
    ("later", "than"): "after",
    ("no", "later"): "not later",
    ("not", "later"): "not later",
    ("no", "earlier"): "not earlier",
    ("not", "earlier"): "not earlier",
    ("not later", "than"): "until",
    ("not earlier", "than"): "since",
    ("not", "before"): "since",
    ("not", "after"): "until",
    ("more", "than"): "more",
    ("less", "than"): "less",
    ("no", "more"): "not more",
    ("not", "more"): "not more",
    ("not more", "than"): "less",
    ("no", "less"): "not less",
    ("not", "less"): "not less",
    ("not less", "than"): "more",
    ("up", "to"): "until",
    ("up", "until"): "until",
    ("until", "and"): "until and",
    ("until and", "including"): "until",
    ("first", "half"): "h1",
    ("second", "half"): "h2",
    **{
        (name, "quarter"): f"q{number}"
        for number, names in enumerate(["first 1st", "second 2nd", "third 3rd", "fourth 4th"], 1)
        for name in names.split()
    },
    **{(str(number), "월"): month for number, month in enumerate(MONTHS, 1)},
    **{(f"0{number}", "월"): month for number, month in enumerate(MONTHS[:9], 1)},
    **{(str(number), "분기"): f"q{number}" for number in range(1, 5)},
}
"""Pairs of words with one meaning."""

KOREAN: dict[str, tuple[str, ...]] = {
    **{
        part: tuple(meaning.split())
        for meaning, parts in _table("korean times").items()
        for part in parts
    },
    **{f"{first}요일": (day,) for first, day in zip("월화수목금토일", WEEKDAYS, strict=True)},
}
"""Parts of Korean words, which may be written together or apart, and the words they mean."""

_LONGEST_KOREAN = max(map(len, KOREAN))
_MOST_CHARACTERS = 200
_MOST_WORDS = 24
_UNCLEAR = (
    rf"^(?:(?:{'|'.join(FILLERS)}|in) )*days (?:before|after)\b"
    rf"|\ban? (?:{'|'.join(f'{name}|{name[:3]}' for name in MONTHS)})\b"
)
"""Several days without their number, but only `the day before` is a time; any month of a name."""
_FORTNIGHT = r"\b(?:(?:a|one) )?fortnight\b"
_MANY = "9999999999"
"""Replaces every larger count."""

_PATTERN = r"""(?x)
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
  | (?P<blank>['’]s\b|[\s,'’]+)
  | (?P<to>\.{2,}|[-~–—/])
"""


def words_of(expression: str) -> tuple[str, ...] | None:
    """Returns the words of an expression; None if it is too long or part of it is not a word.

    Case, blanks, full-width digits and a final full stop make no difference.
    """
    if len(expression) > 4 * _MOST_CHARACTERS:
        return None
    text = " ".join(normalize("NFKC", expression).lower().split())
    text = compiled(_FORTNIGHT).sub("2 weeks", text)
    if text.endswith((".", "。")) and not text.endswith(".."):
        text = text[:-1].rstrip()
    if len(text) > _MOST_CHARACTERS or compiled(_UNCLEAR).search(text):
        return None
    words = tuple(_joined(_split(text)))
    return words if len(words) <= _MOST_WORDS and "?" not in words else None


def _split(text: str) -> Iterator[str]:
    """Yields the words one by one; `?` for a piece that is not a word.

    No piece has two readings, so this takes linear time.
    """
    place = 0
    while place < len(text):
        match = compiled(_PATTERN).match(text, place)
        if match is None:
            yield "?"
            return
        place, piece = match.end(), match[0]
        match match.lastgroup:
            case "korean":
                yield from _korean(piece)
            case "word" if piece not in FILLERS:
                yield ENGLISH.get(piece, piece)
            case "word" | "blank":
                pass
            case "to":
                yield ".."
            case "quarter":
                yield from re.findall(r"[qh]\d|\d{4}", piece)
            case "number":
                yield piece if len(piece) < 10 else _MANY
            case _:
                yield piece


def _korean(text: str) -> Iterable[str]:
    """Returns the meanings of the longest known parts, from left to right."""
    words: list[str] = []
    while text:
        for length in range(min(_LONGEST_KOREAN, len(text)), 0, -1):
            if (meaning := KOREAN.get(text[:length])) is not None:
                words.extend(meaning)
                text = text[length:]
                break
        else:
            return ("?",)
    return words


def _joined(words: Iterable[str]) -> Iterator[str]:
    """Yields the words, with each known pair as one; `in` counts only at the beginning.

    `over` counts only before a number: `over 2 weeks ago`, but `over the last days`.
    """
    held = ""
    for word in words:
        if held == "over":
            held = "more" if word in VAGUE or word[0].isdecimal() else ""
        if pair := _PAIRS.get((held, word)):
            held = pair
        elif word == "년" and len(held) == 4 and held.isdigit():
            continue  # The mark of a year.
        elif word != "in" or not held:
            if held:
                yield held
            held = word
    if held:
        yield held
