"""Command lines that a running server answers, before the command line itself is loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from mimo.operations.asking import agent_of, ask, surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATHS = frozenset(
    "search,search by-topic,search by-context,search recent,recall,list,show,status,memory search,"
    "memory list".split(",")
)
"""The commands that are answered: they read the project's memory, and nothing of their process."""

COMPLETING = "_MIND_COMPLETE"
"""Set by the scripts in mimo/completions/: the arguments are then an unfinished command line."""


def answer(argv: Sequence[str]) -> int | None:
    """Prints the answer of a server to a command line, and returns the exit status.

    Returns None if no server answers it: then nothing was printed.
    """
    environ = os.environ
    command = next((word for word in argv if not word.startswith("-")), "")
    home = environ.get("MIND_HOME") or f"{environ.get('HOME', '')}/.mind"
    is_answered = any(path.partition(" ")[0] == command for path in PATHS)
    if not is_answered or environ.get(COMPLETING) or not home.startswith("/"):
        return None
    # A server would look for the path from its own folder.
    if environ.get("MIND_PROJECT") or "--project" in " ".join(argv) or sys.stdout is None:
        return None
    try:
        folder = os.getcwd()  # noqa: PTH109 - pathlib takes longer than the answer
        size = _size() if sys.stdout.isatty() and environ.get("TERM") != "dumb" else None
    except OSError:
        return None
    root = root_around(folder)
    is_wide = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    if root is None or not is_wide or (size and {"COLUMNS", "LINES"} & set(environ)):
        return None
    request = {"ask": "command", "argv": list(argv), "folder": folder, "agent": agent_of(environ)}
    screen = {"size": size, "colour": not environ.get("NO_COLOR")}
    reply = ask(home, root, {**request, **screen, **surroundings(environ)})
    if reply is None or {"status", "text", "notes", "pages"} - set(reply):
        return None
    return _print(reply, size)


def _size() -> tuple[int, int]:
    """Returns the columns and lines of the terminal. Raises `OSError`."""
    columns, lines = os.get_terminal_size(sys.stdout.fileno())
    return columns or 80, lines or 25


def _print(reply: Mapping[str, Any], size: tuple[int, int] | None) -> int:
    """Prints a reply and returns its exit status."""
    from io import TextIOWrapper

    text = str(reply["text"])
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    with suppress(OSError, AttributeError, ValueError):
        sys.stderr.write("".join(f"{line}\n" for line in reply["notes"]))
        sys.stderr.flush()
    try:
        if size and reply["pages"] and text.count("\n") >= size[1]:
            from mimo.rendering import page

            page(text)
        else:
            sys.stdout.write(text)
            sys.stdout.flush()
    except OSError as error:
        from mimo import rendering
        from mimo.errors import StorageFailed

        rendering.give_up_stdout()
        if not isinstance(error, BrokenPipeError):
            failed = StorageFailed(f"the answer could not be written: {error.strerror}")
            return rendering.report(failed, as_wire="--json" in sys.argv)
    return int(reply["status"])


def root_around(folder: str) -> str | None:
    """Returns the nearest folder from this one upward with a `.mind/`, or None."""
    while not os.path.lexists(f"{folder}/.mind/config.toml"):
        if folder in ("", "/"):
            return None
        folder = folder.rpartition("/")[0]
    return folder
