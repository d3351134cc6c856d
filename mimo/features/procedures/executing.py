"""Runs of procedures: started, resumed, sent events and cancelled, from any process.

Each record of a run is written before anything else happens. A run that outlives the call that
started it is a `mind` process of its own.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from mimo.errors import Conflict, Invalid, MindError, StorageFailed, Untrusted
from mimo.features.procedures import library, machine, reading, steps
from mimo.features.procedures.actions import (
    LARGEST_CONTEXT,
    SLICE,
    Expired,
    Pace,
    Scope,
    Stopped,
    perform,
)
from mimo.features.procedures.library import Commands
from mimo.features.procedures.machine import Record, Run, Status
from mimo.features.procedures.model import LATEST, Action, Outcome, Procedure, failed
from mimo.features.procedures.storage import ROLLBACK, Execution, Executions
from mimo.frozen import frozen
from mimo.memory.ids import suffix
from mimo.mind import Mind
from mimo.store.projects import index_owner
from mimo.surroundings import Question

HELD = "MIND_EXECUTION_LOCK"
"""The variable with the descriptor by which a process inherits the lock of its run."""

_CANCEL_SECONDS = 5.0
_LARGEST_JOURNAL = 64 * 1024 * 1024
_ENDING = [n for name in ("SIGTERM", "SIGHUP") if (n := getattr(signal, name, None))]

Stop = Callable[[], str | None]
"""Returns the reason why a run must stop, or None."""

Undo = Callable[[Run, Stop], Status]
"""Runs the rollback of a failed run, started before or not, and returns its status."""


@frozen
class Report:
    """The progress of an execution."""

    id: str
    procedure: str
    version: str
    run: Run
    status: Status
    elapsed_ms: int
    started: datetime
    warnings: tuple[str, ...]


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
        """Continue the run after its last record."""
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
        """Returns the run after its end. Raises `StorageFailed` and `KeyboardInterrupt`."""
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
        self._report(
            "mimo.procedure.complete",
            {"duration_ms": run.at},
            status=run.status.value,
            final_state=run.state,
            error=run.error,
        )
        return run

    def _step(self) -> None:
        """Writes the next record of the run."""
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
                self._act(run.current.action)
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
        """Waits for an event, at most for the time of the run or of the action."""
        run = self._run
        waiting = "mimo.procedure.waiting"
        self._report(waiting, {"count": 1}, events=run.awaits, question=run.question)
        while True:
            sent = self._execution.sent()
            if len(sent) > run.events:
                self._write(machine.after_sent(run, sent[run.events], self._pace.at))
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
        """Runs the rollback procedure if there is one, and ends."""
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
        self._report_record(record)

    def _report_record(self, record: Record) -> None:
        kind = record["kind"]
        unknown = kind == "stay" and "event" in record
        name = f"mimo.procedure.{'unknown_event' if unknown else kind}"
        keys = ("from", "to", "event", "state", "error", "rollback")
        if kind != "end" and "question" not in record:
            metadata = {key: record[key] for key in keys if key in record}
            self._report(name, {"at_ms": record["at"]}, **metadata)
        if self._mind.progress:
            done = len(self._run.history)
            self._mind.progress(f"{self._run.procedure.name}: {self._run.state}", done, 0)

    def _report(self, event: str, measurements: dict[str, float], /, **metadata: object) -> None:
        procedure = self._run.procedure
        self._mind.tell(
            event,
            measurements,
            execution_id=self._execution.id,
            name=procedure.name,
            version=procedure.version,
            **metadata,
        )


def executions(mind: Mind) -> Executions:
    """Returns the executions of the project."""
    return Executions(mind.project.root, index_owner(mind.home, mind.randomness))


def begin(
    mind: Mind,
    commands: Commands,
    name: str,
    version: str,
    context: Mapping[str, Any],
    *,
    asynchronous: bool,
) -> Execution:
    """Returns a new execution, written but not yet run.

    Raises `NotFound`, `Invalid` for faults, and `Untrusted`, also for the rollback procedure.
    """
    file, procedure = library.one(mind, name, version, commands)
    size = len(json.dumps(context))
    if size > LARGEST_CONTEXT:
        raise Invalid(
            f"the context has {size:,} bytes, at most {LARGEST_CONTEXT:,}",
            hint="put large values into a file, and its path into the context",
            details={"field": "context"},
        )
    library.require_approved(mind, file, procedure)
    rollback = None
    if procedure.rollback is not None:
        rollback_file, undoing = library.one(mind, procedure.rollback, LATEST, commands)
        library.require_approved(mind, rollback_file, undoing)
        rollback = rollback_file.data.decode()
    id_ = f"{procedure.name}_{mind.now():%Y%m%d}_{suffix(mind.randomness(4))}"
    return _create(
        mind, id_, procedure, file.data, context, rollback=rollback, asynchronous=asynchronous
    )


def _create(
    mind: Mind,
    id_: str,
    procedure: Procedure,
    text: bytes,
    context: Mapping[str, Any],
    *,
    rollback: str | None = None,
    asynchronous: bool = False,
) -> Execution:
    warnings = steps.violations(procedure.context_schema, context)
    start = {
        "kind": "start",
        "name": procedure.name,
        "version": procedure.version,
        "time": mind.now().isoformat(),
        "at": 0,
        "text": text.decode(),
        "rollback_text": rollback,
        "context": dict(context),
        "warnings": warnings,
    }
    execution = executions(mind).create(id_, start)
    about = {"execution_id": id_, "name": procedure.name, "version": procedure.version}
    mind.tell("mimo.procedure.start", {"count": 1}, **about, **{"async": asynchronous})
    for warning in warnings:
        mind.tell("mimo.procedure.warning", {"count": 1}, **about, message=f"context: {warning}")
    return execution


def carry_out(
    mind: Mind, commands: Commands, execution: Execution, *, wait_ms: int | None = None
) -> Report:
    """Runs an execution from its current state to its end, or until it is stopped.

    Raises `Conflict` if another process runs it or it has ended, and `Untrusted`.
    """
    started_for_it = HELD in mind.environ
    with _signals_interrupt(), execution.held(mind.environ.get(HELD)):
        records, run = _loaded(execution)
        start = records[0]
        if run.status not in (Status.RUNNING, Status.INTERRUPTED):
            raise Conflict(f"`{execution.id}` is {run.status} already", hint="run it again")
        _require_ours(mind, execution, start)
        if not started_for_it:
            _continue(mind, execution, records, run)
        stopped = _stop(mind, execution, wait_ms)
        _runner(mind, commands, execution, start, run, stopped).go()
    return report(mind, execution)


def _continue(mind: Mind, execution: Execution, records: list[Record], run: Run) -> None:
    """Records that an execution continues."""
    execution.go_on()
    if len(records) > 1:
        _resume(mind, execution, run)


def _runner(
    mind: Mind,
    commands: Commands,
    execution: Execution,
    start: Mapping[str, Any],
    run: Run,
    stopped: Stop,
) -> Runner:
    text = start.get("rollback_text")

    def undo(failed: Run, stopped: Stop) -> Status:
        return _undone(mind, commands, execution.id, failed, str(text), stopped)

    return Runner(mind, commands, execution, run, stopped=stopped, undo=undo if text else None)


def _undone(
    mind: Mind, commands: Commands, id_: str, failed: Run, text: str, stopped: Stop
) -> Status:
    """Returns the status of the rollback of a failed run; it has no rollback of its own."""
    data = text.encode()
    procedure = _parsed(data)
    assert failed.rollback is not None  # noqa: S101 - written with the failure
    about = {"execution_id": id_, "state": failed.state, "error": failed.failing}
    context = {**failed.context, "rollback_of": about}
    execution = executions(mind).existing(failed.rollback) or _create(
        mind, failed.rollback, procedure, data, context
    )
    with execution.held():
        (start, *_), run = _loaded(execution)
        if run.status in (Status.COMPLETED, Status.FAILED):
            return run.status
        if run.status is Status.INTERRUPTED:
            _resume(mind, execution, run)
        alone = {**start, "rollback_text": None}
        return _runner(mind, commands, execution, alone, run, stopped).go().status


def _resume(mind: Mind, execution: Execution, run: Run) -> None:
    record = {"kind": "resume", "at": run.at, "time": mind.now().isoformat()}
    execution.append(record)
    run.apply(record)
    mind.tell(
        "mimo.procedure.resume",
        {"at_ms": run.at},
        execution_id=execution.id,
        name=run.procedure.name,
        version=run.procedure.version,
        state=run.state,
    )


def _stop(mind: Mind, execution: Execution, wait_ms: int | None) -> Stop:
    """Returns the check whether a run must stop: a halted caller, a timeout or `cancel`."""
    deadline = None if wait_ms is None else mind.timer.monotonic() + wait_ms / 1000

    def stopped() -> str | None:
        if mind.halted and mind.halted():
            return "the caller gave up"
        if deadline is not None and mind.timer.monotonic() >= deadline:
            return f"timed out after {wait_ms} ms"
        return execution.cancelled()

    return stopped


def _loaded(execution: Execution) -> tuple[list[Record], Run]:
    """Returns all records of an execution, of which the first holds its texts, and the run."""
    records = execution.records()
    start = records[0]
    procedure = _parsed(str(start.get("text", "")).encode())
    try:
        run = machine.replayed(procedure, start.get("context") or {}, records[1:])
    except (KeyError, ValueError, TypeError):
        raise _damaged() from None
    return records, run


def _parsed(data: bytes) -> Procedure:
    procedure = reading.read(data).procedure
    if procedure is None:
        raise _damaged()
    return procedure


def _damaged() -> StorageFailed:
    return StorageFailed("the execution's journal is damaged", hint="run the procedure again")


def require_resumable(mind: Mind, execution: Execution) -> None:
    """Raises the errors of `carry_out` before a process is started for it."""
    status = report(mind, execution).status
    if status is not Status.INTERRUPTED:
        raise Conflict(f"`{execution.id}` is {status} already", hint="run it again")
    _require_ours(mind, execution, execution.records()[0])


def _require_ours(mind: Mind, execution: Execution, start: Mapping[str, Any]) -> None:
    """Raises `Untrusted` if an execution came with a clone, or its text is no longer approved."""
    texts = [str(start[key]).encode() for key in ("text", "rollback_text") if start.get(key)]
    ours = executions(mind).is_ours(execution.id, start)
    if not ours or not all(library.is_approved(mind, data, _parsed(data)) for data in texts):
        raise Untrusted(
            f"the text that `{execution.id}` runs is not approved on this machine",
            hint="run the procedure again: it asks on a terminal",
        )


def report(mind: Mind, execution: Execution) -> Report:
    """Returns the progress of an execution; if its process is missing, it is interrupted."""
    running = execution.is_running
    records, run = _loaded(execution)
    start = records[0]
    lost = run.status is Status.RUNNING and not running
    elapsed = run.at
    if run.status is Status.RUNNING and running:
        started = [record for record in records if "time" in record][-1]
        since = mind.now() - datetime.fromisoformat(started["time"])
        elapsed = max(run.at, started["at"] + int(since.total_seconds() * 1000))
    return Report(
        id=execution.id,
        procedure=run.procedure.name,
        version=run.procedure.version,
        run=run,
        status=Status.INTERRUPTED if lost else run.status,
        elapsed_ms=elapsed,
        started=datetime.fromisoformat(start["time"]),
        warnings=tuple(start.get("warnings") or ()),
    )


def send(mind: Mind, execution: Execution, event: str) -> Report:
    """Sends an event to a run. Raises `Conflict` if it is not running, `Invalid` for a wrong event.

    If no state waits yet, an event of any of the procedure's states is kept for that state.
    """
    before = report(mind, execution)
    if before.status is not Status.RUNNING:
        hint = f"resume it with `mind procedure resume {execution.id}`"
        raise Conflict(
            f"`{execution.id}` is {before.status}: it takes no events",
            hint=hint if before.status is Status.INTERRUPTED else "",
        )
    states = before.run.procedure.states.values()
    events = before.run.awaits or tuple({e for state in states for e in state.transitions})
    if event not in events:
        raise Invalid(
            f"`{event}` is not an event that `{before.run.state}` waits for",
            hint=f"events are {', '.join(sorted(events))}",
            details={"field": "event"},
        )
    execution.send(event)
    return before


def cancel(mind: Mind, execution: Execution, reason: str) -> Report:
    """Stops a run and returns its progress; a run that has ended is not changed."""
    before = report(mind, execution)
    if before.status is not Status.RUNNING:
        return before
    execution.cancel(f"cancelled: {reason}" if reason else "cancelled")
    deadline = mind.timer.monotonic() + _CANCEL_SECONDS
    while execution.is_running and mind.timer.monotonic() < deadline:
        mind.timer.sleep(SLICE)
    return report(mind, execution)


def start(mind: Mind, execution: Execution) -> int:
    """Returns the id of a new process that carries out an execution. Raises `StorageFailed`.

    It has a session of its own and none of our standard streams. It inherits the execution's lock,
    so that the execution counts as running at every moment.
    """
    import subprocess

    lock = execution.hold()
    root = str(mind.project.root)
    # -P: the project's folder must not be where Python looks for modules.
    argv = [sys.executable, "-P", "-m", "mimo", "--project", root]
    try:
        _continue(mind, execution, *_loaded(execution))
        process = subprocess.Popen(
            [*argv, "procedure", "resume", execution.id],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env={**mind.environ, "MIND_HOME": str(mind.home), HELD: str(lock)},
            pass_fds=(lock,),
            start_new_session=True,
        )
    except OSError as error:
        raise StorageFailed(
            f"a process for `{execution.id}` can't be started: {error.strerror}",
            hint="run it without async",
        ) from error
    finally:
        os.close(lock)
    # Waited for, so that a server that runs for days keeps no zombie processes.
    threading.Thread(target=process.wait, name="mind-reaper", daemon=True).start()
    return process.pid


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP interrupt the block as Ctrl-C does, if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _: Any) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)
