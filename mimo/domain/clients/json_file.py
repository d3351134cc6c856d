"""Putting one entry into a JSON file and taking it out again, with everything else as it is."""

import json
import re
from typing import Any

from mimo.domain.clients.jsonc import Document, Element, Node, parse
from mimo.errors import Invalid

EMPTY = "{}\n"
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_BLANKS = " \t\r\n"

Path = tuple[str, ...]


def load(text: str) -> Any:
    """Returns the data in a text; an empty one holds an empty object."""
    if not text.strip():
        return {}
    try:
        return json.loads(text)  # some clients keep megabytes in one file
    except (ValueError, RecursionError):
        return parse(text).root.value


def has_comments(text: str) -> bool:
    """Returns whether somebody commented a text."""
    return bool(text.strip()) and parse(text).has_comments


def put(text: str, path: Path, value: Any) -> str:
    """Returns the text with `value` at `path`; the objects above it are made where missing.

    Raises `Invalid` where something on the way is no object.
    """
    if not text.strip():
        text = EMPTY
    document = parse(text)
    node = document.root
    for depth, key in enumerate(path):
        _check_object(node, path[:depth])
        element = node.find(key)
        if element is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert(document, node, key, value)
        node = element.node
    rendered = _render(value, text, _indent_at(text, node.start))
    return text[: node.start] + rendered + text[node.end :]


def append(text: str, path: Path, value: Any) -> str:
    """Returns the text with `value` at the end of the list at `path`, made where missing."""
    document = parse(text) if text.strip() else parse(EMPTY)
    node = _at(document, path)
    if node is None:
        return put(text, path, [value])
    if not isinstance(node.value, list):
        raise Invalid(f"`{'.'.join(path)}` is no list", hint="nothing was changed")
    return _insert(document, node, None, value)


def drop(text: str, path: Path) -> str:
    """Returns the text without what stands at `path`."""
    document = parse(text)
    parent = _at(document, path[:-1])
    element = parent.find(path[-1]) if parent else None
    return text if parent is None or element is None else _cut(document, parent, element)


def drop_item(text: str, path: Path, index: int) -> str:
    """Returns the text without one item of the list at `path`."""
    document = parse(text)
    node = _at(document, path)
    return text if node is None else _cut(document, node, node.elements[index])


def _at(document: Document, path: Path) -> Node | None:
    node = document.root
    for depth, key in enumerate(path):
        _check_object(node, path[:depth])
        element = node.find(key)
        if element is None:
            return None
        node = element.node
    return node


def _check_object(node: Node, path: Path) -> None:
    if not isinstance(node.value, dict):
        named = f"`{'.'.join(path)}`" if path else "the document"
        raise Invalid(f"{named} is no object", hint="mend the file first; nothing was changed")


def _insert(document: Document, node: Node, key: str | None, value: Any) -> str:
    """Returns the text with one element more at the end of a container."""
    text, last = document.text, (node.elements[-1] if node.elements else None)
    close = node.end - 1
    if last is not None and "\n" not in text[node.start : node.end]:
        comma = "" if last.comma is not None else ","
        named = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
        added = f"{comma} {named}{json.dumps(value, ensure_ascii=False)}"
        at = last.node.end if last.comma is None else last.comma + 1
        return text[:at] + added + ("," if last.comma is not None else "") + text[at:]
    newline = _newline(text)
    outer = _indent_at(text, node.start)
    inner = _indent_of(text, last) if last else None
    inner = outer + _unit(text) if inner is None else inner
    named = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
    added = f"{newline}{inner}{named}{_render(value, text, inner)}"
    at = _content_end(text, close)
    if last is None:
        tail = "" if "\n" in text[at:close] else newline + outer
        return text[:at] + added + tail + text[at:].lstrip(" \t" if tail else "")
    if last.comma is not None:
        return text[:at] + added + "," + text[at:]
    end = last.node.end
    return text[:end] + "," + text[end:at] + added + text[at:]


def _cut(document: Document, node: Node, element: Element) -> str:
    """Returns the text without one element, and without the comma that came with it."""
    text = document.text
    start, end = _content_end(text, element.start), element.node.end
    commented = any(start <= one <= element.start for one in document.comment_ends)
    if commented and not text[end:].lstrip(" \t,").startswith(("\n", "\r")):
        start = element.start  # what follows must not fall into the comment
    before, after = text[:start], text[end:]
    if element.comma is not None:
        gap = text[end : element.comma]
        after = gap.rstrip(_BLANKS) + text[element.comma + 1 :]
    elif (place := node.elements.index(element)) and (comma := node.elements[place - 1].comma):
        before = before[:comma] + before[comma + 1 :]
    whole = before + after
    inside = whole[node.start + 1 : node.end - 1 - (len(text) - len(whole))]
    if inside.strip(_BLANKS):
        return whole
    return whole[: node.start + 1] + whole[node.start + 1 + len(inside) :]


def _content_end(text: str, at: int) -> int:
    """Returns where the blanks before a place begin."""
    return len(text[:at].rstrip(_BLANKS))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """Returns what one level is indented by: the first indentation there is."""
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _indent_at(text: str, at: int) -> str:
    """Returns the indentation of the line that a place is on."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_of(text: str, element: Element) -> str | None:
    """Returns the indentation of an element that begins its line; None for any other."""
    before = text[text.rfind("\n", 0, element.start) + 1 : element.start]
    return None if before.strip() else before


def _render(value: Any, text: str, indent: str) -> str:
    return (_newline(text) + indent).join(_lines(value, _unit(text)))


def _lines(value: Any, unit: str) -> list[str]:
    """Returns JSON as people write it: lists of plain values stay on one line."""
    if not value or not isinstance(value, dict | list):
        return [json.dumps(value, ensure_ascii=False)]
    if isinstance(value, list):
        if not any(isinstance(item, dict | list) for item in value):
            return [json.dumps(value, ensure_ascii=False)]
        parts = [_lines(item, unit) for item in value]
    else:
        parts = [_lines(item, unit) for item in value.values()]
        for key, lines in zip(value, parts, strict=True):
            lines[0] = f"{json.dumps(key, ensure_ascii=False)}: {lines[0]}"
    for lines in parts[:-1]:
        lines[-1] += ","
    inner = [unit + line for lines in parts for line in lines]
    return ["{", *inner, "}"] if isinstance(value, dict) else ["[", *inner, "]"]
