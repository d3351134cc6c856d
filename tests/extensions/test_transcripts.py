"""The transcripts of extensions that have no commands of their own in them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transcripts import Scenario, Stage, attempts, below, check, stage

__all__ = ["stage"]

FOLDERS = [path for path in sorted(Path(__file__).parent.iterdir()) if path.is_dir()]
PLAIN = [folder for folder in FOLDERS if not (folder / "test_transcripts.py").exists()]


@pytest.mark.parametrize(("path", "scenario"), below(*PLAIN))
def test_a_scenario_prints_what_its_file_shows(
    path: Path, scenario: Scenario, stage: Stage, record_property: Callable[[str, object], None]
) -> None:
    record_property("tried", attempts(scenario))
    check(path, scenario, stage)
