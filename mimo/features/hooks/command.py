"""`mind hook`: what clients run at the moments of a session.

It reads one JSON object and prints one, or nothing. Whatever happens, it ends with status 0, and
what went wrong is a line in the log: a memory must never stand in the way of the work.
"""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from select import select
from typing import Any

MOST_BYTES = 1024 * 1024
MOST_SECONDS = 1.0


def main(argv: Sequence[str]) -> int:
    """Returns 0 after answering what a client tells on standard input."""
    try:
        told = _told(_read(0), argv[0] if argv else "", os.environ)
        if told is not None:
            _print(told)
    except BaseException as error:  # noqa: BLE001 - see above
        with suppress(BaseException):
            _log(error)
    return 0


def _log(error: BaseException) -> None:
    from mimo.features.hooks import scene
    from mimo.guard.privacy import for_log
    from mimo.surroundings import home_of, system_clock

    reason = getattr(error, "message", "") or f"{type(error).__name__}: {error}"
    scene.note(home_of(os.environ), system_clock(), f"failed: {for_log(reason)}")


def _told(data: bytes, hint: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Returns what to print for what was read; raises `ValueError` where that is no JSON."""
    if not data.strip():
        return None
    import json

    from mimo.features.hooks.events import recognised
    from mimo.features.hooks.moments import react
    from mimo.surroundings import home_of, system_clock

    event = recognised(json.loads(data), hint)
    if event is None:
        return None
    return react(event, home=home_of(environ), now=system_clock(), environ=environ)


def _read(descriptor: int) -> bytes:
    """Returns what stands on standard input until it ends.

    Raises `ValueError` where that is too much, and `TimeoutError` where it takes too long.
    """
    deadline = time.monotonic() + MOST_SECONDS
    parts: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select([descriptor], [], [], left)[0]:
            raise TimeoutError("standard input did not end in time")
        part = os.read(descriptor, 65_536)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise ValueError("more than 1 MiB on standard input")


def _print(told: dict[str, Any]) -> None:
    import json

    data = f"{json.dumps(told)}\n".encode("ascii")
    while data:
        data = data[os.write(1, data) :]
