"""What docs/ingest.md shows is what mind prints and keeps."""

import re
import shlex
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.mind import Mind

PAGE = (Path(__file__).parents[2] / "docs" / "ingest.md").read_text("utf-8")
GUIDE = """\
# Guide

Words of introduction for all.

## Install

Run make install, then wait.
"""


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```\n", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_examples_are_true(
    mind: Mind, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "docs").mkdir()
    (project / "docs" / "guide.md").write_text(GUIDE)
    monkeypatch.chdir(project)
    printed = []
    for command in re.findall(r"^\$ mind (.*)$", block("console"), re.MULTILINE):
        assert main(shlex.split(command), open=lambda _: mind) == 0
        printed.append(f"$ mind {command}\n{capsys.readouterr().out}")

    assert "".join(printed) == block("console")
    (kept,) = (project / ".mind" / "sources").iterdir()
    shown = re.sub(r'sha256: "?(.{4}).*', r"sha256: \1…", kept.read_text("utf-8"))
    assert shown == block("markdown")
