"""Making a project's memory."""

from pathlib import Path
from typing import Annotated

from mimo.commands.look import FirstLook, look_of
from mimo.commands.spec import Arg, Effect, Needs, Surface, command
from mimo.commands.types import Out
from mimo.domain.policy import Operation
from mimo.errors import Invalid, MindError, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import merging
from mimo.store.init import init as make
from mimo.store.projects import Project, Registered
from mimo.store.trust import Trust


@frozen
class Initialised:
    """What `mind init` did."""

    path: Annotated[str, Out("The project's root")]
    name: str
    created: Annotated[bool, Out("Whether there was no memory here before")]
    added: Annotated[tuple[str, ...], Out("Files that were written, relative to the project")]
    trusted: Annotated[bool, Out("Whether what is in it counts as approved")]
    found: Annotated[tuple[str, ...], Out("Documents that are already here")]
    include: Annotated[str | None, Out("Line for .mind/config.toml that makes them memories")]
    notices: tuple[str, ...]
    arrived: Annotated[
        FirstLook | None, Out("What nobody here has approved; in a store that was there", omit=True)
    ] = None


@command(
    "mind_init",
    cli="init",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, StorageFailed),
    examples=("mind init", "mind init ~/shop"),
)
def init(
    mind: Mind,
    directory: Annotated[str, Arg("The project's root", complete="path")] = ".",
) -> Initialised:
    """Make this directory a project with a memory of its own

    Writes `.mind/` with a settings file, a short MEMORY.md and the files that git needs, and
    overwrites nothing. In a git repository, git learns to merge memories. What is already here,
    such as decision records, is named, not copied.
    """
    report = make(Path(directory).expanduser().absolute(), mind.home, now=mind.now())
    merging.install(report.project.root)
    return Initialised(
        path=str(report.project.root),
        name=report.project.name,
        created=report.created,
        added=report.added,
        trusted=Trust(mind.home, report.project.root).state.follow,
        found=report.found,
        include=report.include_line,
        notices=report.notices,
        arrived=_arrived(mind, report.project),
    )


def _arrived(mind: Mind, project: Project) -> FirstLook | None:
    """Returns a first look at a store that came from somebody else."""
    opened = mind.at(Registered(path=project.root, name=project.name))
    try:
        return look_of(opened) if opened else None
    except MindError:
        return None
