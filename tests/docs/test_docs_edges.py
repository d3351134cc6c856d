"""What docs/edges.md shows is what mind prints."""

import re
import shlex
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.memory.log.grammar import statement
from mimo.mind import Mind

PAGE = (Path(__file__).parents[2] / "docs" / "edges.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```\n", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_examples_are_true(
    mind: Mind, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".mind" / "MEMORY.md").write_text(block("markdown"), encoding="utf-8")
    (project / "orders.ts").write_text("const one = await api.get(url)\n", encoding="utf-8")
    monkeypatch.chdir(project)
    printed = []
    for command in re.findall(r"^\$ mind (.*)$", block("console"), re.MULTILINE):
        main(shlex.split(command), open=lambda _: mind)
        printed.append(f"$ mind {command}\n{capsys.readouterr().out}")

    told = "".join(printed).replace(str(mind.home), "~/.mind")
    assert told == block("console")


@pytest.mark.req("003-25")
def test_the_page_says_where_edges_of_one_project_belong() -> None:
    assert "What holds in one project alone belongs in its MEMORY.md" in PAGE


ROWS = re.findall(r"^\| `\*\*(\w+):\*\*.* \| an? (\w+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("word", "kind", "confidence"), ROWS)
def test_the_table_of_forms_is_true(word: str, kind: str, confidence: str) -> None:
    found = statement(f"__{word}:__ something else")

    assert found is not None
    assert found.kind.value == {"learning": "insight"}.get(kind, kind)
    assert found.confidence == float(confidence)
