"""Which files are the user's alone: their modes, and the users whose files count as the user's own.

`private/`, `.local/` and `.index/` of a `.mind/`, and `$MIND_HOME`, are private places: a folder in
them is made with mode 0700 and a file with 0600, whatever the umask. Neither is ever open for a
moment first. A folder that is too open is tightened by the next write into it.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from mimo.errors import Untrusted

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
