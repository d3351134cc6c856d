"""How it looks what a change runs into."""

from mimo.cli.clean import escaped
from mimo.cli.render import Screen, accent, dim, good, render, strong
from mimo.cli.render.edges import marked
from mimo.cli.render.words import count, labels
from mimo.commands.edge_check import EdgeFinding, EdgesChecked


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
    title = finding.title if finding.type == "edge" else f"{finding.title} (a decision that failed)"
    place = accent(f"{finding.file}:{finding.line}")
    screen.line(
        place, "  ", marked(finding.severity), "  ", strong(title), *labels(trust=finding.trust)
    )
    screen.line(dim(finding.text.strip()), indent=4)
    if finding.workaround:
        screen.text(f"→ {finding.workaround}", indent=4)
    screen.line(dim(f"{finding.id}  {finding.known_from}"), indent=4)
    screen.blank()
