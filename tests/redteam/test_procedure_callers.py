"""The caller of a procedure's run: its commands have the rights of that caller, in any process."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.errors import Conflict, Untrusted
from mimo.features.procedures import executing
from mimo.features.procedures.storage import CALLER, Execution
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.project import projects
from mimo.project.init import init
from tests.conftest import NOW
from tests.sample_procedures import Time, put

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


def test_a_run_that_has_ended_is_not_continued_by_anyone(call: Call) -> None:
    put(call, "add", ADD)
    execution = started(call, "add", AGENT)
    continued(call, execution, AGENT, "no")

    with pytest.raises(Conflict):
        call_tool(call, "resume_procedure", PERSON, execution_id=execution.id)
