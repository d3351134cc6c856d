"""The `mind policy` commands."""

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.features.policy.commands import REQUESTS
from mimo.guard.policy import FILE, TOOLS
from tests.kit import ask


def write(call: Call, text: str) -> None:
    (call.mind.project.root / FILE).write_text(text, encoding="utf-8")


def test_a_rule_may_name_each_tool_in_any_spelling(call: Call) -> None:
    declared = {spec.name for spec in all_commands().all()} | REQUESTS.keys()
    assert declared <= set(TOOLS)
    names = [*TOOLS, "save/*", "load/*", "search/*", "evolve/*", "*"]
    for spelling in (str, str.upper, lambda name: name.replace("/", ".").replace("_", "-")):
        rules = "".join(f"  '{spelling(name)}': {{}}\n" for name in names)
        write(call, f"tool_permissions:\n{rules}")
        assert ask(call, "policy", "check")[0] == 0
