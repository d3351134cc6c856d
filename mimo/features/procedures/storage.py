"""The files of runs: `.mind/.local/executions/<id>/`.

`journal.jsonl` has one record a line, each flushed to the disk before the next step starts. `lock`
is held by the process of the run, and released by the system when that process dies. `inbox.jsonl`
has the events that were sent to the run, and `cancel` the reason to stop.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from mimo.data import append_log, disk, files, locks
from mimo.data.disk import STORE
from mimo.data.loads import loads
from mimo.data.state import check_format
from mimo.errors import AmbiguousId, Command, Conflict, Hint, Invalid, NotFound, StorageFailed
from mimo.features.procedures.machine import Sent
from mimo.features.procedures.model import LATEST

FOLDER = f"{STORE}/.local/executions"
CALLER = "caller"
"""The key of the caller in the record of a start, and in that of a continuation."""
_KEPT = 500
"""The number of executions above which those that have ended are removed, oldest first."""
_WAIT_SECONDS = 0.3
_STALE_NS = 3600 * 10**9
"""The age at which the folder of a run is removed if its creation was interrupted."""

_JOURNAL = "journal.jsonl"
_BEGUN = "begun"
"""An empty file that is never changed: its time orders the runs."""

Record = dict[str, Any]


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


class Execution:
    """One run on disk."""

    def __init__(self, folder: Path) -> None:
        """Keeps its folder; nothing is read yet."""
        self.id = folder.name
        self._folder = folder
        self._journal = folder / _JOURNAL
        self._inbox = folder / "inbox.jsonl"
        self._cancel = folder / "cancel"
        self._lock = folder / "lock"
        self._count: int | None = None
        self.size = 0
        """Bytes of its records, as far as this process read and wrote them."""

    def records(self) -> list[Record]:
        """Returns all complete records; a torn last line does not count as written.

        Raises `StorageFailed` if any other record is missing or can't be read: continuing without
        it could repeat a step. A later version of mind that writes another form adds a `format`.
        """
        data = files.content(self._journal) or b""
        self.size = len(data)
        records: list[Record] = []
        lines = append_log.split(data).lines
        with suppress(ValueError):
            for line in lines:
                record = loads(line)
                check_format(record, f"`{self._journal}`")
                if not isinstance(record, dict) or record.get("n") != len(records):
                    break
                records.append(record)
        if not lines or len(records) < len(lines):
            raise StorageFailed(
                f"`{self._journal}` is damaged at line {len(records) + 1}",
                hint="run the procedure again from its start",
            )
        self._count = len(records)
        return records

    def start(self) -> Record:
        """Returns the first record, without reading the others. Raises `StorageFailed`."""
        with (
            suppress(OSError, ValueError),
            open(disk.opened(self._journal), "rb") as journal,  # noqa: PTH123 - a descriptor
        ):
            record = loads(journal.readline())
            check_format(record, f"`{self._journal}`")
            if isinstance(record, dict):
                return record
        raise StorageFailed(
            f"`{self._journal}` is damaged at line 1", hint="run the procedure again from its start"
        )

    def append(self, record: Mapping[str, Any]) -> None:
        """Writes one record, durably. Raises `StorageFailed`."""
        count = len(self.records()) if self._count is None else self._count
        line = _line({"n": count, **record})
        # After an interruption here the records are counted again: the line may be written or not.
        self._count = None
        append_log.append(self._journal, line)
        self.size += len(line)
        self._count = count + 1

    @property
    def is_running(self) -> bool:
        """Returns whether a process runs it."""
        return locks.is_held(self._lock)

    def note_seen(self, now: datetime) -> None:
        """Notes that it runs now, for the case that its process is killed.

        The time is that of the lock file, whose time of reading marks it as noted.
        """
        with suppress(OSError):
            os.utime(self._lock, (0, now.timestamp()))

    @property
    def seen(self) -> datetime | None:
        """Returns when it last ran; None if that was not noted."""
        with suppress(OSError):
            status = self._lock.stat()
            return None if status.st_atime else disk.moment(status.st_mtime)
        return None

    def hold(self, inherited: str | None = None) -> int:
        """Returns a descriptor that locks the run for this process until it is closed.

        `inherited` is the number of a descriptor that the process may have inherited. Raises
        `Conflict` if another process runs it.
        """
        if inherited and inherited.isdigit():
            with suppress(OSError):  # it is not an open descriptor, or the lock file is missing
                if os.path.samestat(os.fstat(int(inherited)), self._lock.stat()):
                    os.set_inheritable(int(inherited), False)
                    return int(inherited)
        descriptor = locks.hold(self._lock, wait=_WAIT_SECONDS)
        if descriptor is None:
            raise Conflict(
                f"`{self.id}` is running already",
                hint=Hint("see ", Command("procedure status", self.id)),
            )
        return descriptor

    @contextmanager
    def held(self, inherited: str | None = None) -> Iterator[None]:
        """Locks the run for this process while the block runs. Raises `Conflict`."""
        descriptor = self.hold(inherited)
        try:
            yield
        finally:
            os.close(descriptor)

    def send(self, event: str, *, turn: int | None) -> None:
        """Adds an event to the run's inbox, for the turn that it waits in, if it waits.

        Raises `StorageFailed`.
        """
        line = json.dumps({"event": event, "turn": turn})
        append_log.append(self._inbox, line.encode() + b"\n")

    def sent(self) -> list[Sent]:
        """Returns all events that were ever sent to it; earlier versions wrote no turn."""
        events = []
        for line in append_log.split(files.content(self._inbox) or b"").lines:
            with suppress(ValueError, KeyError, TypeError):
                item = loads(line)
                event, turn = str(item["event"]), item.get("turn", "unknown")
                number = turn if isinstance(turn, int) else None
                events.append(Sent(event=event, turn=number, early=turn is None))
        return events

    def cancel(self, reason: str) -> None:
        """Asks the process of the run to stop. Raises `StorageFailed`."""
        files.replace(self._cancel, reason.encode("utf-8", "replace"), mode=0o600)

    def cancelled(self) -> str | None:
        """Returns the reason of a request to stop, or None."""
        reason = files.content(self._cancel)
        return None if reason is None else reason.decode("utf-8", "replace") or "cancelled"

    def go_on(self) -> None:
        """Withdraws a request to stop."""
        if self._cancel.exists():
            files.remove(self._cancel)

    def remove(self) -> None:
        """Removes its files, as far as possible."""
        with suppress(OSError, StorageFailed):
            for entry in list(os.scandir(self._folder)):
                files.remove(Path(entry.path))
            self._folder.rmdir()


class Executions:
    """All runs of one project."""

    def __init__(self, root: Path, owner: str) -> None:
        """Keeps the project's root, and the secret that marks this user's runs."""
        self._root = root
        self._owner = owner

    def create(self, id: str, start: Mapping[str, Any]) -> Execution:
        """Returns a new run that has its first record. Raises `Conflict` and `StorageFailed`."""
        folder = files.safe_path(self._root, f"{FOLDER}/{id}")
        record = loads(_line({"n": 0, **start}))  # as it will be read
        line = _line({**record, "mark": self._mark(id, record)})
        # The journal comes last: a run exists once it has one.
        files.write_new(folder / _BEGUN, b"", mode=0o600)
        files.write_new(folder / _JOURNAL, line, mode=0o600)
        now = (folder / _BEGUN).stat().st_mtime_ns  # By the clock of the file system.
        for begun, name, is_run in self._folders():
            if not is_run and begun < now - _STALE_NS:
                self._execution(name).remove()
        if len(ids := self.ids()) > _KEPT:
            # A pull may bring any number of runs, which must not push out the user's own.
            ids = sorted(ids, key=lambda id: self._owned(id) is True)
            for old in map(self._execution, ids[:-_KEPT]):
                if not old.is_running:
                    old.remove()
        return Execution(folder)

    def _owned(self, id: str) -> bool | None:
        """Returns whether this user started a run; None if it can't be read."""
        try:
            return self.is_ours(id, self._execution(id).start())
        except StorageFailed:
            return None

    def is_foreign(self, id: str) -> bool:
        """Returns whether a run can be read, and this user did not start it."""
        return self._owned(id) is False

    def is_ours(self, id: str, start: Mapping[str, Any]) -> bool:
        """Returns whether this user started a run; one that came with a clone is not theirs.

        Its caller, text and context must not have changed since. Earlier versions recorded no
        caller, and marked the id alone.
        """
        record = {key: value for key, value in start.items() if key != "mark"}
        return start.get("mark") == self._mark(id, record)

    def _mark(self, id: str, record: Record) -> str:
        content = f"\n{json.dumps(record, sort_keys=True)}" if CALLER in record else ""
        return sha256(f"{self._owner}\n{id}{content}".encode()).hexdigest()

    def find(self, reference: str) -> Execution:
        """Returns the run with that id, or an unambiguous start or end of it, or the `latest`.

        One that came with a clone needs its whole id.
        Raises `NotFound`, `AmbiguousId`, and `Invalid` for a text that can't be an id.
        """
        ids = self.ids()
        if not reference or "/" in reference or reference.startswith("."):
            raise Invalid(
                f"`{reference}` is not an id of a run", hint="`run_procedure` returns one"
            )
        if reference == LATEST:
            for id_ in reversed(ids):
                if not self.is_foreign(id_):
                    return self._execution(id_)
        exact = [id_ for id_ in ids if id_ == reference]
        near = exact or [
            id_
            for id_ in ids
            if (id_.startswith(reference) or id_.endswith(reference)) and not self.is_foreign(id_)
        ]
        if len(near) > 1:
            raise AmbiguousId(
                f"`{reference}` matches {len(near)} runs",
                hint=f"such as {', '.join(near[:3])}",
                details={"candidates": near[:20]},
            )
        if not near:
            raise NotFound(
                f"no run `{reference}`",
                hint=Hint("`latest` is the newest; ", Command("procedure run"), " returns an id"),
            )
        return self._execution(near[0])

    def running(self) -> int:
        """Returns the number of runs that a process runs now."""
        return sum(self._execution(id).is_running for id in self.ids())

    def existing(self, id: str) -> Execution | None:
        """Returns the run with exactly that id, or None."""
        return self._execution(id) if id in self.ids() else None

    def ids(self) -> list[str]:
        """Returns the ids of all runs, oldest first."""
        return [name for _, name, is_run in self._folders() if is_run]

    def _folders(self) -> list[tuple[int, str, bool]]:
        """Returns the time and the name of each folder, oldest first, and whether it is a run.

        It is not a run if its creation was interrupted.
        """
        folder, listed = files.safe_path(self._root, FOLDER), []
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        begun = os.lstat(f"{entry.path}/{_BEGUN}").st_mtime_ns
                        is_run = os.path.lexists(f"{entry.path}/{_JOURNAL}")
                        listed.append((begun, entry.name, is_run))
        return sorted(listed)

    def _execution(self, id: str) -> Execution:
        return Execution(files.safe_path(self._root, f"{FOLDER}/{id}"))
