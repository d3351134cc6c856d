"""How the `memory` tool's answers look to people."""

from mimo.cli.render import Screen, accent, bad, dim, good, render, strong
from mimo.cli.render.words import count, day, labels, tagged
from mimo.commands.common import TrustLabel
from mimo.commands.memory import Deleted, MemoryList, MemorySearch, Stored
from mimo.domain.memory import Outcome


@render.register
def _(result: Stored, screen: Screen) -> None:
    done = "stored before as " if result.already else "stored "
    screen.line(good("✓ "), done, accent(result.id))
    if result.notice:
        screen.note(result.notice)


@render.register
def _(result: Deleted, screen: Screen) -> None:
    screen.line(good("✓ "), "deleted ", strong(result.id))


@render.register
def _(result: MemorySearch, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    for row in result.results:
        marks = labels(outcome=row.outcome, superseded_by=row.superseded_by, trust=row.trust)
        screen.line(dim(f"{row.score:.2f}  "), accent(row.id), *marks)
        for warning in filter(None, (row.warning, row.stale)):
            screen.line(bad(warning), indent=6)
        screen.text(row.content, indent=6)
        screen.line(dim(f"{row.category}  {day(row.created_at)}  {tagged(row.tags)}"), indent=6)
        screen.blank()
    searched = count(result.total_searched, "memory", "memories")
    screen.line(dim(f"{count(len(result.results), 'result')} in {searched}"))


@render.register
def _(result: MemoryList, screen: Screen) -> None:
    rows = [
        (
            accent(row.id),
            row.category,
            f"{row.importance:g}",
            f"{row.decay_score:.2f}",
            day(row.created_at),
            bad(row.outcome) if row.outcome is Outcome.FAILED else row.outcome or "",
            row.trust if row.trust is TrustLabel.UNTRUSTED else "",
            _first_line(row.content),
        )
        for row in result.memories
    ]
    screen.table(
        ("ID", "CATEGORY", "IMPORTANCE", "STRENGTH", "CREATED", "OUTCOME", "TRUST", "CONTENT"), rows
    )
    screen.line(dim(f"{len(rows):,} of {count(result.total, 'memory', 'memories')}"))


def _first_line(content: str) -> str:
    first = next((line for line in content.splitlines() if line.strip()), "")
    return first if len(first) <= 60 else f"{first[:59]}…"
