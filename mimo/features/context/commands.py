"""`mind context`: the notes for agents, and the session, the agent and the task."""

from datetime import datetime
from typing import Annotated, Literal

from mimo.commands.spec import Arg, Effect, Needs, Omitted, Out, Surface, command
from mimo.errors import Conflict, Denied, Invalid, RateLimited, StorageFailed
from mimo.features.context import files as context
from mimo.features.context import session
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.mind import Mind
from mimo.rendering.results import count, render
from mimo.rendering.screen import Part, Screen, accent, bad, dim, good

_CHARACTERS_PER_TOKEN = 4

Budget = Annotated[
    int | None,
    Arg("Maximum number of characters (default `context.budget`)", ge=200, le=9_000),
]


@frozen
class ContextShown:
    """The notes in the block."""

    text: str
    notes: Annotated[int, Out("Number of notes")]
    characters: int
    tokens: Annotated[int, Out("Estimated number of tokens")]
    notice: Omitted[str] = None


@frozen
class ContextFile:
    """A file with the block."""

    path: Annotated[str, Out("Relative to the project")]
    created: bool
    changed: Annotated[bool, Out("False if it was up to date")]


@frozen
class ContextWritten:
    """The result of writing the block."""

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

    Current decisions, open loops, gotchas, sessions and the last checkpoint, of memories that are
    approved and not private. If not all of it fits, the most important notes are kept.
    """
    notes = context.shown(mind, budget)
    return ContextShown(
        text=notes.text,
        notes=notes.lines,
        characters=len(notes.text),
        tokens=-(-len(notes.text) // _CHARACTERS_PER_TOKEN),
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
        Arg("Files to write to (default `context.files`)", complete="path"),
    ] = (),
    *,
    budget: Budget = None,
    force: Annotated[bool, Arg("Replace a block that was changed by hand")] = False,
) -> ContextWritten:
    """Write the notes into CLAUDE.md, between markers

    A new block is put at the top of the file. Everything outside the block stays byte for byte,
    and a block that was changed by hand is not replaced.
    """
    done = [
        (name, context.write(mind, name, force=force, budget=budget))
        for name in context.files_of(mind, file)
    ]
    empty = [name for name, written in done if written is None]
    notice = f"there are no notes yet, so {', '.join(empty)} was not changed" if empty else None
    return ContextWritten(
        files=tuple(
            ContextFile(path=written.path, created=written.created, changed=written.changed)
            for _, written in done
            if written
        ),
        notice="; ".join(filter(None, (mind.notice, notice))) or None,
    )


@frozen
class MemoryUsage:
    """The usage of the session."""

    tokens_used: int
    usd_spent: float
    estimated: Annotated[bool, Out("True if the client did not report its usage")]


@frozen
class ToolUse:
    """A call of a tool."""

    tool_name: str
    timestamp: datetime
    success: bool


@frozen
class WorkContext:
    """The requested parts of the context that the policy allows."""

    session_id: Omitted[str]
    agent_id: Omitted[str]
    task_id: Omitted[str]
    start_time: Omitted[datetime]
    memory_usage: Omitted[MemoryUsage]
    tool_history: Annotated[
        Omitted[tuple[ToolUse, ...]], Out("The last calls of this session", omit=True)
    ]


@command(
    "getContext",
    cli="context get",
    effect=Effect.READ,
    toolset="values",
    needs=Needs(Operation.READ, context="context_type"),
    needs_project=False,
    errors=(Denied, RateLimited),
    examples=("mind context get", "mind context get session --include-history"),
    description="Retrieves contextual information for the current session/agent.",
)
def get_context(
    mind: Mind,
    context_type: Annotated[
        Literal["session", "agent", "task", "all"], Arg("Type of context to retrieve")
    ] = "all",
    *,
    include_history: Annotated[bool, Arg("Include historical context: the last calls")] = False,
) -> WorkContext:
    """Show the session, the agent and the task

    Clients set them in MIND_SESSION_ID, MIND_AGENT_ID and MIND_TASK_ID, and the usage in
    MIND_TOKENS_USED and MIND_USD_SPENT.
    """
    current = session.current(mind, context_type, "getContext", history=include_history)
    return WorkContext(
        session_id=current.session,
        agent_id=current.agent,
        task_id=current.task,
        start_time=current.started,
        memory_usage=_usage(current.usage),
        tool_history=_history(current),
    )


def _usage(usage: session.Usage | None) -> MemoryUsage | None:
    if usage is None:
        return None
    return MemoryUsage(tokens_used=usage.tokens, usd_spent=usage.usd, estimated=usage.estimated)


def _history(current: session.Context) -> tuple[ToolUse, ...] | None:
    if current.history is None:
        return None
    return tuple(
        ToolUse(tool_name=used.tool, timestamp=used.at, success=used.success)
        for used in current.history
    )


# How the results print.


@render.register
def _(result: ContextShown, screen: Screen) -> None:
    screen.markdown(result.text)
    screen.note(
        f"{count(result.notes, 'note')}, {result.characters:,} characters, "
        f"about {result.tokens:,} tokens"
    )


@render.register
def _(result: ContextWritten, screen: Screen) -> None:
    for file in result.files:
        action = "created" if file.created else "written" if file.changed else "up to date"
        screen.line(good("✓ "), accent(file.path), dim(f" {action}"))
    if result.notice:
        screen.note(result.notice)


@render.register
def _(result: WorkContext, screen: Screen) -> None:
    rows: list[tuple[str, Part | None]] = [
        ("session", result.session_id),
        ("agent", result.agent_id),
        ("task", result.task_id),
        ("since", f"{result.start_time:%Y-%m-%d %H:%M:%S} UTC" if result.start_time else None),
        ("usage", _usage_text(result.memory_usage)),
    ]
    screen.pairs([(name, value) for name, value in rows if value])
    for used in result.tool_history or ():
        mark = good("✓") if used.success else bad("✗")
        screen.line(mark, f" {used.timestamp:%H:%M:%S}  {used.tool_name}")
    if result.tool_history == ():
        screen.line(dim("no tool calls in this session yet"))


def _usage_text(usage: MemoryUsage | None) -> str | None:
    if usage is None:
        return None
    if usage.estimated:
        return "not reported"
    return f"{usage.tokens_used:,} tokens, {usage.usd_spent:.2f} USD"
