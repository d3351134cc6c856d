"""The viewer: memories in a browser, served on this machine or written into one file."""

from __future__ import annotations

from functools import cache
from importlib import resources

from mimo.api import Extension

EXTENSION = Extension(
    commands={
        "Find": {
            "web": "mimo.extensions.web.commands",
            "report": "mimo.extensions.web.commands",
        }
    },
    synonyms={"browser": ("web",), "serve": ("web",), "server": ("web",), "ui": ("web",)},
)


@cache
def static_files() -> dict[str, bytes]:
    """Returns the files of the page by name."""
    folder = resources.files("mimo.extensions.web") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
