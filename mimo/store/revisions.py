"""The history of the memory in git: commits, the files at a commit, and their last changes."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from mimo import when
from mimo.disk import STORE, Stamp
from mimo.errors import Invalid, NotFound
from mimo.frozen import frozen
from mimo.memory.changes import AGENT
from mimo.memory.model import Problem, Record
from mimo.store import files as store_files
from mimo.store.accesses import Accesses
from mimo.store.files import is_shared
from mimo.store.git import Repository
from mimo.store.memories import MemoryStore, records_of
from mimo.store.walk import Walk, is_markdown

_LARGEST = 1_000_000
"""Maximum size in bytes of a file with cited lines."""
_AT_ONCE = 500
"""Number of blobs that are read at once, in the order of the files."""
_COMMIT = "%x1e%H%x1f%an%x1f%ae%x1f%ct%x1f"
_FORMAT = f"%x1e%H%x1f%an%x1f%at%x1f%s%x1f%(trailers:key={AGENT},valueonly,separator=%x2C)%x1f"
_CHANGES = {"A": "added", "D": "removed"}
_APART = (f"{STORE}/values/", f"{STORE}/procedures/")


@frozen
class Touch:
    """The commit that last changed a file."""

    commit: str
    author: str
    email: str
    """The address in the commit; the repository's `.mailmap` is ignored."""
    when: datetime

    @property
    def short(self) -> str:
        """Returns the start of the commit's id."""
        return self.commit[:10]


def last_touches(
    repository: Repository, revision: str = "HEAD", folders: Sequence[str] = (f"{STORE}/",)
) -> dict[str, Touch]:
    """Returns the last commit that changed each file of the folders, by path."""
    every = all_touches(repository, revision, folders)
    return {path: touches[0] for path, touches in every.items()}


def all_touches(
    repository: Repository, revision: str = "HEAD", folders: Sequence[str] = (f"{STORE}/",)
) -> dict[str, list[Touch]]:
    """Returns the commits up to a revision that changed each file of the folders, by path.

    The newest commit comes first. A missing revision gives no commits.
    """
    if not repository.run("rev-parse", "--verify", "--quiet", revision).stdout:
        return {}
    words = ("-z", "--name-only", "--relative", "-c")
    logged = repository.ask("log", *words, f"--format={_COMMIT}", revision, "--", *folders)
    touches: dict[str, list[Touch]] = {}
    for touch, names in _touches(logged):
        for name in names.strip("\0\n").split("\0"):
            touches.setdefault(name.strip("\n"), []).append(touch)
    return touches


def commits_before(
    repository: Repository, moments: Iterable[datetime]
) -> dict[datetime, Touch | None]:
    """Returns the last commit of this branch before each moment; None if there was none."""
    wanted = sorted(set(moments))
    if not wanted:
        return {}
    oldest = int(wanted[0].timestamp())
    since = ("log", f"--since={oldest}", f"--format={_COMMIT}", "HEAD")
    first = ("log", "-1", f"--before={oldest}", f"--format={_COMMIT}", "HEAD")
    logged = repository.run(*since).stdout + repository.run(*first).stdout
    newest = sorted((touch for touch, _ in _touches(logged)), key=_time_of, reverse=True)
    return {moment: next((t for t in newest if t.when <= moment), None) for moment in wanted}


def _time_of(touch: Touch) -> datetime:
    return touch.when


def _touches(logged: bytes) -> Iterator[tuple[Touch, str]]:
    """Yields the commits in the format `_COMMIT`, each with the text after it."""
    for record in os.fsdecode(logged).split("\x1e")[1:]:
        id_, author, email, seconds, rest = record.split("\x1f", 4)
        when = datetime.fromtimestamp(int(seconds), UTC)
        yield Touch(commit=id_, author=author, email=email, when=when), rest


def texts(
    repository: Repository, wanted: Iterable[tuple[str, str]]
) -> Mapping[tuple[str, str], str]:
    """Returns the text of files at commits, by (commit, path); missing files are left out."""
    content = contents(repository, wanted)
    return {pair: data.decode("utf-8", "replace") for pair, data in content.items()}


def contents(
    repository: Repository, wanted: Iterable[tuple[str, str]]
) -> Mapping[tuple[str, str], bytes]:
    """Returns the bytes of files at commits, by (commit, path), except files over a megabyte."""
    # git reads one name from each line, so a path with a line break would name another file.
    pairs = [pair for pair in dict.fromkeys(wanted) if "\n" not in pair[1]]
    if not pairs:
        return {}
    names = "".join(f"{commit}:./{path}\n" for commit, path in pairs)
    listed = repository.ask("cat-file", "--batch-check", given=names.encode())
    blob_of = {}
    for pair, line in zip(pairs, listed.decode("utf-8", "replace").splitlines(), strict=False):
        words = line.rsplit(" ", 2)
        if len(words) == 3 and words[1] == "blob" and int(words[2]) <= _LARGEST:
            blob_of[pair] = words[0]
    content = blobs(repository, blob_of.values())
    return {pair: content[blob] for pair, blob in blob_of.items()}


@frozen
class Commit:
    """A commit, as shown to people."""

    id: str
    author: str
    when: datetime
    subject: str
    agents: str = ""
    """The agents named in the message, separated by commas."""

    @property
    def short(self) -> str:
        """Returns the start of the id."""
        return self.id[:10]


@frozen
class Touched:
    """A file that a commit changed."""

    path: str
    change: str
    """`added`, `changed` or `removed`."""


@frozen
class Step:
    """A commit and its changes to the memory."""

    commit: Commit
    files: tuple[Touched, ...]


@frozen
class Difference:
    """A file that differs between two revisions; an empty blob is a missing file."""

    path: str
    before: str
    after: str


@frozen
class Line:
    """A line of a file, and the commit that it comes from."""

    commit: str
    number: int
    text: str


def resolve(repository: Repository, revision: str, *, now: datetime) -> Commit:
    """Returns the commit of a revision, or the last commit of this branch before a date.

    Raises `NotFound`.
    """
    commit = _commit_id(repository, revision) or _before(repository, revision, now)
    if commit is None:
        raise NotFound(
            f"`{revision}` is not a commit, branch, tag or date of this repository",
            hint="such as HEAD~3, v1.2, 2026-11-01 or `last week`; `mind log` lists the commits",
        )
    logged = repository.ask("log", "-1", f"--format={_FORMAT}", commit)
    return next(_steps(logged)).commit


def common(repository: Repository, first: str, second: str) -> str:
    """Returns the last common commit of two branches."""
    return repository.ask("merge-base", first, second).decode().strip()


def main_branch(repository: Repository) -> str:
    """Returns the main branch: the remote's default branch, `main` or `master`."""
    for name in ("origin/HEAD", "main", "master", "origin/main", "origin/master"):
        if _commit_id(repository, name):
            return name
    raise NotFound("there is no main branch here", hint="name one: `mind diff main...HEAD`")


def state(repository: Repository, commit: str) -> str:
    """Returns the id of the tree of the memory at a commit; empty if there was none."""
    words = ("rev-parse", "--verify", "--quiet", f"{commit}:./{STORE}")
    return repository.run(*words).stdout.decode().strip()


def files(repository: Repository, commit: str) -> dict[str, str]:
    """Returns the blob of each file of memories at a commit, by path relative to the project."""
    listed = repository.ask("ls-tree", "-r", "-z", commit, "--", f"{STORE}/")
    blob_of = {}
    for entry in listed.split(b"\0"):
        about, _, name = entry.partition(b"\t")
        path = os.fsdecode(name)
        if about.startswith(b"100") and is_memory(path):
            blob_of[path] = about.split()[2].decode()
    return blob_of


def is_memory(path: str) -> bool:
    """Returns whether a file under `.mind/` contains memories, by its path."""
    folders = path.split("/")
    hidden = any(part.startswith(".") for part in folders[1:])
    apart = hidden or path == f"{STORE}/MEMORY.md" or path.startswith(_APART)
    return folders[0] == STORE and is_markdown(path) and is_shared(path) and not apart


def blobs(repository: Repository, names: Iterable[str]) -> dict[str, bytes]:
    """Returns the content of blobs by their names."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    answer = repository.ask("cat-file", "--batch", given="\n".join([*wanted, ""]).encode())
    content, place = {}, 0
    for name in wanted:
        end = answer.index(b"\n", place)
        size = answer[place:end].rsplit(b" ", 1)[-1]
        place = end + 1
        if size.isdigit():
            content[name] = answer[place : place + int(size)]
            place += int(size) + 1
    return content


def differences(repository: Repository, before: str, after: str) -> tuple[Difference, ...]:
    """Returns the files of memories that differ between two commits."""
    words = ("diff-tree", "-r", "-z", "--no-renames", "--relative", before, after)
    parts = repository.ask(*words, "--", f"{STORE}/").split(b"\0")
    result = []
    for about, name in zip(parts[::2], parts[1::2], strict=False):
        _, _, old, new, _ = about.decode().split()
        if is_memory(path := os.fsdecode(name)):
            result.append(Difference(path=path, before=_some(old), after=_some(new)))
    return tuple(result)


def _some(blob: str) -> str:
    """Returns the id of a blob; empty for zeros, which mean a missing file."""
    return blob if blob.strip("0") else ""


def steps(repository: Repository, path: str | None, limit: int) -> Iterator[Step]:
    """Yields the commits that changed the memory, or one file of it, also before it was renamed."""
    paths = ["--follow", "--", path] if path else ["--", f"{STORE}/"]
    words = ("log", "-z", f"--max-count={limit}", "--name-status", "--relative")
    if _commit_id(repository, "HEAD"):
        yield from _steps(repository.ask(*words, f"--format={_FORMAT}", *paths))


def blame(repository: Repository, path: str) -> tuple[Line, ...]:
    """Returns the lines of a file at HEAD, each with the commit that it comes from."""
    blamed = repository.ask("blame", "--porcelain", "HEAD", "--", path)
    lines: list[Line] = []
    commit, number = "", 0
    for line in blamed.decode("utf-8", "replace").split("\n"):
        word, _, rest = line.partition(" ")
        if line.startswith("\t"):
            lines.append(Line(commit=commit, number=number, text=line[1:]))
        elif len(word) >= 40 and rest[:1].isdigit():
            commit, number = word, int(rest.split()[1])
    return tuple(lines)


def commits(repository: Repository, names: Iterable[str]) -> dict[str, Commit]:
    """Returns commits by their ids."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    logged = repository.ask("log", "--no-walk", f"--format={_FORMAT}", *wanted)
    return {step.commit.id: step.commit for step in _steps(logged)}


def _commit_id(repository: Repository, revision: str) -> str | None:
    if not revision or revision.startswith("-") or "\0" in revision:
        return None
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return repository.run(*words).stdout.decode().strip() or None


def _before(repository: Repository, date: str, now: datetime) -> str | None:
    try:
        until = when.window(None, None, date, now=now).until
    except Invalid:
        return None
    if until is None:
        return None
    words = ("rev-list", "-1", f"--before={int(until.timestamp()) - 1}", "HEAD")
    commit = repository.run(*words).stdout.decode().strip()
    if not commit:
        raise NotFound(
            f"there is no commit before {until:%Y-%m-%d %H:%M} UTC",
            hint="`mind log` lists the commits",
        )
    return commit


def _steps(logged: bytes) -> Iterator[Step]:
    """Yields the commits in the format `_FORMAT`, each with the files that it changed."""
    for record in os.fsdecode(logged).split("\x1e")[1:]:
        id_, author, seconds, subject, agents, names = record.split("\x1f", 5)
        commit = Commit(
            id=id_,
            author=author,
            when=datetime.fromtimestamp(int(seconds), UTC),
            subject=subject,
            agents=agents.replace(",", ", "),
        )
        yield Step(commit=commit, files=tuple(_touched(names.strip("\0\n").split("\0"))))


def _touched(words: Sequence[str]) -> Iterator[Touched]:
    rest = iter(words)
    for word in rest:
        mark = word.strip("\n")
        if mark[:1] in ("R", "C"):
            next(rest, "")
        path = next(rest, "")
        if path.startswith(f"{STORE}/") and is_shared(path):
            yield Touched(path=path, change=_CHANGES.get(mark[:1], "changed"))


class PastStore(MemoryStore):
    """Reads the memories at a commit from git's objects; they can't be changed."""

    def __init__(self, repository: Repository, commit: Commit) -> None:
        """Takes the repository and the commit; nothing is read yet."""
        super().__init__(repository.root)
        self.repository = repository
        self.commit = commit
        self._files: dict[str, str] | None = None
        self._content: dict[str, bytes] = {}

    def walk(self) -> Walk:
        """Returns a stamp for each file, made from the id of its blob."""
        self._problems = ()
        return Walk(stamps={path: _stamp(blob) for path, blob in self._blobs().items()})

    def folders(self) -> tuple[()]:
        """Returns no folders, since a commit never changes."""
        return ()

    def read(self, path: str) -> tuple[Record, ...] | Problem:
        """Returns the memories in a file at the commit, or the problem with it."""
        data = self.data(path)
        if data is None:
            return Problem(path=path, line=None, reason="its content is missing in git")
        return records_of(data, path, self.commit.when)

    def digest(self, path: str) -> str:
        """Returns the digest of a file; empty if it is missing."""
        data = self.data(path)
        return "" if data is None else store_files.digest(data)

    def raw(self, record: Record) -> bytes:
        """Returns the bytes of a memory's file."""
        return self.data(record.place.path) or b""

    def data(self, path: str) -> bytes | None:
        """Returns the bytes of a file, and caches those of the files after it."""
        blob = self._blobs().get(path)
        if blob is None:
            return None
        if blob not in self._content:
            names = list(self._blobs().values())
            place = names.index(blob)
            wanted = names[place : place + _AT_ONCE]
            self._content = blobs(self.repository, wanted)
        return self._content.get(blob)

    def _blobs(self) -> dict[str, str]:
        if self._files is None:
            self._files = files(self.repository, self.commit.id)
        return self._files


class Uncounted(Accesses):
    """Accesses at an earlier revision, which do not keep memories from fading."""

    def note(self, ids: Iterable[str], now: datetime) -> None:
        """Counts nothing."""


def _stamp(blob: str) -> Stamp:
    """Returns the id of a blob as the four numbers of a stamp."""
    parts = [int(blob[start : start + 15] or "0", 16) for start in (0, 15, 30, 45)]
    return Stamp(*parts)
