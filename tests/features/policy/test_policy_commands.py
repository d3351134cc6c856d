"""The `mind policy` commands."""

import json
from typing import Any

import pytest

from mimo.call import Call
from mimo.call.spec import specs_in
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.features.conversations import commands as conversations
from mimo.features.items import commands as items
from mimo.features.memory_files import commands as memory_files
from mimo.features.policy.commands import REQUESTS
from mimo.guard.policy import FILE, TOOLS


def run(call: Call, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """Returns exit status and answer of a command, or its error."""
    status = main([*words, "--json"], open=lambda _: call.mind)
    out, err = capsys.readouterr()
    return status, json.loads(out or err)


def write(call: Call, text: str) -> None:
    (call.mind.project.root / FILE).write_text(text, encoding="utf-8")


def test_a_rule_may_name_each_tool_in_any_spelling(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    adapters = (items, memory_files, conversations)
    declared = {spec.name for spec in all_commands().all()} | REQUESTS.keys()
    declared |= {
        spec.name for module in adapters for spec in specs_in(vars(module), module.__name__)
    }
    assert declared <= set(TOOLS)
    names = [*TOOLS, "save/*", "load/*", "search/*", "evolve/*", "*"]
    for spelling in (str, str.upper, lambda name: name.replace("/", ".").replace("_", "-")):
        rules = "".join(f"  '{spelling(name)}': {{}}\n" for name in names)
        write(call, f"tool_permissions:\n{rules}")
        assert run(call, capsys, "policy", "check")[0] == 0
