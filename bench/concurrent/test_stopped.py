"""A process that is stopped while it holds a lock: other commands answer, or name the lock."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.concurrent import stopped
from bench.torture.test_torture import unmeasured


@pytest.mark.attack("process stopped at a lock")
def test_commands_end_in_time_beside_a_stopped_process(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if stopped.built(tmp_path) is None:
        pytest.skip("this needs Linux and a C compiler")
    words = ["--only", "add", "--only", "sync", "--lock", ".local/lock", "--lock", "index.lock"]
    run = unmeasured([sys.executable, "-m", "bench.concurrent.stopped", *words], check=False)

    tried = re.search(r"^(\d+) locks, 0 with faults", run.stdout, re.M)
    assert run.returncode == 0, run.stdout + run.stderr
    assert tried is not None
    assert int(tried[1]) == 2, run.stdout
    record_property("tried", int(tried[1]))


@pytest.mark.parametrize("words", [["--minutes", "0"], ["--lock", "no-such-lock"]])
def test_a_run_that_tries_nothing_is_no_success(tmp_path: Path, words: list[str]) -> None:
    if stopped.built(tmp_path) is None:
        pytest.skip("this needs Linux and a C compiler")
    command = [sys.executable, "-m", "bench.concurrent.stopped", "--only", "add", *words]
    run = unmeasured(command, check=False)
    assert run.returncode == 2, run.stdout + run.stderr
    assert "nothing was tried" in run.stderr


def test_a_run_without_a_compiler_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stopped, "built", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["stopped"])
    assert stopped.main() == 2
    assert "C compiler" in capsys.readouterr().err
