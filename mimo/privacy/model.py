"""The texts of a value, findings in them and their marks, and texts as the detectors read them.

A finding has a place and a kind, never the secret itself. A folded text has ASCII characters for
look-alikes, and no invisible characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from mimo.frozen import NamedTuple
from mimo.text.clean import SEQUENCES, compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Span = tuple[str, int, int]
"""A kind, a start and an end."""


def texts_of(value: Any) -> list[str]:
    """Returns every text in strings, lists, mappings and dataclasses, keys included.

    A text comes with its name, since the name alone can make it a password.
    """
    texts: list[str] = []
    _collect(value, texts)
    return texts


def name_in(entry: Mapping[Any, Any], key: Any) -> Any:
    """Returns a key, or for `value` the name beside it, as in `{"name": …, "value": …}`."""
    names = ("name", "Name", "key", "Key") if key in ("value", "Value") else ()
    return next((entry[name] for name in names if isinstance(entry.get(name), str)), key)


_WITHOUT_TEXT = frozenset({type(None), bool, int, float})
_LISTS = (list, tuple)


def _collect(value: Any, texts: list[str]) -> None:
    # An answer has thousands of values: the usual types come first.
    if isinstance(value, str):
        texts.append(value)
    elif type(value) in _WITHOUT_TEXT:
        return
    elif isinstance(value, _LISTS):
        for item in value:
            _collect(item, texts)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, str):
                texts.append(f'{name_in(value, key)}: "{item}"')
            else:
                texts.append(str(key))
                _collect(item, texts)
    elif not isinstance(value, int | float | type):
        from mimo.frozen import names_of

        for name in names_of(value):
            _collect(getattr(value, name), texts)


class Finding(NamedTuple):
    """A secret or personal data in a text."""

    kind: str
    """For example `github_token` or `email`."""
    start: int
    end: int
    line: int
    """1-based."""


PROSE = "secret_in_prose"
"""The kind of a password or token in a sentence: it may be stored, with a warning."""


def findings(text: str, spans: Iterable[Span]) -> tuple[Finding, ...]:
    """Returns the spans as findings, in order; overlapping ones become one.

    It has the kind of the first one, unless that is `secret_in_prose`.
    """
    result: list[Finding] = []
    line, position = 1, 0
    for kind, start, end in sorted(spans, key=lambda span: (span[1], -span[2])):
        if result and start < (previous := result[-1]).end:
            label = kind if previous.kind == PROSE else previous.kind
            result[-1] = previous._replace(kind=label, end=max(end, previous.end))
            continue
        line += text.count("\n", position, start)
        position = start
        result.append(Finding(kind, start, end, line))
    return tuple(result)


APART = "\x00"
"""Separates texts that are searched as one."""

STAND_IN = "REDACTED-"
"""Beginning of the replacement of a key, which is a valid key itself."""


def mark(kind: str) -> str:
    """Returns the replacement of something that is not shown."""
    return f"[REDACTED:{kind}]"


def without(text: str, hits: Iterable[Finding]) -> str:
    """Returns the text with a mark in the place of each finding; findings must be disjoint."""
    parts, position = [], 0
    for hit in hits:
        parts += [text[position : hit.start], mark(hit.kind)]
        position = hit.end
    return "".join([*parts, text[position:]])


_AROUND = 24
"""Characters of the line that an excerpt shows on either side."""


def excerpts(text: str, hits: Sequence[Finding]) -> Iterator[str]:
    """Yields the surroundings of each finding in its line, with every finding masked."""
    ends = [0, *(hit.end for hit in hits)]
    starts = [*(hit.start for hit in hits), len(text)]
    for number, at in enumerate(hits):
        start = max(ends[number], at.start - _AROUND)
        start = max(start, text.rfind("\n", start, at.start) + 1)
        end = min(starts[number + 1], at.end + _AROUND)
        tail = text.find("\n", at.end, end)
        end = end if tail < 0 else tail
        snippet = f"{text[start : at.start]}{mark(at.kind)}{text[at.end : end]}"
        lead = "…" if text[start - 1 : start] not in ("", "\n") else ""
        after = "…" if text[end : end + 1] not in ("", "\n") else ""
        yield lead + re.sub(r"\s+", " ", snippet).strip() + after


_LOOKALIKES = dict(
    zip(
        "аеорсухіѕјԁһԛԝАВЕКМНОРСТУХІЅЈαορνιΑΒΕΖΗΙΚΜΝΟΡΤΥΧİ。․·∶ː",  # noqa: RUF001
        "aeopcyxisjdhqwABEKMHOPCTYXISJaopviABEZHIKMNOPTYXI...::",
        strict=True,
    )
)
"""Cyrillic, Greek and Turkish letters, and signs, that look like an ASCII character."""

_BLANKS = "\u115f\u1160\u3164\uffa0\u2800\ufffc"
"""Invisible letters and symbols: fillers of Hangul, the empty Braille pattern."""

_HIDDEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn")
"""Categories of characters that are invisible, or only change the one before them."""

_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
_CONTROLS = r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]|\x00(?!\n)"
"""Control characters, except the NUL and newline that separate texts (`APART`)."""

_ESCAPE = r"\\([nrt]|u00[2-7][0-9A-Fa-f]|[!-/:-@\[-`{-~])|%([2-7][0-9A-Fa-f]|0[AD])"
_LETTERS = {"n": "\n", "r": "\n", "t": "\t"}


_FEW = 20
"""Up to so many different characters, replacing one by one is faster than a table."""


class Folded(NamedTuple):
    """A text as the detectors read it, and the places of its characters in the original."""

    text: str
    cuts: Sequence[int] = ()
    """Places in `text` before which characters of the original are missing."""
    missing: Sequence[int] = (0,)
    """Total number of missing characters before the first cut, the second, and so on."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Returns the place in the original of a non-empty stretch of the text."""
        return self._place(start), self._place(end - 1) + 1

    def _place(self, place: int) -> int:
        return place + self.missing[bisect_right(self.cuts, place)]


def folded(text: str) -> Folded:
    """Returns a text with an ASCII character for each look-alike."""
    plain = text
    if not text.isascii():
        plain_chars = {char: _plain(char) for char in set(text) if not char.isascii()}
        changed = {char: new for char, new in plain_chars.items() if new != char}
        if len(changed) > _FEW:
            plain = text.translate({ord(char): new for char, new in changed.items()})
        else:
            for char, new in changed.items():
                plain = plain.replace(char, new)
    visible = plain.replace(f"{APART}\n", "\n").replace("\n", "").replace("\t", "")
    if visible.isprintable() or not compiled(_CONTROL).search(visible):
        return Folded(plain)
    return _replaced(plain, f"{SEQUENCES}|{_CONTROLS}", lambda match: "")


def unescaped(text: str) -> Folded | None:
    r"""Returns a text as Markdown, JSON and URLs show it: `\_` is `_`, and `\n` ends a line.

    None if it has no such escape.
    """
    if "\\" not in text and "%" not in text:
        return None

    def meant(match: re.Match[str]) -> str:
        sign: str = match[1] or match[2]
        return _LETTERS.get(sign, sign) if len(sign) == 1 else chr(int(sign[-2:], 16))

    seen = _replaced(text, _ESCAPE, meant, all_lines=False)
    return seen if seen.text else None


_ALONE = (
    r"[\r\n][ \t>#*/]{0,40}+[\"'`]?+"
    r"(?=(=?[A-Za-z0-9_/+.%~-]{1,4000}+={0,2}+)[\"'`]?+[ \t+\\,;]{0,10}+(?:[\r\n]|\Z))"
    r"(?=[^\r\n]{0,4000}?(?:\d|[a-z][A-Z]))"
)
_WRAP = rf"[\"'`]?+[ \t]{{0,8}}+[+\\]?+[ \t]{{0,8}}+\r?+{_ALONE}"
"""A line break before a line that has nothing but a piece of a token, and is not just a word."""
_BEFORE_BREAK = r"[A-Za-z0-9_/+.%~=:?&-]{16}"
_LONGEST = 4_000
_NARROW = 30
"""Tokens are not wrapped at fewer columns."""


def unwrapped(text: str) -> Folded | None:
    """Returns the lines of a text over which a token may be broken, without these breaks.

    All lines of a wrapped token but the last are equally long. None if there are no such lines.
    """
    if not compiled(_ALONE).search(text):
        return None  # So for most texts, at once.
    is_wrapped = False

    def joined(match: re.Match[str]) -> str:
        nonlocal is_wrapped
        context = text[max(0, match.start() - _LONGEST) : match.start()]
        line = context[max(context.rfind("\n"), context.rfind("\r")) + 1 :]
        is_long = len(line) >= max(_NARROW, len(match[1]))
        if not (is_long and compiled(_BEFORE_BREAK).fullmatch(line[-16:])):
            return match[0]
        is_wrapped = True
        return ""

    seen = _replaced(text, _WRAP, joined, all_lines=False)
    return seen if is_wrapped else None


def lines_with(text: str, pattern: str) -> Folded:
    """Returns the lines of a text in which a pattern matches, with the line before each."""
    return _replaced(text, pattern, lambda match: match[0], all_lines=False)


def _replaced(
    text: str, pattern: str, meant: Callable[[re.Match[str]], str], *, all_lines: bool = True
) -> Folded:
    """Returns a text in which `meant` replaces each match by something shorter or nothing.

    Without `all_lines`, it consists of the lines with a match and the line before each.
    """
    parts: list[str] = []
    cuts: list[int] = []
    missing = [0]
    position = size = 0
    line_end = len(text) if all_lines else 0

    def take(end: int, following: int) -> None:
        """Copies the text up to `end` and continues at `following`."""
        nonlocal position, size
        parts.append(text[position:end])
        size += end - position
        cuts.append(size)
        missing.append(missing[-1] + following - end)
        position = following

    for match in compiled(pattern).finditer(text):
        if match.start() >= line_end:
            line = text.rfind("\n", line_end, match.start())
            take(line_end, text.rfind("\n", line_end, max(line, line_end)) + 1 or line_end)
        if match.end() >= line_end:
            line_end = text.find("\n", match.end()) + 1 or len(text)
        sign = meant(match)
        if sign != match[0]:
            take(match.start(), match.end() - len(sign))
            parts.append(sign)
            size += len(sign)
            position += len(sign)
    return Folded("".join([*parts, text[position:line_end]]), cuts, missing)


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    """Returns the ASCII look-alike of a character; a control character for an invisible one."""
    if char in _LOOKALIKES:
        return _LOOKALIKES[char]
    import unicodedata

    category = unicodedata.category(char)
    if category in ("Zl", "Zp") or char == "\x85":
        return "\n"
    if category in _HIDDEN or char in _BLANKS:
        return "\x7f"
    if category == "Zs":
        return " "
    if category == "Pd":
        return "-"
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    compatible = unicodedata.normalize("NFKC", char)
    return compatible if len(compatible) == 1 else char
