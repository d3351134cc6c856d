"""Source code, cut at blank lines where no function is torn.

Indentation tells, whatever the language: a block that stands deeper than a line above it belongs
to that line, unless the line opens a class or the like, whose members may stand for themselves.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from mimo.domain.chunking.cutting import by_lines, by_words, fitting
from mimo.domain.chunking.model import Layout, Part, Stretch, trimmed
from mimo.domain.chunking.prose import by_paragraphs

_TAB = 4


class _Above(NamedTuple):
    """A line that later lines may stand deeper than."""

    indent: int
    opens: bool
    """Whether it opens something whose members stand for themselves."""


def code(text: str, *, triple_quotes: bool) -> Layout:
    """Returns functions and other blocks that blank lines part.

    With `triple_quotes`, a blank line within three quotes parts nothing.
    """
    found: list[Part] = []
    above: list[_Above] = []
    fresh = True
    for start, end, quoted in _lines(text, triple_quotes=triple_quotes):
        line = text[start:end]
        if not line.strip():
            fresh = fresh or not quoted
            continue
        if not quoted:
            joins = _step_into(above, line)
            if fresh and not joins:
                found.append(Part(start, end))
            fresh = False
        found = found or [Part(start, end)]
        found[-1] = found[-1]._replace(end=end)
    parts = [Part(*trimmed(text, part.start, part.end)) for part in found]
    return Layout(parts, cut=_smaller, packs=True)


def _smaller(text: str, start: int, end: int, size: int) -> list[Stretch]:
    return list(fitting(text, start, end, size, (by_paragraphs, by_lines, by_words)))


def _lines(text: str, *, triple_quotes: bool) -> Iterator[tuple[int, int, bool]]:
    """Yields start and end of each line, and whether it begins within three quotes."""
    start, open_quote = 0, ""
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end, bool(open_quote)
        if triple_quotes:
            open_quote = _quote_after(text, start, end, open_quote)
        start = end + 1


def _quote_after(text: str, start: int, end: int, open_quote: str) -> str:
    """Returns the three quotes that are open at the end of a line."""
    for found in _triple().finditer(text, start, end):
        if not open_quote:
            open_quote = found[0]
        elif open_quote == found[0]:
            open_quote = ""
    return open_quote


def _step_into(above: list[_Above], line: str) -> bool:
    """Returns whether a line belongs to a line above it, and puts it among those."""
    bare = line.strip()
    indent = len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip())
    opens = _container().match(bare) is not None
    while above and above[-1].indent >= indent:
        # A brace on a line of its own opens what the line before it names.
        opens = opens or (bare == "{" and above[-1].indent == indent and above[-1].opens)
        above.pop()
    joins = not all(one.opens for one in above) or _joining().match(bare) is not None
    above.append(_Above(indent, opens))
    return joins


@cache
def _triple() -> re.Pattern[str]:
    return re.compile(r"\"\"\"|'''")


@cache
def _container() -> re.Pattern[str]:
    modifiers = (
        "export|default|public|private|protected|internal|abstract|final|sealed|static|partial|"
        "pub|open|data|unsafe|declare"
    )
    words = (
        "class|interface|trait|impl|struct|enum|module|defmodule|namespace|object|extension|mod|"
        "protocol|record"
    )
    return re.compile(rf"(?:(?:{modifiers})(?:\([^)]*\))?\s+)*(?:{words})\b")


@cache
def _joining() -> re.Pattern[str]:
    """Returns what begins a line that goes on with what is before it."""
    return re.compile(r"[{})\]]|(?:end|else|elif|elsif|except|finally|catch|rescue|then)\b")
