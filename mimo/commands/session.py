"""`mind context get`: what the session, the agent and the task are."""

from datetime import datetime
from typing import Annotated, Literal

from mimo.commands.spec import Arg, Effect, Needs, command
from mimo.commands.types import Omitted, Out
from mimo.domain.policy import Operation
from mimo.errors import Denied, RateLimited
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import session


@frozen
class MemoryUsage:
    """What the session has spent."""

    tokens_used: int
    usd_spent: float
    estimated: Annotated[bool, Out("True where the client reported nothing: nobody measured it")]


@frozen
class ToolUse:
    """A call of a tool."""

    tool_name: str
    timestamp: datetime
    success: bool


@frozen
class WorkContext:
    """What is going on, as far as it was asked for and the policy allows."""

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

    Clients name them in MIND_SESSION_ID, MIND_AGENT_ID and MIND_TASK_ID, and what was spent in
    MIND_TOKENS_USED and MIND_USD_SPENT.
    """
    found = session.current(mind, context_type, "getContext", history=include_history)
    return WorkContext(
        session_id=found.session,
        agent_id=found.agent,
        task_id=found.task,
        start_time=found.started,
        memory_usage=_usage(found.usage),
        tool_history=_history(found),
    )


def _usage(found: session.Usage | None) -> MemoryUsage | None:
    if found is None:
        return None
    return MemoryUsage(tokens_used=found.tokens, usd_spent=found.usd, estimated=found.estimated)


def _history(found: session.Context) -> tuple[ToolUse, ...] | None:
    if found.history is None:
        return None
    return tuple(
        ToolUse(tool_name=used.tool, timestamp=used.at, success=used.success)
        for used in found.history
    )
