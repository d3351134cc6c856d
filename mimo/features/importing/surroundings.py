"""The folders that contain the source of an import, which may be private."""

from __future__ import annotations

import os
from pathlib import Path

from mimo.data.disk import PRIVATE_FOLDERS, STORE
from mimo.frozen import NamedTuple

LISTED = ".mind-export"
"""The file in the folder of an export that lists the others."""
_PRIVATE = "private"


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
