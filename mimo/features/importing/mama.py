"""The conversion of a MAMA v1.0 database into memories, which keeps all data of its rows."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import starmap
from math import isfinite
from typing import Any

from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.memory import ids, outcomes
from mimo.memory.codec.fields import KEYS, read_moment
from mimo.memory.model import SUPERSEDES, Kind, Link, Memory, Outcome, Section
from mimo.text import phrases
from mimo.text.phrases import bullets

# Single values of a MAMA database: what they say, and how a memory can hold it.


Row = Mapping[str, Any]

SECONDS_BELOW = 1_577_836_800_000
"""A smaller number is a time in seconds, any other one in milliseconds: MAMA's own rule."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST = 200
"""Characters of a value that a header shows on its one line."""
_DEEPEST = 3
_LARGEST = 2**63
_NUMBER = re.compile(r"[+-]?\d{1,20}(?:\.\d*)?")
_ID_TIME = re.compile(r"_(\d{13})(?:_|$)")
_TURN = {"role", "content"}


def text(value: Any) -> str | None:
    """Returns a value as text that a file can hold, or None where it says nothing."""
    if value is None:
        return None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    told = _clean(str(value))
    return told if told.strip() else None


def moment(value: Any) -> datetime | None:
    """Returns the time that a value means, UTC; None where it means none that can be right."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        when = read_moment(value)
    else:
        when = _counted(value)
    return when if when and _EARLIEST <= when < _LATEST else None


def moment_in_id(name: str) -> datetime | None:
    """Returns the time that an id such as `decision_auth_1763650800000_x1y2` holds."""
    match = _ID_TIME.search(name)
    return moment(int(match[1])) if match else None


def unit(value: Any) -> float | None:
    """Returns a number from 0 to 1, or None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number <= 1 else None


def data(value: Any) -> Any:
    """Returns what a value says as JSON-like data; None where that is nothing.

    Empty texts and lists say nothing, nor do zeros: they are what a new row has. Text that is a
    JSON list or object becomes one; broken JSON stays the text that it is.
    """
    if isinstance(value, bytes | str):
        told = text(value)
        if told is None or told.strip() == "null":
            return None
        return _parsed(told) if told.lstrip()[0] in "[{" else told
    return _plain(value) or None


def is_small(value: Any) -> bool:
    """Returns whether a header can show the data on one line that people can read."""
    if isinstance(value, str):
        return len(value) <= _LONGEST and value.isprintable()
    if not isinstance(value, list | dict):
        return True
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return False
    return len(shown) <= _LONGEST and "\\n" not in shown and _depth(value) < _DEEPEST


def prose(value: Any) -> str:
    """Returns data as Markdown: text as it is, a list as bullets, talk by its speakers."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return bullets(value)
    if isinstance(value, list) and all(_is_turn(item) for item in value):
        return "\n\n".join(f"**{item['role']}:** {item['content']}" for item in value)
    return fenced(json.dumps(value, ensure_ascii=False, indent=2), "json")


def fenced(code: str, language: str) -> str:
    """Returns a block of code, with a fence longer than any within."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def items(value: Any) -> list[str]:
    """Returns the texts of a JSON list, or the one text that is no such list."""
    told = data(value)
    if not isinstance(told, list):
        return [] if told is None else [told if isinstance(told, str) else json.dumps(told)]
    dumped = (item if isinstance(item, str) else json.dumps(item) for item in told)
    return [item for item in dumped if item.strip()]


def _counted(value: Any) -> datetime | None:
    try:
        number = float(value)
        milliseconds = number if number >= SECONDS_BELOW else number * 1000
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except (TypeError, ValueError, OverflowError):
        return None


def _parsed(told: str) -> Any:
    try:
        return _plain(json.loads(told)) or None
    except (ValueError, RecursionError):
        return told


def _plain(value: Any) -> Any:
    """Returns JSON-like data as a file can hold it."""
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {_clean(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    infinite = isinstance(value, float) and not isfinite(value)
    huge = isinstance(value, int) and abs(value) > _LARGEST
    return str(value) if infinite or huge else value


def _clean(told: str) -> str:
    """Returns text without what is no character: NUL and halves of surrogate pairs."""
    return told.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _depth(value: Any) -> int:
    if not isinstance(value, list | dict) or not value:
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(_depth(item) for item in inner)


def _is_turn(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.keys() == _TURN
        and all(isinstance(told, str) for told in item.values())
    )


# Ids of rows as ids of memories: kept where they can be, made safe with a hash elsewhere.


def safe(kind: Kind, raw: str, *, salt: str = "") -> str:
    """Returns an id that stands for `raw` alone, with what of it can be read; always the same."""
    readable = ids.slug(raw)
    start = readable if readable.startswith(kind.value) else f"{kind.value}_{readable}"
    digest = sha256(f"{raw}{salt}".encode("utf-8", "replace")).hexdigest()
    return f"{start.rstrip('_')}_{digest[:8]}"


def kept(kind: Kind, raw: str) -> str:
    """Returns `raw` where it can be an id, else the safe one that stands for it."""
    return raw if ids.is_id(raw) and not raw.startswith(".") else safe(kind, raw)


def assigned(wanted: Iterable[tuple[Kind, str]]) -> tuple[str, ...]:
    """Returns an id for each kind and raw id, no two of them alike.

    Ids that differ in case alone would be one file where file names fold case.
    """
    taken: set[str] = set()
    assigned_ids = []
    for kind, raw in wanted:
        name, times = kept(kind, raw), 0
        while name.casefold() in taken:
            times += 1
            name = safe(kind, raw, salt=f"\0{kind.value}{times}")
        taken.add(name.casefold())
        assigned_ids.append(name)
    return tuple(assigned_ids)


# What the rows of a MAMA database say about each other, as links of the newer memory.


SYSTEM = "system"
"""The author of an edge without one: MAMA itself, from the similarity of two texts."""

_NOTED = ("evidence", "decision_id")


@frozen
class Relation:
    """One statement: `source` is the newer decision; both ids are as the database has them."""

    source: str
    target: str
    type: str
    confidence: float | None = None
    by: str | None = None
    reason: str | None = None
    note: Mapping[str, Any] | None = None
    """Other data about it."""


@frozen
class LinkCounts:
    """What became of all statements: `found` is the sum of the others but for `dangling`."""

    found: int = 0
    written: int = 0
    repeated: int = 0
    """The same was said before, in another place."""
    kept_aside: int = 0
    """The decision that should hold it is not there; the other one tells of it in its header."""
    left_out: int = 0
    """A decision's link to itself, to nothing, or between two that are both not there."""
    dangling: int = 0
    """Of those written, how many lead to a decision that is not there."""


@frozen
class Related:
    """The relations in one decision's file: its links, and other data about them."""

    links: Sequence[Link] = ()
    reasons: Sequence[str] = ()
    """Why it links, as prose."""
    notes: Sequence[Mapping[str, Any]] = ()
    linked_from: Sequence[Mapping[str, Any]] = ()


@frozen
class Relations:
    """The relations in all decisions' files, by the raw ids of their owners."""

    links: Mapping[str, Sequence[Link]]
    reasons: Mapping[str, Sequence[str]]
    notes: Mapping[str, Sequence[Mapping[str, Any]]]
    linked_from: Mapping[str, Sequence[Mapping[str, Any]]]
    counts: LinkCounts

    def of(self, key: str) -> Related:
        """Returns the relations of one decision's file."""
        return Related(
            links=self.links.get(key, ()),
            reasons=self.reasons.get(key, ()),
            notes=self.notes.get(key, ()),
            linked_from=self.linked_from.get(key, ()),
        )


def relations(
    decisions: Iterable[tuple[str, Row]], edges: Iterable[Row], ids: Mapping[str, str]
) -> Relations:
    """Returns the links between decisions, which come with their raw ids.

    `ids` has the id of the memory of each. One that is not there is linked all the same: the link
    shows as one that leads nowhere.
    """
    stated = [*_of_decisions(decisions), *_of_edges(edges)]
    merged: dict[tuple[str, str, str], Relation] = {}
    left_out = 0
    for item in stated:
        if _says_nothing(item, ids):
            left_out += 1
            continue
        key = (item.source, item.target, item.type)
        merged[key] = _merged(merged[key], item) if key in merged else item
    held = [item for item in merged.values() if item.source in ids]
    aside = [item for item in merged.values() if item.source not in ids]
    counts = LinkCounts(
        found=len(stated),
        written=len(held),
        repeated=len(stated) - left_out - len(merged),
        kept_aside=len(aside),
        left_out=left_out,
        dangling=sum(item.target not in ids for item in held),
    )
    return Relations(
        links=_grouped((item.source, _link(item, ids)) for item in held),
        reasons=_grouped((item.source, _reason(item, ids)) for item in held if item.reason),
        notes=_grouped((item.source, _note(item, ids)) for item in held if item.note),
        linked_from=_grouped((item.target, _backwards(item)) for item in aside),
        counts=counts,
    )


def _of_decisions(decisions: Iterable[tuple[str, Row]]) -> Iterator[Relation]:
    for own, row in decisions:
        if older := text(row.get("supersedes")):
            yield Relation(source=own, target=older, type=SUPERSEDES, confidence=1.0)
        if newer := text(row.get("superseded_by")):
            yield Relation(source=newer, target=own, type=SUPERSEDES, confidence=1.0)


def _of_edges(edges: Iterable[Row]) -> Iterator[Relation]:
    for row in edges:
        kind = (text(row.get("relationship")) or "relates_to").strip()
        by = text(row.get("created_by"))
        explicit = kind == SUPERSEDES
        yield Relation(
            source=text(row.get("from_id")) or "",
            target=text(row.get("to_id")) or "",
            type=kind,
            confidence=1.0 if explicit else unit(row.get("weight")),
            by=by or (None if explicit else SYSTEM),
            reason=text(row.get("reason")),
            note=_noted(row, by),
        )


def _says_nothing(relation: Relation, ids: Mapping[str, str]) -> bool:
    ends = {relation.source, relation.target}
    return len(ends) == 1 or "" in ends or not ends & ids.keys()


def _noted(row: Row, by: str | None) -> dict[str, Any] | None:
    """Returns what an edge says beside its ends, or None."""
    note = {name: told for name in _NOTED if (told := data(row.get(name))) is not None}
    # Only of a language model's edge it says something that nobody has approved it yet.
    if by == "llm" and row.get("approved_by_user") == 0:
        note["approved"] = False
    return note or None


def _merged(first: Relation, again: Relation) -> Relation:
    note = {**(again.note or {}), **(first.note or {})}
    by, reason = first.by or again.by, first.reason or again.reason
    return replace(first, by=by, reason=reason, note=note or None)


def _link(relation: Relation, ids: Mapping[str, str]) -> Link:
    to = ids.get(relation.target) or kept(Kind.DECISION, relation.target)
    return Link(to=to, type=relation.type, confidence=relation.confidence, by=relation.by)


def _reason(relation: Relation, ids: Mapping[str, str]) -> str:
    """Returns why one decision links to another, as `mind evolve supersede` puts it."""
    verb = (
        "Replaces" if relation.type == SUPERSEDES else relation.type.replace("_", " ").capitalize()
    )
    return f"{verb} {_link(relation, ids).to}: {relation.reason}"


def _note(relation: Relation, ids: Mapping[str, str]) -> dict[str, Any]:
    return {"to": _link(relation, ids).to, "type": relation.type, **(relation.note or {})}


def _backwards(relation: Relation) -> dict[str, Any]:
    known = {
        "from": relation.source,
        "type": relation.type,
        "confidence": relation.confidence,
        "by": relation.by,
        "reason": relation.reason,
    }
    return {name: told for name, told in known.items() if told is not None} | dict(
        relation.note or {}
    )


def _grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


# Rows of a MAMA database as memories: which column becomes what.


_MOST_LINKS = 200
"""A header has 64 KiB at most; the links of a decision that has more stand in its body."""
_NOT_TAKEN = frozenset({"updated_at", "embedding", "embedding_vector"})
"""A vector is computed again, and the time of the last change is the file's own."""
_DEFAULTS: Mapping[str, Collection[Any]] = {
    "status": ("active",),
    "kind": ("decision",),
    "solution_type": ("bash",),
}
_PROSE = frozenset(
    "evidence alternatives risks summary latest_exchange recent_conversation links".split()
)
"""Texts that people read and search are in the body, even if they are short."""
_FLAGS = frozenset({"needs_validation", "is_static"})
_TIMES = frozenset({"last_validated_at", "last_active_at", "ended_at", "last_seen", "event_date"})


@frozen
class Rest:
    """The data of a row beside a memory's fields: short values, and prose for the body."""

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
        Section.OPEN_FILES: phrases.bullets(items(row.get("open_files"))),
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


# A whole MAMA database as memories: each row's id, its links, and the rows that say nothing.


TABLES: Mapping[str, Kind] = {
    "decisions": Kind.DECISION,
    "checkpoints": Kind.CHECKPOINT,
    "sessions": Kind.CONTEXT,
    "error_patterns": Kind.INSIGHT,
}
"""The tables whose rows become memories, with the type that they become."""

EDGES = "decision_edges"
"""The table whose rows become links."""

_NUMBERED = {
    "checkpoints": "checkpoint_",
    "sessions": "session_",
    "error_patterns": "error_pattern_",
}
"""The prefix of an id that is only a number."""


@frozen
class Source:
    """The row that a memory comes from, which may be empty."""

    table: str
    key: str
    """The row's own id, as text."""
    memory: Memory | None


@frozen
class Converted:
    """The memories of all rows of a database, in their order."""

    rows: tuple[Source, ...]
    links: LinkCounts


def convert(tables: Mapping[str, Sequence[Row]], *, now: datetime) -> Converted:
    """Returns the memories of a database's rows.

    The same rows always become the same memories; `now` is used only if no row has a time.
    """
    rows = [(table, row) for table in TABLES for row in tables.get(table, ())]
    keys = list(starmap(_key, rows))
    wanted = ((TABLES[table], _raw(table, key)) for (table, _), key in zip(rows, keys, strict=True))
    ids = assigned(wanted)
    decisions = [
        (key, id_, row)
        for (table, row), key, id_ in zip(rows, keys, ids, strict=True)
        if table == "decisions" and says_something(row)
    ]
    related = relations(
        [(key, row) for key, _, row in decisions],
        tables.get(EDGES, ()),
        {key: id_ for key, id_, _ in decisions},
    )
    # A row without a time of its own must not seem the newest of all.
    first = min(filter(None, (told_time(row) for _, row in rows)), default=now)
    made = (
        Source(table=table, key=key, memory=_memory(table, row, id_, related.of(key), first))
        for (table, row), key, id_ in zip(rows, keys, ids, strict=True)
    )
    return Converted(rows=tuple(made), links=related.counts)


def _memory(table: str, row: Row, id_: str, related: Related, first: datetime) -> Memory | None:
    match TABLES[table]:
        case Kind.DECISION:
            made = decision(row, id_, otherwise=first, related=related)
        case Kind.CHECKPOINT:
            made = checkpoint(row, id_, otherwise=first)
        case Kind.CONTEXT:
            made = session(row, id_, otherwise=first)
        case _:
            made = error_pattern(row, id_, otherwise=first)
    return made if made.content.strip() or made.sections or made.topic else None


def _key(table: str, row: Row) -> str:
    """Returns a row's id; one without any gets a hash of what it says."""
    if told := text(row.get("id")):
        return told
    said = repr(sorted((name, value) for name, value in row.items() if value is not None))
    return f"{TABLES[table].value}_{sha256(said.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _raw(table: str, key: str) -> str:
    """Returns the id that a row asks for: a number alone needs a word before it."""
    return f"{_NUMBERED[table]}{key}" if table in _NUMBERED and key.isdigit() else key
