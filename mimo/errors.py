"""Every error that mind reports, each with its code, exit status and hint.

MindError
├── Invalid            VALIDATION_ERROR         2   an argument or a setting is wrong
├── NotFound           NOT_FOUND                1   no memory (or other thing) of that name
├── AmbiguousId        AMBIGUOUS_ID             1   an abbreviated id fits several memories
├── NoProject          PROJECT_NOT_REGISTERED   3   the command needs a project
├── IndexNotReady      INDEX_NOT_READY          1   another process is still building the index
├── SearchFailed       SEARCH_FAILED            1   neither the index nor the files can be read
├── StorageFailed      STORAGE_ERROR            1   a file can't be read or written
├── Conflict           STORAGE_ERROR            1   a file changed under our hands
├── DaemonNotRunning   DAEMON_NOT_RUNNING       4   the command needs the daemon
├── FileTooLarge       FILE_TOO_LARGE           1   a file to ingest is larger than allowed
├── TooManyChunks      TOO_MANY_CHUNKS          1   a file to ingest falls into too many chunks
├── SandboxViolation   SANDBOX_VIOLATION        5   a path leads out of where files may be read
├── EdgeExists         EDGE_EXISTS              1   an edge of that title is there already
├── Denied             PERMISSION_DENIED        5   a policy forbids it
├── RateLimited        RATE_LIMITED             1   it was done too often; wait and try again
├── QuotaExceeded      QUOTA_EXCEEDED           1   a namespace is full, or a value too large
├── SecretDetected     SECRET_DETECTED          1   a text holds a secret, which is never stored
├── PiiDetected        PII_DETECTED             1   a value holds personal data
├── Cancelled          CANCELLED                130 the caller gave up before the work was done
├── Untrusted          UNTRUSTED                5   the text is unapproved, or another user's
└── Internal           INTERNAL_ERROR           1   a fault of ours; details only in the log

The wire form is the same everywhere:
`{"type": "error", "error": {"code", "message", "details"}}`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

INTERRUPTED = 130
"""The exit status after Ctrl-C: 128 + SIGINT, as shells count."""
TERMINATED = 143
"""The exit status after SIGTERM."""


class MindError(Exception):
    """An error that a person or an agent can act on."""

    code: ClassVar[str]
    exit_status: ClassVar[int] = 1
    details_are_whole: ClassVar[bool] = False
    """Whether the wire form has the given details alone; the hint is then for people only."""

    def __init__(
        self, message: str, *, hint: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        """Keep `message` (no full stop needed), what to do next, and data for programs."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})

    def wire(self) -> dict[str, Any]:
        """Returns the form in which every surface reports the error."""
        hint = {"hint": self.hint} if self.hint and not self.details_are_whole else {}
        details = self.details | hint
        error = {"code": self.code, "message": self.message, "details": details}
        return {"type": "error", "error": error}


class Invalid(MindError):
    """An argument, a setting or a file's content is not what it must be."""

    code = "VALIDATION_ERROR"
    exit_status = 2


class NotFound(MindError):
    """There is nothing of that name."""

    code = "NOT_FOUND"


class AmbiguousId(MindError):
    """An abbreviated id fits more than one memory; `details["candidates"]` lists them."""

    code = "AMBIGUOUS_ID"


class NoProject(MindError):
    """The command needs a project and none was found."""

    code = "PROJECT_NOT_REGISTERED"
    exit_status = 3


class IndexNotReady(MindError):
    """A first build by another process takes longer than we wait."""

    code = "INDEX_NOT_READY"


class SearchFailed(MindError):
    """Neither the index nor the files could be searched."""

    code = "SEARCH_FAILED"


class StorageFailed(MindError):
    """A file could not be read or written; nothing was lost."""

    code = "STORAGE_ERROR"


class Conflict(StorageFailed):
    """A file is not what it was when it was read."""


class DaemonNotRunning(MindError):
    """The command needs the daemon, and none runs."""

    code = "DAEMON_NOT_RUNNING"
    exit_status = 4


class FileTooLarge(MindError):
    """A file is larger than what may be ingested; nothing of it was stored."""

    code = "FILE_TOO_LARGE"


class TooManyChunks(MindError):
    """A file falls into more chunks than may be stored; nothing of it was stored."""

    code = "TOO_MANY_CHUNKS"


class SandboxViolation(MindError):
    """A path leads out of the folder that files may be read from."""

    code = "SANDBOX_VIOLATION"
    exit_status = 5


class EdgeExists(MindError):
    """There is an edge of that title; `details["id"]` says which."""

    code = "EDGE_EXISTS"


class Denied(MindError):
    """A policy forbids the operation."""

    code = "PERMISSION_DENIED"
    exit_status = 5
    details_are_whole = True
    reason: str = ""
    """In one word, such as `namespace`, for counting."""


class RateLimited(MindError):
    """Something was done too often; `details["retry_after"]` says how many seconds to wait."""

    code = "RATE_LIMITED"


class QuotaExceeded(MindError):
    """A namespace has no room for a value; nothing was stored and nothing evicted."""

    code = "QUOTA_EXCEEDED"


class SecretDetected(MindError):
    """A text holds a secret; nothing of it was stored, and the error does not repeat it."""

    code = "SECRET_DETECTED"


class PiiDetected(MindError):
    """A value holds personal data; `details["redacted_fields"]` says of which kinds."""

    code = "PII_DETECTED"
    details_are_whole = True


class Untrusted(MindError):
    """An unapproved text would have run something, or a store belongs to another user."""

    code = "UNTRUSTED"
    exit_status = 5


class Cancelled(MindError):
    """The caller gave up; everything that was done up to then is kept whole."""

    code = "CANCELLED"
    exit_status = INTERRUPTED


class Internal(MindError):
    """A fault of mind itself. The message is fixed, since an exception's text may hold a memory."""

    code = "INTERNAL_ERROR"


def status_of(error: KeyboardInterrupt) -> int:
    """Returns the exit status of a program that a signal ended: that of Ctrl-C, or of SIGTERM."""
    return TERMINATED if error.args == ("SIGTERM",) else INTERRUPTED
