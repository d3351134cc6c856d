"""What docs/duplicates.md shows is what mind prints."""

import re
import shlex
from pathlib import Path

from mimo.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "duplicates.md").read_text("utf-8")


def test_the_examples_are_true(mind, capsys):
    shown = "".join(re.findall(r"```console\n(.*?)```\n", PAGE, re.DOTALL))
    printed = []
    for command in re.findall(r"^\$ mind (.*)$", shown, re.MULTILINE):
        assert main(shlex.split(command), open=lambda _: mind) == 0
        out, err = capsys.readouterr()
        printed.append(f"$ mind {command}\n{err}{out}")
    assert "".join(printed) == shown
