"""What docs/git.md shows is what mind prints, and how its files read."""

import re
import shlex
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.memory.codec.file import Parsed, parse
from mimo.memory.model import Kind, Version
from mimo.mind import Mind
from mimo.operations import saving

PAGE = (Path(__file__).parents[2] / "docs" / "git.md").read_text("utf-8")


def test_the_examples_are_true(
    mind: Mind, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.com")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=project, check=True)
    saving.store(mind, saving.draft(Kind.DECISION, "Use JWT"))
    monkeypatch.chdir(project)
    for block in re.findall(r"```console\n(.*?)```\n", PAGE, re.DOTALL):
        command, _, shown = block.removeprefix("$ mind ").partition("\n")
        assert main(shlex.split(command), open=lambda _: mind) == 0
        printed = capsys.readouterr().out
        assert re.sub(r" as [0-9a-f]{7,}", " as COMMIT", printed) == shown


def test_the_merged_file_reads_as_it_says() -> None:
    found = re.search(r"```\n(confidence: 0.4\n.*?)```", PAGE, re.DOTALL)
    assert found
    data = f"---\nid: x\ntype: decision\n{found[1]}".encode()
    parsed = parse(data, path=".mind/decisions/x.md", modified=datetime(2026, 1, 1, tzinfo=UTC))
    assert isinstance(parsed, Parsed)
    assert parsed.memory.competing == (Version(field="confidence", text="0.9"),)
