"""JSON with comments and trailing commas: one entry is put in or taken out, all else stays."""

import json
import re
from typing import Any, NamedTuple, NoReturn

from mimo.errors import Invalid

_DEEPEST = 200
_BLANK = re.compile(r"[ \t\r\n]*")
_LINE_COMMENT = re.compile(r"//[^\r\n]*")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_CLOSING = {"{": "}", "[": "]"}


class Element(NamedTuple):
    """A member of an object or an item of a list."""

    key: str | None
    start: int
    node: "Node"
    comma: int | None
    """The place of the comma after it; None if there is none."""


class Node(NamedTuple):
    """A value and its place."""

    start: int
    end: int
    value: Any
    elements: tuple[Element, ...] = ()

    def find(self, key: str) -> Element | None:
        """Returns the member of that name. Raises `Invalid` if there are two."""
        found = [element for element in self.elements if element.key == key]
        if len(found) > 1:
            raise Invalid(f"`{key}` occurs twice", hint="remove one of them first")
        return found[0] if found else None


class Document(NamedTuple):
    """A parsed text, and the ends of its line comments."""

    text: str
    root: Node
    comment_ends: frozenset[int]
    has_comments: bool


def parse(text: str) -> Document:
    """Returns the document in a text. Raises `Invalid` with line and column."""
    reader = _Reader(text)
    root = reader.value(reader.skip(0), 0)
    if (end := reader.skip(root.end)) != len(text):
        reader.refuse(end, "nothing may follow the document")
    return Document(text, root, frozenset(reader.comment_ends), reader.has_comments)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.comment_ends: list[int] = []
        self.has_comments = False

    def refuse(self, at: int, message: str) -> NoReturn:
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        raise Invalid(
            f"line {line}, column {column}: {message}",
            hint="mend the file first; nothing was changed",
            details={"line": line, "column": column},
        )

    def skip(self, at: int) -> int:
        """Returns the start of the next token, after blanks and comments."""
        while True:
            at = _blank_end(self.text, at)
            if found := _LINE_COMMENT.match(self.text, at):
                self.comment_ends.append(found.end())
            elif self.text.startswith("/*", at):
                found = _BLOCK_COMMENT.match(self.text, at)
                if not found:
                    self.refuse(at, "the comment is not closed")
            else:
                return at
            self.has_comments = True
            at = found.end()

    def value(self, at: int, depth: int) -> Node:
        first = self.text[at : at + 1]
        if first in ("{", "["):
            if depth > _DEEPEST:
                self.refuse(at, "it is nested too deeply")
            return self._container(at, depth)
        if first == '"':
            return self._string(at)
        if not (found := _PLAIN.match(self.text, at)):
            self.refuse(at, "a value is missing here" if first else "the document ends too soon")
        return Node(at, found.end(), json.loads(found[0]))

    def _string(self, at: int) -> Node:
        found = _STRING.match(self.text, at)
        if not found:
            self.refuse(at, "the text is not closed on its line")
        try:
            return Node(at, found.end(), json.loads(found[0]))
        except json.JSONDecodeError as error:
            self.refuse(at + error.pos, "the text has an escape that is not allowed")

    def _container(self, start: int, depth: int) -> Node:
        close = _CLOSING[self.text[start]]
        elements: list[Element] = []
        at = self.skip(start + 1)
        while not self.text.startswith(close, at):
            if elements and elements[-1].comma is None:
                self.refuse(at, f"a comma or `{close}` is missing here")
            element = self._element(at, close, depth)
            elements.append(element)
            at = self.skip(element.node.end if element.comma is None else element.comma + 1)
        if close == "]":
            return Node(start, at + 1, [one.node.value for one in elements], tuple(elements))
        value = {one.key: one.node.value for one in elements}
        return Node(start, at + 1, value, tuple(elements))

    def _element(self, start: int, close: str, depth: int) -> Element:
        key, at = None, start
        if close == "}":
            if not self.text.startswith('"', at):
                self.refuse(at, "a name in double quotes is missing here")
            name = self._string(at)
            key, at = name.value, self.skip(name.end)
            if not self.text.startswith(":", at):
                self.refuse(at, "a colon is missing here")
            at = self.skip(at + 1)
        node = self.value(at, depth + 1)
        after = self.skip(node.end)
        return Element(key, start, node, after if self.text.startswith(",", after) else None)


def _blank_end(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


EMPTY = "{}\n"
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_BLANKS = " \t\r\n"

Path = tuple[str, ...]


def load(text: str) -> Any:
    """Returns the data in a text; an empty one holds an empty object. Raises `Invalid`."""
    if not text.strip():
        return {}
    try:
        return json.loads(text)  # some clients keep megabytes in one file
    except (ValueError, RecursionError):
        return parse(text).root.value


def has_comments(text: str) -> bool:
    """Returns whether a text has comments."""
    return bool(text.strip()) and parse(text).has_comments


def put(text: str, path: Path, value: Any) -> str:
    """Returns the text with `value` at `path`; missing objects above it are created.

    Raises `Invalid` if a value above it is not an object.
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
    """Returns the text with `value` at the end of the list at `path`, created if missing."""
    document = parse(text) if text.strip() else parse(EMPTY)
    node = _at(document, path)
    if node is None:
        return put(text, path, [value])
    if not isinstance(node.value, list):
        raise Invalid(f"`{'.'.join(path)}` is not a list", hint="nothing was changed")
    return _insert(document, node, None, value)


def drop(text: str, path: Path) -> str:
    """Returns the text without the value at `path`."""
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
        raise Invalid(f"{named} is not an object", hint="mend the file first; nothing was changed")


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
    commented = any(start <= end_ <= element.start for end_ in document.comment_ends)
    if commented and not text[end:].lstrip(" \t,").startswith(("\n", "\r")):
        start = element.start  # the text after it must not become part of the comment
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
    """Returns the start of the blanks before a place."""
    return len(text[:at].rstrip(_BLANKS))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """Returns the indentation of one level: the first one in the text."""
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
    """Returns the lines of a JSON value; lists of plain values are on one line."""
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
