"""What in the clients' configurations would not work as somebody meant it."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from mimo.domain.clients import edits as editing
from mimo.domain.clients.client import Client, ClientName, File, Scope
from mimo.domain.clients.table import CLIENTS, PLUGIN, client
from mimo.errors import MindError
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.clients import entries
from mimo.services.clients.machine import Machine, machine, place_of
from mimo.services.clients.plans import read
from mimo.store import client_files


@frozen
class Doubt:
    """One thing that would not work, and what to do about it."""

    message: str
    hint: str


def doubts(mind: Mind) -> Iterator[Doubt]:
    """Yields what would not work: programs that are gone, hooks that run twice or not at all."""
    here = machine(mind)
    for one in CLIENTS:
        yield from _gone(one, here)
    yield from _twice(here)
    yield from _in_two_places(here)


def _gone(one: Client, here: Machine) -> Iterator[Doubt]:
    for scope, entry in entries(one, here):
        if isinstance(entry, MindError) or not editing.is_ours(entry):
            continue
        command = editing.command_of(entry)[0]
        if here.which(command) is not None:
            continue
        bare = not PurePath(command).is_absolute()
        yield Doubt(
            message=f"{place_of(one.files[scope], here)} starts `{command}`, which is not there",
            hint="put it on your PATH: pipx install mimo"
            if bare
            else f"mind install {one.name} --scope {scope} --force",
        )


def _twice(here: Machine) -> Iterator[Doubt]:
    """Yields where both the plugin and the settings of Claude Code run our hooks."""
    hooks = client(ClientName.CLAUDE_CODE).hooks
    found = (
        {scope: _data(file, scope, here) for scope, file in hooks.files.items()} if hooks else {}
    )
    if not any(editing.at(data, ("enabledPlugins", PLUGIN)) is True for data in found.values()):
        return
    for scope, data in found.items():
        if editing.has_hook(data, ("hooks", "SessionStart")):
            yield Doubt(
                message=f"the plugin {PLUGIN} and {scope} settings both run mind's hooks",
                hint=f"mind uninstall {ClientName.CLAUDE_CODE} --scope {scope}",
            )


def _in_two_places(here: Machine) -> Iterator[Doubt]:
    """Yields where Codex has hooks in both of its files, of which it reads one."""
    codex = client(ClientName.CODEX)
    for scope, file in codex.hooks.files.items() if codex.hooks else ():
        ours = editing.has_hook(_data(file, scope, here), ("hooks", "SessionStart"))
        if ours and editing.at(_data(codex.files[scope], scope, here), ("hooks",)):
            other = place_of(codex.files[scope], here)
            yield Doubt(
                message=f"Codex has hooks in {other} and in hooks.json",
                hint="it reads them from one of the two: put all into one",
            )


def _data(file: File, scope: Scope, here: Machine) -> Any:
    """Returns the data in a file; None where it is not there or can't be read."""
    if scope is Scope.PROJECT and here.project is None:
        return None
    try:
        return read(client_files.look(place_of(file, here), within=None), file.format)
    except MindError:
        return None
