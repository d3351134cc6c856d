"""Recognising the format of a source by its content."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from mimo.api import LARGEST_JSON, LISTED, Source, Unreadable, database, files
from mimo.extensions.exchange import adr, exports, notes

_FOLDERS = ("obsidian", "basic-memory", "adr", "okf", "nb", "claude-memory")
"""The formats of a folder of Markdown, which may not show which one it is."""
_SAMPLE = 40
"""The number of notes whose headers are read to recognise a format."""


def candidates(source: Source) -> list[str]:
    """Returns the formats that a source may be of: one if its content shows it."""
    return _of_file(source) if source.is_file else _of_folder(source)


def _of_file(source: Source) -> list[str]:
    """Returns the possible formats of a single file."""
    (name,) = source.files
    if database.is_sqlite(source.path):
        return _of_database(source.path)
    lower = name.lower()
    if lower in notes.RULES:
        return ["claude-md"]
    text = source.text(name, LARGEST_JSON)
    if exports.is_journal(text):
        return ["jrnl"]
    if text.lstrip()[:1] in ("{", "[") or lower.endswith(".jsonl"):
        return exports.formats_of(text)
    if lower.endswith(notes.MARKDOWN):
        if notes.read(source, name).is_own:
            return ["mind"]
        return ["claude-md", "obsidian", "basic-memory", "adr"]
    return []


def _of_database(path: Path) -> list[str]:
    names = database.table_names(path)
    if {"observations", "session_summaries"} <= names:
        return ["claude-mem"]
    return ["mcp-memory-service"] if "memories" in names and not database.is_mama(names) else []


def _of_folder(source: Source) -> list[str]:
    """Returns the possible formats of a folder or an archive."""
    if _is_of_mind(source):
        return ["mind"]
    if names := [name for name in source.files if exports.CONVERSATIONS.search(name)]:
        return exports.formats_of(source.text(names[0], LARGEST_JSON))
    if "issues.jsonl" in source.files:
        return exports.formats_of(source.text("issues.jsonl", LARGEST_JSON))
    if ".obsidian" in source.hidden:
        return ["obsidian"]
    if ".index" in source.hidden:
        return ["nb"]
    if "MEMORY.md" in source.files:
        return ["claude-memory"]
    return _of_markdown(source)


_VERSION = re.compile(r"^format *= *\d+", re.MULTILINE)


def _is_of_mind(source: Source) -> bool:
    """Returns whether mind wrote a folder: `.mind` or a part or a copy of it, or an export.

    It must be known before any other format, whose reader would not keep its memories as they are.
    """
    markdown = source.named(".md")
    if not markdown or source.surroundings.in_store:
        return bool(markdown)
    with suppress(Unreadable, OSError):
        if files.CONFIG in source.files and _VERSION.search(source.text(files.CONFIG)):
            return True
    if LISTED not in source.hidden and not {".index", "MEMORY.md"} & {
        *source.hidden,
        *source.files,
    }:
        return False
    read = [notes.read(source, name) for name in markdown[:_SAMPLE]]
    return 2 * sum(note.is_own for note in read) >= len(read)


def _of_markdown(source: Source) -> list[str]:
    """Returns the possible formats of a folder of notes, by the headers of some of them."""
    markdown = source.named(*notes.MARKDOWN)
    if not markdown:
        return []
    read = [notes.read(source, name) for name in markdown[:_SAMPLE]]
    if any(note.name == "index.md" and "okf_version" in note.header for note in read):
        return ["okf"]
    if any(note.is_own for note in read):
        return ["mind"]
    if any("permalink" in note.header for note in read):
        return ["basic-memory"]
    if notes.is_bundle(read):
        return ["okf"]
    records = [note for note in read if adr.is_record(note)]
    if records and 2 * len(records) >= len(read):
        return ["adr"]
    return list(_FOLDERS)
