"""What git says of texts: which of them the user committed, and which reached the default branch.

The answers are digests of contents, so that a file counts only with exactly the bytes that a
commit has. Git itself checks signatures, with programs and lists of signers that the user's own
settings name; what a repository sets is passed over. An author's e-mail address is whatever the
commit says, so that by itself it proves nothing.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mimo import disk
from mimo.disk import STORE
from mimo.errors import MindError
from mimo.store import revisions
from mimo.store.files import is_shared
from mimo.store.git import Repository
from mimo.store.identity import Location, Seen
from mimo.store.revisions import Touch

# What was committed in this clone, as git's own log of HEAD has it.


_MADE = re.compile(
    rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*\tcommit(?: \((initial|amend|merge)\))?: "
)


class Entry(NamedTuple):
    """A commit that was made here."""

    commit: str
    amended: str | None
    """The commit that it replaced by `git commit --amend`."""


class Entries(NamedTuple):
    """What the reflogs hold after a position."""

    made: tuple[Entry, ...]
    positions: Mapping[str, str]
    """By the name of a reflog, the digest of its last line."""


def read(common: Path, positions: Mapping[str, str]) -> Entries:
    """Returns the commits that were made here since `positions`, in every worktree.

    A reflog that is not in `positions` is read from its beginning.
    """
    made, ends = list[Entry](), dict(positions)
    for name, path in _logs(common):
        lines = _lines(path)
        if lines:
            made += _made(_after(lines, positions.get(name)))
            ends[name] = _mark(lines[-1])
    return Entries(tuple(dict.fromkeys(made)), ends)


def ends(common: Path) -> dict[str, str]:
    """Returns the positions after all that the reflogs hold now."""
    return {name: _mark(lines[-1]) for name, path in _logs(common) if (lines := _lines(path))}


def _logs(common: Path) -> Iterator[tuple[str, Path]]:
    yield "", common / "logs" / "HEAD"
    with suppress(OSError):
        for name in sorted(os.listdir(common / "worktrees")):  # noqa: PTH208 - names are enough
            yield name, common / "worktrees" / name / "logs" / "HEAD"


def _lines(path: Path) -> list[bytes]:
    try:
        return disk.read(path).splitlines()
    except OSError:
        return []


def _after(lines: list[bytes], position: str | None) -> list[bytes]:
    """Returns the lines after a position; where that is lost, those of a log that is new."""
    if position is None:
        return lines
    for number in range(len(lines) - 1, -1, -1):
        if _mark(lines[number]) == position:
            return lines[number + 1 :]
    is_new = not lines[0].partition(b" ")[0].strip(b"0")
    return lines if is_new else []


def _made(lines: list[bytes]) -> Iterator[Entry]:
    for line in lines:
        if match := _MADE.match(line):
            amended = match[1].decode() if match[3] == b"amend" else None
            yield Entry(match[2].decode(), amended)


def _mark(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:32]


SIGNED = "signed"
_GOOD = "G"
_OWN = ("gpg.ssh.allowedSignersFile", "gpg.ssh.revocationFile", "gpg.minTrustLevel")
"""Settings that say which signatures are good."""
_PROGRAMS = ("gpg.program=gpg", "gpg.openpgp.program=gpg", "gpg.ssh.program=ssh-keygen",
             "gpg.x509.program=gpgsm")  # fmt: skip
_FIELDS = "%x1e%H%x1f%ae%x1f%ce%x1f%at%x1f%ct%x1f%G?%x1f%GS"
_LARGEST = 1_000_000
"""Bytes of the largest file that is looked at in a commit."""


class Vouching:
    """Asks one repository."""

    def __init__(
        self,
        location: Location,
        only: Sequence[str] = (),
        *,
        include: Sequence[str] = (),
        comments: Sequence[str] = (),
    ) -> None:
        """Take where the project is, whose commits may be followed, and the project's globs."""
        self._location = location
        self._repository = Repository(location.root)
        self._only = tuple(only)
        self._globs = [glob.removeprefix("./").split("/") for glob in (*include, *comments)]
        inside = location.inside
        self._prefix = "" if inside == "." else f"{inside}/"

    def look(self, seen: Seen, *, follow: bool) -> Seen:
        """Returns what git says now. Raises `Invalid` where it can't be asked."""
        seen = self._with_own_commits(seen)
        return self._with_default_branch(seen) if follow else _without_branch(seen)

    def admitted(self) -> frozenset[str] | None:
        """Returns the digests of what the last commits of each file wrote, where `only` admits
        them; None where the user's settings admit everything. Where git can't tell, none.
        """
        if not self._only:
            return None
        try:
            return self._by(self._only, "HEAD")
        except MindError:
            return frozenset()

    def by_own_address(self) -> frozenset[str]:
        """Returns the texts at HEAD whose last commits name the user's address as their author's.

        Raises `Invalid` where git can't be asked.
        """
        email = self.email()
        return self._by((email,), "HEAD") if email else frozenset()

    def email(self) -> str:
        """Returns the user's own address, as git has it; empty where there is none."""
        return self._line("config", "--get", "user.email").casefold()

    def base(self) -> str | None:
        """Returns the commit that tells the history which the user chooses to follow."""
        ref = self._default_ref()
        return self._commit(ref or "HEAD")

    # --- what the user committed

    def _with_own_commits(self, seen: Seen) -> Seen:
        common = self._location.common
        email = self.email()
        if common is None or not email:
            return seen
        entries = read(common, seen.positions)
        digests = seen.committed | self._own(entries.made, email)
        seen = seen._replace(positions=entries.positions, committed=digests)
        if not self._line("config", "--global", "--get", "user.signingkey"):
            return seen
        signed = self._own_signed(seen.signed, email)
        return seen._replace(signed=self._commit("HEAD"), committed=digests | signed)

    def _own(self, made: Sequence[Entry], email: str) -> frozenset[str]:
        """Returns the texts that the user's commits brought, without what others had written.

        A merge brings what neither side has, and an amended commit what it changed in the one that
        it replaced, which may be another author's.
        """
        headers = revisions.blobs(self._repository, [entry.commit for entry in made])
        own = [e for e in made if _is_by(headers.get(e.commit, b""), email)]
        blobs = self._brought([entry.commit for entry in own])
        amended = {entry.commit: entry.amended for entry in own if entry.amended}
        before = self._blobs_at(
            (amended[commit], path) for commit, path in blobs if commit in amended
        )
        kept = (
            blob
            for (commit, path), blob in blobs.items()
            if commit not in amended or before[amended[commit], path] not in (None, blob)
        )
        return self._digests(kept)

    def _own_signed(self, since: str | None, email: str) -> frozenset[str]:
        """Returns the texts of commits that the user signed, wherever they were made.

        A commit whose two dates differ was rewritten: a rebase or a cherry-pick signs what another
        author, who may claim the user's address, has written.
        """
        head = self._commit("HEAD")
        if head is None or head == since:
            return frozenset()
        known = since and self._repository.run("cat-file", "-e", f"{since}^{{commit}}")
        revs = [head, f"^{since}"] if known and not known.returncode else [head]
        words = ("log", "--no-merges", "--fixed-strings", "--regexp-ignore-case")
        told = self._repository.ask(
            *self._signature_settings(),
            *words,
            f"--author={email}",
            f"--format={_FIELDS}",
            *revs,
            "--",
        )
        good = []
        for record in os.fsdecode(told).split("\x1e")[1:]:
            commit, author, committer, written, committed, verdict, signer = record.split("\x1f")
            theirs = signer.strip().rpartition("<")[2].removesuffix(">").casefold()
            mine = {author.casefold(), committer.casefold(), theirs} == {email}
            if verdict == _GOOD and mine and written == committed:
                good.append(commit)
        return self._digests(self._brought(good).values())

    def _brought(self, commits: Sequence[str]) -> dict[tuple[str, str], str]:
        """Returns the blobs that commits brought, by commit and path within the project."""
        if not commits:
            return {}
        words = ("diff-tree", "--stdin", "-r", "-c", "--root", "--raw", "-z", "--no-renames")
        given = "".join(f"{commit}\n" for commit in commits).encode()
        parts = self._repository.ask(*words, given=given).split(b"\0")
        found, commit, place = dict[tuple[str, str], str](), "", 0
        while place < len(parts) - 1:
            about = parts[place].strip(b"\n")
            if not about.startswith(b":"):
                commit, place = about.decode(), place + 1
                continue
            path, place = os.fsdecode(parts[place + 1]), place + 2
            parents = len(about) - len(about.lstrip(b":"))
            fields = about.lstrip(b":").split()
            mode, blob = fields[parents], fields[2 * parents + 1]
            if mode.startswith(b"100") and (name := self._named(path)) is not None:
                found[commit, name] = blob.decode()
        return found

    def _blobs_at(
        self, wanted: Iterable[tuple[str | None, str]]
    ) -> dict[tuple[str | None, str], str | None]:
        """Returns the blob that each path is at a commit, empty where there is no such file.

        None where the commit is not there any more.
        """
        pairs = list(dict.fromkeys(wanted))
        commits = {commit for commit, _ in pairs if commit}
        there = {commit for commit in commits if self._commit(commit)}
        found: dict[tuple[str | None, str], str | None] = {}
        for commit in commits:
            tree = self._tree(commit) if commit in there else {}
            for pair in pairs:
                if pair[0] == commit:
                    found[pair] = tree.get(pair[1], "") if commit in there else None
        return found

    # --- what reached the default branch

    def _with_default_branch(self, seen: Seen) -> Seen:
        ref = self._default_ref()
        tip = self._commit(ref) if ref else None
        if ref is None or tip is None:
            why = (
                "there is no default branch: commit to `main` or `master`, name another one with "
                "`git config init.defaultBranch NAME`, or `git remote set-head origin --auto`"
            )
            return _without_branch(seen)._replace(stopped=why)
        if seen.base is not None and not self._is_related(seen.base, tip):
            why = (
                f"`{short_name(ref)}` shares no history with what was followed; "
                "`mind trust --follow` follows it as it is now"
            )
            return _without_branch(seen)._replace(ref=ref, stopped=why)
        if (seen.tip, seen.only) != (tip, self._only):
            texts = self._by(self._only, tip) if self._only else self._whole(tip)
            seen = seen._replace(followed=texts, only=self._only)
        return seen._replace(ref=ref, tip=tip, base=tip, stopped=None)

    def _default_ref(self) -> str | None:
        """Returns the full name of the default branch: of the remote, else the local one."""
        words = ("for-each-ref", "--format=%(refname) %(symref)", "refs/remotes/*/HEAD")
        heads = dict(line.split(" ", 1) for line in self._lines(*words) if line.count(" ") == 1)
        if target := heads.get("refs/remotes/origin/HEAD"):
            return target
        if len(heads) == 1:
            return next(iter(heads.values())) or None
        named = self._line("config", "--get", "init.defaultBranch")
        for name in ("main", "master", named):
            if name and self._commit(f"refs/heads/{name}"):
                return f"refs/heads/{name}"
        return None

    def _is_related(self, base: str, tip: str) -> bool:
        """Returns whether two commits have a common root; a shallow clone can't tell.

        Both have a common ancestor exactly where they share a root, and that is found at once where
        one follows on the other.
        """
        if base == tip or self._line("rev-parse", "--is-shallow-repository") == "true":
            return True
        return self._repository.run("merge-base", base, tip).returncode == 0

    def _whole(self, commit: str) -> frozenset[str]:
        return self._digests(self._tree(commit).values())

    def _tree(self, commit: str) -> dict[str, str]:
        """Returns the blobs of a commit that may hold memory, by path within the project."""
        told = self._repository.ask("ls-tree", "-r", "-z", "--full-tree", commit)
        found = {}
        for entry in told.split(b"\0"):
            about, _, path = entry.partition(b"\t")
            name = self._named(os.fsdecode(path)) if about.startswith(b"100") else None
            if name is not None:
                found[name] = about.split()[2].decode()
        return found

    def _by(self, only: Collection[str], commit: str) -> frozenset[str]:
        """Returns the texts at a commit whose last commits are by those who are admitted."""
        authors = {word.casefold() for word in only if word != SIGNED}
        last = revisions.last_touches(self._repository, commit, self._folders())
        good = {t.commit for t in last.values() if t.email.casefold() in authors}
        if SIGNED in only:
            good |= self._with_good_signatures(last.values())
        pairs = [(touch.commit, path) for path, touch in last.items() if touch.commit in good]
        content = revisions.contents(self._repository, pairs)
        return frozenset(hashlib.sha256(data).hexdigest() for data in content.values())

    def _folders(self) -> tuple[str, ...]:
        return ("./",) if self._globs else (f"{STORE}/",)

    def _with_good_signatures(self, last: Iterable[Touch]) -> set[str]:
        commits = sorted({touch.commit for touch in last})
        words = ("log", "--no-walk=unsorted", "--format=%H %G?")
        told = self._repository.ask(*self._signature_settings(), *words, *commits)
        lines = (line.split() for line in told.decode("ascii", "replace").splitlines())
        return {words[0] for words in lines if words[1:] == [_GOOD]}

    def _signature_settings(self) -> list[str]:
        """Returns what the user's own git says of signatures, over what the repository says."""
        settings = list(_PROGRAMS)
        for key in _OWN:
            value = self._line("config", "--global", "--type=path", "--get", key)
            if value or key != "gpg.minTrustLevel":
                settings.append(f"{key}={value}")
        return [word for setting in settings for word in ("-c", setting)]

    # --- git

    def _named(self, path: str) -> str | None:
        """Returns a path of the repository as one of the project, if it may hold memory."""
        if not path.startswith(self._prefix):
            return None
        name = path.removeprefix(self._prefix)
        parts = name.split("/")
        if parts[0] == STORE:
            hidden = any(part.startswith(".") for part in parts[1:])
            return None if hidden or not is_shared(name) else name
        from mimo.store.sandbox import fits

        return name if any(fits(parts, glob) for glob in self._globs) else None

    def _digests(self, blobs: Iterable[str]) -> frozenset[str]:
        """Returns the digests of blobs, without those of more than a megabyte."""
        names = list(dict.fromkeys(blobs))
        if not names:
            return frozenset()
        given = "\n".join([*names, ""]).encode()
        told = self._repository.ask("cat-file", "--batch-check", given=given)
        sizes = (line.split() for line in told.decode("ascii", "replace").splitlines())
        small = [w[0] for w in sizes if len(w) == 3 and w[1] == "blob" and int(w[2]) <= _LARGEST]
        content = revisions.blobs(self._repository, small)
        return frozenset(hashlib.sha256(data).hexdigest() for data in content.values())

    def _commit(self, revision: str) -> str | None:
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return self._line(*words) or None

    def _line(self, *words: str) -> str:
        return next(iter(self._lines(*words)), "")

    def _lines(self, *words: str) -> list[str]:
        return os.fsdecode(self._repository.run(*words).stdout).strip().splitlines()


def _without_branch(seen: Seen) -> Seen:
    """Returns what is seen without the default branch, whose history stays the chosen one."""
    return seen._replace(ref=None, tip=None, stopped=None, followed=frozenset())


def _is_by(commit: bytes, email: str) -> bool:
    """Returns whether a commit names an address as its author's and its committer's."""
    named = [
        line.rpartition(b">")[0].rpartition(b"<")[2].decode("utf-8", "replace").casefold()
        for line in commit.partition(b"\n\n")[0].split(b"\n")
        if line.startswith((b"author ", b"committer "))
    ]
    return named == [email, email]


def short_name(ref: str) -> str:
    """Returns a branch as people name it, such as `origin/main`."""
    return ref.removeprefix("refs/").removeprefix("remotes/").removeprefix("heads/")
