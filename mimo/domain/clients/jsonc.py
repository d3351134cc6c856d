"""JSON as people write it, with comments and trailing commas, read with the place of everything."""

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
    """Where the comma after it stands; None where there is none."""


class Node(NamedTuple):
    """A value and where it stands."""

    start: int
    end: int
    value: Any
    elements: tuple[Element, ...] = ()

    def find(self, key: str) -> Element | None:
        """Returns the member of that name. Raises `Invalid` where there are two."""
        found = [element for element in self.elements if element.key == key]
        if len(found) > 1:
            raise Invalid(f"`{key}` stands there twice", hint="take one of them out first")
        return found[0] if found else None


class Document(NamedTuple):
    """A text that was read, and where its line comments end."""

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


def load(text: str) -> Any:
    """Returns the data in a text. Raises `Invalid` with line and column."""
    return parse(text).root.value


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
        """Returns where the next token begins, past blanks and comments."""
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
