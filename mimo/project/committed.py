"""The texts of commits: what they bring to the approvals, and which retired ones count where.

What a parent of a commit has, in any file, was not written by the commit's author: moving or
copying another author's file approves nothing.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache

from mimo.data.disk import STORE
from mimo.data.files import DECISIVE, is_shared
from mimo.frozen import NamedTuple
from mimo.project import git, reflogs, revisions
from mimo.project.approvals import Retired
from mimo.project.location import Location
from mimo.project.memories import approvals_of
from mimo.project.reflogs import Reflogs
from mimo.project.walk import fault_of, segments_of
from mimo.text.clean import compiled

DROPPED = 5_000
"""The number of blobs that are remembered because the user's commits removed them."""
_COMPARED = 50
"""The most commits at which texts were retired whose later history is read."""


class _Brought(NamedTuple):
    """The version of a file in a commit that differs from each parent's."""

    blob: str
    """All zeros if the file was removed, as is that of a parent without the file."""
    before: tuple[str, ...]
    """The blobs of the parents, in their order."""


class History:
    """The approvals while the commits of the user are read one after the other."""

    def __init__(
        self, trusted: Callable[[str], bool], ended: set[str], dropped: dict[str, None]
    ) -> None:
        """Takes the check of names before, the retired names, and the dropped blobs."""
        self._trusted, self._retired, self.dropped = trusted, ended, dropped
        self._approved, self._ended = set[str](), set[str]()
        self._moving: tuple[str, frozenset[str]] = "", frozenset()

    def counts(self, name: str, commit: str = "") -> bool:
        """Returns whether a text is approved now, or was when a commit began."""
        if commit and commit == self._moving[0] and name in self._moving[1]:
            return True
        return name in self._approved or (name not in self._ended and self._trusted(name))

    def was_approved(self, name: str) -> bool:
        """Returns whether a text is approved, or was before it was replaced or removed."""
        return name in self._ended or name in self._retired or self.counts(name)

    def add(self, effect: Effect) -> None:
        """Adds what a commit does."""
        earlier = self._moving[1] if self._moving[0] == effect.commit else frozenset()
        self._moving = effect.commit, earlier.union(filter(self.counts, effect.ended))
        self._approved -= effect.ended
        self._approved |= effect.names
        self._ended -= effect.names
        self._ended |= effect.ended


class Effect(NamedTuple):
    """The effect of a commit of the user on the approvals of a file."""

    state: str
    path: str
    commit: str
    names: frozenset[str]
    """The names of the texts that it approves."""
    ended: frozenset[str]
    """The names of the texts that it replaced or removed."""
    text: bytes | None = None
    """The approved bytes of one of `files.DECISIVE`."""


class _Read(NamedTuple):
    """Facts of commits whose effects are wanted."""

    names_of: Callable[[str, str], frozenset[str]]
    """Returns the names of the texts in a blob, by its path."""
    sources: Mapping[tuple[str, str], str]
    """The file of a parent that a commit moved or copied, by commit and new path."""
    replaced: Mapping[str, Mapping[str, str] | None]
    """For an amended commit, the tree of the one before; None if that is missing."""


def _brings_own_text(history: History, read: _Read, place: tuple[str, str], text: _Brought) -> bool:
    """Returns whether the user wrote a file's version in a commit, or has approved its source."""
    commit, path = place
    if len(text.before) > 1:
        sides = [read.names_of(path, blob) for blob in text.before]
        return all(sides) and all(map(history.counts, frozenset().union(*sides)))
    source = read.sources.get(place)
    if source is None and (text.blob in text.before or text.blob in history.dropped):
        return False
    if source is None and commit in read.replaced:
        if (tree := read.replaced[commit]) is None:
            return False
        source = next((old for old, blob in tree.items() if blob == text.blob), None)
    origin = () if source is None else read.names_of(source, text.blob)
    return source is None or (bool(origin) and all(history.counts(name, commit) for name in origin))


class CommittedTexts:
    """The texts of one project in the commits of its repository."""

    def __init__(self, location: Location, globs: Sequence[str]) -> None:
        """Takes the place of the project and its globs."""
        self._location, self._root = location, location.root
        parsed = ((glob, segments_of(glob)) for glob in globs)
        self.globs = [parts for glob, parts in parsed if fault_of(glob, parts) is None]
        inside = location.inside
        self._prefix = "" if inside == "." else f"{inside}/"

    def head(self) -> str | None:
        """Returns the id of the current commit; None without one."""
        return revisions.commit_id(self._root, "HEAD")

    def standing(self, retired: Sequence[Retired]) -> tuple[str, ...]:
        """Returns the names of the retired texts that count at the current commit.

        They are in its tree, and no other author changed their files since they were approved: the
        user is back at a commit before they were retired, or on a branch without that.
        """
        head = self.head() if retired else None
        if head is None:
            return ()
        contents = revisions.contents(self._root, [(head, text.path) for text in retired])
        names = {path: approvals_of(path, data) for (_, path), data in contents.items()}
        here = [text for text in retired if text.digest in names.get(text.path, ())]
        if not here:
            return ()
        lines = "".join(f"{text.at}\n" for text in here)
        words = ("rev-list", "--ignore-missing", "--ancestry-path", "--stdin")
        listed = git.ask(self._root, *words, data=f"^{head}\n{lines}".encode())
        later = {head, *listed.decode("ascii", "replace").split()}
        standing = [text.digest for text in here if text.at in later]
        by_commit: dict[str, list[Retired]] = {}
        for text in here:
            if text.at not in later:
                by_commit.setdefault(text.at, []).append(text)
        common = self._location.common
        if by_commit and common is not None:
            made, visits = reflogs.read(common, {}).commits, reflogs.visits(common)
            here_since = -1 if head in made else visits.get(head)
            for at, texts in list(by_commit.items())[:_COMPARED]:
                standing += self._staying(at, texts, head, made, here_since)
        return tuple(dict.fromkeys(standing))

    def _staying(
        self,
        at: str,
        texts: Sequence[Retired],
        head: str,
        made: Collection[str],
        here_since: int | None,
    ) -> Iterator[str]:
        """Yields the texts retired at a commit that no other author brought to the current one.

        Where that does not follow the commit, the user made it, or was there before they were
        retired: another author's branch from before that has them, too. `made` has the user's
        commits, and `here_since` the time of the first visit of the current one, -1 if it is
        one of them.
        """
        exists = revisions.commit_id(self._root, at) is not None
        follows = (
            exists and not git.run(self._root, "merge-base", "--is-ancestor", at, head).returncode
        )
        changed = set[str]()
        if exists:
            words = ("log", "--full-history", "--format=%x00%H", "--name-only", "-z", "--relative")
            tops = sorted({text.path.split("/")[0] for text in texts})
            logged = git.ask(self._root, *words, head, f"^{at}", "--", *tops)
            commit = ""
            for part in os.fsdecode(logged).split("\0"):
                if compiled("[0-9a-f]{40,64}").fullmatch(part.strip("\n")):
                    commit = part.strip("\n")
                elif commit not in made:
                    changed.add(part.strip("\n"))
        paths = [text.path for text in texts]
        blobs = [
            revisions.small_blobs(self._root, [f"{id}:./{p}" for p in paths]) for id in (at, head)
        ]
        for text, *pair in zip(texts, *blobs, strict=True):
            was_here = here_since is not None and here_since < text.since
            if text.path not in changed and (pair[0] == pair[1] if follows else was_here):
                yield text.digest

    def effects(
        self, state: str, commits: Sequence[str], history: History, log: Reflogs | None = None
    ) -> list[Effect]:
        """Returns what the user's commits do, and adds it to the `history`.

        A merge brings its changes to files that are trusted on each side. An amended commit brings
        its changes to the replaced commit, which may be another author's. A revert approves only
        what was approved before.
        """
        brought = self.brought(commits)
        sources = self._sources(brought)
        amended = log.commits if log else {}
        replaced: dict[str, dict[str, str] | None] = {}
        for commit in dict.fromkeys(commit for commit, _ in brought):
            if (old := amended.get(commit)) is not None:
                exists = revisions.commit_id(self._root, old)
                replaced[commit] = self.tree(old) if exists else None
        content = self.small(b for text in brought.values() for b in (text.blob, *text.before))

        @cache
        def names_of(path: str, blob: str) -> frozenset[str]:
            return frozenset(approvals_of(path, content[blob]) if blob in content else ())

        earlier_of = defaultdict[str, set[str]](set)
        for (commit, path), text in brought.items():
            earlier_of[commit].update(*(names_of(path, blob) for blob in text.before))

        read = _Read(names_of, sources, replaced)
        effects: list[Effect] = []
        for (commit, path), text in brought.items():
            names, before = names_of(path, text.blob), [names_of(path, b) for b in text.before]
            earlier = frozenset[str]().union(*before)
            # An entry that another file had before the commit was moved with its file.
            source_names = earlier_of[commit] - earlier
            new = frozenset(
                name
                for name in (
                    names - earlier if _brings_own_text(history, read, (commit, path), text) else ()
                )
                if name not in source_names or history.counts(name, commit)
            )
            if log and commit in log.reverts:
                new = frozenset(filter(history.was_approved, new))
            for blob, theirs in zip(text.before, before, strict=True):
                if blob != text.blob and any(not history.was_approved(name) for name in theirs):
                    history.dropped[blob] = None
            decisive_text = content.get(text.blob) if new and path in DECISIVE else None
            effects.append(Effect(state, path, commit, new, earlier - names, decisive_text))
            history.add(effects[-1])
        names_by_commit = defaultdict[str, set[str]](set)
        for effect in effects:
            names_by_commit[effect.commit] |= effect.names
        return [
            effect._replace(ended=effect.ended - names_by_commit[effect.commit])
            for effect in effects
        ]

    def _sources(self, brought: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Returns the file from which each commit moved or copied a file without a change.

        By commit and path within the project; the source may be outside of it.
        """
        data = "".join(f"{commit}\n" for commit in dict.fromkeys(c for c, _ in brought)).encode()
        if not data:
            return {}
        words = ("diff-tree", "--stdin", "-r", "--raw", "-z", "-C100%", "--find-copies-harder")
        sources, commit = dict[tuple[str, str], str](), ""
        parts = iter(git.ask(self._root, *words, "-l0", data=data).split(b"\0"))
        for about in parts:
            if not about.startswith(b":"):
                commit = about.strip(b"\n").decode()
                continue
            path = os.fsdecode(next(parts))
            is_copy = about.split()[-1][:1] in (b"R", b"C")
            if is_copy and (name := self._named(os.fsdecode(next(parts)))):
                sources[commit, name] = path.removeprefix(self._prefix)
        return sources

    def brought(self, commits: Iterable[str]) -> dict[tuple[str, str], _Brought]:
        """Returns what commits brought, by commit and path within the project.

        It is in the order of the commits.
        """
        data = "".join(f"{commit}\n" for commit in commits).encode()
        if not data:
            return {}
        words = ("diff-tree", "--stdin", "-r", "-c", "--root", "--raw", "-z", "--no-renames")
        parts = git.ask(self._root, *words, data=data).split(b"\0")
        brought, commit, place = dict[tuple[str, str], _Brought](), "", 0
        while place < len(parts) - 1:
            about = parts[place].strip(b"\n")
            if not about.startswith(b":"):
                commit, place = about.decode(), place + 1
                continue
            path, place = os.fsdecode(parts[place + 1]), place + 2
            parents = len(about) - len(about.lstrip(b":"))
            fields = about.lstrip(b":").split()
            mode, *blobs = fields[parents : 2 * parents + 2]
            if mode[:3] in (b"100", b"000") and (name := self._named(path)) is not None:
                *old_blobs, blob = (blob.decode() for blob in blobs)
                brought[commit, name] = _Brought(blob, tuple(old_blobs))
        return brought

    def tree(self, commit: str) -> dict[str, str]:
        """Returns the blobs of a commit that may be memory, by path within the project."""
        blob_of = revisions.tree(self._root, "--full-tree", commit)
        return {name: blob for path, blob in blob_of.items() if (name := self._named(path))}

    def _named(self, path: str) -> str | None:
        """Returns a path of the repository relative to the project; None if it can't be memory."""
        if not path.startswith(self._prefix):
            return None
        name = path.removeprefix(self._prefix)
        parts = name.split("/")
        if parts[0] == STORE:
            hidden = any(part.startswith(".") for part in parts[1:])
            return None if hidden or not is_shared(name) else name
        from mimo.project.sandbox import fits

        return name if any(fits(parts, glob) for glob in self.globs) else None

    def small(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Returns the content of blobs of up to a megabyte."""
        present = [blob for blob in dict.fromkeys(blobs) if blob.strip("0")]
        small = revisions.small_blobs(self._root, present)
        return revisions.blobs(self._root, [blob for blob in small if blob])
