"""The transcripts beside other tests: each scenario prints what its file shows.

They have one command more: `mama TABLE` adds rows to a database of MAMA, `../mama.db`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import mama_databases
from tests.transcripts import Scenario, Stage, attempts, below, check, marks_of, scenarios, stage

__all__ = ["stage"]

HERE = Path(__file__).parent
CORE = [path for path in sorted(HERE.iterdir()) if path.is_dir() and path.name != "extensions"]


@pytest.mark.parametrize(("path", "scenario"), below(*CORE))
def test_a_scenario_prints_what_its_file_shows(
    path: Path, scenario: Scenario, stage: Stage, record_property: Callable[[str, object], None]
) -> None:
    stage.builtins["mama"] = mama_databases.fill
    record_property("tried", attempts(scenario))
    check(path, scenario, stage)


def test_another_output_status_or_input_is_noticed(stage: Stage) -> None:
    (scenario,) = scenarios(
        "Two\nreq 000-31\n  $ mind add -\n  > tea\n  > hot\n  ✓ pxhaaa  tea\n  hot"
    )
    assert [command.input for command in scenario.commands] == ["tea\nhot\n"]
    assert [mark.mark.args for mark in marks_of(scenario)] == [("000-31",)]
    assert attempts(scenario) == 1
    assert attempts(scenario._replace(marks=("attack 2 symbolic link",))) == 2
    assert stage.play(scenario) != scenario.text

    (digests,) = scenarios(
        "Three\n  $ echo a-949449650232-949449650a32-efcfedf.bak\n  a-DIGEST-DIGEST-DIGEST.bak"
    )
    assert stage.play(digests) == digests.text

    (failing,) = scenarios("One\n  $ false\n  [1]")
    assert stage.play(failing) == failing.text
    assert stage.play(failing._replace(commands=())) != failing.text


def test_a_failure_shows_how_to_record_and_a_scenario_has_commands(
    stage: Stage, tmp_path: Path
) -> None:
    path = tmp_path / "tea" / "green.transcript"
    (wrong,) = scenarios("One\n  $ mind list\n  oolong")
    with pytest.raises(
        pytest.fail.Exception, match=r"-  oolong(?s:.)*make transcripts ONLY=tea/green"
    ):
        check(path, wrong, stage)
    with pytest.raises(AssertionError, match="`req: 001` has no line"):
        check(path, next(iter(scenarios("req: 001\n $ mind list"))), stage)
