"""The conversion of a MAMA v1.0 database into memories, which keeps all data of its rows."""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from mimo.call.spec import Out
from mimo.errors import Invalid
from mimo.features.importing.drafts import Item
from mimo.features.importing.foreign import (
    data,
    divided,
    fenced,
    items,
    joined,
    moment,
    moment_in_id,
    text,
    unit,
)
from mimo.frozen import field, frozen, replace
from mimo.memory import ids, outcomes
from mimo.memory.model import SUPERSEDES, Kind, Link, Memory, Section
from mimo.text import phrases

Cells = Mapping[str, Any]
"""The values of a row by their columns."""

TABLES: Mapping[str, Kind] = {
    "decisions": Kind.DECISION,
    "checkpoints": Kind.CHECKPOINT,
    "sessions": Kind.CONTEXT,
    "error_patterns": Kind.INSIGHT,
}
"""The tables whose rows become memories, with the type that they become."""

EDGES = "decision_edges"
"""The table whose rows become links."""

_CREATED = ("created_at", "timestamp", "started_at", "first_seen")
"""Columns with the time at which a row was made."""


@frozen
class LinkCounts:
    """The number of statements that link decisions, by result.

    `found` is the sum of the others, except that `dangling` is a part of `written`.
    """

    found: int
    written: int
    repeated: Annotated[int, Out("Repeated in another place of the database")]
    kept_aside: Annotated[
        int, Out("Recorded by the older decision, because the newer one is missing")
    ]
    left_out: Annotated[int, Out("To itself, or between two missing decisions")]
    dangling: Annotated[int, Out("Of those written, links to a missing decision")]


def convert(
    tables: Mapping[str, Sequence[Cells]], *, now: datetime
) -> tuple[tuple[Item, ...], LinkCounts]:
    """Returns the memories of a database's rows, and the number of links between them.

    The same rows always become the same memories; `now` is used only if no row has a time.
    """
    rows = [(table, _key(table, row), row) for table in TABLES for row in tables.get(table, ())]
    ids = assigned((TABLES[table], _requested_id(table, key)) for table, key, _ in rows)
    with_ids = [(*row, id) for row, id in zip(rows, ids, strict=True)]
    decisions = {
        key: (id, row)
        for table, key, row, id in with_ids
        if table == "decisions" and _has_text(row)
    }
    related, counts = _relate(decisions, tables.get(EDGES, ()))
    # A row without a time of its own must not become the newest memory.
    times = (moment(row.get(name)) for _, _, row in rows for name in _CREATED)
    oldest = min(filter(None, times), default=now)
    converted: list[Item] = []
    for table, key, row, id in with_ids:
        if table == "decisions":
            memory = _decision(row, id, oldest, related[key])
        else:
            memory = _CONVERTERS[table](row, id, oldest)
        filled = {name: body for name, body in memory.sections.items() if body}
        memory = replace(memory, sections=filled)
        is_empty = not (memory.content.strip() or memory.sections or memory.topic)
        converted.append(
            Item(
                group=table,
                key=key,
                memory=None if is_empty else memory,
                skipped="the row is empty" if is_empty else None,
                # Sessions hold conversation and paths of this machine, which must not be committed.
                private=memory.type is Kind.CONTEXT,
            )
        )
    return tuple(converted), counts


def _key(table: str, row: Cells) -> str:
    """Returns a row's id; without one, a hash of its values."""
    if key := text(row.get("id")):
        return key
    values = repr(sorted((name, value) for name, value in row.items() if value is not None))
    return f"{TABLES[table].value}_{sha256(values.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _requested_id(table: str, key: str) -> str:
    """Returns the id that a row asks for: a number gets its table's name as a prefix."""
    is_number = key.isdigit() and table != "decisions"
    return f"{table.removesuffix('s')}_{key}" if is_number else key


def _has_text(row: Cells) -> bool:
    """Returns whether a row of `decisions` becomes a memory."""
    names = ("decision", "topic", "reasoning", "failure_reason", "limitation")
    return any(text(row.get(name)) for name in names)


# Ids of rows as ids of memories: unchanged if they are valid, else made safe with a hash.


def safe(kind: Kind, raw: str, *, salt: str = "") -> str:
    """Returns a valid id for `raw`, with its readable part; always the same one."""
    readable = ids.slug(raw)
    start = readable if readable.startswith(kind.value) else f"{kind.value}_{readable}"
    digest = sha256(f"{raw}{salt}".encode("utf-8", "replace")).hexdigest()
    return f"{start.rstrip('_')}_{digest[:8]}"


def _valid(kind: Kind, raw: str) -> str:
    """Returns `raw` if it can be an id, else the safe one for it."""
    return raw if ids.is_id(raw) and not raw.startswith(".") else safe(kind, raw)


def assigned(requests: Iterable[tuple[Kind, str]]) -> tuple[str, ...]:
    """Returns a different id for each kind and raw id.

    Ids that differ only in case would be one file on case-insensitive file systems.
    """
    taken: dict[str, str] = {}
    for kind, raw in requests:
        id, times = _valid(kind, raw), 0
        while id.casefold() in taken:
            times += 1
            id = safe(kind, raw, salt=f"\0{kind.value}{times}")
        taken[id.casefold()] = id
    return tuple(taken.values())


# The statements of rows about each other, as links of the newer memory.


@frozen
class _Relation:
    """One statement: `source` is the newer decision; both ids are as the database has them."""

    source: str
    target: str
    type: str
    confidence: float | None = None
    by: str | None = None
    reason: str | None = None
    note: Mapping[str, Any] = field(default_factory=dict)
    """Other data about it."""


@dataclasses.dataclass
class _Related:
    """The links of one decision's file, and other data about them."""

    links: list[Link] = dataclasses.field(default_factory=list)
    reasons: list[str] = dataclasses.field(default_factory=list)
    """The reasons for the links, as prose."""
    notes: list[Mapping[str, Any]] = dataclasses.field(default_factory=list)
    linked_from: list[Mapping[str, Any]] = dataclasses.field(default_factory=list)
    """Links of missing decisions to this one."""


def _relate(
    decisions: Mapping[str, tuple[str, Cells]], edges: Iterable[Cells]
) -> tuple[Mapping[str, _Related], LinkCounts]:
    """Returns the links of each decision by its raw id, and their numbers.

    `decisions` has the new id and the row of each raw id. A link to a missing decision is kept, as
    a link that leads nowhere.
    """
    relations = [*_of_decisions(decisions), *_of_edges(edges)]
    merged: dict[tuple[str, str, str], _Relation] = {}
    left_out = 0
    for relation in relations:
        ends = {relation.source, relation.target}
        if len(ends) == 1 or "" in ends or not ends & decisions.keys():
            left_out += 1
            continue
        key = (relation.source, relation.target, relation.type)
        base = merged.setdefault(key, relation)
        by, reason = base.by or relation.by, base.reason or relation.reason
        merged[key] = replace(base, by=by, reason=reason, note={**relation.note, **base.note})
    related: defaultdict[str, _Related] = defaultdict(_Related)
    kept_aside = 0
    for relation in merged.values():
        if relation.source in decisions:
            _add(related[relation.source], relation, decisions)
        else:
            kept_aside += 1
            related[relation.target].linked_from.append(_backwards(relation))
    return related, LinkCounts(
        found=len(relations),
        written=len(merged) - kept_aside,
        repeated=len(relations) - left_out - len(merged),
        kept_aside=kept_aside,
        left_out=left_out,
        dangling=sum(relation.target not in decisions for relation in merged.values()),
    )


def _of_decisions(decisions: Mapping[str, tuple[str, Cells]]) -> Iterator[_Relation]:
    for key, (_, row) in decisions.items():
        if older := text(row.get("supersedes")):
            yield _Relation(source=key, target=older, type=SUPERSEDES, confidence=1.0)
        if newer := text(row.get("superseded_by")):
            yield _Relation(source=newer, target=key, type=SUPERSEDES, confidence=1.0)


def _of_edges(edges: Iterable[Cells]) -> Iterator[_Relation]:
    for row in edges:
        type = (text(row.get("relationship")) or "relates_to").strip()
        by = text(row.get("created_by"))
        columns = {name: data(row.get(name)) for name in ("evidence", "decision_id")}
        note = {name: value for name, value in columns.items() if value is not None}
        # Other edges have a 0 as well, without meaning that an approval is missing.
        if by == "llm" and row.get("approved_by_user") == 0:
            note["approved"] = False
        is_explicit = type == SUPERSEDES
        yield _Relation(
            source=text(row.get("from_id")) or "",
            target=text(row.get("to_id")) or "",
            type=type,
            confidence=1.0 if is_explicit else unit(row.get("weight")),
            # An edge without an author is MAMA's own, from the similarity of two texts.
            by=by or (None if is_explicit else "system"),
            reason=text(row.get("reason")),
            note=note,
        )


def _add(
    related: _Related, relation: _Relation, decisions: Mapping[str, tuple[str, Cells]]
) -> None:
    """Adds a link to its decision's file, with the reason as `mind evolve supersede` writes it."""
    target, type = relation.target, relation.type
    to = decisions[target][0] if target in decisions else _valid(Kind.DECISION, target)
    related.links.append(Link(to=to, type=type, confidence=relation.confidence, by=relation.by))
    if relation.reason:
        verb = "Replaces" if type == SUPERSEDES else type.replace("_", " ").capitalize()
        related.reasons.append(f"{verb} {to}: {relation.reason}")
    if relation.note:
        related.notes.append({"to": to, "type": type, **relation.note})


def _backwards(relation: _Relation) -> dict[str, Any]:
    """Returns a link of a missing decision, as the header of its target records it."""
    fields = {
        "from": relation.source,
        "type": relation.type,
        "confidence": relation.confidence,
        "by": relation.by,
        "reason": relation.reason,
        **relation.note,
    }
    return {name: value for name, value in fields.items() if value is not None}


# Rows as memories, column by column.


_MOST_LINKS = 200
"""A header has 64 KiB at most; further links of a decision are in its body."""
_DEFAULTS = {("status", "active"), ("kind", "decision"), ("solution_type", "bash")}
_PROSE = frozenset(
    "evidence alternatives risks summary latest_exchange recent_conversation links".split()
)
"""Texts that people read and search are in the body, even if they are short."""
_FLAGS = frozenset({"needs_validation", "is_static"})
_TIMES = frozenset({"last_validated_at", "last_active_at", "ended_at", "last_seen", "event_date"})

_OF_DECISION = frozenset(
    "id topic decision reasoning outcome failure_reason limitation confidence status supersedes"
    " superseded_by created_at".split()
)
"""The columns that become fields and sections of a decision."""


def _decision(row: Cells, id: str, oldest: datetime, related: _Related) -> Memory:
    used = set(_OF_DECISION)
    confidence = unit(row.get("confidence"))
    if confidence is None:
        used.remove("confidence")
    try:
        outcome = outcomes.outcome_of(text(row.get("outcome")) or "pending")
    except Invalid:
        outcome = None
        used.remove("outcome")
    updated = moment(row.get("updated_at"))
    created = moment(row.get("created_at")) or moment_in_id(id) or updated or oldest
    failure, limitation = text(row.get("failure_reason")), text(row.get("limitation"))
    if failure and limitation:
        limitation = f"Limitation: {limitation}"
    reason = joined(failure, limitation)
    entry = outcomes.entry(outcome, reason, on=updated or created) if outcome or reason else ""
    header, body = _extras(row, used, **_about_links(related))
    return Memory(
        id=id,
        type=Kind.DECISION,
        content=text(row.get("decision")) or "",
        created=created,
        topic=text(row.get("topic")),
        confidence=confidence,
        outcome=outcome,
        status=_status(row),
        links=tuple(related.links[:_MOST_LINKS]),
        sections={
            Section.REASONING: joined(text(row.get("reasoning")), *related.reasons, *body),
            Section.OUTCOME: entry,
        },
        extra=header,
    )


def _about_links(related: _Related) -> dict[str, Any]:
    """Returns the data about a decision's links that its list of links can't hold."""
    lines = []
    for link in related.links[_MOST_LINKS:]:
        confidence = "" if link.confidence is None else f", confidence {link.confidence:g}"
        by = f", by {link.by}" if link.by else ""
        lines.append(f"- {link.type} [[{link.to}]]{confidence}{by}")
    about = {
        "link_notes": related.notes,
        "linked_from": related.linked_from,
        "links": "\n".join(lines),
    }
    return {name: value for name, value in about.items() if value}


def _checkpoint(row: Cells, id: str, oldest: datetime) -> Memory:
    used = {"id", "timestamp", "summary", "open_files", "next_steps", "status"}
    header, body = _extras(row, used)
    return Memory(
        id=id,
        type=Kind.CHECKPOINT,
        content=joined(text(row.get("summary")), *body),
        created=moment(row.get("timestamp")) or oldest,
        status=_status(row),
        sections={
            Section.OPEN_FILES: phrases.bullets(items(row.get("open_files"))),
            Section.NEXT_STEPS: text(row.get("next_steps")) or "",
        },
        extra=header,
    )


def _session(row: Cells, id: str, oldest: datetime) -> Memory:
    header, body = _extras(row, {"id", "rolling_summary", "started_at"})
    began = moment(row.get("started_at")) or moment_in_id(id) or moment(row.get("last_active_at"))
    return Memory(
        id=id,
        type=Kind.CONTEXT,
        content=joined(text(row.get("rolling_summary")), *body),
        created=began or oldest,
        extra=header,
    )


def _error_pattern(row: Cells, id: str, oldest: datetime) -> Memory:
    header, body = _extras(row, {"id", "error_pattern", "solution", "first_seen", "created_at"})
    solution = text(row.get("solution"))
    if solution:
        is_code = (text(row.get("solution_type")) or "bash") == "bash"
        solution = f"## Solution\n\n{fenced(solution, 'bash') if is_code else solution}"
    return Memory(
        id=id,
        type=Kind.INSIGHT,
        content=joined(text(row.get("error_pattern")), solution, *body),
        created=moment(row.get("first_seen")) or moment(row.get("created_at")) or oldest,
        category="error_pattern",
        extra=header,
    )


_CONVERTERS: Mapping[str, Callable[[Cells, str, datetime], Memory]] = {
    "checkpoints": _checkpoint,
    "sessions": _session,
    "error_patterns": _error_pattern,
}


def _extras(
    row: Cells, used: Collection[str], **additions: Any
) -> tuple[dict[str, Any], list[str]]:
    """Returns the columns without a field of their own, those of later versions of MAMA included.

    Short values are for the header, others are prose for the body, under their names. The time of
    the last change is the file's own; a time of creation that can't be right is kept.
    """
    columns = {
        name: _value(name, value)
        for name, value in row.items()
        if name != "updated_at" and (name not in used or (name in _CREATED and not moment(value)))
    }
    return divided({**columns, **additions}, "mama", as_prose=_PROSE)


def _value(name: str, value: Any) -> Any:
    """Returns the data of a column; None for an empty value or a default of MAMA's."""
    if (name, value) in _DEFAULTS:
        return None
    if name in _TIMES and (when := moment(value)):
        return when.isoformat().replace("+00:00", "Z")
    return True if name in _FLAGS and value == 1 else data(value)


def _status(row: Cells) -> str | None:
    status = text(row.get("status"))
    return None if ("status", status) in _DEFAULTS else status
