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

FAULTY = """\
tool_permissions:
  putMemory:
    allowed_namespaces: ["session*"]
    operation: [write]
"""


def run(call: Call, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """Returns exit status and answer of a command, or its error."""
    status = main([*words, "--json"], open=lambda _: call.mind)
    out, err = capsys.readouterr()
    return status, json.loads(out or err)


def write(call: Call, text: str) -> None:
    (call.mind.project.root / FILE).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["putMemory", "agent.a"], 0),
        (["putMemory", "agent.a", "write"], 0),
        (["put_memory", "agent.a"], 1),
        (["putMemory", "public.a"], 5),
        (["putMemory", "agent.a", "read"], 5),
        (["listMemory", "public.a"], 0),
        (["mind-search"], 0),
        (["putMemory", "../x"], 2),
    ],
)
def test_explain_has_exit_status_5_for_a_denied_call(
    call: Call, capsys: pytest.CaptureFixture[str], words: list[str], status: int
) -> None:
    assert run(call, capsys, "policy", "explain", *words)[0] == status


def test_explain_names_the_rule_and_the_line(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    write(call, 'tool_permissions:\n  putMemory: {allowed_namespaces: ["agent.*"]}\n')
    _, permitted = run(call, capsys, "policy", "explain", "putMemory", "agent.a")
    _, denied = run(call, capsys, "policy", "explain", "putMemory", "session.a")

    assert permitted["reason"] == "permitted by .mind/policy.yaml:2"
    assert denied["reason"] == "its namespaces are agent.* (.mind/policy.yaml:2)"
    assert denied["limits"][0] == {"limits": "putMemory", "sustained": 10.0, "burst": 50}


def test_check_lists_every_fault_and_no_tool_is_permitted(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    write(call, FAULTY)
    status, output = run(call, capsys, "policy", "check")
    refused, error = run(call, capsys, "list")

    assert status == 1
    assert [(fault["line"], fault["file"]) for fault in output["faults"]] == [(3, FILE), (4, FILE)]
    healthy, checks = run(call, capsys, "doctor")
    assert healthy == 1
    assert [
        (check["file"], check["line"]) for check in checks["checks"] if check["name"] == "policy"
    ] == [
        (FILE, 3),
        (FILE, 4),
    ]
    assert refused == 5
    assert error["error"]["code"] == "PERMISSION_DENIED"
    assert run(call, capsys, "policy", "show")[0] == 2


def test_a_rule_or_a_limit_for_an_unknown_tool_makes_the_policy_invalid(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = "tool_permissions:\n  {}: {{operations: []}}\n"
    limit = "rate_limits:\n  tools: {{{}: {{burst: 1}}}}\n"
    for name, hint in {
        "mind_serach": "; did you mean `mind_search`?",
        "putMemori": "; did you mean `putMemory`?",
        "mcp__mind__save_decision": "; did you mean `save/decision`?",
        "browser_click": " in this version of mind",
    }.items():
        for text in (rule, limit):
            write(call, text.format(name))
            status, output = run(call, capsys, "policy", "check")
            assert status == 1
            reason = f"there is no tool `{name}`{hint}"
            assert output["faults"] == [{"file": FILE, "line": 2, "reason": reason}]
            refused, error = run(call, capsys, "search", "tea")
            assert (refused, error["error"]["code"]) == (5, "PERMISSION_DENIED")
            assert run(call, capsys, "doctor")[0] == 1


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


def test_show_lists_the_rules_and_whether_they_are_approved(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    _, default = run(call, capsys, "policy", "show")
    write(call, "pii: {on_write: redact}\ntool_permissions: {mind_search: {operations: []}}\n")
    call.mind.trust.follow(False)
    _, own = run(call, capsys, "policy", "show")

    assert (default["file"], default["trusted"], default["pii_on_write"]) == (None, True, "refuse")
    assert [rule["tool"] for rule in default["rules"]] == [
        "listMemory",
        "getMemory",
        "getContext",
        "putMemory",
        "deleteMemory",
    ]
    assert (own["file"], own["trusted"], own["pii_on_write"]) == (FILE, False, "refuse")
    assert own["rules"][-1]["source"] == ".mind/policy.yaml:2"


def test_a_rule_that_equals_a_default_is_shown_once(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    write(call, 'tool_permissions:\n  "*": {operations: [read]}\n')
    run(call, capsys, "untrust")
    _, shown = run(call, capsys, "policy", "show")

    tools = [rule["tool"] for rule in shown["rules"]]
    assert not shown["trusted"]
    assert (len(tools), tools[-1]) == (len(set(tools)), "*")


def test_an_invalid_policy_permits_only_diagnosis(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    write(call, FAULTY)
    assert run(call, capsys, "search", "tea")[0] == 5
    assert run(call, capsys, "status")[0] == 0
