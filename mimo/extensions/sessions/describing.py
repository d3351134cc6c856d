"""The state of the kept sessions, for `mind doctor`."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from mimo.api import Command as Typed
from mimo.api import Hint, Mind, NamedTuple, count, disk
from mimo.extensions.sessions import store, turning_on
from mimo.extensions.sessions.indexing import sessions_of
from mimo.extensions.sessions.memories import counts
from mimo.extensions.sessions.readers.lines import LASTING, WITHOUT_ZSTD
from mimo.extensions.sessions.reading import without_secrets
from mimo.extensions.sessions.store import ClientState

_MANY = 0.1
"""The share of unknown records from which a client has probably changed its form."""

_FEW = 100
"""The number of records below which a share means nothing."""

_OTHERWISE = "what is before the damage is kept"
_HINTS = {
    WITHOUT_ZSTD: "pip install './mimo[zstd]' beside the checkout",
    os.strerror(errno.EACCES): "give yourself the right to read it, if you want to keep it",
}
"""The next step after a problem."""


class Line(NamedTuple):
    """A fact about the kept sessions, with a hint if it is a problem."""

    message: str
    hint: str = ""


def described(mind: Mind) -> tuple[Line, ...]:
    """Returns what `mind doctor` reports of the sessions.

    Raises `StorageFailed` for a database that is damaged or of a later version.
    """
    database, now = sessions_of(mind).store, mind.now()
    with database.reading() as sql:
        clients = store.summary(sql, now)
    if problem := turning_on.selection(mind).problem:
        return (Line(problem, "correct it: sessions are not read until then"),)
    read_at = disk.stamp(database.lock)
    if read_at is None:
        hint = Hint("read them with ", Typed("sessions index"))
        return (Line("sessions are on, and none was read yet", hint), *_of_memories(mind))
    sessions = sum(state.sessions for state in clients.values())
    size = sum(state.bytes for state in clients.values()) / 1e6
    text = f", {max(size, 0.1):,.1f} MB of text" if sessions else ""
    names = ", ".join(sorted(name for name, state in clients.items() if state.sessions))
    of_clients = f" of {names}" if names else ""
    time = disk.moment(read_at.mtime_ns / 1e9).astimezone(mind.zone)
    read = f"last read on {time:%Y-%m-%d at %H:%M}"
    summary = Line(f"{count(sessions, 'session')}{of_clients}{text}; {read}")
    lines = [line for item in sorted(clients.items()) for line in _of_client(*item)]
    return (summary, *lines, *_of_memories(mind))


def _of_memories(mind: Mind) -> Iterator[Line]:
    origins = [f"{origin} ({number})" for origin, number in sorted(counts(mind).items())]
    if origins:
        yield Line(f"files of clients are found, too: {', '.join(origins)}")


def _of_client(name: str, state: ClientState) -> Iterator[Line]:
    if state.missing:
        transcripts = count(state.missing, "transcript")
        yield Line(f"{transcripts} of {name} deleted since; what was read of them is kept")
    if state.records >= _FEW and state.unknown > _MANY * state.records:
        share = f"{state.unknown / state.records:.0%}".replace("%", " %")
        message = f"{share} of the records of {name} are unknown"
        yield Line(message, "update mind: the client changed its form")
    for problem, (number, path) in sorted(state.problems.items()):
        example = f"such as `{path}`" if number > 1 else f"`{path}`"
        message = f"{count(number, 'transcript')} of {name} can't be read: {problem} ({example})"
        (message,) = without_secrets([message])
        again = "a changed file is read" if problem.startswith(LASTING) else "each run tries"
        yield Line(message, f"{_HINTS.get(problem, _OTHERWISE)}; {again} again")
