"""The transcripts of the memory tool: a call is `memory COMMAND PATH …`, with input as last text.

The words follow the order of the tool's documentation. An answer that is an error has status 1.
"""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from mimo.memory_tool import MemoryTool
from tests.transcripts import Scenario, Stage, attempts, below, check, stage

__all__ = ["stage"]

PARAMETERS = {
    "view": ("path", "view_range"),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
NUMBERS = ("view_range", "insert_line")


@pytest.mark.parametrize(("path", "scenario"), below(Path(__file__).parent))
def test_a_scenario_prints_what_its_file_shows(
    path: Path,
    scenario: Scenario,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    mind = SimpleNamespace(open=lambda _, project: stage.open(project))
    monkeypatch.setattr("mimo.extensions.adapters.memory_tool.Mind", mind)
    tool = MemoryTool(stage.root)

    def memory(line: str, given: str | None) -> tuple[int, str]:
        command, *words = [*shlex.split(line), *([] if given is None else [given])]
        values = dict(zip(PARAMETERS[command], words, strict=False))
        decoded = {name: json.loads(values[name]) for name in NUMBERS if name in values}
        answer = tool.handle({"command": command, **values, **decoded})
        return int(answer.is_error), f"{answer.text}\n"

    stage.builtins["memory"] = memory
    record_property("tried", attempts(scenario))
    check(path, scenario, stage)
