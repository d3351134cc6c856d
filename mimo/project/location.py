"""The place of a project in git, found without running git, its mark, and git's last answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mimo.data import disk, files
from mimo.errors import Invalid, StorageFailed
from mimo.frozen import NamedTuple
from mimo.text.clean import compiled

_MARK = r"[0-9a-f]{32}\n"


class Location(NamedTuple):
    """The place of a project, found without running git. All paths are resolved."""

    root: Path
    common: Path | None = None
    """The git common directory, which the worktrees of a repository share; None outside git."""
    git_dir: Path | None = None
    """The git directory of this worktree; `common` for the main worktree."""
    inside: str = "."
    """The project's folder relative to the working tree, with `/`."""

    def git_stamp(self, branch: str | None, watched: Iterable[str] = ()) -> list[disk.Stamp | None]:
        """Returns a value that changes whenever git's answers may change, without running git.

        They depend on the default branch, on files of the git directory, and on `watched` ones.
        """
        if self.common is None or self.git_dir is None:
            return []
        names: list[Path | str] = [
            self.git_dir / "HEAD",
            self.git_dir / "logs" / "HEAD",
            self.common / "packed-refs",
            self.common / "reftable" / "tables.list",
        ]
        names += [self.common / "config", self.common / "shallow"]
        names += [self.common / branch] if branch else []
        names += watched
        return [disk.stamp(name, follow=True) for name in names]

    def mark_file(self, owner: str) -> Path:
        """Returns the path of the mark. Raises `StorageFailed` if it leads through a link."""
        if self.common is None:
            return files.local(self.root, files.own_name("trust-mark", owner))
        return self.common / files.own_name("mind-trust", owner)


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


def _of_worktree(marker: Path) -> tuple[Path, Path] | None:
    """Returns the common directory and the git directory of a worktree; None if it is not one.

    Git makes the latter within the former, which a folder that was unpacked here can't name.
    """
    directory = _pointer(marker, "gitdir:")
    if directory is None:
        return None
    back = _pointer(directory / "gitdir")
    common = _pointer(directory / "commondir")
    if back is None or common is None or back != marker.resolve():
        return None
    if directory.parent != common / "worktrees" or not common.is_dir():
        return None
    return common, directory


def _pointer(file: Path, prefix: str = "") -> Path | None:
    """Returns the path in one of git's files; it may be relative to the file's folder."""
    line = disk.first_line(file)
    if not line.startswith(prefix) or not line.removeprefix(prefix).strip():
        return None
    return (file.parent / line.removeprefix(prefix).strip()).resolve()


def read_mark(location: Location, owner: str | None) -> str | None:
    """Returns the mark of a project made with the user's secret; None without one."""
    if owner is None:
        return None
    with suppress(OSError, StorageFailed, Invalid):
        data, _ = disk.look(location.mark_file(owner), limit=64)
        text = data.decode("latin-1")
        return text.strip() if compiled(_MARK).fullmatch(text) else None
    return None


def make_mark(location: Location, owner: str, mark: str | None = None) -> str:
    """Returns the project's mark; creates a missing one.

    Raises `StorageFailed` if it can't be written. Without a mark, texts can't be approved.
    """
    if existing := read_mark(location, owner):
        return existing
    mark = mark or os.urandom(16).hex()
    path = location.mark_file(owner)
    if files.ensure(path, f"{mark}\n".encode(), mode=0o600):
        return mark
    if existing := read_mark(location, owner):  # Another process created it.
        return existing
    raise StorageFailed(
        f"`{path}` is damaged, so texts can't be approved", hint="remove it and approve again"
    )


def key_of(mark: str, inside: str) -> str:
    """Returns the key of a project by its mark and its folder in the repository."""
    return files.digest(os.fsencode(f"{mark}\0{inside}"))


class GitAnswers(NamedTuple):
    """The last answers of git, and the state of the repository that they belong to."""

    stamps: Mapping[str, str] = {}
    """By worktree, the state of git's files when git was asked there."""
    standing: Mapping[str, Sequence[str]] = {}
    """By worktree, the names of retired texts that count at its commit."""
    dropped: Sequence[str] = ()
    """The last blobs that the user's commits removed without having been approved."""
    positions: Mapping[str, str] = {}
    """The last position that was read in each reflog."""
    rebasing: Sequence[str] = ()
    """The reflogs whose position is within a rebase."""
    only: tuple[str, ...] = ()
    """The setting `trust.only` at that time."""
    signed: str | None = None
    """The commit up to which signatures were checked."""
    signers: str = ""
    """The state of the settings and keys that decided which signatures are good."""
    watched: Sequence[str] = ()
    """Other files on which the answers depend, such as the user's settings of git."""
    ref: str | None = None
    """The default branch, for example the target of `refs/remotes/origin/HEAD`."""
    tip: str | None = None
    base: str | None = None
    """A commit of the history that the user follows."""
    stopped: str | None = None
    """The reason why the default branch is not followed although the user chose to."""
