"""The servers of a team whose memory a user has without a clone, by folder.

`$MIND_HOME/servers.json` is the user's own: only `mind install --url` writes it, so that a cloned
repository can't send the user's token to another server.
"""

from __future__ import annotations

from pathlib import Path

from mimo.data import disk
from mimo.data.failures import failure
from mimo.data.state import StateFile
from mimo.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
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


def _decoded(data: Any) -> tuple[dict[str, str], dict[str, str]]:
    servers, token_files = dict(data["servers"]), dict(data.get("token_files", {}))
    if not all(isinstance(text, str) for text in (*servers.values(), *token_files.values())):
        raise TypeError("`servers` and `token_files` must have texts")
    return servers, token_files


_FILE = StateFile(_decoded, hint="correct it or remove it")


def assign(home: Path, folder: str, url: str | None, token_file: Path | None = None) -> None:
    """Names the server of a folder, or of all if it is empty; None removes it.

    The file with the server's token, if it is named, stays until no folder has that server. Raises
    `StorageFailed`.
    """
    previous = _FILE.read(home, FILE) or ({}, {})
    servers = {name: place for name, place in previous[0].items() if name != folder}
    token_files = dict(previous[1])
    if url is not None:
        servers[folder] = url
        if token_file:
            token_files[url] = str(token_file)
    token_files = {url: path for url, path in token_files.items() if url in servers.values()}
    if (servers, token_files) != previous:
        _FILE.write(home, FILE, {"servers": servers, "token_files": token_files})


def _token_in(path: Path) -> str:
    """Returns the token in a file. Raises `Invalid`, also if others can read it."""
    try:
        (token,) = disk.read(path, limit=16_384).decode("ascii").split()
        status = path.stat()
    except OSError as error:
        raise failure("read", path, error) from error
    except ValueError:
        raise Invalid(f"`{path}` does not contain a token") from None
    if not token.isprintable():
        raise Invalid(f"`{path}` does not contain a token")
    if disk.is_foreign(status) or status.st_mode & disk.OTHERS:
        raise Invalid(f"other users can read or change `{path}`", hint=f"chmod 600 {path}")
    return token


def token_of(home: Path, url: str, environ: Mapping[str, str], file: Path | None = None) -> str:
    """Returns the token for a server: that of a new file, the variable, or the file named before.

    Empty without one. Raises `Invalid` and `StorageFailed`.
    """
    _, token_files = _FILE.read(home, FILE) or ({}, {})
    token = environ.get(TOKEN, "")
    if file is None and not token and url in token_files:
        file = Path(token_files[url])
    return _token_in(file) if file else token


def of_folder(home: Path, folder: Path) -> str | None:
    """Returns the server of a folder, which may be named for one above it or for all.

    Raises `StorageFailed`.
    """
    servers, _ = _FILE.read(home, FILE) or ({}, {})
    paths = [str(path) for path in (folder, *folder.parents)]
    return next((servers[path] for path in (*paths, "") if path in servers), None)
