"""How procedures look."""

from mimo.cli.render import Part, Screen, accent, bad, dim, good, render, strong, warn
from mimo.cli.render.words import count
from mimo.commands.common import TrustLabel
from mimo.commands.procedure_files import Checks, Definition, FaultRow, Procedures, Registered
from mimo.domain.procedures.diagram import drawn


@render.register
def _(result: Procedures, screen: Screen) -> None:
    rows: list[list[Part]] = [
        [
            strong(row.name),
            row.version,
            count(row.state_count, "state"),
            warn("not approved") if row.trust is TrustLabel.UNTRUSTED else dim("approved"),
            row.description,
        ]
        for row in result.procedures
    ]
    screen.table(["name", "version", "states", "trust", "description"], rows)
    if not rows:
        screen.line(dim("no procedures yet: mind procedure new NAME"))
    _told(result.faults, screen, "fault")


@render.register
def _(result: Definition, screen: Screen) -> None:
    if result.diagram is not None:
        for line in result.diagram.splitlines():
            screen.line(line)
        return
    untrusted = result.trust is TrustLabel.UNTRUSTED
    marks = [warn("  not approved")] if untrusted else []
    screen.line(strong(f"{result.name}@{result.version}"), *marks)
    if result.description:
        screen.line(result.description, indent=2)
    limits = f"at most {result.timeout_ms} ms, {count(result.max_retries, 'retry', 'retries')}"
    screen.line(dim(f"{result.file}  {limits}"), indent=2)
    if result.rollback_procedure:
        screen.line(dim(f"undone by {result.rollback_procedure}"), indent=2)
    screen.blank()
    for line in drawn(result.definition):
        screen.line(line, indent=2)


@render.register
def _(result: Registered, screen: Screen) -> None:
    name = strong(f"{result.name}@{result.version}")
    screen.line(good("✓ "), name, "  ", count(result.state_count, "state"))
    screen.line(dim(result.file), indent=2)
    if result.trust is TrustLabel.UNTRUSTED:
        screen.note("it runs programs or sends requests: its first run on a terminal asks")
    _told(result.warnings, screen, "warning")


@render.register
def _(result: Checks, screen: Screen) -> None:
    _told(result.faults, screen, "fault")
    _told(result.warnings, screen, "warning")
    if result.valid:
        screen.line(good("✓ "), count(result.checked, "procedure"), " checked")


def _told(rows: tuple[FaultRow, ...], screen: Screen, kind: str) -> None:
    role = bad if kind == "fault" else warn
    for row in rows:
        place = f"{row.file}:{row.line}" if row.line else row.file
        screen.line(role(f"{kind}: "), accent(place), f": {row.reason}")
