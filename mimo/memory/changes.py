"""Changes of memories in words: messages of commits, and names of changed fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mimo.memory.model import Memory

VERBS = {"added": "Remembered", "changed": "Changed", "removed": "Removed"}
"""Verbs for memories that were added, changed and removed."""
OF_FILES = {**VERBS, "added": "Added"}
"""Verbs for files without memories, such as settings."""

AGENT = "Remembered-by"
"""Trailer with the agents whose memories a commit adds."""

UNREVIEWED = "Mind-Reviewed: no"
"""Trailer of a commit that no person asked for, which therefore approves no text."""

_FIELDS = (
    "type",
    "title",
    "content",
    "topic",
    "tags",
    "importance",
    "confidence",
    "outcome",
    "status",
    "category",
    "source",
    "protected",
    "links",
    "competing",
    "extra",
)
_REFERENCES = re.compile(r"(?<!\w)@(?=\w)|[#!](?=\d)|\b[Gg][Hh]-(?=\d)")
_MAX_NAMES = 20
_LONGEST = 60


def message(
    titles: Mapping[str, Sequence[str]],
    agents: Iterable[str] = (),
    verbs: Mapping[str, str] = VERBS,
) -> str:
    """Returns the message of a commit: a subject, then the added, changed and removed memories.

    `titles` are the titles of the memories by the keys of `verbs`. References to issues and users
    of a forge are broken up.
    """
    changes = {
        change: [_REFERENCES.sub(r"\g<0> ", name) for name in names]
        for change, names in titles.items()
        if names
    }
    paragraphs = [_subject(changes, verbs)]
    if sum(map(len, changes.values())) > 1:
        for change, names in changes.items():
            lines = [f"{verbs[change]}:", *(f"- {name}" for name in names[:_MAX_NAMES])]
            if len(names) > _MAX_NAMES:
                lines.append(f"- and {len(names) - _MAX_NAMES:,} more")
            paragraphs.append("\n".join(lines))
    if trailers := [f"{AGENT}: {one_line(name)}" for name in sorted(set(agents))]:
        paragraphs.append("\n".join(trailers))
    return "\n\n".join(paragraphs) + "\n"


def unreviewed(message: str) -> str:
    """Returns the message of a commit that approves no text, with a trailer."""
    text = message.rstrip()
    apart = "\n" if text.rpartition("\n")[2].startswith(f"{AGENT}: ") else "\n\n"
    return f"{text}{apart}{UNREVIEWED}\n"


def one_line(text: str) -> str:
    """Returns text on one line, without control characters."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split())).strip()


def differing(previous: Memory, after: Memory) -> tuple[str, ...]:
    """Returns the names of the fields that differ between two states of a memory, each once.

    The outcome is a field and a section, which has the reports that led to it.
    """
    changed = [name for name in _FIELDS if getattr(previous, name) != getattr(after, name)]
    sections = dict.fromkeys([*previous.sections, *after.sections])
    changed += [
        section.value.lower()
        for section in sections
        if previous.sections.get(section) != after.sections.get(section)
    ]
    return tuple(dict.fromkeys("text" if name == "content" else name for name in changed))


def _subject(changes: Mapping[str, Sequence[str]], verbs: Mapping[str, str]) -> str:
    if sum(map(len, changes.values())) == 1:
        change, names = next(iter(changes.items()))
        name = one_line(names[0])
        short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1].rstrip()}…"
        return f"memory: {verbs[change].lower()} {short}"
    numbers = {change: str(len(names)) for change, names in changes.items()}
    if verbs is OF_FILES:
        numbers = {change: f"{n} file{'s' if n != '1' else ''}" for change, n in numbers.items()}
    return f"memory: {', '.join(f'{n} {verbs[change].lower()}' for change, n in numbers.items())}"
