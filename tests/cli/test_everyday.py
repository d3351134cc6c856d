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


def test_an_edit_changes_the_file_and_search_results(
    edit: Any, memory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edit("text = text.replace('JWT', 'PASETO')") == 0

    assert memory.read_text(encoding="utf-8") == TEXT.replace("JWT", "PASETO")
    capsys.readouterr()
    assert main(["search", "PASETO"]) == 0
    assert capsys.readouterr().out.startswith("aaaaaa  Use PASETO")


def test_an_edit_by_topic_stays_with_the_memory_that_was_opened(edit: Any, memory: Path) -> None:
    """Even if the editor gives the topic to another decision meanwhile."""
    text = TEXT.replace("tags:", "topic: login\ntags:")
    memory.write_text(text, encoding="utf-8")
    other = memory.with_name("decision_login_20261102_bbbbbb.md")
    newer = text.replace(IDENTITY, other.stem).replace(
        "tags:", f"links: [{{to: {IDENTITY}, type: supersedes}}]\ntags:"
    )
    write = f"pathlib.Path({str(other)!r}).write_text({newer!r}); "

    assert edit(f"{write}text = text.replace('JWT', 'PASETO')", "login") == 0

    assert memory.read_text(encoding="utf-8") == text.replace("JWT", "PASETO")
    assert other.read_text(encoding="utf-8") == newer


def test_an_edit_without_changes_writes_nothing(
    edit: Any, memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edit("") == 0

    assert memory.read_text(encoding="utf-8") == TEXT
    assert capsys.readouterr() == ("", "note: nothing changed\n")
    assert not list(tmp_path.glob("mind-*/draft.md"))


def test_an_interrupt_is_left_to_the_editor(edit: Any, memory: Path) -> None:
    """Ctrl-C reaches both; an editor such as `ed` stays open, and its text is stored later."""
    interrupt = "import os, signal; os.kill(os.getppid(), signal.SIGINT)"

    assert edit(f"{interrupt}; text = text.replace('JWT', 'PASETO')") == 0

    assert memory.read_text(encoding="utf-8") == TEXT.replace("JWT", "PASETO")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    "line",
    [
        "path.unlink(); sys.exit()",
        "path.unlink(); path.mkdir(); sys.exit()",
        "import shutil; shutil.rmtree(path.parent); sys.exit()",
    ],
)
def test_an_editor_may_remove_the_draft(
    edit: Any, memory: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert edit(line) == 2

    assert memory.read_text(encoding="utf-8") == TEXT
    message = capsys.readouterr().err
    assert message.startswith("error: the editor left no file at ")
    assert message.endswith("\nhint: nothing was changed\n")


@pytest.mark.parametrize("editor", ["'unbalanced", "/no/such/editor"])
def test_an_editor_that_can_not_be_started_is_reported(
    edit: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], editor: str
) -> None:
    edit("")
    capsys.readouterr()
    monkeypatch.setenv("VISUAL", editor)

    assert main(["edit", "aaaaaa"]) == 2

    message = capsys.readouterr().err
    assert message.startswith("error: the editor failed: ")
    assert message.endswith("\nhint: set $EDITOR; nothing was changed\n")


def test_a_draft_that_cant_be_written_is_reported(
    edit: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(**_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    assert edit("") == 1
    message = capsys.readouterr().err
    assert "can't write `the draft`" in message


def test_a_blank_editor_counts_as_unset(
    edit: Any, monkeypatch: pytest.MonkeyPatch, memory: Path
) -> None:
    edit("")
    script = os.environ["VISUAL"]
    monkeypatch.setenv("VISUAL", "  ")
    monkeypatch.setenv("EDITOR", script)

    assert main(["edit", "aaaaaa"]) == 0
    assert memory.read_text(encoding="utf-8") == TEXT


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


def test_a_refused_text_stays_in_a_draft(
    edit: Any, memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edit(f"text = 'x'; pathlib.Path({str(memory)!r}).write_text('other')") == 1

    (draft,) = tmp_path.glob("mind-*/draft.md")
    assert draft.read_text(encoding="utf-8") == "x"
    assert f"hint: your text is in {draft}" in capsys.readouterr().err
    assert memory.read_text(encoding="utf-8") == "other"


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
        ("mimo.memory_tool >&-", "output"),
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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("list", "--when", "gestern"), "give `--from-date` and `--to-date`"),
        (
            ("ingest", "a.md", "--chunk-size", "30", "--overlap", "40"),
            "`--overlap` must be less than `--chunk-size`",
        ),
        (("scan", "--all"), "`--all` goes with `--staged` or `--history`"),
        (("undo", "--list", "--purge"), "`--list`, `--purge` and `--dry-run` or `--force`"),
    ],
)
def test_errors_of_commands_name_options_as_they_are_typed(
    call: Call, words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words, open=lambda _: call.mind) == 2
    assert expected in capsys.readouterr().err
    assert main([*words, "--json"], open=lambda _: call.mind) == 2
    assert "`--" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("list", "--outcome", "limit"), "`limit` is not an outcome"),
        (("list", "--type", "limit"), "`limit` is not a type of memory"),
        (("list", "--type", "fact", "--type", "limit"), "`limit` is not a type of memory"),
        (("search", "--from", "limit", "tea"), "`limit` is not a date"),
        (("config", "key"), "`key` is not a setting"),
    ],
)
def test_errors_of_commands_show_values_as_they_were_given(
    call: Call, words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words, open=lambda _: call.mind) == 2
    assert f"error: {expected}" in capsys.readouterr().err
