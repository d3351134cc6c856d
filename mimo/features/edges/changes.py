"""What a change adds to a project's files: told by git, or whole files."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mimo.disk import STORE
from mimo.errors import Invalid, StorageFailed
from mimo.features.edges import diffs
from mimo.features.edges.diffs import Added
from mimo.store import files, git
from mimo.store.walk import files_below

_MOST_BYTES = 2_000_000
"""What is larger was made by a program, or is data."""
_SKIPPED = frozenset(("node_modules", "__pycache__", "venv", "build", "dist", "target", "vendor"))
_NO_DIFF = "outside git, and before the first commit, name the files to check"


def of_git(root: Path, *, staged: bool, rev: str | None) -> Iterator[Added]:
    """Yields what git says was added below a folder. Raises `Invalid` where git can't tell."""
    told = _diff(root, staged=staged, rev=rev)
    return _others(diffs.parse(told), _prefix(root))


def of_text(text: str) -> Iterator[Added]:
    """Yields what a unified diff adds; any other text is added whole."""
    if diffs.is_diff(text):
        return _others(diffs.parse(text), "")
    return iter([diffs.whole("<stdin>", text)])


def of_files(root: Path, names: Sequence[str], *, near: Path) -> Iterator[Added]:
    """Yields files whole, and those in folders.

    A relative name is looked for from `near`, and else from `root`. Raises `Invalid` where one
    leads out of `root`, or to nothing, before any is read.
    """
    top = root.resolve()
    found = [_placed(top, name, near) for name in names]
    prefix = _prefix(root)
    for path in (file for one in found for file in _files(one)):
        if (text := _text(path)) is not None:
            inside = path.relative_to(top).as_posix()
            yield from _others([diffs.whole(f"{prefix}{inside}", text)], prefix)


def _placed(top: Path, name: str, near: Path) -> Path:
    here, there = (near / name).absolute(), top / name
    path = here if here.exists() else there
    if not path.exists():
        raise Invalid(
            f"there is no file `{name}`",
            hint="name files of the project, or pipe code in with --code -; an intent that begins "
            "with `check` follows `mind edges --`",
        )
    real = path.resolve()
    if real != top and top not in real.parents:
        raise Invalid(f"`{name}` lies outside of the project", hint=f"the project is {top}")
    return real


def _files(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        return [path]
    return _below(path)


def _below(folder: Path) -> Iterator[Path]:
    below = files_below(folder, lambda name: name[0] != "." and name not in _SKIPPED)
    return (path for path in below if path.name[0] != ".")


def _text(path: Path) -> str | None:
    """Returns a file's text; None for what is no text, a link, or too large."""
    try:
        data, _ = files.look(path, limit=_MOST_BYTES)
    except PermissionError as error:
        raise files.failure("read", path, error) from error
    except (OSError, StorageFailed):
        return None
    if len(data) > _MOST_BYTES or b"\0" in data:
        return None
    return data.decode("utf-8", "replace")


def _prefix(root: Path) -> str:
    """Returns what stands before the project's paths in git's: its folder in the work tree."""
    root = root.resolve()
    top = _top(root)
    inside = root.relative_to(top).as_posix() if top else "."
    return "" if inside == "." else f"{inside}/"


def _others(added: Iterable[Added], prefix: str) -> Iterator[Added]:
    """Yields all but the memory itself, in which every edge stands with its patterns."""
    return (one for one in added if not one.path.startswith(f"{prefix}{STORE}/"))


def _diff(root: Path, *, staged: bool, rev: str | None) -> str:
    """Returns the changes below a folder as a unified diff without context.

    They are those of the files since the last commit, or since `rev`; with `staged`, what the next
    commit would hold; with two revisions (`main...HEAD`) what lies between them. Paths are relative
    to the top of the work tree. Raises `Invalid` where git can't tell.
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
        raise Invalid(f"git can't tell what changed: {reason}", hint=_NO_DIFF)
    return result.stdout.decode("utf-8", "replace")


def _top(root: Path) -> Path | None:
    """Returns the folder that the paths of a diff are relative to; None outside git."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return None
