"""What docs/procedures.md shows is what mind prints, and its example runs."""

import re
import shlex
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.mind import Mind

PAGE = (Path(__file__).parents[2] / "docs" / "procedures.md").read_text("utf-8")


def block(language: str, fence: str = "```") -> str:
    found = re.search(rf"^{fence}{language}\n(.*?)^{fence}\n", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.req("000-01")
def test_the_example_is_added_and_runs_as_the_page_says(
    mind: Mind, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    Path("release.md").write_text(block("markdown", "````"), encoding="utf-8")
    Path("Makefile").write_text("test:\n\t@echo 12 passed\n", encoding="utf-8")
    printed = []
    for command in re.findall(r"^\$ mind (.*)$", block("console"), re.MULTILINE):
        assert main(shlex.split(command), open=lambda _: mind) == 0
        shown = capsys.readouterr()
        printed.append(f"$ mind {command}\n{shown.out}{shown.err}")
    assert "".join(printed) == block("console")

    asked: list[str] = []

    def ask(question: object, seconds: float) -> str:
        asked.append(f"{question.text} [{'/'.join(question.choices)}]\n")  # type: ignore[attr-defined]
        return "yes"

    mind.ask = ask
    told = block("text")
    (command,) = re.findall(r"^\$ mind (.*)$", told, re.MULTILINE)
    assert main(shlex.split(command), open=lambda _: mind) == 0
    steps = capsys.readouterr().out
    assert [asked[0] in told, asked[1] in told] == [True, True]
    arrows = re.compile(r"\S+ ─\S+→ \S+")
    assert arrows.findall(steps) == arrows.findall(told)
    assert "completed in released" in steps
