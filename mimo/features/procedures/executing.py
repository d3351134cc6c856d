"""Runs of procedures: started, resumed, sent events and cancelled, from any process.

Each record of a run is written before anything else happens. A run that outlives the call that
started it is a `mind` process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from operator import index
from typing import Any

from mimo.call import Call
from mimo.errors import (
    Command,
    Conflict,
    Denied,
    Hint,
    Invalid,
    MindError,
    RateLimited,
    StorageFailed,
    Untrusted,
)
from mimo.features.procedures import calling, library, machine, reading, schemas
from mimo.features.procedures.actions import (
    LARGEST_CONTEXT,
    SLICE,
    Expired,
    Pace,
    Scope,
    Stopped,
    perform,
)
from mimo.features.procedures.machine import Record, Run, Status
from mimo.features.procedures.model import TIME, Outcome, Procedure, failed
from mimo.features.procedures.storage import CALLER, Execution, Executions
from mimo.frozen import frozen
from mimo.memory.codec.value import packed
from mimo.memory.ids import suffix
from mimo.operations.asking import NAMED
from mimo.project.projects import index_owner
from mimo.surroundings import Question

HELD = "MIND_EXECUTION_LOCK"
"""The variable with the descriptor by which a process inherits the lock of its run."""

MOST_RUNNING = 32
"""The number of runs of a project above which none is started in a process of its own."""

_CANCEL_SECONDS = 5.0
_AGAIN = "run the procedure again: it asks on a terminal"
_LARGEST_JOURNAL = 64 * 1024 * 1024
_ENDING = [n for name in ("SIGTERM", "SIGHUP") if (n := getattr(signal, name, None))]


@frozen
class Report:
    """The progress of an execution."""

    id: str
    run: Run
    status: Status
    """That of the run; `interrupted` if its process is missing."""
    elapsed_ms: int
    warnings: tuple[str, ...]
    started: datetime

    @property
    def error(self) -> str | None:
        """Returns why it failed or stopped, or why its last action failed."""
        if self.status is not self.run.status:
            return "its process ended unexpectedly; resume it"
        return self.run.error


class Runner:
    """Runs one execution, which this process holds, to its end."""

    def __init__(
        self,
        call: Call,
        execution: Execution,
        run: Run,
        *,
        stopped: Callable[[], str | None],
        waits: bool = True,
    ) -> None:
        """Continues the run after its last record.

        `stopped` returns the reason why it must stop, or None. Without `waits`, it stops where it
        needs an event that was not sent.
        """
        self._call = call
        self._execution = execution
        self._run = run
        self._stopped = stopped
        self._waits = waits
        limit = run.procedure.timeout_ms
        self._pace = Pace(call.mind.timer, spent_ms=run.at, limit_ms=limit, stopped=stopped)
        self._scope = Scope(call=call, run=run, pace=self._pace, id=execution.id)

    def go(self) -> Run:
        """Returns the run after its end.

        Raises `KeyboardInterrupt`, `StorageFailed`, and `Invalid` for a question that can't be
        shown: the run is then interrupted, with the reason.
        """
        run = self._run
        try:
            while run.status is Status.RUNNING:
                self._step()
        except Stopped as stop:
            waited = f", while it waited for {' or '.join(run.awaits)}" if run.awaits else ""
            self._write(machine.ended(Status.INTERRUPTED, self._pace.at, f"{stop}{waited}"))
        except KeyboardInterrupt as signal:
            reason = str(signal) or "Ctrl-C"
            with suppress(MindError):
                self._write(machine.ended(Status.INTERRUPTED, self._pace.at, reason))
            resume = Command("procedure resume", self._execution.id)
            place = f"`{run.procedure.name}` in state `{run.state}`; "
            signal.add_note(Hint(place, resume, " continues it"))
            raise
        except MindError as error:
            with suppress(MindError):  # such as a full disk, to which the record can't be written
                self._write(machine.ended(Status.INTERRUPTED, self._pace.at, error.message))
            raise
        end = {"status": run.status.value, "final_state": run.state, "error": run.error}
        self._tell("complete", {"duration_ms": run.at}, **end)
        return run

    def _step(self) -> None:
        """Writes the next record of the run."""
        run = self._run
        try:
            limit = machine.exceeded(run, self._pace.at)
            if self._execution.size > _LARGEST_JOURNAL:
                limit = f"it wrote more than {_LARGEST_JOURNAL:,} bytes"
            if limit:
                self._write(machine.ended(Status.FAILED, self._pace.at, limit))
                return
            self._pace.check()
            if run.awaits:
                self._await()
                return
            action = run.current.action
            self._call.release()  # An action may take minutes.
            outcome = perform(action, self._scope) if action else Outcome()
            record = machine.after_action(run, outcome, self._pace.at)
            if "question" in record:
                record |= machine.processed(run, self._execution.sent(), None)
            self._write(record)
            if record["kind"] == "retry":
                self._pace.pause(record["wait"] / 1000)
        except Expired:
            limit = machine.exceeded(run, self._pace.at) or machine.TOO_LATE
            self._write(machine.ended(Status.FAILED, self._pace.at, limit))

    def _await(self) -> None:
        """Waits for an event, at most for the time of the run or of the action."""
        run, ask, show_line = self._run, self._call.ask, self._call.console.show_line
        self._tell("waiting", {"count": 1}, events=run.awaits, question=run.question)
        text = run.question or f"`{run.procedure.name}` waits in state `{run.state}`."
        while (place := machine.chosen(run, sent := self._execution.sent())) is None:
            if run.answer_by is not None and self._pace.at >= run.answer_by:
                late = failed(f"no answer by {run.answer_by} ms", again=False)
                self._write(machine.after_action(run, late, self._pace.at))
                return
            if ask is None:
                if not self._waits:
                    raise Stopped("no answer yet")
                if show_line:
                    events = " or ".join(f"`{event}`" for event in run.awaits)
                    way = sending(self._execution.id, run.awaits[0])
                    show_line(Hint(f"{text} It waits for {events}; ", way, " answers it"))
                    show_line = None
                self._pace.pause(SLICE)
                continue
            self._pace.check()
            if answer := ask(Question(text=text, choices=run.awaits), SLICE):
                self._execution.send(answer, turn=run.turn)
            elif answer is not None:
                ask = None  # The user declined to answer.
        record = machine.after_event(run, sent[place].event, self._pace.at)
        self._write(record | machine.processed(run, sent, place))

    def _write(self, record: Record) -> None:
        run, kind = self._run, record["kind"]
        self._execution.append(record)
        run.apply(record)
        if kind != "end" and "question" not in record:
            keys = ("from", "to", "event", "state", "error")
            event = "unknown_event" if kind == "stay" and "event" in record else kind
            metadata = {key: record[key] for key in keys if key in record}
            self._tell(event, {"at_ms": record["at"]}, **metadata)
        if self._call.console.progress:
            self._call.console.progress(f"{run.procedure.name}: {run.state}", len(run.history), 0)

    def _tell(self, event: str, measurements: dict[str, float], /, **metadata: object) -> None:
        _tell(self._call, self._execution, self._run.procedure, event, measurements, **metadata)


def _tell(
    call: Call,
    execution: Execution,
    procedure: Procedure,
    event: str,
    measurements: dict[str, float],
    /,
    **metadata: object,
) -> None:
    """Logs an event of an execution."""
    call.mind.tell(
        f"mimo.procedure.{event}",
        measurements,
        execution_id=execution.id,
        name=procedure.name,
        version=procedure.version,
        **metadata,
    )


def sending(execution_id: str, event: str) -> Command:
    """Returns the command that sends an event; `EVENT` for one that no line can show."""
    word = event if event.isprintable() and "`" not in event else "EVENT"
    return Command("procedure send", execution_id, word)


def executions(call: Call) -> Executions:
    """Returns the executions of the project."""
    return Executions(call.mind.project.root, index_owner(call.mind.home, call.mind.randomness))


def begin(
    call: Call, name: str, version: str, context: Mapping[str, Any], *, asynchronous: bool
) -> Execution:
    """Returns a new execution, written but not yet run.

    Raises `NotFound`, `Invalid` for faults, and `Untrusted`. One that is `asynchronous` raises
    `RateLimited` if many runs of the project are running.
    """
    file, procedure = library.find(call, name, version, calls=True)
    size = len(json.dumps(context))
    if size > LARGEST_CONTEXT:
        raise Invalid(
            f"the context has {size:,} bytes, at most {LARGEST_CONTEXT:,}",
            hint="put large values into a file, and its path into the context",
            details={"field": "context"},
        )
    library.require_approved(call, file, procedure)
    if asynchronous:  # Before it is written: refused runs would displace those that have ended.
        _check_process(call, hint="run it again when one has ended, or cancel one")
    id_ = f"{procedure.name}_{call.mind.now():%Y%m%d}_{suffix(call.mind.randomness(4))}"
    warnings = schemas.violations(procedure.context_schema, context)
    start = {
        "kind": "start",
        "name": procedure.name,
        "version": procedure.version,
        "time": call.mind.now().isoformat(),
        "at": 0,
        CALLER: calling.caller_of(call),
        "text": file.data.decode(),
        "context": dict(context),
        "warnings": warnings,
    }
    execution = executions(call).create(id_, start)
    _tell(call, execution, procedure, "start", {"count": 1}, **{"async": asynchronous})
    for warning in warnings:
        message = f"context: {warning}"
        _tell(call, execution, procedure, "warning", {"count": 1}, message=message)
    return execution


def _check_process(call: Call, hint: str) -> None:
    """Raises `RateLimited` if many runs of the project are running.

    Raises `Denied` for a user whose rights another process can't read.
    """
    if call.permissions is not None and call.permissions.reference is None:
        raise Denied("a run with async needs a token of this server", hint="run it without async")
    if executions(call).running() >= MOST_RUNNING:
        raise RateLimited(
            f"{MOST_RUNNING} runs of this project are running already",
            hint=hint,
            details={"retry_after": 1},
        )


def carry_out(
    call: Call, execution: Execution, *, wait_ms: int | None = None, waits: bool = True
) -> Report:
    """Runs an execution from its current state to its end, or until it is stopped.

    Without `waits`, it is interrupted where it needs an event that was not sent.
    Raises `Conflict` if another process runs it or it has ended, `Untrusted`, and `Denied` if the
    caller may not continue it.
    """
    deadline = None if wait_ms is None else call.mind.timer.monotonic() + wait_ms / 1000

    def stopped() -> str | None:
        execution.note_seen(call.mind.now())
        if call.console.halted and call.console.halted():
            return "the caller cancelled the call"
        if deadline is not None and call.mind.timer.monotonic() >= deadline:
            return f"timed out after {wait_ms} ms"
        if not is_valid():
            return "the token of its user is no longer valid"
        return execution.cancelled()

    inherited = call.mind.environ.get(HELD)
    with _signals_interrupt(), execution.held(inherited):
        acting, records, run = _opened(call, execution)
        is_valid = calling.validity(acting)
        call.record_as(acting.permissions)  # The record of the call names the user of the run.
        if inherited is None:
            _continue(acting, execution, records, run)
        Runner(acting, execution, run, stopped=stopped, waits=waits).go()
    return report(call, execution)


def _opened(call: Call, execution: Execution) -> tuple[Call, list[Record], Run]:
    """Returns the records and the run of an execution that is about to continue.

    The memory is that of its caller, which may be an agent although a person continues the run.
    Raises `Conflict` if it has ended, `Untrusted` if it came with a clone or its text is no longer
    approved, and `Denied` if the caller may not continue it.
    """
    records, run = _loaded(execution)
    _check_ours(call, execution, records[0])
    if run.status not in (Status.RUNNING, Status.INTERRUPTED):
        raise Conflict(f"`{execution.id}` is {run.status} already", hint="run it again")
    _check_approved(call, execution, records[0])
    return calling.for_caller(call, _callers(records)), records, run


def _callers(records: list[Record]) -> list[Mapping[str, Any]]:
    """Returns the callers that began and continued a run."""
    head = records[0].get(CALLER, calling.UNKNOWN)
    return [head, *(record[CALLER] for record in records[1:] if CALLER in record)]


def _check_user(call: Call, execution: Execution) -> None:
    """Raises `Denied` if one of several users would act on a run of another.

    An event is an answer of its user, and what follows has the rights of that user.
    """
    if call.permissions is not None:
        calling.check_user(call, _callers(_loaded(execution)[0]))


def _check_approved(call: Call, execution: Execution, start: Record) -> None:
    """Raises `Untrusted` if the text of an execution is not approved."""
    text = str(start.get("text", ""))
    if not library.is_approved(call, text.encode(), _parsed(text)):
        raise Untrusted(
            f"the text that `{execution.id}` runs is not approved on this machine", hint=_AGAIN
        )


def _check_ours(call: Call, execution: Execution, start: Record) -> None:
    """Raises `Untrusted` if an execution came with a clone, or its first record was changed.

    Its author chose each of its texts, which an agent would read as those of the user's own run.
    """
    if not executions(call).is_ours(execution.id, start):
        raise Untrusted(f"you did not begin the run `{execution.id}` on this machine", hint=_AGAIN)


def _continue(call: Call, execution: Execution, records: list[Record], run: Run) -> None:
    """Withdraws a request to stop, and records that a run continues that was begun before.

    The record has the caller, unless the same one only begins the run.
    """
    execution.go_on()
    caller = calling.caller_of(call)
    if len(records) == 1 and records[0].get(CALLER) == caller:
        return
    time = call.mind.now().isoformat()
    record = {"kind": "resume", "at": run.at, "time": time, CALLER: caller}
    execution.append(record)
    run.apply(record)
    _tell(call, execution, run.procedure, "resume", {"at_ms": run.at}, state=run.state)


def _loaded(execution: Execution) -> tuple[list[Record], Run]:
    """Returns all records of an execution, of which the first holds its text, and the run."""
    start, *tail = records = execution.records()
    procedure = _parsed(str(start.get("text", "")))
    try:
        run = Run(procedure, start.get("context") or {})
        run.started = f"{datetime.fromisoformat(start['time']).astimezone(UTC):{TIME}}"
        for record in tail:
            run.apply({**record, "at": index(record["at"])})
        packed(run.context)
    except (KeyError, ValueError, TypeError, OverflowError, Invalid):
        raise _damaged() from None
    return records, run


def _parsed(text: str) -> Procedure:
    procedure = reading.read(text.encode("utf-8", "replace")).procedure
    if procedure is None:
        raise StorageFailed(
            "the execution's journal is damaged, or its text is not valid in this version of mind",
            hint="run the procedure again",
        )
    return procedure


def _damaged() -> StorageFailed:
    return StorageFailed("the execution's journal is damaged", hint="run the procedure again")


def report(call: Call, execution: Execution) -> Report:
    """Returns the progress of an execution; if its process is missing, it is interrupted.

    Raises `Untrusted` if it came with a clone.
    """
    running = execution.is_running
    records, run = _loaded(execution)
    _check_ours(call, execution, records[0])
    lost = run.status is Status.RUNNING and not running
    elapsed = run.at
    try:
        seen = call.mind.now() if running else execution.seen
        if run.status is Status.RUNNING and seen:
            started = [record for record in records if "time" in record][-1]
            since = seen - datetime.fromisoformat(started["time"])
            elapsed = max(run.at, started["at"] + int(since.total_seconds() * 1000))
        begun = datetime.fromisoformat(records[0]["time"]).astimezone(UTC)
        warnings = tuple(map(str, records[0].get("warnings") or ()))
    except (KeyError, IndexError, ValueError, TypeError, OverflowError):
        raise _damaged() from None
    return Report(
        id=execution.id,
        run=run,
        status=Status.INTERRUPTED if lost else run.status,
        elapsed_ms=elapsed,
        warnings=warnings,
        started=begun,
    )


def send(call: Call, execution: Execution, event: str) -> Report:
    """Sends an event to a run. Raises `Conflict` if it takes none, `Invalid` for a wrong event.

    Raises `Denied` if it is a run of another user of the team.

    An event for a state that waits is for that state only, which takes one event. If no state
    waits, the event is kept for the next state that has it and asks no question. A run that was
    interrupted while it waited takes the event when it is resumed.
    """
    _check_user(call, execution)
    progress = report(call, execution)
    run = progress.run
    if not run.accepts and progress.status is not Status.RUNNING:
        hint = Hint("resume it with ", Command("procedure resume", execution.id))
        raise Conflict(
            f"`{execution.id}` is {progress.status}: it takes no events",
            hint=hint if progress.status is Status.INTERRUPTED else "",
        )
    events = run.accepts or run.early
    if event not in events:
        states = run.procedure.states.values()
        if not run.accepts and any(event in state.transitions for state in states):
            raise Conflict(
                f"`{execution.id}` has not asked the question that `{event}` answers",
                hint=Hint(
                    Command("procedure status", execution.id),
                    " shows the question once it is asked",
                ),
            )
        raise Invalid(
            f"`{event}` is not an event that `{run.state}` waits for",
            hint=f"events are {', '.join(sorted(events))}",
            details={"field": "event"},
        )
    if (pending := machine.pending(run, execution.sent(), event)) is not None:
        wait = "the run takes it first"
        if progress.status is not Status.RUNNING:
            wait = Hint(Command("procedure resume", execution.id), " continues the run with it")
        raise Conflict(f"`{pending}` was already sent to `{run.state}`", hint=wait)
    execution.send(event, turn=run.turn if run.accepts else None)
    return progress


def cancel(call: Call, execution: Execution, reason: str) -> tuple[Report, bool]:
    """Stops a run; returns its progress, and whether it was running.

    One that was not running is not changed. Raises `Denied` for a run of another user of the team.
    """
    _check_user(call, execution)
    progress = report(call, execution)
    if progress.status is not Status.RUNNING:
        return progress, False
    execution.cancel(f"cancelled: {reason}" if reason else "cancelled")
    deadline = call.mind.timer.monotonic() + _CANCEL_SECONDS
    while execution.is_running and call.mind.timer.monotonic() < deadline:
        call.mind.timer.sleep(SLICE)
    return report(call, execution), True


def start(call: Call, execution: Execution) -> int:
    """Returns the id of a new process that carries out an execution.

    It has a session of its own and none of our standard streams. It inherits the execution's lock,
    so that the execution counts as running at every moment. It reads the caller from the records
    of the execution; for an agent, it counts as started by that agent. Raises the errors of
    `carry_out`, `RateLimited` if many runs of the project are running, and `StorageFailed`.
    """
    import subprocess

    _check_process(call, hint=f"resume `{execution.id}` when one has ended, or cancel one")
    lock, mind = execution.hold(), call.mind
    root = str(mind.project.root)
    # -P: the project's folder must not be where Python looks for modules.
    argv = [sys.executable, "-P", "-m", "mimo", "--project", root]
    try:
        acting, records, run = _opened(call, execution)
        call.record_as(acting.permissions)  # As in `carry_out`.
        _continue(acting, execution, records, run)
        by_agent = {NAMED: acting.agent} if acting.agent else {}
        process = subprocess.Popen(
            [*argv, "procedure", "resume", execution.id],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env={
                **call.mind.environ,
                "MIND_HOME": str(call.mind.home),
                HELD: str(lock),
                **by_agent,
            },
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

    def interrupt(number: int, _: Any) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    handlers = {number: signal.signal(number, interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
