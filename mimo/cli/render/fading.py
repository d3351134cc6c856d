"""How the strength of memories looks."""

from mimo.cli.render import Screen, accent, dim, render
from mimo.cli.render.words import count
from mimo.commands.fading import DecayCheck


@render.register
def _(result: DecayCheck, screen: Screen) -> None:
    rows = [
        (
            accent(row.id),
            f"{row.decay_score:.3f}",
            "never" if row.days_until_forgotten is None else f"{row.days_until_forgotten:.1f}",
            row.content.splitlines()[0][:60] if row.content else "",
        )
        for row in result.at_risk
    ]
    screen.table(("ID", "STRENGTH", "DAYS LEFT", "CONTENT"), rows)
    checked = count(result.total_checked, "memory", "memories")
    screen.line(dim(f"{len(rows):,} of {checked} below {result.threshold:g}"))
