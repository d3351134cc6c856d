"""The browser: memories in a full-screen view of the terminal."""

from __future__ import annotations

from mimo.api import Extension

EXTENSION = Extension(
    commands={"Find": {"browse": "mimo.extensions.browse.commands"}},
    synonyms={"tui": ("browse",), "ui": ("browse",)},
)
