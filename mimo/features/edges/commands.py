"""`mind edges check`: which edges, and decisions that failed, a change runs into."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from mimo.commands.common import File, Private, Trust, TrustLabel
from mimo.commands.spec import Arg, Effect, Json, Needs, Omitted, Out, Surface, command
from mimo.errors import Conflict, EdgeExists, Invalid, StorageFailed
from mimo.features.edges import checking
from mimo.features.edges import edge as domain
from mimo.features.edges import sources as service
from mimo.features.edges.checking import Reported
from mimo.features.edges.edge import Detection, Match, Severity
from mimo.features.edges.sources import Hit, Known
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.memory.model import Kind, Record
from mimo.mind import Mind

# `mind edges`: what goes wrong for everybody who does not know it.


Line = Annotated[int, Out("The line in it, from 1")]


class Source(StrEnum):
    """Whose an edge is, or that the stack speaks for it."""

    GLOBAL = "global"
    PROJECT = "project"
    STACK = "stack"


@frozen
class EdgeWarning:
    """An edge that applies to what somebody is about to do."""

    id: str
    title: str
    description: Annotated[str, Out("What goes wrong")]
    workaround: Annotated[str, Out("What to do about it")]
    severity: Severity
    source: Annotated[Source, Out("Everybody's, the project's, or everybody's on this stack")]
    matched_on: Annotated[str, Out("What it was recognised by")]
    confidence: Annotated[float, Out("How sure it is that it applies, 0 to 1")]
    trust: Trust
    file: File
    line: Line


@frozen
class EdgeWarnings:
    """The edges that apply, the surest first."""

    edges: tuple[EdgeWarning, ...]
    notice: Annotated[Omitted[str], Out(omit=True)] = None


@frozen
class EdgeRow:
    """An edge in a list."""

    id: str
    title: str
    severity: Severity
    source: Source
    stack_tags: tuple[str, ...]
    trust: Trust
    file: File
    line: Line


@frozen
class EdgeProblem:
    """A file, or a pattern of an edge, that can't be used."""

    file: File
    line: int | None
    reason: str


@frozen
class EdgeRows:
    """All edges that hold here."""

    edges: tuple[EdgeRow, ...]
    problems: tuple[EdgeProblem, ...]


@command(
    "mind_edges",
    cli="edges",
    effect=Effect.READ,
    toolset="edges",
    needs_project=False,
    errors=(Invalid,),
    examples=(
        "mind edges implementing token generation with crypto",
        "mind edges 'auth middleware' --code src/middleware.ts",
        "git diff | mind edges 'database queries' --stack supabase --code -",
    ),
    description="Check for gotchas before implementing risky code.",
)
def edges(
    mind: Mind,
    intent: Annotated[str, Arg("What you're about to do", words=True)],
    *,
    code: Annotated[str | None, Arg("Optional code to analyze", file=True)] = None,
    stack: Annotated[
        tuple[str, ...] | None,
        Arg("The stack, instead of what the project's files tell", alias="context"),
    ] = None,
) -> EdgeWarnings:
    """Tell what goes wrong with what you are about to do

    Everybody's edges, those of the project (the Gotchas of its MEMORY.md, and `.mind/edges/`) and
    those of its stack are compared with the intent, the stack and the code.
    """
    known = service.everything(mind)
    met = service.warnings(mind, known, intent, code=code or "", techs=stack)
    return EdgeWarnings(
        edges=tuple(_warning(mind, one, match) for one, match in met),
        notice=_notice(mind, known if code else []),
    )


@command(
    "mind_edges_list",
    cli="edges list",
    effect=Effect.READ,
    toolset="extra",
    needs_project=False,
    examples=("mind edges list",),
)
def list_(mind: Mind) -> EdgeRows:
    """List all edges that hold here, and what is wrong with them"""
    known = service.everything(mind)
    found = service.problems(mind, known)
    return EdgeRows(
        edges=tuple(row(mind, one) for one in known),
        problems=tuple(EdgeProblem(file=p.path, line=p.line, reason=p.reason) for p in found),
    )


def row(mind: Mind, known: Known) -> EdgeRow:
    """Returns an edge as a row of a list."""
    return EdgeRow(
        id=known.edge.id,
        title=known.edge.title,
        severity=known.edge.severity,
        source=Source.PROJECT if known.of_project else Source.GLOBAL,
        stack_tags=known.edge.stack_tags,
        trust=label(known),
        file=known.file(mind),
        line=known.record.place.line,
    )


def label(known: Known) -> TrustLabel:
    """Returns whether somebody here approved the text of an edge."""
    return TrustLabel.TRUSTED if known.trusted else TrustLabel.UNTRUSTED


def _warning(mind: Mind, known: Known, match: Match) -> EdgeWarning:
    edge = known.edge
    everybodys = Source.STACK if match.of_stack else Source.GLOBAL
    return EdgeWarning(
        id=edge.id,
        title=edge.title,
        description=edge.description,
        workaround=edge.workaround,
        severity=edge.severity,
        source=Source.PROJECT if known.of_project else everybodys,
        matched_on=match.matched_on,
        confidence=match.confidence,
        trust=label(known),
        file=known.file(mind),
        line=known.record.place.line,
    )


def _notice(mind: Mind, compared: list[Known]) -> str | None:
    """Returns that a file, or a pattern that was compared with code, can't be used."""
    faulty = sum(1 for _ in service.problems(mind, compared))
    told = "some edges can't be used whole; `mind edges list` shows them" if faulty else None
    return "; ".join(filter(None, (mind.notice, told))) or None


# `mind edges add` and `starter`, and the tool that adds an edge for every project.


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


class Format(StrEnum):
    """For whom a report is written."""

    TEXT = "text"
    GITHUB = "github"
    SARIF = "sarif"


@frozen
class EdgeFinding:
    """A line of a change that runs into an edge, or into a decision that failed."""

    file: Annotated[str, Out("Relative to the top of the repository")]
    line: Annotated[int, Out("From 1")]
    text: Annotated[str, Out("The line itself")]
    id: Annotated[str, Out("Of the edge, or of the decision that failed")]
    type: Kind
    title: str
    workaround: str
    severity: Severity
    source: Source
    matched_on: str
    trust: Trust
    known_from: File


@frozen
class EdgesChecked:
    """What a change runs into."""

    findings: tuple[EdgeFinding, ...]
    files: Annotated[int, Out("How many files were looked at")]
    document: Annotated[Omitted[str], Out("The report in the `format`", omit=True)] = None

    @property
    def exit_status(self) -> int:
        """Returns what the command line exits with: 1 where something was found."""
        return 1 if self.findings else 0


@command(
    "mind_edges_check",
    cli="edges check",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, StorageFailed),
    examples=(
        "mind edges check --staged",
        "mind edges check --diff origin/main...HEAD --format sarif > edges.sarif",
        "mind edges check src/auth",
        "git diff HEAD~3 | mind edges check --code -",
    ),
)
def check(
    mind: Mind,
    files: Annotated[
        tuple[str, ...], Arg("Files and folders of the project, checked whole", complete="path")
    ] = (),
    *,
    staged: Annotated[bool, Arg("What the next commit would add")] = False,
    diff: Annotated[
        str | None, Arg("What was added since a revision, or between two (`main...HEAD`)")
    ] = None,
    code: Annotated[str | None, Arg("A unified diff, or a piece of code", file=True)] = None,
    at_least: Annotated[Severity, Arg("The mildest severity that counts")] = Severity.INFO,
    format: Annotated[
        Format, Arg("For people, for GitHub's annotations, or as SARIF", surfaces=Surface.CLI)
    ] = Format.TEXT,
) -> EdgesChecked:
    """Tell which edges, and decisions that failed, a change runs into

    Without arguments the change is what was added to tracked files since the last commit. The exit
    status is 0 where nothing was found, 1 where something was, and higher for errors.
    """
    added = list(service.added_by(mind, files, staged=staged, rev=diff, code=code))
    hits = [
        hit
        for hit in service.run_into(mind, added)
        if hit.warned.edge.severity.rank <= at_least.rank
    ]
    return EdgesChecked(
        findings=tuple(_finding(mind, hit) for hit in hits),
        files=len(added),
        document=_document(format, hits),
    )


def _finding(mind: Mind, hit: Hit) -> EdgeFinding:
    warned, known = hit.warned, hit.known
    return EdgeFinding(
        file=warned.path,
        line=warned.line,
        text=warned.text,
        id=warned.edge.id,
        type=known.record.memory.type,
        title=warned.edge.title,
        workaround=warned.edge.workaround,
        severity=warned.edge.severity,
        source=Source.PROJECT if known.of_project else Source.GLOBAL,
        matched_on=warned.matched_on,
        trust=label(known),
        known_from=f"{known.file(mind)}:{known.record.place.line}",
    )


def _document(format: Format, hits: list[Hit]) -> str | None:
    if format is Format.TEXT:
        return None
    places = [_reported(hit) for hit in hits]
    if format is Format.GITHUB:
        return checking.annotations(places)
    from mimo import __version__

    return checking.sarif(places, version=__version__)


def _reported(hit: Hit) -> Reported:
    edge, warned = hit.warned.edge, hit.warned
    return Reported(
        rule=edge.id,
        title=edge.title,
        description=edge.description,
        workaround=edge.workaround,
        severity=edge.severity,
        file=warned.path,
        line=warned.line,
        text=warned.text,
        trusted=hit.known.trusted,
    )
