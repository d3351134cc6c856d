"""The procedures of a project: adding, making, checking, listing and showing them."""

from pathlib import Path
from typing import Annotated, Literal

from mimo.commands.calling import CommandSet
from mimo.commands.common import TrustLabel
from mimo.commands.procedures import Name, Version
from mimo.commands.spec import Arg, Effect, Needs, Surface, command
from mimo.commands.types import Json, Omitted, Out
from mimo.domain.policy import Operation
from mimo.domain.procedures import diagram
from mimo.domain.procedures.procedure import LATEST, NAME, Procedure, split_reference
from mimo.errors import Conflict, Invalid, NotFound, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.procedures import library, starter
from mimo.services.procedures.library import Checked as Found
from mimo.store import procedures as store
from mimo.store.procedures import ProcedureFile

Text = Annotated[str | None, Arg("The whole Markdown of the procedure", stdin=True)]


@frozen
class Row:
    """One version of a procedure."""

    name: str
    version: str
    description: str
    state_count: int
    timeout_ms: Annotated[int, Out("Most milliseconds that a run may take")]
    max_retries: Annotated[int, Out("How often a failed action is tried again")]
    trust: Annotated[TrustLabel, Out("Whether somebody here approved this text: only then it runs")]


@frozen
class FaultRow:
    """Something wrong in a procedure's file."""

    file: str
    line: Omitted[int] = None
    reason: str


@frozen
class Procedures:
    """The procedures of the project."""

    procedures: Annotated[tuple[Row, ...], Out("By name, the newest version first")]
    count: int
    faults: Annotated[tuple[FaultRow, ...], Out("Files that are no valid procedures")]


@frozen
class Definition:
    """A procedure, whole."""

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
    trust: Annotated[TrustLabel, Out("Whether somebody here approved this text: only then it runs")]
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
    """What checking procedures came to."""

    valid: bool
    checked: Annotated[int, Out("How many files were looked at")]
    faults: tuple[FaultRow, ...]
    warnings: tuple[FaultRow, ...]

    @property
    def exit_status(self) -> int:
        """Returns what the command line exits with: 1 where there are faults."""
        return 0 if self.valid else 1


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
            trust=_trust(mind, found),
        )
        for found in every
        if (procedure := found.procedure) and procedure.active
    )
    faults = tuple(row for found in every for row in _faults(found))
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
        Literal["text", "mermaid"], Arg("How to print it", surfaces=Surface.CLI)
    ] = "text",
) -> Definition:
    """Show a procedure, as a diagram and in full"""
    found, procedure = library.one(mind, name, version)
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
        trust=_trust(mind, found),
        file=found.path,
        diagram=diagram.mermaid(procedure) if format == "mermaid" else None,
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
    are reported at once. Its text counts as approved unless it runs programs or sends requests: a
    person approves that, on the terminal at the first run.
    """
    if (file is None) == (text is None):
        raise Invalid("name a file or give a text", hint="such as `mind procedure add release.md`")
    data = (text or "").encode() if file is None else store.given(Path(file).expanduser())
    return _registered(*library.added(mind, data, CommandSet()))


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
    """Write a commented procedure to start from, which runs as it stands"""
    if not NAME.fullmatch(name):
        raise Invalid(
            f"`{name}` is no name of a procedure", hint="use letters, digits, `-` and `_`"
        )
    data = starter.text(name).encode()
    return _registered(*library.added(mind, data, CommandSet()))


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
        str | None, Arg("A procedure, or a Markdown file; all procedures unless given")
    ] = None,
) -> Checks:
    """Check procedures: every fault at once, with its line"""
    checked = _wanted(mind, name)
    faults = tuple(row for found in checked for row in _faults(found))
    warnings = tuple(row for found in checked for row in _warnings(found))
    return Checks(valid=not faults, checked=len(checked), faults=faults, warnings=warnings)


def _wanted(mind: Mind, name: str | None) -> list[Found]:
    commands = CommandSet()
    if name is None:
        return library.every(mind, commands)
    reference = split_reference(name)
    if reference and not Path(name).is_file():
        return library.named(mind, *reference, commands)
    file = ProcedureFile(path=name, data=store.given(Path(name).expanduser()))
    return [library.checked(file, commands)]


def _registered(found: Found, procedure: Procedure, approved: bool) -> Registered:
    return Registered(
        name=procedure.name,
        version=procedure.version,
        file=found.path,
        state_count=len(procedure.states),
        trust=TrustLabel.TRUSTED if approved else TrustLabel.UNTRUSTED,
        warnings=_warnings(found),
    )


def _trust(mind: Mind, found: Found) -> TrustLabel:
    approved = found.procedure and library.is_approved(mind, found.data, found.procedure)
    return TrustLabel.TRUSTED if approved else TrustLabel.UNTRUSTED


def _faults(found: Found) -> tuple[FaultRow, ...]:
    return tuple(FaultRow(file=found.path, line=f.line, reason=f.reason) for f in found.faults)


def _warnings(found: Found) -> tuple[FaultRow, ...]:
    return tuple(FaultRow(file=found.path, line=f.line, reason=f.reason) for f in found.warnings)
