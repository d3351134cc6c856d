"""Running procedures, and following, stopping and resuming what runs."""

from typing import Annotated

from mimo.commands.calling import CommandSet
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Json, Out
from mimo.domain.procedures.machine import Status
from mimo.domain.procedures.procedure import LATEST
from mimo.errors import AmbiguousId, Conflict, Invalid, NotFound, StorageFailed, Untrusted
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.procedures import background, executing
from mimo.services.procedures.executing import Report
from mimo.store.executions import Execution

PROGRAM_WAITS_MS = 60_000
"""How long a program is kept waiting unless it says; many give up after this."""

Name = Annotated[str, Arg("Name of the procedure", complete="procedure")]
Version = Annotated[str, Arg("Its version, or `latest` for the highest")]
ExecutionId = Annotated[
    str, Arg("Id of the run, an unambiguous start or end of it, or `latest`", complete="execution")
]
Async = Annotated[bool, Arg("Answer at once and go on in a process of its own", wire="async")]
Timeout = Annotated[
    int | None,
    Arg(
        "Most milliseconds to wait for the end, after which it is interrupted; a program waits "
        "60000 unless it says, a person as long as the procedure may take",
        ge=1,
        le=2**31,
    ),
]


@frozen
class Moved:
    """One transition of a run."""

    from_: Annotated[str, Out("The state that was left", wire="from")]
    to: Annotated[str, Out("The state that was entered")]
    event: str
    timestamp: Annotated[int, Out("Milliseconds since the start")]


@frozen
class Ran:
    """A run: how it ended, or that it goes on in the background."""

    execution_id: str
    status: Status
    pid: Annotated[str | None, Out("Of an async run: the process that runs it", omit=True)] = None
    final_state: Annotated[str | None, Out("The state it ended in", omit=True)] = None
    context: Annotated[dict[str, Json] | None, Out("The context at the end", omit=True)] = None
    history: Annotated[tuple[Moved, ...] | None, Out("All transitions, in order", omit=True)] = None
    duration_ms: Annotated[int | None, Out("What it took", omit=True)] = None
    error: Annotated[str | None, Out("Why it failed or was interrupted", omit=True)] = None
    log: Annotated[tuple[str, ...] | None, Out("What its log steps said", omit=True)] = None
    rollback: Annotated[str | None, Out("The run that undid this failed one", omit=True)] = None
    warnings: Annotated[
        tuple[str, ...] | None, Out("In what the context does not fit its schema", omit=True)
    ] = None

    @property
    def exit_status(self) -> int:
        """Returns what the command line exits with: 1 where it failed or was interrupted."""
        return 0 if self.status in (Status.RUNNING, Status.COMPLETED) else 1


@frozen
class HowFar:
    """How far a run is."""

    execution_id: str
    status: Status
    current_state: str
    context: dict[str, Json]
    elapsed_ms: Annotated[int, Out("Milliseconds it has taken, without interruptions")]
    procedure: Annotated[str, Out("What it runs, as name@version")]
    history: tuple[Moved, ...]
    error: Annotated[str | None, Out("Why it failed or stopped, or why its last action failed")]
    waits_for: Annotated[
        tuple[str, ...] | None, Out("Events, one of which must be sent to it", omit=True)
    ] = None
    question: Annotated[str | None, Out("What it asks", omit=True)] = None
    log: Annotated[tuple[str, ...] | None, Out("What its log steps said", omit=True)] = None
    rollback: Annotated[str | None, Out("The run that undoes this failed one", omit=True)] = None


@frozen
class Sent:
    """An event that was sent to a run."""

    execution_id: str
    event: str
    current_state: Annotated[str, Out("The state that it was in then")]


@command(
    "run_procedure",
    cli="procedure run",
    effect=Effect.WRITE,
    toolset="procedures",
    errors=(NotFound, Invalid, Untrusted, StorageFailed),
    examples=(
        "mind procedure run release",
        """mind procedure run release --context '{"branch": "main"}'""",
        "mind procedure run nightly --async",
    ),
    description="Execute a registered procedure as a state machine",
)
def run(
    mind: Mind,
    name: Name,
    version: Version = LATEST,
    *,
    context: Annotated[Json, Arg("Initial execution context, an object")] = None,
    async_: Async = False,
    timeout: Timeout = None,
) -> Ran:
    """Run a procedure

    It runs only in exactly the text that somebody on this machine has approved. On a terminal it
    asks before a text runs for the first time, and puts the questions of the procedure. What is
    interrupted can be resumed.
    """
    if context is not None and not isinstance(context, dict):
        raise Invalid(
            "`context` must be an object",
            hint="""such as {"branch": "main"}""",
            details={"field": "context"},
        )
    commands = CommandSet()
    execution = executing.begin(mind, commands, name, version, context or {}, asynchronous=async_)
    if async_:
        return _in_background(mind, execution)
    return _ran(executing.carry_out(mind, commands, execution, wait_ms=_wait(mind, timeout)))


@command(
    "procedure_status",
    cli="procedure status",
    effect=Effect.READ,
    toolset="procedures",
    errors=(NotFound, AmbiguousId, Invalid),
    examples=("mind procedure status latest", "mind procedure status k3v7mq --json"),
    description="Check status of async procedure execution",
)
def status(mind: Mind, execution_id: ExecutionId) -> HowFar:
    """Show how far a run is, from any process"""
    return _how_far(executing.report(mind, executing.executions(mind).find(execution_id)))


@command(
    "cancel_procedure",
    cli="procedure cancel",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="procedures",
    errors=(NotFound, AmbiguousId, Invalid, StorageFailed),
    examples=("mind procedure cancel latest --reason 'wrong branch'",),
)
def cancel(
    mind: Mind,
    execution_id: ExecutionId,
    *,
    reason: Annotated[str, Arg("Why, for those who look later")] = "",
) -> HowFar:
    """Stop a run

    It is interrupted as soon as its action allows, and could be resumed. A run that has ended
    stays as it is.
    """
    execution = executing.executions(mind).find(execution_id)
    return _how_far(executing.cancel(mind, execution, reason))


@command(
    "send_event",
    cli="procedure send",
    effect=Effect.WRITE,
    toolset="procedures",
    errors=(NotFound, AmbiguousId, Conflict, Invalid, StorageFailed),
    examples=("mind procedure send latest approved",),
)
def send(
    mind: Mind,
    execution_id: ExecutionId,
    event: Annotated[str, Arg("The event, as one of the state's transitions names it")],
) -> Sent:
    """Send an event to a run that waits for one"""
    found = executing.send(mind, executing.executions(mind).find(execution_id), event)
    return Sent(execution_id=found.id, event=event, current_state=found.run.state)


@command(
    "resume_procedure",
    cli="procedure resume",
    effect=Effect.WRITE,
    toolset="procedures",
    errors=(NotFound, AmbiguousId, Conflict, Invalid, Untrusted, StorageFailed),
    examples=("mind procedure resume latest", "mind procedure resume k3v7mq --async"),
)
def resume(
    mind: Mind, execution_id: ExecutionId, *, async_: Async = False, timeout: Timeout = None
) -> Ran:
    """Go on with an interrupted run, from the last state that it had reached

    The action of that state is done again, since nobody knows how far it came.
    """
    execution = executing.executions(mind).find(execution_id)
    if async_:
        executing.require_resumable(mind, execution)
        return _in_background(mind, execution)
    wait = _wait(mind, timeout)
    return _ran(executing.carry_out(mind, CommandSet(), execution, wait_ms=wait))


def _wait(mind: Mind, timeout: int | None) -> int | None:
    if timeout is not None or mind.author is None:
        return timeout
    return PROGRAM_WAITS_MS


def _in_background(mind: Mind, execution: Execution) -> Ran:
    pid = background.start(mind, execution)
    return Ran(execution_id=execution.id, status=Status.RUNNING, pid=str(pid))


def _ran(found: Report) -> Ran:
    run = found.run
    return Ran(
        execution_id=found.id,
        status=found.status,
        final_state=run.state,
        context=run.context,
        history=_history(found),
        duration_ms=found.elapsed_ms,
        error=run.error,
        log=tuple(run.log) or None,
        rollback=run.rollback,
        warnings=found.warnings or None,
    )


def _how_far(found: Report) -> HowFar:
    run = found.run
    running = found.status is Status.RUNNING
    lost = found.status is not run.status
    return HowFar(
        execution_id=found.id,
        status=found.status,
        current_state=run.state,
        context=run.context,
        elapsed_ms=found.elapsed_ms,
        procedure=run.procedure.key,
        history=_history(found),
        error="its process is gone; resume it" if lost else run.error,
        waits_for=(run.awaits or None) if running else None,
        question=run.question if running else None,
        log=tuple(run.log) or None,
        rollback=run.rollback,
    )


def _history(found: Report) -> tuple[Moved, ...]:
    return tuple(
        Moved(from_=row["from"], to=row["to"], event=row["event"], timestamp=row["timestamp"])
        for row in found.run.history
    )
