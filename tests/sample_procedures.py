"""Procedures for tests."""

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

from mimo.call import Call
from mimo.data import files
from mimo.features.procedures import calling, executing, library
from mimo.features.procedures.executing import Report
from mimo.features.procedures.storage import Execution
from mimo.memory.approval import approval_of
from mimo.surroundings import Timer

GREET = """\
initial_state: greet
states:
  greet:
    action: {module: step, function: log, args: [{message: "Hello, {{who}}"}]}
    transitions: [{event: success, target: done}, {event: error, target: silent}]
  silent: {}
  done: {}
"""

WAIT = """\
initial_state: ask
states:
  ask:
    action: {module: step, function: ask, args: [{question: "Go on?"}]}
    transitions: [{event: "yes", target: done}, {event: "no", target: stopped}]
  done: {}
  stopped: {}
"""

SLOW = """\
initial_state: first
states:
  first:
    action: {module: step, function: log, args: [{message: begun}]}
    transitions: [{event: success, target: second}]
  second:
    action: {module: step, function: delay, args: [{ms: 60000}]}
    transitions: [{event: success, target: done}]
  done: {}
"""

BOOM = """\
initial_state: a
states:
  a:
    action: {module: step, function: validate, args: [{rules: {q: {required: true}}}]}
    transitions: [{event: success, target: b}]
  b: {}
"""


def text(name: str, states: str, version: str = "1.0", **header: object) -> str:
    """Returns the Markdown of a procedure."""
    lines = [f"name: {name}", f"version: {version}", *(f"{k}: {v}" for k, v in header.items())]
    return "---\n" + "\n".join(lines) + f"\n---\nProse.\n\n```yaml\n{states}```\n"


def put(call: Call, name: str, states: str, version: str = "1.0", **header: object) -> None:
    """Writes a procedure by hand and approves it."""
    data = text(name, states, version, **header).encode()
    path = library.path_of(f"{name}@{version}")
    files.replace(call.mind.project.root / path, data)
    call.mind.trust.approve([approval_of(path, data)])


def begun(call: Call, name: str, /, **context: object) -> Execution:
    """Returns an execution that is written and not yet run."""
    return executing.begin(call, name, "latest", context, asynchronous=False)


class Commands:
    """Commands that return or raise the given answers, one after the other."""

    def __init__(self, *answers: Any) -> None:
        """Keep the answers."""
        self.answers = list(answers)
        self.calls: list[Mapping[str, Any]] = []

    def call(self, call: Call, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Stands in for `calling.run_command`."""
        self.calls.append(arguments)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


class Time:
    """Time that passes only while a run waits."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.seconds = 0.0

    def timer(self) -> Timer:
        """Returns the timer of a memory."""
        return Timer(monotonic=lambda: self.seconds, sleep=self._pass)

    def _pass(self, seconds: float) -> None:
        self.seconds += seconds


def ran(call: Call, name: str, commands: Commands | None = None, /, **context: object) -> Report:
    """Returns a procedure's run, carried out to its end; `commands` replace those of mind."""
    if commands is None:
        return executing.carry_out(call, begun(call, name, **context))
    with patch.multiple(calling, run_command=commands.call, fault=lambda *_: None):
        return executing.carry_out(call, begun(call, name, **context))


def path_of(report: Report) -> list[tuple[str, str, str]]:
    """Returns the transitions of a run: from, event, to."""
    return [(row["from"], row["event"], row["to"]) for row in report.run.history]
