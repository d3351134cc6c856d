"""The state machine: the state of a run after its records, and the next record.

A run is the sum of its records, which are plain data and are written before anything else happens.
Nothing here acts, waits or reads a clock: `at` is the number of milliseconds that the run has
taken, without the time in which it was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from operator import index
from typing import Any

from mimo.features.procedures.model import ERROR, Outcome, Procedure, State
from mimo.frozen import frozen

Record = dict[str, Any]

MOST_TRANSITIONS = 10_000
TOO_LATE = "overall timeout exceeded"


class Status(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@frozen
class Sent:
    """An event in the inbox of a run."""

    event: str
    turn: int | None = None
    """The turn that the run waited in when the event was sent; None if it is not known."""
    early: bool = False
    """True if no state waited when the event was sent."""


class Run:
    """The state of one run, which only its records change."""

    def __init__(self, procedure: Procedure, context: Mapping[str, Any]) -> None:
        """Starts in the initial state."""
        self.procedure = procedure
        self.state = procedure.initial_state
        self.context = dict(context)
        self.history: list[dict[str, Any]] = []
        self.status = Status.RUNNING
        self.error: str | None = None
        """The reason of a failure or interruption; of the last failed action while it runs."""
        self.attempts = 0
        """Failures of this state's action since the state was entered."""
        self.waiting = False
        """True if its action is done, with an event that no transition takes."""
        self.events = 0
        """The number of events of its inbox that were processed."""
        self.kept: tuple[int, ...] = ()
        """The places of processed events that are kept for a state without a question."""
        self.question: str | None = None
        """The question that it waits for an answer to."""
        self.asked_at = 0
        self.log: list[str] = []
        """The lines of its log steps."""
        self.at = 0
        self.started = ""
        """The time at which it began, as arguments show it."""

    @property
    def current(self) -> State:
        """Returns the state that it is in."""
        return self.procedure.states[self.state]

    @property
    def turn(self) -> int:
        """Returns the number of transitions, which identifies this stay in its state."""
        return len(self.history)

    @property
    def awaits(self) -> tuple[str, ...]:
        """Returns the events that it waits for, which must be sent to it."""
        return self.accepts if self.status is Status.RUNNING else ()

    @property
    def accepts(self) -> tuple[str, ...]:
        """Returns the events that it waits for, or will wait for once it is resumed."""
        idle = self.waiting or self.current.action is None
        is_open = self.status in (Status.RUNNING, Status.INTERRUPTED)
        return tuple(self.current.transitions) if idle and is_open else ()

    @property
    def early(self) -> tuple[str, ...]:
        """Returns the events that it keeps if no state waits: those of states that do not ask."""
        states = self.procedure.states.values()
        return tuple({e for state in states if not state.asks for e in state.transitions})

    @property
    def answer_by(self) -> int | None:
        """Returns the deadline of its question; None if there is no deadline."""
        limit = self.current.action.timeout_ms if self.current.action else None
        return self.asked_at + limit if limit and self.question is not None else None

    def apply(self, record: Record) -> None:
        """Applies the next record.

        Raises `KeyError`, `ValueError` or `TypeError` for one that does not fit the procedure.
        """
        self.at = record["at"]
        self.context.update(record.get("merge", {}))
        self.events = record.get("events", self.events)
        self.kept = tuple(map(index, record.get("kept", self.kept)))
        if "log" in record:
            self.log.append(record["log"])
        error = record.get("error")
        match record["kind"]:
            case "transition":
                move = {key: record[key] for key in ("from", "to", "event")}
                self.history.append({**move, "timestamp": record["at"]})
                if record["to"] not in self.procedure.states:
                    raise ValueError(f"there is no state `{record['to']}`")
                self.state, self.attempts, self.waiting = record["to"], 0, False
                self.error, self.question = error, None
            case "stay":
                self.waiting = True
                if "question" in record:
                    self.question, self.asked_at = record["question"], record["at"]
            case "retry":
                self.attempts += 1
                self.error = error
            case "failing":  # Written by earlier versions, before the end.
                self.status, self.error = Status.FAILED, error
            case "end":
                self.status, self.error = Status(record["status"]), error
            case "resume":
                self.status, self.error = Status.RUNNING, None
            case unknown:
                raise ValueError(f"`{unknown}` is not a kind of record")


def after_action(run: Run, outcome: Outcome, at: int) -> Record:
    """Returns the record that follows the end of the state's action.

    A failure takes the transition on `error` if there is one. Otherwise the action is retried,
    with a longer delay each time, until the retries are used up.
    """
    if outcome.error is not None:
        if ERROR in run.current.transitions:
            return after_event(run, ERROR, at) | {"error": outcome.error}
        if not outcome.again or run.attempts >= run.procedure.max_retries:
            return ended(Status.FAILED, at, outcome.error)
        retry = {"error": outcome.error, "wait": 2**run.attempts * 1000}
        return {"kind": "retry", "state": run.state, "at": at} | retry
    merged = {"merge": dict(outcome.merge)} | ({"log": outcome.log} if outcome.log else {})
    if run.current.terminal:
        return ended(Status.COMPLETED, at) | merged
    if outcome.question is not None:
        question = {"question": outcome.question}
        return {"kind": "stay", "state": run.state, "at": at} | question | merged
    return after_event(run, outcome.event, at) | merged


def after_event(run: Run, event: str, at: int) -> Record:
    """Returns the record of an event; one that the state does not know changes nothing."""
    target = run.current.transitions.get(event)
    if target is None:
        return {"kind": "stay", "state": run.state, "event": event, "at": at}
    return {"kind": "transition", "from": run.state, "to": target, "event": event, "at": at}


def chosen(run: Run, sent: Sequence[Sent]) -> int | None:
    """Returns the place of the event in the inbox that the waiting state takes, or None.

    An event that was sent while a state waited is for that turn only. A state without a question
    also takes an earlier event that it has a transition for. A question takes no event that was
    sent before it was asked. Events of earlier versions of mind, whose turn is not known, are
    taken in order.
    """
    asks, transitions = run.question is not None, run.current.transitions
    for place in run.kept:
        if not asks and 0 <= place < len(sent) and sent[place].event in transitions:
            return place
    for place in range(run.events, len(sent)):
        item = sent[place]
        if item.early:
            if not asks and item.event in transitions:
                return place
        elif item.turn in (None, run.turn):
            return place
    return None


def pending(run: Run, sent: Sequence[Sent], event: str) -> str | None:
    """Returns the event for which a run can't take another one yet, or None.

    That is the one that its waiting state takes; if no state waits, the same event, kept before.
    """
    if run.accepts:
        place = chosen(run, sent)
        return None if place is None else sent[place].event
    stored_events = [sent[place] for place in run.kept if 0 <= place < len(sent)]
    again = Sent(event=event, early=True)
    return event if again in (*stored_events, *sent[run.events :]) else None


def processed(run: Run, sent: Sequence[Sent], place: int | None) -> Record:
    """Returns the part of a record that an event of the inbox was taken; of all if it is None.

    A question processes all events when it is asked. Early events are kept for other states.
    """
    events = len(sent) if place is None else max(run.events, place + 1)
    early = (number for number in range(run.events, events) if sent[number].early)
    places = [number for number in (*run.kept, *early) if number != place]
    return {"events": events} | ({"kept": places} if places != list(run.kept) else {})


def ended(status: Status, at: int, error: str | None = None) -> Record:
    """Returns the last record."""
    return {"kind": "end", "status": status.value, "at": at} | ({"error": error} if error else {})


def exceeded(run: Run, at: int) -> str | None:
    """Returns a description of the run's limit that is exceeded, or None."""
    if at >= run.procedure.timeout_ms:
        return f"{TOO_LATE}: {run.procedure.timeout_ms} ms"
    if len(run.history) >= MOST_TRANSITIONS:
        return f"more than {MOST_TRANSITIONS:,} transitions"
    return None
