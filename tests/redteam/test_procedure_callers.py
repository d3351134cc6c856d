"""The caller of a procedure's run: its commands have the rights of that caller, in any process."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.spec import OPERATION, Spec, to_json
from mimo.call.table import all_commands
from mimo.errors import Conflict, Denied, MindError, Untrusted
from mimo.extensions.team import tokens
from mimo.extensions.team.tokens import Member, Scope, digest_of
from mimo.features import audit
from mimo.features.procedures import calling, executing
from mimo.features.procedures.machine import Status
from mimo.features.procedures.storage import CALLER, Execution
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.project import projects
from mimo.project.init import init
from tests.conftest import NOW
from tests.sample_procedures import WAIT, Time, put, text

TOOLS = all_commands().tools()
PERSON = Caller(surface=Surface.CLI)
AGENT = Caller(surface=Surface.MCP, name="claude-code")
SECRET = "The launch code is 4711"
KIND = "a procedure's command past the limits of its caller"

ADD = """\
initial_state: agree
states:
  agree:
    transitions: [{event: "yes", target: add}, {event: "no", target: done}]
  add:
    action: {module: mind, function: mind_add, args: [{content: "Tea is at four"}]}
    transitions: [{event: success, target: done}]
  done: {}
"""


def call_tool(call: Call, tool: str, caller: Caller, /, **arguments: Any) -> Any:
    return to_json(invoke(TOOLS[tool][0], call.by(caller), arguments))


def member(name: str = "sam", scope: Scope = Scope.WRITE, **fields: Any) -> Member:
    digest = digest_of(f"the-secret-token-of-{name}")
    return Member(name=name, email=f"{name}@example.org", scope=scope, digest=digest, **fields)


def user(call: Call, file: Path, name: str = "sam") -> Caller:
    """The caller of a user, whose token is in the file."""
    members = {each.name: each for each in tokens.Tokens(file).members()}
    return Caller(surface=Surface.MCP, name="cursor", permissions=members[name])


@pytest.fixture
def call(call: Call, tmp_path: Path, home: Path) -> Call:
    """A memory beside another project and a memory for all projects, each with a secret."""
    call.mind.timer = Time().timer()
    root = tmp_path / "diary"
    root.mkdir()
    init(root, home, now=NOW)
    other = Call(
        Mind(home=home, project=projects.explicit(root, home), clock=call.mind.clock, environ={})
    )
    call_tool(other, "mind_add", PERSON, content=f"{SECRET} of the diary")
    call_tool(call, "mind_add", PERSON, content=f"{SECRET} of the account", user=True)
    return call


@pytest.fixture
def file(tmp_path: Path, call: Call) -> Path:
    """The tokens of two users, who may open this project only."""
    path, name = tmp_path / "tokens.toml", call.mind.project.root
    tokens.write(path, [member(each, projects=(str(name),)) for each in ("sam", "sue")])
    return path


def started(call: Call, name: str, caller: Caller) -> Execution:
    """A run that a caller has begun, and that waits for an event if the procedure does."""
    answer = call_tool(call, "run_procedure", caller, name=name, timeout=1)
    return executing.executions(call).find(answer["execution_id"])


def continued(call: Call, execution: Execution, caller: Caller, event: str = "yes") -> Any:
    call_tool(call, "send_event", caller, execution_id=execution.id, event=event)
    return call_tool(call, "resume_procedure", caller, execution_id=execution.id)


def signed(call: Call) -> str | None:
    """The agent that signed the only memory of the project; None for a person."""
    (path,) = (call.mind.folder / "facts").glob("*.md")
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("by: ")), None)


def journal(call: Call, execution: Execution) -> Path:
    return call.mind.folder / ".local" / "executions" / execution.id / "journal.jsonl"


# The limits of a user of a team.


def given(spec: Spec) -> dict[str, Any]:
    """Arguments for a command: any value for those that it needs, and all that reach further."""
    arguments: dict[str, Any] = {OPERATION: spec.operation} if spec.operation else {}
    for param in spec.params:
        if Surface.MCP not in param.arg.surfaces:
            continue
        if param.required:
            arguments[param.name] = "x"
        elif param.name in ("user", "scope"):
            arguments[param.name] = True if param.name == "user" else "all"
    return arguments


def outcome(act: Any) -> str:
    try:
        shown = json.dumps(act())
    except MindError as error:
        return f"{error.code} {getattr(error, 'reason', '')} {error.message}"
    assert SECRET not in shown
    return "done"


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE])
def test_a_procedure_permits_a_user_no_more_than_a_direct_call(call: Call, scope: Scope) -> None:
    caller = Caller(
        surface=Surface.MCP, name="cursor", permissions=member(scope=scope, projects=("shop",))
    )
    run = call.by(caller)
    specs = [each for group in TOOLS.values() for each in group if each.toolset != "procedures"]
    compared: dict[str, tuple[str, str]] = {}
    for spec in specs:
        arguments = given(spec)
        direct = {key: value for key, value in arguments.items() if key != OPERATION}
        compared[spec.key] = (
            outcome(lambda s=spec, a=direct: to_json(invoke(s, call.by(caller), a))),
            outcome(lambda s=spec, a=arguments: calling.run_command(run, s.name, a)),
        )

    denied = {key for key, both in compared.items() if both[0].startswith(Denied.code)}
    assert len(compared) > 50
    assert len(denied) > (20 if scope is Scope.READ else 5)
    for key in denied:
        direct_, within = compared[key]
        # An argument of another type is refused before the token is checked.
        assert within == direct_ or within.startswith("VALIDATION_ERROR"), key
    assert {key for key, both in compared.items() if both[1] == "done"} <= {
        key for key, both in compared.items() if both[0] == "done"
    }


@pytest.mark.attack(KIND)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mind_search", {"query": "launch code", "scope": "all"}),
        ("mind_list", {"user": True}),
        ("mind_add", {"content": "Deploy on Fridays", "user": True}),
        ("mind_sync", {}),
        ("mind_status", {}),
    ],
)
def test_a_run_of_a_user_reaches_no_other_project_and_no_account(
    call: Call, file: Path, tool: str, arguments: Mapping[str, Any]
) -> None:
    states = f"""\
initial_state: act
states:
  act:
    action: {{module: mind, function: {tool}, args: [{json.dumps(arguments)}]}}
    transitions: [{{event: success, target: done}}, {{event: error, target: done}}]
  done: {{}}
"""
    caller = user(call, file)
    call_tool(call, "register_procedure", caller, text=text("act", states))

    shown = json.dumps(call_tool(call, "run_procedure", caller, name="act"))

    assert SECRET not in shown
    assert "diary" not in shown
    assert len(call_tool(call, "mind_list", PERSON, user=True)["memories"]) == 1
    events = [link.event for link in audit.recorded(call, None, None)]
    assert {event.get("user") for event in events if event["tool"] == tool} >= {"sam"}


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("begun_by", ["sam", None])
def test_a_run_of_a_user_is_answered_stopped_and_continued_by_that_user_only(
    call: Call, file: Path, begun_by: str | None
) -> None:
    put(call, "add", ADD)
    owner = user(call, file, begun_by) if begun_by else PERSON
    execution, sue = started(call, "add", owner), user(call, file, "sue")

    with pytest.raises(Denied, match="another user"):
        call_tool(call, "send_event", sue, execution_id=execution.id, event="yes")
    with pytest.raises(Denied, match="another user"):
        call_tool(call, "cancel_procedure", sue, execution_id=execution.id)
    if begun_by:
        with pytest.raises(Denied, match="another user"):
            call_tool(call, "resume_procedure", sue, execution_id=execution.id)

    assert continued(call, execution, owner)["status"] == "completed"


@pytest.mark.attack(KIND)
def test_another_process_continues_a_run_of_a_user_with_the_rights_of_the_token(
    call: Call, file: Path
) -> None:
    put(call, "add", ADD.replace("{content:", "{user: true, content:"))
    execution = started(call, "add", user(call, file))
    done = continued(call, execution, PERSON)
    assert done["status"] == "failed"
    assert "memory for all projects" in done["error"]

    tokens.write(file, [member(projects=("diary",))])
    narrowed = started(call, "add", user(call, file))
    with pytest.raises(Denied):
        continued(call, narrowed, PERSON)
    tokens.write(file, [])
    with pytest.raises(Denied):
        call_tool(call, "resume_procedure", PERSON, execution_id=narrowed.id)


@pytest.mark.attack(KIND)
def test_a_run_ends_with_the_token_of_its_user(call: Call, file: Path) -> None:
    put(call, "wait", WAIT)
    execution = started(call, "wait", user(call, file))
    call.mind.timer = call.mind.timer._replace(sleep=lambda _: tokens.write(file, []))

    stopped = executing.carry_out(call, execution)

    assert stopped.status is Status.INTERRUPTED
    assert "the token of its user is no longer valid" in str(stopped.run.error)


# Agents and persons.


@pytest.mark.parametrize(
    ("first", "second", "by"),
    [
        (PERSON, PERSON, None),
        (AGENT, PERSON, "claude-code"),
        (PERSON, AGENT, "claude-code"),
        (Caller(surface=Surface.MCP, name="cursor"), AGENT, "claude-code"),
    ],
)
def test_a_run_acts_as_an_agent_if_one_began_or_continued_it(
    call: Call, first: Caller, second: Caller, by: str | None
) -> None:
    put(call, "add", ADD)

    assert continued(call, started(call, "add", first), second)["status"] == "completed"

    assert signed(call) == by


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("callers", [(PERSON, AGENT, PERSON), (AGENT, PERSON, PERSON)])
def test_a_run_stays_that_of_an_agent(call: Call, callers: Sequence[Caller]) -> None:
    put(call, "add", ADD)
    first, second, third = callers
    execution = started(call, "add", first)
    call_tool(call, "resume_procedure", second, execution_id=execution.id, timeout=1)

    continued(call, execution, third)

    assert signed(call) == "claude-code"


@pytest.mark.attack(KIND)
def test_a_changed_caller_is_not_trusted(call: Call) -> None:
    put(call, "add", ADD)
    execution = started(call, "add", AGENT)
    path = journal(call, execution)
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    start = json.loads(first)
    blank = dict.fromkeys(start[CALLER])
    without = {key: value for key, value in start.items() if key != CALLER}
    for changed in (start | {CALLER: blank}, without):
        path.write_text("\n".join([json.dumps(changed), *rest, ""]), encoding="utf-8")
        with pytest.raises(Untrusted):
            call_tool(call, "resume_procedure", PERSON, execution_id=execution.id)

    later = [json.loads(line) | {CALLER: blank} for line in rest]
    path.write_text("\n".join([first, *map(json.dumps, later), ""]), encoding="utf-8")
    continued(call, execution, PERSON)
    assert signed(call) == "claude-code"


def test_a_run_that_an_earlier_version_began_acts_as_an_agent(call: Call) -> None:
    put(call, "add", ADD)
    execution = started(call, "add", PERSON)
    path = journal(call, execution)
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    old = {key: value for key, value in json.loads(first).items() if key != CALLER}
    mark = executing.executions(call)._mark(execution.id, old)
    path.write_text("\n".join([json.dumps(old | {"mark": mark}), *rest, ""]), encoding="utf-8")

    assert continued(call, execution, PERSON)["status"] == "completed"

    assert signed(call) == "mcp"


def test_a_run_that_has_ended_is_not_continued_by_anyone(call: Call, file: Path) -> None:
    put(call, "add", ADD)
    execution = started(call, "add", user(call, file))
    continued(call, execution, user(call, file), "no")

    with pytest.raises(Conflict):
        call_tool(call, "resume_procedure", PERSON, execution_id=execution.id)
