"""A store of LangGraph: long-term memory whose items are memories of a project.

graph = builder.compile(store=MindStore())
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from os import PathLike
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)

from mimo.extensions.adapters import item_commands as commands
from mimo.extensions.adapters.memory import OpenMemory, Run


class MindStore(BaseStore):
    """The items of a project, private to this machine unless `private` is False."""

    supports_ttl = False

    def __init__(
        self,
        project: str | PathLike[str] | None = None,
        *,
        private: bool = True,
        name: str = "langgraph",
    ) -> None:
        """Takes the folder of a project, whether new items are private, and who signs them."""
        self._memory = OpenMemory(project, name)
        self._private = private

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Returns the results of operations, in their order.

        All are read before the first is written. Of several writes to one item the last counts, and
        all are made or none.
        """
        results: list[Any] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        with self._memory.opened() as run:
            for op in ops:
                if isinstance(op, PutOp):
                    if getattr(op, "ttl", None) is not None:
                        raise NotImplementedError("items of mind have no time to live")
                    puts[op.namespace, op.key] = op
                    results.append(None)
                else:
                    results.append(_read(run, op))
            if puts:
                self._write(run, puts.values())
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Returns the results of `batch`, which runs in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def close(self) -> None:
        """Closes the files of the memory; the next operation opens them again."""
        self._memory.close()

    def _write(self, run: Run, ops: Collection[PutOp]) -> None:
        items = [
            {
                "namespace": op.namespace,
                "key": op.key,
                "value": op.value,
                "searched": op.index is not False,
            }
            for op in ops
        ]
        if all(op.value is None for op in ops):
            run(commands.delete, items=items)
        else:
            run(commands.put, items=items, private=self._private)


def _read(run: Run, op: Any) -> Any:
    if isinstance(op, GetOp):
        rows = run(commands.get, namespace=list(op.namespace), key=op.key).items
        return _item(Item, rows[0]) if rows else None
    if isinstance(op, SearchOp):
        result = run(
            commands.search,
            namespace=list(op.namespace_prefix),
            query=op.query or None,
            filter=op.filter,
            limit=op.limit,
            offset=op.offset,
        )
        return [_item(SearchItem, row, score=row.score) for row in result.items]
    if isinstance(op, ListNamespacesOp):
        return _namespaces(run(commands.namespaces).namespaces, op)
    raise ValueError(f"Unknown operation type: {type(op)}")


def _item(cls: Any, row: commands.ItemRow, **more: Any) -> Any:
    return cls(
        namespace=row.namespace,
        key=row.key,
        value=row.value,
        created_at=row.created,
        updated_at=row.updated,
        **more,
    )


def _namespaces(
    namespaces: Iterable[tuple[str, ...]], op: ListNamespacesOp
) -> list[tuple[str, ...]]:
    """Returns the namespaces that an operation asks for, sorted."""
    conditions = op.match_conditions or ()
    chosen = {
        namespace[: op.max_depth]
        for namespace in namespaces
        if all(_meets(namespace, condition) for condition in conditions)
    }
    return sorted(chosen)[op.offset : op.offset + op.limit]


def _meets(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[-len(path) :] if path else ()
    return len(part) == len(path) and all(
        pattern in ("*", label) for label, pattern in zip(part, path, strict=True)
    )
