"""What ends a run from outside, as Ctrl-C does: it is written, and its program is killed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ENDING = [n for name in ("SIGTERM", "SIGHUP") if (n := getattr(signal, name, None))]


@contextmanager
def heeded() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP interrupt the block as Ctrl-C does, where this is a program's own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _: Any) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)
