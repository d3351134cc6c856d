"""Changes of files below folders, as Linux reports them.

The kernel queues a change before the call that makes it returns. So reading the queue, which takes
microseconds and never waits, gives every change so far. Other systems need the threads of
watchfiles, and a millisecond or two.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED, _IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x4000_0000
_ONLY_FOLDERS = 0x0100_0000
_WATCHED = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF
    | _MOVE_SELF | _ONLY_FOLDERS
)  # fmt: skip

_EVENT = struct.Struct("iIII")
_MOST_BYTES = 1 << 16


class Lost(OSError):
    """The kernel dropped changes, or a watched folder itself was moved or removed."""


class Changes:
    """The changes below some folders. Its owner calls `read` from one thread at a time."""

    is_exact = True

    def __init__(self, folders: Iterable[Path], enters: Callable[[str], bool]) -> None:
        """Watches folders, and their subfolders whose path `enters` accepts.

        Raises `OSError` if a folder is missing or can't be watched, and `AttributeError` if the
        system has no inotify.
        """
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._enters = enters
        self._folders: dict[int, str] = {}
        """The path of each watched folder, by its watch."""
        self._roots: set[int] = set()
        self._queue = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "")
        try:
            for folder in folders:
                self._roots.add(self._add(os.fspath(folder)))
                self._add_below(os.fspath(folder))
        except BaseException:
            self.close()
            raise

    def read(self) -> set[str]:
        """Returns the paths that changed since the last call, of files and of folders.

        A folder that appeared or went may have files that are not named. Raises `Lost`.
        """
        paths: set[str] = set()
        with suppress(BlockingIOError):
            while True:
                data, place = os.read(self._queue, _MOST_BYTES), 0
                while place < len(data):
                    watch, mask, _, length = _EVENT.unpack_from(data, place)
                    place += _EVENT.size + length
                    name = data[place - length : place].rstrip(b"\0")
                    self._note(watch, mask, os.fsdecode(name), paths)
        return paths

    def close(self) -> None:
        """Stops watching."""
        os.close(self._queue)

    def _note(self, watch: int, mask: int, name: str, paths: set[str]) -> None:
        if mask & (_OVERFLOW | _UNMOUNT) or (
            watch in self._roots and mask & (_DELETE_SELF | _MOVE_SELF | _IGNORED)
        ):
            raise Lost
        if mask & _IGNORED:
            self._folders.pop(watch, None)
            return
        if watch not in self._folders:
            return
        folder = self._folders[watch]
        if not name:
            paths.update([folder] if mask & _ATTRIB else ())
            return
        path = f"{folder}/{name}"
        if mask & _IS_FOLDER:
            if not self._enters(path):
                return
            if mask & (_CREATE | _MOVED_TO):
                with suppress(FileNotFoundError, NotADirectoryError):
                    self._add(path)
                    self._add_below(path)
            elif mask & _MOVED_FROM:
                self._drop(path)
        paths.add(path)

    def _add_below(self, folder: str) -> None:
        """Watches the subfolders of a folder; links are not followed."""
        waiting = [folder]
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False) and self._enters(entry.path):
                        with suppress(FileNotFoundError):
                            self._add(entry.path)
                            waiting.append(entry.path)

    def _add(self, folder: str) -> int:
        watch = self._libc.inotify_add_watch(self._queue, os.fsencode(folder), _WATCHED)
        self._folders[self._checked(watch, folder)] = folder
        return int(watch)

    def _drop(self, folder: str) -> None:
        """Stops watching a folder that was moved away, and those below it."""
        for watch, path in list(self._folders.items()):
            if path == folder or path.startswith(f"{folder}/"):
                del self._folders[watch]
                self._libc.inotify_rm_watch(self._queue, watch)

    def _checked(self, result: int, path: str) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return result
