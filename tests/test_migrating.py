"""What the guide for people who come from MAMA shows is what happens."""

import re
import shlex
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.commands import all_commands, folded
from tests import mama_databases

GUIDE = (Path(__file__).parent.parent / "docs" / "migrating-from-mama.md").read_text("utf-8")


def shown(output: str, home: Path) -> str:
    """Returns output as the guide has it: another home, and no hashes that depend on it."""
    return re.sub(r"mama-[0-9a-f]+\.", "mama-….", output.replace(str(home), "/home/ana"))


@pytest.mark.req("004-70")
def test_the_example_is_what_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "ana"
    mama_databases.example(home / ".claude" / "mama-memory.db")
    (home / "shop").mkdir()
    monkeypatch.chdir(home / "shop")
    monkeypatch.setenv("HOME", str(home))
    assert main(["init"]) == 0
    capsys.readouterr()
    steps = [
        step
        for block in re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL)
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]

    for step in steps:
        line, _, expected = step.partition("\n")
        program, *words = shlex.split(line)
        if program == "cat":
            printed = Path(words[0]).read_text(encoding="utf-8")
        else:
            assert main(words) == 0
            printed = capsys.readouterr().out
        assert shown(printed, home) == shown(expected, home), line

    assert len(steps) == 5


@pytest.mark.req("004-69")
@pytest.mark.req("004-70")
def test_every_old_tool_and_its_new_name_can_be_called() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([\w/]+)` \| `mind ([a-z]+ [a-z-]+)\b", GUIDE, re.MULTILINE)
    callable_ = {folded(name) for name in all_commands().tools()}
    paths = set(all_commands().table)

    assert len(rows) == 7
    for old, new, path in rows:
        assert {folded(old), folded(new)} <= callable_, old
        assert path in paths
