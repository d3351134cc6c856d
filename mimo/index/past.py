"""The indexes of past states, one for each: beside the present one, whose vectors they share."""

import os
from contextlib import suppress
from pathlib import Path

from mimo.errors import StorageFailed
from mimo.index import opening
from mimo.index.embedding import Embedder
from mimo.index.index import Index

FOLDER = "past"
_KEPT = 8
"""States whose indexes are kept: those that were asked for last."""


def open_past(folder: Path, state: str, embedder: Embedder | None, owner: str) -> Index:
    """Returns the index of a past state, named by what it holds, within a project's index folder.

    A text that any state had keeps its vector, so only what is new to all of them is embedded.
    """
    place = folder / FOLDER / state
    try:
        data = opening.open_newest(place, owner)
    except StorageFailed:
        return Index.in_memory(embedder)
    with suppress(OSError):
        os.utime(place)
        _forget_old(folder / FOLDER)
    return Index(data, folder, embedder, owner)


def _forget_old(folder: Path) -> None:
    states = sorted((one for one in folder.iterdir() if one.is_dir()), key=_used, reverse=True)
    for state in states[_KEPT:]:
        for file in state.iterdir():
            file.unlink()
        state.rmdir()


def _used(folder: Path) -> float:
    return folder.stat().st_mtime
