"""The machine that clients are on, and which of their files an installation changes."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from mimo.domain.clients.client import Client, File, Scope, places
from mimo.domain.clients.edits import Edit, Format
from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.mind import Mind


@frozen
class Machine:
    """What an installation must know of the machine that it is on."""

    places: Mapping[str, str]
    project: Path | None
    path: str | None
    """The PATH that programs are looked for in."""
    executable: str
    """Our own program, by its whole path."""
    home: str | None = None
    """$MIND_HOME, if it is set: a client need not start the server with it."""

    def which(self, program: str) -> str | None:
        """Returns where a program is; None where there is none of that name."""
        return shutil.which(program, path=self.path)


@frozen
class Target:
    """A file of a client and what belongs into it."""

    path: Path
    format: Format
    edits: tuple[Edit, ...]
    within: Path | None


def machine(mind: Mind) -> Machine:
    """Returns this machine, as the environment that mind was opened in shows it."""
    home = mind.environ.get("HOME") or str(Path.home())
    path = mind.environ.get("PATH")
    beside = Path(sys.executable).with_name("mind")
    named = shutil.which("mind", path=path) or (str(beside) if beside.exists() else "mind")
    return Machine(
        places=places(home, mind.environ, sys.platform),
        project=mind.project.root if mind.has_project else None,
        path=path,
        executable=os.path.abspath(named) if os.sep in named else named,  # noqa: PTH100 - links stay
        home=str(mind.home) if mind.environ.get("MIND_HOME") else None,
    )


def scope_of(client: Client, scope: Scope | None, here: Machine) -> Scope:
    """Returns whom an installation is for: the project, where there is one and the client can."""
    if scope is None:
        return Scope.PROJECT if Scope.PROJECT in client.files and here.project else Scope.USER
    if scope not in client.files:
        raise Invalid(
            f"{client.title} keeps no configuration in a project",
            hint=f"mind install {client.name} --scope user",
        )
    return scope


def targets(client: Client, scope: Scope, here: Machine) -> list[Target]:
    """Returns the files to change; one that holds the entry and the hooks stands once."""
    command = here.executable
    if not (client.absolute and scope is Scope.USER) and (
        scope is Scope.PROJECT or here.which("mind")
    ):
        command = "mind"
    project = str(here.project) if here.project else None
    wanted: list[tuple[File, tuple[Edit, ...]]] = []
    if not (client.adds_itself and scope is Scope.USER):
        entry = client.server(scope, command, project=project, home=here.home)
        wanted.append((client.files[scope], (entry,)))
    if client.hooks:
        wanted.append((client.hooks.files[scope], client.hooks.edits(home=here.home)))
    targets: dict[Path, Target] = {}
    for file, edits in wanted:
        path = place_of(file, here)
        before = targets[path].edits if path in targets else ()
        within = here.project if scope is Scope.PROJECT else None
        target = Target(path=path, format=file.format, edits=(*before, *edits), within=within)
        targets[path] = target
    return list(targets.values())


def place_of(file: File, here: Machine) -> Path:
    """Returns the first place of a file that exists, else the first."""
    known = {**here.places, "project": str(here.project)}
    if here.project is None and "{project}" in file.places[0]:
        raise Invalid("there is no project here", hint="run `mind init` first, or say --scope user")
    paths = [Path(place.format_map(known)) for place in file.places]
    return next((path for path in paths if path.exists()), paths[0])
