"""Installing mind into the programs that speak MCP, and taking it out again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mimo.domain.clients import edits as editing
from mimo.domain.clients.client import SERVER, Client, Scope
from mimo.domain.clients.table import CLIENTS
from mimo.errors import MindError
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.clients import program
from mimo.services.clients.machine import Machine, place_of, targets
from mimo.services.clients.plans import Step, done, putting, read, taking
from mimo.store import client_files


@frozen
class State:
    """How a client is on this machine."""

    client: Client
    is_here: bool
    installed: tuple[Scope, ...]
    problem: str | None


def install(
    mind: Mind, client: Client, scope: Scope, here: Machine, *, force: bool, dry_run: bool
) -> Iterator[Step]:
    """Yields what was done, or would be, after every file was looked at and none refused.

    Raises `Conflict` where something else has our name, `Invalid` for a file that can't be read or
    changed in place, and `StorageFailed`.
    """
    plans = [putting(mind, client, one, force=force) for one in targets(client, scope, here)]
    if client.adds_itself and scope is Scope.USER:
        yield program.add(client, here, force=force, dry_run=dry_run)
    yield from (done(mind, plan, scope, dry_run=dry_run) for plan in plans)


def uninstall(
    mind: Mind, client: Client, scope: Scope, here: Machine, *, dry_run: bool
) -> Iterator[Step]:
    """Yields what was done, or would be. Raises as `install` does."""
    plans = [taking(mind, client, one) for one in targets(client, scope, here)]
    if client.adds_itself and scope is Scope.USER:
        yield program.remove(client, here, dry_run=dry_run)
    yield from (done(mind, plan, scope, dry_run=dry_run) for plan in plans)


def states(mind: Mind, here: Machine) -> Iterator[State]:
    """Yields how every client is on this machine."""
    for client in CLIENTS:
        traces = (Path(trace.format_map(here.places)) for trace in client.traces)
        runs = client.program is not None and here.which(client.program) is not None
        installed, problem = [], None
        for scope, entry in entries(client, here):
            if isinstance(entry, MindError):
                problem = entry.message
            elif editing.is_ours(entry):
                installed.append(scope)
        yield State(
            client=client,
            is_here=runs or any(trace.exists() for trace in traces),
            installed=tuple(installed),
            problem=problem,
        )


def entries(client: Client, here: Machine) -> Iterator[tuple[Scope, Any]]:
    """Yields what stands under our name in each scope, or the error of reading it."""
    for scope, file in client.files.items():
        if scope is Scope.PROJECT and here.project is None:
            continue
        path = place_of(file, here)
        try:
            data = read(client_files.look(path, within=None), file.format)
        except MindError as error:
            yield scope, error
        else:
            yield scope, editing.at(data, (client.section, SERVER))
