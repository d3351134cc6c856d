"""The files of the memory tool of Anthropic: `/memories/…` <-> the memories under `.mind/`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice, takewhile

from mimo.api import Invalid, disk, document, walk

ROOT = "/memories"
README = f"{ROOT}/README.md"
"""A file that only the tool shows; it describes the others."""

MOST_CHARACTERS = 16_000
"""The length of an answer: clients cut longer ones, or move them to a file."""
MOST_LINES = 999_999
_WIDTH = 6
_AROUND = 2
"""Lines that are shown before and after a change."""
_LONGEST_AROUND = 3_000
"""Characters of such a line that are shown; five of them fit into an answer."""
_QUOTED, _MOST_NUMBERS = 500, 20
"""Most characters of a text, and most numbers of lines, that an error quotes."""
_UNITS = "BKMG"

GUIDE = """\
# Memories of this project

Each file is one memory: Markdown, with front matter between two lines `---`. A file without front
matter gets it when it is created: `id`, `type`, `title`, `created`, `by`.

- The folder is the type: facts, decisions, insights, issues, plans, actions, observations,
  contexts, checkpoints. A file in another folder, or in none, is a fact.
- Files in `private/`, such as `private/facts/`, stay on this machine; git may share all others.
- You may set `title`, `topic`, `tags`, `importance` (0 to 1), `confidence`, `source`, `status`
  (`resolved` closes an issue) and keys of your own. Leave `id`, `created` and `by` as they are.
- Links: `[[title or id of another memory]]`.
- A file with secrets is refused. A deleted file can be restored by the user.
"""

_PART = 200
"""The most bytes of a name, which leaves room for the endings of temporary files."""
_DEPTH = 8
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_FORBIDDEN = frozenset('\\:*?"<>|')
_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?")
_RESERVED = frozenset(("sources", "values", "procedures"))
"""Folders in which mind keeps other files than memories."""
_FILES = frozenset(("policy.yaml", "config.toml", "memory.md"))
"""Files beside the folders, which a folder of that name would replace."""
_PRIVATE = "private"
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}")


def shortened(text: str, limit: int = MOST_CHARACTERS) -> str:
    """Returns at most so many characters of a text, and `…` if there are more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def missing(path: str) -> str:
    """Returns the documented error for a path without a file."""
    return f"The path {path} does not exist. Please provide a valid path."


def stored(path: str) -> str:
    """Returns the place in the project of a path below `/memories`, or of the folder itself.

    A name that is not one of a Markdown file gets `.md` appended. Raises `Invalid` for a path that
    leads elsewhere, or to a file that is not a memory.
    """
    path = unicodedata.normalize("NFC", path)
    if path.rstrip("/") == ROOT:
        return disk.STORE
    if not path.startswith(f"{ROOT}/"):
        raise Invalid(f"`{path}` is not a path below {ROOT}", hint=f"start it with {ROOT}/")
    parts = path.removeprefix(f"{ROOT}/").removesuffix("/").split("/")
    for part in parts:
        if reason := _refused(part):
            raise Invalid(f"`{path}` can't be used: {reason}", hint="choose another name")
    if len(parts) > _DEPTH:
        raise Invalid(f"`{path}` can't be used: it has more than {_DEPTH} parts")
    inner = parts[1:] if parts[0] == _PRIVATE else parts
    if inner and inner[0].casefold() in _RESERVED:
        raise Invalid(f"`{path}` can't be used: `{inner[0]}` is not a folder of memories")
    if len(parts) > 1 and unicodedata.normalize("NFKC", parts[0]).casefold() in _FILES:
        raise Invalid(f"`{path}` can't be used: `{parts[0]}` is the name of a file of mind")
    return f"{disk.STORE}/{'/'.join(parts)}"


def _refused(part: str) -> str | None:
    """Returns the reason for which a part of a path can't be a name; None if it can."""
    plain = unicodedata.normalize("NFKC", part)
    if not part.strip() or part in (".", ".."):
        return f"`{part}` is not a name"
    if _FORBIDDEN & {*part, *plain} or "/" in plain or _ESCAPE.search(plain):
        return f"`{part}` holds a character that file systems or URLs treat specially"
    if not part.isprintable():
        return "it holds a control or invisible character"
    if plain[0] == "." or plain[-1] == "." or part != part.strip():
        return "a name neither begins nor ends with a dot or a blank"
    if _DEVICES.fullmatch(plain):
        return f"`{part}` is the name of a device on Windows"
    if part != _PRIVATE and plain.casefold() == _PRIVATE:
        return f"write `{_PRIVATE}` in lower case"
    if len(part.encode("utf-8", "replace")) > _PART:
        return f"a name has more than {_PART} bytes"
    return None


def file_of(path: str) -> str:
    """Returns the place in the project of a file. Raises `Invalid` as `stored` does."""
    place = stored(path)
    if place == disk.STORE:
        raise Invalid(f"The path {path} is not a file.")
    return place if walk.is_markdown(place) else f"{place}.md"


def check_new(path: str) -> str:
    """Returns the place of a new file; raises `Invalid` unless the path can be one."""
    place = stored(path)
    if place == disk.STORE or path.endswith("/"):
        raise Invalid(f"`{path}` is a folder", hint="add the name of a file")
    return file_of(path)


def title_of(path: str) -> str:
    """Returns the words in the name of a file, without its ending."""
    name = path.rpartition("/")[2]
    stem, _, ending = name.rpartition(".")
    words = stem if stem and _ENDING.fullmatch(f".{ending}") else name
    return " ".join(words.replace("_", " ").replace("-", " ").split())


def shown(place: str) -> str | None:
    """Returns the path of a file of the project as the tool shows it; None if it does not."""
    if not place.startswith(f"{disk.STORE}/") or document.is_source(place):
        return None
    path = f"{ROOT}/{unicodedata.normalize('NFC', place).removeprefix(f'{disk.STORE}/')}"
    short = path.removesuffix(".md")
    name = short.rpartition("/")[2]
    if short != path and "." in name[1:] and not walk.is_markdown(name):
        path = short if _ENDING.fullmatch(name[name.rfind(".") :]) else path
    try:
        is_same = file_of(path) == unicodedata.normalize("NFC", place)
    except Invalid:
        return None
    return path if is_same and path != README else None


def below(folder: str, paths: Iterable[str]) -> list[str]:
    """Returns the paths of files in a folder, or in one of its folders, sorted."""
    start = f"{folder.rstrip('/')}/"
    return sorted(path for path in paths if path.startswith(start))


def listing(folder: str, sizes: Mapping[str, int], span: tuple[int, int] | None) -> str:
    """Returns the documented list of the files in a folder, two levels deep.

    `span` is the first and the last line of a long list. A list that is too long has only its first
    lines, or without `span` only the folders, if that suffices.
    """
    folder = folder.rstrip("/")
    all_rows = _rows(folder, sizes)
    start, end = span or (1, len(all_rows))
    rows, notice = all_rows[start - 1 : end], ""
    if _length(rows) > MOST_CHARACTERS:
        nested = any(path.count("/") > folder.count("/") + 1 for _, path in rows)
        brief = [row for row in rows if row[1].rstrip("/").count("/") <= folder.count("/") + 1]
        if not span and nested and _length(brief) <= MOST_CHARACTERS:
            notice, rows = "\n[Files in folders are left out: view a folder to list them]", brief
        else:
            count = _fitting(_length([row]) for row in rows)
            after = start + count
            notice = (
                f"\n[{count:,} of {len(all_rows):,} rows; "
                f"view_range [{after}, {min(len(all_rows), after + count - 1)}] lists the next]"
            )
            rows = rows[:count]
    total = sum(sizes[path] for path in below(folder, sizes))
    lines = [f"{_size(total)}\t{folder}", *(f"{size}\t{path}" for size, path in rows)]
    header = (
        f"Here're the files and directories up to 2 levels deep in {folder}, "
        "excluding hidden items and node_modules:"
    )
    return "\n".join([header, *lines]) + notice


def _rows(folder: str, sizes: Mapping[str, int]) -> list[tuple[str, str]]:
    """Returns the sizes and paths of files and folders, two levels deep, each folder first."""
    totals: dict[str, int] = {}
    for path in below(folder, sizes):
        parts = path.removeprefix(f"{folder}/").split("/")
        for depth in range(1, min(len(parts), 3)):
            inner = f"{folder}/{'/'.join(parts[:depth])}/"
            totals[inner] = totals.get(inner, 0) + sizes[path]
        if len(parts) <= 2:
            totals[path] = sizes[path]
    return [(_size(totals[path]), path) for path in sorted(totals)]


def _length(rows: Iterable[tuple[str, str]]) -> int:
    return sum(len(size) + len(path) + 2 for size, path in rows)


def _size(count: int) -> str:
    """Returns a number of bytes as `ls -h` shows it: 512B, 4K, 1.5K."""
    unit = min(max(0, count.bit_length() - 1) // 10, len(_UNITS) - 1)
    size = count / 1024**unit
    return f"{size:.0f}{_UNITS[unit]}" if size == int(size) else f"{size:.1f}{_UNITS[unit]}"


def check_span(view_range: tuple[int, ...] | None) -> tuple[int, int] | None:
    """Returns the first and last line of a `view_range`; the last is -1 for the end.

    Raises `Invalid` unless it has two numbers in order.
    """
    if view_range is None:
        return None
    if len(view_range) == 2 and (
        view_range[1] == -1 or 0 <= max(1, view_range[0]) <= view_range[1]
    ):
        end = MOST_LINES if view_range[1] == -1 else view_range[1]
        return max(1, view_range[0]), end
    raise Invalid(
        f"Invalid `view_range` parameter: {list(view_range)}",
        hint="give the first and the last line, or -1 for the end",
    )


def numbered(path: str, text: str, span: tuple[int, int] | None) -> str:
    """Returns the documented view of a file, or of the lines of `span`.

    Long texts end with the `view_range` of the rest. Raises `Invalid` for too many lines.
    """
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise Invalid(f"File {path} exceeds maximum line limit of {MOST_LINES:,} lines.")
    start, end = span or (1, len(lines))
    chosen = lines[start - 1 : end]
    count, notice = _fitting(len(line) + _WIDTH + 2 for line in chosen), ""
    if chosen and not count:
        room = MOST_CHARACTERS - _WIDTH - 2
        notice = f"\n[Line {start} has {len(chosen[0]):,} characters; only {room:,} are shown]"
        chosen[0], count = chosen[0][:room], 1
    if count < len(chosen):
        after = start + count
        notice += f"\n[Truncated: {len(lines):,} lines; view_range [{after}, -1] shows the rest]"
        chosen = chosen[:count]
    return (
        f"Here's the content of {path} with line numbers:\n{_with_numbers(chosen, start)}{notice}"
    )


def _fitting(lengths: Iterable[int]) -> int:
    """Returns the number of lines of these lengths that fit into an answer."""
    return sum(1 for _ in takewhile(lambda end: end <= MOST_CHARACTERS, accumulate(lengths)))


def _with_numbers(lines: Iterable[str], start: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, start))


def replaced(path: str, text: str, old: str, new: str) -> tuple[str, str]:
    """Returns the text with `old` replaced, and the lines around the change, with numbers.

    Raises `Invalid`, with the documented texts, unless `old` occurs once.
    """
    if not old:
        raise Invalid("`old_str` is empty", hint="use `insert` to add text")
    count, place = text.count(old), text.find(old)
    quoted = shortened(old, _QUOTED)
    if not count:
        raise Invalid(
            f"No replacement was performed, old_str `{quoted}` did not appear verbatim in {path}."
        )
    if count > 1:
        numbers = [*map(str, islice(_lines_with(old, text), _MOST_NUMBERS + 1))]
        numbers[_MOST_NUMBERS:] = ["…"] * (len(numbers) > _MOST_NUMBERS)
        raise Invalid(
            f"No replacement was performed. Multiple occurrences of old_str `{quoted}` in lines: "
            f"{', '.join(numbers)}. Please ensure it is unique"
        )
    changed = text[:place] + new + text[place + len(old) :]
    line = text.count("\n", 0, place)
    start = max(0, line - _AROUND)
    around = changed.split("\n")[start : line + _AROUND + 1]
    return changed, _with_numbers((shortened(text, _LONGEST_AROUND) for text in around), start + 1)


def _lines_with(part: str, text: str) -> Iterator[int]:
    """Yields the number of each line, from 1, on which a part of the text begins."""
    number, counted, place = 1, 0, text.find(part)
    while place >= 0:
        number += text.count("\n", counted, place)
        yield number
        counted, end = place, text.find("\n", place)
        place = text.find(part, end + 1) if end >= 0 else -1


def inserted(text: str, number: int, addition: str) -> str:
    """Returns the text with lines added after a line, 0 for the start; it ends with a line end.

    Raises `Invalid`, with the documented text, for a number outside of the file.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if not 0 <= number <= len(lines):
        raise Invalid(
            f"Error: Invalid `insert_line` parameter: {number}. It should be within the range of "
            f"lines of the file: [0, {len(lines)}]"
        )
    return "\n".join([*lines[:number], addition.removesuffix("\n"), *lines[number:]]) + "\n"
