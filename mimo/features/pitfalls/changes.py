"""The lines that a change adds: from git, from a unified diff, or from whole files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mimo.data import disk
from mimo.data.disk import STORE
from mimo.data.failures import failure
from mimo.errors import Hint, Invalid, Option, StorageFailed
from mimo.features.pitfalls.checking import LONGEST_LINE, Added, Hunk, whole
from mimo.project import git
from mimo.project.walk import files_below

_MOST_BYTES = 2_000_000
"""Larger files are generated, or data."""
_SKIPPED = frozenset(("node_modules", "__pycache__", "venv", "build", "dist", "target", "vendor"))
_HUNK = re.compile(
    r"@@ -\d+(?:,(?P<old>\d{1,18}))? \+(?P<start>\d{1,18})(?:,(?P<new>\d{1,18}))? @@"
)
_ESCAPED = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))


def of_git(root: Path, *, staged: bool, rev: str | None) -> Iterator[Added]:
    """Yields the lines below a folder that git reports as added; those of a moved file are not.

    The changes are those since the last commit, or since `rev`; with `staged`, those of the next
    commit; with two revisions (`main...HEAD`) those between them. Paths are relative to the top of
    the working tree. Raises `Invalid` if git fails.
    """
    shape = ("--unified=0", "--find-renames")
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--no-relative")
    against = [] if staged and rev is None else [rev or "HEAD"]
    options = ("--cached",) if staged else ()
    words = ("diff", *shape, *prefixes, *options, "--end-of-options", *against, "--", ".")
    hint = "outside git, and before the first commit, name the files to check"
    try:
        result = git.run(root, *words, index=staged)
    except Invalid as error:
        error.hint = hint
        raise
    if result.returncode:
        reason = git.refusal(root) or git.complaint(result.stderr)
        raise Invalid(f"`git diff` failed: {reason}", hint=hint)
    return _without_memories(_parsed(result.stdout.decode("utf-8", "replace")))


def of_text(text: str) -> Iterator[Added]:
    """Yields the lines that a unified diff adds; any other text counts as added."""
    if re.search(r"^--- .*\n\+\+\+ .*\n@@ -\d", text, re.MULTILINE):
        return _without_memories(_parsed(text))
    return iter([whole("<stdin>", text)])


def of_files(root: Path, names: Sequence[str], *, near: Path) -> Iterator[Added]:
    """Yields whole files, and the files in folders.

    A relative name is resolved from `near`, then from `root`. Raises `Invalid` if a name leads out
    of `root` or does not exist, before any file is read.
    """
    top = root.resolve()
    paths = [_resolved(top, name, near) for name in names]
    for path in (file for named in paths for file in _files(named)):
        if (text := _text(path)) is not None:
            yield from _without_memories([whole(path.relative_to(top_of(top)).as_posix(), text)])


def _resolved(top: Path, name: str, near: Path) -> Path:
    path = (near / name).absolute()
    if not path.exists():
        path = top / name
    if not path.exists():
        raise Invalid(
            f"there is no file `{name}`",
            hint=Hint(
                "name files of the project, or pipe code in with ",
                Option(code="-"),
                "; an intent that begins with `check` follows `--`",
            ),
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
        data = disk.read(path, limit=_MOST_BYTES)
    except PermissionError as error:
        raise failure("read", path, error) from error
    except (OSError, StorageFailed):
        return None
    return None if b"\0" in data else data.decode("utf-8", "replace")


def top_of(root: Path) -> Path:
    """Returns the top of the working tree around a folder; outside git the folder itself."""
    root = root.resolve()
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)


def _without_memories(added: Iterable[Added]) -> Iterator[Added]:
    """Yields all additions except those to memories, which have the patterns of every edge."""
    return (file for file in added if f"/{STORE}/" not in f"/{file.path}")


# Unified diffs.


def _parsed(text: str) -> Iterator[Added]:
    """Yields the lines that a unified diff adds to each file; none for removed and binary files."""
    path, hunks = "", list[Hunk]()
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("+++ "):
            if path and hunks:
                yield Added(path=path, hunks=tuple(hunks))
            path, hunks = _path(line[4:]), []
        elif path and (header := _HUNK.match(line)):
            numbers = (header[name] or "1" for name in ("start", "old", "new"))
            hunks += _hunks(lines, *(int(number) for number in numbers))
    if path and hunks:
        yield Added(path=path, hunks=tuple(hunks))


def _hunks(lines: Iterator[str], number: int, old: int, new: int) -> Iterator[Hunk]:
    """Yields the runs of added lines of one hunk, which has so many old and new lines."""
    run: list[str] = []
    while (old > 0 or new > 0) and (line := next(lines, None)) is not None:
        mark = line[:1]
        if mark == "+":
            run.append(line[1 : LONGEST_LINE + 1].removesuffix("\r"))
            number, new = number + 1, new - 1
            continue
        if run and mark != "\\":
            yield Hunk(start=number - len(run), lines=tuple(run))
            run = []
        if mark == "-":
            old -= 1
        elif mark != "\\":
            number, old, new = number + 1, old - 1, new - 1
    if run:
        yield Hunk(start=number - len(run), lines=tuple(run))


def _path(line: str) -> str:
    """Returns the path in a `+++` line, without `b/`; empty for a removed file."""
    name = line.rstrip("\r").split("\t")[0]
    if name.startswith('"') and name.endswith('"'):
        quoted = name[1:-1].encode("utf-8", "surrogateescape")
        name = _ESCAPED.sub(_unescaped, quoted).decode("utf-8", "replace")
    return "" if name == "/dev/null" else name.removeprefix("b/")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 255 if len(code) > 1 else _ESCAPES[code[0]]])
