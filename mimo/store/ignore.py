"""Patterns of `.gitignore`, which match what they match in git, byte by byte.

All patterns of a file become one regular expression. Stars are atomic groups that take the first
match of the text behind them, since a later one never helps. So no pattern is slow to match; those
with special characters are slow to compile, so a file may not have many.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from mimo.errors import Invalid
from mimo.frozen import NamedTuple

_MOST_BYTES = 64 * 1024
"""The most bytes in patterns with special characters, which compile in up to five seconds."""
_BOM = b"\xef\xbb\xbf"
_SPECIAL = re.compile(rb"[*?\[\\]")
_STAR, _FOLDERS = b"*", b"**"
"""Parts of a pattern: any text in a name, and any number of folders, each with its slash."""
_CLASSES = {
    b"alnum": string.ascii_letters + string.digits,
    b"alpha": string.ascii_letters,
    b"blank": " \t",
    b"cntrl": "".join(map(chr, range(32))) + "\x7f",
    b"digit": string.digits,
    b"graph": string.ascii_letters + string.digits + string.punctuation,
    b"lower": string.ascii_lowercase,
    b"print": string.ascii_letters + string.digits + string.punctuation + " ",
    b"punct": string.punctuation,
    b"space": " \t\n\r",
    b"upper": string.ascii_uppercase,
    b"xdigit": string.hexdigits,
}


class Patterns(NamedTuple):
    """The patterns of a file, of which the last one that matches a path decides."""

    negated: tuple[bool, ...]
    """True for each pattern that begins with `!`, from the last one to the first."""
    plain: Mapping[bytes, int]
    """The numbers of patterns without special characters. A path begins with a slash."""
    names: _Numbered
    paths: _Numbered

    def ignore(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Returns whether a path relative to the file's folder is ignored; None for no match."""
        name = path.rpartition(b"/")[2]
        texts = [name, b"/" + path]
        if is_folder:
            texts += [text + b"/" for text in texts]
        numbers = [self.plain[text] for text in texts if text in self.plain]
        numbers += [*self.names.first(texts[-2]), *self.paths.first(texts[-1][1:])]
        return not self.negated[min(numbers)] if numbers else None


class _Numbered(NamedTuple):
    """The regular expression of several patterns, and the number of each of its groups."""

    expression: re.Pattern[bytes] | None
    numbers: Sequence[int]

    def first(self, text: bytes) -> Sequence[int]:
        """Returns the number of the first pattern that matches, if any."""
        match = self.expression.match(text) if self.expression else None
        return [self.numbers[match.lastindex - 1]] if match and match.lastindex else []


def patterns_of(data: bytes) -> Patterns:
    """Returns the patterns of an ignore file, without those that match nothing in git.

    Raises `Invalid` if too many have special characters.
    """
    negated: list[bool] = []
    special = 0
    plain: dict[bytes, int] = {}
    expressions: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
    for line in reversed(data.removeprefix(_BOM).split(b"\n")):
        pattern = _without_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
        if pattern.startswith(b"#"):
            continue
        is_negated = pattern.startswith(b"!")
        pattern = pattern[is_negated:]
        end = b"/" if pattern.endswith(b"/") else b""
        pattern = pattern.removesuffix(b"/")
        is_path = b"/" in pattern
        pattern = pattern.removeprefix(b"/")
        if not _SPECIAL.search(pattern):
            plain.setdefault(b"/" * is_path + pattern + end, len(negated))
        else:
            special += len(pattern)
            if special > _MOST_BYTES:
                raise Invalid(
                    f"the patterns with `*`, `?`, `[` or `\\` exceed {_MOST_BYTES:,} bytes"
                )
            with suppress(ValueError):
                parts = _parts(pattern, is_path=is_path)
                expressions[is_path][len(negated)] = _expression(parts, is_folder=bool(end))
        negated.append(is_negated)
    return Patterns(tuple(negated), plain, *map(_numbered, expressions))


def _numbered(expressions: Mapping[int, bytes]) -> _Numbered:
    # A group after each, so that the engine compares the first character of each at once.
    every = b"|".join(b"%s()" % expression for expression in expressions.values())
    return _Numbered(re.compile(rb"(?s:%s)\Z" % every) if every else None, [*expressions])


def _without_spaces(line: bytes) -> bytes:
    """Returns a line without the spaces at its end, except one behind a backslash."""
    rest = line.rstrip(b" ")
    is_escaped = (len(rest) - len(rest.rstrip(b"\\"))) % 2 == 1
    return line[: len(rest) + is_escaped]


def _expression(parts: Iterable[bytes], *, is_folder: bool) -> bytes:
    """Returns the regular expression of a pattern. A folder ends in a slash."""
    first, *others = _split(parts, _FOLDERS)
    written = [_within(first)]
    # The first name is empty if the pattern is `a**/b`, and the path is `a/b`.
    written += [rb"(?>(?:[^/]*/)*?%s)" % _within(other) for other in others[:-1]]
    written += [rb"(?:[^/]*/)*%s" % _within(other) for other in others[-1:]]
    return b"".join(written) + (rb"(?<!/)/" if is_folder else rb"(?<!/)/?")


def _within(parts: Iterable[bytes]) -> bytes:
    """Returns the regular expression of the parts between two marks of folders."""
    first, *others = (b"".join(texts) for texts in _split(parts, _STAR))
    written = [first]
    written += [rb"(?>[^/]*?%s)" % other for other in others[:-1]]
    written += [rb"[^/]*%s" % other for other in others[-1:]]
    return b"".join(written)


def _split(parts: Iterable[bytes], mark: bytes) -> list[list[bytes]]:
    divided: list[list[bytes]] = [[]]
    for part in parts:
        if part == mark:
            divided.append([])
        else:
            divided[-1].append(part)
    return divided


def _parts(pattern: bytes, *, is_path: bool) -> list[bytes]:
    """Returns the parts of a pattern: marks, and regular expressions of a fixed length.

    Raises `ValueError` if the pattern matches nothing.
    """
    # Git compares the text before the first special character apart. So two stars behind it are at
    # the beginning, too: `a**/b` matches `ab`, `a/b` and `a1/2/b`.
    special = _SPECIAL.search(pattern)
    first = special.start() if special else len(pattern)
    parts = [re.escape(pattern[:first])]
    place = first
    while place < len(pattern):
        char = pattern[place : place + 1]
        place += 1
        if char == b"*":
            is_start = place - 1 == first or pattern[place - 2 : place - 1] == b"/"
            stars, place = _stars(pattern, place, is_start=is_path and is_start)
            parts += stars
        elif char == b"?":
            parts.append(b"[^/]")
        elif char == b"[":
            part, place = _bracket(pattern, place)
            parts.append(part)
        elif char == b"\\":
            parts.append(re.escape(_at(pattern, place)))
            place += 1
        else:
            parts.append(re.escape(char))
    return parts


def _stars(pattern: bytes, place: int, *, is_start: bool) -> tuple[Sequence[bytes], int]:
    """Returns the parts for stars, of which one is before a place, and the place behind them."""
    rest = pattern[place:].lstrip(b"*")
    end = len(pattern) - len(rest)
    if is_start and end > place:
        if not rest:
            return [b".*"], end
        if rest.startswith(b"/"):
            return [_FOLDERS], end + 1
        if rest.startswith(b"\\/"):
            return [_STAR, b"/", _FOLDERS], end + 2
    return [_STAR], end


def _at(pattern: bytes, place: int) -> bytes:
    """Returns the byte at a place. Raises `ValueError` at the end of the pattern."""
    if place >= len(pattern):
        raise ValueError("the pattern ends too early")
    return pattern[place : place + 1]


def _bracket(pattern: bytes, place: int) -> tuple[bytes, int]:
    """Returns the regular expression of a set of bytes, and the place behind its bracket.

    Raises `ValueError` if the set is not closed, has an unknown class, or is empty.
    """
    members: set[int] = set()
    is_negated = _at(pattern, place) in b"!^"
    place += is_negated
    last: int | None = None
    is_first = True
    while is_first or _at(pattern, place) != b"]":
        is_first = False
        char = _at(pattern, place)
        if char == b"-" and last is not None and pattern[place + 1 : place + 2] not in (b"", b"]"):
            place += 1 + (pattern[place + 1 : place + 2] == b"\\")
            members.update(range(last, _at(pattern, place)[0] + 1))
            last = None
        elif char == b"[" and (name := _class_name(pattern, place)) is not None:
            if name not in _CLASSES:
                raise ValueError("the class is unknown")
            members.update(_CLASSES[name].encode())
            place += len(name) + 3
            last = None
        else:
            place += char == b"\\"
            last = _at(pattern, place)[0]
            members.add(last)
        place += 1
    members = members - set(b"/") if not is_negated else members | set(b"/")
    if not members:
        raise ValueError("the set is empty")
    listed = b"".join(rb"\x%02x" % member for member in sorted(members))
    return b"[%s%s]" % (b"^" * is_negated, listed), place + 1


def _class_name(pattern: bytes, place: int) -> bytes | None:
    """Returns the name of a class such as `[:digit:]` at a place; None if it is not one."""
    if pattern[place + 1 : place + 2] != b":":
        return None
    end = pattern.find(b"]", place + 2)
    if end < 0:
        raise ValueError("the class is not closed")
    text = pattern[place + 2 : end]
    return text[:-1] if text.endswith(b":") else None
