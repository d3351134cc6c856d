"""A sample of `make torture`: writing calls that fail, and what is left after them."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench import torture

POINTS = 14


@pytest.mark.attack("fault at a writing call")
def test_faults_at_writing_calls_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if torture.built(tmp_path) is None:
        pytest.skip("this needs Linux and a C compiler")
    words = ["--points", str(POINTS), "--seed", "3", "--only", "add", "--only", "value put"]
    words += ["--only", "untrust", "--only", "edit", "--only", "config"]
    command = [sys.executable, "-X", "utf8", "-m", "tests.bench.torture", *words]
    run = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    tried = re.search(r"^(\d+) of [\d,]+ points tried, 0 failed", run.stdout, re.M)
    assert run.returncode == 0, run.stdout + run.stderr
    assert tried is not None
    assert int(tried[1]) > POINTS // 2
    record_property("tried", int(tried[1]))
