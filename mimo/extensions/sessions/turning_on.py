"""Whether the user turned sessions on, and which of them are wanted."""

from __future__ import annotations

from pathlib import Path

from mimo.api import Call, Denied, Hint, Invalid, Mind
from mimo.api import Command as Typed
from mimo.extensions.sessions.readers import CLIENTS, reader_of
from mimo.extensions.sessions.reading import Reading, Wanted


def is_on(mind: Mind) -> bool:
    """Returns whether the user turned sessions on."""
    return bool(mind.config["sessions.enabled"] == "on")


def check(call: Call) -> None:
    """Raises `Invalid` while sessions are off, and `Denied` for the user of a server."""
    if not call.owns_home:
        raise Denied(
            "sessions are for the user of this machine alone",
            hint="run mind on the machine where they were held",
        )
    if not is_on(call.mind):
        raise Invalid(
            "searching earlier sessions is off",
            hint=Hint(
                *("turn it on with ", Typed("config", "sessions.enabled", "on")),
                ": it reads what agents' clients keep on this machine, and stays on it",
            ),
        )


def wanted(mind: Mind) -> Wanted:
    """Returns the sessions that the user's settings ask for."""
    clients = mind.config["sessions.clients"] or CLIENTS
    return Wanted(clients=frozenset(clients), excluded=tuple(mind.config["sessions.exclude"]))


def reading(mind: Mind) -> Reading:
    """Returns a run over the files of the clients, in the home folder of the user."""
    from mimo.extensions.sessions.indexing import sessions_of

    home = Path(mind.environ.get("HOME") or Path.home())
    readers = [reader_of(client) for client in CLIENTS]
    store = sessions_of(mind).store
    return Reading(store, readers, wanted(mind), mind.environ, home, mind.now())
