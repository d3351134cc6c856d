"""The transcripts of imports and exports.

They have two commands more. `read PATH [FORMAT]` prints the format of a source, and the files that
an import of it writes. `sql DATABASE [FILE]` runs the statements of a file or of its input.
`$SAMPLES` is the folder of data that other programs have written.
"""

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mimo.errors import MindError
from mimo.features.importing import sources
from mimo.features.importing.drafts import resolved
from mimo.features.importing.formats import reader, recognised
from mimo.project.memories import rendered
from tests.conftest import NOW
from tests.transcripts import Scenario, Stage, attempts, below, check, stage

__all__ = ["stage"]

HERE = Path(__file__).parent


def files_of(path: Path, format: str | None) -> Iterator[str]:
    """Yields the format of a source, and the files of its memories or why there are none."""
    with sources.opened(path) as source:
        format = format or recognised(source)
        yield format
        for item in resolved(list(reader(format)(source)), format, {}, now=NOW).items:
            if item.memory is None:
                yield f"skipped {item.key}: {item.skipped}"
            else:
                file = rendered(item.memory, private=item.private)
                yield f"{file.path}\n{file.data.decode().rstrip()}"


def read(words: str, given: str | None) -> tuple[int, str]:
    path, *format = shlex.split(os.path.expandvars(words))
    try:
        parts = [*files_of(Path(path).absolute(), next(iter(format), None))]
        return 0, "".join(f"{part}\n" for part in parts)
    except MindError as error:
        return 1, f"{error.code}: {error.message}\n"


def sql(words: str, given: str | None) -> tuple[int, str]:
    path, *scripts = shlex.split(os.path.expandvars(words))
    with closing(sqlite3.connect(path)) as database:
        for statements in (given or "", *(Path(each).read_text("utf-8") for each in scripts)):
            database.executescript(statements)
    return 0, ""


@pytest.mark.parametrize(("path", "scenario"), below(HERE))
def test_a_scenario_prints_what_its_file_shows(
    path: Path,
    scenario: Scenario,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setenv("SAMPLES", str(HERE / "samples"))
    stage.builtins |= {"read": read, "sql": sql}
    record_property("tried", attempts(scenario))
    check(path, scenario, stage)
