"""The interpreter: what a run is after its records, and which record comes next.

A run is the sum of its records, which are plain data and are written before anything else
happens. Nothing here acts, waits or looks at a clock: `at` is the milliseconds that the run has
taken so far, without the time in which it was interrupted.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from mimo.features.procedures.model import ERROR, Outcome, Procedure, State

Record = dict[str, Any]

MOST_TRANSITIONS = 10_000
TOO_LATE = "overall timeout exceeded"


class Status(StrEnum):
    """How far a run is."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Run:
    """The state of one run; it changes by its records alone."""

    def __init__(self, procedure: Procedure, context: Mapping[str, Any]) -> None:
        """Begin in the initial state."""
        self.procedure = procedure
        self.state = procedure.initial_state
        self.context = dict(context)
        self.history: list[dict[str, Any]] = []
        self.status = Status.RUNNING
        self.error: str | None = None
        """Why it failed or was interrupted; while it runs, why the last action failed."""
        self.attempts = 0
        """How often the action of this state has failed since the state was entered."""
        self.waiting = False
        """Whether its action is done, with an event that leads nowhere."""
        self.events = 0
        """How many events that were sent to it are used up."""
        self.question: str | None = None
        """What it asks while it waits."""
        self.asked_at = 0
        self.log: list[str] = []
        """What its log steps said."""
        self.failing: str | None = None
        """Why it fails, while the rollback procedure runs."""
        self.rollback: str | None = None
        """The id of the run that undoes this one."""
        self.at = 0

    @property
    def here(self) -> State:
        """Returns the state that it is in."""
        return self.procedure.states[self.state]

    @property
    def awaits(self) -> tuple[str, ...]:
        """Returns the events that it waits for, which nothing but somebody else can bring."""
        idle = self.waiting or self.here.action is None
        listens = idle and self.status is Status.RUNNING and not self.failing
        return tuple(self.here.transitions) if listens else ()

    @property
    def answer_by(self) -> int | None:
        """Returns when its question counts as not answered; None where it may stand open."""
        limit = self.here.action.timeout_ms if self.here.action else None
        return self.asked_at + limit if limit and self.question is not None else None

    def apply(self, record: Record) -> None:
        """Take up the next record."""
        self.at = record["at"]
        self.context.update(record.get("merge", {}))
        self.events = record.get("events", self.events)
        if "log" in record:
            self.log.append(record["log"])
        _APPLY[record["kind"]](self, record)

    def _moved(self, record: Record) -> None:
        step = {key: record[key] for key in ("from", "to", "event")}
        self.history.append({**step, "timestamp": record["at"]})
        self.state, self.attempts, self.waiting = record["to"], 0, False
        self.error, self.question = record.get("error"), None

    def _stayed(self, record: Record) -> None:
        self.waiting = True
        if "question" in record:
            self.question, self.asked_at = record["question"], record["at"]

    def _tried(self, record: Record) -> None:
        self.attempts += 1
        self.error = record["error"]

    def _failing(self, record: Record) -> None:
        self.failing = self.error = record["error"]
        self.rollback = record.get("rollback")

    def _ended(self, record: Record) -> None:
        self.status, self.error = Status(record["status"]), record.get("error")

    def _resumed(self, _: Record) -> None:
        self.status, self.error = Status.RUNNING, self.failing


_APPLY = {
    "transition": Run._moved,  # noqa: SLF001 - of the class above
    "stay": Run._stayed,  # noqa: SLF001
    "retry": Run._tried,  # noqa: SLF001
    "failing": Run._failing,  # noqa: SLF001
    "end": Run._ended,  # noqa: SLF001
    "resume": Run._resumed,  # noqa: SLF001
}


def replayed(procedure: Procedure, context: Mapping[str, Any], records: Iterable[Record]) -> Run:
    """Returns the run after all its records."""
    run = Run(procedure, context)
    for record in records:
        run.apply(record)
    return run


def after_action(run: Run, outcome: Outcome, at: int) -> Record:
    """Returns the record of what follows from the end of the state's action.

    A failure takes the transition on `error` rather than trying again; without one it is tried
    again, later each time, until the retries are used up.
    """
    if outcome.error is not None:
        return _after_failure(run, outcome, at)
    said = {"log": outcome.log} if outcome.log else {}
    merged = {"merge": dict(outcome.merge)} | said
    if run.here.terminal:
        return ended(Status.COMPLETED, at) | merged
    if outcome.question is not None:
        question = {"question": outcome.question}
        return {"kind": "stay", "state": run.state, "at": at} | question | merged
    return _led(run, outcome.event, at) | merged


def _after_failure(run: Run, outcome: Outcome, at: int) -> Record:
    if ERROR in run.here.transitions:
        return _led(run, ERROR, at) | {"error": outcome.error}
    if outcome.again and run.attempts < run.procedure.max_retries:
        wait = 2**run.attempts * 1000
        return {"kind": "retry", "state": run.state, "error": outcome.error, "wait": wait, "at": at}
    return failing(outcome.error or "", at)


def after_event(run: Run, event: str, at: int) -> Record:
    """Returns the record of an event that somebody sent; an unknown one changes nothing."""
    return _led(run, event, at) | {"events": run.events + 1}


def _led(run: Run, event: str, at: int) -> Record:
    target = run.here.transitions.get(event)
    if target is None:
        return {"kind": "stay", "state": run.state, "event": event, "at": at}
    return {"kind": "transition", "from": run.state, "to": target, "event": event, "at": at}


def failing(error: str, at: int) -> Record:
    """Returns the record of a failure, after which only the rollback runs."""
    return {"kind": "failing", "error": error, "at": at}


def ended(status: Status, at: int, error: str | None = None) -> Record:
    """Returns the last record."""
    return {"kind": "end", "status": status.value, "at": at} | ({"error": error} if error else {})


def exceeded(run: Run, at: int) -> str | None:
    """Returns which limit of the whole run is exceeded, if one is."""
    if at >= run.procedure.timeout_ms:
        return f"{TOO_LATE}: {run.procedure.timeout_ms} ms"
    if len(run.history) >= MOST_TRANSITIONS:
        return f"more than {MOST_TRANSITIONS:,} transitions"
    return None
