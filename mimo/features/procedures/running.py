"""Running a procedure: each record is written before anything else happens."""

from collections.abc import Callable
from contextlib import suppress

from mimo.errors import MindError
from mimo.features.procedures import machine
from mimo.features.procedures.actions import SLICE, Expired, Pace, Scope, Stopped, perform
from mimo.features.procedures.machine import Record, Run, Status
from mimo.features.procedures.model import Action, Commands, Outcome, failed
from mimo.features.procedures.storage import ROLLBACK, Execution
from mimo.mind import Mind
from mimo.surroundings import Question

Stop = Callable[[], str | None]
"""Returns why a run shall stop, or None."""

_LARGEST_JOURNAL = 64 * 1024 * 1024

Undo = Callable[[Run, Stop], Status]
"""Runs the rollback of a failed run, begun before or not, and returns how that ended."""


class Runner:
    """Runs one execution, which this process holds, to its end."""

    def __init__(
        self,
        mind: Mind,
        commands: Commands,
        execution: Execution,
        run: Run,
        *,
        stopped: Stop,
        undo: Undo | None,
    ) -> None:
        """Take up the run where its records end."""
        self._mind = mind
        self._execution = execution
        self._run = run
        self._undo = undo
        self._asked: str | None = None
        self._stopped = stopped
        procedure = run.procedure
        self._pace = Pace(
            mind.timer, spent_ms=run.at, limit_ms=procedure.timeout_ms, stopped=stopped
        )
        self._scope = Scope(mind=mind, commands=commands, pace=self._pace, id=execution.id)

    def go(self) -> Run:
        """Returns the run when it has come to an end. Raises `StorageFailed` and Ctrl-C."""
        run = self._run
        try:
            while run.status is Status.RUNNING:
                self._step()
        except Stopped as stop:
            waited = f", while it waited for {' or '.join(run.awaits)}" if run.awaits else ""
            self._write(machine.ended(Status.INTERRUPTED, self._pace.at, f"{stop}{waited}"))
        except KeyboardInterrupt as signal:
            with suppress(MindError):
                self._write(
                    machine.ended(Status.INTERRUPTED, self._pace.at, str(signal) or "Ctrl-C")
                )
            raise
        self._tell_end()
        return run

    def _step(self) -> None:
        """Takes the run one record further."""
        run = self._run
        try:
            if run.failing is not None:
                self._fail()
                return
            limit = machine.exceeded(run, self._pace.at)
            if self._execution.size > _LARGEST_JOURNAL:
                limit = f"it wrote more than {_LARGEST_JOURNAL:,} bytes"
            if limit:
                self._write(machine.failing(limit, self._pace.at))
                return
            self._pace.check()
            if run.awaits:
                self._await()
            else:
                self._act(run.here.action)
        except Expired:
            limit = machine.exceeded(run, self._pace.at) or machine.TOO_LATE
            self._write(machine.failing(limit, self._pace.at))

    def _act(self, action: Action | None) -> None:
        outcome = perform(action, self._run, self._scope) if action else Outcome()
        record = machine.after_action(self._run, outcome, self._pace.at)
        self._write(record)
        if record["kind"] == "retry":
            self._pace.pause(record["wait"] / 1000)

    def _await(self) -> None:
        """Waits for an event that the state knows; the time is the whole run's or the action's."""
        run = self._run
        self._tell("mimo.procedure.waiting", {"count": 1}, events=run.awaits, question=run.question)
        while True:
            sent = self._execution.sent()
            if len(sent) > run.events:
                self._write(machine.after_event(run, sent[run.events], self._pace.at))
                return
            if run.answer_by is not None and self._pace.at >= run.answer_by:
                late = failed(f"no answer by {run.answer_by} ms", again=False)
                self._write(machine.after_action(run, late, self._pace.at))
                return
            self._ask_or_pause()

    def _ask_or_pause(self) -> None:
        run, ask = self._run, self._mind.ask
        if ask is None:
            self._pace.pause(SLICE)
            return
        self._pace.check()
        text = run.question or f"`{run.procedure.name}` waits in state `{run.state}`."
        if answer := ask(Question(text=text, choices=run.awaits), SLICE):
            self._execution.send(answer)

    def _fail(self) -> None:
        """Undoes what was done where the procedure says how, and ends."""
        run = self._run
        if run.procedure.rollback and self._undo:
            status = self._undo(run, self._stopped)
            if status is Status.INTERRUPTED:
                raise Stopped(self._stopped() or "the rollback was interrupted")
        self._write(machine.ended(Status.FAILED, self._pace.at, run.failing))

    def _write(self, record: Record) -> None:
        if record["kind"] == "failing" and self._run.procedure.rollback:
            record = {**record, "rollback": f"{self._execution.id}{ROLLBACK}"}
        self._execution.append(record)
        self._run.apply(record)
        self._tell_record(record)

    def _tell_record(self, record: Record) -> None:
        kind = record["kind"]
        unknown = kind == "stay" and "event" in record
        name = f"mimo.procedure.{'unknown_event' if unknown else kind}"
        known = ("from", "to", "event", "state", "error", "rollback")
        told = {key: record[key] for key in known if key in record}
        if kind != "end" and "question" not in record:
            self._tell(name, {"at_ms": record["at"]}, **told)
        if self._mind.progress:
            done = len(self._run.history)
            self._mind.progress(f"{self._run.procedure.name}: {self._run.state}", done, 0)

    def _tell_end(self) -> None:
        run = self._run
        self._tell(
            "mimo.procedure.complete",
            {"duration_ms": run.at},
            status=run.status.value,
            final_state=run.state,
            error=run.error,
        )

    def _tell(self, what: str, measurements: dict[str, float], /, **metadata: object) -> None:
        procedure = self._run.procedure
        self._mind.tell(
            what,
            measurements,
            execution_id=self._execution.id,
            name=procedure.name,
            version=procedure.version,
            **metadata,
        )
