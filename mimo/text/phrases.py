"""Where sentences end, and texts cut there."""

import re
from collections.abc import Sequence
from functools import cache

# What a memory is called by where it has no title.


LONGEST = 80


def heading(title: str | None, content: str, otherwise: str) -> str:
    """Returns the title, or the first line of the content cut to 80 characters."""
    if title:
        return title
    lines = (line.strip() for line in content.splitlines())
    first = next((line for line in lines if line), otherwise)
    return first if len(first) <= LONGEST else first[: LONGEST - 1].rstrip() + "…"


# Lists in a memory's prose: open files as bullets, next steps as tasks that people can tick.


_BULLET = re.compile(r"[-*+] (?:\[( |x|X)\] )?(.*)")
_TASK = "- [ ] "


def bullets(items: Sequence[str]) -> str:
    """Returns a Markdown list; `items_of` gives the items back, stripped and without empty ones."""
    return _listed("- ", items)


def tasks(items: Sequence[str]) -> str:
    """Returns a Markdown task list; `steps_of` gives the items back."""
    return _listed(_TASK, items)


def items_of(text: str) -> tuple[str, ...]:
    """Returns the items of a list; a line that is none of a list is an item of its own."""
    return tuple(item for item, _ in _items(text))


def steps_of(text: str) -> str | tuple[str, ...] | None:
    """Returns what is left to do: of a task list the tasks that nobody ticked, else the text.

    None where nothing is left.
    """
    if not text.strip():
        return None
    if not all(line.startswith(("- [", "  ")) for line in text.splitlines() if line.strip()):
        return text
    return tuple(item for item, ticked in _items(text) if not ticked) or None


def _listed(mark: str, items: Sequence[str]) -> str:
    stripped = [item.strip() for item in items]
    return "\n".join(mark + item.replace("\n", "\n  ") for item in stripped if item)


def _items(text: str) -> list[tuple[str, bool]]:
    """Returns each item, and whether it is ticked."""
    found: list[tuple[str, bool]] = []
    for line in text.split("\n"):
        if match := _BULLET.fullmatch(line):
            found.append((match[2], (match[1] or " ") in "xX"))
        elif found and (line.startswith("  ") or not line.strip()):
            item, ticked = found[-1]
            found[-1] = (f"{item}\n{line[2:]}", ticked)
        elif line.strip():
            found.append((line.strip(), False))
    return [(item.strip(), ticked) for item, ticked in found]


_SHORTEST = 0.4
"""Share of the limit below which whole sentences say too little; words are cut there instead."""


@cache
def sentence_end() -> re.Pattern[str]:
    """Returns what stands between two sentences, in scripts with spaces and without."""
    closing = r"[\"')\]\u201d]"
    return re.compile(rf"(?<=[.!?\u2026]){closing}*\s+|(?<=[\u3002\uff01\uff1f\u0964])")


def cut(text: str, limit: int) -> str:
    """Returns as many whole sentences as `limit` characters hold, and `…` where there are more.

    Where they hold too little it is cut between words.
    """
    if len(text) <= limit:
        return text
    ends = [found.end() for found in sentence_end().finditer(text, 0, limit + 1)]
    if ends and ends[-1] >= limit * _SHORTEST:
        return f"{text[: ends[-1]].rstrip()} …"
    start = text[:limit]
    words = start.rpartition(" ")[0]
    return f"{(words if len(words) >= limit * _SHORTEST else start).rstrip()}…"
