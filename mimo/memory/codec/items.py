"""Edits of a list in a header, item by item: the other items and all comments stay as they are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from mimo.errors import Invalid
from mimo.frozen import NamedTuple
from mimo.memory.codec import front_matter
from mimo.memory.codec.file import understand
from mimo.memory.codec.front_matter import Entry, Value

Edit = tuple[int, int, str]
"""A start, an end, and the text (with `\\n` line ends) that replaces the characters between."""

_AFTER_ITEM = re.compile(r"[ \t]*(,?)[ \t]*(?:#.*)?\r?\n")


class _Lines(NamedTuple):
    """The lines of an item: from `start` to `end`, or from `above` with the comments before it."""

    above: int
    start: int
    end: int


def list_edits(text: str, entry: Entry, items: Sequence[Any]) -> Iterator[Edit]:
    """Yields the edits that give a YAML list other items.

    A comment on the line of an item goes with it, and all others stay. Raises `Invalid` for a
    notation with comments that can't be kept.
    """
    value = entry.value
    old, new = _meanings(entry.key, value.data), _meanings(entry.key, items)
    nested = not value.is_block_list
    texts = {
        name: front_matter.flow(item, 3, nested=nested)
        for name, item in zip(new, items, strict=True)
    }
    if not value.items:
        yield value.start + 1, value.start + 1, ", ".join(texts.values())
    elif value.is_block_list and not texts:
        colon = text.index(":", entry.end) + 1
        yield colon, colon, " []"
        for item in _lines(text, entry):
            yield item.start, item.end, ""
    elif lines := _lines(text, entry):
        yield from _line_edits(text, entry, lines, old, texts, _changed_links(old, new))
    elif value.is_block_list or "#" in "".join(_gaps(text, value)):
        raise by_hand(entry)
    else:
        yield value.start, value.end, _flow_list(text, value, old, texts)


def emptied(text: str, entry: Entry) -> list[Edit]:
    """Returns the edits that remove all items of a YAML list; none if no comment would be left."""
    lines = _lines(text, entry)
    if not lines:
        if entry.value.items and "#" in "".join(_gaps(text, entry.value)):
            raise by_hand(entry)
        return []
    end = text.index("\n", max(entry.value.end, lines[-1].end) - 1)
    places = [place for item in lines for place in (item.start, item.end)]
    left = zip([entry.end, *places[1::2]], [*places[::2], end], strict=True)
    if not any("#" in text[start:stop] for start, stop in left):
        return []
    return [(item.start, item.end, "") for item in lines]


def as_written(key: str, old: Sequence[Any], items: Sequence[Any]) -> list[Any]:
    """Returns the wanted items of a list, each as `old` has it if the meaning is the same."""
    by_name = dict(zip(_meanings(key, old), old, strict=True))
    names = _meanings(key, items)
    return [by_name.get(name, item) for name, item in zip(names, items, strict=True)]


def by_hand(entry: Entry) -> Invalid:
    """Returns the error for a notation in which an edit would lose text."""
    return Invalid(f"`{entry.key}` can't be changed in this header", hint="edit it by hand")


def _meanings(key: str, items: Sequence[Any]) -> list[Hashable]:
    """Returns what each item of a list means; equal tags and links are equal.

    An item without a meaning, such as a blank tag, is None.
    """
    if key in ("tags", "links"):
        return [next(iter(understand({key: [item]})[0].get(key, ())), None) for item in items]
    counts: dict[str, int] = defaultdict(int)
    names: list[Hashable] = []
    for text in map(front_matter.flow, items):
        counts[text] += 1
        names.append((text, counts[text]))
    return names


def _changed_links(old: Sequence[Any], new: Sequence[Any]) -> dict[int, Any]:
    """Returns the links to write in place of others to the same target, by position."""
    olds, news = set(old), set(new)
    added: dict[str, list[Any]] = defaultdict(list)
    for link in reversed(new):
        if link not in olds and hasattr(link, "to"):
            added[link.to].append(link)
    removed = ((n, link) for n, link in enumerate(old) if link not in news and hasattr(link, "to"))
    return {n: added[link.to].pop() for n, link in removed if added[link.to]}


def _staying(old: Sequence[Hashable], new: Sequence[Hashable]) -> set[Hashable]:
    """Returns the items of both lists whose order is the same in both."""
    from difflib import SequenceMatcher

    once = list(dict.fromkeys(old))
    blocks = SequenceMatcher(None, once, new, autojunk=False).get_matching_blocks()
    return {None, *(once[block.a + n] for block in blocks for n in range(block.size))}


def _line_edits(
    text: str,
    entry: Entry,
    lines: Sequence[_Lines],
    old: Sequence[Hashable],
    texts: Mapping[Hashable, str],
    changed: Mapping[int, Hashable],
) -> Iterator[Edit]:
    """Yields the edits of a list whose items are on lines of their own."""
    value = entry.value
    old = [changed.get(position, name) for position, name in enumerate(old)]
    staying = _staying(old, list(texts))
    moved: dict[Hashable, str] = defaultdict(str)
    ends: dict[Hashable, int] = {}
    comma = "" if value.is_block_list else ","
    for position, (name, item, lined) in enumerate(zip(old, value.items, lines, strict=True)):
        end = _end(text, item)
        item_text = text[item.start : end]
        if position in changed:
            if "#" in item_text.partition("\n")[2]:
                raise by_hand(entry)
            item_text = texts[name]
        if name in staying:
            ends.setdefault(name, lined.end)
            if position in changed:
                yield item.start, end, item_text
        elif name in texts:
            is_ended = text[end : lined.end].lstrip().startswith(comma)
            ending = "" if is_ended else comma
            parts = [text[lined.above : item.start], item_text, ending, text[end : lined.end]]
            moved[name] += "".join(parts).replace("\r\n", "\n")
            yield lined.above, lined.end, ""
        else:
            yield lined.start, lined.end, ""
    dash = " " * value.column + "- "
    indent = dash if value.is_block_list else text[lines[0].start : value.items[0].start]
    is_open = comma and old[-1] in staying and old[-1] != list(texts)[-1]
    end = _end(text, value.items[-1])
    if is_open and not text[end:].lstrip().startswith(comma):
        yield end, end, comma
    place = _first_line(text, entry)
    for name, item_text in texts.items():
        if name in staying:
            place = ends[name]
        else:
            yield place, place, moved.get(name) or f"{indent}{item_text}{comma}\n"


def _flow_list(
    text: str, value: Value, old: Sequence[Hashable], texts: Mapping[Hashable, str]
) -> str:
    """Returns a list in brackets; items keep their notation and the space before them."""
    gaps = _gaps(text, value)
    positions = {name: position for position, name in reversed([*enumerate(old)])}
    parts: list[str] = []
    for name, item_text in texts.items():
        position = positions.get(name, 0)
        parts.append(", " if parts and not position else gaps[position] if parts else gaps[0])
        item = value.items[position]
        parts.append(text[item.start : _end(text, item)] if name in positions else item_text)
    return "".join([*parts, gaps[-1]]) if parts else "[]"


def _gaps(text: str, value: Value) -> list[str]:
    """Returns the text before each item of a list in brackets, and after the last one."""
    starts = [item.start for item in value.items]
    ends = [_end(text, item) for item in value.items]
    places = zip([value.start, *ends], [*starts, value.end], strict=True)
    return [text[start:end] for start, end in places]


def _lines(text: str, entry: Entry) -> list[_Lines]:
    """Returns the lines of each item; nothing unless each has lines of its own."""
    value = entry.value
    lines: list[_Lines] = []
    after = _first_line(text, entry)
    for item in value.items:
        start, end = line_start(text, item.start), _end(text, item)
        if value.is_block_list:
            while start > after and text[start : start + value.column + 1].strip() != "-":
                start = line_start(text, start - 1)
        elif text[start : item.start].strip() or not _AFTER_ITEM.match(text, end):
            return []
        if start < after:
            return []
        above = start
        while above > after:
            line = line_start(text, above - 1)
            if not text[line:above].lstrip().startswith("#"):
                break
            above = line
        after = text.index("\n", end) + 1
        lines.append(_Lines(above, start, after))
    return lines


def _first_line(text: str, entry: Entry) -> int:
    """Returns the start of the line after that on which a list begins, with its key or `[`."""
    is_block = entry.value.is_block_list
    return text.index("\n", entry.end if is_block else entry.value.start) + 1


def line_start(text: str, position: int) -> int:
    """Returns the start of the line with a position."""
    return text.rfind("\n", 0, position) + 1


def _end(text: str, value: Value) -> int:
    """Returns the end of a value, without the trailing line ends of a block scalar."""
    return len(text[: value.end].rstrip()) if text[value.start : value.end].strip() else value.end
