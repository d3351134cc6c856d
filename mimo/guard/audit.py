"""The audit log: who called which tool, when, and how the call ended; never its content.

`.mind/.local/audit.jsonl` is a chain of records (see `chain`), one on each line. Calls outside of
all projects are recorded in $MIND_HOME.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path

from mimo.data import append_log, disk, files
from mimo.data.locks import lock
from mimo.data.state import StateFile
from mimo.errors import (
    Denied,
    Invalid,
    MindError,
    PiiDetected,
    RateLimited,
    SecretDetected,
    StorageFailed,
)
from mimo.frozen import NamedTuple, frozen
from mimo.guard import Operation
from mimo.guard.chain import (
    INTERRUPTED,
    LOST,
    Fault,
    Link,
    Placed,
    fault,
    faults,
    line_of,
    link_of,
    mark_of,
    sealed,
)
from mimo.text.calendar import iso_utc
from mimo.text.clean import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mimo.guard.policy import Request
    from mimo.guard.totals import Totals

LARGEST = 4 * 1024 * 1024
"""Size in bytes at which a log is renamed to `audit-<number of its first record>.jsonl`."""
KEPT = 25
"""Number of renamed logs that are kept. Removing older logs is recorded in the log."""
MOST_CALLS = 100
"""Number of calls that a session keeps."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TAIL = 8 * 1024
_HEAD_TAIL = 512
_HEX = 64
_LARGEST_HEAD = 16 * 1024
_WAIT_SECONDS = 5.0
_DIGITS = 12
_LONGEST = 120
_NAME = r"[\w.:@/ -]{1,128}"
_PLAIN = r"[a-z]{1,12}(?:-[a-z]{1,12}){0,2}"
"""The name of a program, such as `claude-code`: not even part of it needs to be redacted."""


class Status(StrEnum):
    """The result of a call."""

    OK = "ok"
    DENIED = "denied"
    FAILED = "failed"


@frozen
class Ending:
    """The outcome of a call."""

    status: Status = Status.OK
    error: str | None = None
    """The code of the error."""
    reason: str | None = None
    """One word for why the call was denied."""
    redactions: int = 0
    """Number of secrets and personal data that were removed from the answer."""
    seconds: float = 0.0


_REASONS = {RateLimited: "rate_limit", SecretDetected: "secret", PiiDetected: "pii"}


def ended_by(error: BaseException) -> Ending:
    """Returns the outcome of a call that raised an error."""
    if not isinstance(error, MindError):
        return Ending(status=Status.FAILED, error=type(error).__name__)
    reason = _REASONS.get(type(error))
    if isinstance(error, Denied):
        reason = error.reason or "surface"
    return Ending(
        status=Status.DENIED if reason else Status.FAILED, error=error.code, reason=reason
    )


class Used(NamedTuple):
    """A call of a tool in a session."""

    tool: str
    at: datetime
    success: bool


class Session:
    """The calls of one process, or of one client of a server with several.

    Environment variables may name what they belong to.
    """

    def __init__(
        self, environ: Mapping[str, str], started: datetime, client: str | None = None
    ) -> None:
        """Takes the environment, the time of the start, and the short name of the client."""
        self._environ, self._client = environ, client
        self.started = started
        self.calls = 0
        """The number of all calls."""
        self.answers: dict[object, tuple[datetime, object, object]] = {}
        """Cached answers about the session: the time, the state, and the answer."""
        self._history: deque[Used] = deque(maxlen=MOST_CALLS)

    @property
    def id(self) -> str:
        """Returns `MIND_SESSION_ID`; if it is not set, a name with the start time."""
        client = f"_{self._client}" if self._client else ""
        default = f"session_{int(self.started.timestamp())}{client}"
        return self.variable("MIND_SESSION_ID") or default

    @property
    def history(self) -> tuple[Used, ...]:
        """Returns the last finished calls, oldest first."""
        return tuple(self._history)

    def variable(self, name: str) -> str | None:
        """Returns an environment variable; None unless its value is a harmless name."""
        text = self._environ.get(name, "").strip()
        return text if text and compiled(_NAME).fullmatch(text) else None

    def elsewhere(self) -> Session:
        """Returns the same session for another project, with no calls yet."""
        return Session(self._environ, self.started)

    def note(self, tool: str, at: datetime, *, success: bool) -> None:
        """Adds a call."""
        self.calls += 1
        self._history.append(Used(tool, at, success))


def must_be_recorded(request: Request) -> bool:
    """Returns whether a call may not go on without its record.

    Only calls that write a value may not. Other writes leave a trace in git.
    """
    return request.operation is Operation.WRITE and request.namespace is not None


def event_of(request: Request, ending: Ending, session: Session) -> dict[str, Any]:
    """Returns the record of a call, its names without secrets and personal data."""
    named = session.variable("MIND_SESSION_ID")
    event = {
        "event_type": "tool_call",
        "timestamp": iso_utc(request.at),
        "tool": request.tool,
        "operation": request.operation.value,
        "status": ending.status.value,
        "seconds": round(ending.seconds, 6),
        "session": _safe_name(named[:_LONGEST]) if named else session.id,
        "agent": _safe_name(request.agent[:_LONGEST]) if request.agent else None,
        "user": _safe_name(request.user) if request.user else None,
        "namespace": request.namespace and masked_name(request.namespace),
        "key": request.key and masked_name(request.key),
        "error": ending.error,
        "reason": ending.reason,
        "redactions": ending.redactions or None,
    }
    return {name: value for name, value in event.items() if value is not None}


def _safe_name(text: str) -> str:
    """Returns a name for a record; the checks are loaded only for one that may need them."""
    if compiled(_PLAIN).fullmatch(text):
        return text
    from mimo.guard.privacy import for_log

    return for_log(text)


def masked_name(name: str) -> str:
    """Returns a namespace or key as records, metrics and spans show it."""
    from mimo.privacy.values import screened_key

    return screened_key(name, personal=True)[:_LONGEST]


class Head(NamedTuple):
    """The last record of a chain."""

    number: int = 0
    """The number of the record, and so of all records."""
    hash: str | None = None
    boot: str = ""
    """The start of the machine at which it was written; empty if unknown."""


class AuditLog:
    """The audit log of one project, or of the calls outside of all projects."""

    def __init__(
        self,
        home: Path,
        root: Path | None,
        randomness: Callable[[int], bytes],
        *,
        largest: int = LARGEST,
        kept: int = KEPT,
    ) -> None:
        """Takes $MIND_HOME and a project's root; nothing is read or created yet."""
        self._home = home / "audit"
        self._root = root
        self._randomness = randomness
        self._largest = largest
        self._kept = kept
        self._written: tuple[object, Head] = (None, Head())
        """The state after the last record that this process added, and the record."""

    @property
    def path(self) -> Path:
        """Returns the path of the log. Raises `StorageFailed` if it leads through a link."""
        if self._root is None:
            return self._home / "audit.jsonl"
        return files.local(self._root, "audit.jsonl")

    def append(self, event: Mapping[str, Any]) -> None:
        """Adds a record, which is not flushed to the disk. Raises `StorageFailed`.

        A machine that started again since the last record may have lost the newest ones. This is
        recorded, since later it would look like a removal.
        """
        path, key = self.path, self._key()
        with lock(path.with_suffix(".lock"), wait=_WAIT_SECONDS):
            state, head = self._written
            is_current = state == self._state(path, key)
            if not is_current:
                head = self._newest(path, key)
                if self.has_restarted and (gap := self._gap(path, head, key)):
                    lost = {"event_type": LOST, "after": gap.after}
                    head = self._add(path, head, lost, key)
            head = self._make_room(path, head, key)
            head = self._add(path, head, event, key, is_complete=is_current)
            self._written = (self._state(path, key), head)

    def check_format(self) -> None:
        """Raises `StorageFailed` if a later version of mind wrote the last record."""
        paths: list[Path] = []
        with suppress(StorageFailed, OSError):
            paths = self.paths()
        any(map(_last, reversed(paths)))

    def check_writable(self) -> None:
        """Raises `StorageFailed` if no record can be added."""
        path = self.path
        self._key()
        with lock(path.with_suffix(".lock"), wait=_WAIT_SECONDS):
            append_log.append(path, b"", durable=False)

    def paths(self) -> list[Path]:
        """Returns the files of the log, oldest first."""
        live = self.path
        aside = sorted(live.parent.glob(f"{live.stem}-{'[0-9]' * _DIGITS}.jsonl"))
        return aside + ([live] if live.exists() else [])

    def links(self, path: Path) -> Iterator[tuple[int, Link | None]]:
        """Yields the number of each complete line of a file, and its record or None."""
        try:
            lines = append_log.split(disk.read(path)).lines
        except OSError:
            return
        for number, line in enumerate(lines, 1):
            try:
                yield number, link_of(line)
            except MindError:
                yield number, None

    def totals(self) -> Totals:
        """Returns the totals of all records, those in removed logs included."""
        from mimo.guard.totals import Totals, totals_of

        totals = StateFile(totals_of).read(self.path.parent, self._totals_file()) or Totals()
        for path in self.paths():
            if _last_number(path) <= totals.through:
                continue
            for _, link in self.links(path):
                if link:
                    totals.add(link)
        return totals

    @property
    def last_number(self) -> int:
        """Returns the number of the last record, whichever key sealed it; 0 without records."""
        return next(filter(None, map(_last_number, reversed(self.paths()))), 0)

    @property
    def torn(self) -> int:
        """Returns the bytes of an incomplete record that an interrupted write left at the end."""
        return append_log.torn(self.path)

    @property
    def key(self) -> bytes | None:
        """Returns the key that this machine seals records with; None if it has none yet."""
        try:
            return bytes.fromhex(disk.read(self._home / "key").decode("ascii")) or None
        except (OSError, ValueError):
            return None

    @property
    def head(self) -> Head | None:
        """Returns the last record that this machine wrote; None if it wrote none."""
        for line in reversed(_end(self._heads, _HEAD_TAIL)):
            count, _, tail = line.decode("ascii", "replace").partition(" ")
            digest, _, tail = tail.partition(" ")
            if count.isdigit() and len(digest) == _HEX:
                # Earlier versions wrote another number before the boot.
                return Head(int(count), digest, tail.rpartition(" ")[2])
        return None

    @property
    def has_restarted(self) -> bool:
        """Returns whether the machine may have started again since the last record.

        The records since some seconds before may be missing then.
        """
        head = self.head
        return head is not None and not (head.boot and head.boot == boot())

    def _gap(self, path: Path, head: Head, key: bytes) -> Fault | None:
        """Returns the first fault in the newest file, such as missing records; None without one."""
        lines = (Placed(path.name, *line) for line in self.links(path))
        broken = faults(lines, key, count=head.number, digest=head.hash, from_start=False)
        return next((fault for fault in broken if fault.is_broken), None)

    def _key(self) -> bytes:
        if (key := self.key) is None:
            files.ensure(self._home / "key", self._randomness(32).hex().encode(), mode=0o600)
            key = self.key
        if key is None:
            raise StorageFailed(
                f"`{self._home / 'key'}` can't be used",
                hint="remove it to create a new key; older records can then no longer be verified",
            )
        return key

    def _newest(self, path: Path, key: bytes) -> Head:
        """Returns the last record of the chain.

        The record also counts if its writer was killed before it noted the new head, or if it was
        written with another `$MIND_HOME`. In the second case, the last record of this home must
        still be in the chain. Raises `StorageFailed` for a record of a later version of mind.
        """
        head = self.head or Head()
        newest = _last(path) or next(filter(None, map(_last, reversed(self.paths()))), None)
        if newest is None or newest.number <= head.number:
            return head
        foreign = newest.home not in (None, mark_of(key))
        if fault(newest, None if foreign else key):
            return head
        links = (link for path in reversed(self.paths()) for _, link in self.links(path) if link)
        if (
            foreign
            and head.number
            and not any((link.number, link.hash) == head[:2] for link in links)
        ):
            return head
        return Head(newest.number, newest.hash, head.boot)

    def _make_room(self, path: Path, head: Head, key: bytes) -> Head:
        """Renames a full log, and removes the oldest renamed logs beyond the limit."""
        if not (stamp := disk.stamp(path)) or stamp.size < self._largest:
            return head
        disk.flush(path)  # Later, only the newest file is searched for a loss of power.
        # The totals are stored, so that a full log need not be read again.
        StateFile(dict).write(path.parent, self._totals_file(), self.totals().as_json())
        oldest = next((link for _, link in self.links(path) if link), None)
        number = oldest.number if oldest else 0
        files.rename(path, path.with_name(f"{path.stem}-{number:0{_DIGITS}}.jsonl"))
        dropped = self.paths()[: -self._kept]
        if not dropped:
            return head
        newest = _last(dropped[-1])
        # Recorded first: if the process is killed, removed logs would look like tampering.
        event = {"event_type": "dropped", "through": newest.number if newest else None}
        head = self._add(path, head, event, key)
        for old in dropped:
            files.remove(old)
        return head

    def _add(
        self,
        path: Path,
        head: Head,
        event: Mapping[str, Any],
        key: bytes,
        *,
        is_complete: bool = False,
    ) -> Head:
        lines = b""
        torn = 0 if is_complete else append_log.torn(path)
        interrupted = [{"event_type": INTERRUPTED, "bytes": torn}] if torn else []
        for item in (*interrupted, event):
            link = sealed({"n": head.number + 1, **item, "home": mark_of(key)}, head.hash, key)
            lines += line_of(link)
            head = Head(link.number, link.hash, boot())
        # The first record of a file is flushed with the name: a log never disappears.
        stamp = disk.stamp(path)
        append_log.append(path, lines, durable=not (stamp and stamp.size))
        # The new head is the last line of a file, which survives a crash.
        heads, line = self._heads, f"{' '.join(map(str, head))}\n".encode()
        if (stamp := disk.stamp(heads)) and stamp.size > _LARGEST_HEAD:
            files.replace(heads, line, mode=0o600)
        else:
            append_log.append(heads, line, durable=not stamp)
        return head

    def _state(self, path: Path, key: bytes) -> object:
        """Returns a value that changes if another process writes to the log."""
        return key, disk.stamp(path), disk.stamp(self._heads)

    def _totals_file(self) -> str:
        """Returns the name of the stored totals; a clone does not know the key and so the name."""
        return f"{files.own_name('metrics', (self.key or b'').hex())}.json"

    @cached_property
    def _heads(self) -> Path:
        """The file with the heads of the log of this project."""
        root = os.fsencode(self._root) if self._root else b""
        return self._home / "heads" / disk.sha256(root).hex()[:32]


@cache
def boot() -> str:
    """Returns a name for this start of the machine; empty if the system has none."""
    try:
        return disk.read(_BOOT).decode("ascii").strip()
    except (OSError, ValueError):
        return ""


def _last_number(path: Path) -> int:
    with suppress(StorageFailed):
        if link := _last(path):
            return link.number
    return 0


def _last(path: Path) -> Link | None:
    """Returns the last complete record of a file. Raises `StorageFailed` for a later version's."""
    for line in reversed(_end(path, _TAIL)):
        with suppress(Invalid):
            return link_of(line)
    return None


def _end(path: Path, size: int) -> list[bytes]:
    """Returns the complete lines in the last bytes of a file; the first may be cut off."""
    try:
        with os.fdopen(disk.opened(path), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return append_log.split(file.read()).lines
    except OSError:
        return []
