"""What docs/install.md and docs/exposure.md show is what mind prints and does."""

import re
import shlex
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.features.clients.table import CLIENTS
from mimo.features.hooks.exposure import classify
from mimo.mind import Mind
from mimo.server.exposure import described
from mimo.server.exposure import log as exposure_log
from mimo.store import projects
from mimo.store.init import init
from tests.conftest import NOW

DOCS = Path(__file__).parents[2] / "docs"
INSTALL = (DOCS / "install.md").read_text("utf-8")
EXPOSURE = (DOCS / "exposure.md").read_text("utf-8")
OPENCODE = '{\n  // ours\n  "model": "x" // the fast one\n}\n'


def test_the_examples_of_installing_are_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    user = tmp_path / "user"
    shop = user / "shop"
    shop.mkdir(parents=True)
    init(shop, user / ".mind", now=NOW)
    (shop / "opencode.json").write_text(OPENCODE)
    mind = Mind(
        home=user / ".mind",
        project=projects.explicit(shop, user / ".mind"),
        environ={"HOME": str(user)},
    )
    (block,) = re.findall(r"```console\n(.*?)```\n", INSTALL, re.DOTALL)
    printed = []
    for command in re.findall(r"^\$ mind (.*)$", block, re.MULTILINE):
        assert main(shlex.split(command), open=lambda _: mind) == 0
        printed.append(f"$ mind {command}\n{capsys.readouterr().out}")

    told = "".join(printed).replace(str(user), "~")
    assert re.sub(r"-[0-9a-f]{12}-[0-9a-f]{16}\.bak", "-….bak", told) == block


def test_the_table_of_clients_is_complete() -> None:
    rows = re.findall(r"^\| `(\S+)` \|.*\| (yes)? ?\|$", INSTALL, re.MULTILINE)
    assert rows == [(one.name, "yes" if one.hooks else "") for one in CLIENTS]


@pytest.mark.req("004-33", "004-34", "004-35")
def test_the_table_of_prompts_is_true() -> None:
    rows = re.findall(r"^\| (.+, .+) \| (\w+) \| (`.+`) \|$", EXPOSURE, re.MULTILINE)
    assert len(rows) == 2
    for words, intent, tools in rows:
        for word in words.split(", "):
            found = classify(word)
            assert (found.intent.value, found.tools) == (
                intent,
                tuple(tool.strip("`") for tool in tools.split(", ")),
            )


@pytest.mark.req("004-45")
def test_the_lines_of_the_log_are_those_that_are_written() -> None:
    lines = []
    for said in ("continue", "it failed"):
        found = classify(said)
        exposure = found._replace(session="s", at=NOW)
        lines.append(f"mind: {described(exposure, found.tools)}")

    assert exposure_log.name.startswith("mind")
    assert "\n".join(lines) in EXPOSURE


@pytest.mark.req("004-49")
def test_the_matrix_has_the_clients_that_were_asked_for() -> None:
    matrix = EXPOSURE.partition("## Clients")[2]
    for client in ("Claude Code", "Claude Desktop", "Codex", "Antigravity"):
        assert re.search(rf"^\| {client} \|", matrix, re.MULTILINE)
