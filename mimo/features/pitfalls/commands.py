"""`mind pitfalls`: checking plans and changes against known pitfalls, and adding new ones."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, TypeVar

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Json, Needs, Omitted, Out, command
from mimo.errors import Command, Conflict, EdgeExists, Hint, Invalid, StorageFailed, join_texts
from mimo.features.pitfalls import checking, sources, storage
from mimo.features.pitfalls.edge import DETECTED, Detection, Edge, Severity, tech, techs
from mimo.features.pitfalls.matching import applies
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.memory.model import Kind
from mimo.operations import across
from mimo.operations.rows import File, Private, Trust, label_of, row_of, view
from mimo.project.projects import check_reach
from mimo.rendering import (
    Part,
    Screen,
    accent,
    bad,
    dim,
    fitted,
    good,
    ident,
    path,
    strong,
    titled,
    warn,
)
from mimo.rendering.results import count, labels, render
from mimo.text.clean import escaped

T = TypeVar("T")
Line = Annotated[int, Out("The line in it, from 1")]


class Source(StrEnum):
    """The owner of an edge, or the stack if it is a reason."""

    GLOBAL = "global"
    PROJECT = "project"
    STACK = "stack"


@frozen
class EdgeFacts:
    """The facts of an edge, or of a failed decision, as answers name and describe them."""

    id: str
    type: Kind
    title: str
    description: Annotated[str, Out("The problem")]
    workaround: Annotated[str, Out("The workaround")]
    severity: Severity
    source: Annotated[Source, Out("Of the user, of the project, or of the user for this stack")]
    stack_tags: tuple[str, ...]
    matched_on: Annotated[str, Out("The words and patterns that matched")]
    verified_count: int
    trust: Trust
    file: File
    line: Line


@view("id title description workaround severity source matched_on confidence trust file line")
class EdgeWarning(EdgeFacts):
    """An edge, or a failed decision, that applies to a task."""

    confidence: Annotated[float, Out("Confidence that it applies, 0 to 1")]


@frozen
class EdgeWarnings:
    """The edges that apply, by confidence."""

    edges: tuple[EdgeWarning, ...]
    notice: Omitted[str] = None


@view("id title severity source stack_tags applies trust file line")
class EdgeRow(EdgeFacts):
    """An edge in a list."""

    applies: Annotated[bool, Out("False if its stack tags are of other projects")] = True


@frozen
class EdgeProblem:
    """A file, or a pattern of an edge, that can't be used."""

    file: File
    line: int | None
    reason: str


@frozen
class EdgeRows:
    """All edges."""

    edges: tuple[EdgeRow, ...]
    problems: tuple[EdgeProblem, ...]


@command(
    "mind_edges",
    cli="pitfalls",
    effect=Effect.READ,
    toolset="edges",
    needs_project=False,
    errors=(Invalid,),
    examples=(
        "mind pitfalls implementing token generation with crypto",
        "mind pitfalls 'auth middleware' --code src/middleware.ts",
        "git diff | mind pitfalls 'database queries' --stack supabase --code -",
    ),
    description="Check for gotchas before implementing risky code. Also reports failed decisions "
    "that it repeats.",
    title="Check for pitfalls",
    is_long=True,
)
def edges(
    call: Call,
    intent: Annotated[
        str,
        Arg(
            "What you're about to do, in a sentence with the names involved",
            agents="What you're about to do",
            words=True,
        ),
    ],
    *,
    code: Annotated[str | None, Arg("Optional code to analyze", agents="", file=True)] = None,
    stack: Annotated[
        tuple[str, ...] | None,
        Arg(
            "The stack (default: detected from the project)",
            agents="",
            alias="context",
            complete="tag",
        ),
    ] = None,
    all_: Annotated[
        bool, Arg("Add pitfalls of which only the stack matches", listed=False, wire="all")
    ] = False,
) -> EdgeWarnings:
    """Check a plan against known pitfalls

    Your pitfalls for all projects and those of this one (the Gotchas of its MEMORY.md, and
    `.mind/edges/`) are compared with the intent and the code if their stack is the project's.
    """
    pitfalls = sources.all_edges(call)
    matches = sources.warnings(
        call, pitfalls, intent, code=code or "", techs=stack, stack_alone=all_
    )
    faulty = any(sources.problems(call, pitfalls if code else ()))
    notice = (
        Hint("some pitfalls are faulty; ", Command("pitfalls list"), " shows them")
        if faulty
        else None
    )
    return EdgeWarnings(
        edges=tuple(
            edge_row(
                match.edge,
                EdgeWarning,
                of_stack=match.of_stack,
                matched_on=match.matched_on,
                confidence=match.confidence,
            )
            for match in matches
        ),
        notice=join_texts(call.notice, notice),
    )


@command(
    "mind_edges_list",
    cli="pitfalls list",
    effect=Effect.READ,
    toolset="extra",
    needs_project=False,
    examples=("mind pitfalls list",),
    is_long=True,
)
def list_(call: Call) -> EdgeRows:
    """List known pitfalls, and faults in their files and patterns"""
    pitfalls = sources.all_edges(call)
    stack = techs(sources.stack_of(call))
    edges = tuple(edge_row(edge, EdgeRow, applies=applies(edge, stack)) for edge in pitfalls)
    return EdgeRows(edges=edges, problems=edge_problems(call, pitfalls))


def edge_row(edge: Edge, view: type[T], *, of_stack: bool = False, **added: object) -> T:
    """Returns an edge as a row of a view, with the `added` fields."""
    of_user = Source.STACK if of_stack else Source.GLOBAL
    facts = {
        "source": Source.PROJECT if edge.of_project else of_user,
        "trust": label_of(edge.trusted),
        "type": Kind(edge.type),
    }
    named = {name: facts[name] for name in facts.keys() & view.__annotations__}
    return row_of(edge, view, **(named | added))


def edge_problems(call: Call, edges: Sequence[Edge]) -> tuple[EdgeProblem, ...]:
    """Returns the files, and the patterns of edges, that can't be used."""
    problems = sources.problems(call, edges)
    return tuple(row_of(problem, EdgeProblem, file=problem.path) for problem in problems)


# Adding edges.


EdgeSeverity = Annotated[Severity, Arg("Severity of the problem", agents="")]
StackTags = Annotated[
    tuple[str, ...], Arg("Technologies that it concerns", agents="", complete="tag")
]


@frozen
class EdgePatterns:
    """The words and patterns by which an edge is recognised."""

    context: tuple[str, ...]
    intent: tuple[str, ...]
    code: Annotated[tuple[str, ...], Out("Regular expressions, in the syntax of RE2")]
    tasks: Annotated[Omitted[tuple[str, ...]], Out("Phrases for the tasks in which it occurs")] = (
        None
    )


@view(
    "id title description workaround detection stack_tags severity created_at verified_count file"
)
class EdgeDetails(EdgeFacts):
    """All fields of an edge."""

    detection: EdgePatterns
    created_at: datetime
    notice: Omitted[str] = None


@frozen
class StarterAdded:
    """The result of adding the well-known edges."""

    added: tuple[EdgeRow, ...]
    known: Annotated[int, Out("Number that existed already, by title, id or file")]


@command(
    "mind_add_global_edge",
    effect=Effect.WRITE,
    any_format=True,
    toolset="edges",
    needs_project=False,
    surfaces=Surface.MCP,
    errors=(EdgeExists, Invalid, Conflict, StorageFailed),
    description="Add a cross-project gotcha. One of this project belongs in .mind/MEMORY.md.",
    title="Add a pitfall",
)
def add_global_edge(
    call: Call,
    title: Annotated[str, Arg("Short title, such as `Vercel Edge crypto limitation`", agents="")],
    description: Annotated[str, Arg("What the problem is", agents="")],
    workaround: Annotated[str, Arg("How to fix or avoid it", agents="")],
    detection: Annotated[
        Json,
        Arg(
            'When it applies: {"tasks": ["keep users logged in"], "intent": ["jwt"], "code": []}; '
            "tasks: one to three phrases for what a developer is about to do when it bites; "
            "intent: rare words of such a task; code: RE2 patterns",
            agents='{"tasks": ["keep users logged in"], "intent": ["jwt"], "code": []}: tasks '
            "in which it bites, rare words, RE2",
            object=True,
        ),
    ],
    *,
    stack_tags: StackTags = (),
    severity: EdgeSeverity = Severity.WARNING,
) -> EdgeDetails:
    """Add a pitfall for every project

    Gotchas of one project belong under Gotchas in its `.mind/MEMORY.md`.
    """
    edge = Edge(
        id="",
        title=title,
        description=description,
        workaround=workaround,
        detection=Detection.read(detection),
        stack_tags=stack_tags,
        severity=severity,
    )
    return _added(call, edge)


@command(
    "mind_edges_add",
    cli="pitfalls add",
    effect=Effect.WRITE,
    any_format=lambda arguments: not arguments["project"],
    toolset="edges",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(EdgeExists, Invalid, Conflict, StorageFailed),
    examples=(
        (
            "mind pitfalls add --title 'Safari drops cookies' --description 'After 7 days'"
            " --workaround 'Renew them' --task 'stay logged in'"
        ),
        (
            "mind pitfalls add --project --title 'Staging allows 100 calls a minute'"
            " --description 'It answers 429' --workaround 'Wait' --task 'call the API in a loop'"
        ),
    ),
)
def add(
    call: Call,
    title: Annotated[str, Arg("The problem in a few words", option=True)],
    description: Annotated[
        str, Arg("The problem in a sentence or two", alias="because", option=True)
    ],
    workaround: Annotated[str, Arg("A way to fix or avoid it", option=True)],
    *,
    task: Annotated[
        tuple[str, ...], Arg("Task in which it occurs, in a few words (one to three times)")
    ] = (),
    context: Annotated[tuple[str, ...], Arg("Words for the technologies of a project")] = (),
    intent: Annotated[tuple[str, ...], Arg("Rare words of such a task")] = (),
    code: Annotated[tuple[str, ...], Arg("Regular expressions (RE2) for code")] = (),
    stack_tags: StackTags = (),
    severity: EdgeSeverity = Severity.WARNING,
    project: Annotated[bool, Arg("Only for this project, in its `.mind/edges/`")] = False,
    private: Private = False,
) -> EdgeDetails:
    """Add a pitfall, for all of your projects or for this one

    A short one for this project can also be a line under Gotchas in `.mind/MEMORY.md`.
    """
    if private and not project:
        raise Invalid(
            "`private` needs `project`", hint="pitfalls for all projects are never in a repository"
        )
    if project:
        check_reach(call.mind.project)
    edge = Edge(
        id="",
        title=title,
        description=description,
        workaround=workaround,
        detection=Detection.read(
            {"context": context, "intent": intent, "code": code, "tasks": task}
        ),
        stack_tags=stack_tags,
        severity=severity,
        of_project=project,
    )
    return _added(call, edge, private=private)


@command(
    "mind_edges_starter",
    cli="pitfalls starter",
    effect=Effect.WRITE,
    any_format=True,
    toolset="edges",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE),
    errors=(StorageFailed,),
    examples=("mind pitfalls starter",),
)
def starter(call: Call) -> StarterAdded:
    """Add a set of well-known pitfalls, each with its source

    They are copied to `$MIND_HOME/edges/`, where you can change or remove them.
    """
    added, existing = sources.add_starter(call)
    return StarterAdded(added=tuple(edge_row(edge, EdgeRow) for edge in added), known=existing)


def _added(call: Call, new: Edge, *, private: bool = False) -> EdgeDetails:
    """Writes an edge, and returns it as it will be read."""
    record = sources.add(call, new, private=private)
    edge = storage.edge_in(record)
    faults = "; ".join(f"`{bad}`: {reason}" for bad, reason in sources.unusable(new.detection))
    notices = [f"saved, but it never matches: {faults}"] if faults else []
    if new.stack_tags and not new.of_project:
        notices += _effects(edge, techs(sources.stack_of(call)))
    return edge_row(
        edge,
        EdgeDetails,
        detection=row_of(edge.detection, EdgePatterns, tasks=edge.detection.tasks or None),
        created_at=record.memory.created,
        file=edge.file if new.of_project else str(call.mind.home / edge.file),
        notice="; ".join(notices) or None,
    )


def _effects(edge: Edge, stack: frozenset[str]) -> Iterator[str]:
    """Yields what the stack tags of an edge do, if the user may expect something else."""
    detected = DETECTED | stack
    if free := [f"`{tag}`" for tag in edge.stack_tags if tech(tag) not in detected]:
        yield f"{' and '.join(free)} can't be detected in projects and restricts nothing"
    if not applies(edge, stack):
        yield "by its stack tags it is not reported in this project"


# Checking changes.


class Format(StrEnum):
    """The format of a report."""

    TEXT = "text"
    GITHUB = "github"
    SARIF = "sarif"


@view("file line text id type title workaround severity source matched_on trust known_from")
class EdgeFinding(EdgeFacts):
    """A line of a change to which an edge, or a failed decision, applies."""

    file: Annotated[str, Out("Relative to the top of the repository")]
    line: Annotated[int, Out("From 1")]
    text: Annotated[str, Out("The line itself")]
    id: Annotated[str, Out("Of the pitfall, or of the failed decision")]
    known_from: File


@frozen
class EdgesChecked:
    """The result of checking a change."""

    findings: tuple[EdgeFinding, ...]
    files: Annotated[int, Out("Number of files that were checked")]
    document: Annotated[Omitted[str], Out("The report in the `format`")] = None

    @property
    def exit_status(self) -> int:
        """Returns the exit status: 1 if there are findings."""
        return 1 if self.findings else 0


@command(
    "mind_edges_check",
    cli="pitfalls check",
    finds=True,
    effect=Effect.READ,
    toolset="extra",
    needs_project=False,
    errors=(Invalid, StorageFailed),
    examples=(
        "mind pitfalls check --staged",
        "mind pitfalls check --diff origin/main...HEAD --format sarif > pitfalls.sarif",
        "mind pitfalls check src/auth",
        "git diff HEAD~3 | mind pitfalls check --code -",
    ),
)
def check(
    call: Call,
    files: Annotated[
        tuple[str, ...], Arg("Files and folders to check completely", complete="path")
    ] = (),
    *,
    staged: Annotated[bool, Arg("Check the additions of the next commit")] = False,
    diff: Annotated[
        str | None,
        Arg(
            "Check additions since a revision, or between two (`main...HEAD`)",
            complete="revisions",
        ),
    ] = None,
    code: Annotated[str | None, Arg("A unified diff, or a piece of code", file=True)] = None,
    at_least: Annotated[Severity, Arg("Minimum severity")] = Severity.INFO,
    format: Annotated[
        Format, Arg("Text, GitHub annotations or SARIF", surfaces=Surface.CLI)
    ] = Format.TEXT,
) -> EdgesChecked:
    """Check a change against known pitfalls and failed decisions

    Without arguments the additions to tracked files since the last commit are checked. Projects in
    folders below add their pitfalls for their own files. The exit status is 0 without findings, 1
    with findings, and higher for errors.
    """
    by_git = not files and code is None
    root = across.root_in_git(call) if by_git else call.mind.project.root
    added = list(sources.added_by(call, root, files, staged=staged, rev=diff, code=code))
    hits_below, skipped = sources.run_into_below(call, root, added)
    hits = [*sources.run_into(call, added), *hits_below]
    hits = [hit for hit in hits if hit.edge.severity.rank <= at_least.rank]
    call.note("projects", join_texts(*skipped))
    document = None
    if format is Format.GITHUB:
        document = checking.annotations(hits)
    elif format is Format.SARIF:
        from mimo import __version__

        document = checking.sarif(hits, version=__version__)
    findings = tuple(
        edge_row(
            hit.edge,
            EdgeFinding,
            file=hit.path,
            line=hit.line,
            text=hit.text,
            matched_on=hit.matched_on,
            known_from=f"{hit.edge.file}:{hit.edge.line}",
        )
        for hit in hits
    )
    return EdgesChecked(findings=findings, files=len(added), document=document)


# The output.


_WIDEST = max(map(len, Severity))


def _marked(severity: Severity) -> Part:
    styles = {Severity.CRITICAL: bad, Severity.WARNING: warn, Severity.INFO: dim}
    return styles[severity](severity.value)


@render.register
def _(result: EdgeWarnings, screen: Screen) -> None:
    if not result.edges:
        screen.line("no known pitfall applies")
    for place, edge in enumerate(result.edges):
        if place:
            screen.blank()
        marks = labels(trust=edge.trust)
        severity = _marked(edge.severity)
        screen.line(ident(edge.id), "  ", severity, "  ", strong(edge.title), *marks)
        if edge.description.strip() != edge.title:
            screen.text(edge.description, indent=4)
        if edge.workaround:
            screen.text(f"→ {edge.workaround}", indent=4)
        if screen.setting.details:
            about = f"{edge.source}, {edge.confidence:.2f}: {edge.matched_on}"
            screen.line(dim(about), indent=4)
            screen.line(path(f"{edge.file}:{edge.line}"), indent=4)


@render.register
def _(result: EdgeRows, screen: Screen) -> None:
    if not result.edges:
        screen.line(
            "no pitfalls yet; ", accent("`mind pitfalls starter`"), " adds a set of well-known ones"
        )
    for edge in result.edges:
        _show_row(edge, screen)
    for problem in result.problems:
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        screen.line(warn(f"can't be used: {place}"), dim(f"  {problem.reason}"))


def _show_row(edge: EdgeRow, screen: Screen) -> None:
    gap = " " * (_WIDEST - len(edge.severity) + 2)
    title = titled(edge.title)
    source = "all projects" if edge.source is Source.GLOBAL else edge.source.value
    about = fitted(dim(f"  {', '.join((source, *edge.stack_tags))}"))
    marks = (*labels(trust=edge.trust), *(() if edge.applies else (dim("  not here"),)))
    screen.line(ident(edge.id), "  ", _marked(edge.severity), gap, title, *marks, about)
    if screen.setting.details:
        screen.line(path(f"{edge.file}:{edge.line}"), indent=8)


@render.register
def _(result: EdgeDetails, screen: Screen) -> None:
    where = dim("  this project" if result.file.startswith(".mind/") else "  all projects")
    severity = _marked(result.severity)
    screen.line(good("✓ "), ident(result.id), "  ", titled(result.title), "  ", severity, where)


@render.register
def _(result: StarterAdded, screen: Screen) -> None:
    for edge in result.added:
        _show_row(edge, screen)
    existing = f"; {result.known:,} existed already" if result.known else ""
    screen.line(good("✓ "), f"{count(len(result.added), 'pitfall')} added{existing}")


@render.register
def _(result: EdgesChecked, screen: Screen) -> None:
    if result.document is not None:
        is_json = result.document.startswith("{")
        document = escaped(result.document) if is_json else result.document
        screen.verbatim(document, commands=not is_json)
        return
    for finding in result.findings:
        title = finding.title if finding.type == "edge" else f"{finding.title} (a failed decision)"
        severity, marks = _marked(finding.severity), labels(trust=finding.trust)
        place = accent(f"{finding.file}:{finding.line}")
        screen.line(place, "  ", severity, "  ", strong(title), *marks)
        screen.line(dim(finding.text.strip()), indent=4)
        if finding.workaround:
            screen.text(f"→ {finding.workaround}", indent=4)
        screen.line(ident(finding.id), indent=4)
        screen.blank()
    files = count(result.files, "file")
    if result.findings:
        screen.line(f"{count(len(result.findings), 'finding')} in {files}")
    else:
        screen.line(good("✓ "), f"{files} checked, nothing found")
