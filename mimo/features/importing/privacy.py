"""The privacy of a source: the folders that its files are in, and the marks in their headers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from mimo.data.disk import PRIVATE_FOLDERS, STORE
from mimo.frozen import NamedTuple
from mimo.memory.exchange import LISTED

_PRIVATE, _METADATA = "private", "metadata"
_UNREAD = re.compile(
    r"(?:---|\+\+\+)[ \t]*\n(?:(?!---|\+\+\+).*\n)*?[ \t]*[\"']?private[\"']?[ \t]*[:=]", re.I
)
"""The beginning of a text whose header is not one for YAML, such as `private:true`."""
_NO = frozenset(("", "false", "no", "off", "0"))


def is_marked(values: Mapping[str, Any]) -> bool:
    """Returns whether a header or an object of JSON marks a memory as private.

    Only a clear no does not: false, no, off, 0 or nothing. The case of the key has no meaning. The
    mark may also be in its `metadata`.
    """
    inner = (value for value in _under(_METADATA, values) if isinstance(value, Mapping))
    marks = chain.from_iterable(_under(_PRIVATE, part) for part in (values, *inner))
    return not all(map(_is_no, marks))


def _under(name: str, values: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the values under a name, whose case has no meaning."""
    return (value for key, value in values.items() if str(key).strip().casefold() == name)


def is_marked_text(text: str) -> bool:
    """Returns whether a text without a header begins with what was meant as a mark in one."""
    return _UNREAD.match(text) is not None


def _is_no(value: object) -> bool:
    return value.strip().casefold() in _NO if isinstance(value, str) else not value


class Surroundings(NamedTuple):
    """The facts about the folders that contain a source."""

    in_store: bool = False
    """True if one of them is `.mind`, or the source is."""
    private: bool = False
    """True if all files of the source are private."""
    own_private: bool = False
    """True if those that mind wrote are: a folder further above is called `private`."""

    def covers(self, name: str, *, by_mind: bool) -> bool:
        """Returns whether a source's file is in a private folder; `by_mind` if mind wrote it."""
        folders = name.replace("\\", "/").casefold().split("/")[:-1]
        return self.private or _PRIVATE in folders or (by_mind and self.own_private)


def surroundings(path: Path, *inner: str, is_folder: bool) -> Surroundings:
    """Returns the facts for a source, also for the path behind a symbolic link.

    `inner` are the names of an archive and of the folder that contains all its files. Above a
    folder `.mind` and the folder of an export, names have no meaning.
    """
    both = [
        _surroundings(start if is_folder and not inner else start.parent, inner, named=is_folder)
        for start in {path.absolute(), path.resolve()}
    ]
    return Surroundings(*map(any, zip(*both, strict=True)))


def _surroundings(folder: Path, inner: tuple[str, ...], *, named: bool) -> Surroundings:
    above = [place for place in (folder, *folder.parents) if place.name]
    names = [name.casefold() for name in (*(place.name for place in reversed(above)), *inner)]
    if STORE in names:
        below = names[names.index(STORE) + 1 :]
        is_private = any(name in PRIVATE_FOLDERS for name in below)
        return Surroundings(in_store=True, private=is_private, own_private=is_private)
    for depth, place in zip(range(len(above), 0, -1), above, strict=True):
        if os.path.lexists(place / LISTED):
            is_private = _PRIVATE in names[depth:]
            return Surroundings(private=is_private, own_private=is_private)
    # At the root, macOS has `/private`, which contains all temporary files.
    return Surroundings(
        private=named and names[-1:] == [_PRIVATE], own_private=_PRIVATE in names[1:]
    )
