"""The surroundings of a memory: clock, home folder, working directory, and the user to ask."""

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from mimo import disk
from mimo.errors import Invalid

Clock = Callable[[], datetime]

Progress = Callable[[str, int, int], None]
"""Called with the name of a step, the number of finished items, and the total."""


class Question(NamedTuple):
    """A question that only a person can answer."""

    text: str
    choices: tuple[str, ...]


Ask = Callable[[Question, float], str | None]
"""Asks a question, and returns the choice; None if there is none within the given seconds."""


class Timer(NamedTuple):
    """Functions that measure time and wait."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def system_clock() -> datetime:
    """Returns the current time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - only here the clock is read


def home_of(environ: Mapping[str, str]) -> Path:
    """Returns the user's folder, `$MIND_HOME` or `~/.mind`, and makes it a private place.

    Raises `Invalid` if the path is relative and the working directory does not exist.
    """
    given = environ.get("MIND_HOME")
    try:
        home = Path(given).expanduser().absolute() if given else _user_folder() / ".mind"
    except (OSError, RuntimeError) as error:
        raise Invalid(
            f"`MIND_HOME` is `{given}`, which can't be resolved: {error}",
            hint="set it to an absolute path",
        ) from error
    disk.keep_private(home)
    return home


def _user_folder() -> Path:
    """Returns `$HOME`, or the folder in the system's list of users; `/` for an unlisted user."""
    if Path(os.environ.get("HOME", "")).is_absolute():
        return Path.home()
    try:
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):
        return Path("/")


def working_directory() -> Path | None:
    """Returns the working directory; None if it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def stamp_of(path: Path | None) -> tuple[int, int, int] | None:
    """Returns a value that changes with a file; None if the file is missing."""
    try:
        status = path.stat() if path else None
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if status else None
