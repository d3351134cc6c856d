"""What the README shows works as it stands."""

import re
import shlex
from pathlib import Path

import pytest

from mimo.cli.main import main

ROOT = Path(__file__).parents[2]


def test_the_commands_of_the_first_example_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"```console\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert example
    monkeypatch.chdir(tmp_path)

    for line in example[1].splitlines():
        program, *words = shlex.split(line.removeprefix("$ "))
        assert program == "mind"
        assert main(words) == 0

    assert "Use JWT with refresh tokens" in capsys.readouterr().out.splitlines()[-5]


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_points_to_is_there(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    targets = re.findall(r"\]\(([^)#:]+)\)", text)

    assert [target for target in targets if not (ROOT / target).exists()] == []
