"""`mind context …`: the notes that agents find in CLAUDE.md and its like."""

from typing import Annotated

from mimo.commands.spec import Arg, Effect, Needs, Surface, command
from mimo.commands.types import Omitted, Out
from mimo.domain.policy import Operation
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import context

_CHARACTERS_PER_TOKEN = 4

Budget = Annotated[
    int | None,
    Arg("Most characters of notes; `context.budget` unless said", ge=200, le=9_000),
]


@frozen
class ContextShown:
    """The notes as they stand in the block."""

    text: str
    notes: Annotated[int, Out("How many notes that are")]
    characters: int
    tokens: Annotated[int, Out("About what it costs a model to read them")]
    notice: Omitted[str] = None


@frozen
class ContextFile:
    """A file that carries the block."""

    path: Annotated[str, Out("Relative to the project")]
    created: bool
    changed: Annotated[bool, Out("False where it said the same already")]


@frozen
class ContextWritten:
    """What came of writing the block."""

    files: tuple[ContextFile, ...]
    notice: Omitted[str] = None


@command(
    "mind_context",
    cli="context show",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid,),
    examples=("mind context show", "mind context show --budget 1000"),
)
def show(mind: Mind, *, budget: Budget = None) -> ContextShown:
    """Show the notes that `mind context write` writes

    Decisions in force, open loops, gotchas, sessions and where work stopped: of memories that
    somebody here approved and that are not private. Where not all fits, what matters most stays.
    """
    told = context.shown(mind, budget)
    return ContextShown(
        text=told.text,
        notes=told.lines,
        characters=len(told.text),
        tokens=-(-len(told.text) // _CHARACTERS_PER_TOKEN),
        notice=mind.notice,
    )


@command(
    "mind_context_write",
    cli="context write",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(Conflict, Invalid, StorageFailed),
    examples=("mind context write", "mind context write AGENTS.md"),
)
def write(
    mind: Mind,
    file: Annotated[
        tuple[str, ...],
        Arg("Files to write it to; `context.files` unless said", complete="path"),
    ] = (),
    *,
    budget: Budget = None,
    force: Annotated[bool, Arg("Replace a block that was changed by hand")] = False,
) -> ContextWritten:
    """Write the notes into CLAUDE.md, between its markers alone

    A new block goes to the top of the file; everything outside of the block stays byte for byte as
    it is, and a block that somebody changed by hand is left alone.
    """
    done = [
        (name, context.write(mind, name, force=force, budget=budget))
        for name in context.files_of(mind, file)
    ]
    empty = [name for name, one in done if one is None]
    told = f"nothing to tell yet, so {', '.join(empty)} was left alone" if empty else None
    return ContextWritten(
        files=tuple(
            ContextFile(path=one.path, created=one.created, changed=one.changed)
            for _, one in done
            if one
        ),
        notice="; ".join(filter(None, (mind.notice, told))) or None,
    )
