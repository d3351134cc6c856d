"""The trash: texts that commands removed or replaced, which `mind undo` restores.

`.mind/.local/trash/<id>.jsonl` is the entry of one command. Its first line names the command. Each
further line is a file: its content before, and the digest of its content after. A line is on the
disk before the file changes. Each line begins with a code made with the user's key, so that lines
from a clone and edited lines are never restored. A later version of mind that writes another form
adds a `format` to the first line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from mimo.data import append_log, disk, files
from mimo.data.disk import STORE
from mimo.data.failures import failure
from mimo.data.files import LOCAL
from mimo.data.loads import loads
from mimo.data.locks import lock
from mimo.data.state import check_format
from mimo.errors import AmbiguousId, Command, Hint, MindError, NotFound, StorageFailed
from mimo.frozen import frozen, names_of, replace
from mimo.memory.ids import suffix

FOLDER = f"{LOCAL}/trash"
_SUFFIX = ".jsonl"
_STAMP = "%Y%m%dT%H%M%S%f"
_MOST_ENTRIES = 1_000
_SPARE = 100
"""The room in entries that a sweep of a full trash makes, since it reads the start of them all."""
_LARGEST_HEADER = 65_536
_KEPT_OF_LOCAL = (f"{LOCAL}/reviewed", f"{LOCAL}/imports/")
"""Local files that are restored, too, since commands depend on them."""


@frozen
class Kept:
    """A file that a command changed."""

    path: str
    """Relative to the project's root, with `/`."""
    before: bytes | None
    """Its content before; None if it did not exist."""
    after: str | None
    """The digest of its content after; None if the command removed it."""
    mode: int = 0o644
    approved: bool = False
    """True if the content before was approved."""


@frozen
class Entry:
    """A command that changed files."""

    id: str
    time: datetime
    command: str
    """The words after `mind`, for example `evolve outcome`."""
    tool: str
    """The canonical name, as in a policy."""
    is_tool: bool
    """True if an agent can call it."""
    like: str | None = None
    """Another tool whose rules apply, too."""
    by: str | None = None
    """The agent that called it; None for a person."""
    namespace: str | None = None
    key: str | None = None
    undoes: str | None = None
    """The entry that this command undid."""


class Recorder:
    """Copies the files to the trash that one command is about to change."""

    def __init__(
        self,
        named: Callable[[Path], str | None],
        opened: Callable[[], Trash],
        entry: Callable[[str], Entry],
        note: Callable[[str | None], None],
        approved: Callable[[str, bytes], bool],
    ) -> None:
        """Takes functions that name a file to keep, open the trash, and create the entry.

        The last two are called when the first file changes. `note` shows a message to the user, and
        `approved` returns whether the text of a file is approved.
        """
        self._named = named
        self._opened = opened
        self._entry = entry
        self._note, self._approved = note, approved
        self._written: Entry | None = None
        self._lines = 0
        self._is_durable = False
        """True if the name of the entry is on the disk."""
        self._exempt: set[str] = set()
        self._has_lost = False
        """True if a file was created without an entry."""
        self.undoes: str | None = None

    @cached_property
    def _trash(self) -> Trash:
        return self._opened()

    @property
    def id(self) -> str | None:
        """Returns the id of the entry, or None if the command has not changed a file."""
        return self._written.id if self._written else None

    def exempt(self, path: str) -> None:
        """Lets the command change a file without a copy."""
        self._exempt.add(path)

    def __call__(self, contents: Mapping[Path, bytes | None]) -> None:
        """Copies files before they get new contents; None stands for removal.

        Raises `StorageFailed`; no file may change then. A command that only creates files goes on
        without the trash, since no text is lost, and the user gets a note.
        """
        copies = [copy for path, data in contents.items() if (copy := self._kept(path, data))]
        try:
            if copies:
                self._write(copies)
                if not self._has_lost:
                    self._note(None)
        except StorageFailed as error:
            if any(copy.before is not None for copy in copies):
                raise
            self._has_lost = True
            self._note(Hint(Command("undo"), f" can't undo this: {error.message}"))

    def begin(self) -> None:
        """Writes the entry before any file changes."""
        self._write(())

    def _kept(self, path: Path, data: bytes | None) -> Kept | None:
        relative = self._named(path)
        if relative is None or relative in self._exempt:
            return None
        try:
            content, status = disk.look(path)
        except FileNotFoundError:
            content, mode = None, 0o644
        except OSError as error:
            raise failure("read", path, error) from error
        else:
            mode = status.st_mode & 0o777
        if content == data:
            return None
        after = None if data is None else files.digest(data)
        is_approved = content is not None and self._approved(relative, content)
        return Kept(path=relative, before=content, after=after, mode=mode, approved=is_approved)

    def _write(self, copies: Sequence[Kept]) -> None:
        entry, lines = self._written, []
        if entry is None:
            entry = replace(self._entry(self._trash.new_id()), undoes=self.undoes)
            lines.append(_of_entry(entry))
        lines += [_copy_line(copy) for copy in copies]
        # A loss of power may come after any write. The earlier text and the name of its entry are
        # flushed before the file changes, and the new text before it gets the file's name (see
        # `mimo.data.files`), so one of the two texts is on the disk at any time. An entry of
        # created files is not flushed: without it, no text is lost, but the files can't be undone.
        # An undo that only restores files also changes which entries count as undone.
        durable = bool(entry.undoes) or any(copy.before is not None for copy in copies)
        flush_name = durable and not self._is_durable
        self._trash.append(entry.id, self._lines, lines, durable=durable, flush_name=flush_name)
        self._written, self._lines = entry, self._lines + len(lines)
        self._is_durable |= durable

    def forget_if(self, unchanged: Callable[[Kept], bool]) -> None:
        """Removes the entry of a failed command if all its files are unchanged."""
        with suppress(MindError):
            if self._written and all(map(unchanged, self._trash.kept(self._written.id))):
                self._trash.remove(self._written.id)


class Trash:
    """The trash of one project; several processes may use it at once."""

    def __init__(
        self,
        root: Path,
        owner: str,
        *,
        most_bytes: int,
        most_days: int,
        now: Callable[[], datetime],
    ) -> None:
        """Takes a project's root, the user's secret, the limits, and a clock."""
        self._root = root
        self._key = f"trash {owner}".encode()
        self._most_bytes, self._most_days = most_bytes, most_days
        self._now = now

    def ids(self) -> list[str]:
        """Returns the ids of all entries, oldest first."""
        try:
            names = os.listdir(files.safe_path(self._root, FOLDER))  # noqa: PTH208 - a Path for each
        except FileNotFoundError:
            return []
        return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))

    @property
    def last(self) -> str:
        """Returns the id of the newest entry of this user; empty if there is none."""
        return next(filter(self._is_own, reversed(self.ids())), "")

    def _is_own(self, id: str) -> bool:
        """Returns whether this user signed an entry."""
        try:
            return self.entry(id) is not None
        except StorageFailed:  # A later version of mind wrote it.
            return True

    def new_id(self) -> str:
        """Returns an id that sorts after all of this user; removes entries beyond the limits."""
        stamp = self._now().astimezone(UTC).strftime(_STAMP)
        ids, foreign = self.ids(), list[str]()
        while ids and ids[-1] >= stamp and not self._is_own(ids[-1]):
            foreign.append(ids.pop())  # A clone may bring any name.
        if ids and ids[-1] >= stamp:
            # The order is kept within one microsecond and after the clock was set back.
            stamp = _after(ids[-1].partition("_")[0]) or stamp
        self._sweep([*foreign, *ids])
        return f"{stamp}_{suffix(os.urandom(4))}"

    def _sweep(self, ids: Sequence[str]) -> None:
        """Removes the oldest entries beyond the limits, those that this user did not sign first.

        The newest entry and entries of a later version of mind are never removed.
        """
        oldest = (self._now() - timedelta(days=self._most_days)).astimezone(UTC).strftime(_STAMP)
        sizes, limit = dict.fromkeys(ids, 0), _MOST_ENTRIES
        folder = files.safe_name(self._root, FOLDER)
        for id_ in ids:
            with suppress(OSError):
                sizes[id_] = os.lstat(f"{folder}/{id_}{_SUFFIX}").st_size
        if len(ids) >= limit or sum(sizes.values()) > self._most_bytes:
            # A pull may bring any number of entries, which must not push out the user's own.
            ids, limit = sorted(ids, key=lambda id_: (self._is_own(id_), id_)), limit - _SPARE
        held = 0
        for number, id_ in enumerate(reversed(ids)):
            with suppress(OSError, MindError):
                held += sizes[id_]
                beyond = held > self._most_bytes or number >= limit
                if number and (beyond or id_ < oldest):
                    self.entry(id_)  # Raises for a later format.
                    files.remove(self._path(id_))

    def append(
        self,
        id: str,
        number: int,
        lines: Sequence[dict[str, Any]],
        *,
        durable: bool,
        flush_name: bool,
    ) -> None:
        """Adds lines to an entry, numbered from `number`.

        Raises `StorageFailed`; the entry is then unchanged.
        """
        data = b"".join(self._signed(id, n, line) for n, line in enumerate(lines, number))
        append_log.append(self._path(id), data, durable=durable, flush_name=flush_name)

    def entry(self, id: str) -> Entry | None:
        """Returns an entry; None if it is missing or not signed by this user.

        Raises `StorageFailed` if a later version of mind wrote it.
        """
        header = None
        with suppress(OSError, MindError):
            data, _ = disk.look(self._path(id), limit=_LARGEST_HEADER)
            header = self._checked(id, 0, data.partition(b"\n")[0])
        if header is None:
            return None
        check_format(header, f"the change `{id}` in the trash")
        return Entry(id=id, **{**header, "time": datetime.fromisoformat(header["time"])})

    def kept(self, id: str) -> tuple[Kept, ...]:
        """Returns the files of an entry as they were before its command and after.

        Raises `NotFound` if the entry is missing or not signed by this user, and `StorageFailed` if
        a later version of mind wrote it.
        """
        try:
            lines = disk.read(self._path(id)).split(b"\n")
        except (OSError, MindError):
            lines = []
        header = self._checked(id, 0, lines[0]) if lines else None
        if header is None:
            raise NotFound(
                f"the trash has no `{id}`", hint=Hint("see ", Command("undo", list=True))
            )
        check_format(header, f"the change `{id}` in the trash")
        by_path: dict[str, Kept] = {}
        for number, line in enumerate(lines[1:], 1):
            # Torn lines and lines of other users are never restored.
            if (data := self._checked(id, number, line)) is not None:
                copy = _read_copy(data)
                earliest = by_path.get(copy.path, copy)
                by_path[copy.path] = replace(copy, before=earliest.before, mode=earliest.mode)
        return tuple(by_path.values())

    def matches(self, target: str) -> list[str]:
        """Returns the ids of the entries with an id, or with a start or end of one."""
        ids = self.ids()
        return [id_ for id_ in ids if id_ == target] or [
            id_ for id_ in ids if target and (id_.startswith(target) or id_.endswith(target))
        ]

    def find(self, target: str) -> Entry:
        """Returns the entry with an id, or with an unambiguous start or end of one.

        Raises `NotFound` and `AmbiguousId`.
        """
        matches = self.matches(target)
        if len(matches) > 1:
            raise AmbiguousId(
                f"`{target}` matches {len(matches)} changes",
                hint=f"such as {', '.join(matches[:3])}",
                details={"candidates": matches[:20]},
            )
        entry = self.entry(matches[0]) if matches else None
        if entry is None:
            raise NotFound(
                f"the trash has no `{target}`", hint=Hint("see ", Command("undo", list=True))
            )
        return entry

    def remove(self, id: str) -> None:
        """Removes an entry. Raises `StorageFailed`."""
        files.remove(self._path(id))

    def purge(self, path: str, is_of: Callable[[Kept], bool]) -> int:
        """Removes every copy of a memory's file: at its path, and at others those of `is_of`.

        Returns the number of copies. Raises `StorageFailed`; before any change, for an entry of a
        later version of mind.
        """
        entries = {id_: entry for id_ in self.ids() if (entry := self.entry(id_))}
        purged, held = 0, set[str]()

        def is_kept(copy: Kept) -> bool:
            is_created = copy.before is None and copy.path in held
            held.discard(copy.path)
            if is_of(copy):
                held.add(copy.path)  # An earlier copy without a text is of its creation.
            return copy.path != path and copy.path not in held and not is_created

        for id_, entry in reversed(entries.items()):
            copies = self.kept(id_)
            left = [copy for copy in copies if is_kept(copy)]
            purged += len(copies) - len(left)
            if not left:
                self.remove(id_)
            elif len(left) < len(copies):
                lines = [_of_entry(entry), *map(_copy_line, left)]
                data = b"".join(self._signed(id_, n, line) for n, line in enumerate(lines))
                files.replace(self._path(id_), data, mode=0o600)
        return purged

    def locked(self) -> AbstractContextManager[None]:
        """Locks out other processes that undo."""
        return lock(files.local(self._root, "trash.lock"))

    def _path(self, id: str) -> Path:
        return files.safe_path(self._root, f"{FOLDER}/{id}{_SUFFIX}")

    def _signed(self, id: str, number: int, line: dict[str, Any]) -> bytes:
        data = json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode()
        return self._code(id, number, data) + b" " + data + b"\n"

    def _code(self, id: str, number: int, data: bytes) -> bytes:
        about = f"{id}\n{number}\n".encode("utf-8", "replace")
        return disk.hmac_sha256(self._key, about + data).hex().encode()

    def _checked(self, id: str, number: int, line: bytes) -> dict[str, Any] | None:
        """Returns the content of a line; None if it is torn or not signed by this user."""
        from hmac import compare_digest

        code, _, data = line.partition(b" ")
        if not compare_digest(code, self._code(id, number, data)):
            return None
        content: dict[str, Any] = loads(data)
        return content


def named(root: Path, path: Path) -> str | None:
    """Returns a file's path in the project; None if the trash does not keep it."""
    try:
        relative = path.relative_to(root).as_posix()
    except ValueError:
        return None
    if relative.startswith((f"{LOCAL}/", f"{STORE}/.index/", ".git/")):
        return relative if relative.startswith(_KEPT_OF_LOCAL) else None
    return relative


def current() -> Recorder | None:
    """Returns the recorder of the running command, if there is one."""
    return next((w for w in files.WATCHERS.get() if isinstance(w, Recorder)), None)


def _after(stamp: str) -> str | None:
    """Returns the stamp of the next microsecond; None for another kind of name."""
    try:
        time = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
        return (time + timedelta(microseconds=1)).strftime(_STAMP)
    except (ValueError, OverflowError):
        return None


def _of_entry(entry: Entry) -> dict[str, Any]:
    data = {name: getattr(entry, name) for name in names_of(entry) if name != "id"}
    return data | {"time": entry.time.astimezone(UTC).isoformat()}


def _copy_line(copy: Kept) -> dict[str, Any]:
    line: dict[str, Any] = {"path": copy.path, "after": copy.after, "mode": copy.mode}
    line |= {"approved": True} if copy.approved else {}
    if copy.before is None:
        return line
    try:
        return {**line, "text": copy.before.decode()}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {**line, "bytes": b64encode(copy.before).decode()}


def _read_copy(data: dict[str, Any]) -> Kept:
    content = None
    if "text" in data:
        content = data["text"].encode()
    elif "bytes" in data:
        from base64 import b64decode

        content = b64decode(data["bytes"])
    return Kept(
        path=data["path"],
        before=content,
        after=data["after"],
        mode=data["mode"],
        approved=data.get("approved") is True,
    )
