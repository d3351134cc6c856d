"""`mind edges`: what goes wrong for everybody who does not know it."""

from enum import StrEnum
from typing import Annotated

from mimo.commands.common import File, Trust, TrustLabel
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Omitted, Out
from mimo.domain.edges import Match, Severity
from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import edges as service
from mimo.services.edges import Known

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
