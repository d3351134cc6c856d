"""What changed in a memory, in words for a commit and for a review."""

import re
from collections.abc import Iterable, Mapping, Sequence

from mimo.memory.model import Memory

VERBS = {"added": "Remembered", "changed": "Changed", "removed": "Removed"}
"""What is said of files that were added, changed and removed."""

AGENT = "Remembered-by"
"""The trailer that names the agents whose memories a commit adds."""

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
_MOST = 20
_LONGEST = 60


def message(titles: Mapping[str, Sequence[str]], agents: Iterable[str] = ()) -> str:
    """Returns the message of a commit: a line, then what was added, changed and removed.

    `titles` are those of the memories, by the keys of `VERBS`. No title mentions a user of a forge,
    refers to an issue or closes one.
    """
    told = {
        change: [_REFERENCES.sub(r"\g<0> ", name) for name in names]
        for change, names in titles.items()
        if names
    }
    paragraphs = [_subject(told)]
    if sum(map(len, told.values())) > 1:
        paragraphs += [
            "\n".join(
                [f"{VERBS[change]}:", *(f"- {name}" for name in names[:_MOST]), *_rest(names)]
            )
            for change, names in told.items()
        ]
    if trailers := [f"{AGENT}: {one_line(name)}" for name in sorted(set(agents))]:
        paragraphs.append("\n".join(trailers))
    return "\n\n".join(paragraphs) + "\n"


def one_line(text: str) -> str:
    """Returns text on one line, without what no terminal should see."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split())).strip()


def differing(before: Memory, after: Memory) -> tuple[str, ...]:
    """Returns the names of the fields that two states of a memory differ in."""
    changed = [name for name in _FIELDS if getattr(before, name) != getattr(after, name)]
    sections = dict.fromkeys([*before.sections, *after.sections])
    changed += [
        section.value.lower()
        for section in sections
        if before.sections.get(section) != after.sections.get(section)
    ]
    return tuple("text" if name == "content" else name for name in changed)


def _subject(told: Mapping[str, Sequence[str]]) -> str:
    if sum(map(len, told.values())) == 1:
        change, names = next(iter(told.items()))
        name = one_line(names[0])
        short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1].rstrip()}…"
        return f"memory: {VERBS[change].lower()} {short}"
    counts = (f"{len(names)} {VERBS[change].lower()}" for change, names in told.items())
    return f"memory: {', '.join(counts)}"


def _rest(names: Sequence[str]) -> list[str]:
    return [f"- and {len(names) - _MOST:,} more"] if len(names) > _MOST else []
