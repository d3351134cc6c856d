"""Making a project's memory, and saying whether it is trusted."""

from pathlib import Path
from typing import Annotated

from mimo.commands.spec import Arg, Effect, Surface, command
from mimo.commands.types import Out
from mimo.errors import Invalid, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import approval, merging
from mimo.store.init import init as make
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


@frozen
class TrustState:
    """How far the project's files are trusted."""

    path: str
    trust: Annotated[str, Out("How far the files here are trusted")]
    approved: Annotated[int, Out("How many files are approved as they are now")]
    total: Annotated[int, Out("How many files hold memories")]


@command(
    "mind_init",
    cli="init",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
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
    )


@command(
    "mind_trust",
    cli="trust",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    surfaces=Surface.CLI,
    errors=(StorageFailed,),
    examples=("mind trust", "mind trust --follow"),
)
def trust(
    mind: Mind,
    *,
    follow: Annotated[bool, Arg("Approve what later commits and edits bring, too")] = False,
) -> TrustState:
    """Approve the memories that are here now

    Memory that came with a clone or a pull is somebody else's text. Until it is approved it is
    found and labelled, and never put into an agent's context. Look first: `mind list`.
    """
    approval.approve_all(mind, follow=follow)
    return _state(mind)


@command(
    "mind_untrust",
    cli="untrust",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    surfaces=Surface.CLI,
    errors=(StorageFailed,),
    examples=("mind untrust",),
)
def untrust(mind: Mind) -> TrustState:
    """Take back every approval for this project"""
    mind.trust.forget()
    return _state(mind)


def _state(mind: Mind) -> TrustState:
    digests = approval.digests(mind)
    return TrustState(
        path=str(mind.project.root),
        trust=approval.describe(mind),
        approved=sum(mind.trust.approved(digest) for digest in digests),
        total=len(digests),
    )
