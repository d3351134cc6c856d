"""Which texts somebody on this machine has approved.

Kept outside every repository, in `$MIND_HOME/trust/<hash of the git common directory>/`, so that
all worktrees of a repository share it and nothing that comes with a clone can claim it:
`approved` has one SHA-256 of a file's bytes a line, `state.json` the flag to follow later commits
and the directory in clear. What can't be read is never trusted. Where a project that is trusted
becomes a repository, its trust goes with it.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from mimo import disk
from mimo.errors import StorageFailed
from mimo.store import append_log, files, trust_mark
from mimo.store.locking import lock
from mimo.store.names import ALONE

_APPROVED = re.compile(rb"(?:[0-9a-f]{64}\n)*")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class TrustState(NamedTuple):
    """What is trusted in a repository."""

    path: Path
    """Where that is: see `place`."""
    follow: bool = False
    """Whether all memory is trusted, that of later commits too (but never a procedure)."""
    approved: int = 0
    """How many texts were approved one by one."""
    notice: str | None = None
    """What an interrupted write left in the list, which is skipped."""
    problem: str | None = None
    """Why nothing is trusted although something was approved."""


class Trust:
    """The approvals for one repository; what another process approves counts at once."""

    def __init__(
        self, home: Path, root: Path, vouched: Callable[[], frozenset[str]] | None = None
    ) -> None:
        """Take $MIND_HOME and a project's root; nothing is read yet.

        `vouched` returns the digests of what may be followed; without it all may.
        """
        self._home, self._root = home, root.resolve()
        self._git = str(self._root / ".git")
        self._vouched = vouched
        self._settle(place(root))

    def _settle(self, path: Path) -> None:
        """Keeps trust by a path from now on."""
        self.path = path
        self._folder = _folder(self._home, path)
        # Looked at for every memory that is shown: joining paths cost more than the look.
        self._files = [str(self._folder / name) for name in ("state.json", "approved")]
        self._taken_over = path == self._root
        """Whether nothing of the time before git is to be looked for any more."""
        self._seen: tuple[object, ...] | None = None
        self._digests: frozenset[str] = frozenset()
        self._state = TrustState(path=path)

    @property
    def state(self) -> TrustState:
        """Returns what is trusted now."""
        self._refresh()
        return self._state

    def trusted(self, digest: str) -> bool:
        """Returns whether the text with this digest may be put before an agent."""
        if self.approved(digest):
            return True
        if not self._state.follow or digest.startswith(ALONE) or not self.vouched(digest):
            return False
        if self._vouched is not None:
            # Whoever can't ask git, because nobody may wait for it, finds them approved.
            with suppress(StorageFailed):
                self.approve(self._vouched())
        return True

    def vouched(self, digest: str) -> bool:
        """Returns whether the user's settings let this text be approved unseen."""
        return self._vouched is None or digest.removeprefix(ALONE) in self._vouched()

    def approved(self, digest: str) -> bool:
        """Returns whether exactly this text was approved, whatever is followed."""
        self._refresh()
        return digest.removeprefix(ALONE) in self._digests

    def approve(self, digests: Iterable[str]) -> int:
        """Approves texts by their digests and returns how many were new. Raises `StorageFailed`."""
        wanted = dict.fromkeys(digest.removeprefix(ALONE) for digest in digests)
        if wrong := [digest for digest in wanted if not _DIGEST.fullmatch(digest)]:
            raise ValueError(wrong[0])
        with self._changing():
            new = [digest for digest in wanted if digest not in self._digests]
            if new:
                lines = "".join(f"{digest}\n" for digest in new).encode()
                append_log.append(self._folder / "approved", lines)
            self._write_state(follow=self._state.follow)
        return len(new)

    def follow(self, follow: bool) -> None:
        """Sets whether memory of later commits is trusted too. Raises `StorageFailed`."""
        with self._changing():
            self._write_state(follow=follow)

    def revoke(self, digests: Iterable[str]) -> int:
        """Takes back the approval of texts and returns of how many. Raises `StorageFailed`."""
        gone = frozenset(digests)
        with self._changing():
            left = [digest for digest in self._digests if digest not in gone]
            taken = len(self._digests) - len(left)
            if taken:
                data = "".join(f"{digest}\n" for digest in sorted(left)).encode()
                files.replace(self._folder / "approved", data, mode=0o600)
        return taken

    def forget(self) -> None:
        """Takes back every approval. Raises `StorageFailed`."""
        self._take_over()
        if not self._folder.exists():
            return
        with self._locked():
            for name in ("state.json", "approved"):
                if (self._folder / name).exists():
                    files.remove(self._folder / name)

    def _locked(self) -> AbstractContextManager[None]:
        return lock(self._folder / "lock")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._take_over()
        with self._locked():
            self._refresh()
            if self._state.problem is not None:
                # Approving by itself would end every earlier approval without a word.
                raise StorageFailed(self._state.problem, hint="run `mind trust` to approve again")
            yield
            if self.path == self._root:
                trust_mark.leave(self._folder, self._root)

    def _take_over(self) -> None:
        """Moves here, once, what was approved for this folder before git came to it."""
        if self.path == self._root and os.path.isdir(self._git):  # noqa: PTH112 - asked each time
            self._settle(place(self._root))
        if self._taken_over:
            return
        self._taken_over = True
        before = _folder(self._home, self._root)
        if self._folder.exists() or not trust_mark.fits(before, self._root):
            return
        with suppress(StorageFailed), self._locked():
            for name in ("approved", "state.json"):
                if (data := _read(before / name)) is not None:
                    said = data.replace(_named(self._root), _named(self.path), 1)
                    files.replace(self._folder / name, said, mode=0o600)
                    files.remove(before / name)

    def _refresh(self) -> None:
        self._take_over()
        seen = tuple(map(_stamp, self._files))
        if seen == self._seen:
            return
        try:
            follow = self._read_state()
            log = self._read_approved()
            self._digests = frozenset(log.whole.decode("ascii").split())
            self._state = TrustState(
                path=self.path,
                follow=follow,
                approved=len(self._digests),
                notice=_torn(self._folder / "approved") if log.torn else None,
            )
        except StorageFailed as error:
            self._digests = frozenset()
            self._state = TrustState(path=self.path, problem=error.message)
        self._seen = seen

    def _read_state(self) -> bool:
        data = _read(self._folder / "state.json")
        if data is None:
            return False
        try:
            state = json.loads(data)
            follow, path = state["follow"], state["path"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise _damaged(self._folder / "state.json") from None
        if not isinstance(follow, bool) or path != _shown(self.path):
            raise _damaged(self._folder / "state.json")
        return follow

    def _read_approved(self) -> append_log.Log:
        log = append_log.split(_read(self._folder / "approved") or b"")
        if not _APPROVED.fullmatch(log.whole):
            raise _damaged(self._folder / "approved")
        return log

    def repair(self) -> str | None:
        """Moves damaged lists aside, so that the next approval begins new ones.

        Returns a message for the user, None if no list was damaged. Raises `StorageFailed`.
        """
        self._refresh()
        problem = self._state.problem
        if problem is None:
            return None
        with self._locked():
            for name in ("state.json", "approved"):
                if (data := _read(self._folder / name)) is not None:
                    files.replace(self._folder / f"{name}.damaged", data, mode=0o600)
                    files.remove(self._folder / name)
        self._refresh()
        return f"{problem}; it was kept as `{self._folder}/*.damaged`, and earlier approvals ended"

    def _write_state(self, *, follow: bool) -> None:
        path = self._folder / "state.json"
        if follow == self._state.follow and path.exists():
            return
        text = json.dumps({"path": _shown(self.path), "follow": follow})
        files.replace(path, f"{text}\n".encode(), mode=0o600)


def _folder(home: Path, place: Path) -> Path:
    return home / "trust" / hashlib.sha256(os.fsencode(place)).hexdigest()


def opened(home: Path, root: Path, only: Sequence[str] = ()) -> Trust:
    """Returns the approvals for a repository; `only` says whose commits may be followed.

    Those are `signed`, for what is signed by a key that git trusts, and addresses of authors.
    """
    if not only:
        return Trust(home, root)
    from mimo.store.vouching import Vouching

    return Trust(home, root, Vouching(root, only))


def place(root: Path) -> Path:
    """Returns what trust in a project is kept by.

    It is the git common directory, which the worktrees of a repository share, followed by the
    project's folder within the worktree where it isn't its top; outside git it is the project's
    root. All resolved, and found without running git.

    A `.git` file is believed only where the directory that it names points back to it, as git's
    own worktrees do: an unpacked archive can't borrow the trust of another repository.
    """
    root = root.resolve()
    for folder in (root, *root.parents):
        marker = folder / ".git"
        if marker.is_dir():
            return marker.resolve() / root.relative_to(folder)
        if marker.is_file():
            common = _of_worktree(marker)
            return common / root.relative_to(folder) if common else root
    return root


def _of_worktree(marker: Path) -> Path | None:
    named = _pointer(marker, "gitdir:")
    if named is None:
        return None
    back = _pointer(named / "gitdir")
    common = _pointer(named / "commondir")
    if back is None or common is None or back != marker.resolve() or not common.is_dir():
        return None
    return common


def _pointer(file: Path, prefix: str = "") -> Path | None:
    """Returns the path that one of git's files names, relative to the file's folder."""
    try:
        line = disk.first_line(file)
    except (OSError, ValueError):
        return None
    if not line.startswith(prefix) or not line.removeprefix(prefix).strip():
        return None
    return (file.parent / line.removeprefix(prefix).strip()).resolve()


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


def _shown(path: Path) -> str:
    return str(path).encode("utf-8", "replace").decode()


def _named(path: Path) -> bytes:
    """Returns a path as it stands in `state.json`."""
    return json.dumps(_shown(path)).encode()


def _torn(path: Path) -> str:
    return f"`{path}` ends in a torn line, which an interrupted write left; it is skipped"


def _damaged(path: Path) -> StorageFailed:
    return StorageFailed(
        f"`{path}` is damaged, so nothing is trusted", hint="run `mind trust` to approve again"
    )
