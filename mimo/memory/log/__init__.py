"""`.mind/MEMORY.md`, a handwritten log whose lines are memories; it is read and never written.

`grammar` splits the Markdown into statements and understands each of them; this module makes
records of them, of comments in code and of commit messages.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any

from mimo.memory import ids
from mimo.memory.codec.document import prose_lines
from mimo.memory.log import grammar
from mimo.memory.log.grammar import Line, Part, statements
from mimo.memory.model import Kind, Memory, Place, Problem, Record, Section

# Lines under `## Gotchas`: `Issue → Workaround`.

_SEPARATORS = (r"\s*→\s*", r"\s+->\s+", r"\s+--\s+", r"\s+—\s+", r"\s+-\s+")
"""In order of preference; a mark within a word is not a separator."""
_CODE = re.compile(r"`[^`]*`")


def fields(text: str) -> dict[str, Any] | None:
    """Returns the fields of a gotcha's memory; None if it is too short."""
    issue, workaround = split(text)
    if len(issue) < 3:
        return None
    return {
        "type": Kind.EDGE,
        "content": text,
        "title": issue,
        "confidence": 1.0,
        "extra": {"workaround": workaround} if workaround else {},
    }


def split(text: str) -> tuple[str, str]:
    """Returns the issue of a gotcha and its workaround, which may be empty."""
    # Marks within code are part of it, as in `p->next`.
    masked = _CODE.sub(lambda code: "x" * len(code[0]), text)
    for pattern in _SEPARATORS:
        if separator := re.search(pattern, masked):
            return _bare(text[: separator.start()]), _bare(text[separator.end() :])
    return _bare(text), ""


def _bare(text: str) -> str:
    return " ".join(text.replace("**", "").split())


# The log: statements, gotchas, the state of the project and summaries of sessions.

STATE_TOPIC = "project_state"
"""The topic of memories under `## Project State`."""

_KEY_IMPORTANCE = 0.9
_PLACEHOLDERS = frozenset({"", "none", "(describe your goal)", "(add your stack)"})

Dates = Callable[[], Mapping[str, datetime]]
"""Returns the time at which each line was written; called if a line has no heading with a date."""


def says_nothing(text: str) -> bool:
    """Returns whether a log has only headings and comments, as a new one has."""
    for _, line in prose_lines(text.split("\n")):
        bare = line.strip()
        if bare and bare != "---" and (not bare.startswith("#") or "|" in bare):
            return False
    return True


def parse(
    data: bytes, *, path: str, digest: str, modified: datetime, dates: Dates
) -> tuple[Record, ...] | Problem:
    """Returns the memories of a log in the order of their lines, or the reason it can't be read.

    The id of each depends only on its own line, so that it does not change with other lines.
    """
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return Problem(path=path, line=line, reason="it is not text in UTF-8")
    if says_nothing(text):
        return ()
    entries = list(_entries(text, modified))
    if any(line.day is None for line, _ in entries):
        raws, times = text.split("\n"), dates()
        entries = [(_dated(line, raws, times), fields) for line, fields in entries]
    return tuple(_records(entries, path=path, digest=digest, modified=modified))


def identified(kind: Kind, title: str, line: str, taken: dict[str, int]) -> str:
    """Returns the id of a line: readable, and stable as long as the text of the line is.

    `taken` maps the ids of previous lines to the number of lines with the same text: every copy of
    a line has its own id.
    """
    key, slug = grammar.line_key(line), ids.slug(title)

    def numbered(copy: int) -> str:
        digest = sha256(f"{key}\n{copy}".encode() if copy > 1 else key.encode()).hexdigest()[:8]
        return "_".join(part for part in (kind.value, slug, digest) if part)

    first = numbered(1)
    copy = taken.get(first, 0) + 1
    while (id_ := numbered(copy)) in taken:
        copy += 1
    taken[id_] = 1
    taken[first] = copy
    return id_


def said(statement: grammar.Statement) -> dict[str, Any]:
    """Returns the fields of a statement's memory."""
    return {
        "type": statement.kind,
        "title": statement.title,
        "confidence": statement.confidence,
        "status": statement.status,
        "sections": {Section.REASONING: statement.reasoning} if statement.reasoning else {},
        "extra": {"alternatives": list(statement.alternatives)} if statement.alternatives else {},
    } | ({"protected": True, "importance": _KEY_IMPORTANCE} if statement.key else {})


def _entries(text: str, read_at: datetime) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yields each line that is a memory, with its fields."""
    before: tuple[Line, dict[str, Any]] | None = None
    for line in statements(text, read_at=read_at, begins=grammar.begins):
        if before and _goes_on(line, before):
            continue
        if before:
            yield before
        fields = _fields(line)
        before = (line, fields) if fields else None
    if before:
        yield before


def _goes_on(line: Line, before: tuple[Line, dict[str, Any]]) -> bool:
    """Adds a line to the previous memory if it is its reason, or more of a gotcha."""
    above, fields = before
    if fields["type"] is Kind.EDGE and line.part is Part.GOTCHAS and line.depth > above.depth:
        fields["content"] += f"\n- {line.text}"
        return True
    reason = grammar.reason_alone(line.text) if line.number <= above.number + 1 else None
    if reason is None or fields.get("sections") or fields["type"] is Kind.EDGE:
        return False
    fields["sections"] = {Section.REASONING: reason}
    return True


def _fields(line: Line) -> dict[str, Any] | None:
    if line.heading:
        return _summary(line)
    if stated := grammar.state(line.text):
        return _state(*stated) if line.part is Part.STATE else None
    if line.part is Part.GOTCHAS and line.bullet:
        return fields(line.text)
    statement = grammar.statement(line.text)
    return {"content": line.text} | said(statement) if statement else None


def _state(name: str, value: str) -> dict[str, Any] | None:
    if value.lower() in _PLACEHOLDERS:
        return None
    tags = tuple(dict.fromkeys(tag for word in value.split(",") if (tag := word.strip())))
    return {
        "type": Kind.ISSUE if name == "blocked" else Kind.CONTEXT,
        "content": f"{name.capitalize()}: {value}",
        "title": f"{name.capitalize()}: {value}",
        "topic": STATE_TOPIC,
        "category": name,
        "confidence": 1.0,
        "status": "blocked" if name == "blocked" else None,
        "tags": tags if name == "stack" else (),
    }


def _summary(line: Line) -> dict[str, Any] | None:
    """Returns the summary of a session, from `## DATE | summary | mood: X`."""
    summary, _, rest = (piece.strip() for piece in line.text.partition("|"))
    if not summary or summary.lower().startswith("mood:"):
        return None
    mood = rest.partition(":")[2].strip() if rest.lower().startswith("mood:") else ""
    return {
        "type": Kind.CONTEXT,
        "content": summary,
        "title": summary,
        "category": "session",
        "confidence": 1.0,
        "extra": {"mood": mood} if mood else {},
    }


def _dated(line: Line, raws: list[str], times: Mapping[str, datetime]) -> Line:
    written = times.get(raws[line.number - 1].strip()) if line.number <= len(raws) else None
    return line if line.day else line._replace(day=written)


def _records(
    entries: list[tuple[Line, dict[str, Any]]], *, path: str, digest: str, modified: datetime
) -> Iterator[Record]:
    taken: dict[str, int] = {}
    for position, (line, fields) in enumerate(entries):
        memory = Memory(
            id=identified(fields["type"], fields["title"], line.text, taken),
            created=(line.day or modified).astimezone(UTC),
            **{key: value for key, value in fields.items() if value is not None},
        )
        place = Place(path=path, line=line.number, digest=digest, owned=False)
        yield Record(memory=memory, place=place, position=position)


# Memories in other texts: `MEMORY:` in comments of code, four words in commit messages.

_HASH, _SLASHES, _ARROWS, _DASHES, _SEMICOLONS, _PERCENT = (
    "#", "//|/\\*+|\\*", "<!--|//|/\\*+|\\*", "--", ";+", "%+",
)  # fmt: skip
_COMMENTS = {
    _HASH: "py pyi sh bash zsh fish rb pl r jl yml yaml toml ini cfg conf tf ex exs nix mk cmake",
    _SLASHES: "js jsx mjs cjs ts tsx go rs java kt kts scala c h cc cpp hpp cs swift dart php css"
    " scss less proto groovy gradle zig v",
    _ARROWS: "html htm xml svg vue svelte astro md",
    _DASHES: "sql lua hs elm ada adb ads",
    _SEMICOLONS: "clj cljs lisp el scm asm",
    _PERCENT: "tex erl hrl m",
}
_MARKS = {ending: marks for marks, endings in _COMMENTS.items() for ending in endings.split()}
_ANY = f"{_HASH}|{_SLASHES}"

_WORDS = {
    "decided": Kind.DECISION,
    "problem": Kind.ISSUE,
    "learned": Kind.INSIGHT,
    "fixed": Kind.ISSUE,
}
_IN_MESSAGE = re.compile(
    rf"[ \t]*(?:[-*][ \t]+)?({'|'.join(_WORDS)}):[ \t]+(\S.{{2,1999}})", re.IGNORECASE
)
_STATUSES = {"problem": "open", "fixed": "resolved"}
_CONFIDENCE = 0.7


def in_code(text: str, *, path: str, digest: str, modified: datetime) -> Iterator[Record]:
    """Yields the memories in comments such as `# MEMORY: …`, in the order of their lines."""
    comment = _comment(_MARKS.get(path.rpartition(".")[2].lower(), _ANY))
    taken: dict[str, int] = {}
    position = 0
    for number, line in enumerate(text.split("\n"), 1):
        match = comment.search(line) if "MEMORY:" in line else None
        statement = grammar.remembered(match[1]) if match else None
        if match is None or statement is None:
            continue
        memory = Memory(
            id=identified(statement.kind, statement.title, f"{path}\n{match[1]}", taken),
            content=match[1],
            created=modified,
            **said(statement),
        )
        place = Place(path=path, line=number, digest=digest, owned=False)
        yield Record(memory=memory, place=place, position=position)
        position += 1


def in_message(
    body: str, *, commit: str, author: str, when: datetime, taken: dict[str, int]
) -> Iterator[Memory]:
    """Yields the memories in lines `decided:`, `problem:`, `learned:`, `fixed:` of a commit."""
    for line in body.split("\n"):
        match = _IN_MESSAGE.fullmatch(line.rstrip())
        if match is None:
            continue
        word = match[1].lower()
        kind, title = _WORDS[word], match[2].strip()
        statement = grammar.statement(f"{word}: {title}") if kind is Kind.DECISION else None
        fields = said(statement) if statement else {"type": kind, "title": title}
        fields |= {"confidence": _CONFIDENCE, "status": _STATUSES.get(word)}
        yield Memory(
            id=identified(kind, title, f"{commit}\n{line}", taken),
            content=line.strip(),
            created=when.astimezone(UTC),
            source=f"commit {commit[:12]}",
            by=author or None,
            **fields,
        )


@cache
def _comment(marks: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|\s)(?:{marks})\s*MEMORY:\s*(\S.*?)\s*(?:\*/|-->)?\s*$")
