"""The policy and the audit log at each moment of a client's hooks."""

import json
import os
import subprocess
import sys

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.features.hooks.events import Dialect, Event, Moment
from mimo.features.hooks.scene import CALLS, Scene, log_path
from mimo.features.policy.commands import HOOKS
from mimo.features.upkeep.commands import config
from mimo.guard.policy import FILE
from mimo.memory.model import Kind
from mimo.operations import overview
from tests.features.hooks.test_capture import Agent
from tests.features.hooks.test_moments import CODE, Client, edge, remember

_ = edge
DENIES = 'tool_permissions: {"*": {operations: []}}'
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
        call.mind.trust.approve(call.mind.guard.approvals())


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
        ("{memories: {operations: [write]}}", EVERY - {"summary"}),
        ("{memories: {operations: [read]}}", {"summary"}),
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


@pytest.mark.attack("an earlier or missing policy widens")
def test_a_hook_keeps_to_the_approved_policy_of_a_missing_file(call: Call) -> None:
    event = Event(dialect=Dialect.CLAUDE, name="UserPromptSubmit", moment=Moment.PROMPT)
    root = call.mind.project.root
    scene = Scene(event, home=call.mind.home, root=root, now=call.mind.now(), environ={})
    assert scene.permits()

    (root / FILE).write_text(DENIES, "utf-8")
    call.mind.trust.approve_file(FILE)
    (root / FILE).unlink()
    scene = Scene(event, home=call.mind.home, root=root, now=call.mind.now(), environ={})
    assert not scene.permits()
    assert not scene.allows("mind_add", writes=True)


def test_a_denied_moment_is_recorded_and_logged(claude: Client, call: Call, edge: str) -> None:
    policy(call, 'tool_permissions: {"*": {operations: []}}')
    given(claude)
    assert [status for _, _, status in records(call)] == ["denied"] * 5
    assert "`hook/prompt`: its operations are none" in log_path(call.mind.home).read_text("utf-8")


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


def test_the_policy_knows_each_moment() -> None:
    assert {(name, HOOKS[name][0]) for name in HOOKS} == set(CALLS.values())


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
