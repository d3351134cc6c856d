"""The user's choice whether sessions are kept, and which."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import cache
from pathlib import Path

from mimo.api import (
    Call,
    Denied,
    Hint,
    Invalid,
    Mind,
    MindError,
    Operation,
    Registered,
    disk,
    earlier,
    policy,
)
from mimo.api import Command as Typed
from mimo.extensions.sessions.indexing import sessions_of
from mimo.extensions.sessions.readers import CLIENTS, reader_of
from mimo.extensions.sessions.reading import Reading, Selection, project_of

_READS = "mind_sessions_index"
"""The tool that a project's policy must permit to write, for its sessions to be kept."""


def check(call: Call) -> None:
    """Raises `Invalid` while sessions are off, and `Denied` for the user of a server."""
    if not call.sees_sessions:
        raise Denied(
            "sessions are for the user of this machine alone",
            hint="run mind on the machine where they were held",
        )
    if not earlier.is_on(call.mind):
        raise Invalid(
            "searching earlier sessions is off",
            hint=Hint(
                *("turn it on with ", Typed("config", "sessions.enabled", "on")),
                ": mind then reads the transcripts of clients; nothing leaves this machine",
            ),
        )


def project(mind: Mind) -> str:
    """Returns the main folder of the repository around; empty without one."""
    root = mind.project.root if mind.has_project else disk.working_directory()
    return project_of(str(root)) if root else ""


def selection(mind: Mind) -> Selection:
    """Returns the sessions that the user's settings and the projects ask for."""
    config, file = mind.config, mind.home / "config.toml"
    folders = [str(disk.expanded(folder)) for folder in config["sessions.exclude"]]
    stated = tuple(line for line in config.warnings if line.startswith(f"{file}: "))

    @cache
    def restriction(project: str) -> tuple[bool, bool]:
        return _restriction(mind, project)

    return Selection(
        clients=frozenset(config["sessions.clients"] or CLIENTS),
        excluded=(*folders, *map(os.path.realpath, filter(os.path.isabs, folders))),
        keep=timedelta(days=config["sessions.keep_days"]),
        most_bytes=config["sessions.max_mb"] * 1_000_000,
        permits=lambda project: not restriction(project)[0],
        removes=lambda project: restriction(project)[1],
        problem=next((line for line in stated if "sessions." in line), ""),
    )


def _restriction(mind: Mind, project: str) -> tuple[bool, bool]:
    """Returns whether a project forbids to keep its sessions, and whether the user approved that.

    What the user has not approved comes with a clone: it restricts, and removes nothing.
    """
    try:
        view = mind.at(Registered(Path(project), ""), stays=False) if project else None
        if view is None:
            return False, False
        try:
            config, policies = view.config, view.guard.policies()
            is_off = config["sessions.project"] == "off"
            is_approved = config.has_latest_text and not config.warnings
            asked = policy.Request(tool=_READS, operation=Operation.WRITE, at=mind.now())
            permits = not policies.faults and policies.judge(asked).permitted
            return is_off or not permits, is_off and is_approved
        finally:
            if view is not mind:
                view.close()
    except MindError:
        return True, False


def reading(mind: Mind) -> Reading:
    """Returns a run over the files of the clients, in the home folder of the user."""
    home = Path(mind.environ.get("HOME") or Path.home())
    readers = [reader_of(client) for client in CLIENTS]
    store = sessions_of(mind).store
    return Reading(store, readers, selection(mind), mind.environ, home, mind.now())
