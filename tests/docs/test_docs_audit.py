"""What docs/audit.md shows is what mind prints."""

import re
import shlex
from itertools import count
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.mind import Mind
from mimo.surroundings import Timer

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text("utf-8")


@pytest.mark.req("002-65")
def test_the_examples_are_true(mind: Mind, capsys: pytest.CaptureFixture[str]) -> None:
    steps = count()
    mind.timer = Timer(monotonic=lambda: next(steps) * 0.0021)
    (shown,) = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    printed = ""
    for command in re.findall(r"^\$ mind (.*)$", shown, re.MULTILINE):
        main(shlex.split(command), open=lambda _: mind)
        out, err = capsys.readouterr()
        printed += f"$ mind {command}\n{err}{out}"
    printed = printed.replace(str(mind.project.root), "~/shop")
    assert printed == shown
