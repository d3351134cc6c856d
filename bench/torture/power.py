"""Loss of power: what a disk may hold of a command's writes, and what must hold in each such state.

The shim records the writes, names and flushes of a run in their order. After each of these events
the power may fail. What was flushed is then on the disk; everything else may be there or not:

- The data of a file is certain once the file was flushed after the write, and a name in a folder
  (made, renamed or removed) once the folder was flushed after that. A file that was flushed may
  still lack its name. POSIX promises no more.
- Each other event may be lost or kept, alone or with others. In place of lost data the file is
  shorter, or has zeros if its length was kept.

It is the model of T. S. Pillai et al., "All File Systems Are Not Created Equal" (2014), with the
weakest file system. Modes of files, and what git writes, are taken to be kept in their order.
"""

from __future__ import annotations

import hashlib
import os
import random
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.torture.shim import KINDS

_EVENT = struct.Struct("=2i4q")
_ACKNOWLEDGED = -1
_NAMES = ("create", "mkdir", "link", "rename", "unlink")
_RANDOM = 4
"""The number of states of random parts after each event."""

_OF_INDEX = 3
"""The number of events of the index that are lost alone, after each event."""

LOST = "everything that was not flushed is lost"
EMPTY = "names are kept, and data that was not flushed is lost"
ZEROS = "names and lengths are kept, and data that was not flushed is zeros"
NAMELESS = "data is kept, and names that were not flushed are lost"
ONE_LOST = "one event that was not flushed is lost"
ONE_KEPT = "one event that was not flushed is kept"
SOME = "random events that were not flushed are kept"
WAYS = (LOST, EMPTY, ZEROS, NAMELESS, ONE_LOST, ONE_KEPT, SOME)


class Event(NamedTuple):
    """A call that changed something, or a flush."""

    kind: str
    object: int
    """The file or folder that was written, flushed or named."""
    folder: int = 0
    """The folder of the name."""
    name: str = ""
    old_folder: int = 0
    """The folder of the name from which it was renamed."""
    old_name: str = ""
    at: int = 0
    data: bytes = b""
    mode: int = 0
    part: str = ""
    """`.git` or `.index`, if it is below such a folder."""


class Node(NamedTuple):
    """A file, a folder or a link on the disk."""

    mode: int
    data: bytes
    """Of a link, its target."""


Tree = Mapping[str, Node]
"""By path from the top."""


def tree(top: Path) -> dict[str, Node]:
    """Returns the files and folders below a folder."""
    return {path: node for path, (node, _) in _walked(top)}


def _walked(top: Path) -> Iterator[tuple[str, tuple[Node, int]]]:
    """Yields each path with its node and inode; folders before what is in them."""
    for folder, folders, files in os.walk(top):
        folders.sort()
        for name in sorted([*folders, *files]):
            path = Path(folder, name)
            status = path.lstat()
            data = b""
            if stat.S_ISLNK(status.st_mode):
                data = os.fsencode(os.readlink(path))  # noqa: PTH115 - bytes
            elif stat.S_ISREG(status.st_mode):
                data = path.read_bytes()
            yield path.relative_to(top).as_posix(), (Node(status.st_mode, data), status.st_ino)


class _Object:
    """A file or folder, with a name or without."""

    def __init__(self, node: Node) -> None:
        self.mode = node.mode
        self.data: bytes | bytearray = node.data
        self.names: dict[str, int] = {}


class Disk:
    """Files and folders to which events are applied, each kept, lost or zeroed."""

    def __init__(self, objects: Mapping[int, Node], names: Mapping[tuple[int, str], int]) -> None:
        """Takes the objects by number, and their names by folder; the top is 0."""
        self._objects = {number: _Object(node) for number, node in objects.items()}
        for (folder, name), number in names.items():
            self._objects[folder].names[name] = number

    def at(self, path: str) -> int:
        """Returns the object of a path. Raises `KeyError` if there is none."""
        number = 0
        for name in path.split("/") if path else ():
            number = self._objects[number].names[name]
        return number

    def has(self, path: str) -> bool:
        """Returns whether there is an object of a path."""
        try:
            self.at(path)
        except KeyError:
            return False
        return True

    def add(self, mode: int) -> int:
        """Makes an object without a name, and returns its number."""
        number = len(self._objects)
        self._objects[number] = _Object(Node(mode, b""))
        return number

    def apply(self, event: Event, how: str = "kept") -> None:
        """Applies an event that was kept, or whose data became zeros."""
        object = self._objects[event.object]
        if event.kind in ("write", "ftruncate"):
            data = object.data = bytearray(object.data)
            end = event.at + len(event.data)
            data.extend(bytes(max(0, end - len(data))))
            if event.kind == "ftruncate":
                del data[event.at :]
            elif how == "kept":
                data[event.at : end] = event.data
        elif event.kind == "chmod":
            object.mode = event.mode
        elif event.kind == "unlink":
            self._objects[event.folder].names.pop(event.name, None)
        elif event.kind in _NAMES:
            old = self._objects[event.old_folder].names
            if event.kind == "rename" and old.get(event.old_name) == event.object:
                del old[event.old_name]
            self._objects[event.folder].names[event.name] = event.object

    def tree(self) -> dict[str, Node]:
        """Returns everything that has a name."""
        nodes: dict[str, Node] = {}
        waiting = [("", self._objects[0])]
        while waiting:
            above, folder = waiting.pop()
            for name, number in folder.names.items():
                object = self._objects[number]
                nodes[f"{above}{name}"] = Node(object.mode, bytes(object.data))
                if stat.S_ISDIR(object.mode):
                    waiting.append((f"{above}{name}/", object))
        return nodes


class Loss(NamedTuple):
    """A loss of power."""

    way: str
    after: int
    """The number of events before it."""
    changed: tuple[tuple[int, str], ...]
    """The places of the events that were not kept: `lost`, or `zeros` in place of the data."""


class Record:
    """The events of one run, and the disk before it."""

    def __init__(self, top: Path, answers: Path, until: str = "") -> None:
        """Reads the disk before the run; `answers` is the file of its standard output.

        The run has answered once it printed `until`.
        """
        self._top = os.fspath(top)
        self._until = until.encode()
        self._answers = answers.stat().st_ino if answers.exists() else 0
        self._objects = {0: Node(stat.S_IFDIR | 0o755, b"")}
        self._names: dict[tuple[int, str], int] = {}
        self._inodes = {top.stat().st_ino: 0}
        self._parts = {0: ""}
        paths = {"": 0}
        for path, (node, inode) in _walked(top):
            above, _, name = path.rpartition("/")
            number = self._inodes.setdefault(inode, len(self._objects))
            self._objects.setdefault(number, node)
            self._names[paths[above], name] = paths[path] = number
            self._parts[number] = _part(path)
        self.events: list[Event] = []
        self.answered = 0
        """The number of events before the answer."""

    def read(self, data: bytes) -> None:
        """Reads the events that the shim wrote."""
        disk, place, answer, self.answered = self._disk(), 0, b"", -1
        while place < len(data):
            kind, mode, inode, at, size, length = _EVENT.unpack_from(data, place)
            place += _EVENT.size
            paths = data[place : place + length].decode().split("\0")
            place += length + size
            if kind == _ACKNOWLEDGED:
                if inode == self._answers and stat.S_ISREG(mode) and self.answered < 0:
                    answer += data[place - size : place]
                    if self._until in answer:
                        self.answered = len(self.events)
                continue
            event = self._event(
                disk, KINDS[kind], mode, inode, at, paths, data[place - size : place]
            )
            if event:
                self.events.append(event)
                disk.apply(event)
        if self.answered < 0:
            self.answered = len(self.events)

    def _event(
        self, disk: Disk, kind: str, mode: int, inode: int, at: int, paths: list[str], data: bytes
    ) -> Event | None:
        kind = "write" if kind in ("pwrite", "writev") else kind
        first, second = (os.path.relpath(path, self._top) if path else "" for path in paths[:2])
        if not first:
            if inode not in self._inodes:
                return None
            number = self._inodes[inode]
            return Event(kind, number, at=at, data=data, mode=mode, part=self._parts[number])
        above, _, name = (second or first).rpartition("/")
        part = _part(second or first)
        if kind in ("create", "mkdir"):
            self._inodes[inode] = number = disk.add(mode)
            self.new(number, mode, part)
        if kind in ("unlink", "chmod") and not disk.has(first):  # a socket, say
            return None
        if kind == "unlink":
            return Event(kind, disk.at(first), disk.at(above), name, part=part)
        if kind == "chmod":
            return Event(kind, disk.at(first), mode=mode, part=part)
        event = Event(kind, self._inodes[inode], disk.at(above), name, part=part)
        if kind != "rename":
            return event
        old, _, old_name = first.rpartition("/")
        return event._replace(old_folder=disk.at(old), old_name=old_name)

    def new(self, number: int, mode: int, part: str = "") -> None:
        """Adds an object that gets its name by an event."""
        self._objects[number], self._parts[number] = Node(mode, b""), part

    def _disk(self) -> Disk:
        return Disk(self._objects, self._names)

    def before(self) -> Tree:
        """Returns the tree before all events."""
        return self._disk().tree()

    def everything(self) -> Tree:
        """Returns the tree after all events."""
        return self.tree(Loss("", len(self.events), ()))

    def tree(self, loss: Loss) -> Tree:
        """Returns what the disk holds after a loss of power."""
        changed = dict(loss.changed)
        disk = self._disk()
        for place, event in enumerate(self.events[: loss.after]):
            if (how := changed.get(place, "kept")) != "lost":
                disk.apply(event, how)
        return disk.tree()

    def losses(self, seed: int) -> Iterator[Loss]:
        """Yields the ways in which the power may fail after each event."""
        drawn = random.Random(seed)
        for after in range(len(self.events) + 1):
            for way, changed in _ways(self.events, self._pending(after), drawn):
                yield Loss(way, after, tuple(sorted(changed.items())))

    def _pending(self, after: int) -> list[int]:
        """Returns the events that are not certain after a number of events, by their places."""
        flushed: set[int] = set()
        pending = []
        for place in range(after - 1, -1, -1):
            event = self.events[place]
            if event.kind == "fsync":
                flushed.add(event.object)
            elif event.kind == "chmod" or event.part == ".git":
                continue
            elif (event.folder if event.kind in _NAMES else event.object) not in flushed:
                pending.append(place)
        return pending[::-1]


def _ways(
    events: Sequence[Event], pending: Sequence[int], drawn: random.Random
) -> Iterator[tuple[str, Mapping[int, str]]]:
    """Yields the ways in which events may be lost, by their places."""
    data = [place for place in pending if events[place].kind in ("write", "ftruncate")]
    names = [place for place in pending if place not in data]
    yield LOST, dict.fromkeys(pending, "lost")
    yield EMPTY, dict.fromkeys(data, "lost")
    yield ZEROS, dict.fromkeys(data, "zeros")
    yield NAMELESS, dict.fromkeys(names, "lost")
    some = [place for place in pending if events[place].part == ".index"]
    some = drawn.sample(some, min(len(some), _OF_INDEX))
    for place in [place for place in pending if events[place].part != ".index"] + some:
        yield ONE_LOST, {place: "lost"}
        yield ONE_KEPT, {other: "lost" for other in pending if other != place}
    for _ in range(_RANDOM if len(pending) > 2 else 0):
        yield SOME, {place: drawn.choice(("kept", "lost", "zeros")) for place in pending}


def digests(tree: Tree, before: Tree) -> tuple[bytes, bytes]:
    """Returns hashes of what differs between two trees: of everything, and without the index."""
    hashed, without = hashlib.sha256(), hashlib.sha256()
    for path in sorted({*tree, *before}):
        if tree.get(path) != before.get(path):
            node = tree.get(path)
            data = node.data if node else b""
            head = repr((path, node and node.mode, len(data))).encode()
            for each in (hashed, without) if "/.index/" not in path else (hashed,):
                each.update(head)
                each.update(data)
    return hashed.digest(), without.digest()


def make(tree: Tree, before: Tree, top: Path) -> None:
    """Changes the files below a folder from one tree to another."""
    changed = [path for path in sorted({*tree, *before}) if tree.get(path) != before.get(path)]
    for path in reversed(changed):
        if path in before and not (path in tree and stat.S_ISDIR(tree[path].mode)):
            place = top / path
            if stat.S_ISDIR(before[path].mode):
                place.rmdir()
            else:
                place.unlink()
    for path in changed:
        if path in tree:
            node, place = tree[path], top / path
            if stat.S_ISDIR(node.mode):
                place.mkdir(exist_ok=True)
            elif stat.S_ISLNK(node.mode):
                place.symlink_to(os.fsdecode(node.data))
                continue
            else:
                place.write_bytes(node.data)
            place.chmod(stat.S_IMODE(node.mode))


def _part(path: str) -> str:
    """Returns which of the folders that are judged by rules of their own a path is below."""
    return next((part for part in (".git", ".index") if part in path.split("/")), "")
