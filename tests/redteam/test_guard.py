"""Ways around the policy and its record: by another tool, another request, another surface."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.client import Client

from mimo.call import Call, Caller, Surface
from mimo.call.spec import Spec, command, specs_in, to_json
from mimo.call.table import all_commands
from mimo.errors import Denied, MindError, NotFound, RateLimited, StorageFailed
from mimo.features import audit
from mimo.features.policy.commands import REQUESTS
from mimo.guard.policy import FAMILIES, LEADERS, Operation, folded
from mimo.operations.invoke import invoke
from mimo.server import completions, prompts, resources
from tests.kit import is_of_core, over_pipe, run

SPECS = {spec.key: spec for spec in all_commands().all()}
AGENT = Caller(surface=Surface.MCP, name="an agent")
PERSON = Caller(surface=Surface.CLI)
SHELL = Caller(surface=Surface.CLI, agent="claude-code")
MEMBER = "policy passed by another tool of the group"
REQUEST = "policy passed by a resource or a prompt"
COMMAND = "policy passed by a command of the command line"
KEY = "redacted key shown elsewhere"
RAW = "call_212-234-5678"


def call_tool(call: Call, key: str, caller: Caller = AGENT, /, **arguments: Any) -> Any:
    return to_json(invoke(SPECS[key], call.by(caller), arguments))


def policy(call: Call, text: str) -> None:
    (call.mind.folder / "policy.yaml").write_text(text, encoding="utf-8")


def events(call: Call) -> list[dict[str, Any]]:
    return [link.event for link in audit.recorded(call, None, None)]


def test_every_leader_member_and_family_is_a_tool() -> None:
    names = {folded(spec.name) for spec in SPECS.values()}

    assert {*LEADERS, *LEADERS.values()} <= names
    assert not {*LEADERS} & {*LEADERS.values()}
    for family in FAMILIES:
        assert [name for name in names if name.startswith(family[:-1])]


@pytest.mark.attack(MEMBER)
@pytest.mark.parametrize(("member", "leader"), LEADERS.items())
def test_a_rule_binds_the_tools_that_reach_the_same(call: Call, member: str, leader: str) -> None:
    tool = next(spec.name for spec in SPECS.values() if folded(spec.name) == leader)
    spec = next(spec for spec in SPECS.values() if folded(spec.name) == member)
    policy(call, f"tool_permissions: {{{tool}: {{operations: []}}}}\n")
    caller = AGENT if Surface.MCP in spec.surfaces else PERSON

    with pytest.raises(Denied) as denied:
        invoke(spec, call.by(caller), filled(spec))
    assert "policy.yaml:1" in denied.value.hint

    policy(
        call,
        f"tool_permissions: {{{tool}: {{operations: []}}, {member}: {{operations: [read]}}}}\n",
    )
    if spec.needs.operation is Operation.READ:
        assert not is_denied(spec, call, caller)


def is_denied(spec: Spec, call: Call, caller: Caller) -> bool:
    try:
        invoke(spec, call.by(caller), filled(spec))
    except Denied:
        return True
    except MindError:
        return False
    return False


def filled(spec: Spec) -> dict[str, Any]:
    """Returns arguments with which a command gets as far as its guard."""
    words = {"namespace": "agent.x", "key": "k", "outcome": "SUCCESS", "intent": "x"}
    given: dict[str, Any] = {}
    for param in spec.params:
        if param.required:
            choice = param.shape.choices[0] if param.shape.choices else None
            text = choice or words.get(param.name, "some words")
            given[param.name] = [text] if param.shape.items else text
            if param.arg.object:
                given[param.name] = {}
    return given


@pytest.mark.attack(REQUEST)
def test_resources_and_prompts_obey_the_policy_and_are_recorded(
    call: Call, record_property: Callable[[str, object], None]
) -> None:
    written = call_tool(call, "mind_add", content="Tea is served at four")
    call_tool(call, "save/checkpoint", summary="The teapot is half full")
    uri = f"mind://memory/{written['id']}"
    requests: list[tuple[str, Callable[[Client], Any]]] = [
        ("resources/list", lambda client: client.list_resources()),
        ("resources/read", lambda client: client.read_resource(uri)),
        ("resources/read", lambda client: client.read_resource("mind://context")),
        ("prompts/get", lambda client: client.get_prompt("resume_work")),
        ("prompts/get", lambda client: client.get_prompt("record_decision")),
    ]

    async def each(client: Client) -> list[str]:
        answers = []
        for _, ask in requests:
            try:
                answers.append(repr(await ask(client)))
            except MCPError as error:
                answers.append(error.error.data["error"]["code"])
        return answers

    closed = "{operations: []}"
    everything = ("mind_list", "mind_show", "mind_context", "load/checkpoint", "prompts/get")
    groups = f"memory: {{operations: [write]}}, load/*: {closed}, mind_context: {closed}"
    policies = [
        f'tool_permissions: {{"*": {closed}}}\n',
        f"tool_permissions: {{{', '.join(f'{name}: {closed}' for name in everything)}}}\n",
        f"tool_permissions: {{{groups}, prompts/get: {closed}}}\n",
        "not a policy\n",
    ]

    async def under_each_policy(client: Client) -> list[list[str]]:
        answers = [await each(client)]
        for text in policies:
            policy(call, text)
            answers.append(await each(client))
        return answers

    start = len(events(call))
    call.mind.close()
    permitted, *denied = over_pipe(call.mind.project.root, under_each_policy)
    assert all("tea" in text.lower() for text in permitted[:-1])
    assert denied == [["PERMISSION_DENIED"] * len(requests)] * len(policies)
    record_property("tried", len(policies) * len(requests))

    added = events(call)[start:]
    names = [name for name, _ in requests]
    assert [event["tool"] for event in added] == names * (1 + len(policies))
    assert [event["status"] for event in added] == ["ok"] * 5 + ["denied"] * 5 * len(policies)
    assert {event["operation"] for event in added} == {"read"}
    assert all(event["agent"] for event in added)


@pytest.mark.attack(REQUEST)
def test_notes_that_the_policy_withholds_are_not_in_a_prompt(call: Call) -> None:
    call_tool(call, "save/decision", topic="tea", decision="Tea is served at four", reasoning="x")
    shown = prompts.prompt(call.by(AGENT), "resume_work", {})
    policy(call, "tool_permissions: {mind_context: {operations: []}}\n")

    withheld = prompts.prompt(call.by(AGENT), "resume_work", {})

    assert "Tea is served" in repr(shown)
    assert "Tea is served" not in repr(withheld)


@pytest.mark.attack(REQUEST)
def test_a_limit_counts_resources_and_prompts(call: Call) -> None:
    policy(
        call,
        "rate_limits: {tools: {mind_list: {sustained: 0.001, burst: 1},"
        " prompts/get: {sustained: 0.001, burst: 1}}}\n",
    )
    resources.newest(call.by(AGENT))
    with pytest.raises(RateLimited):
        call_tool(call, "mind_list")
    prompts.prompt(call.by(AGENT), "record_decision", {})
    with pytest.raises(RateLimited):
        prompts.prompt(call.by(AGENT), "record_decision", {})


FREE = set(
    "mind_init mind_install mind_uninstall mind_demo mind_config mind_metrics mind_trust"
    " mind_untrust mind_audit mind_audit_verify mind_audit_export policy_show policy_check"
    " policy_explain mind_module_install mind_module_list daemon_start daemon_stop daemon_restart"
    " daemon_run daemon_status daemon_logs mind_projects_forget".split()
)
"""The commands of the core that no policy binds while a person uses them."""


def test_each_command_of_the_command_line_alone_declares_what_it_needs() -> None:
    import ast

    undeclared = []
    for path in Path(command.__code__.co_filename).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "command":
                given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                if given.get("surfaces") == "Surface.CLI" and "needs" not in given:
                    undeclared.append(given.get("cli"))

    assert undeclared == []
    free = [spec for spec in SPECS.values() if spec.needs.person]
    assert {spec.name for spec in free if is_of_core(spec)} == FREE
    assert not [spec.key for spec in free if spec.needs.namespace]
    assert not [spec.key for spec in free if Surface.MCP in spec.surfaces]


@pytest.mark.attack(COMMAND)
def test_a_policy_binds_what_writes_memory_whatever_the_surface(
    call: Call, record_property: Callable[[str, object], None]
) -> None:
    policy(call, 'tool_permissions: {"*": {operations: []}}\n')
    bound = [spec for spec in SPECS.values() if not spec.needs.person]

    for spec in bound:
        caller = PERSON if Surface.CLI in spec.surfaces else AGENT
        with pytest.raises(Denied):
            invoke(spec, call.by(caller), filled(spec))
    record_property("tried", len(bound))


@pytest.mark.attack(COMMAND)
def test_an_agent_with_a_shell_is_bound_by_every_rule(
    call: Call, record_property: Callable[[str, object], None]
) -> None:
    policy(call, 'tool_permissions: {"*": {operations: []}}\n')
    free = [spec for spec in SPECS.values() if spec.needs.person]
    for spec in free:
        with pytest.raises(Denied):
            invoke(spec, call.by(SHELL), filled(spec))
    record_property("tried", len(free))


def test_every_request_of_a_client_is_known_to_the_policy() -> None:
    declared = [
        spec
        for module in (completions, prompts, resources)
        for spec in specs_in(vars(module), module.__name__)
    ]

    likes = {(spec.name, spec.like) for spec in declared}
    assert likes == {(name, like) for name, likes in REQUESTS.items() for like in likes}


def test_explain_covers_every_command_and_request(call: Call) -> None:
    for name in REQUESTS:
        run(call, "policy", "explain", name)
    policy(call, "tool_permissions: {mind_show: {operations: []}}\n")
    run(call, "policy", "explain", "resources/read", status=Denied.exit_status)
    rules = ", ".join(f"{name}: {{operations: [read]}}" for name in REQUESTS)
    policy(call, f"tool_permissions: {{{rules}, load/*: {{}}}}\n")
    run(call, "policy", "check")


@pytest.mark.attack(KEY)
def test_a_redacted_key_is_redacted_wherever_it_is_named(
    call: Call, record_property: Callable[[str, object], None]
) -> None:
    policy(call, "pii: {on_write: allow}\n")
    call_tool(call, "mind_trust", PERSON, all=True)
    tried = 0
    for key in (RAW, RAW.title(), f"x.{RAW}.y", f"to_bob-at-example.com{RAW}"):
        put = call_tool(call, "putMemory", namespace="agent.x", key=key, value=1)
        (shown,) = call_tool(call, "listMemory", namespace="agent.x")["keys"]
        got = call_tool(call, "getMemory", namespace="agent.x", key=shown)
        (file,) = (call.mind.folder / "values" / "agent.x").glob("*.md")
        answers = [put, got, shown, call_tool(call, "getMemory", namespace="agent.x", key=key)]
        assert shown in put["file"]
        assert shown in got["file"]

        file.write_text("---\nvalue: [\n---\n", encoding="utf-8")
        answers.append(call_tool(call, "listMemory", namespace="agent.x"))
        calls: list[tuple[str, str, dict[str, Any]]] = [
            *(
                (name, given, {})
                for name in ("getMemory", "deleteMemory")
                for given in (key, shown)
            ),
            ("putMemory", key, {"value": 2}),
        ]
        for name, given, more in calls:
            with pytest.raises((StorageFailed, NotFound)) as failed:
                call_tool(call, name, namespace="agent.x", key=given, **more)
            answers += [failed.value.wire(), str(failed.value), failed.value.hint]
        file.unlink()
        for given in (key, shown):
            with pytest.raises(MindError) as removed:
                call_tool(call, "getMemory", namespace="agent.x", key=given)
            answers += [removed.value.wire(), removed.value.hint]
        answers += [*run(call, "doctor", status=None), *events(call)]
        assert "234-5678" not in json.dumps(answers).lower()
        tried += len(answers)
    record_property("tried", tried)
