"""mind: a local-first, git-friendly long-term memory for coding agents and people."""

__version__ = "1.1.0"
