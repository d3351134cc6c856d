"""Making a project's memory."""

import os
from contextlib import suppress
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
from mimo.store.names import STORE
from mimo.store.projects import Project, Registered, find
from mimo.surroundings import Question

_ANSWERS = ("yes", "no")
_ANSWER_SECONDS = 300.0


@frozen
class Initialised:
    """What `mind init` did."""

    path: Annotated[str, Out("The project's root")]
    name: str
    created: Annotated[bool, Out("Whether there was no memory here before")]
    added: Annotated[tuple[str, ...], Out("Files that were written, relative to the project")]
    trusted: Annotated[bool, Out("Whether it is new, so that all in it is the user's own")]
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
    examples=("mind init", "mind init ~/shop", "mind init --nested packages/api"),
)
def init(
    mind: Mind,
    directory: Annotated[str, Arg("The project's root", complete="path")] = ".",
    *,
    nested: Annotated[bool, Arg("Make it a project although it is inside another one")] = False,
) -> Initialised:
    """Make this directory a project with a memory of its own

    Writes `.mind/` with a settings file, a short MEMORY.md and the files that git needs, and
    overwrites nothing. In a git repository, git learns to merge memories. What is already here,
    such as decision records, is named, not copied.
    """
    root = Path(directory).expanduser().absolute()
    if not nested:
        _check_nesting(mind, root)
    report = make(root, mind.home, now=mind.now())
    merging.install(report.project.root)
    return Initialised(
        path=str(report.project.root),
        name=report.project.name,
        created=report.created,
        added=report.added,
        trusted=report.created,
        found=report.found,
        include=report.include_line,
        notices=report.notices,
        arrived=_arrived(mind, report.project),
    )


def _check_nesting(mind: Mind, root: Path) -> None:
    """Raises `Invalid` if a new project would be inside another one and the user does not agree."""
    if os.path.lexists(root / STORE):
        return
    around = None
    with suppress(MindError, OSError):
        around = find(root.parent, mind.home)
    if around is None:
        return
    question = Question(f"`{root}` is inside the project `{around.root}`. Separate it?", _ANSWERS)
    if mind.ask is None or mind.ask(question, _ANSWER_SECONDS) != _ANSWERS[0]:
        raise Invalid(
            f"`{root}` is inside the project `{around.root}`, whose memory is used here",
            hint="for a memory of its own, run `mind init --nested`",
        )


def _arrived(mind: Mind, project: Project) -> FirstLook | None:
    """Returns a first look at a store that came from somebody else."""
    opened = mind.at(Registered(path=project.root, name=project.name))
    try:
        return look_of(opened) if opened else None
    except MindError:
        return None
