"""The `mind module` commands: the folder in `.mcp/modules/` that hosts read."""

import os
from pathlib import Path, PurePath
from typing import Annotated

from mimo.call import Call
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, for_people
from mimo.data import disk
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.features import modules
from mimo.features.modules import FoundModule, InstalledModule
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.operations.rows import row_of
from mimo.project.projects import check_reach
from mimo.rendering import Screen, accent, dim, good, strong, warn
from mimo.rendering.results import render

Target = Annotated[
    str | None, Arg("Folder that holds .mcp/ (default: the project's root)", complete="path")
]


@frozen
class ModuleRow:
    """A module that hosts can load."""

    file: Annotated[str, Out("Its manifest, relative to the folder that holds .mcp/")]
    runs: Annotated[bool, Out("Whether a host runs it by default")]
    id: Omitted[str] = None
    name: Omitted[str] = None
    version: Omitted[str] = None
    entrypoint: Omitted[str] = None
    commands: tuple[str, ...]
    reason: Annotated[Omitted[str], Out("Why it does not run")]


@frozen
class ModuleList:
    """The modules below a folder."""

    target: str
    modules: tuple[ModuleRow, ...]


@for_people(
    "mind_module_install",
    cli="module install",
    effect=Effect.WRITE,
    any_format=True,
    errors=(Invalid, Conflict, StorageFailed),
    examples=("mind module install", "mind module install --target ~/shop"),
)
def install(
    call: Call,
    *,
    target: Target = None,
    force: Annotated[bool, Arg("Replace files that were changed")] = False,
) -> InstalledModule:
    """Write the module for hosts that read .mcp/modules/

    It holds the manifest of `recall_memory`, instructions, a sample call and the script to run it.
    """
    if target is None and call.mind.has_project:
        check_reach(call.mind.project)
    return modules.install(_root(call, target), force=force)


@for_people(
    "mind_module_list",
    cli="module list",
    effect=Effect.READ,
    needs=Needs(Operation.READ, person=True),
    errors=(StorageFailed,),
    examples=("mind module list",),
)
def list_modules(call: Call, *, target: Target = None) -> ModuleList:
    """List the modules in .mcp/modules/, and why one would not run"""
    root = _root(call, target)
    return ModuleList(target=str(root), modules=tuple(map(_row, modules.find(root))))


def _root(call: Call, target: str | None) -> Path:
    if target is not None:
        return Path(os.path.realpath(disk.expanded(target)))
    return call.mind.project.root if call.mind.has_project else Path.cwd()


def _row(module: FoundModule) -> ModuleRow:
    manifest = module.manifest
    return row_of(
        manifest,
        ModuleRow,
        file=module.file,
        runs=module.reason is None,
        commands=tuple(command.name for command in manifest.commands) if manifest else (),
        reason=module.reason,
    )


@render.register
def _(result: InstalledModule, screen: Screen) -> None:
    done = "is in place" if result.written else "was in place already"
    screen.line(good("✓ "), strong(result.id), f" {done}  ", dim(result.folder))
    for name in result.written:
        screen.line(dim(f"wrote {name}"), indent=2)
    script = PurePath(result.folder, "memory_module.py")
    sample = PurePath(result.folder, "samples", "test_invocation.json")
    screen.line("try it: ", accent(f"python {script} {sample}"))


@render.register
def _(result: ModuleList, screen: Screen) -> None:
    if not result.modules:
        screen.line(f"no modules in {result.target}/.mcp/modules")
        screen.line("write ours with ", accent("`mind module install`"))
        return
    for row in result.modules:
        mark = good("✓ ") if row.runs else warn("✗ ")
        about = "  ".join(word for word in (row.version, ", ".join(row.commands)) if word)
        screen.line(mark, strong(row.id or "unreadable"), "  ", dim(about))
        screen.line(dim(row.file), indent=2)
        if row.reason:
            screen.line(warn(row.reason), indent=2)
