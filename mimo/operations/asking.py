"""Asking a running server of mind, which has the index and the models in memory.

A server of the user listens on a socket in `$MIND_HOME/run/`. It answers short commands as the
command itself would, and a program that gets no answer in time does its work itself. This is the
half of the program that asks: it loads nothing of mind, because it must take a few milliseconds.

A connection has three lines of JSON: the server's greeting, a request, and the reply. The program
then sends `TAKEN`, and the server records the call and closes the connection.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from mimo import BUILD, __version__
from mimo.data.loads import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import Any

GREETING = {"mind": __version__, "protocol": 2, "build": BUILD}
"""The first line of a server. A server with another one is not asked: it has other code."""

OFF = "MIND_SOCKET"
"""The variable that is `off` if no server is to be asked."""

TAKEN = b"\n"
"""Sent if the reply came in time: a program without one does the work, and records it, itself."""

MOST_REQUEST = 64 * 1024
"""The maximum length of a request, and of a greeting, which has a path."""
MOST_REPLY = 8 * 1024 * 1024
MOST_PATH = 100
"""The maximum length of a socket's path; systems allow 104 to 108 bytes."""

CONNECT_SECONDS = 0.05
GREETING_SECONDS = 0.15
ANSWER_SECONDS = 2.0
RECORD_SECONDS = 1.0

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

SHARED = ("HOME", "TZ", "SANDBOX_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE")
"""Variables that must be the same in a server, beside those of `PREFIX`."""

PREFIX = "MIND_"
OWN = frozenset(
    "MIND_HOME MIND_PROJECT MIND_SESSION_ID MIND_EXPOSURE MIND_SOCKET MIND_DEBUG"
    " MIND_TOKENS_USED MIND_USD_SPENT".split()
)
"""Variables of mind that may be different.

They concern the calling process alone, or are compared as folders: the home and the project.
"""

_BY_FILE = "/proc/self/fd/{}/{}"


def folder_of(home: str) -> str:
    """Returns the folder of the sockets of a home."""
    return f"{home}/run"


def name_of(root: str) -> str:
    """Returns the name of the socket of a project, the same by whichever path it is reached.

    Raises `OSError`.
    """
    status = os.lstat(f"{root}/.mind")
    return f"{status.st_dev:x}-{status.st_ino:x}"


def is_private(folder: str) -> bool:
    """Returns whether a folder is the user's own, and only the user can read or change it."""
    with suppress(OSError):
        status = os.lstat(folder)
        is_folder = status.st_mode & 0o170000 == 0o040000
        return is_folder and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return False


def is_own(peer: _socket.socket) -> bool:
    """Returns whether the process at the other end of a connection is of the same user."""
    import _socket
    import struct

    with suppress(OSError, struct.error):
        if hasattr(_socket, "SO_PEERCRED"):
            data = peer.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
            return bool(struct.unpack("3i", data)[1] == os.geteuid())
        if sys.platform == "darwin":
            data = peer.getsockopt(0, 1, 76)  # LOCAL_PEERCRED: the version, then the user
            return bool(struct.unpack("2I", data[:8]) == (0, os.geteuid()))
    return False


def addressed(folder: str, name: str) -> tuple[str, int | None]:
    """Returns the address of a socket, and a descriptor to close after its use.

    A path that is too long for the system is named by the descriptor of its folder. Raises
    `OSError`.
    """
    path = f"{folder}/{name}"
    if len(os.fsencode(path)) <= MOST_PATH:
        return path, None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return _BY_FILE.format(descriptor, name), descriptor


def ask(
    home: str, root: str, request: Mapping[str, Any], seconds: float = ANSWER_SECONDS
) -> dict[str, Any] | None:
    """Returns the reply of the server of a project; None if there is none, or it fails."""
    folder = folder_of(home)
    try:
        name = name_of(root)
        os.lstat(f"{folder}/{name}")
    except OSError:
        return None
    if os.environ.get(OFF) == "off" or not is_private(folder):
        return None
    try:
        return _asked(folder, name, request, seconds)
    except (OSError, ValueError):
        return None


def _asked(
    folder: str, name: str, request: Mapping[str, Any], seconds: float
) -> dict[str, Any] | None:
    import _socket
    import json

    data = f"{json.dumps(request)}\n".encode("ascii")
    if len(data) > MOST_REQUEST:
        return None
    peer = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        peer.settimeout(CONNECT_SECONDS)
        address, descriptor = addressed(folder, name)
        try:
            peer.connect(address)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        if not is_own(peer):
            return None
        if loads(line(peer, GREETING_SECONDS, MOST_REQUEST)) != GREETING:
            return None
        peer.sendall(data)
        reply = loads(line(peer, seconds, MOST_REPLY))
        if not isinstance(reply, dict) or "no" in reply:
            return None
        peer.sendall(TAKEN)
        peer.settimeout(RECORD_SECONDS)
        with suppress(OSError):
            peer.recv(1)
    finally:
        peer.close()
    return reply


def line(peer: _socket.socket, seconds: float, most: int) -> bytes:
    """Returns the next line, which nothing follows yet.

    Raises `OSError` if it does not end in time, and `ValueError` if it is too long or incomplete.
    """
    import time

    deadline = time.monotonic() + seconds
    data = b""
    while not data.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        peer.settimeout(left)
        part = peer.recv(1024 * 1024)
        data += part
        if not part or len(data) > most:
            raise ValueError("not a whole line")
    return data


def surroundings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Returns the variables and the time zone that an answer may depend on."""
    import time

    names = {NAMED, *MARKS, *SHARED}
    given = {k: v for k, v in environ.items() if k in names or k.startswith(PREFIX)}
    return {"environ": given, "zone": [time.timezone, time.altzone, *time.tzname]}


def shared(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that must be the same in a server and in the process that asks."""
    return {
        name: value
        for name, value in environ.items()
        if name in SHARED or (name.startswith(PREFIX) and name not in OWN)
    }


def agent_of(environ: Mapping[str, str]) -> str | None:
    """Returns the name of the agent whose shell runs this program, or None for a user's shell."""
    named = environ.get(NAMED, "")
    named = "".join(sign for sign in named if sign.isalnum() or sign in "_.@/-")[:64]
    return named or next((name for mark, name in MARKS.items() if environ.get(mark)), None)
