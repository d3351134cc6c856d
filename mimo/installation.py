"""The code of a process that runs long: an update must not mix old modules with new ones."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from mimo import BUILD, installed
from mimo.data import disk
from mimo.errors import Updated

_MANY_FILES = 65_536
"""The number of open files that suffices for thousands of projects."""
_FOLDER = os.path.dirname(__file__)  # noqa: PTH120 - as in `mimo`

State = tuple[int, int, int] | None
"""The inode, the time and the size of a file; None if it is missing."""

_states: dict[str, State] = {}
"""The files as this process keeps them; empty in a short command."""


def keep() -> None:
    """Keeps this process to the code with which it started, and prepares it to run long.

    From now on, a module whose file has changed is not loaded: importing it raises `Updated`.
    The modules in memory stay in use.
    """
    permit_many_files()
    return_memory()
    if not _states:
        _states.update(_files(_FOLDER))
        sys.meta_path.insert(0, _Guard())


def permit_many_files() -> None:
    """Raises the limit of open files, as far as the system lets a process do so.

    Many systems begin with 1,024 or fewer, and each open project takes about ten.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY_FILES if hard == resource.RLIM_INFINITY else min(_MANY_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGE = 4 << 20
"""The size in bytes of blocks that are outside of the heap."""
_FREE = 8 << 20
"""The free bytes at the end of the heap that stay: each long text that is read takes 7 MB."""
_GARBAGE = 10_000
"""The number of new objects that starts a garbage collection. Commands begin with a larger one."""


def return_memory() -> None:
    """Lets memory go back that a long process no longer needs: garbage, and free parts of the heap.

    By default, the C library glibc has a heap for each thread, and takes blocks of up to 32 MB from
    it once such a block was freed. The parts that are free between others stay with the process:
    44 MB after a few requests of 5 MB. One heap is enough, since Python lets one thread work at a
    time.
    """
    import ctypes

    gc.set_threshold(_GARBAGE)
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _FREE)


def check_installed() -> None:
    """Raises `Updated` if mind was updated or removed since this process started."""
    if installed() != BUILD:
        raise Updated


def is_changed() -> bool:
    """Returns whether mind was updated or removed, or a file of a checkout edited."""
    return installed() != BUILD or any(_state(path) != state for path, state in _states.items())


def digest() -> str:
    """Returns the checksum of the code of this process, equal for all of an unchanged installation.

    Unlike `BUILD`, it also changes if a file of a checkout is edited.
    """
    states = (_states or _files(_FOLDER)).items()
    # Without the folder: links may lead to it.
    files = sorted((path.removeprefix(_FOLDER), state) for path, state in states)
    return disk.blake2b(f"{BUILD}{files}".encode("utf-8", "replace")).hex()


class _Guard:
    """Refuses to load a module whose file has changed; otherwise leaves it to the next finder."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.startswith("mimo."):
            check_installed()  # In an archive, no module has a file of its own.
            base = f"{_FOLDER}/{'/'.join(name.split('.')[1:])}"
            for path in (f"{base}.py", f"{base}/__init__.py"):
                if _state(path) != _states.get(path):
                    raise Updated


def _files(folder: str) -> Mapping[str, State]:
    """Returns the modules in a folder and below it; none in an archive."""
    files: dict[str, State] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    files[entry.path] = _state(entry.path)
                elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                    files.update(_files(entry.path))
    except OSError:
        pass
    return files


def _state(path: str) -> State:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
