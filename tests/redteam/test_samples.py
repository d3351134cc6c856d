"""Samples of `make torture` and `make stopped`, whose long runs are weekly."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.preload import built
from bench.torture.shim import SOURCE
from bench.torture.test_torture import unmeasured

SAMPLES = {
    "fault at a writing call": ("torture", "--points", "5", "--seed", "3", "--only", "add"),
    "loss of power": ("torture", "--power", "--points", "5", "--only", "value rm"),
    "process stopped at a lock": ("concurrent.stopped", "--only", "add", "--lock", ".local/lock"),
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.attack(kind)) for kind in SAMPLES]
)
def test_a_sample_loses_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None], kind: str
) -> None:
    if built(SOURCE, tmp_path) is None:
        pytest.skip("this needs Linux and a C compiler")
    module, *words = SAMPLES[kind]

    done = unmeasured([sys.executable, "-X", "utf8", "-m", f"bench.{module}", *words], check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    tried = re.search(r"^(\d+) (?:.*, 0 failed|locks, 0 with faults)", done.stdout, re.M)
    assert tried is not None, done.stdout
    record_property("tried", int(tried[1]))
