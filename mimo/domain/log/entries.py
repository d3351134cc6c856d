"""The log -> records: statements, gotchas, the project's state and the summaries of sessions."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from mimo.domain import ids
from mimo.domain.codec.prose import prose_lines
from mimo.domain.log import gotchas, grammar
from mimo.domain.log.lines import Line, Part, statements
from mimo.domain.memory import Kind, Memory, Place, Problem, Record, Section

STATE_TOPIC = "project_state"
"""The topic of what stands under `## Project State`."""

_KEY_IMPORTANCE = 0.9
_PLACEHOLDERS = frozenset({"", "none", "(describe your goal)", "(add your stack)"})

Dates = Callable[[], Mapping[str, datetime]]
"""Tells when each line was written, by its text; asked only where a heading says no date."""


def says_nothing(text: str) -> bool:
    """Returns whether there is nothing in a log but headings and comments, as in a new one."""
    for _, line in prose_lines(text.split("\n")):
        bare = line.strip()
        if bare and bare != "---" and (not bare.startswith("#") or "|" in bare):
            return False
    return True


def parse(
    data: bytes, *, path: str, digest: str, modified: datetime, dates: Dates
) -> tuple[Record, ...] | Problem:
    """Returns the memories of a log in the order of their lines, or why it can't be read.

    The id of each is made from its own line, so that it stays when other lines change.
    """
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return Problem(path=path, line=line, reason="it is not text in UTF-8")
    if says_nothing(text):
        return ()
    found = list(_entries(text, modified))
    if any(line.day is None for line, _ in found):
        raws, known = text.split("\n"), dates()
        found = [(_dated(line, raws, known), fields) for line, fields in found]
    return tuple(_records(found, path=path, digest=digest, modified=modified))


def identified(kind: Kind, title: str, line: str, taken: dict[str, int]) -> str:
    """Returns the id of a line: readable, and stable as long as the line's text is.

    `taken` has the ids of the lines before it, each with the number of lines that have its text:
    every copy of a line has an id of its own.
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
    """Returns the fields of the memory that a statement makes."""
    return {
        "type": statement.kind,
        "title": statement.title,
        "confidence": statement.confidence,
        "status": statement.status,
        "sections": {Section.REASONING: statement.reasoning} if statement.reasoning else {},
        "extra": {"alternatives": list(statement.alternatives)} if statement.alternatives else {},
    } | ({"protected": True, "importance": _KEY_IMPORTANCE} if statement.key else {})


def _entries(text: str, read_at: datetime) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yields each line that is a memory with the memory's fields."""
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
    """Adds to the memory before it what a line says of that: the reason, or more of a gotcha."""
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
        return gotchas.fields(line.text)
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


def _dated(line: Line, raws: list[str], known: Mapping[str, datetime]) -> Line:
    written = known.get(raws[line.number - 1].strip()) if line.number <= len(raws) else None
    return line if line.day else line._replace(day=written)


def _records(
    found: list[tuple[Line, dict[str, Any]]], *, path: str, digest: str, modified: datetime
) -> Iterator[Record]:
    taken: dict[str, int] = {}
    for position, (line, fields) in enumerate(found):
        memory = Memory(
            id=identified(fields["type"], fields["title"], line.text, taken),
            created=(line.day or modified).astimezone(UTC),
            **{key: value for key, value in fields.items() if value is not None},
        )
        place = Place(path=path, line=line.number, digest=digest, owned=False)
        yield Record(memory=memory, place=place, position=position)
