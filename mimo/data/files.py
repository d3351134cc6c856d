"""Writing files: atomic and durable, or not at all.

Only this module changes files, and never through a symbolic link. New content goes to a temporary
file beside the target, is flushed to the disk, and takes the target's name in one step. Then the
folder is flushed, too. In a private place (see `mimo.data.disk`) only the user can read new files.
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

from mimo.data import disk
from mimo.data.disk import PRIVATE_FOLDERS, STORE
from mimo.data.failures import failure
from mimo.errors import Conflict, Invalid, MindError, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, TypeVar

    T = TypeVar("T")

CONFIG = "config.toml"
"""The settings file. A `.mind/` without it is not a project; the user's is in $MIND_HOME."""

LOCAL = f"{STORE}/.local"
"""The folder of files that belong to this machine only."""

SESSIONS = f"{LOCAL}/sessions"
"""The folder with what the hooks have shown to each session of a client."""

PRIVATE = f"{STORE}/private/"


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


POLICY = f"{STORE}/policy.yaml"
"""The file of rules. Agents may write memories, but not approve rules and procedures."""

SETTINGS = f"{STORE}/{CONFIG}"
DECISIVE = (POLICY, SETTINGS)
"""The files that decide about others: the last approved text counts until another is approved."""

_Watcher = Callable[[Mapping[Path, bytes | None]], None]

WATCHERS: ContextVar[tuple[_Watcher, ...]] = ContextVar("WATCHERS", default=())
"""Called with the new contents of files, None for removed files, before any of them changes."""

_STALE_SECONDS = 3600
_LARGE_FOLDER = 100_000
"""The size of a folder itself, in bytes, with some 1,000 files."""
_SELDOM = 60
"""A write to a large folder removes old temporary files in one of so many seconds."""
_AT_ONCE = 8
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


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


def reread(
    path: Path, read: Callable[[Path], T], *, follow: bool = False
) -> Callable[[], T | None]:
    """Returns a function that returns the value of a file, which it reads after each change.

    The value is None if the file is missing. The function raises as `read` does; threads can use it
    at once.
    """
    seen: tuple[disk.Stamp, T] | None = None

    def value() -> T | None:
        nonlocal seen
        try:
            stamp = disk.Stamp.of(path.stat(follow_symlinks=follow))
        except FileNotFoundError:
            return None
        except OSError:
            return read(path)  # It reports the error.
        current = seen
        if current is None or current[0] != stamp:
            at_ns = time.time_ns()
            current = stamp, read(path)
            seen = current if stamp.is_settled(at_ns) else None
        return current[1]

    return value


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
        if "\\" in inner:
            raise Invalid(
                f"the name `{relative}` has a backslash, which separates folders on other systems",
                hint="rename it without the backslash",
            )
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


def own_name(name: str, owner: str) -> str:
    """Returns the name of a file derived from the user's secret `owner`.

    A folder such as `.mind/.local/` may come with a clone or an archive, whose author does not know
    the secret. Files with other names are never read.
    """
    digest = disk.sha256(f"{name} {owner}".encode()).hex()
    return f"{name}-{digest[:12]}"


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
            if os.path.lexists(path):  # What is not written must not be approved, for example.
                raise FileExistsError(path)
            _announce({path: data})
            _give_name(temporary, path)
        disk.flush_folder(path.parent)


def ensure(path: Path, data: bytes, *, mode: int = 0o666) -> bool:
    """Creates a file as `write_new` does, unless the name is taken; returns whether it did."""
    with suppress(Conflict):
        write_new(path, data, mode=mode)
        return True
    return False


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
    taken = {path for path in contents if os.path.lexists(path)}
    with ExitStack() as written:
        temporary = {}
        for path, data in contents.items():
            written.enter_context(reported("write", path))
            temporary[path] = written.enter_context(_temporary(path, data, 0o666, flush=False))
        # In parallel, which lets the file system combine the writes.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(disk.flush, temporary.values()))
        _announce({path: data for path, data in contents.items() if path not in taken})
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


def check_output(path: Path) -> None:
    """Raises `Invalid` for a file in a `.mind/`, and for a device, a pipe or a socket.

    Markdown in a `.mind/` is memory. Writing a file with the name of a device would remove it.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - keeps links
    parts = (*absolute.parts, *Path(os.path.realpath(absolute.parent)).parts)
    if STORE in (part.casefold() for part in parts):
        raise Invalid(
            f"`{path}` is in a folder of mind, which would read it as memories",
            hint="write it to another folder",
        )
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise Invalid(
            f"`{path}` is not a regular file", hint="name another file, or - for standard output"
        )


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
    Raises `Conflict` if the file has changed or the name is taken, and `StorageFailed`. A file that
    a program without the lock creates between the two steps is replaced.
    """
    with reported("write", new):
        _check(path, expect)
        disk.make_folder(new.parent)
        with _temporary(new, data, 0o666) as temporary:
            if os.path.lexists(new):
                raise FileExistsError(new)
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
    failures: dict[Path, MindError] = {}
    _announce(dict.fromkeys(expected))
    for path, digest_ in expected.items():
        try:
            with reported("remove", path), suppress(FileNotFoundError):
                path.lstat()
                _check(path, digest_)
                path.unlink()
        except StorageFailed as error:
            failures[path] = error
    for folder in dict.fromkeys(path.parent for path in expected):
        with suppress(FileNotFoundError):
            disk.flush_folder(folder)
    return failures


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


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Adds the name of a file, which is one of several, to the errors of the block."""
    try:
        yield
    except (Conflict, Invalid) as error:
        message = error.message if name in error.message else f"`{name}`: {error.message}"
        raise type(error)(message, hint=error.hint, details=error.details) from None
