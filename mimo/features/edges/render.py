"""The output of the commands about edges."""

from mimo.features.edges.commands import (
    EdgeDetails,
    EdgeFinding,
    EdgeRow,
    EdgeRows,
    EdgesChecked,
    EdgeWarnings,
    StarterAdded,
)
from mimo.features.edges.edge import Severity
from mimo.rendering.results import count, labels, render
from mimo.rendering.screen import Part, Screen, accent, bad, dim, good, strong, warn
from mimo.text.clean import escaped

_WIDEST = max(map(len, Severity))


def marked(severity: Severity) -> Part:
    """Returns a severity with its colour."""
    styles = {Severity.CRITICAL: bad, Severity.WARNING: warn, Severity.INFO: dim}
    return styles[severity](severity.value)


@render.register
def _(result: EdgeWarnings, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    if not result.edges:
        screen.line("no known edge applies")
    for place, edge in enumerate(result.edges):
        if place:
            screen.blank()
        marks = labels(trust=edge.trust)
        screen.line(marked(edge.severity), "  ", strong(edge.title), *marks)
        if edge.description.strip() != edge.title:
            screen.text(edge.description, indent=4)
        if edge.workaround:
            screen.text(f"→ {edge.workaround}", indent=4)
        screen.line(dim(f"{edge.source}, {edge.confidence:.2f}: {edge.matched_on}"), indent=4)
        screen.line(accent(edge.id), dim(f"  {edge.file}:{edge.line}"), indent=4)


@render.register
def _(result: EdgeRows, screen: Screen) -> None:
    if not result.edges:
        screen.line(
            "no edges yet; ", accent("`mind edges starter`"), " adds a set of well-known ones"
        )
    for edge in result.edges:
        row(edge, screen)
    for problem in result.problems:
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        screen.line(warn(f"can't be used: {place}"), dim(f"  {problem.reason}"))


def row(edge: EdgeRow, screen: Screen) -> None:
    """Prints an edge of a list."""
    gap = " " * (_WIDEST - len(edge.severity) + 2)
    screen.line(marked(edge.severity), gap, strong(edge.title), *labels(trust=edge.trust))
    about = ", ".join((edge.source.value, *edge.stack_tags))
    screen.line(accent(edge.id), dim(f"  {about}  {edge.file}:{edge.line}"), indent=4)


@render.register
def _(result: EdgeDetails, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    screen.line(good("✓ "), strong(result.title), "  ", marked(result.severity))
    screen.line(accent(result.id), indent=2)
    screen.line(dim(result.file), indent=2)


@render.register
def _(result: StarterAdded, screen: Screen) -> None:
    for edge in result.added:
        row(edge, screen)
    known = f"; {result.known:,} existed already" if result.known else ""
    screen.line(good("✓ "), f"{count(len(result.added), 'edge')} added{known}")


@render.register
def _(result: EdgesChecked, screen: Screen) -> None:
    if result.document is not None:
        is_json = result.document.startswith("{")
        document = escaped(result.document) if is_json else result.document
        screen.verbatim(document, commands=not is_json)
        return
    for finding in result.findings:
        _finding(finding, screen)
    files = count(result.files, "file")
    if result.findings:
        screen.line(f"{count(len(result.findings), 'finding')} in {files}")
    else:
        screen.line(good("✓ "), f"{files} checked, nothing found")


def _finding(finding: EdgeFinding, screen: Screen) -> None:
    title = finding.title if finding.type == "edge" else f"{finding.title} (a failed decision)"
    place = accent(f"{finding.file}:{finding.line}")
    screen.line(
        place, "  ", marked(finding.severity), "  ", strong(title), *labels(trust=finding.trust)
    )
    screen.line(dim(finding.text.strip()), indent=4)
    if finding.workaround:
        screen.text(f"→ {finding.workaround}", indent=4)
    screen.line(dim(f"{finding.id}  {finding.known_from}"), indent=4)
    screen.blank()
