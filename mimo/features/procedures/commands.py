"""The `mind procedure` commands: adding, checking and showing procedures, and running them."""

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from mimo import when
from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Json, Needs, Omitted, Out, command
from mimo.data import disk, files
from mimo.errors import (
    AmbiguousId,
    Command,
    Conflict,
    Denied,
    Hint,
    Invalid,
    NotFound,
    RateLimited,
    SecretDetected,
    StorageFailed,
    Untrusted,
)
from mimo.features.procedures import executing, library
from mimo.features.procedures.executing import Report
from mimo.features.procedures.library import ProcedureFile
from mimo.features.procedures.machine import Run, Status
from mimo.features.procedures.model import (
    LATEST,
    NAME,
    Procedure,
    mermaid,
    split_reference,
)
from mimo.features.procedures.storage import Execution
from mimo.frozen import frozen, replace
from mimo.guard.policy import Operation
from mimo.memory.codec.front_matter import Fault, scalar
from mimo.operations.rows import AlsoFrom, Limit, TrustLabel, label_of
from mimo.operations.saving import check_secrets

PROGRAM_WAITS_MS = 60_000
"""The default time that a program waits for a run; many give up after this."""
LAST_STEPS = -20
"""The most transitions, and lines of its log, that an agent gets of a run: the last ones."""
TEMPLATE = Path(__file__).with_name("template.md")
"""The text of `mind procedure new`, with `NAME` in place of the name."""


Name = Annotated[str, Arg("Name of the procedure", agents="", complete="procedure")]
Version = Annotated[str, Arg("Its version, or `latest` for the highest", agents="")]
ExecutionId = Annotated[
    str,
    Arg(
        "Id of the run, an unambiguous start or end of it, or `latest`",
        agents="",
        complete="execution",
    ),
]
Async = Annotated[
    bool,
    Arg("Return at once and run in a process of its own", agents="", wire="async"),
]
Timeout = Annotated[
    int | None,
    Arg(
        "Maximum milliseconds to wait for the end, then it is interrupted (default: 60000 for an "
        "agent, the procedure's own limit for others)",
        listed=False,
        ge=1,
        le=2**31,
    ),
]
Text = Annotated[
    str | None, Arg("The whole Markdown of the procedure", agents="", needed=True, stdin=True)
]
Trusted = Annotated[TrustLabel, Out("Whether this text is approved on this machine and may run")]


Log = Annotated[Omitted[tuple[str, ...]], Out("The lines of its log steps", page=LAST_STEPS)]


WaitsFor = Annotated[
    Omitted[tuple[str, ...]],
    Out("Events, one of which must be sent to it; then resume it if it is interrupted"),
]
Asks = Annotated[Omitted[str], Out("Its question")]


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
    pid: Annotated[Omitted[str], Out("Of an async run: the process that runs it")] = None
    final_state: Annotated[Omitted[str], Out("The state it ended in")] = None
    context: Annotated[Omitted[dict[str, Json]], Out("The context at the end")] = None
    history: Annotated[
        Omitted[tuple[Moved, ...]], Out("All transitions, in order", page=LAST_STEPS)
    ] = None
    duration_ms: Annotated[Omitted[int], Out("Milliseconds it took")] = None
    error: Annotated[Omitted[str], Out("Why it failed or was interrupted")] = None
    waits_for: WaitsFor = None
    question: Asks = None
    answering: Annotated[Omitted[str], Out(wire="notice")] = None
    log: Log = None
    warnings: Annotated[Omitted[tuple[str, ...]], Out("Violations of the context's schema")] = None

    @property
    def exit_status(self) -> int:
        """Returns the exit status of the command line: 1 if it failed or was interrupted."""
        return 0 if self.status in (Status.RUNNING, Status.COMPLETED) else 1


@frozen
class Progress:
    """The progress of a run."""

    execution_id: str
    status: Status
    current_state: str
    context: dict[str, Json]
    started_at: datetime
    elapsed_ms: Annotated[int, Out("Milliseconds it has taken, without interruptions")]
    procedure: Annotated[str, Out("Its procedure, as name@version")]
    history: Annotated[tuple[Moved, ...], Out(page=LAST_STEPS)]
    error: Annotated[str | None, Out("Why it failed or stopped, or why its last action failed")]
    waits_for: WaitsFor = None
    question: Asks = None
    log: Log = None
    notice: Omitted[str] = None


@frozen
class RunRow:
    """A run in a list."""

    execution_id: str
    procedure: Annotated[str, Out("Its procedure, as name@version")]
    status: Status
    current_state: str
    started_at: datetime
    elapsed_ms: Annotated[int, Out("Milliseconds it has taken, without interruptions")]


@frozen
class Runs:
    """The runs of the project's procedures."""

    runs: Annotated[tuple[RunRow, ...], Out("Newest first")]
    total: Annotated[int, Out("Number of runs")]
    damaged: Annotated[tuple[str, ...], Out("Ids of runs whose records can't be read")]


@frozen
class Sent:
    """An event that was sent to a run."""

    execution_id: str
    event: str
    current_state: Annotated[str, Out("Its state when the event was sent")]
    notice: Omitted[str] = None


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
    trust: Trusted
    file: str
    diagram: Annotated[Omitted[str], Out("The states as a Mermaid diagram")] = None


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
    waits=True,
    toolset="procedures",
    errors=(NotFound, Invalid, RateLimited, Untrusted, StorageFailed),
    examples=(
        "mind procedure run release",
        """mind procedure run release --context '{"branch": "main"}'""",
        "mind procedure run nightly --async",
    ),
    description="Execute a registered procedure as a state machine",
    title="Run a procedure",
    runs=True,
)
def run(
    call: Call,
    name: Name,
    version: Version = LATEST,
    *,
    context: Annotated[
        Json, Arg("Initial execution context, an object", agents="", object=True)
    ] = None,
    async_: Async = False,
    timeout: Timeout = None,
) -> Ran:
    """Run a procedure

    Only a text that was approved on this machine runs. On a terminal it asks before a text runs for
    the first time, and asks the procedure's questions; elsewhere it waits for an event that another
    process sends. For an agent, a run that needs an answer is interrupted at once, with its
    question and the events that answer it, unless `--timeout` is given: send one, then resume it.
    """
    initial = context if isinstance(context, dict) else {}
    execution = executing.begin(call, name, version, initial, asynchronous=async_)
    return _ran(call, execution, in_background=async_, timeout=timeout)


@command(
    "procedure_status",
    cli="procedure status",
    effect=Effect.READ,
    has_budget=True,
    toolset="procedures",
    errors=(NotFound, AmbiguousId, Invalid, Untrusted),
    examples=("mind procedure status latest", "mind procedure status k3v7mq --json"),
    description="Check status of async procedure execution",
    title="Check a run",
)
def status(call: Call, execution_id: ExecutionId) -> Progress:
    """Show the progress of a run, from any process"""
    return _progress(executing.report(call, executing.executions(call).find(execution_id)))


@command(
    "procedure_runs",
    cli="procedure runs",
    effect=Effect.READ,
    toolset="extra",
    examples=("mind procedure runs", "mind procedure runs -n 5"),
)
def runs(call: Call, *, limit: Limit = 20, from_date: AlsoFrom = None) -> Runs:
    """List the runs, newest first

    The status without an id lists them, too.
    """
    since = when.window(None, from_date, None, now=call.mind.local_now()).since
    executions = executing.executions(call)
    ids = [id for id in executions.ids()[::-1] if not executions.is_foreign(id)]
    total = len(ids)
    rows: list[RunRow] = []
    damaged: list[str] = []
    for id in ids[:limit]:
        execution = executions.existing(id)
        try:
            report = executing.report(call, execution) if execution else None
        except Untrusted:
            continue
        except StorageFailed:
            damaged.append(id)
            continue
        if report and since and report.started < since:
            total = ids.index(id)
            break
        if report:
            rows.append(
                RunRow(
                    execution_id=id,
                    procedure=report.run.procedure.key,
                    status=report.status,
                    current_state=report.run.state,
                    started_at=report.started,
                    elapsed_ms=report.elapsed_ms,
                )
            )
    return Runs(runs=tuple(rows), total=total, damaged=tuple(damaged))


@command(
    "cancel_procedure",
    cli="procedure cancel",
    effect=Effect.WRITE,
    toolset="procedures",
    errors=(NotFound, AmbiguousId, Invalid, Denied, Untrusted, StorageFailed),
    examples=("mind procedure cancel latest --reason 'wrong branch'",),
    description="Stop a run; it can be resumed",
    title="Stop a run",
)
def cancel(
    call: Call,
    execution_id: ExecutionId,
    *,
    reason: Annotated[str, Arg("Reason, kept with the run", alias="because", listed=False)] = "",
) -> Progress:
    """Stop a run

    It is interrupted as soon as its action allows, and can be resumed. A run that has ended is not
    changed.
    """
    execution = executing.executions(call).find(execution_id)
    report, was_running = executing.cancel(call, execution, reason)
    notice = None if was_running else "the run is not running; nothing was cancelled"
    return replace(_progress(report), notice=notice)


@command(
    "send_event",
    cli="procedure send",
    effect=Effect.WRITE,
    toolset="procedures",
    errors=(NotFound, AmbiguousId, Conflict, Invalid, Denied, Untrusted, StorageFailed),
    examples=("mind procedure send latest approved",),
    title="Send an event",
    runs=True,
)
def send(
    call: Call,
    execution_id: ExecutionId,
    event: Annotated[
        str,
        Arg("The event, as named in one of the state's transitions", agents=""),
    ],
) -> Sent:
    """Send an event to a run that waits for one"""
    execution = executing.executions(call).find(execution_id)
    report = executing.send(call, execution, event)
    is_stopped = report.status is not Status.RUNNING
    notice = Hint("it is interrupted: ", Command("procedure resume", report.id), " continues it")
    return Sent(
        execution_id=report.id,
        event=event,
        current_state=report.run.state,
        notice=notice if is_stopped else None,
    )


@command(
    "resume_procedure",
    cli="procedure resume",
    effect=Effect.WRITE,
    waits=True,
    toolset="procedures",
    errors=(
        NotFound,
        AmbiguousId,
        Conflict,
        Invalid,
        Denied,
        RateLimited,
        Untrusted,
        StorageFailed,
    ),
    examples=("mind procedure resume latest", "mind procedure resume k3v7mq --async"),
    description="Continue an interrupted run; its last action is performed again",
    title="Resume a run",
    runs=True,
)
def resume(
    call: Call, execution_id: ExecutionId, *, async_: Async = False, timeout: Timeout = None
) -> Ran:
    """Continue an interrupted run from its last state

    The action of that state is performed again, since it may not be complete.
    """
    execution = executing.executions(call).find(execution_id)
    return _ran(call, execution, in_background=async_, timeout=timeout)


def _moves(run: Run) -> tuple[Moved, ...]:
    return tuple(Moved(from_=move.pop("from"), **move) for move in map(dict, run.history))


def _ran(call: Call, execution: Execution, *, in_background: bool, timeout: int | None) -> Ran:
    if in_background:
        pid = executing.start(call, execution)
        return Ran(execution_id=execution.id, status=Status.RUNNING, pid=str(pid))
    # A process of its own goes on until it is answered.
    is_program = timeout is None and call.agent and executing.HELD not in call.mind.environ
    wait_ms = PROGRAM_WAITS_MS if is_program else timeout
    report = executing.carry_out(call, execution, wait_ms=wait_ms, waits=not is_program)
    run = report.run
    return Ran(
        execution_id=report.id,
        status=report.status,
        final_state=run.state,
        context=run.context,
        history=_moves(run),
        duration_ms=report.elapsed_ms,
        error=report.error,
        waits_for=run.accepts or None,
        question=run.question if run.accepts else None,
        answering=_answered(report),
        log=tuple(run.log) or None,
        warnings=report.warnings or None,
    )


def _answered(report: Report) -> str | None:
    """Returns the way to answer a run that was interrupted because it needs an event."""
    if not report.run.accepts:
        return None
    event = report.run.accepts[0]
    return Hint(
        executing.sending(report.id, event),
        " answers it, then ",
        Command("procedure resume", report.id),
        " continues it",
    )


def _progress(report: Report) -> Progress:
    run = report.run
    return Progress(
        execution_id=report.id,
        status=report.status,
        current_state=run.state,
        context=run.context,
        started_at=report.started,
        elapsed_ms=report.elapsed_ms,
        procedure=run.procedure.key,
        history=_moves(run),
        error=report.error,
        waits_for=run.accepts or None,
        question=run.question if run.accepts else None,
        log=tuple(run.log) or None,
    )


@command(
    "list_procedures",
    cli="procedure list",
    effect=Effect.READ,
    toolset="procedures",
    examples=("mind procedure list",),
    description="List all registered procedures",
    title="List procedures",
)
def list_(call: Call) -> Procedures:
    """List the procedures of this project"""
    checked = library.read_files(call)
    rows = tuple(
        Row(
            name=procedure.name,
            version=procedure.version,
            description=procedure.description,
            state_count=len(procedure.states),
            timeout_ms=procedure.timeout_ms,
            max_retries=procedure.max_retries,
            trust=_trust(call, file, procedure),
        )
        for file, result in checked
        if (procedure := result.procedure) and procedure.active
    )
    faults = tuple(row for file, result in checked for row in _rows(file, result.faults))
    return Procedures(procedures=rows, count=len(rows), faults=faults)


@command(
    "recall_procedure",
    cli="procedure show",
    effect=Effect.READ,
    has_budget=True,
    toolset="procedures",
    errors=(NotFound, Invalid),
    examples=("mind procedure show release", "mind procedure show release --format mermaid"),
    description="Retrieve the definition of a procedure",
    title="Show a procedure",
)
def show(
    call: Call,
    name: Name,
    version: Version = LATEST,
    *,
    format: Annotated[
        Literal["text", "mermaid"], Arg("Output format", surfaces=Surface.CLI)
    ] = "text",
) -> Definition:
    """Show a procedure and its states"""
    file, procedure = library.find(call, name, version)
    definition = dict(procedure.definition)
    canonical = json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Definition(
        name=procedure.name,
        version=procedure.version,
        description=procedure.description,
        steps=tuple(procedure.states),
        hash=files.digest(canonical.encode("utf-8", "replace")),
        definition=definition,
        context_schema=dict(procedure.context_schema),
        timeout_ms=procedure.timeout_ms,
        max_retries=procedure.max_retries,
        trust=_trust(call, file, procedure),
        file=file.path,
        diagram=mermaid(procedure) if format == "mermaid" else None,
    )


@command(
    "register_procedure",
    cli="procedure add",
    effect=Effect.WRITE,
    toolset="procedures",
    errors=(Invalid, SecretDetected, Conflict, StorageFailed),
    examples=("mind procedure add release.md", "mind procedure add --text - < release.md"),
    description="Add a procedure to this project: Markdown with states in YAML. A refusal has an "
    "example. The user must approve one that runs programs.",
    title="Add a procedure",
)
def add(
    call: Call,
    file: Annotated[
        str | None, Arg("The Markdown file to add", surfaces=Surface.CLI, complete="path")
    ] = None,
    *,
    text: Text = None,
) -> Registered:
    """Add a procedure to this project

    A procedure is Markdown: a header with `name`, `version`, `description`, limits and the schema
    of the context, and one block fenced by ```yaml with `initial_state` and `states`. All faults
    are reported at once. The text counts as approved unless it runs programs: a person must approve
    that, on the terminal at the first run.
    """
    if (file is None) == (text is None):
        raise Invalid(
            "give a file or a text", hint=Hint("such as ", Command("procedure add", "release.md"))
        )
    data = (text or "").encode() if file is None else library.given(disk.expanded(file))
    # Only the argument was checked: the name of a file, not its content.
    check_secrets(call, {"text": data.decode("utf-8", "replace")}, file=file)
    return _added(call, data, file or "text")


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
def new(call: Call, name: Annotated[str, Arg("Letters, digits, `-` and `_`")]) -> Registered:
    """Create a procedure from a commented template"""
    if not NAME.fullmatch(name):
        raise Invalid(
            f"`{name}` is not a name of a procedure", hint="use letters, digits, `-` and `_`"
        )
    text = TEMPLATE.read_text(encoding="utf-8")
    text = text.replace("name: NAME", f"name: {scalar(name)}", 1)  # `123` would be a number.
    return _added(call, text.replace("NAME", name).encode(), name)


def _added(call: Call, data: bytes, source: str) -> Registered:
    file, result = library.added(call, data, source)
    procedure = library.valid(file, result)
    return Registered(
        name=procedure.name,
        version=procedure.version,
        file=file.path,
        state_count=len(procedure.states),
        trust=_trust(call, file, procedure),
        warnings=_rows(file, result.warnings),
    )


@command(
    "check_procedure",
    cli="procedure check",
    finds=True,
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ),
    errors=(NotFound, Invalid),
    examples=("mind procedure check", "mind procedure check release", "mind procedure check x.md"),
)
def check(
    call: Call,
    name: Annotated[
        str | None, Arg("A procedure, or a Markdown file (default: all procedures)")
    ] = None,
) -> Checks:
    """Check procedures, and list every fault with its line"""
    reference = split_reference(name) if name else None
    if name is None:
        checked = library.read_files(call, calls=True)
    elif reference and not Path(name).is_file():
        candidates = library.candidates(call, *reference)
        if not candidates:
            raise library.missing(call, *reference)
        checked = [(candidates[0], library.checked(call, candidates[0], calls=True))]
    else:
        path = disk.expanded(name)
        file = ProcedureFile(path=name, data=library.given(path))
        if call.agent is not None and path.resolve().is_relative_to(call.mind.folder):
            own_path = path.resolve().relative_to(call.mind.project.root).as_posix()
            checked = [(file, library.checked(call, replace(file, path=own_path), calls=True))]
        else:
            checked = [(file, library.check(file, calls=True))]
    faults = tuple(row for file, result in checked for row in _rows(file, result.faults))
    warnings = tuple(row for file, result in checked for row in _rows(file, result.warnings))
    return Checks(valid=not faults, checked=len(checked), faults=faults, warnings=warnings)


def _trust(call: Call, file: ProcedureFile, procedure: Procedure) -> TrustLabel:
    return label_of(library.is_approved(call, file.data, procedure))


def _rows(file: ProcedureFile, faults: tuple[Fault, ...]) -> tuple[FaultRow, ...]:
    return tuple(FaultRow(file=file.path, line=f.line, reason=f.reason) for f in faults)
