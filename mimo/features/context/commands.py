"""`mind context`: the notes for agents, and the session, the agent and the task."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, command
from mimo.errors import Conflict, Denied, Invalid, RateLimited, StorageFailed, join_texts
from mimo.features.context import files as context
from mimo.frozen import frozen
from mimo.guard.policy import ALL, Operation
from mimo.operations import disclosure
from mimo.project.git import branch
from mimo.rendering import Part, Screen, accent, bad, dim, good
from mimo.rendering.results import count, render, second, stamp
from mimo.text.tool_names import underscored

PARTS = ("session", "agent", "task")

_CACHED = timedelta(seconds=30)

Budget = Annotated[
    int | None,
    Arg("Maximum number of characters (default `context.budget`)", ge=200, le=9_000),
]


@frozen
class ContextWritten:
    """The result of writing the block."""

    files: tuple[context.ContextFile, ...]
    notice: Omitted[str] = None


@command(
    "mind_context",
    cli="context show",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid,),
    examples=("mind context show", "mind context show --budget 1000"),
)
def show(call: Call, *, budget: Budget = None) -> context.ContextShown:
    """Show the notes for agents

    Current decisions, open loops, gotchas, the most important facts, sessions and the last
    checkpoint, of memories that are approved and not private. If not all of it fits, the most
    important notes are kept.
    """
    return context.notes_for_agents(call, budget)


@command(
    "mind_context_write",
    cli="context write",
    effect=Effect.WRITE,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(Conflict, Invalid, StorageFailed),
    examples=("mind context write", "mind context write AGENTS.md"),
)
def write(
    call: Call,
    file: Annotated[
        tuple[str, ...],
        Arg("Files to write to (default `context.files`, or the existing ones)", complete="path"),
    ] = (),
    *,
    budget: Budget = None,
    force: Annotated[bool, Arg("Replace a block that was changed by hand")] = False,
) -> ContextWritten:
    """Write the notes into CLAUDE.md, between markers

    Each existing file that clients read gets them, such as AGENTS.md, unless it imports another
    one; without any, a new CLAUDE.md. A new block is put at the top of the file. Everything outside
    the block stays byte for byte, and a block that was changed by hand is not replaced.
    """
    done = context.write(call, context.files_of(call, file), force=force, budget=budget)
    empty = [name for name, written in done.items() if written is None]
    notice = f"there are no notes yet to write into {', '.join(empty)}" if empty else None
    return ContextWritten(
        files=tuple(filter(None, done.values())),
        notice=join_texts(call.notice, disclosure.left_out(call), notice),
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
    tool_history: Annotated[Omitted[tuple[ToolUse, ...]], Out("The last calls of this session")]


@command(
    "getContext",
    cli="context get",
    effect=Effect.READ,
    toolset="values",
    needs=Needs(Operation.READ, context="context_type"),
    needs_project=False,
    errors=(Denied, RateLimited),
    examples=("mind context get", "mind context get session --include-history"),
    title="Show the session",
    description="Retrieves contextual information for the current session/agent: ids, usage and "
    "calls.",
)
def get_context(
    call: Call,
    context_type: Annotated[
        Literal["session", "agent", "task", "all"], Arg("Type of context to retrieve", agents="")
    ] = "all",
    *,
    include_history: Annotated[
        bool, Arg("Include historical context: the last calls", agents="")
    ] = False,
) -> WorkContext:
    """Show the session, the agent and the task

    Clients set them in MIND_SESSION_ID, MIND_AGENT_ID and MIND_TASK_ID, and the usage in
    MIND_TOKENS_USED and MIND_USD_SPENT.
    """
    session = call.session
    parts = PARTS if context_type == ALL else (context_type,)
    allowed = call.mind.guard.contexts(parts, "getContext")
    if not allowed:
        error = Denied(
            f"Access denied to context '{context_type}'",
            hint="no type of context is allowed by the policy",
            details={"context_type": context_type, "operation": "read"},
        )
        error.reason = "context_type"
        raise error
    key = (allowed, include_history, call.author)
    state = session.calls if include_history else None
    if cached := session.answers.get(key):
        at, its_state, answer = cached
        is_fresh = timedelta() <= call.mind.now() - at < _CACHED
        if is_fresh and its_state == state and isinstance(answer, WorkContext):
            return answer
    context = _gathered(call, allowed, history=include_history)
    session.answers[key] = (call.mind.now(), state, context)
    return context


def _gathered(call: Call, parts: tuple[str, ...], *, history: bool) -> WorkContext:
    session = call.session
    agent = task = None
    if "agent" in parts:
        agent = session.variable("MIND_AGENT_ID") or call.author or "person"
    if "task" in parts:
        on = branch(call.mind.project.root) if call.mind.has_project else None
        task = session.variable("MIND_TASK_ID") or on or "default"
    calls = tuple(
        ToolUse(tool_name=underscored(used.tool), timestamp=used.at, success=used.success)
        for used in session.history
    )
    of_session = "session" in parts
    return WorkContext(
        session_id=session.id if of_session else None,
        agent_id=agent,
        task_id=task,
        start_time=session.started if of_session else None,
        memory_usage=_usage(call) if of_session else None,
        tool_history=calls if history else None,
    )


def _usage(call: Call) -> MemoryUsage:
    """Returns the usage that the client reports in the environment."""
    tokens, usd = (
        _number(call.mind.environ.get(f"MIND_{name}")) for name in ("TOKENS_USED", "USD_SPENT")
    )
    estimated = tokens is None and usd is None
    return MemoryUsage(tokens_used=int(tokens or 0), usd_spent=usd or 0.0, estimated=estimated)


def _number(text: str | None) -> float | None:
    """Returns the number in a variable of the environment; None if it is not valid."""
    import re

    if text is None or not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", text.strip()):
        return None
    return float(text)


# How the results print.


@render.register
def _(result: context.ContextShown, screen: Screen) -> None:
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


@render.register
def _(result: WorkContext, screen: Screen) -> None:
    usage = result.memory_usage
    spent = f"{usage.tokens_used:,} tokens, {usage.usd_spent:.2f} USD" if usage else None
    rows: list[tuple[str, Part | None]] = [
        ("session", result.session_id),
        ("agent", result.agent_id),
        ("task", result.task_id),
        ("since", second(result.start_time) if result.start_time else None),
        ("usage", "not reported" if usage and usage.estimated else spent),
    ]
    screen.pairs([(name, value) for name, value in rows if value])
    for used in result.tool_history or ():
        mark = good("✓") if used.success else bad("✗")
        screen.line(mark, f" {stamp(used.timestamp)}  {used.tool_name}")
    if result.tool_history == ():
        screen.line(dim("no tool calls in this session yet"))
