"""A header as the lines of each key, merged key by key."""

from collections.abc import Mapping, Sequence
from typing import Any

from mimo.domain.codec import emit, fields, flat, restricted_yaml
from mimo.domain.codec.document import Document
from mimo.domain.merge import lines
from mimo.domain.merge.versions import GONE, Standing, order_of, settle, shown, united
from mimo.frozen import frozen

UNDECIDED: Any = object()
"""Stands for what both sides changed differently."""

Rivals = Sequence[Mapping[str, frozenset[str]]]
"""What competes in the base, ours and theirs, by the name of the field."""


class NoMerge(Exception):
    """A file is written in a way that only a person, or a merge of its text, can do justice."""


@frozen
class Keys:
    """A header: the lines of each key, with the comments before it, and its data."""

    raw: Mapping[str, str]
    data: Mapping[str, Any]
    tail: str = ""
    """What follows the last key: comments."""


@frozen
class MergedHeader:
    """The text of a merged header, and what competes with its keys."""

    text: str
    competing: Mapping[str, frozenset[str]]


def name_of(key: str) -> str:
    """Returns how a version names a key."""
    plain = key.replace("_", "").replace("-", "").replace(".", "")
    return key if plain.isalnum() else emit.scalar(key)


def merged(base: Document, ours: Document, theirs: Document, competing: Rivals) -> MergedHeader:
    """Returns the header that holds what both sides say.

    Raises `NoMerge` where both changed it and it is no YAML with each key on lines of its own, and
    `Unreadable`.
    """
    texts = [one.header.replace("\r\n", "\n") for one in (base, ours, theirs)]
    if not any(competing) and (plain := one_sided(*texts)) is not UNDECIDED:
        return MergedHeader(text=plain, competing={})
    if any(one.syntax == "toml" for one in (ours, theirs)):
        made = lines.merged(texts[0], texts[1], texts[2])
        if len(made) > 1 or any(competing):
            raise NoMerge
        return MergedHeader(text=made[0], competing={})
    return _by_key((keys_of(texts[0]), keys_of(texts[1]), keys_of(texts[2])), competing)


def one_sided(base: Any, ours: Any, theirs: Any) -> Any:
    """Returns what the side that changed something says; UNDECIDED where both did."""
    if theirs in (base, ours):
        return ours
    return theirs if ours == base else UNDECIDED


def keys_of(text: str) -> Keys:
    """Returns the keys of a header. Raises `NoMerge`, and `Unreadable`."""
    data = flat.load(text)
    if data is not None:
        return Keys(raw=dict(zip(data, text.splitlines(keepends=True), strict=True)), data=data)
    try:
        header = restricted_yaml.read(text)
    except restricted_yaml.NotAMapping:
        raise NoMerge from None
    if header.flow or any(entry.column for entry in header.entries):
        raise NoMerge
    raw, start = {}, 0
    for entry in header.entries:
        end = max(entry.value.end, text.index(":", entry.end) + 1)
        end = text.find("\n", len(text[:end].rstrip())) + 1 or len(text)
        raw[entry.key], start = text[start:end], end
    return Keys(raw=raw, data=header.data, tail=text[start:])


def _by_key(sides: tuple[Keys, Keys, Keys], competing: Rivals) -> MergedHeader:
    left: dict[str, frozenset[str]] = {}
    raw: dict[str, str] = {}
    order = _order(sides)
    names = {name_of(key): key for key in order}
    # A version may outlive the key that it competes with.
    alone = {name for side in competing for name in side} - names.keys()
    for name, key in {**names, **{name: name for name in sorted(alone)}}.items():
        text, kept = _key(key, sides, [side.get(name, frozenset()) for side in competing])
        if text is not None:
            raw[key] = text if text.endswith("\n") else f"{text}\n"
        if kept:
            left[name] = kept
    tails = [side.tail for side in sides]
    tail = one_sided(*tails)
    return MergedHeader(
        text="".join(raw.values()) + (max(tails[1:]) if tail is UNDECIDED else tail),
        competing=left,
    )


def _key(
    key: str, sides: tuple[Keys, Keys, Keys], rivals: Sequence[frozenset[str]]
) -> tuple[str | None, frozenset[str]]:
    """Returns the lines of one key, None where it is gone, and what competes with it."""
    if not any(rivals):
        taken = one_sided(*(side.raw.get(key) for side in sides))
        if taken is not UNDECIDED:
            return taken, frozenset()
        base, ours, theirs = (side.data.get(key) for side in sides)
        if isinstance(ours, list) and isinstance(theirs, list):
            joined = united(base if isinstance(base, list) else [], ours, theirs)
            return _lead(key, sides) + emit.entry(key, joined), frozenset()
    base_, ours_, theirs_ = (
        Standing(value=shown(side.data, key), competing=rival)
        for side, rival in zip(sides, rivals, strict=True)
    )
    left = settle(base_, ours_, theirs_, order_of(key))
    return _raw(key, left.value, sides), left.competing


def _raw(key: str, value: str, sides: tuple[Keys, Keys, Keys]) -> str | None:
    """Returns the lines of a key with a value, as a side wrote them where one did."""
    if value == GONE and not any(key in side.raw for side in sides[1:]):
        return None
    as_written = [
        side.raw[key] for side in sides[1:] if shown(side.data, key) == value and key in side.raw
    ]
    if value == GONE:
        return max(as_written, default=None)
    return max(as_written, default=f"{_lead(key, sides)}{emit.scalar(key)}: {value}")


def _lead(key: str, sides: tuple[Keys, Keys, Keys]) -> str:
    """Returns the comments before a key."""
    leads = []
    for side in sides[1:]:
        kept = []
        for line in side.raw.get(key, "").splitlines(keepends=True):
            if line.strip() and not line.lstrip().startswith("#"):
                break
            kept.append(line)
        leads.append("".join(kept))
    return max(leads)


def _order(sides: tuple[Keys, Keys, Keys]) -> list[str]:
    """Returns all keys: those that were there in their order, new ones of ours in their place."""
    base, ours, theirs = sides
    order = list(base.raw)
    new = {key for side in (ours, theirs) for key in side.raw if key not in base.raw}
    known = [key for key in fields.KEYS if key in new]
    for key in known:
        place = fields.KEYS.index(key)
        before = [n for n, other in enumerate(order) if other in fields.KEYS[:place]]
        order.insert(max(before) + 1 if before else 0, key)
    return [*order, *sorted(new.difference(known))]
