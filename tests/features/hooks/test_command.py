"""`mind hook` as clients run it: through pipes, with broken input and broken files."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.data.sqlite import Connection
from mimo.features.hooks import command, exposure, scene
from mimo.memory.model import Kind
from mimo.operations import overview, saving
from tests.kit import environment, repository


def run(
    data: bytes | None, *argv: str, cwd: Path, **env: str
) -> "subprocess.CompletedProcess[Any]":
    """Runs `mind hook` with `data` on standard input; None closes it before it begins."""
    command = [sys.executable, "-m", "mimo", "hook", *argv]
    if data is None:
        command = ["sh", "-c", 'exec "$0" "$@" <&-', *command]
    return subprocess.run(
        command,
        input=data,
        stdin=subprocess.DEVNULL if data is None else None,
        capture_output=True,
        cwd=cwd,
        env=environment(**env),
        check=False,
        timeout=60,
    )


def payload(project: Path, name: str, **fields: Any) -> bytes:
    event = {"session_id": "s1", "cwd": str(project), "hook_event_name": name} | fields
    return json.dumps(event).encode()


def logged(call: Call) -> str:
    path = scene.log_path(call.mind.home)
    return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.fixture
def filled(call: Call) -> Call:
    """A memory that holds a decision and an edge."""
    saving.store(call, saving.draft(Kind.DECISION, "Use JWT for auth"))
    detection = {"detection": {"code": ["import jwt"]}}
    saving.store(call, saving.draft(Kind.EDGE, "Old tokens", title="Old jwt", extra=detection))
    call.mind.close()
    return call


def test_the_answer_is_one_json_object(filled: Call, project: Path) -> None:
    done = run(payload(project, "SessionStart", source="startup"), "claude-code", cwd=project)

    assert (done.returncode, done.stderr) == (0, b"")
    answer = json.loads(done.stdout)
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "Use JWT for auth" in answer["hookSpecificOutput"]["additionalContext"]
    assert done.stdout.count(b"\n") == 1
    assert done.stdout.isascii()


@pytest.mark.req("004-50")
@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"])
def test_no_moment_imports_heavy_modules_or_ends_with_a_garbage_collection(
    filled: Call, project: Path, name: str
) -> None:
    tell = (
        "import gc, sys; sys.argv = ['mind', 'hook']\n"
        "from mimo.__main__ import main\n"
        "status = main()\n"
        "assert gc.get_freeze_count() > 0\n"
        "print(status, *sys.modules, file=sys.stderr)\n"
    )
    fields = {
        "source": "startup",
        "prompt": "use JWT for auth?",
        "tool_input": {"file_path": "a.py", "content": "import jwt\n"},
        "last_assistant_message": "Done.",
    }
    done = subprocess.run(
        [sys.executable, "-c", tell],
        input=payload(project, name, **fields),
        capture_output=True,
        cwd=project,
        env=environment(),
        check=True,
    )
    status, *modules = done.stderr.decode().split()
    heavy = (
        "asyncio click dataclasses model2vec numpy rich tempfile subprocess tomllib"
        " typing usearch yaml".split()
    )
    assert status == "0"
    assert (b"Old jwt" in done.stdout) == (name in ("SessionStart", "PreToolUse"))
    assert not sorted(set(heavy) & set(modules))
    assert not {"mimo.mind", "mimo.memory.model", "mimo.index.index"} & set(modules)


BROKEN = {
    "nothing": b"",
    "blanks": b" \n\n ",
    "no JSON": b"hello",
    "half an object": b'{"session_id": "s1", ',
    "a list": b"[]",
    "a number": b"7",
    "no UTF-8": b'{"prompt": "\xff\xfe"}',
    "a NUL": b"\x00",
    "deeply nested": b"[" * 100_000,
    "lone surrogates": b'{"hook_event_name": "UserPromptSubmit", "prompt": "\\ud800", "cwd": "."}',
    "wrong types": b'{"hook_event_name": 7, "cwd": [], "session_id": {}, "tool_input": "x"}',
    "an unknown event": b'{"hook_event_name": "Whatever", "cwd": "/"}',
}


@pytest.fixture
def answered(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., bytes]:
    """Returns a function that answers bytes in this process, and returns what is printed."""

    def answer(data: bytes, client: str = "claude-code", **variables: str) -> bytes:
        with monkeypatch.context() as patched:
            patched.setattr(command, "_read", lambda _: data)
            for name, value in variables.items():
                patched.setenv(name, value)
            assert command.main([client]) == 0
        printed = capfdbinary.readouterr()
        assert printed.err == b""
        return printed.out

    return answer


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_broken_input_exits_with_0_and_prints_nothing(
    filled: Call, answered: Callable[..., bytes], data: bytes
) -> None:
    assert answered(data) == b""
    assert logged(filled).count("\n") <= 1


def test_a_failure_is_a_line_in_the_log(filled: Call, project: Path) -> None:
    prompt = b'{"hook_event_name": "UserPromptSubmit", "prompt": "' + b"x" * (1 << 20) + b'"}'
    for data in (b"{broken", prompt):
        done = run(data, "claude-code", cwd=project)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    first, second = logged(filled).splitlines()
    assert "failed: DataError: line 1, column 2: expecting property name" in first
    assert "failed: ValueError: more than 1 MiB" in second


def test_a_closed_standard_input_is_no_error(filled: Call, project: Path) -> None:
    done = run(None, "claude-code", cwd=project)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_closed_standard_output_is_no_error(filled: Call, project: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-m", "mimo", "hook"],
        input=payload(project, "SessionStart", source="startup"),
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_endless_standard_input_times_out(filled: Call, project: Path) -> None:
    read, write = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mimo", "hook"],
            stdin=read,
            capture_output=True,
            cwd=project,
            env=environment(),
            check=False,
            timeout=30,
        )
    finally:
        os.close(read)
        os.close(write)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "did not end in time" in logged(filled)


def test_a_prompt_of_nearly_a_mebibyte_is_answered(filled: Call, project: Path) -> None:
    prompt = "Use JWT for auth? " + "x " * 500_000
    done = run(payload(project, "UserPromptSubmit", prompt=prompt), cwd=project)
    assert (done.returncode, done.stderr) == (0, b"")
    assert exposure.read(project) is not None


@pytest.mark.parametrize("other", ["/proc/nowhere", "/dev/null/home", ""])
def test_an_unusable_home_is_not_an_error(
    filled: Call, project: Path, answered: Callable[..., bytes], other: str
) -> None:
    data = payload(project, "SessionStart", source="startup")
    answered(data, MIND_HOME=other, HOME="/proc/nowhere")


def test_in_a_read_only_project_only_the_start_is_answered(
    filled: Call, project: Path, answered: Callable[..., bytes]
) -> None:
    repository(project)
    filled.mind.trust.approve(record.place.approval for record in overview.everything(filled))
    local = project / ".mind" / ".local"
    local.rename(project / "aside")
    local.write_text("a file in its place", encoding="utf-8")
    assert b"Use JWT for auth" in answered(payload(project, "SessionStart", source="startup"))
    assert answered(payload(project, "UserPromptSubmit", prompt="use JWT for auth?")) == b""
    assert "no answer" in logged(filled)


def test_concurrent_hooks_give_a_note_once(filled: Call, project: Path) -> None:
    data = payload(project, "UserPromptSubmit", prompt="should we use JWT for auth?")
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: run(data, cwd=project), range(4)))
    assert [process.returncode for process in done] == [0] * 4
    assert sum(b"Use JWT" in process.stdout for process in done) == 1


@pytest.mark.attack("a lock delays a hook")
def test_hook_waits_for_locked_approvals_only_as_long_as_a_hook_may(
    filled: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wait is shortened to what is left, and none is left after the first."""
    monkeypatch.setattr(command, "WAIT_SECONDS", 0.05)
    waits: list[float] = []
    waiting = Connection.waiting

    def noted(connection: Connection, seconds: float) -> AbstractContextManager[None]:
        waits.append(seconds)
        return waiting(connection, seconds)

    monkeypatch.setattr(Connection, "waiting", noted)
    data = payload(project, "UserPromptSubmit", prompt="use JWT for auth?")
    monkeypatch.setattr(command, "_read", lambda _: data)
    monkeypatch.setenv("MIND_HOME", str(filled.mind.home))
    filled.mind.close()
    with closing(sqlite3.connect(filled.mind.home / "trust.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert command.main(["claude-code"]) == 0
    assert 0.0 < max(waits) <= 0.05


def test_help_describes_the_command(project: Path) -> None:
    done = run(b"", "--help", cwd=project)
    assert done.returncode == 0
    assert b"clients" in done.stdout or b"client" in done.stdout


@pytest.mark.parametrize("variable", ["COPILOT_PROJECT_DIR", "GEMINI_PROJECT_DIR"])
def test_a_client_that_runs_the_hooks_of_another_is_answered_in_its_own_format(
    filled: Call, project: Path, answered: Callable[..., bytes], variable: str
) -> None:
    start = payload(project, "SessionStart", source="startup", timestamp="2026-11-20T15:30:00Z")
    answer = json.loads(answered(start, **{variable: str(project)}))
    given = answer if variable.startswith("COPILOT") else answer["hookSpecificOutput"]
    assert "Use JWT for auth" in given["additionalContext"]
