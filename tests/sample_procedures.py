"""Procedures for tests."""

from mimo.features.procedures import executing
from mimo.features.procedures.commands import CommandSet
from mimo.features.procedures.executing import Report
from mimo.features.procedures.library import Commands
from mimo.features.procedures.storage import Execution
from mimo.mind import Mind
from mimo.store import files, procedures
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


def text(name: str, states: str, version: str = "1.0", **header: object) -> str:
    """Returns the Markdown of a procedure."""
    lines = [f"name: {name}", f"version: {version}", *(f"{k}: {v}" for k, v in header.items())]
    return "---\n" + "\n".join(lines) + f"\n---\nProse.\n\n```yaml\n{states}```\n"


def put(mind: Mind, name: str, states: str, version: str = "1.0", **header: object) -> None:
    """Writes a procedure by hand and approves it."""
    data = text(name, states, version, **header).encode()
    files.replace(mind.project.root / procedures.path_of(f"{name}@{version}"), data)
    mind.trust.approve([files.digest(data)])


def begun(mind: Mind, name: str, /, **context: object) -> Execution:
    """Returns an execution that is written and not yet run."""
    return executing.begin(mind, CommandSet(), name, "latest", context, asynchronous=False)


class Time:
    """Time that passes only where somebody waits."""

    def __init__(self) -> None:
        """Begin at nought."""
        self.seconds = 0.0

    def timer(self) -> Timer:
        """Returns what a memory takes."""
        return Timer(monotonic=lambda: self.seconds, sleep=self._pass)

    def _pass(self, seconds: float) -> None:
        self.seconds += seconds


def ran(mind: Mind, name: str, commands: Commands | None = None, /, **context: object) -> Report:
    """Returns a procedure's run, carried out to its end."""
    known = commands or CommandSet()
    execution = executing.begin(mind, known, name, "latest", context, asynchronous=False)
    return executing.carry_out(mind, known, execution)


def path_of(report: Report) -> list[tuple[str, str, str]]:
    """Returns the transitions of a run: from, event, to."""
    return [(row["from"], row["event"], row["to"]) for row in report.run.history]
