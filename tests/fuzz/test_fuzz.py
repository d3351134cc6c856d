"""Inputs that failed once, and the seeds, keep the promises."""

from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

REGRESSIONS = sorted(Path(__file__).with_name("regressions").glob("*/*"))


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_that_failed_once(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds(name: str) -> None:
    for data in seeds(name):
        TARGETS[name](data)
