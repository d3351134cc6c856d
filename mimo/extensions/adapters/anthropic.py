"""The memory tool for the tool runner of the package `anthropic`.

runner = client.beta.messages.tool_runner(..., tools=[MindMemoryTool()])
"""

from __future__ import annotations

import asyncio
from os import PathLike
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from mimo.extensions.adapters.memory_tool import MemoryTool


class _OfProject:
    """A tool whose memories are those of a project."""

    def __init__(
        self,
        project: str | PathLike[str] | None = None,
        *,
        name: str = "memory-tool",
        cache_control: Any = None,
    ) -> None:
        """Takes the folder of a project, and the agent that signs new memories."""
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg] # the next base
        self._tool = MemoryTool(project, name=name)


class MindMemoryTool(_OfProject, BetaAbstractMemoryTool):
    """The files below `/memories` are the memories of a project; see `MemoryTool`."""

    def call(self, input: object) -> str:
        """Returns the text for a tool use. Raises `ToolError`, which becomes an error result."""
        return _answer(self._tool, input)

    def execute(self, command: Any) -> str:
        """Returns the text for a command of the package."""
        return self.call(command.to_dict())

    view = create = str_replace = insert = delete = rename = execute


class AsyncMindMemoryTool(_OfProject, BetaAsyncAbstractMemoryTool):
    """`MindMemoryTool` for the asynchronous tool runner; files are used in a thread."""

    async def call(self, input: object) -> str:
        """Returns the text for a tool use. Raises `ToolError`, which becomes an error result."""
        return await asyncio.to_thread(_answer, self._tool, input)

    async def execute(self, command: Any) -> str:
        """Returns the text for a command of the package."""
        return await self.call(command.to_dict())

    view = create = str_replace = insert = delete = rename = execute


def _answer(tool: MemoryTool, input: object) -> str:
    text, is_error = tool.handle(input if isinstance(input, dict) else {})
    if is_error:
        raise ToolError(text)
    return text
