"""`mind hook`: the program that clients run at the moments of a session.

It reads one JSON object from standard input and prints one, or nothing. It always exits with
status 0 and writes errors to a log: a memory must never get in the way of the work. Each moment
imports only its own modules, because clients wait for a hook.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from select import select

from mimo.data.disk import home_of, shared, system_clock
from mimo.data.loads import loads
from mimo.features.hooks.events import Event, Moment, Say, answer, recognised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_BYTES = 1024 * 1024
MAX_SECONDS = 1.0
WAIT_SECONDS = 1.0
"""The time that a hook waits for other processes in all; clients end one after 5 s or more."""
_VARIABLES = {"COPILOT_PROJECT_DIR": "copilot", "GEMINI_PROJECT_DIR": "gemini"}
"""Variables that a client sets for its hooks, and its name."""


def main(argv: Sequence[str]) -> int:
    """Answers the event that a client sends on standard input; returns 0."""
    try:
        with shared(WAIT_SECONDS):
            answer = respond(_read(0), argv[0] if argv else "", os.environ)
        if answer is not None:
            _print(answer)
    except BaseException as error:  # noqa: BLE001 - see above
        with suppress(BaseException):
            _log(error)
    return 0


def respond(data: bytes, client: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Returns the answer to the JSON of a client. Raises `ValueError` if `data` is not JSON."""
    if not data.strip():
        return None
    # Clients run the hooks of others too; some can be recognised by a variable alone.
    by_variable = (name for variable, name in _VARIABLES.items() if environ.get(variable))
    event = recognised(loads(data), next(by_variable, client))
    if event is None:
        return None
    return react(event, home=home_of(environ), now=system_clock(), environ=environ)


def react(
    event: Event, *, home: Path, now: datetime, environ: Mapping[str, str]
) -> dict[str, Any] | None:
    """Returns the JSON to print for a client; None for nothing. Raises `MindError`."""
    if event.moment is Moment.OTHER or (event.moment is Moment.TOOL and not event.edits):
        return answer(event, Say())
    from mimo.features.hooks.scene import of_event

    scene, say = of_event(event, home=home, now=now, environ=environ), Say()
    if scene:
        from mimo.features.hooks.moments import in_session

        say = in_session(scene)
        if say.context or say.request:
            scene.record()
    if scene is None or scene.is_outside:
        from mimo.features.hooks import remote

        # Without a project here, that of a team's server may be for this folder.
        reply = remote.ask(event, home=home, now=now, environ=environ)
        context = "\n".join(filter(None, (say.context, reply.context)))
        say = reply._replace(context=context, notice=reply.notice or say.notice)
    return answer(event, say)


def _log(error: BaseException) -> None:
    from mimo.features.hooks import scene
    from mimo.guard.privacy import for_log

    reason = getattr(error, "message", "") or f"{type(error).__name__}: {error}"
    scene.log_line(home_of(os.environ), system_clock(), f"failed: {for_log(reason)}")


def _read(descriptor: int) -> bytes:
    """Returns everything on standard input.

    Raises `ValueError` if that is more than `MAX_BYTES`, and `TimeoutError` if it takes longer
    than `MAX_SECONDS`.
    """
    deadline = time.monotonic() + MAX_SECONDS
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
        if size > MAX_BYTES:
            raise ValueError("more than 1 MiB on standard input")


def _print(answer: dict[str, Any]) -> None:
    data = f"{json.dumps(answer)}\n".encode("ascii")
    while data:
        data = data[os.write(1, data) :]
