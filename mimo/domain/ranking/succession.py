"""Memories that others supersede stand below those."""

from collections.abc import Collection, Mapping, Sequence

from mimo.domain.ranking.model import Ranked


def below_successors(
    ranked: Sequence[Ranked], successors: Mapping[int, Collection[int]]
) -> list[Ranked]:
    """Returns `ranked` with every superseded memory moved down to right below its successors.

    `successors` names, by key, those that supersede a memory. One whose successors are not in
    the list keeps its place; nothing else changes order, and a circle is left as it stands.
    """
    if not successors:
        return list(ranked)
    listed = {one.key for one in ranked}
    above = {key: _above(key, successors) & listed for key in listed}
    waiting = list(ranked)
    placed: set[int] = set()
    order: list[Ranked] = []
    while waiting:
        ready = next(one for one in waiting if above[one.key] <= placed)
        waiting.remove(ready)
        placed.add(ready.key)
        order.append(ready)
    return order


def _above(key: int, successors: Mapping[int, Collection[int]]) -> set[int]:
    """Returns what supersedes `key`, without that which `key` supersedes in turn."""
    return {new for new in successors.get(key, ()) if key not in _reached(new, successors)}


def _reached(key: int, successors: Mapping[int, Collection[int]]) -> set[int]:
    """Returns `key` and all that supersedes it, over any number of steps."""
    reached: set[int] = set()
    ahead = [key]
    while ahead:
        if (one := ahead.pop()) not in reached:
            reached.add(one)
            ahead.extend(successors.get(one, ()))
    return reached
