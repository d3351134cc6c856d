"""How a summary of the memory looks."""

from mimo.features.search.commands import Recollection, SearchResult, SearchResults
from mimo.memory.ids import MEMORY_URI
from mimo.rendering.results import count, day, labels, render, tagged
from mimo.rendering.screen import Screen, accent, bad, dim, strong

# How search results look.


_LINES = 6
"""Lines of a result that are shown; `mind show` has the rest."""


@render.register
def _(result: SearchResults, screen: Screen) -> None:
    if not result.results:
        screen.line(f"nothing found for “{result.query}”")
        screen.note(result.notice or "try other words; `mind list` shows what there is")
        return
    terms = [word for word in result.query.split() if len(word) > 2]
    several = len({row.project for row in result.results}) > 1
    for row in result.results:
        _row(row, screen, terms, project=several)
    screen.line(dim(f"{count(result.total, 'result')}; `mind show ID` shows one whole"))
    if result.notice:
        screen.note(result.notice)


def _row(row: SearchResult, screen: Screen, terms: list[str], *, project: bool) -> None:
    marks = labels(
        outcome=row.outcome,
        superseded_by=row.superseded_by,
        trust=row.trust,
        competing=row.competing,
        private=row.private,
    )
    screen.line(dim(f"{row.relevance:.2f}"), "  ", strong(row.title), *marks)
    place = f"{row.project}: " if project else ""
    about = "  ".join(part for part in (row.type, day(row.date), tagged(row.tags)) if part)
    screen.line(accent(row.id), "  ", dim(about), indent=6)
    origin = f"  from {row.source}" if row.source else ""
    screen.line(dim(f"{place}{row.source_file}:{row.source_line}{origin}"), indent=6)
    for warning in filter(None, (row.warning, row.stale)):
        screen.line(bad(warning), indent=6)
    body = _without_title(row)
    if body:
        lines = body.splitlines()
        cut = ["…"] if len(lines) > _LINES else []
        screen.text("\n".join([*lines[:_LINES], *cut]), terms=terms, indent=6)
    if row.reasoning and row.reasoning.splitlines()[0] not in body:
        screen.text(f"because {row.reasoning.splitlines()[0]}", terms=terms, indent=6)
    screen.blank()


def _without_title(row: SearchResult) -> str:
    """Returns the text without a first line that only says the title again."""
    text = row.passage or row.content
    first, _, rest = text.strip().partition("\n")
    title = row.title.strip().rstrip("…")
    same = bool(title) and first.lstrip("# ").strip() == title
    return rest.strip("\n") if same else text.strip("\n")


_MARKED = ("FAILED", "Superseded")
"""What a reader must not miss."""


@render.register
def _(result: Recollection, screen: Screen) -> None:
    opening, *lines = result.summary.splitlines()
    if not result.source_refs:
        screen.text(result.summary)
        return
    screen.line(dim(opening))
    ids = [uri.removeprefix(MEMORY_URI) for uri in result.source_refs]
    for line, id in zip(lines, [*ids, *[""] * len(lines)], strict=False):
        screen.blank()
        screen.text(line, terms=_MARKED)
        if id:
            screen.line(accent(id), indent=3)
    screen.blank()
    if result.confidence is not None:
        screen.line(dim(f"1. is what was meant with {result.confidence:.0%} confidence"))
    screen.line(dim("`mind show ID` shows one whole"))
