"""The policies in force: the project's `policy.yaml`, or what holds without one."""

import time
from collections.abc import Callable
from pathlib import Path

from mimo.domain.policy import DEFAULT, Policy
from mimo.errors import Denied, MindError
from mimo.frozen import frozen
from mimo.store import files
from mimo.store.walk import STORE

_GRAIN_NS = 50_000_000

FILE = f"{STORE}/policy.yaml"


@frozen
class Found:
    """What a look at the file came to."""

    policies: tuple[Policy, ...]
    """Each must permit a call; none at all where the file is invalid, which permits nothing."""
    faults: tuple[tuple[int, str], ...] = ()
    """What is wrong with the file, with the lines."""
    digest: str = ""
    """Of the file; empty where there is none."""
    trusted: bool = True
    """Whether somebody here approved the file; one that nobody did can only narrow."""

    @property
    def told(self) -> str:
        """Returns what is wrong first, with its place."""
        line, reason = self.faults[0]
        return f"{FILE}:{line}: {reason}"


class Policies:
    """Reads the file when it has changed; an approval counts at once."""

    def __init__(self, root: Path | None, trusted: Callable[[str], bool]) -> None:
        """Take a project's root, and what tells whether a digest is approved."""
        self._path = root / FILE if root else None
        self._trusted = trusted
        self._seen: tuple[object, ...] | None = None
        self._digest = ""
        self._policy: Policy | None = None
        self._faults: tuple[tuple[int, str], ...] = ()

    def stamp(self) -> tuple[object, ...] | None:
        """Returns what tells one state of the file from another; None where there is none."""
        try:
            status = self._path.lstat() if self._path else None
        except FileNotFoundError:
            return None
        except OSError as error:
            return (str(error),)
        if status is None:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ctime_ns, status.st_ino)

    def found(self) -> Found:
        """Returns the policies in force, or why there are none."""
        stamp = self.stamp()
        if stamp is None or self._path is None:
            return Found(policies=(DEFAULT,))
        if stamp != self._seen:
            self._read(self._path)
            # A change within the grain of the clock would not show: such a file is read again.
            fresh = isinstance(stamp[0], int) and time.time_ns() - stamp[0] < _GRAIN_NS
            self._seen = None if fresh else stamp
        trusted = self._trusted(self._digest)
        if self._policy is None:
            return Found(policies=(), faults=self._faults, digest=self._digest, trusted=trusted)
        policies = (self._policy,) if trusted else (DEFAULT, self._policy)
        return Found(policies=policies, digest=self._digest, trusted=trusted)

    def _read(self, path: Path) -> None:
        from mimo.domain.policy_file import MAX_BYTES, Faulty, parse

        self._policy, self._faults, self._digest = None, (), ""
        try:
            data, _ = files.look(path, limit=MAX_BYTES)
            self._digest = files.digest(data)
            self._policy = parse(data, FILE)
        except Faulty as error:
            self._faults = error.faults
        except (OSError, MindError) as error:
            self._faults = ((1, f"it can't be read: {error}"),)


def invalid(found: Found) -> Denied:
    """Returns the refusal of every call while the file is invalid."""
    line, reason = found.faults[0]
    more = f" (and {len(found.faults) - 1} more)" if len(found.faults) > 1 else ""
    error = Denied(
        f"the policy is invalid, so no tool may be used: {found.told}{more}",
        hint="mend the file; `mind policy check` tells all that is wrong with it",
        details={"file": FILE, "line": line, "fault": reason},
    )
    error.reason = "policy"
    return error
