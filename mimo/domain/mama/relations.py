"""What the rows of a MAMA database say about each other, as links of the newer memory.

One fact stands there up to three times: as `supersedes`, as `superseded_by` and as an edge.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mimo.domain.mama import names
from mimo.domain.mama.values import Row, data, text, unit
from mimo.domain.memory import SUPERSEDES, Kind, Link
from mimo.frozen import frozen

SYSTEM = "system"
"""Who made an edge of which nobody is named: MAMA itself, from how alike two texts were."""

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
    """What else is said of it."""


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
    """What one decision's file tells of others: its links, and what else is said of them."""

    links: Sequence[Link] = ()
    reasons: Sequence[str] = ()
    """Why it links, as prose."""
    notes: Sequence[Mapping[str, Any]] = ()
    linked_from: Sequence[Mapping[str, Any]] = ()


@frozen
class Relations:
    """What the decisions' files tell of each other, by the raw ids of those that hold it."""

    links: Mapping[str, Sequence[Link]]
    reasons: Mapping[str, Sequence[str]]
    notes: Mapping[str, Sequence[Mapping[str, Any]]]
    linked_from: Mapping[str, Sequence[Mapping[str, Any]]]
    counts: LinkCounts

    def of(self, key: str) -> Related:
        """Returns what the file of one decision tells."""
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
    for one in stated:
        if _says_nothing(one, ids):
            left_out += 1
            continue
        key = (one.source, one.target, one.type)
        merged[key] = _merged(merged[key], one) if key in merged else one
    held = [one for one in merged.values() if one.source in ids]
    aside = [one for one in merged.values() if one.source not in ids]
    counts = LinkCounts(
        found=len(stated),
        written=len(held),
        repeated=len(stated) - left_out - len(merged),
        kept_aside=len(aside),
        left_out=left_out,
        dangling=sum(one.target not in ids for one in held),
    )
    return Relations(
        links=_grouped((one.source, _link(one, ids)) for one in held),
        reasons=_grouped((one.source, _reason(one, ids)) for one in held if one.reason),
        notes=_grouped((one.source, _note(one, ids)) for one in held if one.note),
        linked_from=_grouped((one.target, _backwards(one)) for one in aside),
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


def _says_nothing(one: Relation, ids: Mapping[str, str]) -> bool:
    ends = {one.source, one.target}
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


def _link(one: Relation, ids: Mapping[str, str]) -> Link:
    to = ids.get(one.target) or names.kept(Kind.DECISION, one.target)
    return Link(to=to, type=one.type, confidence=one.confidence, by=one.by)


def _reason(one: Relation, ids: Mapping[str, str]) -> str:
    """Returns why one decision links to another, as `mind evolve supersede` puts it."""
    verb = "Replaces" if one.type == SUPERSEDES else one.type.replace("_", " ").capitalize()
    return f"{verb} {_link(one, ids).to}: {one.reason}"


def _note(one: Relation, ids: Mapping[str, str]) -> dict[str, Any]:
    return {"to": _link(one, ids).to, "type": one.type, **(one.note or {})}


def _backwards(one: Relation) -> dict[str, Any]:
    known = {
        "from": one.source,
        "type": one.type,
        "confidence": one.confidence,
        "by": one.by,
        "reason": one.reason,
    }
    return {name: told for name, told in known.items() if told is not None} | dict(one.note or {})


def _grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
