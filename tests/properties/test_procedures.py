"""Random procedures against an interpreter written from the documentation.

Then the same procedures with the process killed at every single write, and resumed.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimo.call import Call
from mimo.data import append_log
from mimo.errors import NotFound, StorageFailed
from mimo.features.procedures import calling, executing
from mimo.features.procedures.machine import Status
from mimo.features.procedures.storage import Execution
from tests.sample_procedures import Time, begun, path_of, put

LIMIT_MS = 20_500
MOST = 12
"""Transitions after which a machine that runs in circles is stopped, here."""
EVENTS = ("success", "error", "true", "false", "go")

Script = tuple[str, ...]
"""The answers of the command in order: `ok`, `again` (an error that may pass) or `no`."""


class Machine(NamedTuple):
    """A procedure, what its commands answer, and the events that are sent to it."""

    states: dict[str, dict[str, Any]]
    script: Script
    sent: tuple[str, ...]
    retries: int


def transitions(names: list[str]) -> st.SearchStrategy[list[dict[str, str]]]:
    pairs = st.dictionaries(st.sampled_from(EVENTS), st.sampled_from(names), max_size=3)
    return pairs.map(lambda led: [{"event": e, "target": t} for e, t in led.items()])


ACTIONS = st.sampled_from(
    [
        None,
        *[{"module": "mind", "function": "mind_status", "args": [{}]}] * 4,
        {"module": "step", "function": "set_context", "args": [{"values": {"x": 1}}]},
        {"module": "step", "function": "conditional", "args": [{"field": "x", "value": 1}]},
        {"module": "step", "function": "validate", "args": [{"rules": {"x": {"required": True}}}]},
        {"module": "step", "function": "ask", "args": [{"question": "Go on?"}]},
    ]
)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    names = [f"s{number}" for number in range(draw(st.integers(1, 5)))]
    states: dict[str, dict[str, Any]] = {}
    for name in names:
        action, led = draw(ACTIONS), draw(transitions(names))
        states[name] = ({"action": action} if action else {}) | (
            {"transitions": led} if led else {}
        )
    seen, open_ = {"s0"}, ["s0"]
    while open_:
        for item in states[open_.pop()].get("transitions", []):
            if item["target"] not in seen:
                seen.add(item["target"])
                open_.append(item["target"])
    return Machine(
        states={name: state for name, state in states.items() if name in seen},
        script=tuple(
            draw(st.lists(st.sampled_from(["ok", "again", "no"]), min_size=1, max_size=8))
        ),
        sent=tuple(draw(st.lists(st.sampled_from(EVENTS), max_size=4))),
        retries=draw(st.integers(0, 2)),
    )


class End(NamedTuple):
    """The end of a run."""

    status: str
    state: str
    context: dict[str, Any]
    path: list[tuple[str, str, str]]


def answer(script: Script, moves: int, failures: int) -> str:
    return script[(moves * 3 + failures) % len(script)]


def expected(machine: Machine) -> End:  # noqa: C901 - plain is the point
    """Returns how a machine ends, in the plainest words: one loop, one variable for each fact."""
    state, waited, sent = "s0", 0, list(machine.sent)
    context: dict[str, Any] = {}
    path: list[tuple[str, str, str]] = []
    while True:
        content = machine.states[state]
        targets = {item["event"]: item["target"] for item in content.get("transitions", [])}
        event: str | None = None
        failures = 0
        while True:  # the action, until it succeeds or nothing helps
            if waited >= LIMIT_MS or len(path) >= MOST:
                return End("failed", state, context, path)
            if targets and "action" not in content:
                break  # a waiting state
            event, merged, hopeless = act(content.get("action"), context, machine, path, failures)
            if event != "error":
                context = context | merged
                break
            if "error" in targets:
                break
            if hopeless or failures >= machine.retries:
                return End("failed", state, context, path)
            waited += 2**failures * 1000
            failures += 1
        if not targets:
            return End("completed", state, context, path)
        if event not in targets:  # only an event from outside can lead on
            asks = content.get("action", {}).get("function") == "ask"
            kept = [] if asks or waited >= LIMIT_MS else [e for e in sent if e in targets]
            if not kept:  # a question takes no event that was sent before it was asked
                return End("failed", state, context, path)
            event = kept[0]
            sent.remove(event)
        path.append((state, str(event), targets[event]))
        state = targets[event]


def act(
    action: Mapping[str, Any] | None,
    context: dict[str, Any],
    machine: Machine,
    path: list[Any],
    failures: int,
) -> tuple[str | None, dict[str, Any], bool]:
    """Returns the event that an action ends with, what it adds, and whether it is hopeless."""
    match action and action["function"]:
        case None:
            return "success", {}, False
        case "mind_status":
            word = answer(machine.script, len(path), failures)
            merged = {"x": 1} if len(path) % 2 else {"y": len(path)}
            return ("success" if word == "ok" else "error"), merged, word == "no"
        case "set_context":
            return "success", {"x": 1}, False
        case "conditional":
            return ("true" if context.get("x") == 1 else "false"), {}, False
        case "validate":
            good = context.get("x") is not None
            return ("success" if good else "error"), {"validation_passed": True}, True
        case _:
            return None, {}, False  # it asks, and then waits


class Commands:
    """Commands that answer by how far the run is, as its journal shows."""

    def __init__(self, machine: Machine, execution: Execution) -> None:
        self._machine = machine
        self._execution = execution
        self.moves: list[int] = []

    def call(self, call: Call, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        moves = failures = 0
        for record in Execution(self._execution._folder).records():
            if record["kind"] == "transition":
                moves, failures = moves + 1, 0
            elif record["kind"] == "retry":
                failures += 1
        self.moves.append(moves)
        match answer(self._machine.script, moves, failures):
            case "ok":
                return {"x": 1} if moves % 2 else {"y": moves}
            case "again":
                raise StorageFailed("the disk is full")
            case _:
                raise NotFound("nothing there")


def start(call: Call, machine: Machine) -> tuple[Execution, Commands]:
    name = f"m{len(executing.executions(call).ids())}"
    block = json.dumps({"initial_state": "s0", "states": machine.states}) + "\n"
    put(call, name, block, timeout_ms=LIMIT_MS, max_retries=machine.retries)
    execution = begun(call, name)
    for event in machine.sent:
        execution.send(event, turn=None)
    call.mind.timer = Time().timer()
    return execution, Commands(machine, execution)


def carried_out(call: Call, execution: Execution, commands: Commands) -> executing.Report:
    with patch.object(calling, "run_command", commands.call):
        return executing.carry_out(call, execution)


def ended(report: executing.Report) -> End:
    return End(report.status.value, report.run.state, report.run.context, [*path_of(report)])


@pytest.fixture
def call(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setattr("mimo.features.procedures.machine.MOST_TRANSITIONS", MOST)
    # What is flushed is the subject of tests of the store; here it would only cost time.
    monkeypatch.setattr("os.fsync", lambda _: None)
    return call


@pytest.mark.req("000-01")
@pytest.mark.req("000-28")
@given(machine=machines())
def test_a_procedure_behaves_as_documented(call: Call, machine: Machine) -> None:
    execution, commands = start(call, machine)

    assert ended(carried_out(call, execution, commands)) == expected(machine)


class Killed(BaseException):
    """The process was killed."""


class Killing:
    """Writes that end the process: before, in the middle of or after the one with that number."""

    def __init__(self, number: int, how: str) -> None:
        self._left = number
        self._how = how
        self._append = append_log.append

    def __call__(self, path: Path, data: bytes, **options: Any) -> None:
        if path.name != "journal.jsonl":
            self._append(path, data, **options)
            return
        self._left -= 1
        if self._left or self._how == "after":
            self._append(path, data, **options)
        elif self._how == "torn":
            with path.open("ab") as file:
                file.write(data[: len(data) // 2])
        if not self._left:
            raise Killed


def killed_at(call: Call, machine: Machine, number: int, how: str) -> bool:
    """Kills a run at one of its writes and resumes it; returns whether it came to that write."""
    execution, commands = start(call, machine)
    with patch.object(append_log, "append", Killing(number, how)), suppress(Killed):
        carried_out(call, execution, commands)
        return False
    again = executing.executions(call).find(execution.id)
    before = again.records()
    report = executing.report(call, again)
    acknowledged = len(report.run.history)
    if report.run.status is Status.RUNNING:
        assert report.status is Status.INTERRUPTED
        done = len(commands.moves)
        call.mind.timer = Time().timer()
        report = carried_out(call, again, commands)
        assert all(moves >= acknowledged for moves in commands.moves[done:])
    assert again.records()[: len(before)] == before
    assert ended(report) == expected(machine)
    return True


@pytest.mark.req("000-14")
@settings(max_examples=15)
@given(machine=machines(), how=st.sampled_from(["before", "torn", "after"]))
def test_a_run_killed_at_any_write_resumes_to_the_same_end(
    call: Call, machine: Machine, how: str
) -> None:
    number = 1
    while killed_at(call, machine, number, how):
        number += 1
