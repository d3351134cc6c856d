"""The Markdown of the log -> its statements, each with its line, its section and its day.

Fenced and indented code, HTML and quotations are nobody's statement here. A list item whose text
goes on in the next lines, indented, is one statement, unless one of those begins one of its own.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mimo.domain.log.days import read_day

if TYPE_CHECKING:
    from markdown_it.token import Token

_COMMENT = re.compile(r"<!--.*?-->")
_QUOTED = re.compile(r"[\s\d*+.)-]*>")


class Part(StrEnum):
    """What a section of the log is for."""

    STATE = "project state"
    GOTCHAS = "gotchas"
    LOG = "log"


class Line(NamedTuple):
    """One statement, as it stands without its list marker."""

    number: int
    """1-based."""
    text: str
    part: Part
    day: datetime | None
    """From the nearest heading above that is a date; None in the state and among the gotchas."""
    bullet: bool = False
    depth: int = 0
    """How many lists it lies in."""
    heading: bool = False


def statements(text: str, *, read_at: datetime, begins: Callable[[str], bool]) -> Iterator[Line]:
    """Yields the statements of the log, and each heading that is more than a date.

    `begins` says whether a line begins a statement of its own.
    """
    part, day, quoted, depth, opened = Part.LOG, None, 0, 0, ""
    item, raws = False, text.split("\n")
    for token in _tokens(text):
        match token.type:
            case "blockquote_open" | "blockquote_close":
                quoted += token.nesting
            case "bullet_list_open" | "ordered_list_open":
                depth += 1
            case "bullet_list_close" | "ordered_list_close":
                depth -= 1
            case "list_item_open":
                item = True
            case "heading_open":
                opened = token.tag
            case "heading_close":
                opened = ""
            case "inline" if opened:
                part, day, line = _headed(token, opened, part, day, read_at)
                yield from line
            case "inline":
                own = None if part in (Part.STATE, Part.GOTCHAS) else day
                found = _said(token, raws, part, own, depth, begins)
                # Markdown counts an unmarked line that follows a quotation as part of it.
                found = [ln for ln in found if not (quoted and _QUOTED.match(raws[ln.number - 1]))]
                yield from (
                    one._replace(bullet=item) if n == 0 else one for n, one in enumerate(found)
                )
                item = False


def _tokens(text: str) -> "list[Token]":
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark").disable("lheading")
    # What stands within a line is told apart by the grammar.
    reader.core.ruler.enableOnly(["normalize", "block"])
    return reader.parse(text)


def _headed(
    token: "Token", tag: str, part: Part, day: datetime | None, read_at: datetime
) -> tuple[Part, datetime | None, tuple[Line, ...]]:
    """Returns the section and the day that hold below a heading, and what it says itself."""
    name, *rest = (piece.strip() for piece in token.content.split("|"))
    number = (token.map or [0])[0] + 1
    if named := read_day(name, read_at=read_at):
        summary = " | ".join(rest)
        line = Line(number, summary, Part.LOG, named, heading=True)
        return Part.LOG, named, (line,) if summary else ()
    if tag in ("h1", "h2"):
        known = name.lower().rstrip(":")
        return (Part(known) if known in (Part.STATE, Part.GOTCHAS) else Part.LOG), day, ()
    return part, day, ()


def _said(
    token: "Token",
    raws: Sequence[str],
    part: Part,
    day: datetime | None,
    depth: int,
    begins: Callable[[str], bool],
) -> list[Line]:
    """Returns the statements of a paragraph: one for each line, or one for a list item."""
    first = (token.map or [0])[0]
    found: list[Line] = []
    for number, raw in enumerate(token.content.split("\n"), first):
        text = _COMMENT.sub("", raw).strip()
        indented = depth and found and raws[number][:1].isspace()
        if indented and text and not begins(text):
            found[-1] = found[-1]._replace(text=f"{found[-1].text} {text}")
        elif text and not text.startswith("|"):
            found.append(Line(number + 1, text, part, day, depth=depth))
    return found
