"""`mind index`: the index of the files, and the index that a team shares."""

import os
from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import Denied, Invalid, StorageFailed
from mimo.frozen import frozen
from mimo.index import survey
from mimo.index.embedding import without_encoder
from mimo.operations import encoding, refresh, sharing
from mimo.operations.rows import row_of
from mimo.operations.sharing import Shared
from mimo.rendering import Screen, dim, good, strong, warn
from mimo.rendering.results import count, render


@frozen
class Indexed:
    """The result of updating the index."""

    added: Annotated[int, Out("Files that are new")]
    changed: Annotated[int, Out("Files that were read again")]
    removed: Annotated[int, Out("Files that were deleted")]
    memories: int
    passages: Annotated[int, Out("Pieces of text that are searched")]
    encoded: Annotated[int, Out("Texts that are now read for their meaning: memories and chunks")]
    unreadable: Annotated[int, Out("Files that could not be read; `mind doctor` lists them")]
    notice: Omitted[str] = None
    shared: Annotated[Omitted[Shared], Out("What was pushed to the shared index")] = None


@command(
    "mind_index",
    cli="index",
    effect=Effect.WRITE,
    any_format=True,
    toolset="extra",
    of_user=True,
    errors=(Denied, Invalid, StorageFailed),
    examples=(
        "mind index",
        "mind index --rebuild",
        "mind index --push --reader everyone",
    ),
)
def index(
    call: Call,
    *,
    rebuild: Annotated[bool, Arg("Delete the index and build it again")] = False,
    threads: Annotated[int, Arg("Threads that read for meaning", ge=1, surfaces=Surface.CLI)] = 1,
    push: Annotated[bool, Arg("Bring the shared index up to date", surfaces=Surface.CLI)] = False,
    readers: Annotated[
        tuple[str, ...],
        Arg("Role of the database that may read it there, or `everyone`", surfaces=Surface.CLI),
    ] = (),
    writers: Annotated[
        tuple[str, ...], Arg("Role that may push it, too, or `everyone`", surfaces=Surface.CLI)
    ] = (),
    revoke: Annotated[
        tuple[str, ...], Arg("Role that may no longer use it, or `everyone`", surfaces=Surface.CLI)
    ] = (),
    join: Annotated[
        bool, Arg("Push into a project of others, or under a new id", surfaces=Surface.CLI)
    ] = False,
    withdraw: Annotated[
        bool, Arg("Remove the project from the shared index", surfaces=Surface.CLI)
    ] = False,
) -> Indexed:
    """Update the index from the files

    Every command does so by itself; this one is for a large import, or to see the numbers. It also
    reads all memories for their meaning, which finds them in other words. Otherwise each search
    reads a few, and MCP servers and the daemon the rest between calls.

    A push gives the shared index of the setting `index.url` the same memories, without private
    ones. Roles that are named as readers find them by a search of the organisation.
    """
    if withdraw and (push or join or readers or writers or revoke):
        raise Invalid("`--withdraw` excludes the other options", hint="use it alone")
    if threads > (processors := os.cpu_count() or 1):
        hint = f"use `--threads {processors}`, one for each processor"
        raise Invalid(f"`--threads` must be at most {processors}, not `{threads}`", hint=hint)
    shared = None
    if revoke or withdraw:  # At once: what follows takes time and may fail.
        shared = sharing.shared_index(call).restrict(call, revoke, withdraw=withdraw)
    done = refresh.rebuild(call) if rebuild else refresh.refresh(call)
    encoded = 0
    try:
        encoded = encoding.encode(call, threads)
    except Invalid as error:  # The index itself is complete.
        call.note("encoder", without_encoder(error))
    levels = {**dict.fromkeys(readers, "read"), **dict.fromkeys(writers, "write")}
    if push or join or levels:
        shared = sharing.shared_index(call).publish(call, levels, join=join)
    stats = call.mind.index.stats()
    return row_of(
        done,
        Indexed,
        memories=sum(call.index.ask(survey.by_type).values()),
        passages=stats.units,
        encoded=encoded,
        unreadable=len(refresh.problems(call)),
        notice=call.notice,
        shared=shared,
    )


# The output.


@render.register
def _(result: Indexed, screen: Screen) -> None:
    held = count(result.memories, "memory", "memories")
    screen.line(good("✓ "), f"{held}, {count(result.passages, 'passage')}")
    changes = f"{result.added:,} new, {result.changed:,} changed, {result.removed:,} deleted"
    screen.line(dim(f"files: {changes}"), indent=2)
    if result.encoded:
        screen.line(dim(f"{count(result.encoded, 'text')} read for their meaning"), indent=2)
    if result.unreadable:
        unread = count(result.unreadable, "file could", "files could")
        screen.line(warn(f"{unread} not be read; `mind doctor` lists them"), indent=2)
    if result.shared:
        _write_shared(result.shared, screen)


def _write_shared(result: Shared, screen: Screen) -> None:
    if result.withdrawn:
        screen.line(good("✓ "), "withdrawn from ", strong(result.place))
        return
    held = count(result.memories, "memory", "memories")
    screen.line(good("✓ "), f"{held} in the shared index at ", strong(result.place))
    changes = f"{result.added:,} new, {result.removed:,} removed, {result.vectors:,} vectors sent"
    screen.line(dim(changes), indent=2)
    if result.left_out:
        screen.line(warn(f"{result.left_out} can't be stored there"), indent=2)
    roles = [f"{row.role} ({row.right})" for row in result.roles]
    screen.line(dim(f"open to {', '.join(roles)}"), indent=2)
    if len(roles) < 2:
        screen.note("no other role can read it yet: `mind index --reader ROLE`, or `everyone`")
