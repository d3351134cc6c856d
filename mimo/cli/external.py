"""Other programs as commands: `mind foo` runs `mind-foo` from the PATH, as git does.

Only a word that is not a command of mind is looked up, so that no program takes the place of one.
Entries of the PATH that depend on the working directory are left out: a file in a clone never
becomes a command.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress

from mimo.cli.options import COMMON, PROGRAMS, named
from mimo.commands import CommandTable
from mimo.errors import StorageFailed

PREFIX = "mind-"
"""The beginning of the names of the programs."""

RESERVED = frozenset({"merge-driver", *PROGRAMS})
"""Words of mind that are not in the table of commands."""

_WORD = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)


def is_own(commands: CommandTable, word: str) -> bool:
    """Returns whether a first word is of mind itself: a command, a group or a second name."""
    return word in commands.aliases or word in RESERVED or word in commands.below("")


def found(commands: CommandTable, path: str | None = None) -> dict[str, str]:
    """Returns the words that run other programs, in order, each with the program's full path.

    `path` is a list of folders in the form of PATH, which is the default.
    """
    programs: dict[str, str] = {}
    for folder in _folders(path):
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                word = entry.name.removeprefix(PREFIX)
                if word == entry.name or word in programs or is_own(commands, word):
                    continue
                if _WORD.fullmatch(word) and _runs(entry.path):
                    programs[word] = entry.path
    return dict(sorted(programs.items()))


def program_of(commands: CommandTable, word: str, path: str | None = None) -> str | None:
    """Returns the full path of the program that a word runs, or None if it runs none."""
    if is_own(commands, word) or not _WORD.fullmatch(word):
        return None
    places = (os.path.join(folder, PREFIX + word) for folder in _folders(path))  # noqa: PTH118
    return next(filter(_runs, places), None)


def line_of(commands: CommandTable, words: Sequence[str]) -> list[str] | None:
    """Returns the program that a command line runs, with its arguments, or None.

    As for a command of mind, options of every command may be before the word: the program gets
    them first. `mind help foo` is `mind foo --help`.
    """
    names, tail = named(COMMON), list(words)
    while tail and tail[0].partition("=")[0] in names:
        option, _ = names[tail[0].partition("=")[0]]
        del tail[: 1 if option.is_flag or "=" in tail[0] else 2]
    if not tail:
        return None
    options, (word, *after) = list(words[: len(words) - len(tail)]), tail
    if word == "help" and len(after) == 1:
        word, after = after[0], ["--help"]
    path = program_of(commands, word)
    return [path, *options, *after] if path else None


def run(line: Sequence[str]) -> None:
    """Replaces this process by a program. Raises `StorageFailed` if the program can't be run."""
    import signal

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError, ValueError):
            stream.flush()
    # Python ignores it, and a program inherits that: at a closed pipe it would not end.
    old_handler = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(line[0], list(line))  # noqa: S606 - no shell
    except OSError as error:
        signal.signal(signal.SIGPIPE, old_handler)
        reason = (error.strerror or "unknown reason").lower()
        raise StorageFailed(
            f"`{line[0]}` can't be run: {reason}",
            hint="a script needs a first line such as `#!/bin/sh`",
        ) from None


def _folders(path: str | None) -> list[str]:
    """Returns the absolute folders of a PATH, each once."""
    value = os.environ.get("PATH", "") if path is None else path
    return [folder for folder in dict.fromkeys(value.split(os.pathsep)) if folder.startswith("/")]


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - cheaper than a Path
