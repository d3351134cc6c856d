"""The surroundings of a command: the clock, and the user who is asked and sees progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from mimo.frozen import NamedTuple

Clock = Callable[[], datetime]

Progress = Callable[[str, int, int], None]
"""Called with the name of a step, the number of finished items, and the total."""


NO = "no"
"""The choice that declines."""


class Question(NamedTuple):
    """A question that only a person can answer."""

    text: str
    choices: tuple[str, ...]
    about: tuple[str, ...] = ()
    """The digests of the texts that it shows: a server asks no more about a declined one."""
    default: str = ""
    """The choice for an empty line at the terminal; empty if there is none."""


Ask = Callable[[Question, float], str | None]
"""Asks a question, and returns the choice; None if there is none within the given seconds, an empty
text if the user declined. Nothing is written before: a client may repeat the call to answer."""


class Timer(NamedTuple):
    """Functions that measure time and wait."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
