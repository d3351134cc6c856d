"""A store of LangGraph."""

from __future__ import annotations

from mimo.extensions.adapters.langgraph import MindStore as MindStore
