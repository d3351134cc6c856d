"""Items that the user has reviewed and left as they are: `.mind/.local/reviewed-…`.

One SHA-256 a line, of an item. The rest of the name is made with the user's secret: a list that
came with a clone hides nothing from the review.
"""

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from mimo.store import files
from mimo.store.locking import lock
from mimo.store.place import own_name

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Reviewed:
    """The items of a review that are not to be shown again as they are."""

    def __init__(self, root: Path, owner: str) -> None:
        """Take the project's root and the secret of its user; nothing is read yet."""
        self._folder = root / ".mind" / ".local"
        self._path = self._folder / own_name("reviewed", owner)

    def keys(self) -> frozenset[str]:
        """Returns what was kept; nothing where that can't be read."""
        try:
            text = files.read(self._path).decode("ascii", "replace")
        except OSError:
            return frozenset()
        return frozenset(line for line in text.split() if _DIGEST.fullmatch(line))

    def add(self, key: str) -> None:
        """Keeps one. Raises `StorageFailed`."""
        with self._locked():
            self._write(self.keys() | {key})

    def remove(self, key: str) -> None:
        """Lets one be shown again. Raises `StorageFailed`."""
        with self._locked():
            self._write(self.keys() - {key})

    def _write(self, keys: Iterable[str]) -> None:
        data = "".join(f"{one}\n" for one in sorted(keys)).encode()
        files.replace(self._path, data, mode=0o600)

    def _locked(self) -> AbstractContextManager[None]:
        return lock(self._folder / "reviewed.lock")
