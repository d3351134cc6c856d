"""The files of a past commit, read from git's objects as if they stood in the project."""

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

# Which commit last changed a file, and what files held at a commit.


_LARGEST = 1_000_000
"""Bytes of the largest file of which a part may be cited."""
_COMMIT = "%x1e%H%x1f%an%x1f%ae%x1f%ct%x1f"


@frozen
class Touch:
    """The commit that last changed a file."""

    commit: str
    author: str
    email: str
    """As the commit has it: a repository's own `.mailmap` is not asked."""
    when: datetime

    @property
    def short(self) -> str:
        """Returns the start of the commit's id."""
        return self.commit[:10]


def last_touches(
    repository: Repository, revision: str = "HEAD", folders: Sequence[str] = (f"{STORE}/",)
) -> dict[str, Touch]:
    """Returns the last commit that changed each file of the folders, by its path."""
    found = all_touches(repository, revision, folders)
    return {path: touches[0] for path, touches in found.items()}


def all_touches(
    repository: Repository, revision: str = "HEAD", folders: Sequence[str] = (f"{STORE}/",)
) -> dict[str, list[Touch]]:
    """Returns the commits that changed each file of the folders, newest first, by its path.

    They are those up to a revision; none where there is no such revision.
    """
    if not repository.run("rev-parse", "--verify", "--quiet", revision).stdout:
        return {}
    words = ("-z", "--name-only", "--relative", "-c")
    told = repository.ask("log", *words, f"--format={_COMMIT}", revision, "--", *folders)
    found: dict[str, list[Touch]] = {}
    for record in os.fsdecode(told).split("\x1e")[1:]:
        id_, author, email, seconds, names = record.split("\x1f", 4)
        when = datetime.fromtimestamp(int(seconds), UTC)
        touch = Touch(commit=id_, author=author, email=email, when=when)
        for name in names.strip("\0\n").split("\0"):
            found.setdefault(name.strip("\n"), []).append(touch)
    return found


def commits_before(
    repository: Repository, moments: Iterable[datetime]
) -> dict[datetime, Touch | None]:
    """Returns the last commit of this branch before each moment; None where there was none."""
    wanted = sorted(set(moments))
    if not wanted:
        return {}
    oldest = int(wanted[0].timestamp())
    since = ("log", f"--since={oldest}", f"--format={_COMMIT}", "HEAD")
    first = ("log", "-1", f"--before={oldest}", f"--format={_COMMIT}", "HEAD")
    told = repository.run(*since).stdout + repository.run(*first).stdout
    known = sorted(_touches(told), key=lambda one: one.when, reverse=True)
    return {moment: next((one for one in known if one.when <= moment), None) for moment in wanted}


def _touches(told: bytes) -> Iterable[Touch]:
    for record in os.fsdecode(told).split("\x1e")[1:]:
        id_, author, email, seconds, _ = record.split("\x1f", 4)
        when = datetime.fromtimestamp(int(seconds), UTC)
        yield Touch(commit=id_, author=author, email=email, when=when)


def texts(
    repository: Repository, wanted: Iterable[tuple[str, str]]
) -> Mapping[tuple[str, str], str]:
    """Returns the text of files at commits, by (commit, path); what isn't there is left out."""
    found = contents(repository, wanted)
    return {pair: data.decode("utf-8", "replace") for pair, data in found.items()}


def contents(
    repository: Repository, wanted: Iterable[tuple[str, str]]
) -> Mapping[tuple[str, str], bytes]:
    """Returns the bytes of files at commits, by (commit, path); none of more than a megabyte."""
    # git reads one name a line: a path with a line break in it would ask for another file.
    pairs = [pair for pair in dict.fromkeys(wanted) if "\n" not in pair[1]]
    if not pairs:
        return {}
    names = "".join(f"{commit}:./{path}\n" for commit, path in pairs)
    told = repository.ask("cat-file", "--batch-check", given=names.encode())
    named = {}
    for pair, line in zip(pairs, told.decode("utf-8", "replace").splitlines(), strict=False):
        words = line.rsplit(" ", 2)
        if len(words) == 3 and words[1] == "blob" and int(words[2]) <= _LARGEST:
            named[pair] = words[0]
    content = blobs(repository, named.values())
    return {pair: content[blob] for pair, blob in named.items()}


# What git remembers of the memory: revisions, the files they hold, and who wrote what.


_FORMAT = f"%x1e%H%x1f%an%x1f%at%x1f%s%x1f%(trailers:key={AGENT},valueonly,separator=%x2C)%x1f"
_CHANGES = {"A": "added", "D": "removed"}
_APART = (f"{STORE}/values/", f"{STORE}/procedures/")


@frozen
class Commit:
    """A commit, as far as people need it to know what it was."""

    id: str
    author: str
    when: datetime
    subject: str
    agents: str = ""
    """The agents that are named in its message, by commas."""

    @property
    def short(self) -> str:
        """Returns the start of its id."""
        return self.id[:10]


@frozen
class Touched:
    """A file that a commit changed."""

    path: str
    change: str
    """`added`, `changed` or `removed`."""


@frozen
class Step:
    """A commit, and what it did to the memory."""

    commit: Commit
    files: tuple[Touched, ...]


@frozen
class Difference:
    """A file that differs between two revisions; an empty blob stands for none."""

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
    """Returns the commit that a revision names, or the last one of this branch before a date.

    Raises `NotFound` where it is neither.
    """
    found = _commit_id(repository, revision) or _before(repository, revision, now)
    if found is None:
        raise NotFound(
            f"`{revision}` is no commit, branch, tag or date of this repository",
            hint="such as HEAD~3, v1.2, 2026-11-01 or `last week`; `mind log` lists the commits",
        )
    told = repository.ask("log", "-1", f"--format={_FORMAT}", found)
    return next(_steps(told)).commit


def common(repository: Repository, first: str, second: str) -> str:
    """Returns the commit at which two branches parted."""
    return repository.ask("merge-base", first, second).decode().strip()


def main_branch(repository: Repository) -> str:
    """Returns the branch that others are merged into: the remote's own, `main` or `master`."""
    for name in ("origin/HEAD", "main", "master", "origin/main", "origin/master"):
        if _commit_id(repository, name):
            return name
    raise NotFound("there is no main branch here", hint="name one: `mind diff main...HEAD`")


def state(repository: Repository, commit: str) -> str:
    """Returns the name of all that the memory was at a commit; empty where there was none."""
    told = repository.run("rev-parse", "--verify", "--quiet", f"{commit}:./{STORE}")
    return told.stdout.decode().strip()


def files(repository: Repository, commit: str) -> dict[str, str]:
    """Returns the blob of each file of memories at a commit, by path relative to the project."""
    told = repository.ask("ls-tree", "-r", "-z", commit, "--", f"{STORE}/")
    found = {}
    for entry in told.split(b"\0"):
        about, _, name = entry.partition(b"\t")
        path = os.fsdecode(name)
        if about.startswith(b"100") and is_memory(path):
            found[path] = about.split()[2].decode()
    return found


def is_memory(path: str) -> bool:
    """Returns whether a file under `.mind/` is one of memories, by its name."""
    folders = path.split("/")
    hidden = any(part.startswith(".") for part in folders[1:])
    apart = hidden or path == f"{STORE}/MEMORY.md" or path.startswith(_APART)
    return folders[0] == STORE and is_markdown(path) and is_shared(path) and not apart


def blobs(repository: Repository, names: Iterable[str]) -> dict[str, bytes]:
    """Returns the content of blobs by their names."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    told = repository.ask("cat-file", "--batch", given="\n".join([*wanted, ""]).encode())
    found, place = {}, 0
    for name in wanted:
        end = told.index(b"\n", place)
        size = told[place:end].rsplit(b" ", 1)[-1]
        place = end + 1
        if size.isdigit():
            found[name] = told[place : place + int(size)]
            place += int(size) + 1
    return found


def differences(repository: Repository, before: str, after: str) -> tuple[Difference, ...]:
    """Returns the files of memories that differ between two commits."""
    words = (
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--relative",
        before,
        after,
        "--",
        f"{STORE}/",
    )
    parts = repository.ask(*words).split(b"\0")
    found = []
    for about, name in zip(parts[::2], parts[1::2], strict=False):
        _, _, old, new, _ = about.decode().split()
        if is_memory(path := os.fsdecode(name)):
            found.append(Difference(path=path, before=_some(old), after=_some(new)))
    return tuple(found)


def _some(blob: str) -> str:
    """Returns the name of a blob; empty for the zeros that stand for none."""
    return blob if blob.strip("0") else ""


def steps(repository: Repository, path: str | None, limit: int) -> Iterator[Step]:
    """Yields the commits that changed the memory, or one file of it under whatever name."""
    what = ["--follow", "--", path] if path else ["--", f"{STORE}/"]
    words = ("log", "-z", f"--max-count={limit}", "--name-status", "--relative")
    if _commit_id(repository, "HEAD"):
        told = repository.ask(*words, f"--format={_FORMAT}", *what)
        yield from _steps(told)


def blame(repository: Repository, path: str) -> tuple[Line, ...]:
    """Returns the lines of a file at the last commit, each with the commit that it comes from."""
    told = repository.ask("blame", "--porcelain", "HEAD", "--", path)
    found: list[Line] = []
    commit, number = "", 0
    for line in told.decode("utf-8", "replace").split("\n"):
        word, _, rest = line.partition(" ")
        if line.startswith("\t"):
            found.append(Line(commit=commit, number=number, text=line[1:]))
        elif len(word) >= 40 and rest[:1].isdigit():
            commit, number = word, int(rest.split()[1])
    return tuple(found)


def commits(repository: Repository, names: Iterable[str]) -> dict[str, Commit]:
    """Returns commits by their ids."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    told = repository.ask("log", "--no-walk", f"--format={_FORMAT}", *wanted)
    return {step.commit.id: step.commit for step in _steps(told)}


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
    found = repository.run(*words).stdout.decode().strip()
    if not found:
        raise NotFound(
            f"there was no commit before {until:%Y-%m-%d %H:%M} UTC", hint="`mind log` has them"
        )
    return found


def _steps(told: bytes) -> Iterator[Step]:
    for record in os.fsdecode(told).split("\x1e")[1:]:
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


_AT_ONCE = 500
"""Blobs that are asked for together: they are wanted in the order of the files."""


class PastStore(MemoryStore):
    """Reads the memories of a commit; nothing of it can be changed."""

    def __init__(self, repository: Repository, commit: Commit) -> None:
        """Take the repository and the commit; nothing is read yet."""
        super().__init__(repository.root)
        self.repository = repository
        self.commit = commit
        self._files: dict[str, str] | None = None
        self._known: dict[str, bytes] = {}

    def walk(self) -> Walk:
        """Returns a stamp for each file, made from the name of its blob."""
        self._problems = ()
        return Walk(stamps={path: _stamp(blob) for path, blob in self._blobs().items()})

    def folders(self) -> tuple[()]:
        """Returns nothing to watch: the past does not change."""
        return ()

    def read(self, path: str) -> tuple[Record, ...] | Problem:
        """Returns the memories in a file as it was, or why there are none."""
        data = self.data(path)
        if data is None:
            return Problem(path=path, line=None, reason="git has lost its content")
        return records_of(data, path, self.commit.when)

    def digest(self, path: str) -> str:
        """Returns the digest of a file's bytes; empty where there was none."""
        data = self.data(path)
        return "" if data is None else store_files.digest(data)

    def raw(self, record: Record) -> bytes:
        """Returns the bytes of a memory's file."""
        return self.data(record.place.path) or b""

    def data(self, path: str) -> bytes | None:
        """Returns the bytes of a file, and keeps those that will be asked for next."""
        blob = self._blobs().get(path)
        if blob is None:
            return None
        if blob not in self._known:
            names = list(self._blobs().values())
            place = names.index(blob)
            wanted = names[place : place + _AT_ONCE]
            self._known = blobs(self.repository, wanted)
        return self._known.get(blob)

    def _blobs(self) -> dict[str, str]:
        if self._files is None:
            self._files = files(self.repository, self.commit.id)
        return self._files


class Uncounted(Accesses):
    """Looks at the past keep nothing from fading."""

    def note(self, ids: Iterable[str], now: datetime) -> None:
        """Counts nothing."""


def _stamp(blob: str) -> Stamp:
    """Returns the name of a blob as the four numbers of a stamp."""
    parts = [int(blob[start : start + 15] or "0", 16) for start in (0, 15, 30, 45)]
    return Stamp(*parts)
