"""The caller of a procedure's run: its commands have the rights of that caller, in any process."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mimo.commands import all_commands
from mimo.commands.invoke import Caller, invoke
from mimo.commands.spec import OPERATION, Spec, Surface, to_json
from mimo.errors import Conflict, Denied, MindError, Untrusted
from mimo.features import audit
from mimo.features.procedures import calling, executing
from mimo.features.procedures.machine import Status
from mimo.features.procedures.storage import CALLER, Execution
from mimo.guard import tokens
from mimo.guard.tokens import Member, Scope, digest_of
from mimo.mind import Mind
from mimo.store import projects
from mimo.store.init import init
from tests.conftest import NOW
from tests.sample_procedures import BOOM, WAIT, Time, put, text

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


def call(mind: Mind, tool: str, caller: Caller, /, **arguments: Any) -> Any:
    return to_json(invoke(TOOLS[tool][0], mind, caller, arguments))


def member(name: str = "sam", scope: Scope = Scope.WRITE, **fields: Any) -> Member:
    digest = digest_of(f"the-secret-token-of-{name}")
    return Member(name=name, email=f"{name}@example.org", scope=scope, digest=digest, **fields)


def user(mind: Mind, file: Path, name: str = "sam") -> Caller:
    """The caller of a user, whose token is in the file."""
    members = {each.name: each for each in tokens.Tokens(file).members()}
    return Caller(surface=Surface.MCP, name="cursor", member=members[name])


@pytest.fixture
def mind(mind: Mind, tmp_path: Path, home: Path) -> Mind:
    """A memory beside another project and a memory for all projects, each with a secret."""
    mind.timer = Time().timer()
    root = tmp_path / "diary"
    root.mkdir()
    init(root, home, now=NOW)
    other = Mind(home=home, project=projects.explicit(root, home), clock=mind.clock, environ={})
    call(other, "mind_add", PERSON, content=f"{SECRET} of the diary")
    call(mind, "mind_add", PERSON, content=f"{SECRET} of the account", user=True)
    return mind


@pytest.fixture
def file(tmp_path: Path, mind: Mind) -> Path:
    """The tokens of two users, who may open this project only."""
    path, name = tmp_path / "tokens.toml", mind.project.root
    tokens.write(path, [member(each, projects=(str(name),)) for each in ("sam", "sue")])
    return path


def started(mind: Mind, name: str, caller: Caller) -> Execution:
    """A run that a caller has begun, and that waits for an event if the procedure does."""
    answer = call(mind, "run_procedure", caller, name=name, timeout=1)
    return executing.executions(mind).find(answer["execution_id"])


def continued(mind: Mind, execution: Execution, caller: Caller, event: str = "yes") -> Any:
    call(mind, "send_event", caller, execution_id=execution.id, event=event)
    return call(mind, "resume_procedure", caller, execution_id=execution.id)


def signed(mind: Mind) -> str | None:
    """The agent that signed the only memory of the project; None for a person."""
    (path,) = (mind.folder / "facts").glob("*.md")
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("by: ")), None)


def journal(mind: Mind, execution: Execution) -> Path:
    return mind.folder / ".local" / "executions" / execution.id / "journal.jsonl"


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
def test_a_procedure_permits_a_user_no_more_than_a_direct_call(mind: Mind, scope: Scope) -> None:
    caller = Caller(
        surface=Surface.MCP, name="cursor", member=member(scope=scope, projects=("shop",))
    )
    run = mind.acting_as(caller.name)
    run.member = caller.member
    specs = [each for group in TOOLS.values() for each in group if each.toolset != "procedures"]
    compared: dict[str, tuple[str, str]] = {}
    for spec in specs:
        arguments = given(spec)
        direct = {key: value for key, value in arguments.items() if key != OPERATION}
        compared[spec.key] = (
            outcome(lambda s=spec, a=direct: to_json(invoke(s, mind, caller, a))),
            outcome(lambda s=spec, a=arguments: calling.call(run, s.name, a)),
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
    mind: Mind, file: Path, tool: str, arguments: Mapping[str, Any]
) -> None:
    states = f"""\
initial_state: act
states:
  act:
    action: {{module: mind, function: {tool}, args: [{json.dumps(arguments)}]}}
    transitions: [{{event: success, target: done}}, {{event: error, target: done}}]
  done: {{}}
"""
    caller = user(mind, file)
    call(mind, "register_procedure", caller, text=text("act", states))

    shown = json.dumps(call(mind, "run_procedure", caller, name="act"))

    assert SECRET not in shown
    assert "diary" not in shown
    assert len(call(mind, "mind_list", PERSON, user=True)["memories"]) == 1
    events = [link.event for link in audit.recorded(mind, None, None)]
    assert {event.get("user") for event in events if event["tool"] == tool} >= {"sam"}


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("begun_by", ["sam", None])
def test_a_run_of_a_user_is_answered_stopped_and_continued_by_that_user_only(
    mind: Mind, file: Path, begun_by: str | None
) -> None:
    put(mind, "add", ADD)
    owner = user(mind, file, begun_by) if begun_by else PERSON
    execution, sue = started(mind, "add", owner), user(mind, file, "sue")

    with pytest.raises(Denied, match="another user"):
        call(mind, "send_event", sue, execution_id=execution.id, event="yes")
    with pytest.raises(Denied, match="another user"):
        call(mind, "cancel_procedure", sue, execution_id=execution.id)
    if begun_by:
        with pytest.raises(Denied, match="another user"):
            call(mind, "resume_procedure", sue, execution_id=execution.id)

    assert continued(mind, execution, owner)["status"] == "completed"


@pytest.mark.attack(KIND)
def test_another_process_continues_a_run_of_a_user_with_the_rights_of_the_token(
    mind: Mind, file: Path
) -> None:
    put(mind, "add", ADD.replace("{content:", "{user: true, content:"))
    execution = started(mind, "add", user(mind, file))
    done = continued(mind, execution, PERSON)
    assert done["status"] == "failed"
    assert "memory for all projects" in done["error"]

    tokens.write(file, [member(projects=("diary",))])
    narrowed = started(mind, "add", user(mind, file))
    with pytest.raises(Denied):
        continued(mind, narrowed, PERSON)
    tokens.write(file, [])
    with pytest.raises(Denied):
        call(mind, "resume_procedure", PERSON, execution_id=narrowed.id)


@pytest.mark.attack(KIND)
def test_a_run_ends_with_the_token_of_its_user(mind: Mind, file: Path) -> None:
    put(mind, "wait", WAIT)
    execution = started(mind, "wait", user(mind, file))
    mind.timer = mind.timer._replace(sleep=lambda _: tokens.write(file, []))

    stopped = executing.carry_out(mind, execution)

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
    mind: Mind, first: Caller, second: Caller, by: str | None
) -> None:
    put(mind, "add", ADD)

    assert continued(mind, started(mind, "add", first), second)["status"] == "completed"

    assert signed(mind) == by


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("callers", [(PERSON, AGENT, PERSON), (AGENT, PERSON, PERSON)])
def test_a_run_stays_that_of_an_agent(mind: Mind, callers: Sequence[Caller]) -> None:
    put(mind, "add", ADD)
    first, second, third = callers
    execution = started(mind, "add", first)
    call(mind, "resume_procedure", second, execution_id=execution.id, timeout=1)

    continued(mind, execution, third)

    assert signed(mind) == "claude-code"


@pytest.mark.attack(KIND)
def test_a_rollback_acts_for_the_agent_that_began_the_run(mind: Mind) -> None:
    put(mind, "boom", BOOM, rollback_procedure="add")
    put(mind, "add", ADD)
    execution = started(mind, "boom", AGENT)

    undone = continued(mind, execution, PERSON)

    assert undone["rollback_status"] == "completed"
    assert signed(mind) == "claude-code"


@pytest.mark.attack(KIND)
def test_a_changed_caller_is_not_trusted(mind: Mind) -> None:
    put(mind, "add", ADD)
    execution = started(mind, "add", AGENT)
    path = journal(mind, execution)
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    start = json.loads(first)
    blank = dict.fromkeys(start[CALLER])
    without = {key: value for key, value in start.items() if key != CALLER}
    for changed in (start | {CALLER: blank}, without):
        path.write_text("\n".join([json.dumps(changed), *rest, ""]), encoding="utf-8")
        with pytest.raises(Untrusted):
            call(mind, "resume_procedure", PERSON, execution_id=execution.id)

    later = [json.loads(line) | {CALLER: blank} for line in rest]
    path.write_text("\n".join([first, *map(json.dumps, later), ""]), encoding="utf-8")
    continued(mind, execution, PERSON)
    assert signed(mind) == "claude-code"


def test_a_run_that_an_earlier_version_began_acts_as_an_agent(mind: Mind) -> None:
    put(mind, "add", ADD)
    execution = started(mind, "add", PERSON)
    path = journal(mind, execution)
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    old = {key: value for key, value in json.loads(first).items() if key != CALLER}
    mark = executing.executions(mind)._mark(execution.id, old)
    path.write_text("\n".join([json.dumps(old | {"mark": mark}), *rest, ""]), encoding="utf-8")

    assert continued(mind, execution, PERSON)["status"] == "completed"

    assert signed(mind) == "mcp"


def test_a_run_that_has_ended_is_not_continued_by_anyone(mind: Mind, file: Path) -> None:
    put(mind, "add", ADD)
    execution = started(mind, "add", user(mind, file))
    continued(mind, execution, user(mind, file), "no")

    with pytest.raises(Conflict):
        call(mind, "resume_procedure", PERSON, execution_id=execution.id)
