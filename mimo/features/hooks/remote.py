"""The hooks of users without a clone: a team's server has the memory, and answers their events.

A server that does not answer in time is not asked again for a while: a memory must never get in the
way of the work.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain
from pathlib import Path

from mimo.data import files
from mimo.data.loads import loads
from mimo.errors import Invalid, MindError
from mimo.features.hooks.events import MAX_CHARS, MAX_EDITS, Dialect, Edit, Event, Moment, Say
from mimo.features.hooks.scene import Scene, log_line, text_of_file
from mimo.project import servers

HEADER = "x-mind-hook"
"""The header of a request with an event, to the address of the MCP server."""

MOMENTS = (Moment.START, Moment.PROMPT, Moment.TOOL)
"""The moments that a server answers; summaries of a session stay with the user."""

MOST_BYTES = 1024 * 1024
_MAX_PROMPT = 4_000
_MAX_TEXT = 100_000
SECONDS = 2.0
PAUSE_SECONDS = 30.0
_DOWN = "logs/server-down"
"""A file whose time is that of the last server that did not answer."""


def ask(event: Event, *, home: Path, now: datetime, environ: Mapping[str, str]) -> Say:
    """Returns the answer of the server for the event's folder; an empty one if there is none."""
    folder = Path(event.folder or ".").absolute()
    url = servers.of_folder(home, folder)
    if (
        url is None
        or event.moment not in MOMENTS
        or (event.moment is Moment.TOOL and not event.edits)
    ):
        return Say()

    def log(text: str) -> None:
        log_line(home, now, f"{event.dialect} {event.name}: {text}")

    try:
        token = servers.token_of(home, url, environ)
    except MindError as error:
        log(f"the server is not asked: {error.message}")
        return Say()
    if not token:
        log(f"the server is not asked: `{servers.TOKEN}` is not set")
        return Say()
    with suppress(OSError):
        if 0 <= time.time() - (home / _DOWN).stat().st_mtime < PAUSE_SECONDS:
            return Say()
    answer = _answer(url, token, _data(event, folder))
    if answer is None:
        files.replace(home / _DOWN, b"")
        log("the server does not answer; it is asked again later")
        return Say()
    status, data = answer
    if status != 200:
        log(f"the server refuses: {status}")
        return Say()
    try:
        fields = loads(data)
        texts = [fields.get(name) for name in ("context", "notice", "stop")]
    except (ValueError, AttributeError):
        log("the reply is not an answer of mind")
        return Say()
    context, notice, stop = (text if isinstance(text, str) else "" for text in texts)
    return Say(context=context[: MAX_CHARS + 1], notice=notice, stop=stop)


def _data(event: Event, folder: Path) -> bytes:
    """Returns an event as JSON without secrets, with the lines that edits add to the user's code.

    That is in the folder, or in the working tree around it.
    """
    from mimo.features.pitfalls.checking import added
    from mimo.guard.privacy import redacted

    top = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    edits: list[tuple[str, str]] = []
    room = MOST_BYTES // 2
    for edit in event.edits:
        path = Path(os.path.normpath(folder / edit.path))
        if not path.is_relative_to(top):
            continue
        text = edit.text[:_MAX_TEXT]
        lines = [""] * (text.count("\n") + 1)
        for hunk in added(edit.path, text, edit.old or text_of_file(folder, edit.path)).hunks:
            lines[hunk.start - 1 : hunk.start - 1 + len(hunk.lines)] = hunk.lines
        edits.append((str(path.relative_to(top)), "\n".join(lines)))
        room -= len(json.dumps(edits[-1]))
        if room < 0:
            edits.pop()
    fields = {
        "client": event.dialect.value,
        "name": event.name,
        "moment": event.moment.value,
        "session": event.session,
        "source": event.source,
        "prompt": event.prompt[:_MAX_PROMPT],
        "edits": edits,
    }
    return json.dumps(redacted(fields, allowing=False).value).encode("ascii")


def _answer(url: str, token: str, data: bytes) -> tuple[int, bytes] | None:
    """Returns the status and the text of the answer; None if there is none in time.

    A name that is not found takes longer than any limit of a socket, hence the thread.
    """
    from http.client import HTTPConnection, HTTPException, HTTPSConnection
    from threading import Thread
    from urllib.parse import urlsplit

    parts, answers = urlsplit(url), list[tuple[int, bytes]]()
    headers = {"Authorization": f"Bearer {token}", HEADER: "1", "Content-Type": "application/json"}

    def send() -> None:
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        http = kind(parts.hostname or "", parts.port, timeout=SECONDS)
        try:
            http.request("POST", parts.path, data, headers)
            reply = http.getresponse()
            answers.append((reply.status, reply.read(MOST_BYTES)))
        except (OSError, HTTPException, ValueError):
            pass
        finally:
            http.close()

    thread = Thread(target=send, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return answers[0] if answers else None


# The server.


def answered(
    data: bytes, *, home: Path, root: Path, now: datetime, user: str, environ: Mapping[str, str]
) -> dict[str, str]:
    """Returns the answer of a project to an event of a user. Raises `MindError`."""
    from mimo.features.hooks.moments import in_session

    event = _event(data, user)
    scene = Scene(event, home=home, root=root, now=now, environ=environ, user=user)
    say = in_session(scene)
    if say.context:
        scene.record()
    # At other moments, notices are about the server's own files.
    notice = say.notice if event.moment is Moment.TOOL else ""
    return {"context": say.context, "notice": notice, "stop": say.stop}


def _event(data: bytes, user: str) -> Event:
    """Returns the event in a request. Raises `Invalid`."""
    try:
        fields = loads(data)
        moment = MOMENTS[MOMENTS.index(fields["moment"])]
        texts = [fields[name] for name in ("name", "session", "source", "prompt")]
        edits = [Edit(*parts) for parts in fields["edits"][:MAX_EDITS]]
        dialect, all_texts = Dialect(fields["client"]), [*texts, *chain.from_iterable(edits)]
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid("the request has no event of a hook") from error
    if not all(isinstance(text, str) for text in all_texts):
        raise Invalid("the request has no event of a hook")
    name, session, source, prompt = texts
    return Event(
        dialect=dialect,
        name=name[:200],
        moment=moment,
        session=f"{user}\n{session}"[:400],
        source=source,
        prompt=prompt[:_MAX_PROMPT],
        edits=tuple(edits),
    )
