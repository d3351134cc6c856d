"""Runs that stop no process at a lock fail; tests/redteam/test_samples.py has one that does."""

import sys
from pathlib import Path

import pytest

from bench.concurrent import stopped
from bench.preload import built
from bench.torture.test_torture import unmeasured


@pytest.mark.parametrize("words", [["--minutes", "0"], ["--lock", "no-such-lock"]])
def test_a_run_that_tries_nothing_is_no_success(tmp_path: Path, words: list[str]) -> None:
    if built(stopped.SOURCE, tmp_path) is None:
        pytest.skip("this needs Linux and a C compiler")
    command = [sys.executable, "-m", "bench.concurrent.stopped", "--only", "add", *words]
    run = unmeasured(command, check=False)
    assert run.returncode == 2, run.stdout + run.stderr
    assert "nothing was tried" in run.stderr


def test_a_run_without_a_compiler_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stopped, "built", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["stopped"])
    assert stopped.main() == 2
    assert "C compiler" in capsys.readouterr().err
