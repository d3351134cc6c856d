"""`mind projects`: the projects that this machine knows."""

from pathlib import Path
from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, command
from mimo.data import disk
from mimo.errors import AmbiguousId, Command, Hint, NotFound, StorageFailed, join_texts
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.operations import across, disclosure, finding
from mimo.project import projects
from mimo.project.projects import Registered
from mimo.rendering import Part, Screen, accent, dim, good, strong, warn
from mimo.rendering.results import count, render


@frozen
class ProjectRow:
    """A registered project."""

    name: str
    path: str
    memories: Annotated[int | None, Out("Number of memories; null if they can't be counted")]
    missing: Annotated[bool, Out("Whether its folder, or the `.mind/` in it, does not exist")]
    here: Annotated[bool, Out("Whether it is the project of the working directory")]


@frozen
class ProjectRows:
    """The registered projects."""

    projects: Annotated[tuple[ProjectRow, ...], Out("Oldest first")]
    notice: Annotated[Omitted[str], Out("Projects that can't be read")] = None


@frozen
class Forgotten:
    """Projects that are not registered any more."""

    projects: Annotated[tuple[str, ...], Out("Their paths")]
    missing: Annotated[bool, Out("Whether their folders were missing")]


@command(
    "mind_projects",
    cli="projects",
    effect=Effect.READ,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ),
    errors=(StorageFailed,),
    examples=("mind projects", "mind projects --json"),
)
def list_(call: Call) -> ProjectRows:
    """List the projects on this machine

    `mind init` registers a project, and `mind search --scope all` searches all of them.
    """
    counts: dict[Path, int] = {}

    def counted(target: Call, here: bool) -> int:
        return finding.total(
            target,
            shared=disclosure.hides_private(call, is_here=here, is_asked=True),
            roughly=not here,
        )

    answers, skipped = across.ask_each(call, "mind_projects", counted)
    for _, project, number in answers:
        counts[project.mind.project.root] = number
    here = call.mind.project.root if call.mind.has_project else None
    rows = tuple(
        ProjectRow(
            name=entry.name,
            path=str(entry.path),
            memories=counts.get(entry.path),
            missing=call.at(entry) is None,
            here=entry.path == here,
        )
        for entry in projects.registered(call.mind.home).projects
    )
    missing = {f"{row.name} is missing" for row in rows if row.missing}
    problems = [problem for problem in skipped if problem not in missing]
    return ProjectRows(projects=rows, notice=join_texts(*problems))


@command(
    "mind_projects_forget",
    cli="projects forget",
    effect=Effect.WRITE,
    any_format=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(NotFound, AmbiguousId, StorageFailed),
    examples=("mind projects forget", "mind projects forget shop"),
)
def forget(
    call: Call,
    name: Annotated[
        str | None,
        Arg("Name or path of a project (default: all that are missing)", complete="project"),
    ] = None,
) -> Forgotten:
    """Remove projects from the list, by default missing ones

    No file of a project is touched; `mind init` in its folder registers it again.
    """
    registry = projects.registered(call.mind.home)
    if registry.problem:
        raise registry.problem
    missing = [entry for entry in registry.projects if call.at(entry) is None]
    chosen = missing if name is None else [_one(registry.projects, name)]
    projects.unregister(call.mind.home, {entry.path for entry in chosen})
    return Forgotten(
        projects=tuple(str(entry.path) for entry in chosen),
        missing=all(entry in missing for entry in chosen),
    )


def _one(entries: tuple[Registered, ...], name: str) -> Registered:
    """Returns the project with that name or path. Raises `NotFound` and `AmbiguousId`."""
    path = disk.expanded(name).absolute()
    by_path = [entry for entry in entries if name and entry.path in (path, path.resolve())]
    chosen = by_path or [entry for entry in entries if entry.name == name]
    if not chosen:
        raise NotFound(
            f"no project `{name}` is registered", hint=Hint(Command("projects"), " lists them")
        )
    if len(chosen) > 1:
        raise AmbiguousId(
            f"{len(chosen)} projects have the name `{name}`",
            hint=f"name the path: {', '.join(str(entry.path) for entry in chosen)}",
            details={"candidates": [str(entry.path) for entry in chosen]},
        )
    return chosen[0]


@render.register
def _(result: ProjectRows, screen: Screen) -> None:
    if not result.projects:
        screen.line("no projects")
        screen.note("`mind init` makes the working directory one")
        return
    screen.table(("project", "memories", "path", "state"), map(_cells, result.projects))
    if any(row.missing for row in result.projects):
        screen.note(
            "`mind projects forget` removes those that are missing from the list;"
            " `mind init` in the new folder of one that was moved adds it"
        )


def _cells(row: ProjectRow) -> tuple[Part, ...]:
    number = "?" if row.memories is None else f"{row.memories:,}"
    state = warn("missing") if row.missing else dim("here") if row.here else ""
    return strong(row.name), number, accent(row.path), state


@render.register
def _(result: Forgotten, screen: Screen) -> None:
    if not result.projects:
        screen.line("no project is missing")
        return
    screen.line(good("✓ "), f"{count(len(result.projects), 'project')} removed from the list")
    for path in result.projects:
        screen.line(accent(path), indent=2)
    if not result.missing:
        screen.note("its files stay; `mind init` in its folder registers it again")
