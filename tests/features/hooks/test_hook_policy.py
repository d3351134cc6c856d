"""The policy and the audit log at each moment of a client's hooks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.features.hooks.scene import CALLS, log_path
from mimo.features.policy.commands import HOOKS
from mimo.features.upkeep.commands import config
from mimo.guard.policy import FILE
from mimo.memory.model import Kind
from mimo.operations import overview
from tests.features.hooks.test_capture import Agent
from tests.features.hooks.test_moments import CODE, Client, edge, remember

_ = edge
QUESTION = "why do uploads fail behind the proxy?"
RESUME = "let's continue where we stopped"
SUMMARY = "We moved the login to Rust. Next: write the tests for the lexer and release it."


@pytest.fixture
def claude(call: Call) -> Client:
    remember(call, Kind.DECISION, "Use JWT for auth")
    remember(call, Kind.ISSUE, "Uploads above 100 MB fail behind the proxy")
    remember(call, Kind.CHECKPOINT, "Wrote the token refresh; its tests are missing")
    return Client(call)


def policy(call: Call, text: str, *, approved: bool = True) -> None:
    (call.mind.project.root / FILE).write_text(f"{text}\n", encoding="utf-8")
    call.mind.trust.follow(False)
    if approved:
        call.mind.trust.approve(call.mind.guard.digests())


def records(call: Call) -> list[tuple[str, str, str]]:
    """Returns tool, operation and status of each call of the client."""
    path = call.mind.folder / ".local" / "audit.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    events = [json.loads(line)["event"] for line in lines]
    ours = [event for event in events if event.get("agent") == "claude-code"]
    return [(event["tool"], event["operation"], event["status"]) for event in ours]


def summaries(call: Call) -> list[str]:
    every = [record.memory for record in overview.everything(call)]
    return [memory.content for memory in every if memory.category == "session"]


def given(client: Client) -> dict[str, bool]:
    """Returns whether each moment gives or keeps something, in a session of its own."""
    number = len(records(client.call))
    names = [f"{moment}{number}" for moment in ("start", "prompt", "resume", "edit", "end")]
    tool = {"tool_name": "Write", "tool_input": {"file_path": "a.ts", "content": CODE}}
    before = summaries(client.call)
    answers = {
        "start": bool(client.start(session_id=names[0])),
        "prompt": bool(client.prompt(QUESTION, session_id=names[1])),
        "resume": "token refresh" in client.prompt(RESUME, session_id=names[2]),
        "edit": bool(client.send("PreToolUse", **tool, session_id=names[3])),
    }
    client.send("PostCompact", compact_summary=SUMMARY, session_id=names[4])
    return answers | {"summary": summaries(client.call) != before}


EVERY = {"start", "prompt", "resume", "edit", "summary"}


@pytest.mark.usefixtures("edge")
@pytest.mark.attack("memory past the policy by a hook")
@pytest.mark.parametrize(
    ("rules", "denied"),
    [
        ('{"*": {operations: []}}', EVERY),
        ('{"*": {operations: [read]}}', {"summary"}),
        ('{"*": {operations: [write]}}', EVERY - {"summary"}),
        ("{mind_context: {operations: []}}", {"start"}),
        ("{mind_search: {operations: []}}", {"prompt", "resume"}),
        ("{load/checkpoint: {operations: []}}", {"resume"}),
        ("{mind_edges: {operations: []}}", {"edit"}),
        ("{memory: {operations: [read]}}", {"summary"}),
        ("{hook/start: {operations: []}}", {"start"}),
        ("{hook/prompt: {operations: []}}", {"prompt", "resume"}),
        ("{hook/edit: {operations: []}}", {"edit"}),
        ("{hook/summary: {operations: []}}", {"summary"}),
        ("{hook/stop: {operations: []}}", set()),
        ("{mind_serach: {operations: []}}", EVERY),
        ("[]", EVERY),
    ],
)
def test_a_hook_gives_and_keeps_only_what_the_policy_permits(
    claude: Client, call: Call, rules: str, denied: set[str]
) -> None:
    policy(call, f"tool_permissions: {rules}")
    assert {name for name, is_given in given(claude).items() if not is_given} == denied


def test_without_a_policy_what_a_hook_gives_is_recorded(
    claude: Client, call: Call, edge: str
) -> None:
    assert all(given(claude).values())
    assert claude.prompt("hello there", session_id="other") == ""
    assert records(call) == [
        ("hook/start", "read", "ok"),
        ("hook/prompt", "read", "ok"),
        ("hook/prompt", "read", "ok"),
        ("hook/edit", "read", "ok"),
        ("hook/summary", "write", "ok"),
    ]
    assert main(["audit", "verify"], open=lambda _: call.mind) == 0


def test_a_denied_moment_is_recorded_and_logged(claude: Client, call: Call, edge: str) -> None:
    policy(call, 'tool_permissions: {"*": {operations: []}}')
    given(claude)
    assert [status for _, _, status in records(call)] == ["denied"] * 5
    assert "`hook/prompt`: its operations are none" in log_path(call.mind.home).read_text("utf-8")


def test_a_denied_start_is_explained_to_the_user_once_for_each_policy(
    claude: Client, call: Call
) -> None:
    def notice() -> str:
        answer = claude.send("SessionStart", source="startup") or {}
        assert "hookSpecificOutput" not in answer
        return str(answer.get("systemMessage", ""))

    for text in ('{"*": {operations: []}}', "{mind_context: {operations: [write]}}"):
        policy(call, f"tool_permissions: {text}")
        assert "mind policy explain hook/start" in notice()
        assert notice() == ""
    policy(call, "tool_permissions: {mind_serach: {}}")
    for _attempt in range(2):
        assert f"{FILE}:1: there is no tool `mind_serach`" in notice()


def test_the_faults_of_an_unapproved_policy_are_not_quoted(claude: Client, call: Call) -> None:
    policy(call, "tool_permissions: {run_rm_rf: {}}", approved=False)
    answer = claude.send("SessionStart", source="startup") or {}
    assert f"{FILE}:1" in answer["systemMessage"]
    assert "rm_rf" not in json.dumps(answer)


def test_limits_count_the_moments_of_hooks(claude: Client, call: Call) -> None:
    policy(call, "rate_limits: {tools: {mind_search: {burst: 1, sustained: 0.02}}}")
    assert claude.prompt(QUESTION, session_id="a")
    assert claude.prompt(QUESTION, session_id="b") == ""
    assert claude.start(session_id="c")
    assert records(call) == [
        ("hook/prompt", "read", "ok"),
        ("hook/prompt", "read", "denied"),
        ("hook/start", "read", "ok"),
    ]


def test_a_summary_is_replaced_only_with_the_permission_to_edit(claude: Client, call: Call) -> None:
    claude.send("PostCompact", compact_summary=SUMMARY)
    policy(call, "tool_permissions: {mind_edit: {operations: [read]}}")
    claude.send("PostCompact", compact_summary="Another text.")
    assert summaries(call) == [SUMMARY]
    claude.send("PostCompact", compact_summary="Another text.", session_id="s2")
    assert sorted(summaries(call)) == ["Another text.", SUMMARY]


def test_a_message_is_not_remembered_for_a_summary_that_is_denied(
    claude: Client, call: Call
) -> None:
    policy(call, "tool_permissions: {mind_add: {operations: [read]}}")
    claude.send("Stop", last_assistant_message=f"{SUMMARY} " * 9)
    texts = [file.read_text("utf-8") for file in (call.mind.folder / ".local").rglob("*.json")]
    assert not any("Rust" in text for text in texts)
    claude.send("SessionEnd", reason="exit")
    assert summaries(call) == []


@pytest.mark.parametrize(
    ("rules", "is_asked"),
    [
        ("{}", True),
        ("{mind_list: {operations: []}}", False),
        ("{mind_search: {operations: []}}", False),
        ('{"*": {operations: [read]}}', False),
        ('{"*": {operations: [read]}, save/insight: {operations: [write]}}', True),
    ],
)
def test_the_request_needs_the_permission_to_list_and_to_save(
    call: Call, rules: str, is_asked: bool
) -> None:
    config(call, "hook.capture", "on")
    policy(call, f"tool_permissions: {rules}")
    agent = Agent(call)
    agent.work()
    assert bool(agent.asked()) is is_asked
    assert (("hook/stop", "read", "ok") in records(call)) is is_asked


def test_explain_names_the_rule_for_each_moment(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {(name, HOOKS[name][0]) for name in HOOKS} == set(CALLS.values())
    for name in HOOKS:
        assert main(["policy", "explain", name], open=lambda _: call.mind) == 0
    policy(call, 'tool_permissions:\n  "*": {operations: [read]}\n  mind_search: {operations: []}')
    statuses = {name: main(["policy", "explain", name], open=lambda _: call.mind) for name in HOOKS}
    shown = capsys.readouterr().out
    denied = {"hook/prompt", "hook/stop", "hook/summary"}
    assert {name for name, status in statuses.items() if status == 5} == denied
    assert f"denied  hook/summary write\n  its operations are read ({FILE}:2)" in shown


def test_outside_of_projects_the_record_is_kept_at_home(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    user = call.user(make=True)
    assert user is not None
    remember(user, Kind.FACT, "Always use pnpm", importance=0.9)
    assert "pnpm" in Client(call, cwd=str(tmp_path)).start()
    log = (call.mind.home / "audit" / "audit.jsonl").read_text("utf-8")
    assert '"tool":"hook/start"' in log
    assert records(call) == []


def test_a_moment_without_an_answer_does_not_load_the_guard(claude: Client, call: Call) -> None:
    program = (
        "import sys; from mimo.features.hooks.command import main; main(['claude-code']);"
        "print([name for name in sys.modules if name.startswith('mimo.guard.')], file=sys.stderr)"
    )
    fields = {"hook_event_name": "UserPromptSubmit", "prompt": "hello there"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(claude.fields | fields).encode(),
        env=os.environ | {"MIND_HOME": str(call.mind.home)},
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr.strip()) == (b"", b"[]")


def test_a_record_that_can_not_be_written_does_not_stop_the_notes(
    claude: Client, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (call.mind.folder / ".local" / "audit.jsonl").mkdir(parents=True)
    assert claude.start()
    policy(call, 'tool_permissions: {"*": {operations: []}}')
    assert claude.prompt(QUESTION) == ""
