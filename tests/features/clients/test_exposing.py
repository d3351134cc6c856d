"""The tools that agents see, which an installation may ask for."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.call.table import all_commands, listed
from mimo.errors import Invalid
from mimo.features.clients.commands import Installation, install
from mimo.features.clients.table import ClientName
from mimo.features.upkeep.commands import config
from mimo.frozen import replace

TOOLS = all_commands().tools()


@pytest.fixture(autouse=True)
def _of_a_user(call: Call, tmp_path: Path) -> None:
    call.mind.environ = {"HOME": str(tmp_path / "user"), "PATH": ""}


def answering(call: Call, answer: str | None) -> list[str]:
    """Lets a user at a terminal answer; returns the questions about tools."""
    asked: list[str] = []

    def ask(question: Any, _: float) -> str | None:
        if not question.text.startswith("Tools"):
            return None
        asked.append(question.text)
        return answer

    call.console = replace(call.console, ask=ask)
    return asked


def stored(call: Call) -> tuple[object, str]:
    (row,) = config(Call(call.mind.reopened()), "mcp.toolsets").settings
    return row.value, row.origin


def of(result: Installation) -> tuple[tuple[str, ...], int | None]:
    return result.toolsets, result.tools


def test_no_file_of_a_client_names_toolsets(call: Call, project: Path) -> None:
    install(call, ClientName("claude-code"), toolsets="core")
    assert json.loads((project / ".mcp.json").read_text())["mcpServers"]["mind"]["args"] == ["mcp"]


def test_the_option_is_stored_as_the_users_setting(call: Call) -> None:
    asked = answering(call, "all")
    assert of(install(call, ClientName("codex"), toolsets="core")) == (("core",), 13)
    assert stored(call) == (["core"], "user")
    assert asked == []


def test_without_a_terminal_nothing_is_stored(call: Call) -> None:
    assert of(install(call, ClientName("codex"))) == ((), len(listed(TOOLS, ())))
    assert stored(call) == ([], "default")


@pytest.mark.parametrize(
    ("answer", "chosen"), [("core", ("core",)), ("all", ("all",)), ("default", ())]
)
def test_the_first_installation_at_a_terminal_asks(
    call: Call, answer: str, chosen: tuple[str, ...]
) -> None:
    asked = answering(call, answer)
    assert of(install(call, ClientName("codex"))) == (chosen, len(listed(TOOLS, chosen)))
    (question,) = asked
    for groups, name in (((), "default"), (("core",), "core"), (("all",), "all")):
        number = len(listed(TOOLS, groups))
        assert re.search(rf"\n  {name}: {number} tools, about [\d,]+ tokens", question)
    assert stored(call) == (list(chosen), "user")
    again = Call(call.mind.reopened(), console=call.console)
    install(again, ClientName("cursor"))
    assert len(asked) == 1


def test_no_answer_stores_nothing(call: Call) -> None:
    answering(call, None)
    install(call, ClientName("codex"))
    assert stored(call) == ([], "default")


def test_a_dry_run_asks_and_stores_nothing(call: Call) -> None:
    asked = answering(call, "all")
    assert of(install(call, ClientName("codex"), toolsets="core", dry_run=True)) == (("core",), 13)
    assert (asked, stored(call)) == ([], ([], "default"))


def test_an_unknown_group_is_refused_before_any_change(call: Call, project: Path) -> None:
    with pytest.raises(Invalid, match="`few` is not a toolset"):
        install(call, ClientName("codex"), toolsets="core,few")
    assert not (project / ".codex").exists()


def test_toolsets_without_a_client_are_refused(call: Call) -> None:
    with pytest.raises(Invalid, match="no client"):
        install(call, toolsets="core")
