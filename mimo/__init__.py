"""mind: a local-first, git-friendly long-term memory for coding agents and people."""

from __future__ import annotations

__version__ = "1.1.0"
