"""The restricted YAML, deeper, with the line on which every key and every item stands."""

from bisect import bisect_right
from typing import Any

from mimo.memory.codec.document import Unreadable
from mimo.memory.codec.yaml import NotAMapping, Reader, loader_class, reported

DEEPEST = 16


class Mapping(dict[str, Any]):
    """A mapping that knows the line of each of its keys."""

    lines: dict[str, int]


class Items(list[Any]):
    """A list that knows the line of each of its items."""

    lines: list[int]


def load(text: str, first_line: int) -> Mapping:
    """Returns the mapping that a text spells, all mappings and lists in it with their lines.

    `first_line` is the text's own in its file. Raises `Unreadable` with the line in the file.
    """
    try:
        with reported(text):
            return _LocatedReader(text, first_line).mapping()
    except NotAMapping:
        raise Unreadable("it must be a mapping of `key: value` lines", first_line) from None
    except Unreadable as error:
        reason = error.reason.removeprefix("header: ")
        raise Unreadable(reason, first_line + (error.line or 1) - 1) from None


class _LocatedReader(Reader):
    deepest = DEEPEST

    def __init__(self, text: str, first_line: int) -> None:
        super().__init__(loader_class()(text))
        self._starts = [at + 1 for at, char in enumerate(text) if char == "\n"]
        self._first_line = first_line

    def mapping(self) -> Mapping:
        return self._located({entry.key: entry for entry in self.header().entries})

    def _located(self, entries: dict[str, Any]) -> Mapping:
        found = Mapping({key: entry.value.data for key, entry in entries.items()})
        found.lines = {key: self._line(entry.start) for key, entry in entries.items()}
        return found

    def _line(self, position: int) -> int:
        return self._first_line + bisect_right(self._starts, position)

    def _items(self, depth: int) -> tuple[list[Any], int | None]:
        values = []
        while not isinstance(event := self._loader.get_event(), self._yaml.SequenceEndEvent):
            values.append(self._value(event, depth + 1))
        self._closed = event
        found = Items(value.data for value in values)
        found.lines = [self._line(value.start) for value in values]
        return found, values[-1].end if values else None

    def _mapping(self, depth: int) -> tuple[dict[str, Any], int | None]:
        entries, self._closed = self._entries(depth)
        located = self._located({entry.key: entry for entry in entries})
        return located, entries[-1].value.end if entries else None
