"""Other programs as commands: `mind foo` runs `mind-foo` from the PATH."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mimo.cli.completing import completions
from mimo.cli.external import found, line_of, program_of
from mimo.cli.main import main
from mimo.commands import all_commands

COMMANDS = all_commands()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, word: str, text: str = "#!/bin/sh\n", mode: int = 0o755) -> str:
    path = folder / f"mind-{word}"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return str(path)


def mind(*words: str, cwd: Path, path: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "mimo", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, **env},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_a_program_gets_the_words_the_environment_and_the_streams(folder: Path) -> None:
    script = '#!/bin/sh\nread line\nprintf "%s|" "$line" "$TEA" "$@"\nexec >&2\necho done\nexit 7\n'
    program(folder, "foo", script)
    done = subprocess.run(
        [sys.executable, "-m", "mimo", "foo", "a b", "--json", "-", "*"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TEA": "green"},
        input="in\n",
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "in|green|a b|--json|-|*|", "done\n")


def test_a_program_ends_at_a_closed_pipe(folder: Path) -> None:
    """Python ignores the signal of a closed pipe, which a program must not inherit."""
    script = "import signal; print(signal.getsignal(signal.SIGPIPE) is signal.SIG_DFL)"
    program(folder, "foo", f"#!/bin/sh\nkill -PIPE $$\nexec '{sys.executable}' -c '{script}'\n")

    assert mind("foo", cwd=folder, path=str(folder)).returncode == -signal.SIGPIPE


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("foo", ""),
        ("foo --help", "--help"),
        ("help foo", "--help"),
        ("--json foo x", "--json x"),
        ("--project /tmp --no-color foo", "--project /tmp --no-color"),
        ("--project=/tmp foo -v", "--project=/tmp -v"),
        ("foo help foo", "help foo"),
    ],
)
def test_options_before_the_word_reach_the_program(folder: Path, line: str, given: str) -> None:
    path = program(folder, "foo")

    assert line_of(COMMANDS, line.split()) == [path, *given.split()]


@pytest.mark.parametrize(
    "line", ["", "--json", "--project", "-x foo", "help", "help foo bar", "memory foo", "bar"]
)
def test_other_lines_run_no_program(folder: Path, line: str) -> None:
    program(folder, "foo")

    assert line_of(COMMANDS, line.split()) is None


@pytest.mark.attack("program in the place of a command")
@pytest.mark.parametrize(
    "word", ["list", "ls", "memory", "edges", "help", "hook", "mcp", "merge-driver"]
)
def test_no_program_takes_the_place_of_a_command(folder: Path, word: str) -> None:
    program(folder, word)

    assert program_of(COMMANDS, word) is None
    assert found(COMMANDS) == {}


@pytest.mark.attack("program of a working directory")
@pytest.mark.parametrize("path", ["", ".", "bin", ":/nowhere", "./bin:../x/bin"])
def test_the_working_directory_has_no_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "bin").mkdir()
    for folder in (tmp_path, tmp_path / "bin"):
        program(folder, "foo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)

    assert program_of(COMMANDS, "foo") is None
    assert found(COMMANDS) == {}


@pytest.mark.parametrize("word", ["../foo", "a/b", "", ".", "-x", "a b", "é", "x\ny"])
def test_only_plain_words_name_programs(folder: Path, word: str) -> None:
    (folder / "mind-..").mkdir()
    program(folder, "foo")
    if "/" not in word:
        program(folder, word)

    assert program_of(COMMANDS, word) is None
    assert set(found(COMMANDS)) == {"foo"}


def test_the_first_program_of_the_path_that_can_be_run_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c", "d")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "mind-foo").mkdir()
    program(folders[1], "foo", mode=0o644)
    expected = program(folders[2], "foo")
    program(folders[3], "foo")
    monkeypatch.setenv("PATH", ":".join(map(str, ["/nowhere", *folders])))

    assert program_of(COMMANDS, "foo") == expected
    assert found(COMMANDS) == {"foo": expected}


def test_a_word_of_another_program_keeps_its_hint_until_there_is_a_program(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["delete", "x"]) == 2
    assert "did you mean `mind rm`?" in capsys.readouterr().err
    path = program(folder, "delete")
    assert line_of(COMMANDS, ["delete", "x"]) == [path, "x"]


def test_a_program_is_listed_and_proposed_and_completed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = program(folder, "foolish")
    assert main(["help", "--all"]) == 0
    page = capsys.readouterr().out
    assert f"Other programs on PATH:\n  foolish  {path}\n" in page
    assert main(["help"]) == 0
    assert "foolish" not in capsys.readouterr().out
    assert main(["folish"]) == 2
    assert "did you mean `mind foolish`?" in capsys.readouterr().err

    assert completions(COMMANDS, ["fool"]) == [f"foolish\tthe program {path}"]
    assert completions(COMMANDS, ["foolish", ""]) == [":files"]
    assert completions(COMMANDS, ["memory", "fool"]) == []
    assert completions(COMMANDS, ["fool"], "/nowhere") == []


def test_a_program_that_cannot_be_run_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = program(folder, "foo", "echo x\n")
    handler = signal.getsignal(signal.SIGPIPE)

    assert main(["foo"]) == 1
    error = capsys.readouterr().err
    assert f"error: `{path}` can't be run: exec format error" in error
    assert signal.getsignal(signal.SIGPIPE) is handler
