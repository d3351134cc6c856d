"""`mind edges check`: which edges, and decisions that failed, a change runs into."""

from enum import StrEnum
from typing import Annotated

from mimo.commands.common import File, Trust
from mimo.commands.edges import Source, label
from mimo.commands.spec import Arg, Effect, Surface, command
from mimo.commands.types import Omitted, Out
from mimo.domain.edges import Severity, report
from mimo.domain.edges.report import Reported
from mimo.domain.memory import Kind
from mimo.errors import Invalid, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import edges as service
from mimo.services.edges import Hit


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
        return report.annotations(places)
    from mimo import __version__

    return report.sarif(places, version=__version__)


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
