"""The context of the work: the session, the agent, the task, and their usage."""

from datetime import datetime, timedelta
from typing import Any

from mimo.errors import Denied
from mimo.frozen import frozen
from mimo.guard.audit import Used
from mimo.guard.policy import ALL
from mimo.mind import Mind
from mimo.store.git import branch

PARTS = ("session", "agent", "task")

_CACHED = timedelta(seconds=30)


@frozen
class Usage:
    """The usage that the client reports in the environment."""

    tokens: int = 0
    usd: float = 0.0
    estimated: bool = True
    """True if the client reported nothing, so that the figures are not measured."""


@frozen
class Context:
    """The parts of a context; None for a part of another type."""

    session: str | None = None
    agent: str | None = None
    task: str | None = None
    started: datetime | None = None
    usage: Usage | None = None
    history: tuple[Used, ...] | None = None


def current(mind: Mind, kind: str, tool: str, *, history: bool) -> Context:
    """Returns the context of a type, `ALL` for every type that the policy allows a tool.

    An answer is cached for 30 seconds, one with the history only until the next call of any tool.
    Raises `Denied` if the policy allows no type.
    """
    session = mind.guard.session
    allowed = mind.guard.contexts(PARTS if kind == ALL else (kind,), tool)
    if not allowed:
        raise _denied(kind)
    key = (allowed, history, mind.author)
    state = session.calls if history else None
    if cached := session.answers.get(key):
        at, its_state, answer = cached
        is_fresh = timedelta() <= mind.now() - at < _CACHED
        if is_fresh and its_state == state and isinstance(answer, Context):
            return answer
    context = _gathered(mind, allowed, history=history)
    session.answers[key] = (mind.now(), state, context)
    return context


def _gathered(mind: Mind, parts: tuple[str, ...], *, history: bool) -> Context:
    session = mind.guard.session
    fields: dict[str, Any] = {}
    if "session" in parts:
        fields = {"session": session.id, "started": session.started, "usage": _usage(mind)}
    if "agent" in parts:
        fields["agent"] = session.variable("MIND_AGENT_ID") or mind.author or "person"
    if "task" in parts:
        on = branch(mind.project.root) if mind.has_project else None
        fields["task"] = session.variable("MIND_TASK_ID") or on or "default"
    return Context(**fields, history=session.history if history else None)


def _usage(mind: Mind) -> Usage:
    tokens = _number(mind.environ.get("MIND_TOKENS_USED"))
    usd = _number(mind.environ.get("MIND_USD_SPENT"))
    if tokens is None and usd is None:
        return Usage()
    return Usage(tokens=int(tokens or 0), usd=usd or 0.0, estimated=False)


def _number(text: str | None) -> float | None:
    """Returns the number in a variable of the environment; None if it is not valid."""
    import re

    if text is None or not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", text.strip()):
        return None
    return float(text)


def _denied(kind: str) -> Denied:
    error = Denied(
        f"Access denied to context '{kind}'",
        hint="no type of context is allowed by the policy",
        details={"context_type": kind, "operation": "read"},
    )
    error.reason = "context_type"
    return error
