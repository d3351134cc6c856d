"""How long one command waits for other processes, all its locks and databases together."""

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mimo.errors import Untrusted

if TYPE_CHECKING:
    import sqlite3


# What a look at a file costs nothing to compare: size, times and inode.


class Stamp(NamedTuple):
    """A file's size (bytes), times (nanoseconds) and inode, as `stat` tells them."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


# Opening files for reading: regular files only, never waiting for another process.


STATE_BYTES = 64_000_000
"""Maximum size of a state file of ours that is read whole."""


def opened(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600, *, follow: bool = False) -> int:
    """Returns a descriptor of a regular file; symbolic links are followed only with `follow`.

    Raises `OSError` if the file is missing, or is anything but a regular file, or if it is in
    $MIND_HOME but another user's: keys and approvals are there.
    """
    flags |= flag("O_NONBLOCK") | flag("O_CLOEXEC") | (0 if follow else flag("O_NOFOLLOW"))
    descriptor = os.open(path, flags, mode)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    if is_foreign(status) and is_in_home(path):
        os.close(descriptor)
        raise OSError(errno.EPERM, "it belongs to another user", str(path))
    return descriptor


def opener(name: str, flags: int) -> int:
    """Returns a descriptor, as `open(opener=…)` takes it; in a private place only for the user."""
    path = Path(name)
    descriptor = opened(path, flags, mode_for(path, 0o666), follow=True)
    tighten_open(descriptor, path)
    return descriptor


def look(
    path: Path, *, limit: int | None = None, follow: bool = False
) -> tuple[bytes, os.stat_result]:
    """Returns the bytes of a regular file, at most `limit` + 1 of them, and its stamp.

    Raises `OSError` as `opened` does.
    """
    descriptor = opened(path, follow=follow)
    try:
        status = os.fstat(descriptor)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read() if limit is None else file.read(limit + 1), status
    finally:
        os.close(descriptor)


def read(path: Path, *, limit: int = STATE_BYTES, follow: bool = False) -> bytes:
    """Returns the bytes of a regular file. Raises `OSError`, also if they are more than `limit`."""
    data, status = look(path, limit=limit, follow=follow)
    if len(data) > limit:
        reason = f"too large: {status.st_size:,} bytes, at most {limit:,} are read"
        raise OSError(errno.EFBIG, reason, str(path))
    return data


def start(path: Path, size: int) -> bytes:
    """Returns the first bytes of a regular file. Raises `OSError` as `opened` does."""
    return look(path, limit=size - 1, follow=True)[0]


def first_line(path: Path) -> str:
    """Returns the first line of a small text file, without white space around it.

    Raises `OSError`, and `ValueError` if it is not UTF-8 or holds a NUL.
    """
    line = start(path, 4096).partition(b"\n")[0].decode().strip()
    if "\0" in line:
        raise ValueError(path)
    return line


def check(path: Path) -> None:
    """Raises `OSError` if something other than a regular file has this name.

    For files that a library opens itself.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(path)


def _not_regular(path: Path) -> OSError:
    return OSError(errno.EINVAL, "not a regular file", str(path))


def flag(name: str) -> int:
    """Returns a flag of `os.open`, or 0 if the system does not have it."""
    return int(getattr(os, name, 0))


# Which files are the user's alone: their modes, and the users whose files count as the user's own.


FOLDER_MODE = 0o700
FILE_MODE = 0o600
OTHERS = 0o077
"""The permissions of everyone but the owner."""

STORE = ".mind"
PRIVATE_FOLDERS = ("private", ".local", ".index")
"""The names of folders that git never has, anywhere below a `.mind/`."""
IGNORE_FILE = ".gitignore"
IGNORE_ALL = "*"
"""The rule in a private folder that keeps all of it out of git, the file of rules included."""

_homes: dict[str, None] = {}


def keep_private(home: Path) -> None:
    """Makes a $MIND_HOME a private place for as long as this process runs."""
    _homes[f"{home}/"] = None


def private_place(path: Path) -> Path | None:
    """Returns the top folder of the private place that `path` is or lies in; None outside of one.

    It looks at the name alone: `path` need not exist.
    """
    name = f"{path}/"
    for home in _homes:
        if name.startswith(home):
            return Path(home)
    store = name.find(f"/{STORE}/")
    if store < 0:
        return None
    start = store + len(f"/{STORE}")
    ends = [
        found + len(f"/{folder}")
        for folder in PRIVATE_FOLDERS
        if (found := name.find(f"/{folder}/", start)) >= 0
    ]
    return Path(name[: min(ends)]) if ends else None


def is_in_home(path: Path) -> bool:
    """Returns whether a path lies in a $MIND_HOME."""
    return any(f"{path}".startswith(home) for home in _homes)


def mode_for(path: Path, mode: int) -> int:
    """Returns the mode to create a file with: `mode`, without others in a private place."""
    return mode & ~OTHERS if private_place(path) else mode


def make_folder(folder: Path) -> list[Path]:
    """Makes a folder and those above it; returns the new ones, the topmost first.

    In a private place the folders that exist are tightened, and git ignores what they hold. Raises
    `OSError`, also where a symbolic link that leads nowhere is in the way.
    """
    missing = []
    existing = folder
    while not existing.is_dir():
        if existing.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(existing))
        missing.append(existing)
        existing = existing.parent
    top = private_place(folder)
    for new in reversed(missing):
        private = top is not None and new.is_relative_to(top)
        with suppress(FileExistsError):
            new.mkdir(FOLDER_MODE if private else 0o777)
    if top is not None:
        while existing.is_relative_to(top):
            tighten(existing)
            existing = existing.parent
        if top.name in PRIVATE_FOLDERS:
            _ignore_all(top)
    return missing[::-1]


def _ignore_all(folder: Path) -> None:
    """Puts a file of rules into a private folder unless it has one.

    A pull request can change the rules of `.mind/.gitignore`, but not these. If they can't be
    written, the folder is as well protected as by those alone, and the doctor reports it.
    """
    path = f"{folder}/{IGNORE_FILE}"
    if os.path.lexists(path):
        return
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            os.write(descriptor, f"{IGNORE_ALL}\n".encode())
        except OSError:
            os.unlink(path)  # noqa: PTH108 - the next write tries again
            raise
        finally:
            os.close(descriptor)


def private_folders(store: Path) -> Iterator[Path]:
    """Yields the folders below a `.mind/` that git never has, the topmost of each path."""
    waiting = [os.fspath(store)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.name.casefold() in PRIVATE_FOLDERS:
                    yield Path(entry.path)
                else:
                    waiting.append(entry.path)


def make_database(path: Path) -> None:
    """Makes an empty database, in a private place with mode 0600; tightens one that exists there.

    SQLite gives the files beside a database the mode of the database. Raises `OSError`.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode_for(path, 0o666)))
    except FileExistsError:
        if private_place(path):
            tighten(path)


def tighten_open(descriptor: int, path: Path) -> None:
    """Takes from others what they may do to an open file, where it is in a private place."""
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode & OTHERS and private_place(path):
        with suppress(OSError):  # Another user's, or a file system that has no modes.
            os.fchmod(descriptor, mode & ~OTHERS)


def is_exposed(status: os.stat_result) -> bool:
    """Returns whether others may use a file or folder of the user's own that is private.

    A folder with the sticky bit, such as /tmp, is shared by design.
    """
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return False
    return bool(status.st_mode & OTHERS) and status.st_uid in own_users()


def tighten(path: Path) -> bool:
    """Takes from others what they may do to a file or folder; returns whether that was anything.

    The folder that a $MIND_HOME is put into by mistake, such as `~` or `/tmp`, stays as it is.
    """
    with suppress(OSError, RuntimeError):
        status = path.lstat()
        if is_exposed(status) and path not in (Path.home(), Path(path.anchor)):
            path.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS)
            return True
    return False


def exposed_below(top: Path) -> Iterator[Path]:
    """Yields a folder and all that is below it, as far as other users may use it."""
    waiting = [os.fspath(top)]
    while waiting:
        path = waiting.pop()
        with suppress(OSError):
            status = os.lstat(path)
            if is_exposed(status):
                yield Path(path)
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in entries]


@cache
def own_users() -> frozenset[int]:
    """Returns the ids of the users whose files are the user's own.

    These are the effective user and, for root by way of sudo, the user who ran sudo, as git has it.
    """
    if not hasattr(os, "geteuid"):
        return frozenset((0,))
    own = os.geteuid()
    sudo = os.environ.get("SUDO_UID", "") if own == 0 else ""
    return frozenset((own, int(sudo)) if sudo.isascii() and sudo.isdigit() else (own,))


def is_foreign(status: os.stat_result) -> bool:
    """Returns whether a file or folder belongs to another user."""
    return status.st_uid not in own_users()


def refusal(path: Path, status: os.stat_result, *, hint: str) -> Untrusted:
    """Returns the error for a file or folder of another user."""
    try:
        import pwd

        owner = pwd.getpwuid(status.st_uid).pw_name
    except (ImportError, KeyError):
        owner = str(status.st_uid)
    return Untrusted(
        f"`{path}` belongs to another user (`{owner}`), so it is not used",
        hint=hint,
        details={"path": str(path), "owner": owner},
    )


WAIT_SECONDS = 10.0
"""How long a command may wait in total, beyond the time that it worked in between."""


class Patience:
    """What one command may still wait."""

    def __init__(self) -> None:
        """Nothing was waited for yet."""
        self._left = WAIT_SECONDS
        self._since = time.monotonic()

    @property
    def left(self) -> float:
        """Returns the seconds that it may wait now; work earns back what waiting has cost."""
        return min(WAIT_SECONDS, self._left + time.monotonic() - self._since)

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Counts the time of the block, in which the command waits."""
        left, start = self.left, time.monotonic()
        try:
            yield
        finally:
            self._since = time.monotonic()
            self._left = max(0.0, left - (self._since - start))


_CURRENT: ContextVar[Patience | None] = ContextVar("_CURRENT", default=None)


@contextmanager
def shared() -> Iterator[None]:
    """Gives all waits of the block one limit; an inner block shares that of the outer one."""
    token = _CURRENT.set(_CURRENT.get() or Patience())
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Patience:
    """Returns that of the running command; outside of one each wait has its own."""
    return _CURRENT.get() or Patience()


def begin(connection: "sqlite3.Connection", wait: float = WAIT_SECONDS) -> None:
    """Begins a transaction that writes, once other processes have ended theirs.

    Raises `sqlite3.OperationalError` if that takes longer than `wait`, or than the command may
    wait.
    """
    patience = current()
    limit_waits(connection, wait)
    with patience.spent():
        connection.execute("BEGIN IMMEDIATE")


def limit_waits(connection: "sqlite3.Connection", wait: float = WAIT_SECONDS) -> None:
    """Lets statements wait for other processes no longer than the command may."""
    milliseconds = round(1000 * min(wait, current().left))
    connection.execute(f"PRAGMA busy_timeout = {milliseconds}")


def connect(path: Path | None, *, mode: str = "rwc", wait: float = 0) -> "sqlite3.Connection":
    """Returns a connection to a database, None for one in memory; transactions are explicit.

    Modes are SQLite's: `rwc` creates a missing file, `rw` and `ro` never do. Raises `OSError` if
    the path is not a regular file, and `sqlite3.DatabaseError`.
    """
    import sqlite3

    name = ":memory:"
    if path is not None:
        check(path)
        if mode == "rwc":
            make_database(path)
        name = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(
        name, uri=path is not None, timeout=wait, isolation_level=None, check_same_thread=False
    )
