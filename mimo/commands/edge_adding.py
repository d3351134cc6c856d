"""`mind edges add` and `starter`, and the tool that adds an edge for every project."""

from datetime import datetime
from typing import Annotated

from mimo.commands.common import File, Private
from mimo.commands.edges import EdgeRow, row
from mimo.commands.spec import Arg, Effect, Needs, Surface, command
from mimo.commands.types import Json, Omitted, Out
from mimo.domain import edges as domain
from mimo.domain.edges import Detection, Severity
from mimo.domain.memory import Record
from mimo.domain.policy import Operation
from mimo.errors import Conflict, EdgeExists, Invalid, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import edges as service

EdgeSeverity = Annotated[Severity, Arg("How bad it is to run into it")]
StackTags = Annotated[tuple[str, ...], Arg("Technologies that it is about", complete="tag")]


@frozen
class EdgePatterns:
    """How an edge is recognised."""

    context: tuple[str, ...]
    intent: tuple[str, ...]
    code: Annotated[tuple[str, ...], Out("Regular expressions, in the syntax of RE2")]


@frozen
class EdgeDetails:
    """An edge, whole."""

    id: str
    title: str
    description: str
    workaround: str
    detection: EdgePatterns
    stack_tags: tuple[str, ...]
    severity: Severity
    created_at: datetime
    verified_count: int
    file: File
    notice: Annotated[Omitted[str], Out(omit=True)] = None


@frozen
class StarterAdded:
    """What came of adding the well-known edges."""

    added: tuple[EdgeRow, ...]
    known: Annotated[int, Out("How many were there already, by their titles")]


@command(
    "mind_add_global_edge",
    effect=Effect.WRITE,
    toolset="edges",
    needs_project=False,
    surfaces=Surface.MCP,
    errors=(EdgeExists, Invalid, Conflict, StorageFailed),
    description="Add a cross-project gotcha.",
)
def add_global_edge(
    mind: Mind,
    title: Annotated[str, Arg("Short title, such as `Vercel Edge crypto limitation`")],
    description: Annotated[str, Arg("What the problem is")],
    workaround: Annotated[str, Arg("How to fix or avoid it")],
    detection: Annotated[
        Json,
        Arg('When it applies: {"context": [], "intent": [], "code": []}; code is RE2', object=True),
    ],
    *,
    stack_tags: StackTags = (),
    severity: EdgeSeverity = Severity.WARNING,
) -> EdgeDetails:
    """Add an edge that holds in every project

    Gotchas of one project belong under Gotchas in its `.mind/MEMORY.md`.
    """
    found = Detection.read(detection)
    record = service.add(
        mind,
        title,
        description=description,
        workaround=workaround,
        detection=found,
        stack_tags=stack_tags,
        severity=severity,
    )
    return _details(record, found, str(mind.home / record.place.path))


@command(
    "mind_edges_add",
    cli="edges add",
    effect=Effect.WRITE,
    toolset="edges",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(EdgeExists, Invalid, Conflict, StorageFailed),
    examples=(
        "mind edges add 'Safari drops cookies' 'After 7 days' 'Set them anew' --intent cookies",
        "mind edges add --project 'Staging allows 100 calls a minute' 'It answers 429' 'Wait'",
    ),
)
def add(
    mind: Mind,
    title: Annotated[str, Arg("What goes wrong, in a few words")],
    description: Annotated[str, Arg("What the problem is")],
    workaround: Annotated[str, Arg("How to fix or avoid it")],
    *,
    context: Annotated[tuple[str, ...], Arg("Words for what a project is made with")] = (),
    intent: Annotated[tuple[str, ...], Arg("Words for what somebody is about to do")] = (),
    code: Annotated[tuple[str, ...], Arg("Regular expressions (RE2) for code")] = (),
    stack_tags: StackTags = (),
    severity: EdgeSeverity = Severity.WARNING,
    project: Annotated[bool, Arg("Only for this project, in its `.mind/edges/`")] = False,
    private: Private = False,
) -> EdgeDetails:
    """Add an edge, for every project of yours or for this one

    A short one for this project can as well be a line under Gotchas in `.mind/MEMORY.md`.
    """
    found = Detection.read({"context": context, "intent": intent, "code": code})
    if private and not project:
        raise Invalid(
            "an edge for every project is in no git", hint="--private goes with --project"
        )
    told = {"description": description, "workaround": workaround}
    if project:
        record = service.add_here(
            mind,
            title,
            **told,
            detection=found,
            stack_tags=stack_tags,
            severity=severity,
            private=private,
        )
        return _details(record, found, record.place.path)
    record = service.add(
        mind, title, **told, detection=found, stack_tags=stack_tags, severity=severity
    )
    return _details(record, found, str(mind.home / record.place.path))


@command(
    "mind_edges_starter",
    cli="edges starter",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="edges",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(StorageFailed,),
    examples=("mind edges starter",),
)
def starter(mind: Mind) -> StarterAdded:
    """Add a set of well-known edges, each with its source, to your own

    They are copied to `$MIND_HOME/edges/`, where you can change or remove them.
    """
    added, known = service.add_starter(mind)
    rows = tuple(row(mind, service.everybodys(record)) for record in added)
    return StarterAdded(added=rows, known=len(known))


def _details(record: Record, given: Detection, file: str) -> EdgeDetails:
    edge = domain.edge_of(record.memory)
    found = edge.detection
    faults = "; ".join(f"`{pattern}`: {reason}" for pattern, reason in service.unusable(given))
    return EdgeDetails(
        id=edge.id,
        title=edge.title,
        description=edge.description,
        workaround=edge.workaround,
        detection=EdgePatterns(context=found.context, intent=found.intent, code=found.code),
        stack_tags=edge.stack_tags,
        severity=edge.severity,
        created_at=record.memory.created,
        verified_count=edge.verified_count,
        file=file,
        notice=f"kept, but it never matches: {faults}" if faults else None,
    )
