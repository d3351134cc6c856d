"""Looking for secrets that are there already: in files, in what is staged, in git's history."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from mimo.disk import STORE
from mimo.errors import Invalid, MindError, NotFound, StorageFailed
from mimo.features.ingest import relative, sandbox_of
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.privacy.model import excerpts
from mimo.privacy.secrets import secrets_in
from mimo.store import git
from mimo.store import sandbox as tree
from mimo.store.sandbox import Sandbox
from mimo.store.walk import files_below

if TYPE_CHECKING:
    from subprocess import Popen


# Files as git has them: what is staged, and all that ever was.


_RAW = ("--raw", "-z", "--no-renames", "--no-abbrev", "--relative", "--diff-filter=d")
_SUBMODULE = "160000"
_SECONDS = 600
"""Deadline for listing a whole history."""
_LONGEST = 32 * 1024 * 1024
"""Bytes of the largest file that is kept in memory to be looked at."""


class Version(NamedTuple):
    """One state of a file."""

    path: str
    """Relative to the project's root."""
    blob: str
    """Git's name of its content."""
    before: str | None = None
    """The content that it replaces."""
    commit: str | None = None
    """The first commit that has it."""


def staged(root: Path, paths: Sequence[str]) -> list[Version]:
    """Returns the files that the next commit changes, below some paths of the project.

    Raises `Invalid` where there is no git repository.
    """
    raw = _output(root, "diff", "--cached", *_RAW, "--", *paths)
    return [
        Version(path, new, before=old if old.strip("0") else None)
        for _, old, new, path in _changes(raw)
    ]


def history(root: Path, paths: Sequence[str]) -> list[Version]:
    """Returns every content that a file below some paths had in any commit of any branch, once.

    Raises `Invalid` where there is no git repository.
    """
    words = ("--all", "--topo-order", "--reverse", "-m", "--format=%x01%H")
    raw = _output(root, "log", *words, *_RAW, "--", *paths)
    found: dict[str, Version] = {}
    for commit, _, new, path in _changes(raw):
        found.setdefault(new, Version(path, new, commit=commit))
    return list(found.values())


class Blobs:
    """Contents, read one after the other by one process of git."""

    def __init__(self, process: "Popen[bytes]") -> None:
        """Take a `git cat-file --batch`."""
        self._ask: IO[bytes] = _pipe(process.stdin)
        self._answer: IO[bytes] = _pipe(process.stdout)

    def read(self, blob: str) -> bytes:
        """Returns a content; nothing of a very large one. Raises `Invalid` if it is missing."""
        try:
            self._ask.write(f"{blob}\n".encode())
            self._ask.flush()
        except BrokenPipeError:
            pass  # git has ended, and answers nothing.
        head = self._answer.readline().split()
        if len(head) != 3:
            raise Invalid(f"git does not have the content `{blob}`", hint=git.PARTIAL)
        left, kept = int(head[2]), b""
        if left <= _LONGEST:
            kept, left = self._answer.read(left), 0
        while left:
            left -= len(self._answer.read(min(left, 1 << 20))) or left
        self._answer.read(1)
        return kept


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise StorageFailed("git could not be asked")
    return stream


@contextmanager
def blobs_of(root: Path) -> Iterator[Blobs]:
    """Yields what reads contents; its process ends with the block."""
    with git.running(root, "cat-file", "--batch") as process:
        yield Blobs(process)


def _changes(raw: bytes) -> Iterator[tuple[str | None, str, str, str]]:
    """Yields commit, old content, new content and path of each change in git's raw format."""
    commit = None
    words = iter(raw.decode("utf-8", "surrogateescape").split("\0"))
    for word in words:
        if word.startswith("\x01"):
            commit = word[1:41]
        elif word.lstrip("\n").startswith(":"):
            _, mode, old, new, _ = word.split()
            path = next(words)
            if mode != _SUBMODULE:
                yield (
                    commit,
                    old,
                    new,
                    path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"),
                )


def _output(root: Path, *words: str) -> bytes:
    result = git.run(root, *words, seconds=_SECONDS, index=True)
    if result.returncode:
        raise Invalid(f"git {words[0]}: {git.complaint(result.stderr)}", hint="see `git status`")
    return result.stdout


_PASSED_OVER = (".index", ".local")


@frozen
class Secret:
    """A secret that was found; nothing here repeats it."""

    kind: str
    file: str
    line: int
    excerpt: str
    commit: str | None = None
    trash: str | None = None
    """The change in the trash that keeps it."""


@frozen
class Scan:
    """What was looked at, and what was found."""

    secrets: tuple[Secret, ...]
    files: int
    unread: tuple[str, ...] = ()
    """Files that can't be read, or are too large."""


def scan_files(mind: Mind, names: Sequence[str]) -> Scan:
    """Looks through files, folders and globs, or everything under `.mind/` where none is named.

    Raises what a name that stands for nothing raises.
    """
    files = list(_named(mind, names) if names else _of_memory(mind))
    root = mind.project.root
    sandbox = sandbox_of(mind) if names else Sandbox(root, root)
    found: list[Secret] = []
    unread: list[str] = []
    for number, path in enumerate(files, 1):
        try:
            data = sandbox.read(path, _LONGEST)
        except (MindError, OSError):
            unread.append(relative(mind, path))
        else:
            found += _in(data, relative(mind, path))
        mind.advance("Scanning", number, len(files))
    kept = [] if names else list(_of_trash(mind))
    found += (secret for data, path, id_ in kept for secret in _in(data, path, trash=id_))
    return Scan(secrets=tuple(found), files=len(files) + len(kept), unread=tuple(unread))


def _named(mind: Mind, names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        for target in tree.targets(sandbox_of(mind), name):
            if target.problem is None:
                yield target.path


def _of_memory(mind: Mind) -> Iterator[Path]:
    """Yields every file under `.mind/` but what can be made anew, and the documents beside it."""
    root = mind.project.root
    below = files_below(root / STORE, lambda name: name not in _PASSED_OVER)
    yield from (path for path in below if not path.is_symlink())
    if mind.config["include"]:
        stamps = mind.store.stamps()
        yield from (root / path for path in sorted(stamps) if not path.startswith(f"{STORE}/"))


def _of_trash(mind: Mind) -> Iterator[tuple[bytes, str, str]]:
    """Yields the text of every file in the trash, the file's path, and the change that keeps it."""
    store = mind.trash
    for id_ in store.ids():
        with suppress(NotFound):
            yield from ((one.before, one.path, id_) for one in store.kept(id_) if one.before)


def scan_staged(mind: Mind, *, everything: bool) -> Scan:
    """Looks through what the next commit adds; what stood in the same file before is no news."""
    root = mind.project.root
    return _scan_versions(mind, staged(root, _places(everything)))


def scan_history(mind: Mind, *, everything: bool) -> Scan:
    """Looks through all that was ever committed, on any branch."""
    root = mind.project.root
    return _scan_versions(mind, history(root, _places(everything)))


def _places(everything: bool) -> tuple[str, ...]:
    return (".",) if everything else (STORE,)


def _scan_versions(mind: Mind, listed: Sequence[Version]) -> Scan:
    found: list[Secret] = []
    if listed:
        with blobs_of(mind.project.root) as blobs:
            for number, version in enumerate(listed, 1):
                found += _of_version(blobs, version)
                mind.advance("Scanning", number, len(listed))
    return Scan(secrets=tuple(_once(found)), files=len(listed))


def _of_version(blobs: Blobs, version: Version) -> list[Secret]:
    before = blobs.read(version.before) if version.before else b""
    return _in(blobs.read(version.blob), version.path, commit=version.commit, before=before)


def _in(
    data: bytes,
    path: str,
    *,
    commit: str | None = None,
    trash: str | None = None,
    before: bytes = b"",
) -> list[Secret]:
    """Returns the secrets in a file's content that was not there before."""
    if b"\0" in data[:8_192]:
        return []
    text, old = data.decode("utf-8", "replace"), before.decode("utf-8", "replace")
    found = secrets_in(text)
    return [
        Secret(
            kind=one.kind,
            file=path,
            line=one.line,
            excerpt=excerpt,
            commit=commit,
            trash=trash,
        )
        for one, excerpt in zip(found, excerpts(text, found), strict=True)
        if not old or text[one.start : one.end] not in old
    ]


def _once(found: Iterable[Secret]) -> Iterator[Secret]:
    """Yields each secret of a line once: later commits of its file hold it as well."""
    seen: set[tuple[str, str, str]] = set()
    for one in found:
        if (key := (one.file, one.kind, one.excerpt)) not in seen:
            seen.add(key)
            yield one
