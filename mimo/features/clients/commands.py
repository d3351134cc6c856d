"""`mind install` and `mind uninstall`, for programs that speak MCP."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from mimo.commands.spec import Arg, Effect, Needs, Omitted, Out, Surface, command
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.features import clients
from mimo.features.clients import Machine, Step, machine, scope_of
from mimo.features.clients.table import Client, ClientName, Scope, client
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.mind import Mind
from mimo.rendering.results import render
from mimo.rendering.screen import Part, Screen, accent, dim, good, warn

For = Annotated[
    Scope | None,
    Arg("For all users of the project or for you everywhere (default project, if any)"),
]
DryRun = Annotated[bool, Arg("Show the changes without making them")]


HOME_SHARED = (
    "the project's files name this machine's MIND_HOME; if they are shared, use --scope user"
)
NOT_FOUND = "`mind` is not on your PATH, where clients look for it: pipx install mimo"


class Action(StrEnum):
    """The change of a file."""

    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"
    UNCHANGED = "unchanged"
    YOURS = "yours"


@frozen
class FileRow:
    """A file of a client and its change."""

    file: str
    action: Annotated[Action, Out("`yours` if the user must do it")]
    note: Annotated[Omitted[str], Out("Remark on the change", omit=True)] = None
    backup: Annotated[Omitted[str], Out("Copy of the earlier content", omit=True)] = None
    diff: Annotated[Omitted[str], Out("The change as a unified diff", omit=True)] = None


@frozen
class ClientRow:
    """A client and its state on this machine."""

    client: ClientName
    title: str
    found: Annotated[bool, Out("Whether it seems to be installed on this machine")]
    installed: Annotated[tuple[Scope, ...], Out("Scopes in which its configuration has the server")]
    problem: Annotated[Omitted[str], Out("Why its configuration can't be read", omit=True)] = None


@frozen
class Installation:
    """The result of an installation, or the state of all clients if none was named."""

    client: Annotated[Omitted[ClientName], Out("The client that was named", omit=True)] = None
    scope: Annotated[Omitted[Scope], Out("The scope of the installation", omit=True)] = None
    dry_run: bool = False
    files: tuple[FileRow, ...] = ()
    then: Annotated[Omitted[str], Out("The next step in the client", omit=True)] = None
    clients: tuple[ClientRow, ...] = ()
    notice: Annotated[Omitted[str], Out("A problem that remains", omit=True)] = None


@command(
    "mind_install",
    cli="install",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, Conflict, StorageFailed),
    examples=(
        "mind install",
        "mind install claude-code",
        "mind install codex --scope user --dry-run",
    ),
)
def install(
    mind: Mind,
    client: Annotated[ClientName | None, Arg("The program (default: list all)")] = None,
    *,
    scope: For = None,
    dry_run: DryRun = False,
    force: Annotated[bool, Arg("Replace an entry of the same name that differs")] = False,
) -> Installation:
    """Install mind into a program that speaks MCP

    Adds the server's entry, and the hooks of clients that have them, to the client's own
    configuration. Everything else in it stays byte for byte, and a copy is kept in
    $MIND_HOME/clients.
    """
    here = machine(mind)
    if client is None:
        return Installation(clients=tuple(map(_row, clients.states(mind, here))))
    chosen, for_scope = _chosen(client, scope, here)
    steps = clients.install(mind, chosen, for_scope, here, force=force, dry_run=dry_run)
    rows = tuple(map(_file, steps))
    changed = not dry_run and any(row.action is not Action.UNCHANGED for row in rows)
    return Installation(
        client=client,
        scope=for_scope,
        dry_run=dry_run,
        files=rows,
        then=chosen.after if changed else None,
        notice="; ".join(_notices(here, for_scope)) or None,
    )


@command(
    "mind_uninstall",
    cli="uninstall",
    effect=Effect.DESTROY,
    idempotent=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, Conflict, StorageFailed),
    examples=("mind uninstall claude-code", "mind uninstall zed --scope user --dry-run"),
)
def uninstall(
    mind: Mind,
    client: Annotated[ClientName, Arg("The program")],
    *,
    scope: For = None,
    dry_run: DryRun = False,
) -> Installation:
    """Remove mind from a program

    Removes only what `mind install` added. Memories are not changed.
    """
    here = machine(mind)
    chosen, for_scope = _chosen(client, scope, here)
    steps = clients.uninstall(mind, chosen, for_scope, here, dry_run=dry_run)
    return Installation(
        client=client, scope=for_scope, dry_run=dry_run, files=tuple(map(_file, steps))
    )


def _notices(here: Machine, scope: Scope) -> Iterator[str]:
    """Yields warnings for the user."""
    if here.which("mind") is None:
        yield NOT_FOUND
    if here.home and scope is Scope.PROJECT:
        yield HOME_SHARED


def _chosen(name: ClientName, scope: Scope | None, here: Machine) -> tuple[Client, Scope]:
    chosen = client(name)
    return chosen, scope_of(chosen, scope, here)


def _file(step: Step) -> FileRow:
    return FileRow(
        file=str(step.file),
        action=Action(step.action),
        note=step.remark,
        backup=str(step.backup) if step.backup else None,
        diff=step.diff,
    )


def _row(state: clients.State) -> ClientRow:
    return ClientRow(
        client=ClientName(state.client.name),
        title=state.client.title,
        found=state.is_here,
        installed=state.installed,
        problem=state.problem,
    )


# How the results print.


_MARKS: dict[Action, Part] = {
    Action.CREATED: good("✓ "),
    Action.CHANGED: good("✓ "),
    Action.REMOVED: good("✓ "),
    Action.UNCHANGED: dim("= "),
    Action.YOURS: warn("! "),
}


@render.register
def _(result: Installation, screen: Screen) -> None:
    if result.client is None:
        screen.table(("client", "here", "installed for"), map(_cells, result.clients))
        for row in (row for row in result.clients if row.problem):
            screen.note(str(row.problem))
        screen.line("install it with ", accent("`mind install CLIENT`"))
        return
    if result.notice:
        screen.note(result.notice)
    for file in result.files:
        _show_file(file, screen, dry_run=result.dry_run)
    if result.then:
        screen.line("next: ", result.then)


def _show_file(row: FileRow, screen: Screen, *, dry_run: bool) -> None:
    if row.action is not Action.YOURS:
        action = f"would be {row.action}" if dry_run and row.diff else row.action
        screen.line(_MARKS[row.action], f"{action}  ", accent(row.file))
    if row.note:
        screen.line(warn(row.note), indent=2)
    if row.backup:
        screen.line(dim(f"copy of the earlier content: {row.backup}"), indent=2)
    if row.diff:
        screen.verbatim(row.diff)


def _cells(row: ClientRow) -> tuple[Part, ...]:
    here = good("yes") if row.found else dim("no")
    installed = good(" ".join(row.installed)) if row.installed else dim("–")
    return accent(row.client), here, warn("can't be read") if row.problem else installed
