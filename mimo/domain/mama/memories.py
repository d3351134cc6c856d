"""Rows of a MAMA database as memories: which column becomes what."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from mimo.domain import lists, outcomes
from mimo.domain.codec.fields import KEYS
from mimo.domain.mama.relations import Related
from mimo.domain.mama.values import (
    Row,
    data,
    fenced,
    is_small,
    items,
    moment,
    moment_in_id,
    prose,
    text,
    unit,
)
from mimo.domain.memory import Kind, Link, Memory, Outcome, Section
from mimo.errors import Invalid
from mimo.frozen import frozen

_MOST_LINKS = 200
"""A header has 64 KiB at most; the links of a decision that has more stand in its body."""
_NOT_TAKEN = frozenset({"updated_at", "embedding", "embedding_vector"})
"""A vector is made anew, and the time of the last change is the file's own."""
_DEFAULTS: Mapping[str, Collection[Any]] = {
    "status": ("active",),
    "kind": ("decision",),
    "solution_type": ("bash",),
}
_PROSE = frozenset(
    "evidence alternatives risks summary latest_exchange recent_conversation links".split()
)
"""What people want to read and find by its words stands in the body, however short."""
_FLAGS = frozenset({"needs_validation", "is_static"})
_TIMES = frozenset({"last_validated_at", "last_active_at", "ended_at", "last_seen", "event_date"})


@frozen
class Rest:
    """What a row says beside the fields of a memory: short values, and prose for the body."""

    header: Mapping[str, Any]
    body: Sequence[str]


def decision(row: Row, id: str, *, otherwise: datetime, related: Related) -> Memory:
    """Returns the memory of a row of `decisions`."""
    sure, (outcome, odd) = unit(row.get("confidence")), _outcome_of(row)
    created = moment(row.get("created_at")) or moment_in_id(id) or moment(row.get("updated_at"))
    when = moment(row.get("updated_at")) or created or otherwise
    used = _DECISION if sure is not None else _DECISION - {"confidence"}
    rest = _rest(_others(row, used), _of_links(related), odd, _odd_time(row, "created_at"))
    sections = {
        Section.REASONING: _joined(text(row.get("reasoning")), *related.reasons, *rest.body),
        Section.OUTCOME: _outcome(row, outcome, on=when),
    }
    return Memory(
        id=id,
        type=Kind.DECISION,
        content=text(row.get("decision")) or "",
        created=created or otherwise,
        topic=text(row.get("topic")),
        confidence=sure,
        outcome=outcome,
        status=_status(row),
        links=tuple(related.links[:_MOST_LINKS]),
        sections={section: body for section, body in sections.items() if body},
        extra=rest.header,
    )


def checkpoint(row: Row, id: str, *, otherwise: datetime) -> Memory:
    """Returns the memory of a row of `checkpoints`."""
    rest = _rest(_others(row, _CHECKPOINT), _odd_time(row, "timestamp"))
    sections = {
        Section.OPEN_FILES: lists.bullets(items(row.get("open_files"))),
        Section.NEXT_STEPS: text(row.get("next_steps")) or "",
    }
    return Memory(
        id=id,
        type=Kind.CHECKPOINT,
        content=_joined(text(row.get("summary")), *rest.body),
        created=moment(row.get("timestamp")) or otherwise,
        status=_status(row),
        sections={section: body for section, body in sections.items() if body},
        extra=rest.header,
    )


def session(row: Row, id: str, *, otherwise: datetime) -> Memory:
    """Returns the memory of a row of `sessions`."""
    rest = _rest(_others(row, _SESSION), _odd_time(row, "started_at"))
    began = moment(row.get("started_at")) or moment_in_id(id) or moment(row.get("last_active_at"))
    return Memory(
        id=id,
        type=Kind.CONTEXT,
        content=_joined(text(row.get("rolling_summary")), *rest.body),
        created=began or otherwise,
        extra=rest.header,
    )


def error_pattern(row: Row, id: str, *, otherwise: datetime) -> Memory:
    """Returns the memory of a row of `error_patterns`: the error, and what helped."""
    rest = _rest(_others(row, _PATTERN), _odd_time(row, "first_seen", "created_at"))
    solution = text(row.get("solution"))
    if solution and (text(row.get("solution_type")) or "bash") == "bash":
        solution = fenced(solution, "bash")
    helped = f"## Solution\n\n{solution}" if solution else None
    return Memory(
        id=id,
        type=Kind.INSIGHT,
        content=_joined(text(row.get("error_pattern")), helped, *rest.body),
        created=moment(row.get("first_seen")) or moment(row.get("created_at")) or otherwise,
        category="error_pattern",
        extra=rest.header,
    )


_DECISION = frozenset(
    "id topic decision reasoning outcome failure_reason limitation confidence status supersedes"
    " superseded_by created_at".split()
)
_MADE = ("created_at", "timestamp", "started_at", "first_seen")
_TEXTS = ("decision", "topic", "reasoning", "failure_reason", "limitation")
_CHECKPOINT = frozenset("id timestamp summary open_files next_steps status".split())
_SESSION = frozenset("id rolling_summary started_at".split())
_PATTERN = frozenset("id error_pattern solution first_seen created_at".split())


def told_time(row: Row) -> datetime | None:
    """Returns when a row of any table was made, where it says so."""
    return next((when for name in _MADE if (when := moment(row.get(name)))), None)


def says_something(row: Row) -> bool:
    """Returns whether a row of `decisions` has any text worth a memory."""
    return any(text(row.get(name)) for name in _TEXTS)


def _others(row: Row, used: Collection[str]) -> dict[str, Any]:
    """Returns what the other columns say, those of later versions of MAMA as well."""
    found = {}
    for name, value in row.items():
        if name in used or name in _NOT_TAKEN or value in _DEFAULTS.get(name, ()):
            continue
        if (told := _told(name, value)) is not None:
            found[name] = told
    return found


def _told(name: str, value: Any) -> Any:
    if name in _TIMES and (when := moment(value)):
        return when.isoformat().replace("+00:00", "Z")
    if name in _FLAGS and value == 1:
        return True
    return data(value)


def _odd_time(row: Row, *names: str) -> dict[str, Any]:
    """Returns the times of creation that can't be right, as they are given."""
    wrong = {name: data(row.get(name)) for name in names if not moment(row.get(name))}
    return {name: told for name, told in wrong.items() if told is not None}


def _of_links(related: Related) -> dict[str, Any]:
    """Returns what is said of a decision's links beside the links themselves."""
    found: dict[str, Any] = {"link_notes": [*related.notes]} if related.notes else {}
    if related.linked_from:
        found["linked_from"] = [*related.linked_from]
    if more := related.links[_MOST_LINKS:]:
        found["links"] = "\n".join(map(_link_line, more))
    return found


def _rest(*said: Mapping[str, Any]) -> Rest:
    """Returns short values for the header, and the others as prose under their names."""
    header: dict[str, Any] = {}
    body: list[str] = []
    for name, value in (pair for group in said for pair in group.items()):
        # A key of mind's own would be read as the memory's field of that name.
        key = f"mama_{name}" if name in KEYS else name
        if is_small(value) and _is_key(key) and name not in _PROSE:
            header[key] = value
        else:
            title = " ".join(name.replace("_", " ").split()).capitalize()
            body.append(f"### {title}\n\n{prose(value)}")
    return Rest(header=header, body=body)


def _is_key(key: str) -> bool:
    return key.isascii() and key.replace("_", "").isalnum() and len(key) <= 60


def _status(row: Row) -> str | None:
    status = text(row.get("status"))
    return None if status in _DEFAULTS["status"] else status


def _outcome_of(row: Row) -> tuple[Outcome | None, dict[str, Any]]:
    """Returns how a decision turned out, and what is said of that in no word that is known."""
    told = text(row.get("outcome"))
    try:
        return (outcomes.outcome_of(told) if told else None), {}
    except Invalid:
        return None, {"outcome": told}


def _outcome(row: Row, outcome: Outcome | None, *, on: datetime) -> str:
    """Returns what is told of how a decision turned out: nothing where nobody said."""
    failure, limitation = text(row.get("failure_reason")), text(row.get("limitation"))
    if failure and limitation:
        limitation = f"Limitation: {limitation}"
    reason = _joined(failure, limitation)
    return outcomes.entry(outcome, reason, on=on) if outcome or reason else ""


def _link_line(link: Link) -> str:
    sure = "" if link.confidence is None else f", confidence {link.confidence:g}"
    return f"- {link.type} [[{link.to}]]{sure}{f', by {link.by}' if link.by else ''}"


def _joined(*parts: str | None) -> str:
    return "\n\n".join(part for part in parts if part)
