"""What a memory gets from where it is used: time, and somebody to tell and to ask."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

Clock = Callable[[], datetime]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is in all."""


class Timer(NamedTuple):
    """How time that passes is measured, and waited for."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def system_clock() -> datetime:
    """Returns the time of day in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the one place where the clock is read
