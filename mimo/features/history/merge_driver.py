"""`mind merge-driver`, which git calls for each file of memory that two branches changed.

It is not a command of the registry: only git calls it, once a file, and it must start fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.errors import MindError

if TYPE_CHECKING:
    from mimo.project.trust import Trust

USAGE = """\
Usage: mind merge-driver BASE OURS THEIRS [PATH [FOLDER]]

Merge one file of memory, field by field, into OURS. git calls this; `mind init` sets it up.
With FOLDER, the first call merges all files of `git merge`, and stores the results there.
"""
_CONFLICT = 1
"""The exit status if nothing was merged: git merges the texts then."""
_APART = ("values/", "procedures/")
_APART_FILES = ("MEMORY.md", "policy.yaml")
"""Files that are not memories: a mixture of two procedures would be one without an author."""
_DIFF = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=M")
_AT_ONCE = 500
"""The number of files whose texts are read from git at once."""


def main(args: Sequence[str]) -> int:
    """Returns 0 if our file contains the merge now, 1 if it is not changed."""
    if len(args) not in (3, 4, 5):
        sys.stderr.write(USAGE)
        return 0 if list(args) == ["--help"] else 2
    files = [Path(name) for name in args[:3]]
    path = args[3] if len(args) >= 4 else ".mind/memory.md"
    # git calls from the top of the working tree, and the project may be a folder of it.
    folder = path.rpartition(".mind/")[0]
    driver = _Driver(Path.cwd() / folder)
    status = _CONFLICT
    if driver.is_later() or _is_other_later(Path.cwd(), folder):
        return status
    with suppress(Exception):  # git can still merge the texts
        status = driver.merge_files(files, path)
    if len(args) == 5:
        with suppress(Exception):  # each file is then merged by a call of its own
            _merge_all(driver, Path(args[4]), path)
    return status


class _Driver:
    """Merges files of one project."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._trust: Trust | None = None

    def is_later(self) -> bool:
        """Returns whether a later version of mind wrote the store, with rules of its own."""
        from mimo.config import FORMAT, load

        return load(user=None, project=self._root / ".mind" / "config.toml").format > FORMAT

    def merge_files(self, files: Sequence[Path], path: str) -> int:
        """Returns 0 if the second file contains the merge now, 1 if it is not changed."""
        from mimo.data.disk import read
        from mimo.data.files import replace

        merged = self.merge([read(file) for file in files], path) if _is_memory(path) else None
        if merged is None:
            return _CONFLICT
        replace(files[1], merged, durable=False)
        return 0

    def merge(self, sides: Sequence[bytes], path: str) -> bytes | None:
        """Returns the merge of the base, ours and theirs; None if only the texts can be merged.

        Reports competing versions on standard error.
        """
        from mimo.memory.merge import merge

        base, ours, theirs = sides
        merged = merge(base, ours, theirs, path=_in_project(path))
        if merged is None:
            return None
        self._approve_if_both_were(ours, theirs, merged.data, path)
        if merged.dropped:
            _warn(path, "two copies of an ingested file; the newer one was kept, ingest it again")
        elif merged.competing:
            names = ", ".join(merged.competing)
            _warn(path, f"conflict of {names}; both versions are in the file (## Competing: …)")
        return merged.data

    def _approve_if_both_were(self, ours: bytes, theirs: bytes, merged: bytes, path: str) -> None:
        """Approves a merge of two approved texts, since it contains no other text.

        If trust can't be read or written, the merge counts as untrusted, and a warning is printed.
        """
        from mimo.memory.approval import approval_of

        place = _in_project(path)
        try:
            if self._trust is None:
                from mimo.data.disk import home_of
                from mimo.project.trust import Trust

                self._trust = Trust(home_of(os.environ), self._root)
            if self._trust.trusted(*(approval_of(place, side) for side in (ours, theirs))):
                text = approval_of(place, merged)
                self._trust.approve([text], paths={text: place})
        except (MindError, OSError) as error:
            _warn(path, f"the merge could not be approved ({error}); `mind review` shows it")


def _is_other_later(top: Path, folder: str) -> bool:
    """Returns whether a later version of mind wrote the store of the branch that is merged.

    git writes its settings to the working tree only after the merge. A rebase writes those of the
    upstream before it; in a cherry-pick, git does not name the other commit.
    """
    heads = _merged_heads()
    if not heads:
        return False
    from mimo.config import FORMAT, format_of
    from mimo.project.git import output

    texts = (output(top, "cat-file", "blob", f"{head}:{folder}.mind/config.toml") for head in heads)
    return any(format_of(text.encode()) > FORMAT for text in texts if text)


def _merged_heads() -> list[str]:
    """Returns the ids of the merged commits. Only `git merge` and `git pull` name them."""
    mark = "GITHEAD_"
    return [name.removeprefix(mark) for name in os.environ if name.startswith(mark)]


def _in_project(path: str) -> str:
    """Returns a path relative to the project, from one relative to the repository."""
    return f".mind/{path.rpartition('.mind/')[2]}"


def _is_memory(path: str) -> bool:
    name = _in_project(path).removeprefix(".mind/")
    return name not in _APART_FILES and not name.startswith(_APART)


def _warn(path: str, reason: str) -> None:
    from mimo.rendering import complain

    complain(f"mind: {path}: {reason}")


def _merge_all(driver: _Driver, folder: Path, path: str) -> None:
    """Merges the other memories that both branches of `git merge` changed, into a folder.

    The folder belongs to one git process, so it exists if another call has done this. A result is
    stored by its path and the ids of its three texts, and is thus right for any call that finds
    it.
    """
    heads = _merged_heads()
    if len(heads) != 1 or folder.exists():
        return
    from shutil import rmtree

    from mimo.data.files import replace
    from mimo.project.revisions import blobs
    from mimo.project.walk import is_markdown

    for old in folder.parent.glob("mind-merge-*"):
        rmtree(old, ignore_errors=True)
    folder.mkdir()
    top, project = Path.cwd(), path.rpartition(".mind/")[:2]
    changes = _changed_by_both(top, heads[0])
    paths = [
        name
        for name in changes.keys() - {path}
        if name.rpartition(".mind/")[:2] == project and is_markdown(name) and _is_memory(name)
    ]
    for start in range(0, len(paths), _AT_ONCE):
        some = sorted(paths)[start : start + _AT_ONCE]
        texts = blobs(top, (id_ for name in some for id_ in changes[name]))
        for name in some:
            merged = driver.merge([texts[id_] for id_ in changes[name]], name)
            if merged is not None:
                result = folder / name / "-".join(changes[name])
                result.parent.mkdir(parents=True)
                replace(result, merged, durable=False)


def _changed_by_both(top: Path, head: str) -> dict[str, tuple[str, str, str]]:
    """Returns the ids of the base, ours and theirs of files that both branches changed, by path."""
    from mimo.project.git import ask

    (base,) = ask(top, "merge-base", "--all", "HEAD", head).decode().split()
    ours, theirs = (_changes(ask(top, *_DIFF, base, side)) for side in ("HEAD", head))
    return {
        path: (*ids, theirs[path][1])
        for path, ids in ours.items()
        if path in theirs and ids != theirs[path]
    }


def _changes(listed: bytes) -> dict[str, tuple[str, str]]:
    """Returns the old and the new id of each file in the output of `git diff-tree -z --raw`."""
    words = os.fsdecode(listed).split("\0")
    lines = (line.split() for line in words[:-1:2])
    return {path: (line[2], line[3]) for line, path in zip(lines, words[1::2], strict=True)}
