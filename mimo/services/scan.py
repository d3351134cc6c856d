"""Looking for secrets that are there already: in files, in what is staged, in git's history."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mimo.domain.privacy import excerpts, secrets_in
from mimo.errors import MindError, NotFound
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.outside import relative, sandbox_of
from mimo.store import tree, versions
from mimo.store.sandbox import Sandbox
from mimo.store.versions import Blobs, Version
from mimo.store.walk import STORE, files_below

_PASSED_OVER = (".index", ".local")
_LONGEST = 32 * 1024 * 1024


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
    return _scan_versions(mind, versions.staged(root, _places(everything)))


def scan_history(mind: Mind, *, everything: bool) -> Scan:
    """Looks through all that was ever committed, on any branch."""
    root = mind.project.root
    return _scan_versions(mind, versions.history(root, _places(everything)))


def _places(everything: bool) -> tuple[str, ...]:
    return (".",) if everything else (STORE,)


def _scan_versions(mind: Mind, listed: Sequence[Version]) -> Scan:
    found: list[Secret] = []
    if listed:
        with versions.blobs(mind.project.root) as blobs:
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
