"""The names of a memory: of its file, its title and its aliases, and which memory a link means.

These rules hold for files that are read in place, for imported files and for links.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import IntEnum
from itertools import chain

from mimo.frozen import NamedTuple
from mimo.memory.model import LOG, SUFFIXES, Record
from mimo.text.clean import compiled, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ENDING = rf"(?i)(?:{'|'.join(map(re.escape, SUFFIXES))})$"

ALIASES = ("aliases", "alias")
"""The keys of a header, or of Logseq's properties, with other names of a note."""

VAULT = "dendron://"
"""The start of a target that names a vault of Dendron."""
OF_DENDRON = frozenset(("desc", "updated"))
"""Keys that the header of each note of Dendron has, whose links are `[[label|target]]`."""
_SEARCHED = ("keywords", "summary", "description", "desc")
"""The keys whose words are searched as those of a title are."""

_MOST_TIED = 20
"""The number of equally near memories that are named."""

_MOST_SEARCHED = 1_000
"""The number of characters of these values that are searched."""

_DAY = (
    r"(?:^|[ .])((?:19|2[01])\d{2})"
    r"(?:([-_.])(\d{1,2})\2(\d{1,2})(?!\d)|(\d{2})(\d{2})(?:T?(\d{4}(?:\d{2})?))?(?!\w))"
)
_USUAL = (
    "log,logs,note,notes,task,tasks,todo,todos,to do,to-do,journal,diary,agenda,today,done,"
    "daily log,daily note,daily notes,meeting notes,notizen,aufgaben,tagebuch,diario,notas,tareas"
).split(",")
"""Headings that many notes of one user have."""
_STAMP = r"(?i)^\d{12}(?:\d{2})?[-_ ]+(?=\w)|(?<=\S) [0-9a-f]{32}$"
"""The stamp before the name of a note in a slip box, or the number that Notion puts after one."""

_PROPERTY = r"(?:- |  )?([A-Za-z][\w-]*)::(?:[ \t]+(.{0,9999}))?"


class Rank(IntEnum):
    """The kinds of a name; a surer one takes precedence."""

    ID = 0
    FILE = 1
    TITLE = 2
    ALIAS = 3


class Named(NamedTuple):
    """A memory by one of its names."""

    rank: int
    name: str
    """The key of the name; that of a file is its path."""
    memory: Any
    path: str = ""
    """The path of its file."""
    is_approved: bool = True


class Names:
    """Memories by their names."""

    def __init__(self, named: Iterable[Named]) -> None:
        """Takes the names, in the order that decides between equally near memories."""
        self._parts: dict[tuple[int, str], int] = {}
        self._named: defaultdict[int, list[Named]] = defaultdict(list)
        self._nearest: dict[int, dict[int, tuple[int, dict[Any, int]]]] = {}
        for each in named:
            ends = self._numbers(reversed(each.name.split("/")))
            for number in ends[1:] if each.rank == Rank.FILE else ends[-1:]:
                self._named[number].append(each)

    def _numbers(self, parts: Iterable[str]) -> list[int]:
        """Returns the number of each start of a sequence of parts, the empty one included."""
        numbers = [0]
        for part in parts:
            place = numbers[-1], part
            numbers.append(self._parts.setdefault(place, len(self._parts) + 1))
        return numbers

    def meant(self, target: str, near: str = "") -> list[Any]:
        """Returns the memories that a link in the file `near` means: one, unless several tie.

        Approved ones take precedence, then ids, names of files, titles and aliases; of several with
        one name, the nearest file. At most `_MOST_TIED` are returned.
        """
        name = self._numbers(reversed(key_of(target).split("/")))[-1]
        if name not in self._nearest:
            self._nearest[name] = self._below(self._named.get(name, ()))
        nearest = self._nearest[name]
        around = enumerate(reversed(self._numbers(near.split("/")[:-1])))
        steps = [(up + nearest[folder][0], folder) for up, folder in around if folder in nearest]
        least = min(steps, default=(0, 0))[0]
        tied: dict[Any, int] = {}
        for number, folder in steps:
            if number == least:
                tied |= nearest[folder][1]
        return sorted(tied, key=tied.__getitem__)[:_MOST_TIED]

    def _below(self, fitting: Sequence[Named]) -> dict[int, tuple[int, dict[Any, int]]]:
        """Returns the nearest of the surest memories below each folder, with the steps to them.

        Each memory has its place in the order.
        """
        best = min([(not each.is_approved, each.rank) for each in fitting], default=None)
        below: dict[int, tuple[int, dict[Any, int]]] = {}
        for place, each in enumerate(fitting):
            if (not each.is_approved, each.rank) != best:
                continue
            for steps, folder in enumerate(reversed(self._numbers(each.path.split("/")[:-1]))):
                least, memories = below.get(folder, (steps, {}))
                if steps < least or not memories:
                    below[folder] = steps, {each.memory: place}
                elif steps == least and len(memories) < _MOST_TIED:
                    memories.setdefault(each.memory, place)
        return below


def key_of(name: str) -> str:
    """Returns the form of a name, a path or a target of a link in which they are compared.

    Logseq writes the slash of a name as `___` or `%2F` in the name of its file.
    """
    plain = " ".join(_decoded(name).split())
    if not plain.isascii():
        plain = unicodedata.normalize("NFC", plain)
    plain = plain.casefold()
    if "." in plain:
        plain = compiled(_ENDING).sub("", re.sub(r"^(?:\.{1,2}/)+", "", plain))
    return plain.strip("/")


def tail_of(key: str) -> str:
    """Returns the last part of a key, which all names share that a link with it can mean."""
    return key.rpartition("/")[2]


def without_vault(target: str) -> str:
    """Returns a target without the vault of Dendron before it, as in `dendron://vault/note`."""
    return target.removeprefix(VAULT).partition("/")[2] if target.startswith(VAULT) else target


def stem_of(path: str) -> str:
    """Returns the name of a file without folders and `.md`."""
    return compiled(_ENDING).sub("", path.rpartition("/")[2])


def words_of(path: str) -> str:
    """Returns the words of the name of a file: its title if it has no other."""
    stem = compiled(_STAMP).sub("", _decoded(stem_of(path)))
    # A hyphen between digits belongs to a date.
    return stem if " " in stem else re.sub(r"(?<!\d)[-_]+|[-_]+(?!\d)", " ", stem).strip() or stem


def is_specific(heading: str, name: str) -> bool:
    """Returns whether a heading is that of one note; `name` has the words of the file's name."""
    key = heading.casefold().rstrip(":")
    return key not in _USUAL or key in name.casefold()


def day_of(path: str) -> datetime | None:
    """Returns the day, or time, in the name of a file: `2023_02_03.md`, `202302031530 Tea.md`."""
    with suppress(ValueError):
        if match := compiled(_DAY).search(stem_of(path)):
            year, _, month, day, month2, day2, clock = match.groups("")
            digits = f"{year}{month or month2:0>2}{day or day2:0>2}T{clock:0<6}"
            return datetime.fromisoformat(digits).replace(tzinfo=UTC)
    return None


def _decoded(name: str) -> str:
    if "%" in name:
        from urllib.parse import unquote

        name = unquote(name)
    return (name if name.isascii() else storable(name)).replace("___", "/")


def properties(content: str) -> dict[str, str]:
    """Returns Logseq's properties of a page: the lines `key:: value` that a text begins with."""
    values: dict[str, str] = {}
    if "::" in content:
        for line in content.split("\n", 40):
            if not (match := compiled(_PROPERTY).fullmatch(line.rstrip())):
                break
            values[match[1].lower()] = match[2] or ""
    return values


def aliases(header: Mapping[str, Any], content: str) -> list[str]:
    """Returns the other names of a note, in its header or in Logseq's properties."""
    values = (*map(header.get, ALIASES), *map(properties(content).get, ALIASES))
    return list(dict.fromkeys(chain.from_iterable(map(_listed, values))))


def _listed(value: Any) -> Iterator[str]:
    """Yields the texts in a list, or in a text with commas."""
    if value is None:
        return
    items = re.split(r"[,\n]", value) if isinstance(value, str) else value
    for item in items if isinstance(items, list) else [items]:
        text = str(item) if isinstance(item, str | int | float) else ""
        if text := re.sub(r"[\[\]{}\"]+", " ", text).strip().lstrip("#@").strip():
            yield text


def of_record(record: Record) -> tuple[dict[str, Rank], str]:
    """Returns the names by which links mean a memory, besides its id, and its words as a text.

    Of these words, which are searched as those of its title are, the title's are left out.
    """
    memory, path = record.memory, record.place.path
    names: dict[str, Rank] = {}
    words: list[str] = []
    is_note = path.lower().endswith(SUFFIXES) and path != LOG and record.parent is None
    # Mind names a file for the id.
    if is_note and not (record.place.owned and stem_of(path) == memory.id):
        names[key_of(path)] = Rank.FILE
        words.append(words_of(path))
    if memory.title:
        names.setdefault(key_of(memory.title), Rank.TITLE)
    if record.parent is None and (memory.extra or "::" in memory.content):
        alias_names = aliases(memory.extra, memory.content)
        for alias in alias_names:
            names.setdefault(key_of(alias), Rank.ALIAS)
        values = properties(memory.content) | dict(memory.extra)
        more = chain.from_iterable(_listed(values.get(key)) for key in _SEARCHED)
        words += (*alias_names, *more)
    return names, " ".join(words)[:_MOST_SEARCHED]


def is_named(record: Record, key: str) -> bool:
    """Returns whether a memory has a name with a key: a title, an alias, or the end of its path."""
    names = of_record(record)[0].items() if key else ()
    return any(n == key or (rank == Rank.FILE and n.endswith(f"/{key}")) for n, rank in names)
