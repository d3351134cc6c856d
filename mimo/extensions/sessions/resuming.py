"""`mind sessions resume`: the command of a client that continues a session."""

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from mimo.api import (
    Arg,
    Call,
    Denied,
    Invalid,
    NotFound,
    Omitted,
    Out,
    StorageFailed,
    disk,
    frozen,
)
from mimo.extensions.sessions import store
from mimo.extensions.sessions.commands import SessionId, opened, reads
from mimo.extensions.sessions.model import Kind
from mimo.extensions.sessions.readers import resuming


@frozen
class Resumption:
    """The way to continue a session."""

    line: Annotated[str, Out("The command line for a shell")]
    folder: Annotated[str, Out("The folder to run it in")]
    command: Annotated[tuple[str, ...], Out("The client's command, word by word")]
    notice: Omitted[str] = None


def continued(
    call: Call,
    run: Callable[[Call, str, Mapping[str, Any]], object],
    arguments: Mapping[str, Any],
    *,
    colour: bool,
) -> object:
    """Returns the way to continue a session, or continues it on the terminal, which returns None.

    Raises `Invalid` if the client is not installed, and `NotFound` if the folder is missing.
    """
    way = run(call, "sessions resume", arguments)
    if not arguments.get("run") or not isinstance(way, Resumption):
        return way
    if way.notice:
        raise NotFound(way.notice, hint=f"to continue it elsewhere: {way.line}")
    program = disk.program(way.command[0], call.mind.environ)
    if program is None:
        raise Invalid(f"`{way.command[0]}` is not installed", hint=way.line)
    previous = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the client alone.
    try:
        subprocess.run([program, *way.command[1:]], cwd=way.folder, check=False)
    finally:
        signal.signal(signal.SIGINT, previous)
    return None


@reads(
    "mind_sessions_resume",
    cli="sessions resume",
    errors=(Invalid, Denied, NotFound, StorageFailed),
    examples=("mind sessions resume cc-1ccba294", "mind sessions resume cc-1ccba294 --run"),
    screen=continued,
)
def resume(
    call: Call,
    session: SessionId,
    *,
    run: Annotated[bool, Arg("Run it, on a terminal")] = False,
) -> Resumption:
    """Print the client's command that continues a session

    It begins in the folder in which the session began; `--run` runs it there.
    """
    archive = opened(call)
    if run and call.agent:
        raise Denied("an agent can't continue a session", hint="the user can, at a terminal")
    with archive.store.reading() as sql:
        chosen = store.find(sql, session)
        paths = store.paths_of(sql, chosen)
    words = resuming(chosen.client, chosen.native_id)
    if not words or chosen.kind is Kind.SUBAGENT:
        raise Invalid(
            f"{chosen.client} has no command that continues `{chosen.id}`",
            hint="its own window may list it",
        )
    folder, notice = chosen.cwd, None
    if not store.is_folder(folder):
        notice = f"its folder `{folder}` is missing"
        folder = chosen.project if store.is_folder(chosen.project) else ""
    elif paths and not run and not any(map(os.path.exists, paths)):  # Else the client reports it.
        notice = f"{chosen.client} deleted its transcript, so it may not know the session"
    line = shlex.join(words)
    return Resumption(
        line=f"cd {shlex.quote(folder)} && {line}" if folder else line,
        folder=folder,
        command=words,
        notice=notice,
    )
