"""Texts as a detector reads them: look-alike characters as ASCII, invisible ones left out."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from mimo.text.clean import SEQUENCES

# What the detectors find: where something stands and what kind of thing it is, never the thing.


Span = tuple[str, int, int]
"""A kind, and where it begins and ends."""


class Finding(NamedTuple):
    """Something in a text that should not be there, or not be shown."""

    kind: str
    """Such as `github_token` or `email`."""
    start: int
    end: int
    line: int
    """Counted from 1."""


def findings(text: str, spans: Iterable[Span]) -> tuple[Finding, ...]:
    """Returns what stands at the spans, in order, overlapping ones as one of the first's kind."""
    found: list[Finding] = []
    line, last = 1, 0
    for kind, start, end in sorted(spans, key=lambda one: (one[1], -one[2])):
        if found and start < found[-1].end:
            found[-1] = found[-1]._replace(end=max(end, found[-1].end))
            continue
        line += text.count("\n", last, start)
        last = start
        found.append(Finding(kind, start, end, line))
    return tuple(found)


APART = "\x00"
"""What keeps texts apart that are looked through as one."""

STAND_IN = "REDACTED-"
"""How what stands in the place of a key begins: it is a key itself, by the rules for keys."""


def mark(kind: str) -> str:
    """Returns what stands in the place of something that is not shown."""
    return f"[REDACTED:{kind}]"


def without(text: str, found: Iterable[Finding]) -> str:
    """Returns the text with a mark in the place of each finding, which must be disjoint."""
    parts, last = [], 0
    for one in found:
        parts += [text[last : one.start], mark(one.kind)]
        last = one.end
    return "".join([*parts, text[last:]])


_AROUND = 24
"""Characters of a line that an excerpt shows on either side."""


def excerpts(text: str, found: Sequence[Finding]) -> Iterator[str]:
    """Yields the surroundings of each finding in its line, with every finding masked."""
    ends = [0, *(one.end for one in found)]
    starts = [*(one.start for one in found), len(text)]
    for number, at in enumerate(found):
        start = max(ends[number], at.start - _AROUND)
        start = max(start, text.rfind("\n", start, at.start) + 1)
        end = min(starts[number + 1], at.end + _AROUND)
        tail = text.find("\n", at.end, end)
        shown = f"{text[start : at.start]}{mark(at.kind)}{text[at.end : end if tail < 0 else tail]}"
        yield re.sub(r"\s+", " ", shown).strip()


# Patterns that are compiled when a text first needs them: most texts need hardly any.


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Returns a pattern as it is matched with."""
    return re.compile(pattern)


_LOOKALIKES = dict(
    zip(
        "аеорсухіѕјԁһԛԝАВЕКМНОРСТУХІЅЈαορνιΑΒΕΖΗΙΚΜΝΟΡΤΥΧİ。․·∶ː",  # noqa: RUF001
        "aeopcyxisjdhqwABEKMHOPCTYXISJaopviABEZHIKMNOPTYXI...::",
        strict=True,
    )
)
"""Cyrillic, Greek and Turkish letters, and signs, that look like one of ASCII."""

_BLANKS = "\u115f\u1160\u3164\uffa0\u2800\ufffc"
"""Letters and symbols that show nothing: fillers of Hangul, the empty Braille pattern."""

_HIDDEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn")
"""Categories of characters that show nothing, or only change the one before them."""

_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
_CONTROLS = r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]|\x00(?!\n)"
"""Control characters; not the NUL and newline that keep texts apart (`model.APART`)."""

_ESCAPE = r"\\([nrt]|u00[2-7][0-9A-Fa-f]|[!-/:-@\[-`{-~])|%([2-7][0-9A-Fa-f]|0[AD])"
_LETTERS = {"n": "\n", "r": "\n", "t": "\t"}


_FEW = 20
"""So many characters are replaced faster one by one than with a table."""


class Folded(NamedTuple):
    """A text as it is read, and the places of its characters in the original."""

    text: str
    cuts: Sequence[int] = ()
    """Places in `text` before which characters of the original are missing."""
    missing: Sequence[int] = (0,)
    """How many are missing before the first cut, the second, and so on, in all."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Returns the place in the original of a stretch of the text that is not empty."""
        return self._place(start), self._place(end - 1) + 1

    def _place(self, place: int) -> int:
        return place + self.missing[bisect_right(self.cuts, place)]


def folded(text: str) -> Folded:
    """Returns a text with one ASCII character for each that looks like one."""
    plain = text
    if not text.isascii():
        signs = {one: _plain(one) for one in set(text) if not one.isascii()}
        changed = {one: meant for one, meant in signs.items() if meant != one}
        if len(changed) > _FEW:
            plain = text.translate({ord(one): meant for one, meant in changed.items()})
        else:
            for one, meant in changed.items():
                plain = plain.replace(one, meant)
    if not compiled(_CONTROL).search(plain):
        return Folded(plain)
    return _replaced(plain, f"{SEQUENCES}|{_CONTROLS}", lambda match: "")


def unescaped(text: str) -> Folded | None:
    r"""Returns a text as Markdown, JSON and URLs show it: `\_` is `_`, and `\n` ends a line.

    None if it has no such escape.
    """
    if "\\" not in text and "%" not in text:
        return None
    seen = _replaced(text, _ESCAPE, _meant, whole=False)
    return seen if seen.text else None


def lines_with(text: str, pattern: str) -> Folded:
    """Returns the lines of a text in which a pattern matches, with the line before each."""
    return _replaced(text, pattern, lambda match: match[0], whole=False)


def _meant(match: re.Match[str]) -> str:
    sign = match[1] or match[2]
    if len(sign) > 1:
        return chr(int(sign[-2:], 16))
    return _LETTERS.get(sign, sign)


def _replaced(
    text: str, pattern: str, meant: Callable[[re.Match[str]], str], *, whole: bool = True
) -> Folded:
    """Returns a text in which something shorter, or nothing, replaces each match.

    Unless it is to be the whole text, only lines with a match are in it, and the line before each.
    """
    parts: list[str] = []
    cuts: list[int] = []
    missing = [0]
    last = size = 0
    line_end = len(text) if whole else 0

    def take(end: int, following: int) -> None:
        """Takes the text up to `end`, and goes on behind what is left out."""
        nonlocal last, size
        parts.append(text[last:end])
        size += end - last
        cuts.append(size)
        missing.append(missing[-1] + following - end)
        last = following

    for match in compiled(pattern).finditer(text):
        if match.start() >= line_end:
            line = text.rfind("\n", line_end, match.start())
            take(line_end, text.rfind("\n", line_end, max(line, line_end)) + 1 or line_end)
            line_end = text.find("\n", match.end()) + 1 or len(text)
        sign = meant(match)
        if sign != match[0]:
            take(match.start(), match.end() - len(sign))
            parts.append(sign)
            size += len(sign)
            last += len(sign)
    return Folded("".join([*parts, text[last:line_end]]), cuts, missing)


@lru_cache(maxsize=4096)
def _plain(one: str) -> str:
    """Returns the character that one looks like; a control character for an invisible one."""
    if one in _LOOKALIKES:
        return _LOOKALIKES[one]
    import unicodedata

    category = unicodedata.category(one)
    if category in ("Zl", "Zp") or one == "\x85":
        return "\n"
    if category in _HIDDEN or one in _BLANKS:
        return "\x7f"
    if category == "Zs":
        return " "
    if category == "Pd":
        return "-"
    digit = unicodedata.digit(one, None)
    if digit is not None:
        return str(digit)
    compatible = unicodedata.normalize("NFKC", one)
    return compatible if len(compatible) == 1 else one
