"""`mind sync`: the memory, committed and shared through git."""

from typing import Annotated

from mimo.commands.common import File
from mimo.commands.spec import Arg, Effect, Surface, command
from mimo.commands.types import Omitted, Out
from mimo.errors import Conflict, Invalid, SecretDetected, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import syncing
from mimo.services.leaks import leaks


@frozen
class SyncedFile:
    """A file of the memory that a commit holds."""

    file: File
    change: Annotated[str, Out("`added`, `changed` or `removed`")]


@frozen
class Synced:
    """What came of a sync."""

    commit: Annotated[str | None, Out("The commit that was made; null where nothing was to do")]
    branch: Annotated[str | None, Out("The branch; null on a detached head")]
    message: Annotated[str | None, Out("The commit's message")]
    files: tuple[SyncedFile, ...]
    pulled: Annotated[Omitted[str], Out("What git says of the pull", omit=True)] = None
    pushed: Annotated[Omitted[bool], Out("Whether the branch was pushed", omit=True)] = None
    dry_run: Annotated[Omitted[bool], Out("Whether nothing was done", omit=True)] = None
    notice: Omitted[str] = None


@command(
    "mind_sync",
    cli="sync",
    effect=Effect.WRITE,
    toolset="extra",
    errors=(Invalid, Conflict, SecretDetected, StorageFailed),
    examples=("mind sync", "mind sync --pull --push", "mind sync --dry-run"),
)
def sync(
    mind: Mind,
    *,
    message: Annotated[
        str | None, Arg("Message of the commit (default: lists the memories)")
    ] = None,
    pull: Annotated[bool, Arg("Then pull from the upstream", surfaces=Surface.CLI)] = False,
    push: Annotated[bool, Arg("Then push the branch", surfaces=Surface.CLI)] = False,
    dry_run: Annotated[bool, Arg("Only report what would be committed")] = False,
) -> Synced:
    """Commit the memory, and nothing else

    Everything under `.mind/` that git does not ignore, but never files of `private/`, `.local/` or
    `.index/`, whatever git's ignore rules are. Other staged changes stay staged. Your hooks run and
    your signature is made as always.
    """
    done = syncing.sync(mind, message=message, pull=pull, push=push, dry_run=dry_run)
    return Synced(
        commit=done.commit,
        branch=done.branch,
        message=done.message,
        files=tuple(SyncedFile(file=one.path, change=one.change) for one in done.pending),
        pulled=done.pulled,
        pushed=done.pushed or None,
        dry_run=dry_run or None,
        notice="; ".join(f"{one.message}: {one.hint}" for one in leaks(mind.project.root)) or None,
    )
