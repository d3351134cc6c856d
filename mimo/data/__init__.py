"""Data on the disk and from outside: the door for foreign data, and caches."""

from __future__ import annotations

from mimo.data import disk
from mimo.frozen import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


class Schema(NamedTuple):
    """The tables of a cache, see `mimo.data.cache`; here, as that loads SQLite."""

    stem: str
    """The beginning of the file's name."""
    number: int
    """Rises with every change of the tables, or of the meaning of stored values."""
    script: str
    """The statements that create the tables."""

    def path(self, folder: Path, owner: str = "") -> Path:
        """Returns the path of the cache in a folder; `owner` is the user's secret.

        A clone or an archive, whose author does not know the secret, can't contain this name.
        """
        name = f"{self.stem}-v{self.number}"
        key = disk.hmac_sha256(owner.encode("utf-8", "surrogateescape"), name.encode())
        return folder / f"{name}-{key.hex()[:16]}.db"
