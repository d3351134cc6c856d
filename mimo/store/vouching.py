"""Whose commits may be followed: a file is vouched for by the last commit that changed it.

Git itself checks signatures, with programs and lists of signers that the person's own settings
name; what a repository sets is passed over. The address of an author is what the commit says: it
keeps honest people apart, and stops nobody who writes another one's name.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from mimo.errors import MindError
from mimo.store import touches
from mimo.store.repository import Repository
from mimo.store.touches import Touch

SIGNED = "signed"
_GOOD = "G"
_OWN = ("gpg.ssh.allowedSignersFile", "gpg.ssh.revocationFile", "gpg.minTrustLevel")
"""Settings that say which signatures are good."""
_PROGRAMS = ("gpg.program=gpg", "gpg.openpgp.program=gpg", "gpg.ssh.program=ssh-keygen",
             "gpg.x509.program=gpgsm")  # fmt: skip


class Vouching:
    """Says which texts were last committed by somebody who may be followed."""

    def __init__(self, root: Path, only: Sequence[str]) -> None:
        """Take the project's root and who may be followed; git is asked when it is needed."""
        self._repository = Repository(root)
        self._signed = SIGNED in only
        self._authors = frozenset(word.casefold() for word in only if word != SIGNED)
        self._folder: Path | None = None
        self._seen: tuple[int, ...] | None = None
        self._head: str | None = None
        self._digests: frozenset[str] = frozenset()

    def __call__(self) -> frozenset[str]:
        """Returns the digests of the texts that commits which may be followed wrote.

        Where git can't tell, there are none.
        """
        try:
            seen = self._stamp()
            if seen is None or seen != self._seen:
                self._look()
                self._seen = seen
        except MindError:
            return frozenset()
        return self._digests

    def _look(self) -> None:
        head = self._repository.run("rev-parse", "--verify", "--quiet", "HEAD").stdout
        if self._head != (now := head.decode().strip()):
            self._digests = frozenset(self._vouched()) if now else frozenset()
            self._head = now

    def _stamp(self) -> tuple[int, ...] | None:
        """Returns what changes whenever another commit is checked out; None where git keeps none.

        Many texts are asked for at once, and to ask git for each would take seconds.
        """
        if self._folder is None:
            told = self._repository.ask("rev-parse", "--absolute-git-dir")
            self._folder = Path(os.fsdecode(told.rstrip(b"\n")))
        try:
            found = [(self._folder / name).stat() for name in ("HEAD", "logs/HEAD")]
        except OSError:
            return None
        return tuple(number for one in found for number in (one.st_mtime_ns, one.st_size))

    def _vouched(self) -> Iterable[str]:
        """Returns the digests of what the last commits of each file wrote, where they may."""
        last = touches.last_touches(self._repository)
        good = {t.commit for t in last.values() if t.email.casefold() in self._authors}
        if self._signed:
            good |= self._with_good_signatures(last.values())
        pairs = [(touch.commit, path) for path, touch in last.items() if touch.commit in good]
        content = touches.contents(self._repository, pairs)
        return [hashlib.sha256(data).hexdigest() for data in content.values()]

    def _with_good_signatures(self, last: Iterable[Touch]) -> set[str]:
        commits = sorted({touch.commit for touch in last})
        own = [word for setting in (*_PROGRAMS, *self._settings()) for word in ("-c", setting)]
        told = self._repository.ask(*own, "log", "--no-walk=unsorted", "--format=%H %G?", *commits)
        lines = (line.split() for line in told.decode("ascii", "replace").splitlines())
        return {words[0] for words in lines if words[1:] == [_GOOD]}

    def _settings(self) -> Iterable[str]:
        """Yields what the person's own git says of signatures, over what the repository says."""
        for key in _OWN:
            words = ("config", "--global", "--type=path", "--get", key)
            value = os.fsdecode(self._repository.run(*words).stdout).strip()
            if value or key != "gpg.minTrustLevel":
                yield f"{key}={value}"
