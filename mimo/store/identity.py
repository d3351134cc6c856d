"""The mark of a project in the trust store: random, and never brought by a clone or a pull.

A path identifies nothing: another repository may be cloned into it. In a git repository the mark is
the file `mind-trust-…` in the git common directory, which worktrees share and git never transfers.
Outside git it is `.mind/.local/trust-mark-…`. The rest of the name is made with the user's secret,
so that a mark in a clone, a submodule or an archive is not read. A project that becomes a
repository takes its mark along, and one that is moved keeps it.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mimo import disk
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.store import files
from mimo.store.files import LOCAL
from mimo.store.projects import own_name

_MARK = re.compile(rb"[0-9a-f]{32}\n")
_IN_GIT = "mind-trust"
_OUTSIDE = "trust-mark"


class Location(NamedTuple):
    """Where a project is, found without running git. All paths are resolved."""

    root: Path
    common: Path | None = None
    """The git common directory, which the worktrees of a repository share; None outside git."""
    git_dir: Path | None = None
    """The git directory of this worktree, which is `common` for the first one."""
    inside: str = "."
    """The project's folder within its work tree, with `/`."""

    @property
    def key(self) -> Path:
        """Returns what versions before the mark kept trust by."""
        return self.root if self.common is None else self.common / self.inside

    def git_stamp(self, branch: str | None) -> list[tuple[int, ...] | None]:
        """Returns what changes whenever git might answer otherwise, without running git."""
        if self.common is None or self.git_dir is None:
            return []
        names = [self.git_dir / "HEAD", self.git_dir / "logs" / "HEAD", self.common / "packed-refs"]
        names += [self.common / "config", *([self.common / branch] if branch else [])]
        return [_stamp(name) for name in names]

    def mark_file(self, owner: str) -> Path:
        """Returns the path of a user's mark. Raises `StorageFailed` if it leads through a link."""
        if self.common is None:
            return files.safe_path(self.root, f"{LOCAL}/{own_name(_OUTSIDE, owner)}")
        return self.common / own_name(_IN_GIT, owner)


def locate(root: Path) -> Location:
    """Returns where a project is.

    A `.git` that is a symbolic link is not believed, and a `.git` file only where the directory
    that it names points back to it, as git's own worktrees do: an unpacked archive must not borrow
    the trust of another repository. Such a project counts as one outside git.
    """
    root = root.resolve()
    for folder in (root, *root.parents):
        marker = folder / ".git"
        if marker.is_symlink():
            break
        if marker.is_dir():
            return Location(root, marker, marker, root.relative_to(folder).as_posix())
        if marker.is_file():
            if found := _of_worktree(marker):
                return Location(root, *found, root.relative_to(folder).as_posix())
            break
    return Location(root)


def read_mark(location: Location, owner: str | None) -> str | None:
    """Returns the mark that the user with this secret gave to a project; None if it has none."""
    if owner is None:
        return None
    with suppress(OSError, StorageFailed, Invalid):
        data, _ = disk.look(location.mark_file(owner), limit=64)
        return data.decode().strip() if _MARK.fullmatch(data) else None
    return None


def make_mark(location: Location, owner: str, mark: str | None = None) -> str:
    """Returns the project's mark, which is made where there is none.

    Raises `StorageFailed` where it can't be written: nothing can be approved then.
    """
    if known := read_mark(location, owner):
        return known
    mark = mark or os.urandom(16).hex()
    path = location.mark_file(owner)
    with suppress(Conflict):  # another process was quicker, or the file is damaged
        files.write_new(path, f"{mark}\n".encode(), mode=0o600)
        return mark
    if known := read_mark(location, owner):
        return known
    raise StorageFailed(
        f"`{path}` is damaged, so nothing can be approved", hint="remove it and approve again"
    )


def trust_folder(home: Path, mark: str, inside: str) -> Path:
    """Returns the folder of the approvals for a project."""
    return home / "trust" / hashlib.sha256(os.fsencode(f"{mark}\0{inside}")).hexdigest()


def earlier_folder(home: Path, location: Location) -> Path:
    """Returns where versions before the mark kept the approvals, by path."""
    return home / "trust" / hashlib.sha256(os.fsencode(location.key)).hexdigest()


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - every search asks for five of them
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns, status.st_ino)


def _of_worktree(marker: Path) -> tuple[Path, Path] | None:
    """Returns the common directory and the own one of a worktree that git made."""
    named = _pointer(marker, "gitdir:")
    if named is None:
        return None
    back = _pointer(named / "gitdir")
    common = _pointer(named / "commondir")
    if back is None or common is None or back != marker.resolve() or not common.is_dir():
        return None
    return common, named


def _pointer(file: Path, prefix: str = "") -> Path | None:
    """Returns the path that one of git's files names, relative to the file's folder."""
    try:
        line = disk.first_line(file)
    except (OSError, ValueError):
        return None
    if not line.startswith(prefix) or not line.removeprefix(prefix).strip():
        return None
    return (file.parent / line.removeprefix(prefix).strip()).resolve()


class Seen(NamedTuple):
    """What git said when it was last asked, and what tells that it must be asked again."""

    stamps: Mapping[str, str] = {}
    """By worktree, what its files were like when git was asked there."""
    positions: Mapping[str, str] = {}
    """How far each reflog was read."""
    only: tuple[str, ...] = ()
    """Whose commits were followed."""
    signed: str | None = None
    """The commit up to which signatures were looked at."""
    ref: str | None = None
    """The default branch, such as `refs/remotes/origin/HEAD` leads to."""
    tip: str | None = None
    base: str | None = None
    """A commit of the history that the user chose to follow."""
    stopped: str | None = None
    """Why nothing is followed, although the user chose to."""
    committed: frozenset[str] = frozenset()
    """Digests of the texts that the user committed."""
    followed: frozenset[str] = frozenset()
    """Digests of the texts on the default branch, as far as `only` admits them."""
