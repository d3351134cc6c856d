"""Writing files: atomic and durable writes, append logs, and locks.

Only this module changes files, and never through a symbolic link. New content goes to a temporary
file beside the target, is flushed to the disk, and takes the target's name in one step. Then the
folder is flushed, too. In a private place (see `mimo.disk`) only the user can read new files.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from mimo import disk
from mimo.disk import PRIVATE_FOLDERS, STORE, WAIT_SECONDS
from mimo.errors import Conflict, Invalid, MindError, StorageFailed
from mimo.frozen import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

CONFIG = "config.toml"
"""The settings file. A `.mind/` without it is not a project; the user's is in $MIND_HOME."""

LOCAL = f"{STORE}/.local"
"""The folder of files that belong to this machine only."""

PRIVATE = f"{STORE}/private/"

ALONE = "alone:"
"""The prefix of the digest of a text that must be approved by itself, such as a commit message:
following the project's changes does not cover it, since it is not in `.mind/`."""


def is_private(path: str) -> bool:
    """Returns whether a path is in a folder called `private` below `.mind/`, at any depth.

    Letter case is ignored, since it is on some file systems.
    """
    folders = path.casefold().split("/")
    return folders[0] == STORE and "private" in folders[1:-1]


def unshared_folder(path: str) -> str | None:
    """Returns the private folder that contains a path under `.mind/`, or is it; None without one.

    `path` is relative to the project.
    """
    parts = path.split("/")
    for end, part in enumerate(parts[1:], 2):
        if part.casefold() in PRIVATE_FOLDERS:
            return "/".join(parts[:end])
    return None


def is_shared(path: str) -> bool:
    """Returns whether git may hold a file under `.mind/`, by its path relative to the project."""
    return "/" in path and unshared_folder(path) is None


_Watcher = Callable[[Mapping[Path, bytes | None]], None]

WATCHERS: ContextVar[tuple[_Watcher, ...]] = ContextVar("WATCHERS", default=())
"""Called with the new contents of files, None for removed files, before any of them changes."""

_STALE_SECONDS = 3600
_LARGE_FOLDER = 500_000
"""The size of a folder itself, in bytes, with some 10,000 files."""
_SELDOM = 60
"""A write to a large folder removes old temporary files in one of so many seconds."""
_AT_ONCE = 8
_BLOCK = 4096
_LONGEST_PAUSE = 0.05
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
_HINTS = {
    errno.ENOSPC: ("no space left on the disk", "free some space; nothing was changed"),
    errno.EDQUOT: ("your disk quota is used up", "free some space; nothing was changed"),
    errno.EROFS: ("the file system is read-only", "nothing was changed"),
    errno.EACCES: ("permission denied", "check who owns it (`ls -l`); nothing was changed"),
    errno.EPERM: ("operation not permitted", "check who owns it (`ls -l`); nothing was changed"),
    errno.ELOOP: ("it is a symbolic link", "links are never followed; use a regular file"),
    errno.ENOTDIR: ("one of its folders is a file", "move that file away"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
    errno.EIO: ("input/output error", "check the disk (`dmesg`)"),
    errno.EMFILE: ("too many files are open", "close some programs, or raise `ulimit -n`"),
    errno.ENFILE: ("too many files are open on this machine", "close some programs"),
    errno.EFBIG: ("the file is too large", "nothing was changed"),
}


def digest(data: bytes) -> str:
    """Returns the SHA-256 of a file's bytes, in hex."""
    return disk.sha256(data).hex()


def content(path: Path) -> bytes | None:
    """Returns the bytes of a file; None if it is missing. Raises `StorageFailed`."""
    try:
        return disk.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure("read", path, error) from error


def safe_path(root: Path, relative: str) -> Path:
    """Returns the path of `relative` (with `/`) below `root`. Raises as `safe_name` does."""
    return Path(safe_name(root, relative))


def safe_name(root: Path, relative: str) -> str:
    """Returns the path of `relative` (with `/`) below `root`, faster than as a `Path`.

    Raises `Invalid` if it would leave `root`, and `StorageFailed` if a part of it is a symbolic
    link.
    """
    inner = f"/{relative}/"
    # A backslash is harmless here, but names another place on other systems.
    odd = "//" in inner or "/./" in inner or "/../" in inner or "\\" in inner or "\0" in inner
    if odd or os.path.isabs(relative):  # noqa: PTH117 - creating a Path is slower
        raise Invalid(
            f"`{relative!r}` is not a path within the project", hint="use a relative path"
        )
    path = os.fspath(root)
    for part in relative.split("/"):
        path = f"{path}/{part}"
        if os.path.islink(path):  # noqa: PTH114 - creating a Path for each part is slower
            raise StorageFailed(
                f"`{path}` is a symbolic link", hint="links are never followed; use a regular file"
            )
    return path


def local(root: Path, name: str) -> Path:
    """Returns the path of a file in `.mind/.local/`. Raises as `safe_path` does."""
    return safe_path(root, f"{LOCAL}/{name}")


def write_new(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Creates a file with `mode` less the umask, and its folders.

    Raises `Conflict` if the name is taken, and `StorageFailed`.
    """
    with reported("write", path):
        disk.make_folder(path.parent)
        _clean(path.parent)
        with _temporary(path, data, mode) as temporary:
            _announce({path: data})
            _give_name(temporary, path)
        disk.flush_folder(path.parent)


def write_all_new(contents: Mapping[Path, bytes]) -> frozenset[Path]:
    """Creates many files as `write_new` does, and returns those whose names were taken.

    All contents are on the disk before the first file gets its name. Raises `StorageFailed`; then
    some files may be missing, but none is incomplete.
    """
    from concurrent.futures import ThreadPoolExecutor

    for folder in (folders := dict.fromkeys(path.parent for path in contents)):
        with reported("write", folder):
            disk.make_folder(folder)
            _clean(folder)
    taken = set()
    with ExitStack() as written:
        temporary = {}
        for path, data in contents.items():
            written.enter_context(reported("write", path))
            temporary[path] = written.enter_context(_temporary(path, data, 0o666, flush=False))
        # In parallel, which lets the file system combine the writes.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(disk.flush, temporary.values()))
        _announce(contents)
        for path, name in temporary.items():
            try:
                _give_name(name, path)
            except FileExistsError:
                taken.add(path)
        for folder in folders:
            disk.flush_folder(folder)
    return frozenset(taken)


def replace(
    path: Path,
    data: bytes,
    *,
    expect: str | None = None,
    mode: int = 0o666,
    durable: bool = True,
) -> None:
    """Replaces the content of a file, and keeps its permissions.

    With `expect`, the file must still have that digest (hold the lock). Without it, a missing file
    is created with `mode` less the umask. Unless `durable`, a power failure may lose the content,
    as for a file that another program reads at once. Raises `Conflict` and `StorageFailed`; the
    file is then unchanged.
    """
    with reported("write", path):
        _check(path, expect)
        disk.make_folder(path.parent)
        _clean(path.parent)
        with _temporary(path, data, mode, flush=durable) as temporary:
            with suppress(FileNotFoundError):
                old_mode = stat.S_IMODE(path.lstat().st_mode)
                temporary.chmod(disk.mode_for(path, old_mode))
            _announce({path: data})
            temporary.replace(path)
        if durable:
            disk.flush_folder(path.parent)


def remove(path: Path, *, expect: str | None = None) -> None:
    """Removes a file; with `expect`, only if it still has that digest (hold the lock).

    Raises `Conflict` and `StorageFailed`.
    """
    with reported("remove", path):
        _check(path, expect)
        _announce({path: None})
        path.unlink()
        disk.flush_folder(path.parent)


def move(path: Path, new: Path, data: bytes, *, expect: str) -> None:
    """Gives a file another content and then another name (hold the lock).

    If it ends in between, the file has its new content under its old name: there are never two.
    Raises `Conflict` if the file has changed or the name is taken, and `StorageFailed`.
    """
    with reported("write", new):
        _check(path, expect)
        if os.path.lexists(new):
            raise FileExistsError(new)
        disk.make_folder(new.parent)
        with _temporary(new, data, 0o666) as temporary:
            _announce({path: None, new: data})
            temporary.replace(path)
        disk.flush_folder(path.parent)
        path.rename(new)
        for folder in {path.parent, new.parent}:
            disk.flush_folder(folder)


def remove_all(expected: Mapping[Path, str]) -> dict[Path, MindError]:
    """Removes many files as `remove` does, each only if it still has its digest (hold the lock).

    Returns the files that could not be removed, with the reason. Missing files are ignored.
    """
    kept: dict[Path, MindError] = {}
    _announce(dict.fromkeys(expected))
    for path, digest_ in expected.items():
        try:
            with reported("remove", path), suppress(FileNotFoundError):
                path.lstat()
                _check(path, digest_)
                path.unlink()
        except StorageFailed as error:
            kept[path] = error
    for folder in dict.fromkeys(path.parent for path in expected):
        with suppress(FileNotFoundError):
            disk.flush_folder(folder)
    return kept


def remove_empty(folder: Path) -> bool:
    """Removes a folder if it is empty; returns whether it was. Links are not followed."""
    with suppress(OSError):
        folder.rmdir()
        with suppress(OSError):
            disk.flush_folder(folder.parent)
        return True
    return False


def rename(path: Path, new: Path) -> None:
    """Renames a file, and replaces a file of the new name. Raises `StorageFailed`."""
    with reported("rename", path):
        path.replace(new)
        disk.flush_folder(new.parent)


@contextmanager
def watched(watcher: _Watcher) -> Iterator[None]:
    """Calls `watcher` before the block changes files, after the current watchers."""
    token = WATCHERS.set((*WATCHERS.get(), watcher))
    try:
        yield
    finally:
        WATCHERS.reset(token)


def _announce(contents: Mapping[Path, bytes | None]) -> None:
    """Calls the watchers with a change. Raises `StorageFailed`."""
    watchers = WATCHERS.get()
    # Files that a watcher writes are not announced.
    token = WATCHERS.set(())
    try:
        for watcher in watchers:
            watcher(contents)
    finally:
        WATCHERS.reset(token)


def _check(path: Path, expect: str | None) -> None:
    """Raises `Conflict` if the file has changed, and `OSError` if it is a symbolic link."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if expect is None:
        return
    try:
        current = digest(disk.read(path))
    except FileNotFoundError:
        raise Conflict(
            f"`{path}` was removed since it was read", hint="list the memories again"
        ) from None
    if current != expect:
        raise Conflict(
            f"`{path}` has changed since it was read", hint="read it again and repeat the command"
        )


@contextmanager
def written(path: Path, *, over: bool, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Gives an open file that takes its name once the block has ended, and is removed if it fails.

    With `over`, it replaces a file of that name. The folder must exist. Raises `Conflict` if the
    name is taken, and `StorageFailed`.
    """
    with reported("write", path):
        _clean(path.parent)
        with _opened(path, mode) as (file, temporary):
            yield file
            file.flush()
            os.fsync(file.fileno())
            if over:
                temporary.replace(path)
            else:
                _give_name(temporary, path)
        disk.flush_folder(path.parent)


@contextmanager
def _temporary(path: Path, data: bytes, mode: int, *, flush: bool = True) -> Iterator[Path]:
    """Gives a temporary file with `data` beside `path`, and removes it afterwards."""
    with _opened(path, mode) as (file, temporary):
        with file:
            file.write(data)
            file.flush()
            if flush:
                os.fsync(file.fileno())
        yield temporary


@contextmanager
def _opened(path: Path, mode: int) -> Iterator[tuple[BinaryIO, Path]]:
    """Gives a new open file beside `path` and its name, which is removed afterwards."""
    temporary = disk.temporary_name(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | disk.NO_FOLLOW | disk.CLOSE_ON_EXEC
    try:
        with os.fdopen(os.open(temporary, flags, disk.mode_for(path, mode)), "wb") as file:
            yield file, temporary
    finally:
        # If this fails, a later write to the folder removes the file.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _give_name(temporary: Path, path: Path) -> None:
    """Gives a temporary file its name. Raises `FileExistsError` if the name is taken."""
    try:
        os.link(temporary, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        return
    # Without hard links, an empty file takes the name first and is then replaced.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, disk.FILE_MODE))
    try:
        temporary.replace(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _clean(folder: Path) -> None:
    """Removes old temporary files of killed processes; new ones may still be in use.

    Listing a large folder would take most of a write, so few writes do it.
    """
    with suppress(OSError):
        if os.stat(folder).st_size > _LARGE_FOLDER and int(time.time()) % _SELDOM:  # noqa: PTH116 - faster
            return
    old = time.time() - _STALE_SECONDS
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if disk.is_temporary(entry.name) and entry.stat(follow_symlinks=False).st_mtime < old:
                Path(entry.path).unlink(missing_ok=True)


@contextmanager
def reported(verb: str, path: Path) -> Iterator[None]:
    """Turns an `OSError` of the block into `Conflict` or `StorageFailed`."""
    try:
        yield
    except FileExistsError:
        raise Conflict(f"`{path}` already exists", hint="nothing was overwritten") from None
    except OSError as error:
        raise failure(verb, path, error) from error


def failure(verb: str, path: Path, error: OSError) -> StorageFailed:
    """Returns the error for a failed system call; `verb` names the operation."""
    reason, hint = _HINTS.get(error.errno or 0, (error.strerror or str(error), ""))
    if error.errno in (errno.EACCES, errno.EPERM) and (place := place_of_another(path)):
        hint = f"`{place}` is another user's: {ONE_USER}; nothing was changed"
    return StorageFailed(
        f"can't {verb} `{path}`: {reason}",
        hint=hint,
        details={"path": str(path), "errno": errno.errorcode.get(error.errno or 0)},
    )


ONE_USER = "a working tree serves one user, so work in a clone of your own"
"""The hint for a working tree in which another user works."""


def place_of_another(path: Path) -> Path | None:
    """Returns the private place that contains a path if it belongs to another user, or None."""
    place = disk.private_place(path)
    with suppress(OSError):
        if place and disk.is_foreign(place.lstat()):
            return place
    return None


# Append logs: files that grow by whole lines.


class Log(NamedTuple):
    """The content of an append log."""

    whole: bytes
    """The complete lines, each with its newline."""
    torn: bytes
    """The line without a newline that an interrupted write left at the end; usually empty.

    It was never acknowledged: readers skip it, and the next append removes it.
    """

    @property
    def lines(self) -> list[bytes]:
        """Returns the complete lines, without their newlines."""
        return self.whole.split(b"\n")[:-1]


def log_of(data: bytes) -> Log:
    """Returns the complete lines of some bytes, and the torn line after them."""
    end = data.rfind(b"\n") + 1
    return Log(data[:end], data[end:])


def torn(path: Path) -> int:
    """Returns the length of the torn line at the end of a log; usually 0."""
    try:
        descriptor = disk.opened(path)
    except OSError:
        return 0
    try:
        return os.fstat(descriptor).st_size - _end_of_lines(descriptor)
    finally:
        os.close(descriptor)


def append(path: Path, data: bytes, *, durable: bool = True, flush_name: bool = False) -> None:
    """Adds complete lines to a log, which is created if it is missing. Raises `StorageFailed`.

    Processes append one after the other. After a failure the log is unchanged. Data that is not
    `durable` may be lost if the machine fails. Empty data only checks that the log is writable.
    Durable data flushes the name of a new log. `flush_name` is for a log whose earlier lines were
    not durable, so that its name may not be on the disk.
    """
    with reported("write", path):
        disk.make_folder(path.parent)
        descriptor = _locked_log(path)
        try:
            disk.tighten_open(descriptor, path)
            if not data:
                return
            end = _end_of_lines(descriptor)
            if end < os.fstat(descriptor).st_size:
                os.ftruncate(descriptor, end)
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(descriptor, left) :]
                if durable:
                    os.fsync(descriptor)
                    if flush_name or not end:
                        disk.flush_folder(path.parent)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)


def _locked_log(path: Path) -> int:
    """Returns a descriptor of the log, which holds its lock until it is closed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    while True:
        descriptor = disk.opened(path, flags)
        try:
            wait_for(descriptor, path, WAIT_SECONDS)
            # Meanwhile, another process may have replaced the log by a new file.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.lstat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _end_of_lines(descriptor: int) -> int:
    """Returns the length of the complete lines of a file."""
    end = os.fstat(descriptor).st_size
    while end:
        start = (end - 1) // _BLOCK * _BLOCK
        if (newline := os.pread(descriptor, end - start, start).rfind(b"\n")) >= 0:
            return start + newline + 1
        end = start
    return 0


# Lock files. The system releases a lock when its holder exits or is killed.


@contextmanager
def lock(path: Path, *, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Holds the lock file at `path` while the block runs; a missing file is created.

    The lock is not re-entrant, and excludes threads as well as processes. Raises `StorageFailed`
    with the holder after `wait` seconds, or once the command has waited for 10 s in total.
    """
    descriptor = _opened_lock(path)
    try:
        wait_for(descriptor, path, wait)
        # The process id is for error messages only, so a full disk does not matter. It is padded,
        # since truncating the file would take longer than everything else here.
        with suppress(OSError):
            os.pwrite(descriptor, f"{os.getpid():<20}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def courtesy(path: Path, *, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Holds a lock file if it is free within `wait` seconds.

    The block runs in any case, so a process that hangs does not stop others.
    """
    with ExitStack() as held:
        with suppress(StorageFailed):
            held.enter_context(lock(path, wait=wait))
        yield


def hold(path: Path, *, wait: float) -> int | None:
    """Returns a descriptor that holds the lock file at `path` until all its copies are closed.

    A child process that inherits it holds the lock, too. None if the lock isn't free within `wait`
    seconds.
    """
    descriptor = _opened_lock(path)
    try:
        wait_for(descriptor, path, wait)
    except StorageFailed:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def holding(path: Path) -> Iterator[bool]:
    """Gives whether the block holds the lock file at `path`; does not wait for it."""
    descriptor = hold(path, wait=0)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def excludes(path: Path) -> bool:
    """Returns whether the lock file at `path` excludes others, which some file systems only claim.

    A missing file is not checked.
    """
    with ExitStack() as opened:
        try:
            first, second = (disk.opened(path, os.O_RDWR) for _ in range(2))
            opened.callback(os.close, first)
            opened.callback(os.close, second)
            return not _try(first) or not _try(second)
        except FileNotFoundError:
            return True
        except OSError:
            return False


def holder(path: Path) -> int | None:
    """Returns the process that holds the lock file at `path`; None if it is free."""
    try:
        descriptor = disk.opened(path, os.O_RDWR, follow=True)
    except OSError:
        return None
    try:
        return None if _try(descriptor) else _named(descriptor)
    except OSError:  # The file system has no locks.
        return None
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Returns whether a process holds the lock file at `path`, which may be missing."""
    try:
        descriptor = disk.opened(path, os.O_RDWR)
    except OSError:
        return False
    try:
        # Shared, so that two processes that check at once do not block each other.
        return not _try(descriptor, shared=True)
    except OSError:  # The file system has no locks.
        return False
    finally:
        os.close(descriptor)


def _opened_lock(path: Path) -> int:
    try:
        disk.make_folder(path.parent)
        return disk.opened(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise failure("lock", path, error) from error


def wait_for(descriptor: int, path: Path, wait: float) -> None:
    """Takes the lock of an open file. Raises `StorageFailed` if it isn't free in `wait` seconds."""
    patience = disk.current()
    deadline = time.monotonic() + min(wait, patience.left)
    pause = 0.001
    try:
        while not _try(descriptor):
            if time.monotonic() >= deadline:
                raise disk.busy(path, _named(descriptor))
            with patience.spent():
                time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
    except OSError as error:
        raise StorageFailed(
            f"can't lock `{path}`: {error.strerror or error}",
            hint="its file system has no locks: move it to a local disk, or mount it with locks"
            " (NFS: without `nolock`); nothing was changed",
            details={"path": str(path), "errno": errno.errorcode.get(error.errno or 0)},
        ) from error


def _try(descriptor: int, *, shared: bool = False) -> bool:
    """Returns whether the lock could be taken at once."""
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _named(descriptor: int) -> int | None:
    """Returns the process id in a lock file; None if that process ended, so it is an old one."""
    text = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    try:
        os.kill(int(text), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return None
    except OSError:
        pass  # another user's
    return int(text)
