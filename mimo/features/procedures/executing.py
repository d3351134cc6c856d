"""Runs that outlive the call that started them: each is a `mind` process of its own."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from mimo.errors import Conflict, Invalid, StorageFailed, Untrusted
from mimo.features.procedures import actions, library, machine, reading, steps
from mimo.features.procedures.actions import LARGEST_CONTEXT, SLICE
from mimo.features.procedures.machine import Record, Run, Status
from mimo.features.procedures.model import LATEST, Commands, Procedure, Refused
from mimo.features.procedures.running import Runner, Stop
from mimo.features.procedures.storage import Execution, Executions
from mimo.frozen import frozen
from mimo.memory.ids import suffix
from mimo.mind import Mind
from mimo.store.projects import index_owner

# What ends a run from outside, as Ctrl-C does: it is written, and its program is killed.


_ENDING = [n for name in ("SIGTERM", "SIGHUP") if (n := getattr(signal, name, None))]


@contextmanager
def heeded() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP interrupt the block as Ctrl-C does, where this is a program's own."""
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


# Executions: begun, resumed, sent events, cancelled, and told of from any process.


HELD = "MIND_EXECUTION_LOCK"
"""Names the descriptor by which a process inherits the lock of the run that it was started for."""

_CANCEL_SECONDS = 5.0


@frozen
class Report:
    """How far an execution is."""

    id: str
    procedure: str
    version: str
    run: Run
    status: Status
    elapsed_ms: int
    started: datetime
    warnings: tuple[str, ...]


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
    """Returns a new execution, written and not yet run.

    Raises `NotFound`, `Invalid` for faults, and `Untrusted`, for the rollback procedure too.
    """
    found, procedure = library.one(mind, name, version, commands)
    _refuse_large(context)
    library.require_approved(mind, found, procedure)
    rollback = _rollback_text(mind, commands, procedure)
    id_ = f"{procedure.name}_{mind.now():%Y%m%d}_{suffix(mind.randomness(4))}"
    return _create(
        mind, id_, procedure, found.data, context, rollback=rollback, asynchronous=asynchronous
    )


def _refuse_large(context: Mapping[str, Any]) -> None:
    size = len(json.dumps(context))
    if size > LARGEST_CONTEXT:
        raise Invalid(
            f"the context has {size:,} bytes, at most {LARGEST_CONTEXT:,}",
            hint="put what is large into a file, and its path into the context",
            details={"field": "context"},
        )


def _rollback_text(mind: Mind, commands: Commands, procedure: Procedure) -> str | None:
    if procedure.rollback is None:
        return None
    found, undoing = library.one(mind, procedure.rollback, LATEST, commands)
    library.require_approved(mind, found, undoing)
    return found.data.decode()


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
    try:
        broken = steps.violations(procedure.context_schema, context, actions.matches)
    except Refused as error:
        broken = [str(error)]
    start = {
        "kind": "start",
        "name": procedure.name,
        "version": procedure.version,
        "time": mind.now().isoformat(),
        "at": 0,
        "text": text.decode(),
        "rollback_text": rollback,
        "context": dict(context),
        "warnings": broken,
    }
    execution = executions(mind).create(id_, start)
    told = {"execution_id": id_, "name": procedure.name, "version": procedure.version}
    mind.tell("mimo.procedure.start", {"count": 1}, **told, **{"async": asynchronous})
    for warning in broken:
        mind.tell("mimo.procedure.warning", {"count": 1}, **told, message=f"context: {warning}")
    return execution


def carry_out(
    mind: Mind, commands: Commands, execution: Execution, *, wait_ms: int | None = None
) -> Report:
    """Runs an execution from where it is, to its end or until somebody stops it.

    Raises `Conflict` where another process runs it or it has ended, and `Untrusted`.
    """
    started_for_it = HELD in mind.environ
    with heeded(), execution.held(mind.environ.get(HELD)):
        records, run = _loaded(execution)
        start = records[0]
        if run.status not in (Status.RUNNING, Status.INTERRUPTED):
            raise Conflict(f"`{execution.id}` is {run.status} already", hint="run it anew")
        _require_ours(mind, execution, start)
        if not started_for_it:
            _take_up(mind, execution, records, run)
        stopped = _stop(mind, execution, wait_ms)
        _runner(mind, commands, execution, start, run, stopped).go()
    return report(mind, execution)


def hand_over(mind: Mind, execution: Execution) -> None:
    """Writes that an execution goes on, for a process that is about to carry it out."""
    _take_up(mind, execution, *_loaded(execution))


def _take_up(mind: Mind, execution: Execution, records: list[Record], run: Run) -> None:
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
    """Returns how the rollback of a failed run ended; it has no rollback of its own."""
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
    """Returns what tells why a run shall stop: its caller gave up, or somebody cancelled it."""
    until = None if wait_ms is None else mind.timer.monotonic() + wait_ms / 1000

    def stopped() -> str | None:
        if mind.halted and mind.halted():
            return "the caller gave up"
        if until is not None and mind.timer.monotonic() >= until:
            return f"timed out after {wait_ms} ms"
        return execution.cancelled()

    return stopped


def _loaded(execution: Execution) -> tuple[list[Record], Run]:
    """Returns all records of an execution, the first of which says what it runs, and the run."""
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
    return StorageFailed("the execution's journal is damaged", hint="run the procedure anew")


def require_resumable(mind: Mind, execution: Execution) -> None:
    """Raises what `carry_out` would, before a process is started for it."""
    found = report(mind, execution)
    if found.status is not Status.INTERRUPTED:
        raise Conflict(f"`{execution.id}` is {found.status} already", hint="run it anew")
    _require_ours(mind, execution, execution.records()[0])


def _require_ours(mind: Mind, execution: Execution, start: Mapping[str, Any]) -> None:
    """Raises `Untrusted` for an execution that came with a clone, or whose text lost approval."""
    texts = [str(start[key]).encode() for key in ("text", "rollback_text") if start.get(key)]
    ours = executions(mind).is_ours(execution.id, start)
    if not ours or not all(library.is_approved(mind, data, _parsed(data)) for data in texts):
        raise Untrusted(
            f"nobody here has approved what `{execution.id}` runs",
            hint="run the procedure anew: it asks on a terminal",
        )


def report(mind: Mind, execution: Execution) -> Report:
    """Returns how far an execution is; one whose process is gone is interrupted."""
    running = execution.is_running
    records, run = _loaded(execution)
    start = records[0]
    lost = run.status is Status.RUNNING and not running
    elapsed = run.at
    if run.status is Status.RUNNING and running:
        begun = [record for record in records if "time" in record][-1]
        gone = mind.now() - datetime.fromisoformat(begun["time"])
        elapsed = max(run.at, begun["at"] + int(gone.total_seconds() * 1000))
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
    """Sends an event to a run. Raises `Conflict` where nothing runs, `Invalid` for a wrong event.

    While no state waits, any event that the procedure knows is kept for the one that does.
    """
    found = report(mind, execution)
    if found.status is not Status.RUNNING:
        hint = f"mind procedure resume {execution.id}"
        raise Conflict(
            f"`{execution.id}` is {found.status}: it takes no events",
            hint=f"resume it with `{hint}`" if found.status is Status.INTERRUPTED else "",
        )
    states = found.run.procedure.states.values()
    known = found.run.awaits or tuple({e for state in states for e in state.transitions})
    if event not in known:
        raise Invalid(
            f"`{event}` is no event that `{found.run.state}` waits for",
            hint=f"events are {', '.join(sorted(known))}",
            details={"field": "event"},
        )
    execution.send(event)
    return found


def cancel(mind: Mind, execution: Execution, reason: str) -> Report:
    """Stops a run, and returns how far it came; what has ended stays as it is."""
    found = report(mind, execution)
    if found.status is not Status.RUNNING:
        return found
    execution.cancel(f"cancelled: {reason}" if reason else "cancelled")
    until = mind.timer.monotonic() + _CANCEL_SECONDS
    while execution.is_running and mind.timer.monotonic() < until:
        mind.timer.sleep(SLICE)
    return report(mind, execution)


def start(mind: Mind, execution: Execution) -> int:
    """Returns the number of a new process that carries out an execution.

    It has a session of its own and no standard streams of ours. It inherits the execution's lock,
    so that there is no moment in which nobody seems to run it. Raises `StorageFailed`.
    """
    import subprocess

    lock = execution.hold()
    root = str(mind.project.root)
    # -P: the project's folder must not be where Python looks for modules.
    argv = [sys.executable, "-P", "-m", "mimo", "--project", root]
    try:
        hand_over(mind, execution)
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
    # Waited for, so that a server which goes on for days keeps no dead children.
    threading.Thread(target=process.wait, name="mind-reaper", daemon=True).start()
    return process.pid
