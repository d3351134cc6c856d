"""What a memory gets from where it is used: time, a home, and somebody to tell and to ask."""

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
"""Called with what is being done, how much of it is done, and how much there is in all."""


class Question(NamedTuple):
    """Something that only a person can answer."""

    text: str
    choices: tuple[str, ...]


Ask = Callable[[Question, float], str | None]
"""Puts a question, and returns the choice, or None where none was made within so many seconds."""


class Timer(NamedTuple):
    """How time that passes is measured, and waited for."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def system_clock() -> datetime:
    """Returns the time of day in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the one place where the clock is read


def home_of(environ: Mapping[str, str]) -> Path:
    """Returns the user's own folder, a private place from now on: `$MIND_HOME`, or `~/.mind`.

    Raises `Invalid` if that is relative to a folder that does not exist.
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
    """Returns `$HOME`, or what the system has for the user; `/` for a user that it doesn't know."""
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
    """Returns what tells one state of a file from another; None where there is none."""
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None
