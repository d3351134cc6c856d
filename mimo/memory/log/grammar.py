"""The grammar of a log: statements in its Markdown, each with its line, section and day.

Fenced and indented code, HTML and quotations have no statements. A list item with indented
continuation lines is one statement, unless one of these lines begins another.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from mimo.frozen import frozen
from mimo.memory.model import Kind
from mimo.text.calendar import MONTHS, month_number

if TYPE_CHECKING:
    from markdown_it.token import Token


# A single statement: a decision, an issue or a learning, its confidence and its parts.

_SHORTEST_TITLE = 3
_LONGEST = 2_000
"""Characters of a line that are read, which bounds the time of every pattern."""
_MARKED, _EXPLICIT = 0.9, 0.7


@frozen
class Statement:
    """A statement that is worth remembering."""

    kind: Kind
    title: str
    confidence: float
    status: str | None = None
    reasoning: str | None = None
    alternatives: tuple[str, ...] = ()
    key: bool = False
    """True if it must never fade: `KEY:` or `important:`."""


_WORDS: Mapping[Kind, str] = {
    Kind.DECISION: "decided",
    Kind.ISSUE: "problem|issue|bug",
    Kind.INSIGHT: "learned|til|gotcha",
}
"""The words that mark a statement, bold or after `MEMORY:`."""

_FOUND_OUT = r"(?:discovered|reali[sz]ed|turns\s+out|found\s+out)"

# Tried in this order; the last group is the title, a pattern without one takes the whole line.
_PHRASES: Sequence[tuple[Kind, float, str]] = (
    (Kind.DECISION, 0.6, r"\bchose\s+(?:to\s+)?(.+)"),
    (Kind.DECISION, 0.5, r"\bdecided\b\s*:?\s*(?:(?:to|on|that)\s+)?(.+)"),
    (Kind.DECISION, 0.5, r"\b(?:going|went)\s+with\s+(.+)"),
    (Kind.DECISION, 0.5, r"\bsettled\s+on\s+(.+)"),
    (Kind.DECISION, 0.5, r"\bpicked\s+(?!up\b|apart\b|on\b)(.+)"),
    (Kind.DECISION, 0.5, r"\busing\s+(.+?\s(?:over|because|instead|rather)\s.+)"),
    (Kind.ISSUE, 0.6, r"^(?:problem|issue|bug)\s+((?:with|in|on)\s+.+)"),
    (Kind.ISSUE, 0.6, r"\b(?:problem|issue|bug)\s*:\s*(.+)"),
    (Kind.ISSUE, 0.5, r"\bhit\s+(?:an?|the)\s+(?:problem|issue|bug)\b\s*:?\s*(?:with\s+)?(.+)"),
    (Kind.ISSUE, 0.5, r"\b(?:struggling\s+with|stuck\s+on)\s+(.+)"),
    (Kind.ISSUE, 0.4, r"\b(?:doesn['’]t|does\s+not|won['’]t|will\s+not|isn['’]t|is\s+not)\s+work"),
    (Kind.ISSUE, 0.4, r"\b(?:broken|failing|failed)\b"),
    (Kind.INSIGHT, 0.6, r"^til\b[\s:,]*(.+)"),
    (Kind.INSIGHT, 0.6, r"(?:^|\b)gotcha\s*:\s*(.+)"),
    (Kind.INSIGHT, 0.5, r"(?<!machine.)\blearned\b\s*:?\s*(?:that\s+)?(.+)"),
    (Kind.INSIGHT, 0.5, rf"\b{_FOUND_OUT}\b[\s:,]*(?:that\s+)?(.+)"),
)

_WE = r"(?:we|i|they|you)"
_NOT_YET = r"(?:not|never|n['’]t|nt)\s+(?:yet\s+)?(?:been\s+)?"

_NOT_A: Mapping[Kind, str] = {
    Kind.DECISION: (
        r"\bdecided\s+not\s+to\b|\?\s*$"
        rf"|{_NOT_YET}(?:decided?|chosen?|settled|picked)\b"
        rf"|\b(?:should|shall|could)\s+{_WE}\b|\bif\s+{_WE}\s+(?:decided?|chose|picked)\b"
        r"|\b(?:might|may|must|to\s+be|needs?\s+to|have\s+to|yet\s+to)\s+(?:be\s+)?decided?\b"
    ),
    Kind.ISSUE: (
        r"\b(?:no|not|never|nothing|none|without|longer)\s+(?:\w+\s+)?(?:a\s+)?"
        r"(?:broken|failing|failed|problem|issue|bug)\b|n['’]t\s+(?:broken|failing|failed)\b"
        r"|\bif\s+(?:it|this|that)\s+(?:doesn['’]t|isn['’]t|won['’]t)\s+work"
    ),
    Kind.INSIGHT: rf"(?:\bnot|\bnever|n['’]t)\s+(?:yet\s+)?(?:learned|{_FOUND_OUT})\b|\?\s*$",
}
"""Look-alikes of each type."""

_RESOLVED = r"\b(?:fixed(?!-)|resolved|solved)\b|✓|✔|✅"
_UNRESOLVED = (
    r"(?:\bnot\b|n['’]t\b|\bnever\b|\bbe\b|\bget\b|\buntil\b|\bonce\b)\s+(?:\w+\s+)?"
    r"(?:fixed|resolved|solved)\b"
)
_BLOCKED = r"\bblocked\s+(?:by|on)\b|\bwaiting\s+(?:for|on)\b|\bneeds\s+(?:to|more)\b"
_REASON = r"(?:^|[\s,;(])(?:because|since|due\s+to|so\s+that|reason\s*:|why\s*:)\s+|,\s*so\s+"
_LEADING_REASON = (
    r"(?:\*\*|__)?(?:(?:because|since|due\s+to|so\s+that)\b|(?:reason|why)\s*:)\s*:?"
    r"(?:\*\*|__)?\s*(.+)"
)
_ALTERNATIVE = r"(?:\b(?:over|instead\s+of|rather\s+than|rejected\s*:)|,\s*not)\s+([^.;]+)"
_KEY = r"(?:\*\*|__)?(?:KEY|(?i:important))\s*:\s*(?:\*\*|__)?\s*(.+)"
_NEXT = r"(?:\*\*|__)?next(?:\s+steps?)?\s*:\s*(?:\*\*|__)?\s*(.+)"
_MEMORY = r"(?:\*\*|__)?MEMORY\s*:\s*(?:\*\*|__)?\s*(.+)"
_STATE = r"(?:\*\*|__)?(goal|stack|blocked)\s*:\s*(?:\*\*|__)?\s*(.*)"
_CHECKBOX = r"\[([ xX])\]\s+"

_APART = re.compile(r"\b[a-z]{2,12}://\S+|`[^`]+`|\"[^\"]+\"|“[^”]+”")
"""Addresses, code and quotations, which are not the writer's own phrases."""
_NO_WORD = "\ue000"


def statement(text: str) -> Statement | None:
    """Returns the statement of a line, or None if it has nothing to remember."""
    text, done = _unchecked(text[:_LONGEST])
    if match := _hit(_KEY, text, 0):
        inner = _sorted_out(match[1]) or Statement(
            kind=Kind.FACT, title=_plain(match[1]), confidence=_MARKED
        )
        result: Statement | None = replace(inner, key=True)
    elif match := _hit(_NEXT, text):
        status = "done" if done else "open"
        title = _plain(match[1])
        result = Statement(kind=Kind.PLAN, title=title, confidence=_MARKED, status=status)
    else:
        result = _sorted_out(text)
    if result is None or len(result.title) < _SHORTEST_TITLE:
        return None
    return replace(result, status="resolved") if done and result.kind is Kind.ISSUE else result


def remembered(text: str) -> Statement | None:
    """Returns the statement after `MEMORY:` in a comment; a fact by default."""
    return statement(f"MEMORY: {text}")


def reason_alone(text: str) -> str | None:
    """Returns the reason that a line gives for the previous line, or None."""
    match = _hit(_LEADING_REASON, text)
    return _plain(match[1]) if match else None


def begins(text: str) -> bool:
    """Returns whether a line begins with a mark, and so does not continue the previous line."""
    marks = "decided|problem|issue|bug|learned|til|gotcha|memory|key|important|next|fixed"
    return _hit(rf"(?:\*\*|__)(?:{marks})\b|(?:{marks})\s*:", text) is not None


def state(text: str) -> tuple[str, str] | None:
    """Returns `goal`, `stack` or `blocked` with its text, or None for another line."""
    match = _hit(_STATE, text)
    return (match[1].lower(), " ".join(match[2].replace("**", "").split())) if match else None


def line_key(text: str) -> str:
    """Returns a line without its checkbox, in normal form."""
    return " ".join(_unchecked(text)[0].split()).casefold()


def _unchecked(text: str) -> tuple[str, bool]:
    """Returns a line without its checkbox or tick, and whether that was set."""
    box = _hit(_CHECKBOX, text)
    text = text[box.end() :] if box else text
    bare = text.lstrip("✓✔✅ ")
    return bare, bool(box and box[1] != " ") or bare != text.lstrip()


def _sorted_out(text: str) -> Statement | None:
    """Returns a decision, an issue or a learning, in this order; after `MEMORY:` also a fact."""
    explicit = _hit(_MEMORY, text, 0)
    inner = explicit[1] if explicit else text
    for kind, words in _WORDS.items():
        if match := _hit(rf"(?:\*\*|__)(?:{words})\s*:?\s*(?:\*\*|__)\s*:?\s*(.+)", inner):
            return _statement(kind, _MARKED, match[1], text)
        if explicit and (match := _hit(rf"(?:{words})\b\s*:?\s*(?:(?:to|that)\s+)?(.+)", inner)):
            return _statement(kind, _EXPLICIT, match[1], text)
    bare = inner.replace("**", "")
    own = _APART.sub(lambda other: _NO_WORD * len(other[0]), bare)
    for kind, confidence, pattern in _PHRASES:
        match = _search(pattern, own)
        if match and not _search(_NOT_A[kind], own):
            sure = max(confidence, _EXPLICIT) if explicit else confidence
            title = bare[slice(*match.span(1))] if match.groups() else bare
            return _statement(kind, sure, title, text)
    return _statement(Kind.FACT, _EXPLICIT, inner, text) if explicit else None


def _statement(kind: Kind, confidence: float, title: str, line: str) -> Statement:
    title, reasoning = _without_reason(title) if kind is not Kind.INSIGHT else (title, None)
    alternatives = _search(_ALTERNATIVE, title) if kind is Kind.DECISION else None
    return Statement(
        kind=kind,
        title=_plain(title),
        confidence=_raised(confidence, line),
        status=_status(line) if kind is Kind.ISSUE else None,
        reasoning=reasoning,
        alternatives=_listed(alternatives[1]) if alternatives else (),
    )


def _raised(confidence: float, line: str) -> float:
    """Returns the confidence, raised by signs such as bold text or a reason."""
    lower = line.lower()
    raised = confidence + 0.2 * ("**" in line)
    raised += 0.15 * ("because" in lower) + 0.1 * (" over " in lower)
    raised += 0.1 * bool(_hit(_MEMORY, line, 0))
    return min(1.0, round(raised, 2))


def _status(line: str) -> str:
    if _search(_RESOLVED, line) and not _search(_UNRESOLVED, line):
        return "resolved"
    return "blocked" if _search(_BLOCKED, line) else "open"


def _without_reason(text: str) -> tuple[str, str | None]:
    match = _pattern(_REASON, re.IGNORECASE).search(text, _SHORTEST_TITLE)
    if match is None:
        return text, None
    return text[: match.start()], _plain(text[match.end() :]) or None


def _listed(text: str) -> tuple[str, ...]:
    """Returns the alternatives that are named in a row: `A, B or C`."""
    pieces = re.split(r"\s*,\s*(?:or\s+|and\s+)?|\s+or\s+", text)
    return tuple(plain for piece in pieces if (plain := _plain(piece)))


def _plain(text: str) -> str:
    """Returns text without bold marks and without marks around it."""
    bare = " ".join(text.replace("**", "").split()).strip(" ,;(—–-").rstrip(".:").strip()
    return bare[:-1] if bare.endswith(")") and bare.count(")") > bare.count("(") else bare


def _hit(pattern: str, text: str, flags: int = re.IGNORECASE) -> re.Match[str] | None:
    return _pattern(pattern, flags).match(text.strip())


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return _pattern(pattern, re.IGNORECASE).search(text)


@cache
def _pattern(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)


# Headings that are dates: `2026-12-12`, `December 12, 2026`, `Dec 12`, `12/31/2026`.


@cache
def _forms() -> tuple[re.Pattern[str], ...]:
    names = "|".join(f"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in MONTHS)
    month = rf"(?P<name>{names}|sept)\.?"
    return tuple(
        re.compile(form, re.IGNORECASE)
        for form in (
            r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?:[T ].*)?",
            rf"{month}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{{4}}))?",
            rf"(?P<day>\d{{1,2}})\s+{month}(?:,?\s+(?P<year>\d{{4}}))?",
            r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})",
        )
    )


def read_day(heading: str, *, read_at: datetime) -> datetime | None:
    """Returns midnight UTC of the day in a heading, or None for another heading.

    Without a year it is the latest such day before `read_at`.
    """
    text = heading.strip().strip("*_ ")
    match = next((hit for form in _forms() if (hit := form.fullmatch(text))), None)
    if match is None:
        return None
    parts = match.groupdict()
    month = int(parts["month"]) if parts.get("month") else month_number(parts["name"])
    day = int(parts["day"])
    if parts["year"]:
        return _midnight(int(parts["year"]), month, day)
    named = _midnight(read_at.year, month, day)
    is_to_come = named is not None and named > read_at + timedelta(days=1)
    return _midnight(read_at.year - 1, month, day) if is_to_come else named


def _midnight(year: int, month: int, day: int) -> datetime | None:
    try:
        day_ = date(year, month, day)
    except ValueError:
        return None
    return datetime(day_.year, day_.month, day_.day, tzinfo=UTC)


_COMMENT = re.compile(r"<!--.*?-->")
_QUOTED = re.compile(r"[\s\d*+.)-]*>")


class Part(StrEnum):
    """The sections of a log."""

    STATE = "project state"
    GOTCHAS = "gotchas"
    LOG = "log"


class Line(NamedTuple):
    """A line with a statement, without its list marker."""

    number: int
    """1-based."""
    text: str
    part: Part
    day: datetime | None
    """From the nearest heading above that is a date; None in the state and among the gotchas."""
    bullet: bool = False
    depth: int = 0
    """Number of enclosing lists."""
    heading: bool = False


def statements(text: str, *, read_at: datetime, begins: Callable[[str], bool]) -> Iterator[Line]:
    """Yields the statements of the log, and each heading that is more than a date.

    `begins` returns whether a line begins another statement.
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
                lines = _said(token, raws, part, own, depth, begins)
                # Markdown counts an unmarked line that follows a quotation as part of it.
                lines = [ln for ln in lines if not (quoted and _QUOTED.match(raws[ln.number - 1]))]
                yield from (ln._replace(bullet=item) for ln in lines[:1])
                yield from lines[1:]
                item = False


def _tokens(text: str) -> "list[Token]":
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark").disable("lheading")
    # The grammar reads the text within a line.
    reader.core.ruler.enableOnly(["normalize", "block"])
    return reader.parse(text)


def _headed(
    token: "Token", tag: str, part: Part, day: datetime | None, read_at: datetime
) -> tuple[Part, datetime | None, tuple[Line, ...]]:
    """Returns the section and the day below a heading, and its own statement."""
    name, *rest = (piece.strip() for piece in token.content.split("|"))
    number = (token.map or [0])[0] + 1
    if named := read_day(name, read_at=read_at):
        summary = " | ".join(rest)
        line = Line(number, summary, Part.LOG, named, heading=True)
        return Part.LOG, named, (line,) if summary else ()
    if tag in ("h1", "h2"):
        title = name.lower().rstrip(":")
        return (Part(title) if title in (Part.STATE, Part.GOTCHAS) else Part.LOG), day, ()
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
    lines: list[Line] = []
    for number, raw in enumerate(token.content.split("\n"), first):
        text = _COMMENT.sub("", raw).strip()
        indented = depth and lines and raws[number][:1].isspace()
        if indented and text and not begins(text):
            lines[-1] = lines[-1]._replace(text=f"{lines[-1].text} {text}")
        elif text and not text.startswith("|"):
            lines.append(Line(number + 1, text, part, day, depth=depth))
    return lines
