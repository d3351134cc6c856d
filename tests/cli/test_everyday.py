"""The command line on a real project: the editor, completions, the terminal, a full disk."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.cli.completing import candidates, completions
from mimo.cli.main import main
from mimo.mind import Mind
from tests import privacy_fakes
from tests.kit import put

ROOT = Path(__file__).parent.parent.parent
IDENTITY = "decision_auth_20261101_aaaaaa"
TEXT = f"""---
id: {IDENTITY}
type: decision   # kept as it is
tags: [auth, security]
created: 2026-11-01T08:00:00Z
---
Use JWT with refresh tokens.
"""


@pytest.fixture
def memory(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of one memory in the project that is the working directory."""
    monkeypatch.chdir(project)
    return put(project / ".mind" / "decisions" / f"{IDENTITY}.md", TEXT)


@pytest.fixture
def edit(memory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs `mind edit` with an editor that runs a line of Python on the text."""
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def run(line: str, id: str = "aaaaaa") -> int:
        script = tmp_path / "editor.py"
        script.write_text(
            "import pathlib, sys\n"
            "path = pathlib.Path(sys.argv[1])\n"
            "text = path.read_bytes().decode()\n"
            f"{line}\n"
            "path.write_bytes(text.encode())\n",
            encoding="utf-8",
        )
        monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
        return main(["edit", id])

    return run


def test_an_interrupt_is_left_to_the_editor(edit: Any, memory: Path) -> None:
    """Ctrl-C reaches both; an editor such as `ed` stays open, and its text is stored later."""
    interrupt = "import os, signal; os.kill(os.getppid(), signal.SIGINT)"

    assert edit(f"{interrupt}; text = text.replace('JWT', 'PASETO')") == 0

    assert memory.read_text(encoding="utf-8") == TEXT.replace("JWT", "PASETO")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_draft_that_cant_be_written_is_reported(
    edit: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(**_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    assert edit("") == 1
    message = capsys.readouterr().err
    assert "can't write `the draft`" in message


def test_a_typed_secret_is_refused_and_the_text_stays_in_a_draft(
    edit: Any, memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = privacy_fakes.TOKENS["github_token"][0](privacy_fakes.Draw(1))

    assert edit(f"text += 'a long thought and {token}\\n'") == 1

    assert memory.read_text(encoding="utf-8") == TEXT
    (draft,) = tmp_path.glob("mind-*/draft.md")
    assert draft.read_text(encoding="utf-8") == f"{TEXT}a long thought and {token}\n"
    message = capsys.readouterr().err
    assert "`file_text` holds a secret on line 8: github_token" in message
    assert f"your text is in {draft}" in message
    assert token not in message


def test_completions_come_from_the_index(memory: Path) -> None:
    assert candidates("id", "dec", None) == []
    assert main(["list"]) == 0

    assert candidates("id", "dec", None) == [(IDENTITY, "Use JWT with refresh tokens.")] or [
        word for word, _ in candidates("id", "dec", None)
    ] == [IDENTITY]
    assert candidates("id", "x", None) == []
    assert candidates("tag", "", str(memory.parent.parent.parent)) == [
        ("auth", ""),
        ("security", ""),
    ]
    assert ("learning", "the same as insight") in candidates("type", "l", None)
    assert [word for word, _ in candidates("setting", "hook.", None)] == [
        "hook.context",
        "hook.edges",
        "hook.summaries",
        "hook.capture",
    ]


def test_a_damaged_index_completes_nothing(memory: Path) -> None:
    assert main(["list"]) == 0
    assert candidates("tag", "", None) != []
    (index,) = (memory.parents[1] / ".index").glob("index-v*.db")
    index.write_bytes(index.read_bytes()[:4096] + b"damage" * 10_000)

    assert candidates("tag", "", None) == []
    assert main(["list"]) == 0
    assert candidates("tag", "", None) != []


def test_ids_of_the_users_memory_are_completed_for_commands_that_take_them(
    memory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list"]) == 0
    capsys.readouterr()
    assert main(["add", "--user", "Always use pnpm", "--json"]) == 0
    id = json.loads(capsys.readouterr().out)["id"]
    assert main(["list", "--user"]) == 0
    own, users = "aaaaaa\tUse JWT with refresh tokens.", f"{id[-6:]}\tAlways use pnpm"

    assert completions(all_commands(), ["show", ""]) == [own, users]
    assert completions(all_commands(), ["edit", "fact_"]) == [f"{id}\tAlways use pnpm"]
    assert completions(all_commands(), ["log", ""]) == [own]
    monkeypatch.chdir(tmp_path)
    assert completions(all_commands(), ["rm", ""]) == [users]
    assert completions(all_commands(), ["log", ""]) == []


def test_completions_never_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert candidates("id", "", None) == []
    assert candidates("id", "", str(tmp_path / "nowhere")) == []


def call(*argv: str, **settings: Any) -> "subprocess.CompletedProcess[bytes]":
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mimo", *argv]
    return subprocess.run(command, env=env, check=False, **settings)


@pytest.mark.parametrize("line", ["list --json", "--version", "list --help", "mcp"])
def test_a_closed_pipe_ends_the_program_without_a_message(memory: Path, line: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = call(*line.split(), input=b"{}\n", stdout=closed, stderr=subprocess.PIPE)

    assert (done.returncode, done.stderr) == (0, b"")


def test_following_a_log_ends_when_the_pipe_is_closed(memory: Path) -> None:
    Call(Mind.open(memory.parent)).mind.tell("mimo.test", {"count": 1})
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = call("events", "--follow", stdout=closed, stderr=subprocess.PIPE)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("line", ["list", "--version", "help", "mcp"])
def test_a_failed_write_to_standard_output_is_an_error(
    memory: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with Path("/dev/full").open("wb") as full:
        done = call(*line.split(), input=b"{}\n", stdout=full, stderr=subprocess.PIPE)

    assert done.returncode == 1
    assert done.stderr == b"error: the answer could not be written: No space left on device\n"


@pytest.mark.attack("hostile text in an output")
def test_a_pipe_gets_no_escape_sequences(memory: Path) -> None:
    for argv in (["search", "tokens"], ["list"], ["show", "aaaaaa"], ["memory", "stats"]):
        done = call(*argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        assert done.returncode == 0
        assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("line", "closed"),
    [
        ("mimo list >&-", "output"),
        ("mimo mcp >&-", "output"),
        ("mimo mcp <&-", "input"),
    ],
)
def test_a_closed_stream_is_reported_and_nothing_changes(
    memory: Path, line: str, closed: str
) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    shell = ["sh", "-c", f"{sys.executable} -m {line}"]
    done = subprocess.run(shell, env=env, stderr=subprocess.PIPE, encoding="utf-8", check=False)

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: standard {closed} is closed")


def test_a_character_missing_in_the_encoding_is_escaped(memory: Path) -> None:
    memory.write_text(TEXT.replace("JWT", "토큰"), encoding="utf-8")
    plain = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "mimo", "list"],
        env={**os.environ, **plain},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0
    assert b"\\ud1a0" in done.stdout
