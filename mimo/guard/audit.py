"""The record of every call: who did what, where, and how it ended; never what it was about."""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import ceil, log
from pathlib import Path
from typing import Any, NamedTuple

from mimo import disk
from mimo.disk import STORE
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.guard.call import Call, Ending, Session
from mimo.guard.chain import INTERRUPTED, Link, fault, line_of, link_of, mark_of, sealed
from mimo.guard.policy import Operation
from mimo.store import append_log, files
from mimo.store.locking import lock

# What the records of calls add up to: how many, how long, how often denied and redacted.


QUANTILES = (0.5, 0.9, 0.99)
_GROWTH = 1.1
_SMALLEST = 1e-6
"""Seconds; shorter calls count as this long."""

Labels = tuple[str, ...]


class Totals:
    """Counts since the first record that was counted."""

    def __init__(self) -> None:
        """Begin with nothing counted."""
        self.through = 0
        """The number of the last record that is counted."""
        self.requests: Counter[Labels] = Counter()
        """By tool, namespace and status."""
        self.denies: Counter[Labels] = Counter()
        """By tool and reason."""
        self.redactions: Counter[Labels] = Counter()
        """By tool."""
        self.seconds: defaultdict[Labels, float] = defaultdict(float)
        """The sum of all durations, by tool."""
        self.buckets: Counter[Labels] = Counter()
        """Calls, by tool and by the number of the bucket that their duration is in."""

    def add(self, link: Link) -> None:
        """Counts a record, unless it was counted already or is of something else than a call."""
        event = link.event
        if link.number <= self.through:
            return
        self.through = link.number
        if event.get("event_type") != "tool_call":
            return
        tool = str(event.get("tool"))
        self.requests[tool, str(event.get("namespace", "")), str(event.get("status"))] += 1
        if reason := event.get("reason"):
            self.denies[tool, str(reason)] += 1
        if redactions := event.get("redactions"):
            self.redactions[(tool,)] += int(redactions)
        seconds = float(event.get("seconds", 0.0))
        self.seconds[(tool,)] += seconds
        self.buckets[tool, str(_bucket(seconds))] += 1

    def tools(self) -> list[str]:
        """Returns every tool that was called, in the order of names."""
        return sorted({tool for tool, *_ in self.requests})

    def calls(self, tool: str, status: str | None = None) -> int:
        """Returns how often a tool was called, and perhaps ended so."""
        return sum(
            number
            for (name, _, ended), number in self.requests.items()
            if name == tool and status in (None, ended)
        )

    def latency(self, tool: str, quantile: float) -> float:
        """Returns the seconds within which such a part of a tool's calls was answered."""
        found = sorted((int(b), n) for (name, b), n in self.buckets.items() if name == tool)
        rank = quantile * sum(number for _, number in found)
        passed = 0
        for bucket, number in found:
            passed += number
            if passed >= rank:
                return _middle(bucket)
        return 0.0

    def as_json(self) -> dict[str, Any]:
        """Returns what `totals_of` takes."""
        kept = {name: [[*key, n] for key, n in getattr(self, name).items()] for name in _COUNTERS}
        return {"through": self.through, **kept}


_COUNTERS = ("requests", "denies", "redactions", "seconds", "buckets")


def totals_of(data: Mapping[str, Any]) -> Totals:
    """Returns totals from JSON. Raises `ValueError`, `TypeError` or `KeyError` for other JSON."""
    totals = Totals()
    totals.through = int(data["through"])
    for name in _COUNTERS:
        counter = getattr(totals, name)
        for *key, number in data[name]:
            counter[tuple(str(part) for part in key)] = number + 0
    return totals


def _bucket(seconds: float) -> int:
    """Returns the number of the bucket: its upper bound is the growth to that power."""
    return ceil(log(max(seconds, _SMALLEST)) / log(_GROWTH))


def _middle(bucket: int) -> float:
    """Returns what is equally far from both bounds of a bucket, relatively."""
    return float(2 * _GROWTH**bucket / (1 + _GROWTH))


# The audit log: `.mind/.local/audit.jsonl`, a chain of one record a line.


LARGEST = 4 * 1024 * 1024
"""Bytes at which a log is put aside, as `audit-<number of its first record>.jsonl`."""
KEPT = 25
"""Logs put aside that are kept, the newest; that older ones were dropped is a record itself."""
_TAIL = 8 * 1024
_HEAD_TAIL = 512
_HEX = 64
_LARGEST_HEAD = 16 * 1024
_WAIT_SECONDS = 5.0
_DIGITS = 12


class Head(NamedTuple):
    """The end of a chain."""

    number: int = 0
    """Of the last record, and so how many there are."""
    hash: str | None = None


class AuditLog:
    """The audit log of one project, or of what is done outside of all."""

    def __init__(
        self,
        home: Path,
        root: Path | None,
        randomness: Callable[[int], bytes],
        *,
        largest: int = LARGEST,
        kept: int = KEPT,
    ) -> None:
        """Take $MIND_HOME and a project's root; nothing is read or made yet."""
        self._home = home / "audit"
        self._root = root
        self._randomness = randomness
        self._largest = largest
        self._kept = kept

    @property
    def path(self) -> Path:
        """Returns where it is. Raises `StorageFailed` where that leads through a link."""
        if self._root is None:
            return self._home / "audit.jsonl"
        return files.safe_path(self._root, f"{STORE}/.local/audit.jsonl")

    def append(self, event: Mapping[str, Any]) -> None:
        """Adds a record. Raises `StorageFailed` where that can't be done."""
        path, key = self.path, self._key()
        with lock(path.with_suffix(".lock"), wait=_WAIT_SECONDS):
            head = self._newest(path, key)
            head = self._make_room(path, head, key)
            self._add(path, head, event, key)

    def check_writable(self) -> None:
        """Raises `StorageFailed` where no record could be added now."""
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
        """Yields each complete line's number in a file and its record, None where it holds none."""
        for number, line in enumerate(_lines(path), 1):
            try:
                yield number, link_of(line)
            except Invalid:
                yield number, None

    def totals(self) -> Totals:
        """Returns what all records add up to, those in logs that were dropped too."""
        totals = self._folded()
        for path in self.paths():
            if _last_number(path) <= totals.through:
                continue
            for _, link in self.links(path):
                if link:
                    totals.add(link)
        return totals

    @property
    def last_number(self) -> int:
        """Returns the number of the last record in the log, whoever sealed it; 0 without any."""
        return next(filter(None, map(_last_number, reversed(self.paths()))), 0)

    @property
    def torn(self) -> int:
        """Returns how many bytes of a record an interrupted write left at the end, mostly 0."""
        return append_log.torn(self.path)

    @property
    def key(self) -> bytes | None:
        """Returns what this machine seals records with, None where it never did."""
        with suppress(OSError, ValueError):
            return bytes.fromhex(files.read(self._home / "key").decode("ascii")) or None
        return None

    @property
    def head(self) -> Head | None:
        """Returns the end of the chain as this machine knows it, None where it never wrote any."""
        for line in reversed(_end(self._head_path(), _HEAD_TAIL)):
            count, _, own = line.decode("ascii", "replace").partition(" ")
            if count.isdigit() and len(own) == _HEX:
                return Head(int(count), own)
        return None

    def _key(self) -> bytes:
        if (key := self.key) is None:
            with suppress(Conflict):  # another process was quicker
                files.write_new(self._home / "key", self._randomness(32).hex().encode(), mode=0o600)
            key = self.key
        if key is None:
            raise StorageFailed(
                f"`{self._home / 'key'}` can't be used",
                hint="remove it to begin with a new key; records made with the old one can then "
                "no longer be verified",
            )
        return key

    def _newest(self, path: Path, key: bytes) -> Head:
        """Returns the end of the chain.

        That is the last record even if its writer died before it could note it, or has another
        `$MIND_HOME`: then what this one wrote last must still be in the chain before it.
        """
        head = self.head or Head()
        last = _last(path) or next(filter(None, map(_last, reversed(self.paths()))), None)
        if last is None or last.number <= head.number:
            return head
        foreign = last.home not in (None, mark_of(key))
        if fault(last, None if foreign else key) or (foreign and not self._holds(head)):
            return head
        return Head(last.number, last.hash)

    def _holds(self, head: Head) -> bool:
        """Returns whether a record is in the log."""
        return not head.number or any(
            link is not None and (link.number, link.hash) == head
            for path in reversed(self.paths())
            for _, link in self.links(path)
        )

    def _make_room(self, path: Path, head: Head, key: bytes) -> Head:
        """Puts a full log aside, and drops the oldest of very many."""
        if not path.exists() or path.stat().st_size < self._largest:
            return head
        self._fold()
        first = next((link for _, link in self.links(path) if link), None)
        number = first.number if first else 0
        files.rename(path, path.with_name(f"{path.stem}-{number:0{_DIGITS}}.jsonl"))
        dropped = self.paths()[: -self._kept]
        if not dropped:
            return head
        last = _last(dropped[-1])
        for old in dropped:
            files.remove(old)
        event = {"event_type": "dropped", "through": last.number if last else None}
        return self._add(path, head, event, key)

    def _fold(self) -> None:
        """Keeps what the records add up to, so that a full log need not be read again."""
        data = json.dumps(self.totals().as_json(), separators=(",", ":")).encode()
        files.replace(self._totals_path(), data, mode=0o600)

    def _folded(self) -> Totals:
        with suppress(
            OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError
        ):
            return totals_of(json.loads(files.read(self._totals_path())))
        return Totals()

    def _totals_path(self) -> Path:
        return self.path.with_name("metrics.json")

    def _add(self, path: Path, head: Head, event: Mapping[str, Any], key: bytes) -> Head:
        lines = b""
        left = append_log.torn(path)
        interrupted = [{"event_type": INTERRUPTED, "bytes": left}] if left else []
        for one in (*interrupted, event):
            link = sealed({"n": head.number + 1, **one, "home": mark_of(key)}, head.hash, key)
            lines += line_of(link)
            head = Head(link.number, link.hash)
        append_log.append(path, lines, durable=False)
        self._note(head)
        return head

    def _note(self, head: Head) -> None:
        """Keeps the end of the chain: a line at the end of a file, since a crash tears no more."""
        path = self._head_path()
        line = f"{head.number} {head.hash}\n".encode()
        if path.exists() and path.stat().st_size > _LARGEST_HEAD:
            files.replace(path, line, mode=0o600)
        else:
            append_log.append(path, line, durable=False)

    def _head_path(self) -> Path:
        import hashlib

        where = os.fsencode(self._root) if self._root else b""
        return self._home / "heads" / hashlib.sha256(where).hexdigest()[:32]


def _last_number(path: Path) -> int:
    last = _last(path)
    return last.number if last else 0


def _lines(path: Path) -> list[bytes]:
    try:
        return append_log.read(path).lines
    except OSError:
        return []


def _last(path: Path) -> Link | None:
    """Returns the last record of a file that is complete."""
    for line in reversed(_end(path, _TAIL)):
        with suppress(Invalid):
            return link_of(line)
    return None


def _end(path: Path, size: int) -> list[bytes]:
    """Returns the complete lines in the last bytes of a file; the first may be a part of one."""
    try:
        with os.fdopen(disk.opened(path), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return append_log.split(file.read()).lines
    except OSError:
        return []


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
