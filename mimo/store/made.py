"""Which checkpoints were made on this machine, and on which branch.

Kept outside every repository, beside what is trusted of the project, one `id<TAB>branch` a line: a
tracked file shall not name machines, worktrees share it, and another repository in the same place
inherits none of it.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from mimo import disk
from mimo.store import append_log
from mimo.store.trust import Trust

_HEAD = re.compile(r"ref: refs/heads/([^\x00-\x1f\x7f]{1,200})")


class Made:
    """The list of one project; what can't be read counts as made elsewhere."""

    def __init__(self, trust: Trust) -> None:
        """Take the approvals of the project; nothing is read yet."""
        self._trust = trust

    def add(self, id: str, branch: str | None) -> None:
        """Notes what was just made on `branch`. Raises `StorageFailed`."""
        self.add_all((id,), branch)

    def add_all(self, ids: Iterable[str], branch: str | None) -> None:
        """Notes what was made on `branch`, or nobody knows on which. Raises `StorageFailed`."""
        lines = "".join(f"{id_}\t{branch or ''}\n" for id_ in ids)
        append_log.append(self._trust.begin() / "made", lines.encode())

    def branches(self) -> dict[str, str | None]:
        """Returns the branch on which each id was made here; None outside git, or detached."""
        folder = self._trust.folder
        try:
            log = append_log.read(folder / "made") if folder else None
        except OSError:
            return {}
        known = log.lines if log else []
        lines = (line.decode("utf-8", "replace").split("\t", 1) for line in known)
        return {line[0]: line[1] or None for line in lines if len(line) == 2}


def branch(root: Path) -> str | None:
    """Returns the branch that is checked out, found without running git.

    None outside git, and where no branch is checked out.
    """
    for folder in (root, *root.parents):
        marker = folder / ".git"
        if marker.is_dir():
            return _branch_of(marker)
        if marker.is_file():
            named = _first_line(marker).removeprefix("gitdir:").strip()
            return _branch_of(folder / named) if named else None
    return None


def _branch_of(git: Path) -> str | None:
    match = _HEAD.fullmatch(_first_line(git / "HEAD"))
    return match[1] if match else None


def _first_line(file: Path) -> str:
    try:
        return disk.first_line(file)
    except (OSError, ValueError):
        return ""
