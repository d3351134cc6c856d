"""Markdown files with front matter <-> memories; edits preserve the rest byte for byte."""

from __future__ import annotations

from mimo.memory.codec.document import MAX_FILE_BYTES, MAX_SOURCE_BYTES, is_empty, is_source
from mimo.memory.codec.file import (
    KEYS,
    Parsed,
    content_line,
    links_in,
    normal,
    parse,
    render,
    understand,
    written,
)

__all__ = [
    "KEYS",
    "MAX_FILE_BYTES",
    "MAX_SOURCE_BYTES",
    "Parsed",
    "content_line",
    "is_empty",
    "is_source",
    "links_in",
    "normal",
    "parse",
    "render",
    "understand",
    "written",
]
