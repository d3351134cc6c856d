"""The servers of a team whose memory a user has without a clone, by folder.

`$MIND_HOME/servers.json` is the user's own: only `mind install --url` writes it, so that a cloned
repository can't send the user's token to another server.
"""

from __future__ import annotations

from pathlib import Path

from mimo.data.state import StateFile
from mimo.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOKEN = "MIND_TOKEN"  # noqa: S105 - the name of a variable
FILE = "servers.json"

_URL = (
    r"(?:https://[A-Za-z0-9.\-\[\]:]+|http://(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?)"
    r"/mcp(?:/[^/?#\s\"'\\]+)?"
)


def checked(url: str) -> str:
    """Returns the address of a server of mind. Raises `Invalid`."""
    import re

    if not re.fullmatch(_URL, url):
        raise Invalid(
            f"`{url}` is not the address of a team's server",
            hint="such as https://mind.example.org/mcp/PROJECT; a token needs https",
        )
    return url


def _decoded(data: Any) -> dict[str, str]:
    if not all(isinstance(url, str) for url in data["servers"].values()):
        raise TypeError("`servers` must have texts")
    return dict(data["servers"])


_FILE = StateFile(_decoded, hint="correct it or remove it")


def assign(home: Path, folder: str, url: str | None) -> None:
    """Names the server of a folder, or of all if it is empty; None removes it.

    Raises `StorageFailed`.
    """
    servers = _FILE.read(home, FILE) or {}
    changed = {name: place for name, place in servers.items() if name != folder}
    if url is not None:
        changed[folder] = url
    if changed != servers:
        _FILE.write(home, FILE, {"servers": changed})


def of_folder(home: Path, folder: Path) -> str | None:
    """Returns the server of a folder, which may be named for one above it or for all.

    Raises `StorageFailed`.
    """
    servers = _FILE.read(home, FILE) or {}
    paths = [str(path) for path in (folder, *folder.parents)]
    return next((servers[path] for path in (*paths, "") if path in servers), None)
