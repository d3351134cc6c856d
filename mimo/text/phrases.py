"""Short forms of prose: headings, texts cut between sentences, lists of items and tasks."""

from __future__ import annotations

from collections.abc import Sequence

from mimo.text.clean import compiled

LONGEST = 80
"""Characters of a heading that is taken from the content."""

_MARKS = frozenset("-*+>#<!=_`~[0123456789")
"""The first letters of a line that is more than a text."""
_LINE_MARK = r"\A(?:(?:[-*+](?:[ \t]+\[[ xX]\])?|\d{1,9}[.)]|>|#{1,6})[ \t]+)+"
_ANCHOR = r"[ \t]+\{#[\w-]{1,60}\}\Z"
_RULE = r"(?:[-*_=+>][ \t]*)+|[`~]{3,}.*|"
_COMMENT = r"(?s)<!--.*?(?:-->|\Z)"
_IMAGE = (
    r"\[!\[[^\[\]\n]*\]\([^()\n]*\)\]\([^()\n]*\)|!\[[^\[\]\n]*\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"
)
"""An image, or one that is a link, as a badge is."""
_LINK = (
    r"(?<!\\)\[([^\[\]\n]+)\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)?\)"
    r"|\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]+))?\]\]"
)
_SHORTEST = 0.4
"""Share of the limit that whole sentences must fill; otherwise the text is cut between words."""
_CLOSING = r"[\"')\]\u201d]"
SENTENCE_END = rf"(?<=[.!?\u2026]){_CLOSING}*\s+|(?<=[\u3002\uff01\uff1f\u0964])"
"""The gap between two sentences, in scripts with and without spaces."""
SENTENCE_TAIL = rf"[.!?\u2026]{_CLOSING}*\s+|[\u3002\uff01\uff1f\u0964]"
"""The same with the mark before it: it ends at the same place, and is found in half the time."""
_BULLET = r"[-*+] (?:\[( |x|X)\] )?(.*)"


def heading(title: str | None, content: str, otherwise: str, limit: int = LONGEST) -> str:
    """Returns the title, or the first line of the content cut to `limit` characters."""
    if title:
        return title
    has_marks = content[:1] in _MARKS or "](" in content or "]]" in content
    if has_marks and "<!--" in content:
        content = compiled(_COMMENT).sub("", content)
    lines = (plain_line(line) if has_marks else line.strip() for line in content.splitlines())
    head = next((line for line in lines if line), otherwise)
    return head if len(head) <= limit else head[: limit - 1].rstrip() + "…"


def plain_line(line: str) -> str:
    """Returns a line of Markdown without its mark of a list or quotation, images and links.

    A rule, the mark of a fence and a line of images are empty.
    """
    text = compiled(_IMAGE).sub("", line) if "![" in line else line
    if "](" in text or "]]" in text:
        text = compiled(_LINK).sub(lambda link: link[1] or link[3] or link[2], text)
    text = compiled(_COMMENT).sub("", text).strip() if "<!--" in text else text.strip()
    text = compiled(_LINE_MARK).sub("", text) if text[:1] in _MARKS else text
    text = compiled(_ANCHOR).sub("", text) if text[-1:] == "}" else text
    return "" if compiled(_RULE).fullmatch(text) else " ".join(text.split())


def cut(text: str, limit: int) -> str:
    """Returns as many whole sentences as `limit` characters hold, then `…` if some are left out.

    If the sentences hold too little, the text is cut between words.
    """
    if len(text) <= limit:
        return text
    ends = [match.end() for match in compiled(SENTENCE_TAIL).finditer(text, 0, limit + 1)]
    if ends and ends[-1] >= limit * _SHORTEST:
        return f"{text[: ends[-1]].rstrip()} …"
    start = text[:limit]
    words = start.rpartition(" ")[0]
    return f"{(words if len(words) >= limit * _SHORTEST else start).rstrip()}…"


def enumerated(words: Sequence[str]) -> str:
    """Returns words as a sentence lists them: `a`, `a and b`, `a, b and c`."""
    *some, tail = words
    return f"{', '.join(some)} and {tail}" if some else tail


def bullets(items: Sequence[str]) -> str:
    """Returns a Markdown list; `items_of` reverses it, without blanks and empty items."""
    return _listed("- ", items)


def tasks(items: Sequence[str]) -> str:
    """Returns a Markdown task list; `steps_of` reverses it."""
    return _listed("- [ ] ", items)


def items_of(text: str) -> tuple[str, ...]:
    """Returns the items of a list; a line outside the list is an item as well."""
    return tuple(item for item, _ in _items(text))


def steps_of(text: str) -> str | tuple[str, ...] | None:
    """Returns the open tasks of a task list, or another text unchanged; None if none is left."""
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
    items: list[tuple[list[str], bool]] = []
    for line in text.split("\n"):
        if match := compiled(_BULLET).fullmatch(line):
            items.append(([match[2]], (match[1] or " ") in "xX"))
        elif items and (line.startswith("  ") or not line.strip()):
            items[-1][0].append(line[2:])
        elif line.strip():
            items.append(([line.strip()], False))
    return [("\n".join(lines).strip(), ticked) for lines, ticked in items]
