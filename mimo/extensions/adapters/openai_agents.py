"""A session of the OpenAI Agents SDK: the turns of a conversation, in a database of this machine.

    await Runner.run(agent, "Hello", session=MindSession("ann"))

It follows the protocol `agents.memory.Session`, so it needs no package itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from mimo.extensions.adapters import conversations as commands
from mimo.extensions.adapters.memory import OpenMemory


class MindSession:
    """The history of one conversation; secrets in it are masked when they are stored."""

    def __init__(
        self,
        session_id: str,
        project: str | PathLike[str] | None = None,
        *,
        session_settings: Any = None,
        name: str = "openai-agents",
    ) -> None:
        """Takes the name of the conversation, the folder of a project, and the SDK's settings."""
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = OpenMemory(project, name)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Returns the last items, by default as many as the settings say, in their order."""
        limit = limit if limit is not None else self._limit
        result = await self._call(commands.read, limit=limit)
        return list(result.turns)

    async def add_items(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Adds items at the end, all or none."""
        if turns := _in_utf8([dict(item) for item in items]):
            await self._call(commands.add, turns=turns)

    async def pop_item(self) -> Any:
        """Removes the last item and returns it; None if there is none."""
        result = await self._call(commands.pop)
        return result.turns[0] if result.turns else None

    async def clear_session(self) -> None:
        """Removes all items."""
        await self._call(commands.clear)

    def close(self) -> None:
        """Closes the files of the memory; the next call opens them again."""
        self._memory.close()

    @property
    def _limit(self) -> int | None:
        settings = self.session_settings
        limit = settings.get("limit") if isinstance(settings, Mapping) else settings
        return getattr(limit, "limit", limit)

    async def _call(self, function: Any, **arguments: Any) -> Any:
        return await asyncio.to_thread(
            self._memory.call, function, conversation=self.session_id, **arguments
        )


def _in_utf8(items: list[Any]) -> Any:
    """Returns items without halves of surrogate pairs: a model may have cut a text there."""
    return json.loads(json.dumps(items, ensure_ascii=False).encode("utf-8", "replace"))
