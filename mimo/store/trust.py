"""The texts that the user trusts on this machine.

Approvals are stored outside every repository, in `$MIND_HOME/trust/<hash of the project's mark>/`:
worktrees of a repository share them, and a clone can't bring any. The files are:

`approved`   SHA-256 digests of files, one on each line: mind's own writes, and approved texts
`approved-…` the earlier ones of them, sorted, if they are many (see `digests`)
`state.json` whether later changes are followed, and the path of the project
`git.json`   the last answers of git (see `vouching`)
`committed`  digests of the texts that the user committed in this repository
`signed`     digests of the texts in the user's signed commits from any repository
`followed`   digests of the texts on the default branch, if the user follows it
`made`       checkpoints that were saved on this machine, each with its branch
`reviewed`   digests of the texts in `approved` that the user approved, without mind's own writes

`approved` also has digests of claims that one memory supersedes another, see `schema.claim`.

A procedure whose text is in `approved` may run. Texts in the other lists may only be shown. If a
list can't be read, nothing is trusted.

A later version of mind that changes one of these files adds a `format` to `state.json`, such as 2.
Then nothing is trusted, and no file is changed.

A path is not enough to identify a project, since another repository may be cloned into it. So a
project has a mark, which no clone or pull brings: the file `mind-trust-…` in the git common
directory, or `.mind/.local/trust-mark-…` outside git. The rest of its name is derived from the
user's secret, so that a mark in a clone, a submodule or an archive is not read. A project keeps its
mark when it is moved or becomes a repository.
"""

from __future__ import annotations

import json
import os
import re
from _thread import allocate_lock
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain
from operator import is_
from pathlib import Path

from mimo import disk
from mimo.data.loads import loads
from mimo.errors import Conflict, Invalid, LaterFormat, MindError, StorageFailed
from mimo.frozen import NamedTuple
from mimo.store import append_log, files
from mimo.store import digests as lists
from mimo.store.digests import NAMES_LIST, Digests, damaged
from mimo.store.files import ALONE
from mimo.store.location import GitAnswers, Location, locate
from mimo.store.locks import lock
from mimo.store.projects import index_owner, known_owner, owner_file
from mimo.text.clean import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mimo.store.vouching import Vouching

_DIGEST = rf"(?!{NAMES_LIST})[0-9a-f]{{64}}"
_MARK = r"[0-9a-f]{32}\n"
_NO_ANSWERS = GitAnswers()
_FILES = ("state.json", "approved", "git.json", "committed", "signed", "followed", "reviewed")
_LISTS = {"committed": "committed", "signed": "by_key", "followed": "followed"}
"""The lists of digests in answers of git: the field of each file."""


def read_mark(location: Location, owner: str | None) -> str | None:
    """Returns the mark of a project made with the user's secret; None without one."""
    if owner is None:
        return None
    with suppress(OSError, StorageFailed, Invalid):
        data, _ = disk.look(location.mark_file(owner), limit=64)
        text = data.decode("latin-1")
        return text.strip() if compiled(_MARK).fullmatch(text) else None
    return None


def make_mark(location: Location, owner: str, mark: str | None = None) -> str:
    """Returns the project's mark; creates a missing one.

    Raises `StorageFailed` if it can't be written. Without a mark, texts can't be approved.
    """
    if existing := read_mark(location, owner):
        return existing
    mark = mark or os.urandom(16).hex()
    path = location.mark_file(owner)
    with suppress(Conflict):  # another process created it, or it is damaged
        files.write_new(path, f"{mark}\n".encode(), mode=0o600)
        return mark
    if existing := read_mark(location, owner):
        return existing
    raise StorageFailed(
        f"`{path}` is damaged, so texts can't be approved", hint="remove it and approve again"
    )


class TrustState(NamedTuple):
    """The state of the approvals of a project."""

    follow: bool = False
    """True if the user follows later changes, except those of procedures."""
    approved: int = 0
    """The number of approved texts."""
    in_git: bool = False
    """True if the project is in a git repository."""
    branch: str | None = None
    """The full name of the followed branch."""
    stopped: str | None = None
    """The reason why changes are not followed although the user chose to."""
    notice: str | None = None
    """A message about a torn line in the list, which is skipped."""
    problem: str | None = None
    """The reason why no text is trusted although some were approved."""


class Trust:
    """The approvals of one project; approvals by other processes apply at once."""

    def __init__(
        self,
        home: Path,
        root: Path,
        only: Sequence[str] = (),
        *,
        globs: Sequence[str] | None = None,
    ) -> None:
        """Takes $MIND_HOME, a project's root, and the setting `trust.only`.

        `only` may contain `signed`, for commits signed with a key that git trusts, and addresses of
        authors. `globs` name memory outside of `.mind/`. Without them, git is not asked, and its
        last answers are used.
        """
        self._home, self._root = home, root
        self._only = tuple(only)
        self._globs = globs
        self._approved = Digests()
        self._follow = False
        self._git: GitAnswers | None = None
        self._problem: StorageFailed | None = None
        self._notice: str | None = None
        self._checker: tuple[tuple[object, ...], Callable[[str], bool]] | None = None
        self._turn = allocate_lock()
        """Held while the lists are exchanged: an older reading must not replace a newer one."""
        self._identify()

    def _identify(self) -> None:
        """Finds the project and its mark."""
        self.location = locate(self._root)
        self._owner = known_owner(self._home)
        with suppress(StorageFailed, OSError):
            self._take_along()
        self._made_vouching: Vouching | None = None
        self._git_folder = f"{self._root}/.git"
        is_known = os.path.isdir(self._git_folder)  # noqa: PTH112 - asked each time
        self._may_join_git = self.location.common is None and not is_known
        self._asked: str | None = None
        """The state of the repository when git was last asked."""
        self._use_mark(read_mark(self.location, self._owner))

    def _use_mark(self, mark: str | None) -> None:
        folder = _folder(self._home, mark, self.location.inside) if mark else None
        # As strings: these files are checked for every shown text, and joining paths is slow.
        paths: list[str] = []
        with suppress(StorageFailed):
            owner = self._owner
            paths = [str(self.location.mark_file(owner) if owner else owner_file(self._home))]
            paths += [f"{folder}/{name}" for name in _FILES[:3]] if folder else []
        self._files = paths
        self.folder = folder
        """The folder of the approvals; None if there never were any."""
        self._seen: tuple[object, ...] | None = None
        self._mark = mark  # Last: another thread that finds a mark needs the folder.

    @property
    def _vouching(self) -> Vouching | None:
        """Returns the object that asks git, which is loaded only if git must be asked."""
        if self._made_vouching is None and self._globs is not None:
            from mimo.store.vouching import Vouching

            self._made_vouching = Vouching(self.location, self._only, self._globs)
        return self._made_vouching

    @property
    def state(self) -> TrustState:
        """Returns the current state."""
        self._refresh()
        self._ask_git()
        followed = (self._follow and self._git) or GitAnswers()
        return TrustState(
            follow=self._follow,
            approved=len(self._approved),
            in_git=self.location.common is not None,
            branch=followed.ref,
            stopped=followed.stopped,
            notice=self._notice,
            problem=self._problem.message if self._problem else None,
        )

    @property
    def has_earlier(self) -> bool:
        """Returns whether an earlier version of mind left approvals, by the path of the project."""
        return (self._earlier_folder() / "state.json").exists()

    def _earlier_folder(self) -> Path:
        here = self.location
        key = here.root if here.common is None else here.common / here.inside
        return self._home / "trust" / files.digest(os.fsencode(key))

    def trusted(self, digest: str) -> bool:
        """Returns whether the text with this digest may be shown to an agent."""
        return self.approved(digest) or self.checker()(digest)

    def checker(self) -> Callable[[str], bool]:
        """Returns a function that checks many digests against the current lists.

        It is the same one until the lists change.
        """
        self._refresh()
        self._ask_git()
        return self._trusted_by(self._git or _NO_ANSWERS)

    def _trusted_by(self, seen: GitAnswers) -> Callable[[str], bool]:
        """Returns the check of digests against the lists and answers of git."""
        approved = self._approved
        in_git = self.location.common is not None
        every = self._follow and not in_git and not self._only
        # Texts that were followed under another `trust.only` do not count.
        is_followed = self._follow and seen.only == self._only
        followed = (seen if is_followed else _NO_ANSWERS).followed
        parts = approved, seen, every, followed
        if (made := self._checker) and all(map(is_, parts, made[0])):
            return made[1]

        def trusted(digest: str) -> bool:
            try:
                if digest.startswith(ALONE):
                    return digest.removeprefix(ALONE) in approved
                own = digest in seen.committed or digest in seen.by_key
                return digest in approved or own or digest in followed or every
            except StorageFailed:  # `_refresh` reports it and empties the lists.
                return False

        self._checker = parts, trusted
        return trusted

    def few(self, most: int) -> frozenset[str] | None:
        """Returns the digests of all trusted texts if there are at most `most`, else None."""
        self._refresh()
        seen = self._git or _NO_ANSWERS
        texts = self._approved, seen.committed, seen.by_key
        if self._follow or sum(map(len, texts)) > most:
            return None
        try:
            alone = [f"{ALONE}{digest}" for digest in texts[0]]
            return frozenset([*chain.from_iterable(texts), *alone])
        except StorageFailed:
            return frozenset()

    def approved(self, digest: str) -> bool:
        """Returns whether exactly this text was approved; committed and followed texts are not."""
        self._refresh()
        with suppress(StorageFailed):
            return digest.removeprefix(ALONE) in self._approved
        return False

    def follows(self, digest: str) -> bool:
        """Returns whether a text is trusted even if its approval ends. Raises `StorageFailed`."""
        self._refresh()
        self._ask_git()
        if not self._follow or digest.startswith(ALONE):
            return False
        if self.location.common is None:
            return not self._only
        seen = self._git or _NO_ANSWERS
        return seen.only == self._only and digest in seen.followed

    @property
    def own_address(self) -> str:
        """Returns the e-mail address whose commits here are trusted, or an empty text."""
        with suppress(MindError):
            return self._vouching.email() if self._vouching and self._git else ""
        return ""

    def by_own_address(self) -> frozenset[str]:
        """Returns the texts whose last commits name the user's address, on any machine.

        Anyone can write that address into a commit. Raises `Invalid` if git can't be asked or
        has no address, and for an address that the repository sets.
        """
        return self._vouching.by_own_address() if self._vouching else frozenset()

    def admitted(self) -> Callable[[str], bool]:
        """Returns a function that checks whether `trust.only` permits to approve a text unseen."""
        texts = self._vouching.admitted() if self._vouching else None
        return lambda digest: texts is None or digest.removeprefix(ALONE) in texts

    def approve(self, digests: Iterable[str], *, reviewed: Iterable[str] = ()) -> int:
        """Approves texts by their digests and returns how many were new. Raises `StorageFailed`.

        `reviewed` has those of them that the user approved, which mind did not just write.
        """
        wanted = dict.fromkeys(digest.removeprefix(ALONE) for digest in digests)
        if wrong := [digest for digest in wanted if not compiled(_DIGEST).fullmatch(digest)]:
            raise ValueError(wrong[0])
        with self._changing() as folder:
            new = [digest for digest in wanted if digest not in self._approved]
            if new:
                lists.append(folder / "approved", new)
                with self._turn:
                    # Reading the list again after each of many approvals would be quadratic.
                    self._approved = self._approved.with_more(new)
                    self._notice = None
                    self._seen = tuple(map(disk.stamp, self._files))
            if more := {digest.removeprefix(ALONE) for digest in reviewed} - self.reviewed():
                lists.write_sorted(folder / "reviewed", more | self.reviewed())
        return len(new)

    def reviewed(self) -> frozenset[str]:
        """Returns the digests of the texts that the user approved; none if they can't be read."""
        self._refresh()
        with suppress(StorageFailed):
            if self.folder is not None:
                texts = lists.read_sorted(self.folder / "reviewed")
                return frozenset(digest for digest in texts if digest in self._approved)
        return frozenset()

    def follow(self, follow: bool) -> None:
        """Sets whether later changes are followed. Raises `StorageFailed`.

        In git, they are changes that reach the default branch with its current history.
        """
        with self._changing() as folder:
            self._write_state(folder, follow=follow)
            if (seen := self._git) is not None:
                base = None
                with suppress(MindError):
                    base = self._vouching.base() if self._vouching and follow else None
                chosen = seen._replace(base=base, ref=None, tip=None, stamps={})
                self._write_git(folder, chosen)
        self._asked = None

    def begin(self) -> Path:
        """Returns the folder of the approvals; creates a missing one.

        From then on, the user's commits are trusted. Raises `StorageFailed`.
        """
        with self._changing() as folder:
            return folder

    def revoke(self, digests: Iterable[str]) -> int:
        """Ends the approval of texts and returns their number. Raises `StorageFailed`."""
        revoked = frozenset(digest.removeprefix(ALONE) for digest in digests)
        with self._changing() as folder:
            seen = self._git or _NO_ANSWERS
            approved = {digest for digest in revoked if digest in self._approved}
            own = {digest for digest in revoked if digest in seen.committed}
            own |= {digest for digest in revoked if digest in seen.by_key}
            if approved:
                if approved & (reviewed := self.reviewed()):
                    lists.write_sorted(folder / "reviewed", reviewed - approved)
                lists.remove(folder / "approved", approved)
            if own:
                kept = (Digests(frozenset(texts) - own) for texts in (seen.committed, seen.by_key))
                self._write_git(folder, seen._replace(committed=next(kept), by_key=next(kept)))
        return len(approved | own)

    def forget(self) -> None:
        """Ends every approval. Raises `StorageFailed`."""
        self.check_format()
        self.forget_earlier()
        if self.folder is None or not self.folder.exists():
            return
        with self._locked():
            _remove(self.folder, _FILES)
            for path in lists.parts(self.folder / "approved"):
                files.remove(path)

    def forget_earlier(self) -> None:
        """Removes the approvals of an earlier version of mind. Raises `StorageFailed`."""
        _remove(self._earlier_folder(), _FILES[:2])

    def repair(self) -> str | None:
        """Renames damaged lists, so that the next approval creates new ones.

        Returns a message for the user; None if no list was damaged. Raises `StorageFailed`.
        """
        self.check()
        self.check_format()
        problem, folder = self._problem, self.folder
        if problem is None or folder is None:
            return None
        with self._locked():
            for path in (*(folder / name for name in _FILES), *lists.parts(folder / "approved")):
                if os.path.lexists(path):
                    files.rename(path, path.with_name(f"{path.name}.damaged"))
        self._refresh()
        aside = f"it was renamed to `{folder}/*.damaged`, and earlier approvals ended"
        return f"{problem.message}; {aside}"

    # Changing the lists.

    def _locked(self) -> AbstractContextManager[None]:
        if self.folder is None:
            raise StorageFailed("there are no approvals here yet", hint="run `mind trust`")
        return lock(self.folder / "lock")

    @contextmanager
    def _changing(self) -> Iterator[Path]:
        self.check_format()
        if self._mark is None:
            self._owner = index_owner(self._home, os.urandom)
            self._use_mark(make_mark(self.location, self._owner))
        folder = self.folder
        with self._locked():
            self.check_format()
            if self._problem is not None or folder is None:
                # Otherwise a new approval would silently end all earlier ones.
                reason = self._problem.message if self._problem else "the project has no mark"
                raise StorageFailed(reason, hint="run `mind trust` to approve again")
            if not (folder / "state.json").exists():
                if self.location.common is not None:
                    from mimo.store import git

                    # Earlier commits may be those of another user who packed the repository.
                    reflogs = git.reflog_entries(self.location.common, {})
                    answers = GitAnswers(positions=reflogs.positions, rebasing=reflogs.rebasing)
                    self._write_git(folder, answers)
                self._write_state(folder, follow=False)
                self._refresh()
            yield folder

    def _write_state(self, folder: Path, *, follow: bool) -> None:
        shown = str(self.location.root).encode("utf-8", "replace").decode()
        in_git = self.location.common is not None
        text = json.dumps({"path": shown, "git": in_git, "follow": follow})
        files.replace(folder / "state.json", f"{text}\n".encode(), mode=0o600)

    def _write_git(self, folder: Path, seen: GitAnswers) -> None:
        now = self._git or _NO_ANSWERS
        plain = seen._asdict()
        for name, field in _LISTS.items():
            texts = plain.pop(field)
            if texts and texts is not getattr(now, field):
                lists.write_sorted(folder / name, texts)
            elif not texts and (folder / name).exists():
                files.remove(folder / name)
        # Written last: a reader of the new file must get the new lists.
        files.replace(folder / "git.json", f"{json.dumps(plain)}\n".encode(), mode=0o600)

    def _take_along(self) -> None:
        """Moves the mark of a project that has become a repository."""
        here, owner = self.location, self._owner
        outside = Location(here.root)
        mark = read_mark(outside, owner) if here.common else None
        if mark is None or owner is None:
            return
        before = _folder(self._home, mark, outside.inside)
        try:
            state = _state(before)
        except LaterFormat:
            self.location = outside  # Only the later version can move them.
            return
        if state is None or state.get("git") is not False:
            return
        after = _folder(self._home, make_mark(here, owner, mark), here.inside)
        if before != after and not after.exists():
            files.rename(before, after)
        if after.exists():
            with lock(after / "lock"):
                if (state := _state(after)) is None:
                    return
                self._write_state(after, follow=state["follow"])
                self._write_git(after, GitAnswers())
        files.remove(outside.mark_file(owner))

    # Reading the lists, and asking git.

    def _refresh(self) -> None:
        """Reads the lists again if they have changed."""
        if self._may_join_git and os.path.isdir(self._git_folder):  # noqa: PTH112 - asked each time
            self._identify()
        seen = tuple(map(disk.stamp, self._files))
        if seen == self._seen:
            if damage := self._damage():
                self._use_nothing(damage)
            return
        if self._seen is None or seen[:1] != self._seen[:1]:
            mark = read_mark(self.location, known_owner(self._home))
            if mark != self._mark or self._owner is None:
                self._identify()
                seen = tuple(map(disk.stamp, self._files))
        with self._turn:
            try:
                folder = self.folder
                read = self._read_lists(folder) if folder else (Digests(), False, None, None)
            except StorageFailed as error:
                self._use_nothing(error)
            else:  # Not before all is read: other threads ask meanwhile.
                self._approved, self._follow, self._git, self._notice = read
                self._problem = None
            self._seen = seen

    def check(self) -> None:
        """Reads all lines of the lists, so that a damaged one is noticed in any place."""
        self._refresh()
        for digests in self._lists():
            with suppress(StorageFailed):
                digests.check()
        self._refresh()

    def check_format(self) -> None:
        """Raises `LaterFormat` if a later version of mind wrote the lists."""
        self._refresh()
        if isinstance(self._problem, LaterFormat):
            raise self._problem

    def _lists(self) -> tuple[Digests, ...]:
        seen = self._git or _NO_ANSWERS
        return self._approved, seen.committed, seen.by_key, seen.followed

    def _damage(self) -> StorageFailed | None:
        """Returns the error of an earlier lookup."""
        return next(filter(None, (digests.damage for digests in self._lists())), None)

    def _use_nothing(self, error: StorageFailed) -> None:
        """Trusts no text, since a list can't be read."""
        self._approved, self._follow, self._git = Digests(), False, None
        self._notice, self._problem = None, error

    def _read_lists(self, folder: Path) -> tuple[Digests, bool, GitAnswers | None, str | None]:
        """Returns approvals, whether to follow, git's answers, a notice. Raises `StorageFailed`."""
        state, seen = _state(folder), None
        approved, torn = lists.read_log(folder / "approved")
        skipped = "ends in the torn line of an interrupted write; it is skipped"
        notice = f"`{folder}/approved` {skipped}" if torn else None
        if state is None:
            return approved, False, None, notice
        with _checked(folder / "state.json"):
            follow = state["follow"]
            if not isinstance(follow, bool):
                raise TypeError(follow)
        data = files.content(folder / "git.json") if self.location.common else None
        if data is not None:
            with _checked(folder / "git.json"):
                plain = loads(data)
                seen = GitAnswers(**{**plain, "only": tuple(plain["only"])})
            seen = seen._replace(
                committed=lists.read_sorted(folder / "committed"),
                by_key=lists.read_sorted(folder / "signed"),
                followed=lists.read_sorted(folder / "followed"),
            )
        return approved, follow, seen, notice

    def _ask_git(self) -> None:
        """Asks git for new texts if the repository has changed since the last time."""
        seen = self._git
        if self._globs is None or seen is None:
            return
        stamp = self._git_stamp(seen)
        if stamp in (seen.stamps.get(str(self.location.git_dir)), self._asked):
            return
        try:
            with self._locked():
                self._refresh()
                here, last = str(self.location.git_dir), self._git
                # Others may have asked meanwhile.
                if last and stamp != self._asked and self._git_stamp(last) != last.stamps.get(here):
                    try:
                        self._store_answers()
                    finally:
                        self._asked = stamp  # Those that wait do not repeat a failure.
        except MindError:
            self._asked = stamp

    def _git_stamp(self, seen: GitAnswers) -> str:
        return repr((self._only, self.location.git_stamp(seen.ref, seen.watched)))

    def _store_answers(self) -> None:
        """Stores git's current answers. Hold the lock. Raises `Invalid` if git can't be asked."""
        folder, last, vouching = self.folder, self._git, self._vouching
        if last is None or folder is None or vouching is None:
            return
        stamp = self._git_stamp(last)
        fresh = vouching.look(last, follow=self._follow, trusted=self._trusted_by(last))
        if (fresh.ref, [*fresh.watched]) != (last.ref, [*last.watched]):
            stamp = self._git_stamp(fresh)  # The stamp depends on them.
        fresh = fresh._replace(stamps={**fresh.stamps, str(self.location.git_dir): stamp})
        try:
            self._write_git(folder, fresh)
            self._refresh()
        except StorageFailed:  # Use the answers in this process only.
            self._git = fresh


def _folder(home: Path, mark: str, inside: str) -> Path:
    """Returns the folder of the approvals for a project."""
    return home / "trust" / files.digest(os.fsencode(f"{mark}\0{inside}"))


def _state(folder: Path) -> dict[str, Any] | None:
    """Returns the content of `state.json`; None if it is missing.

    Raises `StorageFailed` if it is damaged or of a later version.
    """
    path = folder / "state.json"
    if (data := files.content(path)) is None:
        return None
    with _checked(path):
        state: dict[str, Any] = loads(data)
        number = state.get("format", 1)
        if type(number) is not int or number < 1:
            raise TypeError(number)
    LaterFormat.check(f"the trust store `{folder}`", number)
    return state


@contextmanager
def _checked(path: Path) -> Iterator[None]:
    """Raises `StorageFailed` if the block can't use the content of a file."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError):
        raise damaged(path) from None


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if (folder / name).exists():
            files.remove(folder / name)


class Made:
    """The checkpoints that were saved on this machine, each with the branch of that time.

    They are listed with the approvals and not in the project: tracked files should not name
    machines, worktrees share the list, and another repository at the same path does not get it.
    """

    def __init__(self, trust: Trust) -> None:
        """Takes the approvals of the project; nothing is read yet."""
        self._trust = trust

    def add(self, ids: Iterable[str], branch: str | None) -> None:
        """Adds checkpoints with their branch, if it is known. Raises `StorageFailed`."""
        lines = "".join(f"{id_}\t{branch or ''}\n" for id_ in ids)
        append_log.append(self._trust.begin() / "made", lines.encode())

    def forget(self, id: str) -> None:
        """Removes a checkpoint, if it is listed. Raises `StorageFailed`."""
        if folder := self._trust.folder:
            line = re.compile(rf"^{re.escape(id)}\t.*\n".encode(), re.MULTILINE)
            append_log.rewrite(folder / "made", lambda data: line.sub(b"", data))

    def branches(self) -> dict[str, str | None]:
        """Returns the branch of each checkpoint; None if it was saved without one."""
        folder = self._trust.folder
        try:
            lines = append_log.split(disk.read(folder / "made")).lines if folder else []
        except OSError:
            return {}
        pairs = (line.decode("utf-8", "replace").split("\t", 1) for line in lines)
        return {pair[0]: pair[1] or None for pair in pairs if len(pair) == 2}
