"""Command lines that a running server answers, before the command line itself is loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from mimo.operations.asking import ask, surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATHS = frozenset(
    {
        "search",
        "search by-topic",
        "search by-context",
        "search recent",
        "recall",
        "list",
        "show",
        "status",
        "memory search",
        "memory list",
    }
)
"""The commands that are answered: they read the project's memory, and nothing of their process."""

_COMMANDS = frozenset(path.partition(" ")[0] for path in PATHS)

COMPLETING = "_MIND_COMPLETE"
"""Set by the scripts in mimo/completions/: the arguments are then an unfinished command line."""


def answer(argv: Sequence[str]) -> int | None:
    """Prints the answer of a server to a command line, and returns the exit status.

    Returns None if no server answers it: then nothing was printed.
    """
    environ = os.environ
    completes = bool(environ.get(COMPLETING))
    first = next((word for word in argv if not word.startswith("-")), "")
    if not completes and first not in _COMMANDS:
        return None
    home = environ.get("MIND_HOME") or f"{environ.get('HOME', '')}/.mind"
    if not home.startswith("/") or environ.get("MIND_PROJECT"):
        return None
    # A server would look for the path from its own folder.
    if "--project" in " ".join(argv):
        return None
    try:
        folder = os.getcwd()  # noqa: PTH109 - pathlib takes longer than the answer
    except OSError:
        return None
    root = root_around(folder)
    if root is None or sys.stdout is None:
        return None
    shows = sys.stdout.isatty() and environ.get("TERM") != "dumb"
    reply = ask(
        home,
        root,
        {
            "ask": "completion" if completes else "command",
            "argv": list(argv),
            "folder": folder,
            "path": environ.get("PATH", "") if completes else "",
            "screen": shows,
            "wide": (sys.stdout.encoding or "utf-8").lower().startswith("utf"),
            **surroundings(environ),
        },
    )
    return _print(reply) if reply is not None and _is_whole(reply) else None


def _is_whole(reply: Mapping[str, Any]) -> bool:
    """Returns whether a reply has everything that is printed."""
    notes, calls = reply.get("notes"), reply.get("calls", [])
    return (
        isinstance(reply.get("status"), int)
        and isinstance(reply.get("text"), str)
        and isinstance(notes, list)
        and isinstance(calls, list)
        and isinstance(reply.get("options", {}), dict)
    )


def _print(reply: Mapping[str, Any]) -> int:
    """Prints a reply and returns its exit status."""
    from io import TextIOWrapper

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    for line in reply["notes"]:
        with suppress(OSError, AttributeError, ValueError):
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
    if calls := reply.get("calls"):
        from mimo.rendering.results import replay

        replay(calls, reply["options"])
    try:
        sys.stdout.write(reply["text"])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        from mimo import rendering
        from mimo.errors import StorageFailed

        rendering.give_up_stdout()
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
