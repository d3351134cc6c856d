"""How edges look."""

from mimo.cli.render import Part, Screen, accent, bad, dim, render, strong, warn
from mimo.cli.render.words import labels
from mimo.commands.edges import EdgeRow, EdgeRows, EdgeWarnings
from mimo.domain.edges import Severity

_WIDEST = max(map(len, Severity))


def marked(severity: Severity) -> Part:
    """Returns a severity as it looks."""
    styles = {Severity.CRITICAL: bad, Severity.WARNING: warn, Severity.INFO: dim}
    return styles[severity](severity.value)


@render.register
def _(result: EdgeWarnings, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    if not result.edges:
        screen.line("no edge is known for this")
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
    """Write an edge of a list."""
    gap = " " * (_WIDEST - len(edge.severity) + 2)
    screen.line(marked(edge.severity), gap, strong(edge.title), *labels(trust=edge.trust))
    about = ", ".join((edge.source.value, *edge.stack_tags))
    screen.line(accent(edge.id), dim(f"  {about}  {edge.file}:{edge.line}"), indent=4)
