"""Several versions of one field, merged as sets."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mimo.domain.codec import emit
from mimo.domain.merge import lines
from mimo.frozen import frozen

GONE = "null"
"""How a version says that the field was removed."""

_MOST_PAIRS = 16
_OUTCOMES = ("FAILED", "PARTIAL", "SUCCESS")


@frozen
class Standing:
    """A field on one side: what is in force, and what competes with it."""

    value: str
    competing: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        """Returns every version."""
        return self.competing | {self.value}


def settle(
    base: Standing, ours: Standing, theirs: Standing, order: Callable[[str], Any]
) -> Standing:
    """Returns the versions that are left of a field, and which of them is in force.

    That is the one that a side chose against nobody, or else the first by `order`.
    """
    if theirs == base or ours == theirs:
        return ours
    if ours == base:
        return theirs
    both, either = ours.all & theirs.all, ours.all | theirs.all
    kept = both | (either - base.all) or either
    return Standing(
        value=(value := _in_force(base.value, ours.value, theirs.value, kept, order)),
        competing=kept - {value},
    )


def settle_text(base: Standing, ours: Standing, theirs: Standing) -> Standing:
    """Returns the versions that are left of a text; changes at different places are joined."""
    pairs = len(ours.all) * len(theirs.all)
    one_sided = theirs == base or ours in (base, theirs)
    if one_sided or base.competing or pairs > _MOST_PAIRS:
        return settle(base, ours, theirs, _longest_first)
    made = {
        text
        for left in ours.all
        for right in theirs.all
        for text in lines.merged(base.value, left, right)
    }
    value = min(made, key=_longest_first)
    return Standing(value=value, competing=frozenset(made - {value}))


def _in_force(
    base: str, ours: str, theirs: str, kept: Collection[str], order: Callable[[str], Any]
) -> str:
    chosen = ours if theirs in (base, ours) else theirs if ours == base else None
    return chosen if chosen in kept and chosen is not None else min(kept, key=order)


def order_of(key: str) -> Callable[[str], Any]:
    """Returns what sorts the versions of a header key: the careful one first, none at all last."""

    def place(text: str) -> tuple[bool, float, str]:
        return (text == GONE, _care(key, text), text)

    return place


def _care(key: str, text: str) -> float:
    if key == "outcome":
        return _OUTCOMES.index(text) if text in _OUTCOMES else len(_OUTCOMES)
    if key in ("confidence", "importance"):
        try:
            number = float(text.strip('"'))
        except ValueError:
            return 2.0
        return number if key == "confidence" else -number
    return 0.0 if key != "protected" or text == "true" else 1.0


def shown(values: Mapping[str, Any], key: str) -> str:
    """Returns the value of a header key on one line, as a version has it."""
    return emit.flow(values[key]) if key in values else GONE


def united(base: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    """Returns a list with what either side added, without what either removed."""
    known = [{_name(item): item for item in side} for side in (base, ours, theirs)]
    before, left, right = known
    kept = [item for name, item in before.items() if name in left and name in right]
    added = {name: item for name, item in {**left, **right}.items() if name not in before}
    return [*kept, *(added[name] for name in sorted(added))]


def _name(item: Any) -> str:
    return json.dumps(item, sort_keys=True, ensure_ascii=False, default=str)


def _longest_first(text: str) -> tuple[int, str]:
    return (-len(text), text)
