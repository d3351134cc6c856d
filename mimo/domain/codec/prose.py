"""What Markdown text says about itself: its title and the memories it refers to."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\r]*)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+([^\r]*))?\r?")
_SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*\r?")
_REFERENCE = re.compile(
    r"(?<!!)\[\[([^\s\[\]|#^][^\[\]|#^\r]*)(?:[#^][^\[\]|]*)?(?:\|[^\[\]]*)?\]\]"
)


def prose_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yields the 0-based number and text of each line outside fenced code and HTML comments."""
    fence, comment = "", False
    for number, line in enumerate(lines):
        if comment:
            comment = "-->" not in line
            continue
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
        elif line.lstrip(" ").startswith("<!--"):
            comment = "-->" not in line
        else:
            yield number, line


def title(content: str) -> str | None:
    """Returns the text of the first heading of level 1, or else of a heading that opens `content`.

    A heading of a lower level that stands after other text names a part, not the whole.
    """
    lines = content.split("\n")
    opening = None
    for position, (number, line) in enumerate(prose_lines(lines)):
        level, text = _heading(lines, number, line)
        if level == 1 and text:
            return text
        if position == 0 and text:
            opening = text
    return opening


def references(text: str) -> tuple[str, ...]:
    """Returns the targets of all `[[target]]` and `[[target|alias]]` outside code, each once."""
    if "[[" not in text:
        return ()
    found: dict[str, None] = {}
    for _, line in prose_lines(text.split("\n")):
        if "[[" in line:
            found.update((hit[1].strip(), None) for hit in _REFERENCE.finditer(_uncoded(line)))
    return tuple(found)


def _heading(lines: Sequence[str], number: int, line: str) -> tuple[int, str]:
    """Returns the level and text of the heading that a line is, or level 0."""
    if found := _ATX.fullmatch(line):
        text = " ".join((found[2] or "").split())
        bare = text.rstrip("#")
        return len(found[1]), bare.rstrip() if not bare or bare[-1] in " \t" else text
    below = lines[number + 1] if number + 1 < len(lines) else ""
    starts = number == 0 or not lines[number - 1].strip()
    if line.strip() and starts and _SETEXT.fullmatch(below) and not line.startswith(("    ", "\t")):
        return (1 if "=" in below else 2), " ".join(line.split())
    return 0, ""


def _uncoded(line: str) -> str:
    """Returns a line without its code spans: text between two runs of as many backticks."""
    runs = [(run.start(), run.end()) for run in re.finditer("`+", line)]
    by_length: dict[int, list[int]] = {}
    for start, end in runs:
        by_length.setdefault(end - start, []).append(start)
    kept, position = [], 0
    for start, end in runs:
        if start < position:
            continue
        same = by_length[end - start]
        after = bisect_right(same, start)
        if after < len(same):
            kept.append(line[position:start])
            position = same[after] + end - start
    return " ".join([*kept, line[position:]])
