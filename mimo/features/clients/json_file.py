"""JSON with comments and trailing commas: one entry is put in or taken out, all else stays."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from mimo.data.loads import DataError, loads
from mimo.errors import Invalid
from mimo.frozen import NamedTuple

Path = tuple[str, ...]

UNCHANGED = "mend the file first; nothing was changed"
_BLANKS = " \t\r\n"
BELOW = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_DEEPEST = 200
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_GAP = re.compile(rf"(?:[ \t\r\n]+|{_COMMENT.pattern})*", re.DOTALL)
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_CLOSING = {"{": "}", "[": "]"}


class Element(NamedTuple):
    """A member of an object or an item of a list."""

    key: str | None
    start: int
    node: Node
    comma: int | None
    """The place of the comma after it; None if there is none."""


class Node(NamedTuple):
    """A value and its place."""

    start: int
    end: int
    value: Any
    elements: tuple[Element, ...] = ()

    def member(self, path: Path) -> Element | None:
        """Returns the member that the last key of `path` names, or None.

        Raises `Invalid` if this is not an object, or has two such members.
        """
        *above, key = path
        if not isinstance(self.value, dict):
            named = f"`{'.'.join(above)}`" if above else "the document"
            raise Invalid(f"{named} is not an object", hint=UNCHANGED)
        members = [element for element in self.elements if element.key == key]
        if len(members) > 1:
            raise Invalid(f"`{key}` occurs twice", hint="remove one of them first")
        return members[0] if members else None


class Document:
    """A parsed text; an empty one holds an empty object."""

    def __init__(self, text: str) -> None:
        """Parses a text. Raises `Invalid` with line and column."""
        self.text = text if text.strip() else "{}\n"
        self.has_comments = False
        self.comment_ends: list[int] = []
        """The ends of line comments."""
        self.root = self._value(self._skip(0), 0)
        if (end := self._skip(self.root.end)) != len(self.text):
            self._refuse(end, "nothing may follow the document")

    def deepest(self, path: Path) -> tuple[Node, int]:
        """Returns the last existing value on a path, and the number of keys that lead to it."""
        node = self.root
        for depth in range(len(path)):
            element = node.member(path[: depth + 1])
            if element is None:
                return node, depth
            node = element.node
        return node, len(path)

    def at(self, path: Path) -> Node | None:
        """Returns the value at a path; None if there is none."""
        node, depth = self.deepest(path)
        return node if depth == len(path) else None

    def _refuse(self, at: int, message: str) -> NoReturn:
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        raise Invalid(
            f"line {line}, column {column}: {message}",
            hint=UNCHANGED,
            details={"line": line, "column": column},
        )

    def _skip(self, at: int) -> int:
        """Returns the start of the next token, after blanks and comments."""
        gap = _GAP.match(self.text, at)
        end = gap.end() if gap else at
        if self.text.startswith("/*", end):
            self._refuse(end, "the comment is not closed")
        for comment in _COMMENT.finditer(self.text, at, end):
            self.has_comments = True
            if comment[0].startswith("//"):
                self.comment_ends.append(comment.end())
        return end

    def _value(self, at: int, depth: int) -> Node:
        char = self.text[at : at + 1]
        if char in ("{", "["):
            if depth > _DEEPEST:
                self._refuse(at, "it is nested too deeply")
            return self._container(at, depth)
        if char == '"':
            return self._string(at)
        if not (match := _PLAIN.match(self.text, at)):
            self._refuse(at, "a value is missing here" if char else "the document ends too soon")
        try:
            return Node(at, match.end(), json.loads(match[0]))
        except ValueError:
            self._refuse(at, "the number is too long")

    def _string(self, at: int) -> Node:
        match = _STRING.match(self.text, at)
        if not match:
            self._refuse(at, "the text is not closed on its line")
        try:
            return Node(at, match.end(), json.loads(match[0]))
        except json.JSONDecodeError as error:
            self._refuse(at + error.pos, "the text has an escape that is not allowed")

    def _container(self, start: int, depth: int) -> Node:
        close = _CLOSING[self.text[start]]
        elements: list[Element] = []
        at = self._skip(start + 1)
        while not self.text.startswith(close, at):
            if elements and elements[-1].comma is None:
                self._refuse(at, f"a comma or `{close}` is missing here")
            begin, key = at, None
            if close == "}":
                key, at = self._key(at)
            node = self._value(at, depth + 1)
            at = self._skip(node.end)
            comma = at if self.text.startswith(",", at) else None
            elements.append(Element(key, begin, node, comma))
            at = at if comma is None else self._skip(comma + 1)
        values = [element.node.value for element in elements]
        keys = [element.key for element in elements]
        value = values if close == "]" else dict(zip(keys, values, strict=True))
        return Node(start, at + 1, value, tuple(elements))

    def _key(self, at: int) -> tuple[str, int]:
        """Returns the name of a member, and the start of its value."""
        if not self.text.startswith('"', at):
            self._refuse(at, "a name in double quotes is missing here")
        name = self._string(at)
        at = self._skip(name.end)
        if not self.text.startswith(":", at):
            self._refuse(at, "a colon is missing here")
        return name.value, self._skip(at + 1)


def load(text: str) -> Any:
    """Returns the data in a text; an empty one holds an empty object. Raises `Invalid`."""
    if not text.strip():
        return {}
    try:
        return loads(text, depth=_DEEPEST)  # some clients keep megabytes in one file
    except DataError:
        return Document(text).root.value


def has_comments(text: str) -> bool:
    """Returns whether a text has comments."""
    return Document(text).has_comments


def newline_of(text: str) -> str:
    """Returns the newline of a text in any format."""
    return "\r\n" if "\r\n" in text else "\n"


def put(text: str, path: Path, value: Any) -> str:
    """Returns the text with `value` at `path`; missing objects above it are created.

    Raises `Invalid` if a value above it is not an object.
    """
    document = Document(text)
    node, depth = document.deepest(path)
    if depth < len(path):
        for missing in reversed(path[depth + 1 :]):
            value = {missing: value}
        return _insert(document, node, path[depth], value)
    rendered = _render(value, text, _indent_at(text, node.start))
    return text[: node.start] + rendered + text[node.end :]


def append(text: str, path: Path, value: Any) -> str:
    """Returns the text with `value` at the end of the list at `path`, created if missing."""
    document = Document(text)
    node = document.at(path)
    if node is None:
        return put(text, path, [value])
    if not isinstance(node.value, list):
        raise Invalid(f"`{'.'.join(path)}` is not a list", hint="nothing was changed")
    return _insert(document, node, None, value)


def drop(text: str, path: Path) -> str:
    """Returns the text without the value at `path`."""
    document = Document(text)
    parent = document.at(path[:-1])
    element = parent.member(path) if parent else None
    return text if parent is None or element is None else _cut(document, parent, element)


def drop_item(text: str, path: Path, index: int, hook: int | None = None) -> str:
    """Returns the text without one item of the list at `path`, or one hook of such a group.

    Raises `Invalid` if the group has two lists of hooks.
    """
    document = Document(text)
    node = document.at(path)
    if node is not None and hook is not None:
        member, index = node.elements[index].node.member(("hooks",)), hook
        node = member.node if member else None
    return text if node is None else _cut(document, node, node.elements[index])


def _insert(document: Document, node: Node, key: str | None, value: Any) -> str:
    """Returns the text with one element more at the end of a container."""
    text, sibling = document.text, (node.elements[-1] if node.elements else None)
    named = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
    has_comma = sibling is not None and sibling.comma is not None
    if sibling is not None and "\n" not in text[node.start : node.end]:
        added = f" {named}{json.dumps(value, ensure_ascii=False)}"
        at = sibling.node.end if sibling.comma is None else sibling.comma + 1
        return text[:at] + (f"{added}," if has_comma else f",{added}") + text[at:]
    newline = newline_of(text)
    outer = _indent_at(text, node.start)
    inner = text[text.rfind("\n", 0, sibling.start) + 1 : sibling.start] if sibling else ""
    if sibling is None or inner.strip():
        inner = outer + _unit(text)
    added = f"{newline}{inner}{named}{_render(value, text, inner)}"
    close = node.end - 1
    at = _content_end(text, close)
    if sibling is None:
        tail = "" if "\n" in text[at:close] else newline + outer
        return text[:at] + added + tail + text[at:].lstrip(" \t" if tail else "")
    if has_comma:
        return text[:at] + added + "," + text[at:]
    end = sibling.node.end
    return text[:end] + "," + text[end:at] + added + text[at:]


def _cut(document: Document, node: Node, element: Element) -> str:
    """Returns the text without one element, and without the comma that came with it."""
    text = document.text
    start, end = _content_end(text, element.start), element.node.end
    after = text[end:]
    if element.comma is not None:
        after = text[end : element.comma].rstrip(_BLANKS) + text[element.comma + 1 :]
    commented = any(start <= end_ <= element.start for end_ in document.comment_ends)
    if commented and not after.lstrip(" \t").startswith(("\n", "\r")):
        start = element.start  # the text after it must not become part of the comment
    head = text[:start]
    place = node.elements.index(element)
    if element.comma is None and place and (comma := node.elements[place - 1].comma):
        head = head[:comma] + head[comma + 1 :]
    result = head + after
    inside = result[node.start + 1 : node.end - 1 - (len(text) - len(result))]
    if inside.strip(_BLANKS):
        return result
    return result[: node.start + 1] + result[node.start + 1 + len(inside) :]


def _content_end(text: str, at: int) -> int:
    """Returns the start of the blanks before a place."""
    return len(text[:at].rstrip(_BLANKS))


def _unit(text: str) -> str:
    """Returns the indentation of one level: the first one in the text."""
    indent = BELOW.search(text)
    return indent[1] if indent else "  "


def _indent_at(text: str, at: int) -> str:
    """Returns the indentation of the line that a place is on."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _render(value: Any, text: str, indent: str) -> str:
    return (newline_of(text) + indent).join(_lines(value, _unit(text)))


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
