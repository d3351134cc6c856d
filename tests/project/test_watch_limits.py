"""The system watches a limited number of folders: then files are compared, and a line reports it.

The limits are real ones, in a user namespace of their own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from mimo.call import Call
from mimo.project.init import init

LIMITED = ("unshare", "-Ur", "sh", "-c", 'echo "$0" > "/proc/sys/user/$1"; shift; exec "$@"')
MIND = (sys.executable, "-m", "mimo")


def limited(limit: str, value: int, *command: str) -> list[str]:
    """Returns the words of a command that runs with a limit."""
    return [*LIMITED, str(value), limit, *command]


def is_possible() -> bool:
    try:
        words = limited("max_inotify_watches", 4, "cat", "/proc/sys/user/max_inotify_watches")
        done = subprocess.run(words, capture_output=True, check=False)
    except OSError:
        return False
    return done.stdout == b"4\n"


pytestmark = pytest.mark.skipif(not is_possible(), reason="no user namespaces, or not Linux")


@pytest.fixture
def environ(call: Call) -> dict[str, str]:
    """The environment of processes, for a project with more folders than are watched."""
    call.mind.home.mkdir(exist_ok=True)
    (call.mind.home / "config.toml").write_text('[embedding]\nencoder = "off"\n', encoding="utf-8")
    for number in range(9):
        (call.mind.folder / "facts" / f"f{number}").mkdir(parents=True)
    init(call.mind.project.root, call.mind.home, now=call.mind.now())
    return os.environ | {"MIND_HOME": str(call.mind.home), "MIND_BACKGROUND": "off"}


def add(call: Call, number: int) -> None:
    text = f"---\nid: n{number}\ntype: fact\n---\nThe kettle {number} is new.\n"
    (call.mind.folder / "facts" / f"f{number}" / "note.md").write_text(text, encoding="utf-8")


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_daemon_compares_the_files(call: Call, environ: dict[str, str]) -> None:
    words = limited("max_inotify_instances", 1, *MIND, "daemon", "run")
    log = call.mind.home / "logs" / "daemon.log"
    with subprocess.Popen(words, env=environ, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: log.exists() and "can't be watched" in log.read_text())
            for number in (7, 8):
                add(call, number)
                until(lambda: call.mind.index.file_count() > number - 7)  # noqa: B023 - called at once
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    assert log.read_text().count("can't be watched") == 1


def test_a_server_compares_the_files(call: Call, environ: dict[str, str]) -> None:
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    words = limited("max_inotify_watches", 6, *MIND, "mcp")
    pipe, root = subprocess.PIPE, call.mind.project.root
    server = subprocess.Popen(words, cwd=root, env=environ, stdin=pipe, stdout=pipe, stderr=pipe)

    def ask(method: str, **params: object) -> Any:
        assert server.stdin
        assert server.stdout
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        server.stdin.write(f"{json.dumps(message)}\n".encode())
        server.stdin.flush()
        return json.loads(server.stdout.readline())["result"]

    ask("initialize", **hello)
    for number in range(1, 4):
        add(call, number)
        listed = ask("tools/call", name="memory", arguments={"operation": "list"})
        assert listed["structuredContent"]["total"] == number
    _, errors = server.communicate()
    assert server.returncode == 0
    assert errors.count(b"can't be watched") == 1
