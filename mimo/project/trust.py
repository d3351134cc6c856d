"""The texts that the user trusts on this machine.

Approvals are stored outside every repository, in `$MIND_HOME/trust.db` (see `approvals`), under the
key of a project: worktrees of a repository share them, and a clone can't bring any.

Each file has the approvals of its current text: what replaces or removes an approved text retires
it, and a retired text that comes back is not approved. It still is at earlier commits of the user's
own history, see `Vouched.standing`.

A procedure whose text is `approved` may run. Texts with another state may only be shown. If the
approvals can't be read, nothing is trusted. Claims that one memory supersedes another are approved
by names, too, see `approval.claim`.

A path is not enough to identify a project, since another repository may be cloned into it. So a
project has a mark, which no clone or pull brings: the file `mind-trust-…` in the git common
directory, or `.mind/.local/trust-mark-…` outside git. The rest of its name is derived from the
user's secret, so that a mark in a clone, a submodule or an archive is not read. A project keeps its
mark when it is moved or becomes a repository. The key is a digest of the mark and of the project's
place in the repository.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from operator import is_
from pathlib import Path

from mimo.data import disk, files
from mimo.errors import LaterFormat, MindError, StorageFailed
from mimo.project.approvals import (
    APPROVED,
    DISAPPROVED,
    FOLLOWED,
    NO_PATHS,
    OWN_STATES,
    RETIRED,
    REVIEWED,
    SIGNED,
    ApprovalDatabase,
    Approvals,
    Change,
    Damaged,
    TrustState,
    names_of,
)
from mimo.project.location import GitAnswers, Location, key_of, locate, make_mark, read_mark
from mimo.project.projects import index_owner, known_owner, owner_file
from mimo.text.clean import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from mimo.config import Config
    from mimo.project.vouching import Vouched, Vouching

    T = TypeVar("T")

_DIGEST = r"[0-9a-f]{64}"
_NO_ANSWERS = GitAnswers()
NO_NAMES: Mapping[str, Collection[str]] = {}
_MOST_BYTES = 20_000_000
_TRIES = 3
"""Attempts to store answers of git while other processes store theirs."""


class Trust:
    """The approvals of one project; approvals by other processes apply at once."""

    def __init__(
        self,
        home: Path,
        root: Path,
        only: Sequence[str] = (),
        *,
        globs: Sequence[str] | None = None,
        texts: Callable[[], Iterable[tuple[str, bytes]]] | None = None,
    ) -> None:
        """Takes $MIND_HOME, a project's root, and the setting `trust.only`.

        `only` may contain `signed`, for commits signed with a key that git trusts, and addresses of
        authors. `globs` name memory outside of `.mind/`. Without them, git is not asked, and its
        last answers are used. `texts` returns the paths and bytes of the files that an earlier
        version may have approved.
        """
        self._home, self._root = home, root
        self._only = tuple(only)
        self._globs, self._texts = globs, texts
        self._is_past = self._looks = False
        self._database = ApprovalDatabase(home)
        self.close = self._database.close
        """Closes the database, which the next use opens again."""
        self._approvals = Approvals("")
        self._problem: StorageFailed | None = None
        self._damage: disk.Stamp | None = None
        """The stamp of the database when it was damaged, or of a later version."""
        self._kept: dict[str, tuple[str, bytes]] = {}
        """By path, the name and the bytes of the text that was found to be kept."""
        self._checker: tuple[tuple[object, ...], Callable[[str], bool]] | None = None
        self._turn = allocate_lock()
        """Held while git is asked, so that other threads wait for its answers."""
        self._identify()

    def of_past(self) -> Trust:
        """Returns the approvals for an earlier revision, which may have been retired since."""
        past = copy(self)
        past._is_past = True  # noqa: SLF001 - of the same class
        return past

    def _identify(self) -> None:
        """Finds the project and its mark."""
        self.location = locate(self._root)
        self._worktree = str(self.location.git_dir)
        """The key of the worktree in the answers of git."""
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
        self._mark_file = owner_file(self._home)
        with suppress(StorageFailed):
            self._mark_file = (
                self.location.mark_file(self._owner) if self._owner else self._mark_file
            )
        self._mark_stamp = disk.stamp(self._mark_file)
        self._key = key_of(mark, self.location.inside) if mark else ""

    @property
    def _vouching(self) -> Vouching | None:
        """Returns the object that asks git, which is loaded only if it must be asked."""
        if self._made_vouching is None and self._globs is not None:
            from mimo.project.vouching import Vouching

            self._made_vouching = Vouching(self.location, self._only, self._globs)
        return self._made_vouching

    @property
    def state(self) -> TrustState:
        """Returns the current state."""
        self._refresh()
        self._ask_git()
        approved = self._read(lambda current: bool(current.digests((APPROVED,), 1)), default=False)
        current = self._approvals
        followed = (current.follow and current.answers) or _NO_ANSWERS
        return TrustState(
            follow=current.follow,
            approved=approved,
            in_git=self.location.common is not None,
            branch=followed.ref,
            stopped=followed.stopped,
            problem=self._problem.message if self._problem else None,
        )

    def trusted(self, *names: str) -> bool:
        """Returns whether the texts with these names may be shown to an agent; False for none."""

        def unapproved(current: Approvals) -> list[str]:
            current.look_up(names)
            return [name for name in names if not current.has(name, APPROVED)]

        rest = self._read(unapproved, default=[*names])
        return bool(names) and (not rest or all(map(self.checker(), rest)))

    def checker(self, names: Collection[str] = ()) -> Callable[[str], bool]:
        """Returns a function that checks many names against the current approvals.

        It is the same one until the approvals of this project change. `names` are looked up at
        once.
        """
        self._read(lambda current: current.look_up(names), None)
        self._ask_git()
        return self._checker_of(self._approvals)

    def _checker_of(self, current: Approvals) -> Callable[[str], bool]:
        """Returns the check of names against approvals."""
        in_git = self.location.common is not None
        follows_all = current.follow and not in_git and not self._only
        # Texts that were followed under another `trust.only` do not count.
        is_followed = current.follow and (current.answers or _NO_ANSWERS).only == self._only
        standing = self._standing(current)
        parts = current, follows_all, is_followed, self._is_past, bool(standing)
        if (checker := self._checker) and all(map(is_, parts, checker[0])):
            return checker[1]
        further = (FOLLOWED if is_followed else "", RETIRED if self._is_past else "")
        states = ",".join(filter(None, (*OWN_STATES, *further)))

        def trusted(name: str) -> bool:
            try:
                has_state = current.has(name, states)
                return has_state or name in standing or (follows_all and bool(name))
            except StorageFailed as error:
                current.failure = error  # `_refresh` reports it.
                return False

        self._checker = parts, trusted
        return trusted

    def _standing(self, current: Approvals) -> frozenset[str]:
        """Returns the retired texts that count at the current commit, if git was asked there."""
        answers = current.answers or _NO_ANSWERS
        names = answers.standing.get(self._worktree, ())
        is_current = names and self._git_stamp(answers) == answers.stamps.get(self._worktree)
        return frozenset(names if is_current or self._looks else ())

    def trusted_digests(self, limit: int) -> frozenset[str] | None:
        """Returns the names of all trusted texts if there are at most `limit`, else None."""

        def read(current: Approvals) -> frozenset[str] | None:
            texts = current.digests(OWN_STATES, limit + 1)
            is_known = not current.follow and len(texts) <= limit
            return texts | self._standing(current) if is_known else None

        none: frozenset[str] | None = frozenset()
        return self._read(read, none)

    def approved(self, name: str) -> bool:
        """Returns whether exactly this text was approved; committed and followed texts are not."""
        return self._read(lambda current: current.has(name, APPROVED), default=False)

    def has_come_back(self, name: str) -> bool:
        """Returns whether a text was approved, and then replaced, removed or disapproved."""
        return self._read(lambda current: current.has(name, RETIRED), default=False)

    def was_replaced(self, name: str) -> bool:
        """Returns whether a text was approved and then replaced or removed, not disapproved."""
        return self._read(lambda current: current.was_replaced(name), default=False)

    def settings(self, *, asks_git: bool = False) -> Config:
        """Returns the settings of the user and the project, in whose file the approved text counts.

        What they say about trust applies from then on. Unless it `asks_git`, the last answers of
        git decide whether the file was committed.
        """
        from mimo.config import load
        from mimo.memory.approval import approval_of

        user, of_project = self._home / files.CONFIG, self._root / files.SETTINGS
        self._refresh()
        latest = self._approvals.latest_texts[files.SETTINGS] or b""
        config = load(user=user, project=of_project, latest=latest)
        self.use(config, asks_git=asks_git)
        if not config.has_latest_text:
            with suppress(MindError, OSError):
                name = approval_of(files.SETTINGS, disk.read(of_project))
                if self.trusted(name):
                    self.keep(files.SETTINGS, name)
                    config = load(user=user, project=of_project)
                    self.use(config, asks_git=asks_git)
        return config

    def use(self, config: Config, *, asks_git: bool) -> None:
        """Applies what settings say about trust."""
        self._only = tuple(config["trust.only"])
        self._globs = (*config["include"], *config["comments"]) if asks_git else None
        self._made_vouching = None

    def latest(self) -> Mapping[str, bytes | None]:
        """Returns the last approved bytes of each of `files.DECISIVE`; None without any."""
        self._refresh()
        return self._approvals.latest_texts

    def keep(self, path: str, name: str) -> None:
        """Keeps the bytes of one of `files.DECISIVE`, whose approved text has that name.

        A retired text that only counts at the current commit is not kept.
        """
        from mimo.memory.approval import approval_of

        if self.has_come_back(name):
            return
        latest = self._approvals.latest_texts[path]
        if self._kept.get(path) != (name, latest):
            with suppress(MindError, OSError):
                data = disk.read(files.safe_path(self._root, path))
                if approval_of(path, data) == name:
                    if data != latest:
                        with self._changing() as change:
                            change.keep(path, data)
                    self._kept[path] = name, data

    def approve_file(self, path: str) -> None:
        """Approves one of `files.DECISIVE`, as mind has written it. Raises `StorageFailed`."""
        from mimo.project.memories import MemoryStore

        for name in MemoryStore(self._root).approvals(path):
            self.approve([name], paths={name: path})
            self.keep(path, name)

    def approve_removal(self, path: str) -> None:
        """Approves that one of `files.DECISIVE` is missing. Raises `StorageFailed`."""
        with self._changing() as change:
            change.keep(path, None)
        self.retire({path: ()})

    def follows(self, name: str) -> bool:
        """Returns whether a text is trusted even if its approval ends. Raises `StorageFailed`."""
        self._refresh()
        self._ask_git()
        current = self._approvals
        if not current.follow:
            return False
        if self.location.common is None:
            return not self._only
        only = (current.answers or _NO_ANSWERS).only
        return only == self._only and current.has(name, FOLLOWED)

    @property
    def own_address(self) -> str:
        """Returns the e-mail address whose commits here are trusted, or an empty text."""
        self._refresh()
        with suppress(MindError):
            return self._vouching.email() if self._vouching and self._approvals.answers else ""
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
        return lambda name: texts is None or name in texts

    def approve(
        self,
        names: Iterable[str],
        *,
        reviewed: Iterable[str] = (),
        paths: Mapping[str, str] = NO_PATHS,
    ) -> int:
        """Approves texts by their names and returns how many were new. Raises `StorageFailed`.

        `reviewed` has those of them that the user approved, which mind did not just write. `paths`
        has the files of texts, as far as they are known.
        """
        texts, of_user = list(dict.fromkeys(names)), set(reviewed)
        if invalid := [text for text in texts if not compiled(_DIGEST).fullmatch(text)]:
            raise ValueError(invalid[0])
        self.checker()  # It asks git: what the user committed until now comes before.
        # A decision of the user is durable. If a loss of power undoes the approval of a text that
        # mind wrote, the text is untrusted, which restricts, and the user finds it in a review.
        with self._changing(durable=bool(of_user)) as change:
            new = change.add(APPROVED, texts, paths)
            change.add(REVIEWED, of_user, paths)
        return new

    def retire(
        self,
        current: Mapping[str, Collection[str]],
        before: Mapping[str, Collection[str]] = NO_NAMES,
    ) -> dict[str, set[str]]:
        """Retires what was approved in files besides these current names, from this commit on.

        A removed file has no names. `before` has the names of earlier texts, whose files another
        author may have renamed. Returns the retired ones by file. Raises `StorageFailed`.
        """
        self.checker()  # It asks git: what the user committed until now is approved, too.
        none: dict[str, set[str]] = {}
        names_by_path = self._read(lambda approvals: approvals.of_files(current), none)
        replaced = {
            path: names.union(before.get(path, ())).difference(current[path])
            for path, names in names_by_path.items()
        }
        if not any(replaced.values()):
            return none
        commit = self._head()
        with self._changing() as change:
            for path, names in replaced.items():
                change.retire(names, path, commit, self._holds)
            _ask_again(change)
        return replaced

    def retire_missing(self, *, reads: bool) -> None:
        """Retires the approved texts that their files do not have now. Raises `StorageFailed`.

        Unless it `reads` them, only those of missing files.
        """
        from mimo.project.walk import COMMITS

        none: list[tuple[str, str]] = []
        missing = [
            (name, path)
            for name, path in self._read(Approvals.own_texts, none)
            if path != COMMITS
            and not (self._holds(path, name) if reads else os.path.lexists(self._root / path))
        ]
        if missing:
            commit = self._head()
            with self._changing() as change:
                for name, path in missing:
                    change.retire([name], path, commit, self._holds)
                _ask_again(change)

    def _holds(self, path: str, name: str) -> bool:
        """Returns whether a file has the text with a name now."""
        from mimo.project.memories import approvals_of

        with suppress(MindError, OSError):
            data = disk.read(files.safe_path(self._root, path), limit=_MOST_BYTES)
            return name in approvals_of(path, data)
        return False

    def _head(self) -> str:
        """Returns the current commit; empty without one, so that retired texts count nowhere."""
        with suppress(MindError):
            return (self._vouching and self._vouching.head()) or ""
        return ""

    def reviewed(self) -> frozenset[str]:
        """Returns the names of the texts that the user approved; none if they can't be read."""
        return self._read(lambda current: current.reviewed, frozenset())

    def follow(self, follow: bool) -> None:
        """Sets whether later changes are followed. Raises `StorageFailed`.

        In git, they are changes that reach the default branch with its current history.
        """
        base = None
        with suppress(MindError):
            base = self._vouching.base() if self._vouching and follow else None
        with self._changing() as change:
            change.set(follow="on" if follow else "off")
            if seen := change.before.answers:
                change.set_answers(seen._replace(base=base, ref=None, tip=None, stamps={}))
        self._asked = None

    def begin(self) -> None:
        """Begins the approvals of the project: from then on, the user's commits are trusted.

        Raises `StorageFailed`.
        """
        with self._changing():
            pass

    def revoke(self, digests: Iterable[str]) -> int:
        """Ends the approval of texts for good and returns their number. Raises `StorageFailed`."""
        from mimo.memory.approval import approval_of

        self.checker()  # It asks git: what the user committed until now comes before.
        names, latest = tuple(digests), self._approvals.latest_texts.items()
        with self._changing() as change:
            _ask_again(change)
            for path, data in latest:
                if data is not None and approval_of(path, data) in names:
                    change.keep(path, None)
            return change.retire(names, at=DISAPPROVED)

    def forget(self) -> None:
        """Ends every approval. Raises `StorageFailed`."""
        self.check_format()
        if self._stored(self._key).has_begun:
            with self._database.changing(self._key) as change:
                change.forget()

    def _stored(self, key: str) -> Approvals:
        """Returns the approvals of the project with a key. Raises `StorageFailed`."""
        return self._database.approvals(key, Approvals(key))

    # The checkpoints that were saved on this machine, each with the branch of that time. Tracked
    # files should not name machines, worktrees share the list, and another repository at the same
    # path does not get it.

    def add_checkpoints(self, ids: Iterable[str], branch: str | None) -> None:
        """Adds checkpoints that were saved here. Raises `StorageFailed`."""
        with self._changing() as change:
            change.add_checkpoints(ids, branch)

    def forget_id(self, id: str) -> None:
        """Removes the id of a purged memory, which has words of its text; approvals stay.

        Raises `StorageFailed`.
        """
        self._refresh()
        if self._approvals.row:
            with self._database.changing(self._key) as change:
                change.forget_id(id)

    def checkpoints(self) -> dict[str, str | None]:
        """Returns the branch of each checkpoint; None if it was saved without one."""
        return self._read(Approvals.checkpoints, {})

    # Damage.

    def check(self) -> None:
        """Reads the whole database, so that damage in any place is noticed."""
        self._read(lambda _: self._database.check(), None)

    def check_format(self) -> None:
        """Raises `LaterFormat` if a later version of mind wrote the approvals."""
        self._refresh()
        if isinstance(self._problem, LaterFormat):
            raise self._problem

    def repair(self) -> str | None:
        """Renames a damaged database, so that the next approval creates a new one.

        Returns a message for the user; None if it is not damaged. Raises `StorageFailed`.
        """
        self.check()
        self.check_format()
        problem = self._problem
        if not isinstance(problem, Damaged):
            return None
        new = self._database.set_aside()
        return (
            f"{problem.message}; it was renamed to `{new}`, and the earlier approvals of all"
            " projects ended"
        )

    # Reading and changing the database, and asking git.

    def _refresh(self) -> None:
        """Reads the approvals again if they have changed."""
        joins_git = self._may_join_git and os.path.isdir(self._git_folder)  # noqa: PTH112 - asked each time
        if joins_git or disk.stamp(self._mark_file) != self._mark_stamp:
            self._identify()
        if self._damage is not None and self._damage == disk.stamp(self._database.path):
            return
        try:
            current = self._database.approvals(self._key, self._approvals)
            if current.failure:
                raise current.failure
            self._approvals, self._problem = current, None
            if current.has_earlier and self._texts is not None:
                self._carry_over(current)
        except StorageFailed as error:
            self._use_nothing(error)

    def _carry_over(self, current: Approvals) -> None:
        """Approves the files that have the digests of an earlier version, which named no paths."""
        texts, self._texts = self._texts, None
        named = names_of(current.earlier, texts() if texts else ())

        def fill(change: Change) -> None:
            for state, paths in named.items():
                change.add(state, paths, paths)
            change.forget_earlier()

        try:
            with self._changing() as change:
                fill(change)
            self._refresh()
        except StorageFailed:  # In a home that can't be written, approvals apply.
            self._approvals = self._database.unstored(current, fill)

    def _read(self, query: Callable[[Approvals], T], default: T) -> T:
        """Returns the answer of the current approvals; the default if they can't be read."""
        self._refresh()
        try:
            return query(self._approvals)
        except StorageFailed as error:
            self._use_nothing(error)
            return default

    def _use_nothing(self, error: StorageFailed) -> None:
        """Trusts no text until the approvals can be read again."""
        self._approvals, self._problem = Approvals(self._key), error
        if isinstance(error, Damaged | LaterFormat):
            self._damage = disk.stamp(self._database.path)

    @contextmanager
    def _changing(self, *, durable: bool = True) -> Iterator[Change]:
        """Gives a change of the project, which begins with its first approval."""
        self.check_format()
        if isinstance(self._problem, Damaged):
            # Otherwise a new approval would silently end all earlier ones.
            raise self._problem
        if not self._key:
            self._owner = index_owner(self._home, os.urandom)
            self._use_mark(make_mark(self.location, self._owner))
        with self._database.changing(self._key, durable=durable) as change:
            if not change.before.has_begun:
                folder = str(self.location.root).encode("utf-8", "replace").decode()
                change.set(follow="off", folder=folder)
                if self.location.common is not None:
                    from mimo.project import reflogs

                    # Earlier commits may be those of another user who packed the repository.
                    log = reflogs.read(self.location.common, {})
                    change.set_answers(GitAnswers(positions=log.positions, rebasing=log.rebasing))
            yield change

    def _take_along(self) -> None:
        """Moves the approvals of a project that has become a repository to its new key."""
        here, owner = self.location, self._owner
        outside = Location(here.root)
        mark = read_mark(outside, owner) if here.common else None
        if mark is None or owner is None:
            return
        key = key_of(mark, outside.inside)
        if not self._stored(key).is_outside_git:
            return
        new = key_of(make_mark(here, owner, mark), here.inside)
        if new == key or not self._stored(new).has_begun:
            with self._database.changing(key) as change:
                if change.before.is_outside_git:  # Another process may have moved it.
                    change.set(key=new)
                    change.set_answers(GitAnswers())
        files.remove(outside.mark_file(owner))

    def _ask_git(self) -> None:
        """Asks git for new texts if the repository has changed since the last time."""
        if self._globs is None or self._approvals.answers is None or self._is_answered():
            return
        with self._turn:
            for _ in range(_TRIES):
                self._refresh()  # Other threads and processes may have asked meanwhile.
                current = self._approvals
                if self._is_answered() or current.answers is None:
                    return
                stamp = self._git_stamp(current.answers)
                try:
                    is_stored = self._store_answers(current, current.answers)
                except MindError:
                    is_stored = True  # Those that wait do not repeat a failure.
                if is_stored:
                    self._asked = stamp
                    return

    def _is_answered(self) -> bool:
        """Returns whether the last answers of git are current."""
        if (answers := self._approvals.answers) is None:
            return True
        stamp = answers.stamps.get(self._worktree)
        return self._git_stamp(answers) in (stamp, self._asked)

    def _git_stamp(self, answers: GitAnswers) -> str:
        return repr((self._only, self.location.git_stamp(answers.ref, answers.watched)))

    def _store_answers(self, current: Approvals, previous: GitAnswers) -> bool:
        """Asks git and stores its answers; returns False if another process has stored others.

        Raises `Invalid` if git can't be asked.
        """
        if (vouching := self._vouching) is None:
            return True
        stamp = self._git_stamp(previous)
        self._looks = True  # The sides of a merge may count at the commit before.
        try:
            trusted = self._checker_of(current)
        finally:
            self._looks = False
        vouched = vouching.look(
            previous, follow=current.follow, trusted=trusted, retired=current.retired()
        )
        answers = vouched.answers
        if (answers.ref, [*answers.watched]) != (previous.ref, [*previous.watched]):
            stamp = self._git_stamp(answers)  # The stamp depends on them.
        stamps = {**answers.stamps, self._worktree: stamp}
        standing = {**answers.standing, self._worktree: vouched.standing}
        answers = answers._replace(stamps=stamps, standing=standing)
        vouched = vouched._replace(answers=answers)
        try:
            with self._database.changing(self._key) as change:
                if change.before.answers != previous:
                    return False
                _add_vouched(change, vouched, self._holds)
            self._refresh()
        except StorageFailed:
            add = partial(_add_vouched, vouched=vouched, holds=self._holds)
            self._approvals = self._database.unstored(current, add)
        return True


def _ask_again(change: Change) -> None:
    """Lets git be asked again which retired texts count at the current commit."""
    if answers := change.before.answers:
        change.set_answers(answers._replace(stamps={}))


def _add_vouched(change: Change, vouched: Vouched, holds: Callable[[str, str], bool]) -> None:
    """Stores answers of git."""
    change.set_answers(vouched.answers)
    for effect in vouched.effects:
        change.add(effect.state, effect.names, dict.fromkeys(effect.names, effect.path))
        change.retire(effect.ended, effect.path, effect.commit, holds)
        if effect.text is not None:
            change.keep(effect.path, effect.text)
    if vouched.still_signed is not None:
        change.replace(SIGNED, change.digests(SIGNED) & vouched.still_signed)
    if vouched.followed is not None:
        change.replace(FOLLOWED, vouched.followed)
