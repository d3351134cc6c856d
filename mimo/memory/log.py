"""`.mind/MEMORY.md`, a handwritten log whose lines are memories; it is read and never written.

Fenced and indented code, HTML and quotations have no statements. A list item with indented
continuation lines is one statement, unless one of these lines begins another. Comments in code and
commit messages are read with the same grammar.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mimo.frozen import NamedTuple, frozen, replace
from mimo.memory import ids
from mimo.memory.approval import approval_of_entry
from mimo.memory.codec.document import (
    CONFLICT,
    DEEPEST,
    Unreadable,
    conflict_line,
    limit_steps,
    prose_lines,
    without_comments,
)
from mimo.memory.model import Kind, Memory, Place, Problem, Record, Section
from mimo.memory.note import STATE_TOPIC
from mimo.text.calendar import MONTHS, month_number
from mimo.text.clean import compiled

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
_REASON = r"(?i)(?:^|[\s,;(])(?:because|since|due\s+to|so\s+that|reason\s*:|why\s*:)\s+|,\s*so\s+"
_ALTERNATIVE = r"(?:\b(?:over|instead\s+of|rather\s+than|rejected\s*:)|,\s*not)\s+([^.;]+)"

_BOLD = r"(?:\*\*|__)"
_LEADING_REASON = (
    rf"{_BOLD}?(?:(?:because|since|due\s+to|so\s+that)\b|(?:reason|why)\s*:)\s*:?{_BOLD}?\s*(.+)"
)
_COLON = rf"\s*:\s*{_BOLD}?\s*"
_KEY = rf"{_BOLD}?(?:(?-i:KEY)|important){_COLON}(.+)"
_NEXT = rf"{_BOLD}?next(?:\s+steps?)?{_COLON}(.+)"
_MEMORY = rf"{_BOLD}?(?-i:MEMORY){_COLON}(.+)"
_STATE = rf"{_BOLD}?((?a:goal|stack|blocked)){_COLON}(.*)"
_BEGINNINGS = "decided|problem|issue|bug|learned|til|gotcha|memory|key|important|next|fixed"

_APART = r"\b[a-z]{2,12}://\S+|`[^`]+`|\"[^\"]+\"|“[^”]+”"
"""Addresses, code and quotations, which are not the writer's own phrases."""
_NO_WORD = "\ue000"


def statement(text: str) -> Statement | None:
    """Returns the statement of a line, or None if it has nothing to remember."""
    text, done = _unchecked(text[:_LONGEST])
    if match := _hit(_KEY, text):
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


def begins(text: str) -> bool:
    """Returns whether a line begins with a mark, and so does not continue the previous line."""
    return _hit(rf"{_BOLD}(?:{_BEGINNINGS})\b|(?:{_BEGINNINGS})\s*:", text) is not None


def line_key(text: str) -> str:
    """Returns a line without its checkbox, in normal form."""
    return " ".join(_unchecked(text)[0].split()).casefold()


def _unchecked(text: str) -> tuple[str, bool]:
    """Returns a line without its checkbox or tick, and whether that was set."""
    box = _hit(r"\[([ xX])\]\s+", text)
    text = text[box.end() :] if box else text
    bare = text.lstrip("✓✔✅ ")
    return bare, bool(box and box[1] != " ") or bare != text.lstrip()


def _sorted_out(text: str) -> Statement | None:
    """Returns a decision, an issue or a learning, in this order; after `MEMORY:` also a fact."""
    explicit = _hit(_MEMORY, text)
    inner = explicit[1] if explicit else text
    for kind, words in _WORDS.items():
        if match := _hit(rf"{_BOLD}(?:{words})\s*:?\s*{_BOLD}\s*:?\s*(.+)", inner):
            return _statement(kind, _MARKED, match[1], text)
        if explicit and (match := _hit(rf"(?:{words})\b\s*:?\s*(?:(?:to|that)\s+)?(.+)", inner)):
            return _statement(kind, _EXPLICIT, match[1], text)
    bare = inner.replace("**", "")
    masked_text = compiled(_APART).sub(lambda aside: _NO_WORD * len(aside[0]), bare)
    for kind, confidence, pattern in _PHRASES:
        match = _search(pattern, masked_text)
        if match and not _search(_NOT_A[kind], masked_text):
            sure = max(confidence, _EXPLICIT) if explicit else confidence
            title = bare[slice(*match.span(1))] if match.groups() else bare
            return _statement(kind, sure, title, text)
    return _statement(Kind.FACT, _EXPLICIT, inner, text) if explicit else None


def _statement(kind: Kind, confidence: float, title: str, line: str) -> Statement:
    """Returns a statement with the parts of its title, and with the signs in its line."""
    lower = line.lower()
    confidence += 0.2 * ("**" in line) + 0.15 * ("because" in lower) + 0.1 * (" over " in lower)
    confidence += 0.1 * bool(_hit(_MEMORY, line))
    reasoning, status = None, None
    if kind is not Kind.INSIGHT and (match := compiled(_REASON).search(title, _SHORTEST_TITLE)):
        title, reasoning = title[: match.start()], _plain(title[match.end() :]) or None
    if kind is Kind.ISSUE:
        is_resolved = _search(_RESOLVED, line) and not _search(_UNRESOLVED, line)
        status = "resolved" if is_resolved else "blocked" if _search(_BLOCKED, line) else "open"
    alternatives: list[str] = []
    if kind is Kind.DECISION and (match := _search(_ALTERNATIVE, title)):
        # They are named in a row: `A, B or C`.
        alternatives = re.split(r"\s*,\s*(?:or\s+|and\s+)?|\s+or\s+", match[1])
    return Statement(
        kind=kind,
        title=_plain(title),
        confidence=min(1.0, round(confidence, 2)),
        status=status,
        reasoning=reasoning,
        alternatives=tuple(name for option in alternatives if (name := _plain(option))),
    )


def _plain(text: str) -> str:
    """Returns text without bold marks and without marks around it."""
    bare = " ".join(text.replace("**", "").split()).strip(" ,;(—–-").rstrip(".:").strip()
    return bare[:-1] if bare.endswith(")") and bare.count(")") > bare.count("(") else bare


def _hit(pattern: str, text: str) -> re.Match[str] | None:
    return compiled(f"(?i){pattern}").match(text.strip())


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return compiled(f"(?i){pattern}").search(text)


# Headings that are dates: `2026-12-12`, `December 12, 2026`, `Dec 12`, `12/31/2026`.

_NAMES = "|".join(f"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in MONTHS)
_MONTH = rf"(?P<name>(?a:{_NAMES}|sept))\.?"
_DAYS = (
    r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?:[T ].*)?",
    rf"{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{{4}}))?",
    rf"(?P<day>\d{{1,2}})\s+{_MONTH}(?:,?\s+(?P<year>\d{{4}}))?",
    r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})",
)


_LEAP_YEARS = 8
"""The most years between two leap years."""


def read_day(heading: str, *, read_at: datetime) -> datetime | None:
    """Returns midnight UTC of the day in a heading, or None for another heading.

    Without a year it is the latest such day before `read_at`.
    """
    text = heading.strip().strip("*_ ")
    match = next((hit for form in _DAYS if (hit := compiled(f"(?i){form}").fullmatch(text))), None)
    if match is None:
        return None
    parts = match.groupdict()
    month = int(parts["month"]) if parts.get("month") else month_number(parts["name"])
    latest, day = int(parts["year"] or read_at.year), int(parts["day"])
    # Without a year, that is the year before, or for February 29 an earlier one.
    for year in [latest] if parts["year"] else range(latest, max(latest - _LEAP_YEARS, 1) - 1, -1):
        with suppress(ValueError):
            named = datetime(year, month, day, tzinfo=UTC)
            if parts["year"] or named <= read_at + timedelta(days=1):
                return named
    return None


# The lines of a log.


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


def _tokens(text: str) -> list[Token]:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"maxNesting": DEEPEST}).disable("lheading")
    # The grammar reads the text within a line.
    reader.core.ruler.enableOnly(["normalize", "block"])
    return limit_steps(reader).parse(text)


def unclosed(text: str) -> int | None:
    """Returns the 1-based line of code, a comment or HTML that is not closed, or None.

    No line after it is read.
    """
    try:
        token = _tokens(f"{text}\n\nA new line.")[-1]
    except Unreadable:
        return None
    return token.map[0] + 1 if token.type in ("fence", "html_block") and token.map else None


def _lines(text: str, read_at: datetime) -> Iterator[Line]:
    """Yields the lines with a statement, and each heading that is more than a date."""
    part, day, heading, bullet = Part.LOG, None, "", False
    inside: Counter[str] = Counter()
    raws = text.split("\n")
    for token in _tokens(text):
        inside[token.type.rpartition("_")[0]] += token.nesting
        bullet = bullet or token.type == "list_item_open"
        heading = token.tag if token.type == "heading_open" else heading
        if token.type != "inline":
            continue
        start = token.map[0] if token.map else 0
        if inside["heading"]:
            name, *details = (piece.strip() for piece in token.content.split("|"))
            if named := read_day(name, read_at=read_at):
                part, day = Part.LOG, named
                if summary := " | ".join(details):
                    yield Line(start + 1, summary, part, day, heading=True)
            elif heading in ("h1", "h2"):
                title = name.lower().rstrip(":")
                part = Part(title) if title in (Part.STATE, Part.GOTCHAS) else Part.LOG
            continue
        log_day = day if part is Part.LOG else None
        depth = inside["bullet_list"] + inside["ordered_list"]
        for number, line in _of_paragraph(token.content, raws, start, depth, inside["blockquote"]):
            yield Line(number + 1, line, part, log_day, bullet=bullet, depth=depth)
            bullet = False
        bullet = False


def _of_paragraph(
    content: str, raws: Sequence[str], start: int, depth: int, quotations: int
) -> list[tuple[int, str]]:
    """Returns the statements of a paragraph: one for each line, or one for a list item."""
    lines: list[tuple[int, str]] = []
    for number, raw in enumerate(content.split("\n"), start):
        text = without_comments(raw).strip()
        indented = depth and lines and raws[number][:1].isspace()
        if indented and text and not begins(text):
            lines[-1] = (lines[-1][0], f"{lines[-1][1]} {text}")
        elif text and not text.startswith("|"):
            lines.append((number, text))
    # Markdown counts an unmarked line that follows a quotation as part of it.
    is_quoted = compiled(r"[\s\d*+.)-]*>").match
    return [line for line in lines if not (quotations and is_quoted(raws[line[0]]))]


# The memories of a log.

_KEY_IMPORTANCE = 0.9
_PLACEHOLDERS = frozenset({"", "none", "(describe your goal)", "(add your stack)"})
_SEPARATORS = (r"\s*→\s*", r"\s+->\s+", r"\s+--\s+", r"\s+—\s+", r"\s+-\s+")
"""Between an issue and its workaround, in order of preference; not within a word."""

_Fields = dict[str, Any]
"""The fields of a memory."""

Dates = Callable[[], Mapping[str, datetime]]
"""Returns the time at which each line was written; called if a line has no heading with a date."""


def parse(
    data: bytes, *, path: str, digest: str, modified: datetime, dates: Dates
) -> tuple[Record, ...] | Problem:
    """Returns the memories of a log in the order of their lines, or the reason it can't be read.

    The id of each depends only on its own line, so that it does not change with other lines.
    """
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        return Problem(path=path, line=number, reason="it is not text in UTF-8")
    if begin := conflict_line(text):
        return Problem(path=path, line=begin, reason=CONFLICT)
    if is_empty(text):
        return ()
    try:
        entries = list(_entries(text, modified))
    except Unreadable as error:
        return Problem(path=path, line=None, reason=error.reason)
    raws = [*text.split("\n"), ""]
    times = dates() if any(line.day is None for line, _ in entries) else {}
    taken: dict[str, int] = {}
    records = []
    for position, (line, fields) in enumerate(entries):
        created = line.day or times.get(raws[line.number - 1].strip()) or modified
        memory = Memory(
            id=_id_of(fields["type"], fields["title"], line.text, taken),
            created=created.astimezone(UTC),
            **{key: value for key, value in fields.items() if value is not None},
        )
        approval = approval_of_entry(path, memory)
        place = Place(path=path, line=line.number, digest=digest, owned=False, approval=approval)
        records.append(Record(memory=memory, place=place, position=position))
    return tuple(records)


def is_empty(text: str) -> bool:
    """Returns whether a log has only headings and comments, as a new one has.

    It is False also for a log whose Markdown must be read to tell.
    """
    if compiled(r"`{3}|~{3}|(?m:^ {4,}<!--)").search(text):
        return False
    lines = (line.strip(" \t") for _, line in prose_lines(text.split("\n")))
    empty = compiled(r"(?:---|#{1,6}(?:[ \t][^|]*)?)?")
    return all(empty.fullmatch(line) for line in lines)


def _entries(text: str, read_at: datetime) -> Iterator[tuple[Line, _Fields]]:
    """Yields each line that is a memory, with its fields."""
    previous: tuple[Line, _Fields] | None = None
    for line in _lines(text, read_at):
        if previous and _goes_on(line, *previous):
            continue
        if previous:
            yield previous
        fields = _fields(line)
        previous = (line, fields) if fields else None
    if previous:
        yield previous


def _goes_on(line: Line, above: Line, fields: _Fields) -> bool:
    """Adds a line to the previous memory if it is its reason, or more of a gotcha."""
    if fields["type"] is Kind.EDGE:
        if line.part is not Part.GOTCHAS or line.depth <= above.depth:
            return False
        fields["content"] += f"\n- {line.text}"
        return True
    match = _hit(_LEADING_REASON, line.text) if line.number <= above.number + 1 else None
    if match is None or fields.get("sections"):
        return False
    fields["sections"] = {Section.REASONING: _plain(match[1])}
    return True


def _fields(line: Line) -> _Fields | None:
    """Returns the fields of a line's memory; None if it is not one."""
    if line.heading:
        return _of_session(line.text)
    if match := _hit(_STATE, line.text):
        value = " ".join(match[2].replace("**", "").split())
        return _of_state(match[1].lower(), value) if line.part is Part.STATE else None
    if line.part is Part.GOTCHAS and line.bullet:
        return _of_gotcha(line.text)
    stated = statement(line.text)
    return {"content": line.text} | _of_statement(stated) if stated else None


def _of_statement(statement: Statement) -> _Fields:
    return {
        "type": statement.kind,
        "title": statement.title,
        "confidence": statement.confidence,
        "status": statement.status,
        "sections": {Section.REASONING: statement.reasoning} if statement.reasoning else {},
        "extra": {"alternatives": list(statement.alternatives)} if statement.alternatives else {},
    } | ({"protected": True, "importance": _KEY_IMPORTANCE} if statement.key else {})


def _of_gotcha(text: str) -> _Fields | None:
    """Returns the fields of `Issue → Workaround`; None if the issue is too short."""
    # Marks within code are part of it, as in `p->next`.
    masked = re.sub("`[^`]*`", lambda code: "x" * len(code[0]), text)
    hits = (re.search(pattern, masked) for pattern in _SEPARATORS)
    start, end = next((hit.span() for hit in hits if hit), (len(text), len(text)))
    issue, workaround = (
        " ".join(part.replace("**", "").split()) for part in (text[:start], text[end:])
    )
    if len(issue) < _SHORTEST_TITLE:
        return None
    return {
        "type": Kind.EDGE,
        "content": text,
        "title": issue,
        "confidence": 1.0,
        "extra": {"workaround": workaround} if workaround else {},
    }


def _of_state(name: str, value: str) -> _Fields | None:
    """Returns the fields of `Goal: …`, `Stack: …` or `Blocked: …`."""
    if value.lower() in _PLACEHOLDERS:
        return None
    tags = tuple(dict.fromkeys(tag for word in value.split(",") if (tag := word.strip())))
    is_blocked = name == "blocked"
    return {
        "type": Kind.ISSUE if is_blocked else Kind.CONTEXT,
        "content": f"{name.capitalize()}: {value}",
        "title": f"{name.capitalize()}: {value}",
        "topic": STATE_TOPIC,
        "category": name,
        "confidence": 1.0,
        "status": "blocked" if is_blocked else None,
        "tags": tags if name == "stack" else (),
    }


def _of_session(heading: str) -> _Fields | None:
    """Returns the fields of a session's summary, from `summary | mood: X`."""
    summary, _, tail = (piece.strip() for piece in heading.partition("|"))
    if not summary or summary.lower().startswith("mood:"):
        return None
    mood = tail.partition(":")[2].strip() if tail.lower().startswith("mood:") else ""
    return {
        "type": Kind.CONTEXT,
        "content": summary,
        "title": summary,
        "category": "session",
        "confidence": 1.0,
        "extra": {"mood": mood} if mood else {},
    }


def _id_of(kind: Kind, title: str, line: str, taken: dict[str, int]) -> str:
    """Returns the id of a line: readable, and stable as long as the text of the line is.

    `taken` maps the ids of previous lines to the number of lines with the same text: every copy of
    a line has its own id.
    """
    key, slug = line_key(line), ids.slug(title)
    slug = "" if ids.holds_secret(slug) else slug

    def numbered(copy: int) -> str:
        from hashlib import sha256

        digest = sha256(f"{key}\n{copy}".encode() if copy > 1 else key.encode()).hexdigest()[:8]
        return "_".join(part for part in (kind.value, slug, digest) if part)

    base_id = numbered(1)
    copy = taken.get(base_id, 0) + 1
    while (id_ := numbered(copy)) in taken:
        copy += 1
    taken[id_] = 1
    taken[base_id] = copy
    return id_


# Memories in other texts: `MEMORY:` in comments of code, four words in commit messages.

_HASH, _SLASHES = "#", "//|/\\*+|\\*"
_COMMENTS = {
    _HASH: "py pyi sh bash zsh fish rb pl r jl yml yaml toml ini cfg conf tf ex exs nix mk cmake",
    _SLASHES: "js jsx mjs cjs ts tsx go rs java kt kts scala c h cc cpp hpp cs swift dart php css"
    " scss less proto groovy gradle zig v",
    f"<!--|{_SLASHES}": "html htm xml svg vue svelte astro md",
    "--": "sql lua hs elm ada adb ads",
    ";+": "clj cljs lisp el scm asm",
    "%+": "tex erl hrl m",
}
_MARKS = {ending: marks for marks, endings in _COMMENTS.items() for ending in endings.split()}

_OF_COMMITS = {
    "decided": (Kind.DECISION, None),
    "problem": (Kind.ISSUE, "open"),
    "learned": (Kind.INSIGHT, None),
    "fixed": (Kind.ISSUE, "resolved"),
}
"""The words that begin a line of a commit message, with type and status of the memory."""
_IN_MESSAGE = rf"(?i)[ \t]*(?:[-*][ \t]+)?((?a:{'|'.join(_OF_COMMITS)})):[ \t]+(\S.{{2,1999}})"


def in_code(text: str, *, path: str, digest: str, modified: datetime) -> Iterator[Record]:
    """Yields the memories in comments such as `# MEMORY: …`, in the order of their lines."""
    marks = _MARKS.get(path.rpartition(".")[2].lower(), f"{_HASH}|{_SLASHES}")
    comment = compiled(rf"(?:^|\s)(?:{marks})\s*MEMORY:\s*(\S.*)")
    taken: dict[str, int] = {}
    position = 0
    for number, line in enumerate(text.split("\n"), 1):
        match = comment.search(line) if "MEMORY:" in line else None
        content = match[1].rstrip() if match else ""
        ending = next((mark for mark in ("*/", "-->") if content.endswith(mark)), "")
        content = content.removesuffix(ending).rstrip()
        statement = remembered(content) if content else None
        if statement is None:
            continue
        memory = Memory(
            id=_id_of(statement.kind, statement.title, f"{path}\n{content}", taken),
            content=content,
            created=modified,
            **_of_statement(statement),
        )
        approval = approval_of_entry("comment", memory)
        place = Place(path=path, line=number, digest=digest, owned=False, approval=approval)
        yield Record(memory=memory, place=place, position=position)
        position += 1


def in_message(
    body: str, *, commit: str, author: str, when: datetime, taken: dict[str, int]
) -> Iterator[Memory]:
    """Yields the memories in lines `decided:`, `problem:`, `learned:`, `fixed:` of a commit."""
    for line in body.split("\n"):
        match = compiled(_IN_MESSAGE).fullmatch(line.rstrip())
        if match is None:
            continue
        word, title = match[1].lower(), match[2].strip()
        kind, status = _OF_COMMITS[word]
        decision = statement(f"{word}: {title}") if kind is Kind.DECISION else None
        fields = _of_statement(decision) if decision else {"type": kind, "title": title}
        fields |= {"confidence": _EXPLICIT, "status": status}
        yield Memory(
            id=_id_of(kind, title, f"{commit}\n{line}", taken),
            content=line.strip(),
            created=when.astimezone(UTC),
            source=f"commit {commit[:12]}",
            by=author or None,
            **fields,
        )
