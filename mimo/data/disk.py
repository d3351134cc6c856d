"""Access to the machine that every other module builds on.

The user's folder and the clock; reading regular files only; private places, whose files are the
user's alone; and the time that one command waits for other processes.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path

from mimo.errors import Invalid, StorageFailed, Untrusted
from mimo.frozen import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed import ReadableBuffer

STATE_BYTES = 64_000_000
"""Maximum size of a state file that is read whole."""

NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
CLOSE_ON_EXEC: int = getattr(os, "O_CLOEXEC", 0)
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
"""Flags of `os.open`; 0 if the system does not have them."""

FOLDER_MODE = 0o700
_DISK_FAILED = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
FILE_MODE = 0o600
OTHERS = 0o077 if os.name == "posix" else 0
"""The permissions of everyone but the owner; Windows has other ones, which are not read."""

STORE = ".mind"
INDEX = ".index"
PRIVATE_FOLDERS = ("private", ".local", INDEX)
"""The names of folders that git never has, anywhere below a `.mind/`."""
IGNORE_FILE = ".gitignore"
IGNORE_ALL = "*"
"""The rule in a private folder that keeps all its files out of git, the rule's file included."""

TEMPORARY_PREFIX = ".mind-"
TEMPORARY_SUFFIX = ".tmp"

WAIT_SECONDS = 10.0
"""Maximum total time that a command waits, beyond the time that it works in between."""

_FINE_GRAIN_NS, _COARSE_GRAIN_NS, _SECOND_NS = 20_000_000, 2_000_000_000, 1_000_000_000
"""Two changes within the resolution of a file system's clock leave the same stamp, so a file that
changed this shortly before it was read is read again. Kernels count in steps of up to 10 ms; the
coarsest file systems, recognised by whole seconds, in steps of 2 s."""

# A day before the ends of the calendar, so that every time zone has these times.
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC).timestamp()
_LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()

HOME_MARKS = ("index-owner", "projects.json")
"""Files that only a home ($MIND_HOME) has: the user's secret and the list of projects."""
HOME_NAMES = (
    *HOME_MARKS,
    *("audit", "cache", "clients", "config.toml", "daemon.json", "daemon.pid", "edges"),
    *("http-token", "lock", "logs", "memories", "run", "served", "sessions", "tokens.lock"),
    *(
        "tokens.toml",
        "trust",
        "trust-earlier",
        "trust.db",
        "trust.db-journal",
        STORE,
        IGNORE_FILE,
        "lost+found",
        ".DS_Store",
    ),
)
"""All that is directly in a home, and what systems make there: `lost+found`, `.DS_Store`.

`.mind` is the default home of a user whose home folder is $MIND_HOME.
"""
_homes: dict[str, None] = {}
"""Each $MIND_HOME of this process, with a slash at its end."""


class Stamp(NamedTuple):
    """A file's size (bytes), times (nanoseconds) and inode, which show that it has changed."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Returns the stamp from a file's status."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def is_settled(self, at_ns: int) -> bool:
        """Returns whether a change after `at_ns`, the time of reading, must change the stamp."""
        touched_ns = max(self.mtime_ns, self.ctime_ns)
        grain_ns = _FINE_GRAIN_NS if touched_ns % _SECOND_NS else _COARSE_GRAIN_NS
        return at_ns - touched_ns > grain_ns


def stamp(path: str | os.PathLike[str], *, follow: bool = False) -> Stamp | None:
    """Returns the stamp of a file; None if it is missing."""
    try:
        return Stamp.of(os.stat(path, follow_symlinks=follow))  # noqa: PTH116 - faster
    except OSError:
        return None


# The user's folder, the working directory and the clock.


def home_of(environ: Mapping[str, str]) -> Path:
    """Returns the user's folder, `$MIND_HOME` or `~/.mind`, and makes it a private place.

    Raises `Invalid` if the path is relative and the working directory does not exist.
    """
    setting = environ.get("MIND_HOME")
    try:
        if setting:
            home = Path(setting).expanduser().absolute()
        elif Path(os.environ.get("HOME", "")).is_absolute():
            home = Path.home() / STORE
        else:
            home = _listed_folder() / STORE
    except (OSError, RuntimeError) as error:
        raise Invalid(
            f"`MIND_HOME` is `{setting}`, which can't be resolved: {error}",
            hint="set it to an absolute path",
        ) from error
    _homes[f"{home}/"] = None
    return home


def expanded(path: str | Path) -> Path:
    """Returns a path in which `~` and `~name` are folders of users. Raises `Invalid`."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise Invalid(
            f"`{path}` begins with the folder of an unknown user", hint="write the path without `~`"
        ) from None


def _listed_folder() -> Path:
    """Returns the user's folder in the system's list of users; `/` for an unlisted user."""
    try:
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):
        return Path("/")


def working_directory() -> Path | None:
    """Returns the working directory; None if it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def system_clock() -> datetime:
    """Returns the current time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - only here the clock is read


def moment(seconds: float) -> datetime:
    """Returns the time in UTC that a commit or another record states in seconds.

    A year that Python does not know is replaced by the nearest one.
    """
    return datetime.fromtimestamp(min(max(seconds, _EARLIEST), _LATEST), UTC)


# Reading: regular files only, without waiting for another process.


def opened(
    path: Path | str, flags: int = os.O_RDONLY, mode: int = 0o600, *, follow: bool = False
) -> int:
    """Returns a descriptor of a regular file; symbolic links are followed only with `follow`.

    Raises `OSError` if it is not a regular file, or if it is in $MIND_HOME, with its keys and
    approvals, and belongs to another user.
    """
    flags |= NO_WAIT | CLOSE_ON_EXEC | (0 if follow else NO_FOLLOW)
    descriptor = os.open(path, flags, mode)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    if is_foreign(status) and any(f"{path}".startswith(home) for home in _homes):
        os.close(descriptor)
        raise OSError(errno.EPERM, "it belongs to another user", str(path))
    return descriptor


def opener(name: str, flags: int) -> int:
    """Opens a file for `open(opener=…)`; in a private place, no other user can read it."""
    path = Path(name)
    descriptor = opened(path, flags, mode_for(path, 0o666), follow=True)
    tighten_open(descriptor, path)
    return descriptor


def look(
    path: Path | str, *, limit: int | None = None, follow: bool = False
) -> tuple[bytes, os.stat_result]:
    """Returns the bytes of a regular file, at most `limit` + 1 of them, and its status.

    Raises `OSError` as `opened` does.
    """
    max_bytes = sys.maxsize if limit is None else limit + 1
    descriptor = opened(path, follow=follow)
    try:
        status = os.fstat(descriptor)
        data = os.read(descriptor, min(status.st_size + 1, max_bytes))
        # Files of the system have no size, and any other may be growing.
        while len(data) != status.st_size and len(data) < max_bytes:
            if not (more := os.read(descriptor, min(max_bytes - len(data), 1 << 20))):
                break
            data += more
        return data, status
    finally:
        os.close(descriptor)


def read(path: Path, *, limit: int = STATE_BYTES, follow: bool = False) -> bytes:
    """Returns the bytes of a regular file. Raises `OSError`, also if they are more than `limit`."""
    with open(opened(path, follow=follow), "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.readall() if size <= limit else b""
    if (size := max(size, len(data))) > limit:
        reason = f"too large: {size:,} bytes, at most {limit:,} are read"
        raise OSError(errno.EFBIG, reason, str(path))
    return data


def overwrite(descriptor: int, data: bytes) -> None:
    """Writes all of some bytes at the start of an open file. Raises `OSError`."""
    place = 0
    while place < len(data):
        os.lseek(descriptor, place, os.SEEK_SET)
        place += os.write(descriptor, memoryview(data)[place:])


def start(path: Path, size: int) -> bytes:
    """Returns the first bytes of a regular file. Raises `OSError` as `opened` does."""
    return look(path, limit=size - 1, follow=True)[0]


def first_line(path: Path) -> str:
    """Returns the first line of a text file, stripped.

    Empty if the file can't be read, and if the line is not UTF-8 or contains a NUL.
    """
    try:
        line = start(path, 4096).partition(b"\n")[0].decode().strip()
    except (OSError, ValueError):
        return ""
    return "" if "\0" in line else line


def check(path: Path, *, follow: bool = False) -> None:
    """Raises `OSError` if something other than a regular file has this name.

    Symbolic links are followed only with `follow`. For files that a library opens.
    """
    try:
        status = path.stat(follow_symlinks=follow)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(path)


def _not_regular(path: Path | str) -> OSError:
    return OSError(errno.EINVAL, "not a regular file", str(path))


# Programs.


def search_path(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the absolute folders on the PATH: a clone can bring programs in a relative one."""
    path = environ.get("PATH", os.environ.get("PATH", os.defpath))
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep)))


def program(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns the path of a program; None if it is not on the PATH."""
    from shutil import which

    return which(name, path=search_path(environ))


# Private places: their modes, and the users whose files count as the user's own.


def private_place(path: Path) -> Path | None:
    """Returns the top folder of the private place that contains `path`, or is `path`; or None.

    Only the name counts: `path` need not exist.
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
        place + len(f"/{folder}")
        for folder in PRIVATE_FOLDERS
        if (place := name.find(f"/{folder}/", start)) >= 0
    ]
    return Path(name[: min(ends)]) if ends else None


def not_of_home(home: Path) -> str | None:
    """Returns the name of something in a $MIND_HOME that shows that it is another folder, or None.

    mind closes its home to other users, who must not lose a folder such as /var. A folder that is
    called `.mind`, or has a mark of a home or settings, is one, also if other things are in it.
    """
    marks = (*HOME_MARKS, "config.toml")
    if home.name == STORE or any(os.path.lexists(f"{home}/{mark}") for mark in marks):
        return None
    with suppress(OSError), os.scandir(home) as entries:
        for entry in entries:
            if entry.name not in HOME_NAMES and not is_temporary(entry.name):
                return entry.name
    return None


def mode_for(path: Path, mode: int) -> int:
    """Returns the mode for a new file: in a private place, `mode` without others' permissions."""
    return mode & ~OTHERS if private_place(path) else mode


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, durably.

    In a private place, other users lose their permissions on existing folders, and git ignores the
    content. Raises `OSError`, also if a dangling symbolic link has the name of a folder, in a
    $MIND_HOME that has other things, for a private folder of a project that is missing, and for the
    index of a missing `.mind/`: what was moved or deleted while a process used it must not appear
    again.
    """
    missing = []
    existing = folder
    top = private_place(folder)
    is_of_store = top is not None and f"{top}/" not in _homes
    if top is not None and not is_of_store and (entry := not_of_home(top)):
        raise PermissionError(errno.EPERM, f"not mind's own: it has `{entry}`", str(top))
    while not existing.is_dir():
        of_index = folder.name == INDEX
        if is_of_store and existing.name == STORE and (of_index or not existing.parent.is_dir()):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(existing))
        if existing.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(existing))
        missing.append(existing)
        existing = existing.parent
    for new in reversed(missing):
        private = top is not None and new.is_relative_to(top)
        with suppress(FileExistsError):
            new.mkdir(FOLDER_MODE if private else 0o777)
        flush_folder(new.parent)
    if top is not None:
        while existing.is_relative_to(top):
            tighten(existing)
            existing = existing.parent
        if is_of_store:
            _ignore_all(top)


def flush_folder(folder: Path) -> None:
    """Flushes the names in a folder to the disk. Raises `OSError` if the disk fails or is full."""
    if os.name != "posix":
        return
    try:
        flush(folder)
    except OSError as error:
        # Some network file systems can't flush a folder; the file itself is safe.
        if error.errno in _DISK_FAILED:
            raise


def flush(path: Path) -> None:
    """Flushes a file to the disk. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | NO_WAIT | CLOSE_ON_EXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def missing_rules(data: bytes, rules: Iterable[str]) -> list[bytes]:
    """Returns the lines that are missing; a later line that begins with `!` can cancel one."""
    present: set[bytes] = set()
    for line in data.removeprefix(BOM_UTF8).split(b"\n"):
        if line.startswith(b"!"):
            present.clear()
        present.add(line.rstrip())
    return [rule.encode() for rule in rules if rule.encode() not in present]


def _ignore_all(folder: Path) -> None:
    """Makes git ignore all files of a private folder, and keeps the other lines of its ignore file.

    A pull request can change `.mind/.gitignore`, but not this file; a clone may bring both. If it
    is a link or can't be written, `mind doctor` reports it.
    """
    path = folder / IGNORE_FILE
    try:
        data = read(path)
    except FileNotFoundError:
        data = b""
    except OSError:
        return
    if not (missing := missing_rules(data, (IGNORE_ALL,))):
        return
    if data and not data.endswith(b"\n"):
        data += b"\n"
    temporary = temporary_name(path)
    with suppress(OSError):  # The next write tries again.
        temporary.touch(FILE_MODE, exist_ok=False)
        temporary.write_bytes(data + missing[0] + b"\n")
        flush(temporary)
        temporary.replace(path)


def temporary_name(path: Path) -> Path:
    """Returns a new name beside `path`, for a file that gets that name once it is complete."""
    name = f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(6).hex()}{TEMPORARY_SUFFIX}"
    return path.with_name(name)  # Python 3.12 would keep the parts of `path.parent / name`.


def is_temporary(name: str) -> bool:
    """Returns whether a file of this name is a part of a write."""
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)


def private_folders(store: Path) -> Iterator[Path]:
    """Yields the topmost private folders below a `.mind/`."""
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


def tighten_open(descriptor: int, path: Path) -> None:
    """Removes others' permissions on an open file in a private place."""
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode & OTHERS and private_place(path):
        with suppress(OSError):  # Another user's file, or a file system without modes.
            os.fchmod(descriptor, mode & ~OTHERS)


def discard(path: Path) -> None:
    """Removes a file that nothing needs, if that is possible now."""
    with suppress(OSError):
        path.unlink()


def is_exposed(path: Path) -> bool:
    """Returns whether others have permissions on a file or folder of the user.

    `~`, `/` and folders with the sticky bit, such as /tmp, are shared by design and not exposed.
    """
    with suppress(OSError, RuntimeError):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
            return False
        if status.st_mode & OTHERS and not is_foreign(status):
            return path not in (Path.home(), Path(path.anchor))
    return False


def tighten(path: Path) -> bool:
    """Removes others' permissions on a file or folder; returns whether there were any."""
    if not is_exposed(path):
        return False
    with suppress(OSError):
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~OTHERS)
        return True
    return False


def exposed_below(top: Path) -> Iterator[Path]:
    """Yields a folder and its contents at any depth, those on which others have permissions."""
    if is_exposed(top):
        yield top
    if not top.is_symlink():
        for folder, folders, names in os.walk(top):
            yield from filter(is_exposed, (Path(folder, name) for name in (*folders, *names)))


@cache
def own_users() -> frozenset[int]:
    """Returns the ids of the users whose files are the user's own.

    They are the effective user and, if that is root, the user who ran sudo, as in git.
    """
    if not hasattr(os, "geteuid"):
        return frozenset((0,))
    user = os.geteuid()
    sudo = os.environ.get("SUDO_UID", "") if user == 0 else ""
    return frozenset((user, int(sudo)) if sudo.isascii() and sudo.isdigit() else (user,))


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


# Waiting for other processes, for locks as well as for databases.


class Patience:
    """The time that one command may still wait."""

    def __init__(self, seconds: float) -> None:
        """Starts with the full time, in seconds."""
        self.most = self._left = seconds
        self._since = time.monotonic()
        self.held = set[Path]()
        """Databases on which all of the time was spent, until it is given back."""

    @property
    def left(self) -> float:
        """Returns the seconds that the command may wait now; time spent working is added back."""
        return min(self.most, self._left + time.monotonic() - self._since)

    def end(self, path: Path) -> None:
        """Counts the full time as spent on a database."""
        self._left, self._since = 0.0, time.monotonic()
        self.held.add(path)

    def count(self, seconds: float) -> None:
        """Counts the last seconds as waiting."""
        now = time.monotonic()
        left = min(self.most, self._left + now - seconds - self._since)
        self._left, self._since = max(0.0, left - seconds), now

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Counts the time of the block as waiting."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.count(time.monotonic() - start)


_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05
_CURRENT: ContextVar[Patience | None] = ContextVar("_CURRENT", default=None)


@contextmanager
def shared(seconds: float | None = None) -> Iterator[None]:
    """Gives all waits of the block one limit, in seconds, by default `WAIT_SECONDS`.

    An inner block shares the limit of the outer one.
    """
    limit = WAIT_SECONDS if seconds is None else seconds
    token = _CURRENT.set(_CURRENT.get() or Patience(limit))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Patience:
    """Returns the patience of the running command; outside of a command, a new one."""
    return _CURRENT.get() or Patience(WAIT_SECONDS)


def attempts(wait: float = WAIT_SECONDS) -> Iterator[bool]:
    """Yields for each attempt whether it is the last one; pauses in between count as waiting.

    The last one comes after `wait` seconds, or the time that the command has left.
    """
    patience, pause = current(), _SHORTEST_PAUSE
    deadline = time.monotonic() + min(wait, patience.left)
    while not (is_last := time.monotonic() >= deadline):
        yield is_last
        with patience.spent():
            time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
    yield is_last


def busy(path: Path, pid: int | None = None) -> StorageFailed:
    """Returns the error for a file that another process has locked."""
    holder = f"process {pid}" if pid else "another process"
    return StorageFailed(
        f"`{path}` is held by {holder}",
        hint="wait until it is done, or end it",
        details={"path": str(path), "pid": pid},
    )


def make_database(path: Path) -> None:
    """Creates an empty database; in a private place it has mode 0600, also if it existed.

    SQLite gives the journal of a database the same mode. Raises `OSError`.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode_for(path, 0o666)))
    except FileExistsError:
        if private_place(path):
            tighten(path)


def sha256(data: bytes) -> bytes:
    """Returns the SHA-256 of data."""
    return bytes(_hashing("sha256")(data).digest())


def hmac_sha256(key: bytes, data: bytes) -> bytes:
    """Returns the HMAC of data (RFC 2104), as `hmac`, which also loads OpenSSL."""
    block = (key if len(key) <= 64 else sha256(key)).ljust(64, b"\0")
    inner = sha256(bytes(byte ^ 0x36 for byte in block) + data)
    return sha256(bytes(byte ^ 0x5C for byte in block) + inner)


def blake2b(*data: ReadableBuffer, size: int = 16) -> bytes:
    """Returns the BLAKE2b of data, part after part, of `size` bytes."""
    hashing = _hashing("blake2b")(digest_size=size)
    for part in data:
        hashing.update(part)
    return bytes(hashing.digest())


@cache
def _hashing(name: str) -> Any:
    """Returns a function of `hashlib`, which itself loads OpenSSL: too long for a short command."""
    for module in ("_blake2", "_sha2", "_sha256"):  # `_sha256` up to Python 3.11
        with suppress(ImportError, AttributeError):
            return getattr(import_module(module), name)
    return getattr(import_module("hashlib"), name)
