"""What is going on: the session, the agent, the task, and what they have used."""

from datetime import datetime, timedelta
from typing import Any

from mimo.errors import Denied
from mimo.frozen import frozen
from mimo.guard.audit import Used
from mimo.guard.policy import ALL
from mimo.mind import Mind
from mimo.store.made import branch

PARTS = ("session", "agent", "task")

_CACHED = timedelta(seconds=30)


@frozen
class Usage:
    """What was spent, as far as whoever asks has said so in the environment."""

    tokens: int = 0
    usd: float = 0.0
    estimated: bool = True
    """Whether nobody reported it, so that the figures are none that anybody measured."""


@frozen
class Context:
    """What a context of one type tells; None for what belongs to another type."""

    session: str | None = None
    agent: str | None = None
    task: str | None = None
    started: datetime | None = None
    usage: Usage | None = None
    history: tuple[Used, ...] | None = None


def current(mind: Mind, kind: str, tool: str, *, history: bool) -> Context:
    """Returns the context of a type, `ALL` for every type that the policy allows a tool.

    The same question is answered from memory for half a minute; one about the history only until
    the next call of any tool. Raises `Denied` where the policy allows no type.
    """
    session = mind.guard.session
    allowed = mind.guard.contexts(PARTS if kind == ALL else (kind,), tool)
    if not allowed:
        raise _denied(kind)
    question = (allowed, history, mind.author)
    state = session.calls if history else None
    known = session.answers.get(question)
    if known and known[1] == state and timedelta() <= mind.now() - known[0] < _CACHED:
        return _as_context(known[2])
    found = _gathered(mind, allowed, history=history)
    session.answers[question] = (mind.now(), state, found)
    return found


def _gathered(mind: Mind, parts: tuple[str, ...], *, history: bool) -> Context:
    session = mind.guard.session
    found: dict[str, Any] = {}
    if "session" in parts:
        found = {"session": session.id, "started": session.started, "usage": _usage(mind)}
    if "agent" in parts:
        found["agent"] = session.variable("MIND_AGENT_ID") or mind.author or "person"
    if "task" in parts:
        on = branch(mind.project.root) if mind.has_project else None
        found["task"] = session.variable("MIND_TASK_ID") or on or "default"
    return Context(**found, history=session.history if history else None)


def _usage(mind: Mind) -> Usage:
    tokens = _number(mind.environ.get("MIND_TOKENS_USED"))
    usd = _number(mind.environ.get("MIND_USD_SPENT"))
    if tokens is None and usd is None:
        return Usage()
    return Usage(tokens=int(tokens or 0), usd=usd or 0.0, estimated=False)


def _number(text: str | None) -> float | None:
    """Returns what a variable of the environment says, where that is a sensible number."""
    import re

    if text is None or not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", text.strip()):
        return None
    return float(text)


def _as_context(answer: object) -> Context:
    if not isinstance(answer, Context):
        raise TypeError(type(answer).__name__)
    return answer


def _denied(kind: str) -> Denied:
    error = Denied(
        f"Access denied to context '{kind}'",
        hint="no type of context is allowed by the policy",
        details={"context_type": kind, "operation": "read"},
    )
    error.reason = "context_type"
    return error
