"""How a call ended."""

from enum import StrEnum

from mimo.errors import Denied, MindError, PiiDetected, RateLimited, SecretDetected
from mimo.frozen import frozen


class Status(StrEnum):
    """Whether a call did what it should."""

    OK = "ok"
    DENIED = "denied"
    FAILED = "failed"


@frozen
class Ending:
    """What came of a call."""

    status: Status = Status.OK
    error: str | None = None
    """The code of the error."""
    reason: str | None = None
    """Why it was denied, in one word."""
    redactions: int = 0
    """How many secrets and personal data were taken out of the answer."""
    seconds: float = 0.0


def ended_by(error: BaseException) -> Ending:
    """Returns how a call ended that raised this."""
    if not isinstance(error, MindError):
        return Ending(status=Status.FAILED, error=type(error).__name__)
    reason = _reason(error)
    status = Status.DENIED if reason else Status.FAILED
    return Ending(status=status, error=error.code, reason=reason)


def _reason(error: MindError) -> str | None:
    """Returns the word for why a call was denied, or None where it was not."""
    if isinstance(error, Denied):
        return error.reason or "surface"
    known = {RateLimited: "rate_limit", SecretDetected: "secret", PiiDetected: "pii"}
    return known.get(type(error))
