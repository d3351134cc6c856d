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
    listed = {one.key for one in ranked}
    waiting = list(ranked)
    placed: set[int] = set()
    order: list[Ranked] = []
    while waiting:
        ready = next(
            (
                one
                for one in waiting
                if all(key in placed or key not in listed for key in successors.get(one.key, ()))
            ),
            waiting[0],
        )
        waiting.remove(ready)
        placed.add(ready.key)
        order.append(ready)
    return order
