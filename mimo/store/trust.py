"""The texts that the user trusts on this machine.

Approvals are stored outside every repository, in `$MIND_HOME/trust/<hash of the project's mark>/`
(see `identity`): worktrees of a repository share them, and a clone can't bring any. The files are:

`approved`   SHA-256 digests of files, one on each line: mind's own writes, and approved texts
`state.json` whether later changes are followed, and the path of the project
`git.json`   the last answers of git (see `vouching`)
`committed`  digests of the texts that the user committed in this repository
`followed`   digests of the texts on the default branch, if the user follows it
`made`       checkpoints that were saved on this machine, each with its branch

A procedure whose text is in `approved` may run. Texts in the other lists may only be shown. If a
list can't be read, nothing in it is trusted.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mimo import disk
from mimo.errors import MindError, StorageFailed
from mimo.store import files, identity
from mimo.store.files import ALONE, lock
from mimo.store.identity import Location, Seen, locate
from mimo.store.projects import index_owner, known_owner, owner_file

if TYPE_CHECKING:
    from mimo.store.vouching import Vouching

_APPROVED = re.compile(rb"(?:[0-9a-f]{64}\n)*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FILES = ("state.json", "approved", "git.json", "committed", "followed")


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


class _Lists(NamedTuple):
    """The digests of the trusted texts, by the reason."""

    approved: frozenset[str] = frozenset()
    committed: frozenset[str] = frozenset()
    followed: frozenset[str] = frozenset()


class Trust:
    """The approvals of one project; approvals by other processes apply at once."""

    def __init__(
        self,
        home: Path,
        root: Path,
        only: Sequence[str] = (),
        vouching: "Callable[[Location], Vouching] | None" = None,
    ) -> None:
        """Takes $MIND_HOME, a project's root, and the setting `trust.only`.

        `vouching` asks git. Without it, the last answers of git are used.
        """
        self._home, self._root = home, root
        self._only = tuple(only)
        self._make_vouching = vouching
        self._lists = _Lists()
        self._state = TrustState()
        self._git: Seen | None = None
        self._identify()

    def _identify(self) -> None:
        """Finds the project and its mark."""
        self.location = locate(self._root)
        self._owner = known_owner(self._home)
        with suppress(StorageFailed, OSError):
            self._take_along()
        self._mark = identity.read_mark(self.location, self._owner)
        self._made_vouching: Vouching | None = None
        self._git_folder = f"{self._root}/.git"
        is_known = os.path.isdir(self._git_folder)  # noqa: PTH112 - asked each time
        self._may_join_git = self.location.common is None and not is_known
        self._asked: str | None = None
        """The state of the repository when git was last asked."""
        self._use_folder()

    @property
    def _vouching(self) -> "Vouching | None":
        """Returns the object that asks git, which is loaded only if git must be asked."""
        if self._made_vouching is None and self._make_vouching:
            self._made_vouching = self._make_vouching(self.location)
        return self._made_vouching

    def _use_folder(self) -> None:
        folder = self.folder
        with suppress(StorageFailed):
            # As strings: these files are checked for every shown text, and joining paths is slow.
            owner = self._owner
            self._files = [str(self.location.mark_file(owner) if owner else owner_file(self._home))]
            self._files += [str(folder / name) for name in _FILES[:3]] if folder else []
            self._seen: tuple[object, ...] | None = None
            return
        self._files, self._seen = [], None

    @property
    def folder(self) -> Path | None:
        """Returns the folder of the approvals; None if there never were any."""
        if self._mark is None:
            return None
        return identity.trust_folder(self._home, self._mark, self.location.inside)

    @property
    def state(self) -> TrustState:
        """Returns the current state."""
        self._refresh()
        self._ask_git()
        return self._state

    @property
    def has_earlier(self) -> bool:
        """Returns whether an earlier version of mind left approvals, by the path of the project."""
        return (identity.earlier_folder(self._home, self.location) / "state.json").exists()

    def trusted(self, digest: str) -> bool:
        """Returns whether the text with this digest may be shown to an agent."""
        if self.approved(digest):
            return True
        return not digest.startswith(ALONE) and self.checker()(digest)

    def checker(self) -> Callable[[str], bool]:
        """Returns a function that checks many digests against the current lists."""
        self._refresh()
        self._ask_git()
        approved, committed, followed = self._lists
        every = self._state.follow and not self._state.in_git and not self._only

        def trusted(digest: str) -> bool:
            if digest.startswith(ALONE):
                return digest.removeprefix(ALONE) in approved
            return digest in approved or digest in committed or digest in followed or every

        return trusted

    def approved(self, digest: str) -> bool:
        """Returns whether exactly this text was approved; committed and followed texts are not."""
        self._refresh()
        return digest.removeprefix(ALONE) in self._lists.approved

    @property
    def own_address(self) -> str:
        """Returns the e-mail address whose commits here are trusted, or an empty text."""
        with suppress(MindError):
            return self._vouching.email() if self._vouching and self._git else ""
        return ""

    def by_own_address(self) -> frozenset[str]:
        """Returns the texts whose last commits name the user's address, on any machine.

        Anyone can write that address into a commit.
        """
        with suppress(MindError):
            return self._vouching.by_own_address() if self._vouching else frozenset()
        return frozenset()

    def admitted(self) -> Callable[[str], bool]:
        """Returns a function that checks whether `trust.only` permits to approve a text unseen."""
        texts = self._vouching.admitted() if self._vouching else None
        return lambda digest: texts is None or digest.removeprefix(ALONE) in texts

    def approve(self, digests: Iterable[str]) -> int:
        """Approves texts by their digests and returns how many were new. Raises `StorageFailed`."""
        wanted = dict.fromkeys(digest.removeprefix(ALONE) for digest in digests)
        if wrong := [digest for digest in wanted if not _DIGEST.fullmatch(digest)]:
            raise ValueError(wrong[0])
        with self._changing() as folder:
            new = [digest for digest in wanted if digest not in self._lists.approved]
            if new:
                lines = "".join(f"{digest}\n" for digest in new)
                files.append(folder / "approved", lines.encode())
                # Reading the list again after each of many approvals would be quadratic.
                approved = self._lists.approved.union(new)
                self._lists = self._lists._replace(approved=approved)
                self._state = self._state._replace(approved=len(approved), notice=None)
                self._seen = tuple(map(_stamp, self._files))
        return len(new)

    def follow(self, follow: bool) -> None:
        """Sets whether later changes are followed. Raises `StorageFailed`.

        In git, they are changes that reach the default branch with its current history.
        """
        with self._changing() as folder:
            self._write_state(folder, follow=follow)
            if self._git is not None:
                base = None
                with suppress(MindError):
                    base = self._vouching.base() if self._vouching and follow else None
                self._write_git(folder, self._git._replace(base=base, tip=None, stamps={}))
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
            lists = self._lists
            taken = revoked & (lists.approved | lists.committed)
            if revoked & lists.approved:
                _write_list(folder / "approved", lists.approved - revoked)
            if self._git is not None and revoked & lists.committed:
                self._write_git(folder, self._git._replace(committed=lists.committed - revoked))
        return len(taken)

    def forget(self) -> None:
        """Ends every approval. Raises `StorageFailed`."""
        self._refresh()
        self.forget_earlier()
        folder = self.folder
        if folder is None or not folder.exists():
            return
        with self._locked():
            for name in _FILES:
                if (folder / name).exists():
                    files.remove(folder / name)

    def forget_earlier(self) -> None:
        """Removes the approvals of an earlier version of mind. Raises `StorageFailed`."""
        folder = identity.earlier_folder(self._home, self.location)
        for name in _FILES[:2]:
            if (folder / name).exists():
                files.remove(folder / name)

    def _locked(self) -> AbstractContextManager[None]:
        folder = self.folder
        if folder is None:
            raise StorageFailed("there are no approvals here yet", hint="run `mind trust`")
        return lock(folder / "lock")

    @contextmanager
    def _changing(self) -> Iterator[Path]:
        self._refresh()
        if self._mark is None:
            self._owner = index_owner(self._home, os.urandom)
            self._mark = identity.make_mark(self.location, self._owner)
            self._use_folder()
        folder = self.folder
        if folder is None:
            raise StorageFailed("the project has no mark", hint="try again")
        with self._locked():
            self._refresh()
            if self._state.problem is not None:
                # Otherwise a new approval would silently end all earlier ones.
                raise StorageFailed(self._state.problem, hint="run `mind trust` to approve again")
            if not (folder / "state.json").exists():
                self._begin(folder)
                self._refresh()
            yield folder

    def _begin(self, folder: Path) -> None:
        if self.location.common is not None:
            from mimo.store import vouching

            # Earlier commits may be those of another user who packed the repository.
            self._write_git(folder, Seen(positions=vouching.ends(self.location.common)))
        self._write_state(folder, follow=False)

    def _take_along(self) -> None:
        """Moves the mark of a project that has become a repository."""
        here = self.location
        owner = self._owner
        if here.common is None or owner is None:
            return
        outside = Location(here.root)
        mark = identity.read_mark(outside, owner)
        before = identity.trust_folder(self._home, mark, outside.inside) if mark else None
        if mark is None or before is None or not _was_outside(before):
            return
        after = identity.trust_folder(
            self._home, identity.make_mark(here, owner, mark), here.inside
        )
        if before != after and not after.exists():
            files.rename(before, after)
        if after.exists():
            with lock(after / "lock"):
                follow = json.loads(disk.read(after / "state.json"))["follow"]
                self._write_state(after, follow=follow)
                self._write_git(after, Seen())
        files.remove(outside.mark_file(owner))

    def _refresh(self) -> None:
        if self._may_join_git and os.path.isdir(self._git_folder):  # noqa: PTH112 - asked each time
            self._identify()
        seen = tuple(map(_stamp, self._files))
        if seen == self._seen:
            return
        if self._seen is None or seen[:1] != self._seen[:1]:
            mark = identity.read_mark(self.location, known_owner(self._home))
            if mark != self._mark or self._owner is None:
                self._identify()
                seen = tuple(map(_stamp, self._files))
        try:
            self._read()
        except StorageFailed as error:
            self._use(_Lists(), None, follow=None)
            self._state = self._state._replace(problem=error.message)
        self._seen = seen

    def _read(self) -> None:
        folder, in_git = self.folder, self.location.common is not None
        lists, git, follow, torn = _Lists(), None, None, False
        if folder is not None:
            follow = _read_state(folder)
            approved, torn = _read_list(folder / "approved")
            lists = _Lists(approved)
        if folder is not None and in_git and follow is not None:
            git = _read_git(folder)
        self._use(lists._replace(committed=git.committed) if git else lists, git, follow=follow)
        if torn and folder is not None:
            notice = (
                f"`{folder}/approved` ends in the torn line of an interrupted write; it is skipped"
            )
            self._state = self._state._replace(notice=notice)

    def _use(self, lists: _Lists, git: Seen | None, *, follow: bool | None) -> None:
        """Sets the trusted texts, without those followed under another `trust.only`."""
        in_git = self.location.common is not None
        if git and follow and git.only == self._only:
            lists = lists._replace(followed=git.followed)
        self._git, self._lists = git, lists
        self._state = TrustState(
            follow=bool(follow),
            approved=len(lists.approved),
            in_git=in_git,
            branch=git.ref if git and follow else None,
            stopped=git.stopped if git and follow else None,
        )

    def _ask_git(self) -> None:
        """Asks git for new texts if the repository has changed since the last time."""
        if self._make_vouching is None or self._git is None:
            return
        stamp = self._git_stamp(self._git)
        if stamp in (self._git.stamps.get(str(self.location.git_dir)), self._asked):
            return
        self._asked = stamp
        with suppress(MindError), self._locked():
            self._refresh()
            self._look()

    def _git_stamp(self, seen: Seen) -> str:
        return repr((self._only, self.location.git_stamp(seen.ref)))

    def _look(self) -> None:
        """Stores git's current answers. Hold the lock. Raises `Invalid` if git can't be asked."""
        folder, last, vouching = self.folder, self._git, self._vouching
        if last is None or folder is None or vouching is None:
            return
        stamp = self._git_stamp(last)
        fresh = vouching.look(last, follow=self._state.follow)
        if fresh.ref != last.ref:
            stamp = self._git_stamp(fresh)  # The stamp depends on the branch.
        fresh = fresh._replace(stamps={**fresh.stamps, str(self.location.git_dir): stamp})
        try:
            self._write_git(folder, fresh)
            self._refresh()
        except StorageFailed:  # Use the answers in this process only.
            lists = self._lists._replace(committed=fresh.committed)
            self._use(lists, fresh, follow=self._state.follow)

    def _write_git(self, folder: Path, seen: Seen) -> None:
        if seen.committed != self._lists.committed:
            _write_list(folder / "committed", seen.committed)
        if seen.followed or (folder / "followed").exists():
            _write_list(folder / "followed", seen.followed)
        plain = seen._replace(committed=frozenset(), followed=frozenset())._asdict()
        del plain["committed"], plain["followed"]
        # Written last: a reader of the new file must get the new lists.
        files.replace(folder / "git.json", f"{json.dumps(plain)}\n".encode(), mode=0o600)

    def repair(self) -> str | None:
        """Renames damaged lists, so that the next approval creates new ones.

        Returns a message for the user; None if no list was damaged. Raises `StorageFailed`.
        """
        self._refresh()
        problem, folder = self._state.problem, self.folder
        if problem is None or folder is None:
            return None
        with self._locked():
            for name in _FILES:
                if (data := _read(folder / name)) is not None:
                    files.replace(folder / f"{name}.damaged", data, mode=0o600)
                    files.remove(folder / name)
        self._refresh()
        return f"{problem}; it was renamed to `{folder}/*.damaged`, and earlier approvals ended"

    def _write_state(self, folder: Path, *, follow: bool) -> None:
        shown = str(self.location.root).encode("utf-8", "replace").decode()
        in_git = self.location.common is not None
        text = json.dumps({"path": shown, "git": in_git, "follow": follow})
        files.replace(folder / "state.json", f"{text}\n".encode(), mode=0o600)


def opened(
    home: Path,
    root: Path,
    only: Sequence[str] = (),
    *,
    include: Sequence[str] = (),
    comments: Sequence[str] = (),
) -> Trust:
    """Returns the approvals of a project, which ask git for the user's commits and followed texts.

    `only` is the setting `trust.only`: `signed`, for commits signed with a key that git trusts, and
    addresses of authors. The globs name memory outside of `.mind/`.
    """

    def vouching(location: Location) -> "Vouching":
        from mimo.store.vouching import Vouching

        return Vouching(location, only, include=include, comments=comments)

    return Trust(home, root, only, vouching)


def _was_outside(folder: Path) -> bool:
    """Returns whether a project was outside git when its approvals were written."""
    with suppress(OSError, ValueError, TypeError, KeyError, StorageFailed):
        return json.loads(disk.read(folder / "state.json"))["git"] is False
    return False


def _read_state(folder: Path) -> bool | None:
    """Returns whether changes are followed; None if there are no approvals yet."""
    data = _read(folder / "state.json")
    if data is None:
        return None
    try:
        follow = json.loads(data)["follow"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _damaged(folder / "state.json") from None
    if not isinstance(follow, bool):
        raise _damaged(folder / "state.json")
    return follow


def _read_git(folder: Path) -> Seen | None:
    """Returns the last answers of git; None if it was never asked."""
    data = _read(folder / "git.json")
    if data is None:
        return None
    try:
        plain: dict[str, Any] = json.loads(data)
        seen = Seen(**plain)._replace(only=tuple(plain["only"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _damaged(folder / "git.json") from None
    return seen._replace(
        committed=_read_list(folder / "committed")[0], followed=_read_list(folder / "followed")[0]
    )


def _read_list(path: Path) -> tuple[frozenset[str], bool]:
    """Returns the digests of a list, and whether it ends in a torn line, which is skipped."""
    log = files.log_of(_read(path) or b"")
    if not _APPROVED.fullmatch(log.whole):
        raise _damaged(path)
    return frozenset(log.whole.decode("ascii").split()), bool(log.torn)


def _write_list(path: Path, digests: Iterable[str]) -> None:
    data = "".join(f"{digest}\n" for digest in sorted(digests)).encode()
    files.replace(path, data, mode=0o600)


def _read(path: Path) -> bytes | None:
    try:
        return disk.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise files.failure("read", path, error) from error


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _damaged(path: Path) -> StorageFailed:
    return StorageFailed(
        f"`{path}` is damaged, so no text is trusted", hint="run `mind trust` to approve again"
    )


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
        files.append(self._trust.begin() / "made", lines.encode())

    def branches(self) -> dict[str, str | None]:
        """Returns the branch of each checkpoint; None if it was saved without one."""
        folder = self._trust.folder
        try:
            lines = files.log_of(disk.read(folder / "made")).lines if folder else []
        except OSError:
            return {}
        pairs = (line.decode("utf-8", "replace").split("\t", 1) for line in lines)
        return {pair[0]: pair[1] or None for pair in pairs if len(pair) == 2}
