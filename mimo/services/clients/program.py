"""Clients whose own program must change their configuration, since they rewrite it all the time."""

import json
import shlex
from pathlib import Path
from typing import Any

from mimo.domain.clients import edits as editing
from mimo.domain.clients.client import SERVER, Client, Scope
from mimo.errors import Conflict, MindError, StorageFailed
from mimo.services.clients.machine import Machine
from mimo.services.clients.plans import Step
from mimo.store import client_files

_SECONDS = 60


def add(client: Client, here: Machine, *, force: bool, dry_run: bool) -> Step:
    """Returns what was done so that the user's configuration has our entry.

    Raises `Conflict` where something else has our name, and `StorageFailed`.
    """
    command = "mind" if here.which("mind") else here.executable
    value = dict(client.server(Scope.USER, command, project=None, home=here.home).value)
    present = _present(client, here)
    if present is not None and (present == value or (editing.is_ours(present) and not force)):
        return Step(file=_file(client, here), action="unchanged")
    if present is not None and not force:
        raise Conflict(
            f"`{_file(client, here)}` has an entry `{SERVER}` that differs",
            hint="nothing was changed; `--force` puts ours in its place",
        )
    words = ["add-json", "--scope", "user", SERVER, json.dumps(value, separators=(",", ":"))]
    if present is not None and not dry_run:
        _run(client, here, ["remove", "--scope", "user", SERVER])
    return _run(client, here, words, dry_run=dry_run)


def remove(client: Client, here: Machine, *, dry_run: bool) -> Step:
    """Returns what was done so that the user's configuration has our entry no more."""
    present = _present(client, here)
    if present is None:
        return Step(file=_file(client, here), action="unchanged")
    if not editing.is_ours(present):
        told = f"the entry `{SERVER}` is somebody else's"
        return Step(file=_file(client, here), action="unchanged", told=told)
    return _run(client, here, ["remove", "--scope", "user", SERVER], dry_run=dry_run)


def _file(client: Client, here: Machine) -> Path:
    return Path(client.files[Scope.USER].places[0].format_map(here.places))


def _present(client: Client, here: Machine) -> Any:
    file = client.files[Scope.USER]
    try:
        text = client_files.look(_file(client, here), within=None).text
        return editing.at(editing.load(file.format, text), (client.section, SERVER))
    except MindError:
        return None  # its own program says what is wrong with it


def _run(client: Client, here: Machine, words: list[str], *, dry_run: bool = False) -> Step:
    """Returns what came of the client's own program; where it is not there, what to run."""
    import subprocess

    name = str(client.program)
    line = shlex.join([name, "mcp", *words])
    found = here.which(name)
    if dry_run or found is None:
        why = "would run" if found else f"`{name}` is not on the PATH; run where it is"
        return Step(file=_file(client, here), action="yours", told=f"{why}: {line}")
    try:
        done = subprocess.run(
            [found, "mcp", *words],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StorageFailed(f"`{line}` failed: {error}", hint="run it yourself") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise StorageFailed(f"`{line}` failed: {said}", hint="run it yourself to see more")
    return Step(file=_file(client, here), action="changed", told=f"ran {line}")
