"""Every error that mind reports, with its code and exit status, and hints: what to do next.

The wire form of an error is the same everywhere:
`{"type": "error", "error": {"code", "message", "details"}}`.

A hint names commands by values, so that the server can spell them as tools and arguments for agents
(`mimo/server/wording.py`). It is a `str`, with command lines: the form for terminals, logs and the
JSON of the command line. A text that formatting or slicing makes of one is plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

INTERRUPTED = 130
"""The exit status after Ctrl-C: 128 + SIGINT, as shells count."""
TERMINATED = 143
"""The exit status after SIGTERM."""

UNDECIDED = 6
"""The exit status after a failure of a command whose status 1 is a finding, as of `mind scan`."""


class MindError(Exception):
    """An error that a person or an agent can act on."""

    code: ClassVar[str]
    exit_status: ClassVar[int] = 1
    """0 is success, 1 a failure (or `UNDECIDED`), 2 wrong usage, 3 no project, 4 no daemon, 5 a
    refusal."""
    details_are_complete: ClassVar[bool] = False
    """True if the wire form omits the hint, which is then shown only to people."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        details: Mapping[str, Any] | None = None,
        typed: tuple[str, str] | None = None,
    ) -> None:
        """Takes a message without a full stop, what to do next, and data for programs.

        `typed` is the message and the hint for a terminal, if they differ: `--limit` for `limit`.
        """
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        self.typed = typed

    def wire(self) -> dict[str, Any]:
        """Returns the JSON form, which is the same on every surface."""
        details = dict(self.details)
        if self.hint and not self.details_are_complete:
            details["hint"] = self.hint
        error = {"code": self.code, "message": self.message, "details": details}
        return {"type": "error", "error": error}


class Invalid(MindError):
    """An argument, a setting or the content of a file is invalid."""

    code = "VALIDATION_ERROR"
    exit_status = 2


class NotFound(MindError):
    """No object has that name."""

    code = "NOT_FOUND"


class AmbiguousId(MindError):
    """An abbreviated id matches more than one memory; `details["candidates"]` lists them."""

    code = "AMBIGUOUS_ID"


class NoProject(MindError):
    """The command needs a project, and there is none."""

    code = "PROJECT_NOT_REGISTERED"
    exit_status = 3


class IndexNotReady(MindError):
    """Another process is still building the first index."""

    code = "INDEX_NOT_READY"


class SearchFailed(MindError):
    """Neither the index nor the files could be searched."""

    code = "SEARCH_FAILED"


class StorageFailed(MindError):
    """A file can't be read or written; no data was lost."""

    code = "STORAGE_ERROR"


class Conflict(StorageFailed):
    """Another process changed or created a file."""


class Misread(ValueError):
    """A value in a database that mind did not write, so the database is damaged."""


class LaterFormat(StorageFailed):
    """A later version of mind wrote the data, in a format that this version does not know."""

    def __init__(self, subject: str, number: int, current: int = 1) -> None:
        """Takes the data, its format, and the format that this version writes."""
        super().__init__(
            f"{subject} has format {number}; this mind writes format {current}",
            hint="update mind; nothing was changed",
        )

    @classmethod
    def check(cls, subject: str, number: object, current: int = 1) -> None:
        """Raises the error if `number`, the `format` that the data names, is a later one."""
        if type(number) is int and number > current:
            raise cls(subject, number, current)


class DaemonNotRunning(MindError):
    """The command needs the daemon, and none runs."""

    code = "DAEMON_NOT_RUNNING"
    exit_status = 4


class FileTooLarge(MindError):
    """A file is too large to ingest; nothing of it was stored."""

    code = "FILE_TOO_LARGE"


class TooManyChunks(MindError):
    """A file has more chunks than the limit; nothing of it was stored."""

    code = "TOO_MANY_CHUNKS"


class SandboxViolation(MindError):
    """A path leads out of the folder from which files may be read."""

    code = "SANDBOX_VIOLATION"
    exit_status = 5


class EdgeExists(MindError):
    """A pitfall with that title exists; `details["id"]` is its id."""

    code = "EDGE_EXISTS"


class Denied(MindError):
    """A policy forbids the operation."""

    code = "PERMISSION_DENIED"
    exit_status = 5
    details_are_complete = True
    reason: str = ""
    """One word for the metrics, such as `namespace`."""


class RateLimited(MindError):
    """There were too many calls; `details["retry_after"]` is the number of seconds to wait."""

    code = "RATE_LIMITED"


class QuotaExceeded(MindError):
    """A namespace has no room for a value; nothing was stored and nothing evicted."""

    code = "QUOTA_EXCEEDED"


class SecretDetected(MindError):
    """A text contains a secret; nothing was stored, and the error does not repeat the secret."""

    code = "SECRET_DETECTED"


class PiiDetected(MindError):
    """A value contains personal data; `details["redacted_fields"]` lists the kinds."""

    code = "PII_DETECTED"
    details_are_complete = True


class Untrusted(MindError):
    """An unapproved text would have run a program, or a store is not the user's own."""

    code = "UNTRUSTED"
    exit_status = 5


class Cancelled(MindError):
    """The caller cancelled the work; files that were written remain complete."""

    code = "CANCELLED"
    exit_status = INTERRUPTED


class Updated(MindError):
    """mind was updated or removed while this process was running; start it again."""

    code = "MIND_UPDATED"

    def __init__(self) -> None:
        """Takes nothing: the message is fixed."""
        super().__init__(
            "mind was updated or removed while this process was running",
            hint="start it again; for an MCP server, start a new session in the client",
        )


class Internal(MindError):
    """A bug in mind. The message is fixed, since an exception's text may contain a memory."""

    code = "INTERNAL_ERROR"


def status_of(error: KeyboardInterrupt) -> int:
    """Returns the exit status after Ctrl-C or SIGTERM."""
    return TERMINATED if error.args == ("SIGTERM",) else INTERRUPTED


# Hints.


class Command(str):
    """A command line: `Command("edit", id, add_tag="x")` is `mind edit ID --add-tag x`."""

    __slots__ = ("options", "path", "words")

    path: str
    """The words of the command, such as `procedure run`; empty for an option alone."""
    words: tuple[str, ...]
    """The values that are given by place."""
    options: dict[str, str | None]
    """The values of options by their long names without dashes; None for a flag."""

    def __new__(cls, path: str, /, *words: str, **options: str | bool | None) -> Command:
        """Quotes values for a shell. True is a flag; None and False leave an option out.

        An underscore at the end belongs to the keyword alone: `from_` for `--from`.
        """
        named = {
            name.rstrip("_").replace("_", "-"): None if value is True else str(value)
            for name, value in options.items()
            if value is not None and value is not False
        }
        typed = [
            f"--{name}" if value is None else f"--{name} {_quoted(value)}"
            for name, value in named.items()
        ]
        shown = list(map(_quoted, words))
        dashed = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
        end = ("--",) if dashed < len(words) else ()
        arguments = (*shown[:dashed], *typed, *end, *shown[dashed:])
        command = super().__new__(cls, " ".join((*(("mind", path) if path else ()), *arguments)))
        command.path, command.words, command.options = path, words, named
        return command


Option = partial(Command, "")
"""Makes an option alone, of the command that a text is about: `Option(tag="x")` is `--tag x`."""


class Hint(str):
    """A text with commands and options in it, which it shows in backticks.

    `Hint("see ", Command("undo", list=True))` is "see `mind undo --list`".
    """

    __slots__ = ("parts",)

    parts: tuple[str, ...]
    """Plain texts and commands."""

    def __new__(cls, *parts: str) -> Hint:
        """Takes texts, commands and other hints."""
        flat = [inner for part in parts for inner in getattr(part, "parts", (part,))]
        shown = (f"`{part}`" if isinstance(part, Command) else part for part in flat)
        hint = super().__new__(cls, "".join(shown))
        hint.parts = tuple(flat)
        return hint


def join_texts(*texts: str | None) -> str | None:
    """Returns texts as one, which keeps their commands; None if all are missing or empty."""
    joined: str | None = None
    for text in filter(None, texts):
        joined = Hint(joined, "; ", text) if joined else text
    return joined


def _quoted(word: str) -> str:
    if word.isalnum() and word.isascii():
        return word
    from shlex import quote

    return quote(word)
