"""The record of every call: who did what, where, and how it ended; never what it was about."""

from contextlib import suppress
from typing import Any

from mimo.domain.policy import Operation
from mimo.errors import StorageFailed
from mimo.guard.call import Call
from mimo.guard.ending import Ending
from mimo.guard.session import Session
from mimo.store.audit import AuditLog

_LONGEST = 120


class Audit:
    """Writes the records of one memory's calls."""

    def __init__(self, log: AuditLog, session: Session) -> None:
        """Take where they go, and whose they are."""
        self._log = log
        self._session = session

    def check(self, call: Call) -> None:
        """Raises `StorageFailed` where a call could not be recorded that must be.

        That is one that writes a value; whatever reads goes on, and so does what leaves its trace
        in git anyway.
        """
        if _must_be_recorded(call):
            self._log.check_writable()

    def record(self, call: Call, ending: Ending) -> None:
        """Adds the record of a call. Raises `StorageFailed` where it must not be left out."""
        if not call.governed:
            return
        try:
            self._log.append(_event(call, ending, self._session))
        except (StorageFailed, OSError):
            if _must_be_recorded(call) and ending.error is None:
                raise


def _must_be_recorded(call: Call) -> bool:
    return call.operation is Operation.WRITE and call.namespace is not None


def _event(call: Call, ending: Ending, session: Session) -> dict[str, Any]:
    """Returns what is kept of a call; texts that somebody chose are made harmless."""
    told = {
        "event_type": "tool_call",
        "timestamp": call.at.isoformat().replace("+00:00", "Z"),
        "tool": call.tool,
        "operation": call.operation.value,
        "status": ending.status.value,
        "seconds": round(ending.seconds, 6),
        "session": _harmless(session.said("MIND_SESSION_ID")) or session.id,
        "agent": _harmless(call.agent),
        "namespace": _named(call.namespace),
        "key": _named(call.key),
        "error": ending.error,
        "reason": ending.reason,
        "redactions": ending.redactions or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _named(name: str | None) -> str | None:
    from mimo.guard.privacy import key_for_log

    return key_for_log(name)[:_LONGEST] if name is not None else None


def _harmless(text: str | None) -> str | None:
    if text is None:
        return None
    from mimo.guard.privacy import for_log

    with suppress(RecursionError):
        return for_log(text[:_LONGEST])
    return "…"
