"""The identity of a project in the trust store: a random mark that no clone or pull brings.

A path is not enough, since another repository may be cloned into it. In a git repository the mark
is the file `mind-trust-…` in the git common directory, which worktrees share and git never
transfers. Outside git it is `.mind/.local/trust-mark-…`. The rest of the name is derived from the
user's secret, so that a mark in a clone, a submodule or an archive is not read. A project keeps
its mark when it is moved or becomes a repository.
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
    """The place of a project, found without running git. All paths are resolved."""

    root: Path
    common: Path | None = None
    """The git common directory, which the worktrees of a repository share; None outside git."""
    git_dir: Path | None = None
    """The git directory of this worktree; `common` for the main worktree."""
    inside: str = "."
    """The project's folder relative to the working tree, with `/`."""

    @property
    def key(self) -> Path:
        """Returns the path that identified a project in versions without marks."""
        return self.root if self.common is None else self.common / self.inside

    def git_stamp(self, branch: str | None) -> list[tuple[int, ...] | None]:
        """Returns a value that changes whenever git's answers may change, without running git."""
        if self.common is None or self.git_dir is None:
            return []
        names = [self.git_dir / "HEAD", self.git_dir / "logs" / "HEAD", self.common / "packed-refs"]
        names += [self.common / "config", *([self.common / branch] if branch else [])]
        return [_stamp(name) for name in names]

    def mark_file(self, owner: str) -> Path:
        """Returns the path of the mark. Raises `StorageFailed` if it leads through a link."""
        if self.common is None:
            return files.safe_path(self.root, f"{LOCAL}/{own_name(_OUTSIDE, owner)}")
        return self.common / own_name(_IN_GIT, owner)


def locate(root: Path) -> Location:
    """Returns the place of a project.

    An unpacked archive must not get the trust of another repository. So a `.git` that is a symbolic
    link is ignored, and so is a `.git` file unless the directory that it names points back, as in
    git's worktrees. Such a project counts as one outside git.
    """
    root = root.resolve()
    for folder in (root, *root.parents):
        marker = folder / ".git"
        if marker.is_symlink():
            break
        if marker.is_dir():
            return Location(root, marker, marker, root.relative_to(folder).as_posix())
        if marker.is_file():
            if directories := _of_worktree(marker):
                return Location(root, *directories, root.relative_to(folder).as_posix())
            break
    return Location(root)


def read_mark(location: Location, owner: str | None) -> str | None:
    """Returns the mark of a project made with the user's secret; None without one."""
    if owner is None:
        return None
    with suppress(OSError, StorageFailed, Invalid):
        data, _ = disk.look(location.mark_file(owner), limit=64)
        return data.decode().strip() if _MARK.fullmatch(data) else None
    return None


def make_mark(location: Location, owner: str, mark: str | None = None) -> str:
    """Returns the project's mark; creates a missing one.

    Raises `StorageFailed` if it can't be written. Without a mark, texts can't be approved.
    """
    if existing := read_mark(location, owner):
        return existing
    mark = mark or os.urandom(16).hex()
    path = location.mark_file(owner)
    with suppress(Conflict):  # another process created it, or it is damaged
        files.write_new(path, f"{mark}\n".encode(), mode=0o600)
        return mark
    if existing := read_mark(location, owner):
        return existing
    raise StorageFailed(
        f"`{path}` is damaged, so texts can't be approved", hint="remove it and approve again"
    )


def trust_folder(home: Path, mark: str, inside: str) -> Path:
    """Returns the folder of the approvals for a project."""
    return home / "trust" / hashlib.sha256(os.fsencode(f"{mark}\0{inside}")).hexdigest()


def earlier_folder(home: Path, location: Location) -> Path:
    """Returns the folder of the approvals in versions without marks."""
    return home / "trust" / hashlib.sha256(os.fsencode(location.key)).hexdigest()


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - faster; every search calls it five times
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns, status.st_ino)


def _of_worktree(marker: Path) -> tuple[Path, Path] | None:
    """Returns the common directory and the git directory of a worktree; None if it is not one."""
    directory = _pointer(marker, "gitdir:")
    if directory is None:
        return None
    back = _pointer(directory / "gitdir")
    common = _pointer(directory / "commondir")
    if back is None or common is None or back != marker.resolve() or not common.is_dir():
        return None
    return common, directory


def _pointer(file: Path, prefix: str = "") -> Path | None:
    """Returns the path in one of git's files; it may be relative to the file's folder."""
    try:
        line = disk.first_line(file)
    except (OSError, ValueError):
        return None
    if not line.startswith(prefix) or not line.removeprefix(prefix).strip():
        return None
    return (file.parent / line.removeprefix(prefix).strip()).resolve()


class Seen(NamedTuple):
    """The last answers of git, and the state of the repository that they belong to."""

    stamps: Mapping[str, str] = {}
    """By worktree, the state of git's files when git was asked there."""
    positions: Mapping[str, str] = {}
    """The last position that was read in each reflog."""
    only: tuple[str, ...] = ()
    """The setting `trust.only` at that time."""
    signed: str | None = None
    """The commit up to which signatures were checked."""
    ref: str | None = None
    """The default branch, for example the target of `refs/remotes/origin/HEAD`."""
    tip: str | None = None
    base: str | None = None
    """A commit of the history that the user follows."""
    stopped: str | None = None
    """The reason why the default branch is not followed although the user chose to."""
    committed: frozenset[str] = frozenset()
    """Digests of the texts that the user committed."""
    followed: frozenset[str] = frozenset()
    """Digests of the texts on the default branch that `only` permits."""
