"""The actions of the keys that resolve an item, for each surface that asks about items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mimo.features.review import BOTH, Waiting
from mimo.features.review.commands import ReviewItem
from mimo.features.review.trusting import short
from mimo.frozen import frozen, replace
from mimo.memory.merge import is_text
from mimo.project.memories import is_read_only

OF_ONE = ("show", "edit", "rm", "evolve supersede")
"""Commands on one memory, of which an item may have several."""

_REPLACEABLE = (Waiting.DECISIONS, Waiting.CONTRADICTION, Waiting.STALE)


@frozen
class Action:
    """The action of a key."""

    label: str
    path: str = ""
    """The command that it runs; empty for an action of the surface itself."""
    arguments: Mapping[str, Any] | None = None
    asks: str = ""
    """The question that the user must confirm first."""
    text: str = ""
    """A text that the user may change first, the argument `text`."""
    approves: str = ""
    """The id of the memory whose text the user must have read first."""

    @property
    def approves_all(self) -> bool:
        """True if it approves all texts, which the user must have seen listed."""
        return self.path == "trust" and not self.approves

    @property
    def resolves(self) -> bool:
        """True if it depends on the item as it was shown; an editor shows the current text."""
        return self.path in ("review settle", "review keep", "keep", "rm")


CHANGED = "it has changed since it was shown; nothing was done"
"""The reply to an action on an item that has changed since it was shown."""

READ_FIRST = "this is the text that agents would get; press t again to approve it"
"""The reply to an approval of a text that was not shown, or not in its current state."""


def identity(item: ReviewItem) -> tuple[Any, ...]:
    """Returns the values that identify an item as long as it does not change."""
    return (item.kind, item.id, item.against, item.file, item.field, item.why)


def named_in(item: ReviewItem) -> list[str]:
    """Returns the ids of the memories among which an item offers a choice."""
    return [choice.id for choice in item.choices if choice.id]


def chosen(action: Action, item: ReviewItem, id: str, handle: str) -> Action:
    """Returns an action on one of an item's memories, which its question names."""
    title = next(choice.title for choice in item.choices if choice.id == id)
    asks = f"remove {handle}  {short(title or '')}?" if action.asks else ""
    return replace(action, arguments={**(action.arguments or {}), "id": id}, asks=asks)


def keys_of(item: ReviewItem) -> dict[str, Action]:
    """Returns the actions of the keys for an item."""
    return dict(_choices(item)) | dict(_ways(item))


def _choices(item: ReviewItem) -> Iterator[tuple[str, Action]]:
    """Yields a key for each contradicting version, and one for keeping both."""
    about = {"id": item.id, "kind": item.kind.value}
    if item.field:
        about["field"] = item.field
    if item.against:
        about["against"] = item.against
    for choice in item.choices[:9]:
        if choice.obstacle:
            continue
        number = str(choice.number)
        taken = about | {"take": number}
        label = f"keep {item.field} {number}" if item.others else f"keep {number}"
        yield number, Action(label=label, path="review settle", arguments=taken)
    if item.choices and (item.field is None or is_text(item.field)):
        both = about | {"take": BOTH}
        yield "b", Action(label="keep both", path="review settle", arguments=both)


def _ways(item: ReviewItem) -> Iterator[tuple[str, Action]]:
    """Yields the keys that the reason for the review allows."""
    if item.kind is Waiting.UNREADABLE:
        return
    if item.kind is Waiting.PROPOSAL:
        ids, text = {"ids": [item.id]}, item.title or ""
        yield "a", Action(label="accept", path="sessions accept", arguments=ids)
        yield "e", Action(label="change", path="sessions accept", arguments=ids, text=text)
        yield "x", Action(label="reject", path="sessions reject", arguments=ids)
        never = ids | {"never": True}
        yield "n", Action(label="never again", path="sessions reject", arguments=never)
        return
    memory = {"id": item.id or item.file}
    everywhere = {"user": True} if item.scope else {}
    arguments = memory | {"kind": item.kind.value}
    if item.kind is Waiting.UNTRUSTED:
        ids = {"ids": [item.id or item.file]}
        yield "t", Action(label="trust", path="trust", arguments=ids, approves=item.id or item.file)
        where = "for all projects" if item.scope else "in this project"
        question = f"approve everything {where} for the agents on this machine?"
        yield "a", Action(label="trust all", path="trust", arguments=everywhere, asks=question)
        yield "k", Action(label="leave", path="review keep", arguments=arguments)
    if item.id is None:
        return
    if item.kind in (Waiting.STALE, Waiting.OUTDATED):
        yield "k", Action(label="still true", path="review keep", arguments=arguments)
    if item.kind is Waiting.FADING:
        yield "k", Action(label="keep", path="keep", arguments=memory)
    yield "v", Action(label="view", path="show", arguments=memory)
    if is_read_only(item.file):
        return
    yield "e", Action(label="edit", path="edit", arguments=memory)
    if item.type == "decision" and item.kind in _REPLACEABLE:
        yield "u", Action(label="supersede", path="evolve supersede", arguments=memory)
    yield "f", Action(label="forget", path="rm", arguments=memory, asks=f"remove {item.file}?")
