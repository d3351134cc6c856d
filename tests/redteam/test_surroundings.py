"""Processes whose streams, folder or `HOME` are missing: errors that name them, or answers."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.data.disk import home_of

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
