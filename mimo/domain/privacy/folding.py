"""Texts as a detector reads them: look-alike characters as ASCII, invisible ones left out."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from mimo.domain.clean import SEQUENCES
from mimo.domain.privacy.patterns import compiled

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
