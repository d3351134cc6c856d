"""How the strength of memories looks."""

from mimo.features.fading.commands import DecayCheck, FadingRow, FadingRows, Kept
from mimo.rendering.results import count, day, labels, render
from mimo.rendering.screen import Screen, accent, dim, good, strong, warn


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


@render.register
def _(result: FadingRows, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    for row in result.memories:
        screen.line(row.title, *labels(trust=row.trust))
        screen.line(warn(_left(row)), dim(f"  {_use(row)}  {row.type}"), indent=2)
        screen.line(accent(row.id), indent=2)
    if result.memories:
        screen.blank()
    of = f"{result.total:,} of {count(result.checked, 'memory', 'memories')}"
    gone = f", {result.forgotten:,} of them counted as forgotten" if result.forgotten else ""
    cut = len(result.memories) < result.total
    shown = f"; the weakest {len(result.memories):,} are shown" if cut else ""
    screen.line(dim(f"{of} below {result.threshold:g}{gone}{shown}"))
    if result.memories:
        screen.note("`mind keep ID` protects one, `mind rm ID` removes one; nothing goes by itself")


@render.register
def _(result: Kept, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    state = "does not fade" if result.protected else "fades"
    screen.line(good("✓ "), strong(result.title), f"  {state}")
    screen.line(dim(result.file), indent=2)


def _left(row: FadingRow) -> str:
    if row.days_left is None:
        return f"{row.strength:.2f}, never forgotten"
    if row.days_left == 0:
        return f"{row.strength:.2f}, counts as forgotten"
    return f"{row.strength:.2f}, {count(round(row.days_left) or 1, 'day')} left"


def _use(row: FadingRow) -> str:
    if row.last_used is None:
        return f"never used here, made {day(row.created_at)}"
    return f"used {count(row.uses, 'time')}, last {day(row.last_used)}"
