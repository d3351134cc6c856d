"""Resolving items of the review list: by a choice, or by keeping both sides."""

from collections.abc import Iterable, Sequence

from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features import review
from mimo.features.review import BY_CHOICE, Choice, Item, Waiting, reviewed
from mimo.frozen import frozen
from mimo.memory import merge
from mimo.memory.model import SUPERSEDES, Link, Memory, Record
from mimo.mind import Mind
from mimo.operations import finding, overview, saving

BOTH = "both"


@frozen
class Resolved:
    """The items that were resolved, and the result."""

    items: tuple[Item, ...]
    message: str
    files: tuple[str, ...]
    """The files that were changed."""


def settle(
    mind: Mind, wanted: str, take: str, *, kind: Waiting | None = None, field: str | None = None
) -> Resolved:
    """Chooses one of several versions or memories, or both, and returns the result.

    A chosen memory supersedes the others; nothing is removed. Raises `NotFound` if the memory has
    nothing to resolve, `AmbiguousId` if several items match, and `Invalid`.
    """
    items = _to_resolve(mind, wanted, kind, field)
    if items[0].kind is Waiting.VERSIONS:
        return _choose_version(mind, items, take)
    return _choose_memory(mind, items[0], take)


def keep(mind: Mind, wanted: str, *, kind: Waiting | None = None, off: bool = False) -> Resolved:
    """Hides items until they change; with `off`, shows them again.

    Raises `NotFound` if the memory has no such items, and `Invalid` for items that can't be hidden.
    """
    hidden = reviewed(mind)
    keys = hidden.keys()
    every = review.waiting(mind, Waiting if kind is None else (kind,), kept=True)
    items = [item for item in _about(mind, every, wanted) if (item.key in keys) == off]
    if not items:
        raise _nothing(wanted, "hidden" if off else "to review")
    if not off and (stuck := [item for item in items if item.kind is Waiting.VERSIONS]):
        raise Invalid(
            f"both versions of {stuck[0].field} would stay in {stuck[0].file}",
            hint=f"mind review settle {stuck[0].id} --take 1",
        )
    changed = []
    for item in items:
        if item.kind is Waiting.FADING and item.id and not off:
            changed.append(overview.keep(mind, item.id, keep=True).place.path)
        elif off:
            hidden.remove(item.key)
        else:
            hidden.add(item.key)
    message = "is shown again" if off else "is hidden until it changes"
    return Resolved(items=tuple(items), message=message, files=tuple(changed))


def _to_resolve(mind: Mind, wanted: str, kind: Waiting | None, field: str | None) -> list[Item]:
    kinds = BY_CHOICE if kind is None else (kind,)
    if kind is not None and kind not in BY_CHOICE:
        raise Invalid(
            f"items of kind `{kind.value}` have no versions to take",
            hint=f"`mind review --kind {kind.value}` lists the possible commands",
        )
    matches = _about(mind, review.waiting(mind, kinds), wanted)
    items = [item for item in matches if field in (None, item.field)]
    if not items:
        raise _nothing(wanted, "to resolve")
    matching = sorted({item.kind.value for item in items})
    if len(matching) > 1 or (len(items) > 1 and items[0].kind is not Waiting.VERSIONS):
        hint = f"choose one with --kind: {', '.join(matching)}"
        if len(matching) == 1:
            others = sorted({name for item in items for name in item.ids} - set(items[0].ids[:1]))
            hint = f"name the other memory: {', '.join(others)}"
        raise AmbiguousId(f"`{wanted}` is in {len(items)} items", hint=hint)
    return items


def _about(mind: Mind, items: Iterable[Item], wanted: str) -> list[Item]:
    """Returns the items about the memory, the ingested file or the unreadable file of that name."""
    listed = list(items)
    if by_file := [item for item in listed if item.record is None and item.file == wanted]:
        return by_file
    if parts := finding.source(mind, wanted):
        return [item for item in listed if (parts[0].parent or "") in item.ids]
    name = finding.one(mind, wanted, surely=True).memory.id
    return [item for item in listed if name in item.ids]


def _nothing(wanted: str, rest: str) -> NotFound:
    return NotFound(
        f"`{wanted}` has nothing {rest}",
        hint="`mind review` lists the items, with `--all` the hidden ones too",
    )


def _chosen(item: Item, take: str) -> Choice:
    """Returns the choice of that number. Raises `Invalid` if there is none."""
    if not take.isdecimal() or not 1 <= int(take) <= len(item.choices):
        raise Invalid(
            f"`{take}` is not one of the versions",
            hint=f"take a number from 1 to {len(item.choices)}, or {BOTH}",
            details={"field": "take"},
        )
    return item.choices[int(take) - 1]


def _choose_version(mind: Mind, items: Sequence[Item], take: str) -> Resolved:
    record = items[0].record
    if record is None:
        raise Invalid("the item has no memory to resolve")
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
    result = "both texts are kept, one after the other" if take == BOTH else f"version {take}"
    return Resolved(items=tuple(items), message=f"{names}: {result}", files=(record.place.path,))


def _joined(item: Item) -> str:
    name = str(item.field)
    if not merge.is_text(name):
        raise Invalid(
            f"`{name}` has one value", hint=f"take a number from 1 to {len(item.choices)}"
        )
    return "\n\n".join(choice.text for choice in item.choices if choice.text)


def _choose_memory(mind: Mind, item: Item, take: str) -> Resolved:
    if take == BOTH:
        reviewed(mind).add(item.key)
        return Resolved(items=(item,), message="both stay current", files=())
    winner = _chosen(item, take).record
    others = [c.record for c in item.choices if c.record and c.record is not winner]
    if winner is None or not winner.place.owned:
        path = winner.place.path if winner else item.file
        raise Invalid(
            f"`{path}` is a document that mind only reads",
            hint="add the superseding link by hand, or take the other",
        )
    changed = saving.edit(mind, winner, links=_superseding(winner, others))
    names = ", ".join(other.memory.heading for other in others)
    message = f"{winner.memory.heading} is current; it supersedes {names}"
    return Resolved(items=(item,), message=message, files=(changed.place.path,))


def _superseding(winner: Record, others: Sequence[Record]) -> tuple[Link, ...]:
    """Returns the winner's links, with a superseding link to each of the others."""
    names = {other.memory.id: other.memory.title for other in others}
    kept = [
        link
        for link in winner.memory.links
        if not (link.type in ("contradicts", SUPERSEDES) and link.to in {*names, *names.values()})
    ]
    return (*kept, *(Link(to=name, type=SUPERSEDES, confidence=1.0) for name in names))
