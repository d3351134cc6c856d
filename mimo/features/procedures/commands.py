"""The `mind procedure` commands: adding, checking and showing procedures, and running them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from mimo.commands import Registry, all_commands, called, near
from mimo.commands.arguments import choose, decode
from mimo.commands.common import TrustLabel
from mimo.commands.invoke import Caller, invoke
from mimo.commands.schema import OPERATION, to_json
from mimo.commands.spec import Arg, Effect, Json, Needs, Omitted, Out, Spec, Surface, command
from mimo.errors import AmbiguousId, Conflict, Denied, Invalid, NotFound, StorageFailed, Untrusted
from mimo.features.procedures import executing, library
from mimo.features.procedures.executing import Report
from mimo.features.procedures.library import Checked
from mimo.features.procedures.machine import Status
from mimo.features.procedures.model import (
    LATEST,
    NAME,
    Fault,
    Procedure,
    mermaid,
    split_reference,
)
from mimo.features.procedures.storage import Execution
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.mind import Mind
from mimo.store import procedures as store
from mimo.store.procedures import ProcedureFile

OWN = "procedures"
"""The toolset that procedures can't call: procedures that start each other might never end."""
PROGRAM_WAITS_MS = 60_000
"""The default time that a program waits for a run; many give up after this."""


class CommandSet:
    """Mind's own commands for procedures, on the path of all surfaces; loaded on first use."""

    def __init__(self, registry: Registry | None = None) -> None:
        """Keep the table of commands (default: all commands)."""
        self._registry = registry

    def _tools(self) -> Mapping[str, Any]:
        self._registry = self._registry or all_commands()
        return self._registry.tools()

    def fault(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Returns why a procedure can't call a command with arguments of these names, or None."""
        specs = called(self._tools(), name)
        if specs is None:
            nearest = near(self._tools(), name, "slash")
            hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
            return f"there is no command `{name}`{hint}"
        if specs[0].toolset == OWN:
            return f"a procedure can't call `{name}`: procedures don't run procedures"
        return _argument_fault(specs, arguments)

    def call(self, mind: Mind, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a command's result as JSON. Raises `MindError`."""
        if reason := self.fault(name, arguments):
            raise Denied(reason)
        spec, rest = choose(called(self._tools(), name) or (), arguments)
        decode(spec, rest, Surface.MCP)  # arguments of the command line alone are for people
        answer = to_json(invoke(spec, mind, _caller(spec, mind), rest))
        if not isinstance(answer, dict):
            raise Invalid(f"the result of `{name}` is not an object")
        return answer


def _argument_fault(specs: Sequence[Spec], arguments: Mapping[str, Any]) -> str | None:
    """Returns a message on an unknown or missing argument, or None."""
    name = specs[0].name
    params = [p for spec in specs for p in spec.params if Surface.MCP in p.arg.surfaces]
    taken = {word for param in params for word in (param.name, *param.aliases)}
    if specs[0].operation:
        taken.add(OPERATION)
    for given in arguments:
        if given not in taken:
            known = f"it takes {', '.join(sorted(taken))}" if taken else "it takes none"
            return f"`{name}` takes no argument `{given}`; {known}"
    for param in params if len(specs) == 1 else ():
        if param.required and not {param.name, *param.aliases} & {*arguments}:
            return f"`{name}` needs the argument `{param.name}`"
    return None


def _caller(spec: Spec, mind: Mind) -> Caller:
    """Returns the caller of a procedure's commands: the caller of the procedure."""
    is_person = mind.author is None and Surface.CLI in spec.surfaces
    surface = Surface.CLI if is_person else Surface.MCP
    return Caller(surface=surface, name=mind.author, agent=mind.agent)


Name = Annotated[str, Arg("Name of the procedure", complete="procedure")]
Version = Annotated[str, Arg("Its version, or `latest` for the highest")]
ExecutionId = Annotated[
    str, Arg("Id of the run, an unambiguous start or end of it, or `latest`", complete="execution")
]
Async = Annotated[bool, Arg("Return at once and run in a process of its own", wire="async")]
Timeout = Annotated[
    int | None,
    Arg(
        "Maximum milliseconds to wait for the end, then it is interrupted (default: 60000 for a "
        "program, the procedure's own limit for a person)",
        ge=1,
        le=2**31,
    ),
]
Text = Annotated[str | None, Arg("The whole Markdown of the procedure", stdin=True)]
Trusted = Annotated[TrustLabel, Out("Whether this text is approved on this machine and may run")]


@frozen
class Moved:
    """One transition of a run."""

    from_: Annotated[str, Out("The state that was left", wire="from")]
    to: Annotated[str, Out("The state that was entered")]
    event: str
    timestamp: Annotated[int, Out("Milliseconds since the start")]


@frozen
class Ran:
    """A run: its end, or its id if it runs in the background."""

    execution_id: str
    status: Status
    pid: Annotated[str | None, Out("Of an async run: the process that runs it", omit=True)] = None
    final_state: Annotated[str | None, Out("The state it ended in", omit=True)] = None
    context: Annotated[dict[str, Json] | None, Out("The context at the end", omit=True)] = None
    history: Annotated[tuple[Moved, ...] | None, Out("All transitions, in order", omit=True)] = None
    duration_ms: Annotated[int | None, Out("Milliseconds it took", omit=True)] = None
    error: Annotated[str | None, Out("Why it failed or was interrupted", omit=True)] = None
    log: Annotated[tuple[str, ...] | None, Out("The lines of its log steps", omit=True)] = None
    rollback: Annotated[str | None, Out("The run that undid this failed one", omit=True)] = None
    warnings: Annotated[
        tuple[str, ...] | None, Out("Violations of the context's schema", omit=True)
    ] = None

    @property
    def exit_status(self) -> int:
        """Returns the exit status of the command line: 1 if it failed or was interrupted."""
        return 0 if self.status in (Status.RUNNING, Status.COMPLETED) else 1


@frozen
class HowFar:
    """The progress of a run."""

    execution_id: str
    status: Status
    current_state: str
    context: dict[str, Json]
    elapsed_ms: Annotated[int, Out("Milliseconds it has taken, without interruptions")]
    procedure: Annotated[str, Out("Its procedure, as name@version")]
    history: tuple[Moved, ...]
    error: Annotated[str | None, Out("Why it failed or stopped, or why its last action failed")]
    waits_for: Annotated[
        tuple[str, ...] | None, Out("Events, one of which must be sent to it", omit=True)
    ] = None
    question: Annotated[str | None, Out("Its question", omit=True)] = None
    log: Annotated[tuple[str, ...] | None, Out("The lines of its log steps", omit=True)] = None
    rollback: Annotated[str | None, Out("The run that undoes this failed one", omit=True)] = None


@frozen
class Sent:
    """An event that was sent to a run."""

    execution_id: str
    event: str
    current_state: Annotated[str, Out("Its state when the event was sent")]


@frozen
class Row:
    """One version of a procedure."""

    name: str
    version: str
    description: str
    state_count: int
    timeout_ms: Annotated[int, Out("Maximum milliseconds of a run")]
    max_retries: Annotated[int, Out("Maximum number of retries of a failed action")]
    trust: Trusted


@frozen
class FaultRow:
    """An error in a procedure's file."""

    file: str
    line: Omitted[int] = None
    reason: str


@frozen
class Procedures:
    """The procedures of the project."""

    procedures: Annotated[tuple[Row, ...], Out("By name, the newest version first")]
    count: int
    faults: Annotated[tuple[FaultRow, ...], Out("Errors in files that are not valid procedures")]


@frozen
class Definition:
    """A whole procedure."""

    name: str
    version: str
    description: str
    steps: Annotated[tuple[str, ...], Out("Names of the states")]
    hash: Annotated[str, Out("SHA-256 of the definition as canonical JSON")]
    definition: Annotated[dict[str, Json], Out("`initial_state` and `states`")]
    context_schema: dict[str, Json]
    timeout_ms: int
    max_retries: int
    rollback_procedure: Omitted[str]
    trust: Trusted
    file: str
    diagram: Annotated[str | None, Out("The states as a Mermaid diagram", omit=True)] = None


@frozen
class Registered:
    """A procedure that was added."""

    name: str
    version: str
    file: str
    state_count: int
    trust: Annotated[TrustLabel, Out("Whether it can run without a person's approval")]
    warnings: tuple[FaultRow, ...]


@frozen
class Checks:
    """The result of checking procedures."""

    valid: bool
    checked: Annotated[int, Out("Number of files checked")]
    faults: tuple[FaultRow, ...]
    warnings: tuple[FaultRow, ...]

    @property
    def exit_status(self) -> int:
        """Returns the exit status of the command line: 1 if there are faults."""
        return 0 if self.valid else 1


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

    Only a text that was approved on this machine runs. On a terminal it asks before a text runs for
    the first time, and asks the procedure's questions. An interrupted run can be resumed.
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
    """Show the progress of a run, from any process"""
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
    reason: Annotated[str, Arg("Reason, kept with the run")] = "",
) -> HowFar:
    """Stop a run

    It is interrupted as soon as its action allows, and can be resumed. A run that has ended is not
    changed.
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
    event: Annotated[str, Arg("The event, as named in one of the state's transitions")],
) -> Sent:
    """Send an event to a run that waits for one"""
    report = executing.send(mind, executing.executions(mind).find(execution_id), event)
    return Sent(execution_id=report.id, event=event, current_state=report.run.state)


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
    """Continue an interrupted run from the last state that it reached

    The action of that state is performed again, since it may not be complete.
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
    pid = executing.start(mind, execution)
    return Ran(execution_id=execution.id, status=Status.RUNNING, pid=str(pid))


def _ran(report: Report) -> Ran:
    run = report.run
    return Ran(
        execution_id=report.id,
        status=report.status,
        final_state=run.state,
        context=run.context,
        history=_history(report),
        duration_ms=report.elapsed_ms,
        error=run.error,
        log=tuple(run.log) or None,
        rollback=run.rollback,
        warnings=report.warnings or None,
    )


def _how_far(report: Report) -> HowFar:
    run = report.run
    running = report.status is Status.RUNNING
    lost = report.status is not run.status
    return HowFar(
        execution_id=report.id,
        status=report.status,
        current_state=run.state,
        context=run.context,
        elapsed_ms=report.elapsed_ms,
        procedure=run.procedure.key,
        history=_history(report),
        error="its process ended unexpectedly; resume it" if lost else run.error,
        waits_for=(run.awaits or None) if running else None,
        question=run.question if running else None,
        log=tuple(run.log) or None,
        rollback=run.rollback,
    )


def _history(report: Report) -> tuple[Moved, ...]:
    return tuple(
        Moved(from_=row["from"], to=row["to"], event=row["event"], timestamp=row["timestamp"])
        for row in report.run.history
    )


@command(
    "list_procedures",
    cli="procedure list",
    effect=Effect.READ,
    toolset="procedures",
    examples=("mind procedure list",),
    description="List all registered procedures",
)
def list_(mind: Mind) -> Procedures:
    """List the procedures of this project"""
    every = library.every(mind)
    rows = tuple(
        Row(
            name=procedure.name,
            version=procedure.version,
            description=procedure.description,
            state_count=len(procedure.states),
            timeout_ms=procedure.timeout_ms,
            max_retries=procedure.max_retries,
            trust=_trust(mind, file.data, procedure),
        )
        for file in every
        if (procedure := file.procedure) and procedure.active
    )
    faults = tuple(row for file in every for row in _rows(file, file.faults))
    return Procedures(procedures=rows, count=len(rows), faults=faults)


@command(
    "recall_procedure",
    cli="procedure show",
    effect=Effect.READ,
    toolset="procedures",
    errors=(NotFound, Invalid),
    examples=("mind procedure show release", "mind procedure show release --format mermaid"),
    description="Retrieve the definition of a procedure: its states, actions and transitions",
)
def show(
    mind: Mind,
    name: Name,
    version: Version = LATEST,
    *,
    format: Annotated[
        Literal["text", "mermaid"], Arg("Output format", surfaces=Surface.CLI)
    ] = "text",
) -> Definition:
    """Show a procedure, as a diagram and in full"""
    file, procedure = library.one(mind, name, version)
    return Definition(
        name=procedure.name,
        version=procedure.version,
        description=procedure.description,
        steps=tuple(procedure.states),
        hash=library.definition_hash(procedure),
        definition=dict(procedure.definition),
        context_schema=dict(procedure.context_schema),
        timeout_ms=procedure.timeout_ms,
        max_retries=procedure.max_retries,
        rollback_procedure=procedure.rollback,
        trust=_trust(mind, file.data, procedure),
        file=file.path,
        diagram=mermaid(procedure) if format == "mermaid" else None,
    )


@command(
    "register_procedure",
    cli="procedure add",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="procedures",
    errors=(Invalid, Conflict, StorageFailed),
    examples=("mind procedure add release.md", "mind procedure add --text - < release.md"),
)
def add(
    mind: Mind,
    file: Annotated[
        str | None, Arg("The Markdown file to add", surfaces=Surface.CLI, complete="path")
    ] = None,
    *,
    text: Text = None,
) -> Registered:
    """Add a procedure to this project

    A procedure is Markdown: a header with `name`, `version`, `description`, limits and the schema
    of the context, and one block fenced by ```yaml with `initial_state` and `states`. All faults
    are reported at once. The text counts as approved unless it runs programs or sends requests: a
    person must approve that, on the terminal at the first run.
    """
    if (file is None) == (text is None):
        raise Invalid("give a file or a text", hint="such as `mind procedure add release.md`")
    data = (text or "").encode() if file is None else store.given(Path(file).expanduser())
    return _registered(mind, *library.added(mind, data, CommandSet()))


@command(
    "new_procedure",
    cli="procedure new",
    effect=Effect.WRITE,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(Invalid, Conflict, StorageFailed),
    examples=("mind procedure new release",),
)
def new(mind: Mind, name: Annotated[str, Arg("Letters, digits, `-` and `_`")]) -> Registered:
    """Write a commented, complete procedure to start from"""
    if not NAME.fullmatch(name):
        raise Invalid(
            f"`{name}` is not a name of a procedure", hint="use letters, digits, `-` and `_`"
        )
    data = library.template(name).encode()
    return _registered(mind, *library.added(mind, data, CommandSet()))


@command(
    "check_procedure",
    cli="procedure check",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ),
    errors=(NotFound, Invalid),
    examples=("mind procedure check", "mind procedure check release", "mind procedure check x.md"),
)
def check(
    mind: Mind,
    name: Annotated[
        str | None, Arg("A procedure, or a Markdown file (default: all procedures)")
    ] = None,
) -> Checks:
    """Check procedures: every fault at once, with its line"""
    files = _wanted(mind, name)
    faults = tuple(row for file in files for row in _rows(file, file.faults))
    warnings = tuple(row for file in files for row in _rows(file, file.warnings))
    return Checks(valid=not faults, checked=len(files), faults=faults, warnings=warnings)


def _wanted(mind: Mind, name: str | None) -> list[Checked]:
    commands = CommandSet()
    if name is None:
        return library.every(mind, commands)
    reference = split_reference(name)
    if reference and not Path(name).is_file():
        return library.named(mind, *reference, commands)
    file = ProcedureFile(path=name, data=store.given(Path(name).expanduser()))
    return [library.checked(file, commands)]


def _registered(mind: Mind, file: Checked, procedure: Procedure) -> Registered:
    return Registered(
        name=procedure.name,
        version=procedure.version,
        file=file.path,
        state_count=len(procedure.states),
        trust=_trust(mind, file.data, procedure),
        warnings=_rows(file, file.warnings),
    )


def _trust(mind: Mind, data: bytes, procedure: Procedure) -> TrustLabel:
    approved = library.is_approved(mind, data, procedure)
    return TrustLabel.TRUSTED if approved else TrustLabel.UNTRUSTED


def _rows(file: Checked, faults: tuple[Fault, ...]) -> tuple[FaultRow, ...]:
    return tuple(FaultRow(file=file.path, line=f.line, reason=f.reason) for f in faults)
