"""Settling what waits: one of several versions holds, or all of them do."""

from collections.abc import Iterable, Sequence

from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features import review
from mimo.features.review import SETTLED_BY_CHOICE, Choice, Item, Waiting, reviewed
from mimo.frozen import frozen
from mimo.memory import merge
from mimo.memory.model import SUPERSEDES, Link, Memory, Record
from mimo.mind import Mind
from mimo.operations import finding, overview, saving

BOTH = "both"


@frozen
class Settled:
    """What was settled, and how."""

    items: tuple[Item, ...]
    told: str
    files: tuple[str, ...]
    """The files that were changed."""


def settle(
    mind: Mind, wanted: str, take: str, *, kind: Waiting | None = None, field: str | None = None
) -> Settled:
    """Lets one of several versions or memories hold, or both, and returns what was done.

    A memory that holds supersedes those that it competes with; nothing is removed. Raises
    `NotFound` where nothing of that memory is to be settled, `AmbiguousId` where several things
    are, and `Invalid`.
    """
    items = _to_settle(mind, wanted, kind, field)
    if items[0].kind is Waiting.VERSIONS:
        return _settle_versions(mind, items, take)
    return _settle_memories(mind, items[0], take)


def keep(mind: Mind, wanted: str, *, kind: Waiting | None = None, off: bool = False) -> Settled:
    """Leaves what waits as it is, so that it is not shown again till it changes.

    With `off` it is shown again. Raises `NotFound` where nothing of that memory waits, and
    `Invalid` for what can't be left so.
    """
    seen = reviewed(mind)
    known = seen.keys()
    every = review.waiting(mind, Waiting if kind is None else (kind,), kept=True)
    items = [one for one in _about(mind, every, wanted) if (one.key in known) == off]
    if not items:
        raise _nothing(wanted, "was left as it is" if off else "waits")
    if not off and (stuck := [one for one in items if one.kind is Waiting.VERSIONS]):
        raise Invalid(
            f"both versions of {stuck[0].field} would stay in {stuck[0].file}",
            hint=f"mind review settle {stuck[0].id} --take 1",
        )
    changed = []
    for item in items:
        if item.kind is Waiting.FADING and item.id and not off:
            changed.append(overview.keep(mind, item.id, keep=True).place.path)
        elif off:
            seen.remove(item.key)
        else:
            seen.add(item.key)
    told = "is shown again" if off else "stays as it is, and is not shown again till it changes"
    return Settled(items=tuple(items), told=told, files=tuple(changed))


def _to_settle(mind: Mind, wanted: str, kind: Waiting | None, field: str | None) -> Sequence[Item]:
    kinds = SETTLED_BY_CHOICE if kind is None else (kind,)
    if kind is not None and kind not in SETTLED_BY_CHOICE:
        raise Invalid(
            f"what is {kind.value} has no versions to take",
            hint=f"`mind review --kind {kind.value}` says what can be done",
        )
    items = [
        one
        for one in _about(mind, review.waiting(mind, kinds), wanted)
        if field in (None, one.field)
    ]
    if not items:
        raise _nothing(wanted, "is to be settled")
    found = sorted({one.kind.value for one in items})
    if len(found) > 1 or (len(items) > 1 and items[0].kind is not Waiting.VERSIONS):
        hint = f"say which with --kind: {', '.join(found)}"
        if len(found) == 1:
            others = sorted({name for one in items for name in one.ids} - set(items[0].ids[:1]))
            hint = f"name the other memory: {', '.join(others)}"
        raise AmbiguousId(f"`{wanted}` is in {len(items)} things that wait", hint=hint)
    return items


def _about(mind: Mind, items: Iterable[Item], wanted: str) -> list[Item]:
    """Returns the items about the memory, the ingested file or the unreadable file of that name."""
    listed = list(items)
    if by_file := [one for one in listed if one.record is None and one.file == wanted]:
        return by_file
    if parts := finding.source(mind, wanted):
        return [one for one in listed if (parts[0].parent or "") in one.ids]
    name = finding.one(mind, wanted, surely=True).memory.id
    return [one for one in listed if name in one.ids]


def _nothing(wanted: str, what: str) -> NotFound:
    return NotFound(
        f"nothing of `{wanted}` {what}", hint="`mind review` lists what waits, `--all` all of it"
    )


def _chosen(item: Item, take: str) -> Choice:
    """Returns the choice of that number; raises `Invalid` where there is none."""
    if not take.isdecimal() or not 1 <= int(take) <= len(item.choices):
        raise Invalid(
            f"`{take}` is none of the versions",
            hint=f"take a number from 1 to {len(item.choices)}, or {BOTH}",
            details={"field": "take"},
        )
    return item.choices[int(take) - 1]


def _settle_versions(mind: Mind, items: Sequence[Item], take: str) -> Settled:
    record = items[0].record
    if record is None:
        raise Invalid("there is no memory to settle")
    memory = record.memory
    for item in items:
        name = str(item.field)
        text = _joined(item) if take == BOTH else _chosen(item, take).text
        memory = merge.chosen(memory, name, text)
    changes = {
        name: getattr(memory, name)
        for name in Memory.__dataclass_fields__
        if getattr(memory, name) != getattr(record.memory, name)
    }
    saving.edit(mind, record, **changes)
    names = ", ".join(str(item.field) for item in items)
    told = f"{names}: both texts hold, one after the other" if take == BOTH else ""
    told = told or f"{names}: version {take} holds"
    return Settled(items=tuple(items), told=told, files=(record.place.path,))


def _joined(item: Item) -> str:
    name = str(item.field)
    if not merge.is_text(name):
        raise Invalid(
            f"`{name}` has one value", hint=f"take a number from 1 to {len(item.choices)}"
        )
    return "\n\n".join(choice.text for choice in item.choices if choice.text)


def _settle_memories(mind: Mind, item: Item, take: str) -> Settled:
    if take == BOTH:
        reviewed(mind).add(item.key)
        return Settled(items=(item,), told="both stay in force", files=())
    winner = _chosen(item, take).record
    others = [one.record for one in item.choices if one.record and one.record is not winner]
    if winner is None or not winner.place.owned:
        path = winner.place.path if winner else item.file
        raise Invalid(
            f"`{path}` is a document that mind only reads",
            hint="write into it by hand what it supersedes, or take the other",
        )
    changed = saving.edit(mind, winner, links=_superseding(winner, others))
    names = ", ".join(one.memory.heading for one in others)
    told = f"{winner.memory.heading} holds; it supersedes {names}"
    return Settled(items=(item,), told=told, files=(changed.place.path,))


def _superseding(winner: Record, others: Sequence[Record]) -> tuple[Link, ...]:
    """Returns the winner's links, with one to each of those that it supersedes."""
    names = {one.memory.id: one.memory.title for one in others}
    kept = [
        link
        for link in winner.memory.links
        if not (link.type in ("contradicts", SUPERSEDES) and link.to in {*names, *names.values()})
    ]
    return (*kept, *(Link(to=name, type=SUPERSEDES, confidence=1.0) for name in names))
