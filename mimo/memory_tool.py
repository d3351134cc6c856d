"""The memory tool of Anthropic, which is in `mimo.extensions.adapters.memory_tool`."""

from __future__ import annotations

from mimo.extensions.adapters.memory_tool import TOOL as TOOL
from mimo.extensions.adapters.memory_tool import Answer as Answer
from mimo.extensions.adapters.memory_tool import MemoryTool as MemoryTool
from mimo.extensions.adapters.memory_tool import handle as handle
from mimo.extensions.adapters.memory_tool import main as main

if __name__ == "__main__":
    main()
