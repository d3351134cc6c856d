"""Inputs that failed once, and the seeds, keep the promises."""

from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

MOST = 80
"""The seeds of a target that are tried at most: some have several for each tool."""

REGRESSIONS = sorted(Path(__file__).with_name("regressions").glob("*/*"))


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_that_failed_once(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds(name: str) -> None:
    every = list(seeds(name))
    for data in every[:: 1 + len(every) // MOST]:
        TARGETS[name](data)
