"""The memory tool for the tool runner of the package `anthropic`."""

from __future__ import annotations

from mimo.extensions.adapters.anthropic import AsyncMindMemoryTool as AsyncMindMemoryTool
from mimo.extensions.adapters.anthropic import MindMemoryTool as MindMemoryTool
