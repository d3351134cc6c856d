"""Commands where something of the surroundings is missing: errors that say so, or answers."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.data.disk import home_of
from mimo.errors import Invalid
from mimo.project import projects

pytestmark = pytest.mark.attack("surroundings that are missing")

Sh = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def sh(project: Path, tmp_path: Path) -> Sh:
    """Runs lines of shell in the project, where `$MIND` is the program."""
    (tmp_path / "user").mkdir(exist_ok=True)

    def sh(lines: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            ["/bin/sh", "-c", lines],
            cwd=project,
            env={**os.environ, "MIND": f"{sys.executable} -m mimo", "TMPDIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert "INTERNAL_ERROR" not in done.stderr
        assert "Traceback" not in done.stderr
        return done

    return sh


def test_closed_standard_streams_stop_nothing_that_does_not_need_them(
    sh: Sh, project: Path
) -> None:
    done = sh(
        "$MIND add one thing <&- && $MIND add two things <&- 2>&- "
        "&& $MIND search thing <&- && $MIND doctor 2>&- <&-"
    )

    assert done.returncode == 0, done.stderr
    texts = [path.read_bytes() for path in (project / ".mind" / "facts").iterdir()]
    assert len(texts) == 2
    for path in (project / ".mind").rglob("*"):  # Nothing that was printed went into a file.
        assert path.is_dir() or b"\xe2\x9c\x93" not in path.read_bytes()


def test_closed_standard_output_is_an_error_before_anything_is_written(
    sh: Sh, project: Path
) -> None:
    for line in ("$MIND add three things >&-", "$MIND --version >&-"):
        done = sh(line)
        assert (done.returncode, "standard output is closed" in done.stderr) == (1, True)
    assert not (project / ".mind" / "facts").exists()


def test_in_a_deleted_folder_a_named_project_is_used(sh: Sh, project: Path) -> None:
    away = 'mkdir ../away && cd ../away && rmdir "$PWD"'

    done = sh(f"{away} && $MIND add x")
    assert (done.returncode, "no longer exists" in done.stderr) == (3, True)
    done = sh(f"{away} && $MIND doctor && $MIND --project {project} doctor")
    assert done.returncode == 0, done.stderr
    done = sh(f"{away} && $MIND --project {project} add x")
    assert done.returncode == 0, done.stderr
    for line in ("$MIND init", "$MIND --project shop add x", "MIND_HOME=h $MIND add x"):
        done = sh(f"{away} && {line}")
        assert done.returncode in (2, 3), line
        assert "no longer exists" in done.stderr or "absolute path" in done.stderr


def test_without_a_usable_home_memories_are_found_and_a_write_names_it(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(project)
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["add", "The cache holds an hour"]) == 0
    monkeypatch.setenv("MIND_HOME", str(home := tmp_path / "file" / "home"))
    capsys.readouterr()

    main(["add", "The queue holds a day"])
    assert str(home) in capsys.readouterr().err
    assert main(["search", "cache"]) == 0
    assert "The cache holds an hour" in capsys.readouterr().out
    assert main(["doctor"]) in (0, 1)
    assert "INTERNAL" not in capsys.readouterr().err


def test_without_programs_on_the_path_nothing_fails_unforeseen(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", "")

    assert main(["add", "The cache holds an hour"]) == 0
    for argv in (["doctor"], ["sync"], ["status"], ["scan", "--staged"]):
        main(argv)
        assert "INTERNAL" not in capsys.readouterr().err


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_an_unset_home_is_looked_up_and_never_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", home)

    assert home_of({}).is_absolute()
    assert home_of({}).name == ".mind"


def test_a_home_of_an_unknown_user_is_an_error() -> None:
    with pytest.raises(Invalid, match="MIND_HOME"):
        home_of({"MIND_HOME": "~nosuchuser/mind"})


def test_a_project_that_is_not_the_repository_here_is_named(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    note = f"note: in the project `{project}`"
    repository = project / "vendor" / "library"
    (repository / ".git").mkdir(parents=True)
    (project / "src").mkdir()

    for folder, named in ((project, False), (project / "src", True), (repository, True)):
        monkeypatch.chdir(folder)
        assert main(["add", f"Seen from {folder.name}"]) == 0
        assert (note in capsys.readouterr().err) is named
    assert main(["search", "seen"]) == 0
    assert note not in capsys.readouterr().err
    monkeypatch.chdir(home)
    monkeypatch.setenv("MIND_PROJECT", str(project))
    assert main(["add", "Seen by way of the environment"]) == 0
    assert note in capsys.readouterr().err
    assert main(["--project", str(project), "add", "Seen by name"]) == 0
    assert note not in capsys.readouterr().err
    monkeypatch.delenv("MIND_PROJECT")
    (project / ".git").mkdir()
    monkeypatch.chdir(project / "src")
    assert main(["add", "Seen from below a repository"]) == 0
    assert note not in capsys.readouterr().err


def test_a_home_of_another_configuration_is_never_written_to_as_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / "user"
    (work := user / "work").mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.delenv("MIND_HOME")
    assert main(["init"]) == 0
    (user / "elsewhere").mkdir()
    monkeypatch.chdir(user / "elsewhere")
    before = sorted((user / ".mind").rglob("*"))
    monkeypatch.setenv("MIND_HOME", str(tmp_path / "home"))

    assert main(["add", "x"]) == 3

    assert sorted((user / ".mind").rglob("*")) == before
    assert projects.find(user, tmp_path / "home") is None
