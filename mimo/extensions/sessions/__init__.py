"""Sessions: what was said in earlier sessions with coding agents, kept and found again."""

from __future__ import annotations

from mimo.api import Extension

EXTENSION = Extension()
