"""No command leaves a process behind, unless the user starts one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.stores import MIND, note
from tests.kit import environment, repository

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
MESSAGES = (
    {"method": "initialize", "id": 1, "params": HELLO},
    {"method": "notifications/initialized"},
    {
        "method": "tools/call",
        "id": 2,
        "params": {"name": "mind_search", "arguments": {"query": "uploads"}},
    },
)
SERVED = "".join(f"{json.dumps({'jsonrpc': '2.0', **message})}\n" for message in MESSAGES)
PROMPT = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "why do uploads fail?"})


def processes(home: Path) -> list[int]:
    """Returns the processes that have a home of mind in their environment."""
    named = f"MIND_HOME={home}".encode()
    running = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if named in (entry / "environ").read_bytes().split(b"\0"):
                    running.append(int(entry.name))
            except OSError:  # It has ended, or is another user's.
                continue
    return running


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_command_leaves_a_process(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "shop"
    root.mkdir()
    repository(root)
    environ = {
        **{key: value for key, value in os.environ.items() if key != "MIND_BACKGROUND"},
        "HOME": str(tmp_path),
        "MIND_HOME": str(home),
    }
    (root / "notes.txt").write_text("\n\n".join(map(note, range(9))), encoding="utf-8")
    (root / "vault").mkdir()
    for number in range(50):
        (root / "vault" / f"n{number}.md").write_text(note(number), encoding="utf-8")

    output = ""
    for words, given in (
        (["init"], ""),
        (["ingest", "vault"], ""),
        (["ingest", "notes.txt"], ""),
        (["search", "why", "do", "uploads", "fail"], ""),
        (["recall", "uploads"], ""),
        (["add", "The proxy cuts bodies above 8 MB"], ""),
        (["list"], ""),
        (["edges", "check", "cut the proxy"], ""),
        (["context", "write"], ""),
        (["hook"], PROMPT),
        (["mcp"], SERVED),
        (["sync"], ""),
        (["status"], ""),
        (["doctor"], ""),
        (["index"], ""),
    ):
        ran = subprocess.run(
            [*MIND, *words],
            check=False,
            cwd=root,
            env=environ,
            input=given,
            capture_output=True,
            text=True,
        )
        assert processes(home) == [], words
        assert "Traceback" not in ran.stderr, words
        output = ran.stdout
    assert "read for their meaning" in output  # The searches have left some.

    try:
        subprocess.run([*MIND, "daemon", "start"], cwd=root, env=environ, check=True)
        (pid,) = processes(home)
        words = [*MIND, "status", "--json"]
        shown = subprocess.run(words, cwd=root, env=environ, check=True, capture_output=True)
        (row,) = json.loads(shown.stdout)["running"]
        assert (row["kind"], row["pid"]) == ("daemon", pid)
    finally:
        subprocess.run([*MIND, "daemon", "stop"], cwd=root, env=environ, check=True)
    end = time.monotonic() + 60
    while processes(home) and time.monotonic() < end:  # It releases its lock before it has ended.
        time.sleep(0.05)
    assert processes(home) == []


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["mcp"], "clients start this MCP server; `mind install` adds it to one; Ctrl-C ends it"),
        (["daemon", "run"], "until Ctrl-C; `mind daemon start` starts it in the background"),
    ],
)
def test_a_program_that_waits_states_on_a_terminal_what_it_is(
    words: list[str], end: str, tmp_path: Path
) -> None:
    screen, terminal = os.openpty()
    with (
        os.fdopen(screen, encoding="utf-8") as shown,
        subprocess.Popen(
            [*MIND, *words], cwd=tmp_path, env=environment(), stdin=terminal, stderr=terminal
        ) as process,
    ):
        line = shown.readline()
        process.send_signal(signal.SIGINT)
    os.close(terminal)
    assert line.endswith(f"{end}\n")
