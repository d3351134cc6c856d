"""Parts that Windows lacks, tried on this system: no fcntl, no calls and flags of POSIX; also CRLF.

A real Windows is not part of this: its paths, its locks on open files and its processes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mimo.data import locks
from mimo.errors import StorageFailed
from tests.kit import memory, put

SCRIPT = """
import asyncio, fcntl, io, json, os, pathlib, secrets, shutil, sqlite3, subprocess, sys, tempfile
import types
from contextlib import redirect_stdout
from multiprocessing import process

class msvcrt(types.ModuleType):
    LK_NBLCK = 2
    flock, exclusive = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB

    @classmethod
    def locking(cls, descriptor, mode, size):
        assert os.lseek(descriptor, 0, os.SEEK_CUR) > 1_000_000, "a byte that others read"
        try:
            cls.flock(descriptor, cls.exclusive)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

sys.modules["msvcrt"] = msvcrt
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in (
    "fchmod fdatasync geteuid getuid getegid getgid killpg lockf mkfifo pread pwrite setsid "
    "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK"
).split():
    delattr(os, name)

from mimo.cli.main import main

answers = []
for words in json.loads(sys.argv[1]):
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out:
        status = main([*words, "--json"])
    out.flush()
    answers.append([status, out.buffer.getvalue().decode()])
print(json.dumps(answers))
"""


def run_all(project: Path, home: Path, *lines: tuple[str, ...]) -> list[tuple[int, str]]:
    """Returns the status and the output of command lines in one process without POSIX."""
    variables = {**os.environ, "MIND_HOME": str(home), "HOME": str(home.parent)}
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", SCRIPT, json.dumps(lines)],
        cwd=project,
        env=variables,
        input="",
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(status, out) for status, out in json.loads(done.stdout)]


def test_memories_are_stored_found_and_checked_without_posix(tmp_path):
    project, home = tmp_path / "project", tmp_path / "home"
    text = memory("crlf", "Deploy on Mondays", more="tags: [ops]\n").replace("\n", "\r\n")
    project.mkdir()
    run_all(project, home, ("init",))
    file = put(project / ".mind/facts/crlf.md", "")
    file.write_bytes(text.encode())

    answers = run_all(
        project,
        home,
        ("add", "Always use pnpm"),
        ("search", "pnpm"),
        ("edit", "crlf", "--add-tag", "weekly"),
        ("tags",),
        ("rm", "crlf"),
        ("undo",),
        ("list",),
        ("doctor",),
        ("tags", "rename", "ops", "deploy"),
        ("value", "put", "agent.x", "key", "1"),
        ("value", "get", "agent.x", "key"),
        ("context", "write"),
        ("export", "--output", "../export"),
        ("review",),
        ("status",),
        ("ingest", "CLAUDE.md"),
    )

    assert [status for status, _ in answers] == [0] * (len(answers) - 1) + [2], answers
    assert {row["title"] for row in json.loads(answers[6][1])["memories"]} == {
        "Always use pnpm",
        "Deploy on Mondays",
    }
    assert b"\n" not in file.read_bytes().replace(b"\r\n", b"")
    assert b"weekly" in file.read_bytes()


def test_a_lock_excludes_without_posix(tmp_path, monkeypatch):
    holders: set[tuple[int, int]] = set()

    class Locking:
        LK_NBLCK = 2

        @staticmethod
        def locking(descriptor: int, _mode: int, _size: int) -> None:
            status = os.fstat(descriptor)
            if (status.st_dev, status.st_ino) in holders:
                raise PermissionError(13, "Permission denied")
            holders.add((status.st_dev, status.st_ino))

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", Locking)

    with locks.lock(tmp_path / "lock"), pytest.raises(StorageFailed, match="process"):
        locks.lock(tmp_path / "lock", wait=0).__enter__()

    assert (tmp_path / "lock").read_text().split() == [str(os.getpid())]
