"""Decisions as Markdown architectural decision records, MADR 4."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mimo.api import (
    SUPERSEDES,
    Kind,
    Memory,
    Outcome,
    Section,
    document,
    front_matter,
    ids,
    note,
    outcomes,
)
from mimo.extensions.exchange.documents import INDEX, File, literal
from mimo.extensions.exchange.lines import Exported

_STATUSES = ("proposed", "rejected", "accepted", "deprecated")
_CONSEQUENCES: Mapping[Outcome, str] = {
    Outcome.SUCCESS: "Good",
    Outcome.PARTIAL: "Neutral",
    Outcome.FAILED: "Bad",
}
_PARTS = ("## context and problem statement", "## decision outcome")
"""Headings that a text has if it is a record already."""
_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s)")
_LOWEST = 6
_END_OF_TITLE = r"(?:\.?[ \t]*(?:\n|\Z)|\.\s|(?<=[.!?])\s)"
"""The text after a title that is a whole line or sentence, unlike `Use JWT` in `Use JWT 2.`."""


def records(memories: Iterable[Exported], project: str) -> Iterator[File]:
    """Yields the records of the decisions, numbered from the oldest, and their index."""
    decisions = [exported for exported in memories if exported.memory.type is Kind.DECISION]
    numbers = {exported.memory.id: number for number, exported in enumerate(decisions, 1)}
    names = {
        exported.memory.id: _name(number, exported.memory)
        for number, exported in enumerate(decisions, 1)
    }
    lines = []
    for exported in decisions:
        memory = exported.memory
        status = _status(exported, numbers)
        lines.append(f"- [{literal(memory.heading)}]({names[memory.id]}): {status}\n")
        yield File(names[memory.id], _record(exported, status, names).encode("utf-8", "replace"))
    index = f"# Decisions of {literal(project)}\n\n{''.join(lines) or 'No decisions.'}"
    yield File(INDEX, index.encode("utf-8", "replace"))


def _name(number: int, memory: Memory) -> str:
    """Returns the name of a record: its number and ASCII words, which all file systems hold."""
    words = ids.slug(memory.heading).replace("_", "-") or memory.type.value
    return f"{number:04}-{words}.md"


def _status(exported: Exported, numbers: Mapping[str, int]) -> str:
    if exported.successor and (number := numbers.get(exported.successor)):
        return f"superseded by ADR-{number:04}"
    if exported.is_past:
        return "deprecated"
    status = (exported.memory.status or "").casefold()
    if exported.untrusted:
        return "proposed"
    return status if status in _STATUSES else "accepted"


def _record(exported: Exported, status: str, names: Mapping[str, str]) -> str:
    memory = exported.memory
    marks = {"private": True} if exported.private else {}
    header = front_matter.emitted_lines(
        {"status": status, "date": f"{memory.created:%Y-%m-%d}", **marks}
    )
    title = note.plain(memory.heading)
    body = memory.content.strip("\n")
    if _is_record(body):
        parts = [body if body.startswith("# ") else f"# {title}\n\n{body}"]
        parts += [f"## {name}\n\n{text}" for name, text in memory.sections.items()]
    else:
        parts = [f"# {title}", *_parts(memory, title, body)]
    parts += _more(exported, names)
    return f"---\n{header}---\n\n" + "\n\n".join(parts) + "\n"


def _is_record(text: str) -> bool:
    lines = {line.strip().casefold() for _, line in document.prose_lines(text.split("\n"))}
    return all(part in lines for part in _PARTS)


def _parts(memory: Memory, title: str, body: str) -> Iterator[str]:
    """Yields the parts of a record. What the memory does not state is not made up."""
    topic = f"The topic is {literal(memory.topic)}." if memory.topic else "It was not recorded."
    yield f"## Context and Problem Statement\n\n{topic}"
    yield f"## Considered Options\n\n* {literal(title)}"
    reasoning = memory.sections.get(Section.REASONING)
    yield "## Decision Outcome"
    yield f'Chosen option: "{literal(title)}"{", because:" if reasoning else "."}'
    if reasoning:
        yield _below(reasoning)
    repeated = re.match(rf"(?:# )?{re.escape(memory.heading)}{_END_OF_TITLE}", body)
    text = body[repeated.end() :] if repeated else body
    if text.strip():
        yield _below(text)
    if memory.outcome:
        reason = note.plain(
            outcomes.reason(memory) or f"its outcome was {memory.outcome.value}", 1_000
        )
        yield f"### Consequences\n\n* {_CONSEQUENCES[memory.outcome]}, because {literal(reason)}"
    sections = (Section.OPEN_FILES, Section.NEXT_STEPS)
    for name in (name for name in sections if name in memory.sections):
        yield f"### {name}\n\n{_below(memory.sections[name])}"


def _below(text: str) -> str:
    """Returns text with its headings below those of the record."""
    lines = text.strip("\n").split("\n")
    for number, line in document.prose_lines(lines):
        if heading := _HEADING.match(line):
            level = min(_LOWEST, len(heading[1]) + 3)
            lines[number] = "#" * level + line[heading.end() :]
    return "\n".join(lines)


def _more(exported: Exported, names: Mapping[str, str]) -> Sequence[str]:
    """Returns the part with the links, and what the record has no other place for."""
    memory = exported.memory
    lines = []
    for link in memory.links:
        target = exported.targets.get(link.to)
        if target and target.id in names:
            number = names[target.id][:4]
            kind = (
                link.type
                if link.type == SUPERSEDES
                else note.plain(link.type, 40).replace("_", " ")
            )
            lines.append(f"* {literal(kind)} [ADR-{number}]({names[target.id]})")
        elif target:
            lines.append(f"* {literal(link.type)} {literal(target.title)}")
    facts = {
        "tags": ", ".join(memory.tags),
        "confidence": "" if memory.confidence is None else f"{memory.confidence:g}",
        "source": memory.source or "",
        "made by": memory.by or "",
        "memory": memory.id,
        "not approved": "on the machine that exported it" if exported.untrusted else "",
    }
    lines += [f"* {name}: {literal(text)}" for name, text in facts.items() if text]
    return ["## More Information\n\n" + "\n".join(lines)]
