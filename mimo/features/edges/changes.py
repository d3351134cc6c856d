"""The lines that a change adds: from git, from a diff, or from whole files."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mimo import disk
from mimo.disk import STORE
from mimo.errors import Invalid, StorageFailed
from mimo.features.edges import diffs
from mimo.features.edges.diffs import Added
from mimo.store import files, git
from mimo.store.walk import files_below

_MOST_BYTES = 2_000_000
"""Larger files are generated, or data."""
_SKIPPED = frozenset(("node_modules", "__pycache__", "venv", "build", "dist", "target", "vendor"))
_NO_DIFF = "outside git, and before the first commit, name the files to check"


def of_git(root: Path, *, staged: bool, rev: str | None) -> Iterator[Added]:
    """Yields the additions of a git diff below a folder. Raises `Invalid` if git fails."""
    return _others(diffs.parse(_diff(root, staged=staged, rev=rev)), _prefix(root))


def of_text(text: str) -> Iterator[Added]:
    """Yields the additions of a unified diff; any other text counts as added."""
    if diffs.is_diff(text):
        return _others(diffs.parse(text), "")
    return iter([diffs.whole("<stdin>", text)])


def of_files(root: Path, names: Sequence[str], *, near: Path) -> Iterator[Added]:
    """Yields whole files, and the files in folders.

    A relative name is resolved from `near`, then from `root`. Raises `Invalid` if a name leads out
    of `root` or does not exist, before any file is read.
    """
    top = root.resolve()
    paths = [_resolved(top, name, near) for name in names]
    prefix = _prefix(root)
    for path in (file for named in paths for file in _files(named)):
        if (text := _text(path)) is not None:
            inside = path.relative_to(top).as_posix()
            yield from _others([diffs.whole(f"{prefix}{inside}", text)], prefix)


def _resolved(top: Path, name: str, near: Path) -> Path:
    path = (near / name).absolute()
    if not path.exists():
        path = top / name
    if not path.exists():
        raise Invalid(
            f"there is no file `{name}`",
            hint="name files of the project, or pipe code in with --code -; an intent that begins "
            "with `check` follows `mind edges --`",
        )
    real = path.resolve()
    if real != top and top not in real.parents:
        raise Invalid(f"`{name}` is outside the project", hint=f"the project is {top}")
    return real


def _files(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        return [path]
    below = files_below(path, lambda name: name[0] != "." and name not in _SKIPPED)
    return (path for path in below if path.name[0] != ".")


def _text(path: Path) -> str | None:
    """Returns a file's text; None if it is binary, a link, or too large."""
    try:
        data, _ = disk.look(path, limit=_MOST_BYTES)
    except PermissionError as error:
        raise files.failure("read", path, error) from error
    except (OSError, StorageFailed):
        return None
    if len(data) > _MOST_BYTES or b"\0" in data:
        return None
    return data.decode("utf-8", "replace")


def _prefix(root: Path) -> str:
    """Returns the folder of the project in the working tree, as a prefix of git's paths."""
    root = root.resolve()
    top = _top(root)
    inside = root.relative_to(top).as_posix() if top else "."
    return "" if inside == "." else f"{inside}/"


def _others(added: Iterable[Added], prefix: str) -> Iterator[Added]:
    """Yields all additions except those to the memory, which has the patterns of every edge."""
    return (file for file in added if not file.path.startswith(f"{prefix}{STORE}/"))


def _diff(root: Path, *, staged: bool, rev: str | None) -> str:
    """Returns the changes below a folder as a unified diff without context.

    The changes are those since the last commit, or since `rev`; with `staged`, those of the next
    commit; with two revisions (`main...HEAD`) those between them. Paths are relative to the top of
    the working tree. Raises `Invalid` if git fails.
    """
    shape = ("--unified=0", "--no-renames")
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--no-relative")
    against = [] if staged and rev is None else [rev or "HEAD"]
    options = ("--cached",) if staged else ()
    words = ("diff", *shape, *prefixes, *options, "--end-of-options", *against, "--", ".")
    try:
        result = git.run(root, *words, index=staged)
    except Invalid as error:
        error.hint = _NO_DIFF
        raise
    if result.returncode:
        reason = git.complaint(result.stderr)
        raise Invalid(f"`git diff` failed: {reason}", hint=_NO_DIFF)
    return result.stdout.decode("utf-8", "replace")


def _top(root: Path) -> Path | None:
    """Returns the top of the working tree; None outside git."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return None
