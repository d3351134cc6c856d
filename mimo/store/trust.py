"""Which texts the user has approved on this machine.

Kept outside every repository, in `$MIND_HOME/trust/<hash of the project's mark>/` (see
`identity`), so that all worktrees of a repository share it and nothing that comes with a clone can
claim it. In that folder:

`approved`   one SHA-256 of a file's bytes a line: mind's own writes, and what the user approved
`state.json` whether later changes are followed, and where the project was
`git.json`   what git said when it was last asked (see `vouching`)
`committed`  digests of the texts that the user committed in this repository
`followed`   digests of the texts on the default branch, where the user follows it

A text in `approved` may run, if it is a procedure; one in the other two lists may only be shown.
What can't be read is never trusted.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mimo.errors import MindError, StorageFailed
from mimo.store import append_log, files, identity
from mimo.store.files import ALONE
from mimo.store.identity import Location, Seen, locate
from mimo.store.locking import lock
from mimo.store.projects import index_owner, known_owner, owner_file

if TYPE_CHECKING:
    from mimo.store.vouching import Vouching

_APPROVED = re.compile(rb"(?:[0-9a-f]{64}\n)*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FILES = ("state.json", "approved", "git.json", "committed", "followed")


class TrustState(NamedTuple):
    """What is trusted in a project."""

    follow: bool = False
    """Whether the user follows later changes (but never a procedure)."""
    approved: int = 0
    """How many texts were approved one by one."""
    in_git: bool = False
    """Whether the project is in a git repository."""
    branch: str | None = None
    """The full name of the branch that is followed."""
    stopped: str | None = None
    """Why nothing is followed although the user chose to."""
    notice: str | None = None
    """What an interrupted write left in the list, which is skipped."""
    problem: str | None = None
    """Why nothing is trusted although something was approved."""


class _Lists(NamedTuple):
    """The digests of the texts that are trusted, by the reason."""

    approved: frozenset[str] = frozenset()
    committed: frozenset[str] = frozenset()
    followed: frozenset[str] = frozenset()


class Trust:
    """The approvals for one project; what another process approves counts at once."""

    def __init__(
        self,
        home: Path,
        root: Path,
        only: Sequence[str] = (),
        vouching: "Callable[[Location], Vouching] | None" = None,
    ) -> None:
        """Take $MIND_HOME, a project's root, and whose commits may be followed.

        `vouching` asks git; without it nothing is asked, and what git said last counts.
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
        """What the repository was like when git could not answer."""
        self._use_folder()

    @property
    def _vouching(self) -> "Vouching | None":
        """Returns what asks git; it is loaded only if git must be asked."""
        if self._made_vouching is None and self._make_vouching:
            self._made_vouching = self._make_vouching(self.location)
        return self._made_vouching

    def _use_folder(self) -> None:
        folder = self.folder
        with suppress(StorageFailed):
            # Looked at for every text that is shown: joining paths costs more than the look.
            owner = self._owner
            self._files = [str(self.location.mark_file(owner) if owner else owner_file(self._home))]
            self._files += [str(folder / name) for name in _FILES[:3]] if folder else []
            self._seen: tuple[object, ...] | None = None
            return
        self._files, self._seen = [], None

    @property
    def folder(self) -> Path | None:
        """Returns the folder of the approvals; None where nothing was ever approved."""
        if self._mark is None:
            return None
        return identity.trust_folder(self._home, self._mark, self.location.inside)

    @property
    def state(self) -> TrustState:
        """Returns what is trusted now."""
        self._refresh()
        self._ask_git()
        return self._state

    @property
    def has_earlier(self) -> bool:
        """Returns whether an earlier version of mind, which kept trust by the path, left some."""
        return (identity.earlier_folder(self._home, self.location) / "state.json").exists()

    def trusted(self, digest: str) -> bool:
        """Returns whether the text with this digest may be put before an agent."""
        if self.approved(digest):
            return True
        return not digest.startswith(ALONE) and self.checker()(digest)

    def checker(self) -> Callable[[str], bool]:
        """Returns what says whether a text is trusted as things are now, for many texts at once."""
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
        """Returns whether exactly this text was approved, whatever is committed or followed."""
        self._refresh()
        return digest.removeprefix(ALONE) in self._lists.approved

    @property
    def own_address(self) -> str:
        """Returns the e-mail address whose commits in this repository are trusted, or nothing."""
        with suppress(MindError):
            return self._vouching.email() if self._vouching and self._git else ""
        return ""

    def by_own_address(self) -> frozenset[str]:
        """Returns the texts whose last commits name the user's address, wherever they were made.

        Anyone can write that address into a commit.
        """
        with suppress(MindError):
            return self._vouching.by_own_address() if self._vouching else frozenset()
        return frozenset()

    def admitted(self) -> Callable[[str], bool]:
        """Returns what says whether the user's settings let a text be approved unseen."""
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
                append_log.append(folder / "approved", lines.encode())
                # Reading the list again after each of many approvals would be quadratic.
                approved = self._lists.approved.union(new)
                self._lists = self._lists._replace(approved=approved)
                self._state = self._state._replace(approved=len(approved), notice=None)
                self._seen = tuple(map(_stamp, self._files))
        return len(new)

    def follow(self, follow: bool) -> None:
        """Sets whether later changes are followed. Raises `StorageFailed`.

        In git those are changes that reach the default branch, of the history that it has now.
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
        """Returns the folder of the approvals, made where nothing was approved yet.

        What the user commits from then on is trusted. Raises `StorageFailed`.
        """
        with self._changing() as folder:
            return folder

    def revoke(self, digests: Iterable[str]) -> int:
        """Takes back the approval of texts and returns of how many. Raises `StorageFailed`."""
        gone = frozenset(digest.removeprefix(ALONE) for digest in digests)
        with self._changing() as folder:
            taken = gone & (self._lists.approved | self._lists.committed)
            if gone & self._lists.approved:
                _write_list(folder / "approved", self._lists.approved - gone)
            if self._git is not None and gone & self._lists.committed:
                self._write_git(folder, self._git._replace(committed=self._lists.committed - gone))
        return len(taken)

    def forget(self) -> None:
        """Takes back every approval. Raises `StorageFailed`."""
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
        """Removes what an earlier version of mind kept by the path. Raises `StorageFailed`."""
        folder = identity.earlier_folder(self._home, self.location)
        for name in _FILES[:2]:
            if (folder / name).exists():
                files.remove(folder / name)

    def _locked(self) -> AbstractContextManager[None]:
        folder = self.folder
        if folder is None:
            raise StorageFailed("nothing was approved here yet", hint="run `mind trust`")
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
                # Approving by itself would end every earlier approval without a word.
                raise StorageFailed(self._state.problem, hint="run `mind trust` to approve again")
            if not (folder / "state.json").exists():
                self._begin(folder)
                self._refresh()
            yield folder

    def _begin(self, folder: Path) -> None:
        if self.location.common is not None:
            from mimo.store import vouching as reflog

            # What was committed before may be a stranger's, who packed the repository.
            self._write_git(folder, Seen(positions=reflog.ends(self.location.common)))
        self._write_state(folder, follow=False)

    def _take_along(self) -> None:
        """Moves here, once, the mark of a project that became a repository since."""
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
                follow = json.loads(files.read(after / "state.json"))["follow"]
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
            self._state = self._state._replace(notice=_torn(folder / "approved"))

    def _use(self, lists: _Lists, git: Seen | None, *, follow: bool | None) -> None:
        """Trusts these texts from now on; what was followed for other people's sake is not."""
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
        """Asks git what is new, where the repository has changed since it was last asked."""
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
        """Keeps what git says now. Hold the lock; raises `Invalid` where it can't be asked."""
        folder, known, vouching = self.folder, self._git, self._vouching
        if known is None or folder is None or vouching is None:
            return
        stamp = self._git_stamp(known)
        fresh = vouching.look(known, follow=self._state.follow)
        if fresh.ref != known.ref:
            stamp = self._git_stamp(fresh)  # The branch has a file of its own, known only now.
        fresh = fresh._replace(stamps={**fresh.stamps, str(self.location.git_dir): stamp})
        try:
            self._write_git(folder, fresh)
            self._refresh()
        except StorageFailed:  # Then it counts for this process.
            lists = self._lists._replace(committed=fresh.committed)
            self._use(lists, fresh, follow=self._state.follow)

    def _write_git(self, folder: Path, seen: Seen) -> None:
        if seen.committed != self._lists.committed:
            _write_list(folder / "committed", seen.committed)
        if seen.followed or (folder / "followed").exists():
            _write_list(folder / "followed", seen.followed)
        plain = seen._replace(committed=frozenset(), followed=frozenset())._asdict()
        del plain["committed"], plain["followed"]
        # Written last: whoever sees it new finds the lists as they belong to it.
        files.replace(folder / "git.json", f"{json.dumps(plain)}\n".encode(), mode=0o600)

    def repair(self) -> str | None:
        """Moves damaged lists aside, so that the next approval begins new ones.

        Returns a message for the user, None if no list was damaged. Raises `StorageFailed`.
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
        return f"{problem}; it was kept as `{folder}/*.damaged`, and earlier approvals ended"

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
    """Returns the approvals for a project, which ask git what the user committed and follows.

    `only` says whose commits may be followed: `signed`, for what is signed by a key that git
    trusts, and addresses of authors. The globs name memory outside of `.mind/`.
    """

    def vouching(location: Location) -> "Vouching":
        from mimo.store.vouching import Vouching

        return Vouching(location, only, include=include, comments=comments)

    return Trust(home, root, only, vouching)


def _was_outside(folder: Path) -> bool:
    """Returns whether approvals are of a project that was in no repository."""
    with suppress(OSError, ValueError, TypeError, KeyError, StorageFailed):
        return json.loads(files.read(folder / "state.json"))["git"] is False
    return False


def _read_state(folder: Path) -> bool | None:
    """Returns whether changes are followed; None where nothing was approved yet."""
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
    """Returns what git said last; None where it was never asked."""
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
    log = append_log.split(_read(path) or b"")
    if not _APPROVED.fullmatch(log.whole):
        raise _damaged(path)
    return frozenset(log.whole.decode("ascii").split()), bool(log.torn)


def _torn(path: Path) -> str:
    return f"`{path}` ends in a torn line, which an interrupted write left; it is skipped"


def _write_list(path: Path, digests: Iterable[str]) -> None:
    data = "".join(f"{digest}\n" for digest in sorted(digests)).encode()
    files.replace(path, data, mode=0o600)


def _read(path: Path) -> bytes | None:
    try:
        return files.read(path)
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
        f"`{path}` is damaged, so nothing is trusted", hint="run `mind trust` to approve again"
    )
