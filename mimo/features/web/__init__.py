"""The viewer: memories in a browser, served on this machine or written into one file."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def static_files() -> dict[str, bytes]:
    """Returns the files of the page by name."""
    folder = resources.files("mimo.features.web") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
