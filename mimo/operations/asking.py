"""Asking a running server of mind, which has the index and the models in memory.

A server of the user listens on a socket in `$MIND_HOME/run/`, which only the user can reach. A
program that gets no answer in time does its work itself. This half loads nothing of mind, because
it must take a few milliseconds.

A connection has three lines of JSON: the server's greeting, a request, and the reply.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from mimo import BUILD, __version__
from mimo.data.loads import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import Any

GREETING = {"mind": __version__, "protocol": 3, "build": BUILD}
"""The first line of a server. A server with another one is not asked: it has other code."""

OFF = "MIND_SOCKET"
"""The variable that is `off` if no server is to be asked."""

MOST_REQUEST = 64 * 1024
"""The maximum length of a request, and of a greeting, which has a path."""
MOST_REPLY = 8 * 1024 * 1024
GREETING_SECONDS = 0.15
ANSWER_SECONDS = 2.0

NAMED = "AI_AGENT"
"""A variable that holds the name of the agent whose shell runs the program."""

MARKS = {
    "CLAUDECODE": "claude-code",
    "CODEX_SANDBOX": "codex",
    "CODEX_THREAD_ID": "codex",
    "CODEX_CI": "codex",
    "CURSOR_AGENT": "cursor",
    "GEMINI_CLI": "gemini-cli",
    "OPENCODE": "opencode",
    "AUGMENT_AGENT": "augment",
    "CLINE_ACTIVE": "cline",
    "GOOSE_TERMINAL": "goose",
}
"""Variables that agents set for the programs they run, each with the agent's name."""

_SHARED = ("HOME", "TZ", "SANDBOX_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE")
"""Variables that must be the same in a server, beside those of `_PREFIX`."""

_PREFIX = "MIND_"
_OWN = frozenset(
    "MIND_HOME MIND_PROJECT MIND_SESSION_ID MIND_EXPOSURE MIND_SOCKET MIND_DEBUG"
    " MIND_TOKENS_USED MIND_USD_SPENT".split()
)
"""Variables of mind that concern the calling process alone, or are compared as folders."""


def folder_of(home: str) -> str:
    """Returns the folder of the sockets of a home."""
    return f"{home}/run"


def name_of(root: str) -> str:
    """Returns the name of the socket of a project, equal for all its paths. Raises `OSError`."""
    status = os.lstat(f"{root}/.mind")
    return f"{status.st_dev:x}-{status.st_ino:x}"


def is_private(folder: str) -> bool:
    """Returns whether a folder is the user's own, and only the user can read or change it."""
    with suppress(OSError):
        status = os.lstat(folder)
        is_folder = status.st_mode & 0o170000 == 0o040000
        return is_folder and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return False


def ask(
    home: str, root: str, request: Mapping[str, Any], seconds: float = ANSWER_SECONDS
) -> dict[str, Any] | None:
    """Returns the reply of the server of a project; None if there is none, or it fails."""
    folder = folder_of(home)
    with suppress(OSError, ValueError):
        path = f"{folder}/{name_of(root)}"
        os.lstat(path)
        if os.environ.get(OFF) != "off" and is_private(folder):
            return _asked(path, request, seconds)
    return None


def _asked(path: str, request: Mapping[str, Any], seconds: float) -> dict[str, Any] | None:
    import _socket
    import json

    data = f"{json.dumps(request)}\n".encode("ascii")
    peer = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        peer.settimeout(GREETING_SECONDS)
        peer.connect(path)
        if loads(line(peer, GREETING_SECONDS, MOST_REQUEST)) != GREETING:
            return None
        peer.sendall(data)
        reply = loads(line(peer, seconds, MOST_REPLY))
    finally:
        peer.close()
    return reply if isinstance(reply, dict) and "no" not in reply else None


def line(peer: _socket.socket, seconds: float, limit: int) -> bytes:
    """Returns the next line, which nothing follows yet.

    Raises `OSError` if it does not end in time, and `ValueError` if it is too long or incomplete.
    """
    import time

    deadline = time.monotonic() + seconds
    data = b""
    while not data.endswith(b"\n"):
        peer.settimeout(max(0.001, deadline - time.monotonic()))
        part = peer.recv(1024 * 1024)
        data += part
        if not part or len(data) > limit:
            raise ValueError("not a complete line")
    return data


def surroundings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Returns the variables and the time zone that an answer may depend on."""
    import time

    sent = {k: v for k, v in environ.items() if k in _SHARED or k.startswith(_PREFIX)}
    return {"environ": sent, "zone": [time.timezone, time.altzone, *time.tzname]}


def shared(request: Mapping[str, Any]) -> tuple[dict[str, str], object]:
    """Returns those of `surroundings` that must be the same in a server and in who asks it."""
    environ = request["environ"]
    return {name: environ[name] for name in environ if name not in _OWN}, request["zone"]


def agent_of(environ: Mapping[str, str]) -> str | None:
    """Returns the name of the agent whose shell runs this program, or None for a user's shell."""
    named = environ.get(NAMED, "")
    named = "".join(sign for sign in named if sign.isalnum() or sign in "_.@/-")[:64]
    return named or next((name for mark, name in MARKS.items() if environ.get(mark)), None)
