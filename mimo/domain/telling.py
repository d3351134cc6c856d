"""A memory told in a few sentences of plain text, for a reader who sees nothing else of it."""

import re

from mimo.domain.clean import clean
from mimo.domain.memory import Memory, Outcome, Section
from mimo.domain.outcomes import reason, warning
from mimo.domain.sentences import cut

CONTENT_LENGTH = 600
"""Characters of a memory's content that are told; of a longer one those around the best passage."""

SECTION_LENGTH = 240
"""Characters that are told of each section."""

TITLE_LENGTH = 120

_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)[\s#]*")
_ITEM = re.compile(r"\s*[-*+]\s+(?:\[ \]\s+)?(?P<done>\[[xX]\]\s+)?(?P<item>.*?)\s*")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}|\s*(?:```|~~~).*")
_SECTIONS = (Section.REASONING, Section.NEXT_STEPS, Section.OPEN_FILES)
"""Those that are told as they stand, after why something turned out as it did."""


def told(memory: Memory, passage: str, *, superseded: str | None = None) -> str:
    """Returns what the memory is, from when, how it turned out, and the best of what it says.

    `superseded` says by what it was replaced; that stands before its text.
    """
    parts = [f"{heading(memory)}:"]
    if superseded:
        parts.append(f"(Superseded by {superseded}.)")
    if content := _around(memory, memory.content, passage, CONTENT_LENGTH):
        parts.append(_ended(content))
    if outcome := warning(memory) or reason(memory):
        parts.append(f"{Section.OUTCOME}: {_ended(cut(one_line(outcome), SECTION_LENGTH))}")
    for name in _SECTIONS:
        section = memory.sections.get(name)
        if section and (text := _around(memory, section, passage, SECTION_LENGTH)):
            parts.append(f"{name}: {_ended(text)}")
    return " ".join(parts)


def heading(memory: Memory) -> str:
    """Returns type, topic, date, outcome and title: `FAILED decision on auth of 2026-11-20`."""
    failed = memory.outcome is Outcome.FAILED
    kind = f"FAILED {memory.type.value}" if failed else memory.type.value.capitalize()
    outcome = f" ({memory.outcome.value})" if memory.outcome and not failed else ""
    title = titled(memory.title or "")
    topic = f" on {cut(one_line(memory.topic), TITLE_LENGTH)}" if memory.topic else ""
    return f"{kind}{topic} of {memory.created:%Y-%m-%d}{outcome}{f', {title}' if title else ''}"


def titled(title: str) -> str:
    """Returns a title in quotes, cut where it is long; nothing where it is empty."""
    title = cut(one_line(title), TITLE_LENGTH)
    return f"“{title}”" if title else ""


def one_line(text: str) -> str:
    """Returns prose on one line, without marks of Markdown's blocks and without hidden characters.

    On one line nothing that a memory says can be taken for the next memory, or for its end.
    """
    told_, in_list = "", False
    for line in clean(text).splitlines():
        if not line.strip() or _RULE.fullmatch(line):
            continue
        heading_, item = _HEADING.fullmatch(line), _ITEM.fullmatch(line)
        words = " ".join((heading_[1] if heading_ else item["item"] if item else line).split())
        if item and item["done"]:
            words += " (done)"
        between = "; " if item and in_list else " " if told_ else ""
        told_ += f"{between}{words}{':' if heading_ and words[-1:].isalnum() else ''}"
        in_list = item is not None
    return told_


def _around(memory: Memory, part: str, passage: str, limit: int) -> str:
    """Returns `part` on one line, from the passage on where it is too long to be told whole."""
    whole = one_line(_without_title(part, memory.title))
    if len(whole) <= limit:
        return whole
    text = memory.text
    start = text.find(passage) - text.find(part)
    if not 0 < start < len(part):
        return cut(whole, limit)
    return f"… {cut(one_line(part[start:]), limit)}"


def _without_title(text: str, title: str | None) -> str:
    """Returns the text without a first line that only says the title again."""
    first, _, rest = text.strip().partition("\n")
    return rest if title and first.lstrip("# ").rstrip("# ") == title.strip() else text


def _ended(text: str) -> str:
    return f"{text}." if text[-1].isalnum() else text
