"""A session of the OpenAI Agents SDK."""

from __future__ import annotations

from mimo.extensions.adapters.openai_agents import MindSession as MindSession
