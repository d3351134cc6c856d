"""The search for secrets in existing files, in staged changes and in git's history."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from mimo.disk import STORE
from mimo.errors import Invalid, MindError, NotFound, StorageFailed
from mimo.features.ingest import relative, sandbox_of
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.privacy.model import excerpts
from mimo.privacy.secrets import secrets_in
from mimo.store import git, sandbox
from mimo.store.sandbox import Sandbox
from mimo.store.walk import files_below

if TYPE_CHECKING:
    from subprocess import Popen


_RAW = ("--raw", "-z", "--no-renames", "--no-abbrev", "--relative", "--diff-filter=d")
_SUBMODULE = "160000"
_SECONDS = 600
"""Deadline for listing a whole history."""
_LONGEST = 32 * 1024 * 1024
"""Bytes of the largest file that is scanned."""
_PASSED_OVER = (".index", ".local")


class Version(NamedTuple):
    """One state of a file."""

    path: str
    """Relative to the project's root."""
    blob: str
    """The object id of its content."""
    before: str | None = None
    """The object id of the content that it replaces."""
    commit: str | None = None
    """The first commit with this content."""


def staged(root: Path, paths: Sequence[str]) -> list[Version]:
    """Returns the files that the next commit changes, below some paths of the project.

    Raises `Invalid` outside a git repository.
    """
    raw = _output(root, "diff", "--cached", *_RAW, "--", *paths)
    return [
        Version(path, new, before=old if old.strip("0") else None)
        for _, old, new, path in _changes(raw)
    ]


def history(root: Path, paths: Sequence[str]) -> list[Version]:
    """Returns every content that a file below some paths had in any commit of any branch, once.

    Raises `Invalid` outside a git repository.
    """
    words = ("--all", "--topo-order", "--reverse", "-m", "--format=%x01%H")
    raw = _output(root, "log", *words, *_RAW, "--", *paths)
    versions: dict[str, Version] = {}
    for commit, _, new, path in _changes(raw):
        versions.setdefault(new, Version(path, new, commit=commit))
    return list(versions.values())


class Blobs:
    """Reads contents by one process of git."""

    def __init__(self, process: "Popen[bytes]") -> None:
        """Keep a `git cat-file --batch` process."""
        self._ask: IO[bytes] = _pipe(process.stdin)
        self._answer: IO[bytes] = _pipe(process.stdout)

    def read(self, blob: str) -> bytes:
        """Returns a content, empty if it is too large. Raises `Invalid` if it is missing."""
        try:
            self._ask.write(f"{blob}\n".encode())
            self._ask.flush()
        except BrokenPipeError:
            pass  # git has ended: its answer is empty.
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


@frozen
class Secret:
    """The kind and place of a secret, without its text."""

    kind: str
    file: str
    line: int
    excerpt: str
    commit: str | None = None
    trash: str | None = None
    """The change in the trash that keeps it."""


@frozen
class Scan:
    """The result of a scan."""

    secrets: tuple[Secret, ...]
    files: int
    """The number of scanned files."""
    unread: tuple[str, ...] = ()
    """Files that can't be read, or are too large."""


def scan_files(mind: Mind, names: Sequence[str]) -> Scan:
    """Scans files, folders and globs, or everything under `.mind/` if there are no names.

    Raises `NotFound` or `Invalid` for a name without files.
    """
    files = list(_named(mind, names) if names else _of_memory(mind))
    root = mind.project.root
    reader = sandbox_of(mind) if names else Sandbox(root, root)
    secrets: list[Secret] = []
    unread: list[str] = []
    for number, path in enumerate(files, 1):
        try:
            data = reader.read(path, _LONGEST)
        except (MindError, OSError):
            unread.append(relative(mind, path))
        else:
            secrets += _in(data, relative(mind, path))
        mind.advance("Scanning", number, len(files))
    kept = [] if names else list(_of_trash(mind))
    secrets += (secret for data, path, id_ in kept for secret in _in(data, path, trash=id_))
    return Scan(secrets=tuple(secrets), files=len(files) + len(kept), unread=tuple(unread))


def _named(mind: Mind, names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        for target in sandbox.targets(sandbox_of(mind), name):
            if target.problem is None:
                yield target.path


def _of_memory(mind: Mind) -> Iterator[Path]:
    """Yields every file under `.mind/` that can't be rebuilt, and the documents of `include`."""
    root = mind.project.root
    below = files_below(root / STORE, lambda name: name not in _PASSED_OVER)
    yield from (path for path in below if not path.is_symlink())
    if mind.config["include"]:
        stamps = mind.store.stamps()
        yield from (root / path for path in sorted(stamps) if not path.startswith(f"{STORE}/"))


def _of_trash(mind: Mind) -> Iterator[tuple[bytes, str, str]]:
    """Yields the text and path of every file in the trash, and the id of its change."""
    store = mind.trash
    for id_ in store.ids():
        with suppress(NotFound):
            yield from ((file.before, file.path, id_) for file in store.kept(id_) if file.before)


def scan_staged(mind: Mind, *, everything: bool) -> Scan:
    """Scans the additions of the next commit; text that the file already had does not count."""
    root = mind.project.root
    return _scan_versions(mind, staged(root, _places(everything)))


def scan_history(mind: Mind, *, everything: bool) -> Scan:
    """Scans all commits of all branches."""
    root = mind.project.root
    return _scan_versions(mind, history(root, _places(everything)))


def _places(everything: bool) -> tuple[str, ...]:
    return (".",) if everything else (STORE,)


def _scan_versions(mind: Mind, listed: Sequence[Version]) -> Scan:
    secrets: list[Secret] = []
    if listed:
        with git.running(mind.project.root, "cat-file", "--batch") as process:
            blobs = Blobs(process)
            for number, version in enumerate(listed, 1):
                before = blobs.read(version.before) if version.before else b""
                data = blobs.read(version.blob)
                secrets += _in(data, version.path, commit=version.commit, before=before)
                mind.advance("Scanning", number, len(listed))
    return Scan(secrets=tuple(_once(secrets)), files=len(listed))


def _in(
    data: bytes,
    path: str,
    *,
    commit: str | None = None,
    trash: str | None = None,
    before: bytes = b"",
) -> list[Secret]:
    """Returns the secrets in a file's content that are not in the content before."""
    if b"\0" in data[:8_192]:
        return []
    text, old = data.decode("utf-8", "replace"), before.decode("utf-8", "replace")
    spans = secrets_in(text)
    return [
        Secret(
            kind=span.kind, file=path, line=span.line, excerpt=excerpt, commit=commit, trash=trash
        )
        for span, excerpt in zip(spans, excerpts(text, spans), strict=True)
        if not old or text[span.start : span.end] not in old
    ]


def _once(secrets: Iterable[Secret]) -> Iterator[Secret]:
    """Yields each secret of a line once: later commits of its file contain it as well."""
    seen: set[tuple[str, str, str]] = set()
    for secret in secrets:
        if (key := (secret.file, secret.kind, secret.excerpt)) not in seen:
            seen.add(key)
            yield secret
