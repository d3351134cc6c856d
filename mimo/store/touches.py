"""Which commit last changed a file, and what files held at a commit."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from mimo.frozen import frozen
from mimo.store import revisions
from mimo.store.repository import Repository
from mimo.store.walk import STORE

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
    content = revisions.blobs(repository, named.values())
    return {pair: content[blob] for pair, blob in named.items()}
