"""The renderer of search results."""

from mimo.features.search.commands import SearchResult, SearchResults
from mimo.rendering.results import (
    count,
    day,
    first_lines,
    render,
    row_labels,
    tagged,
    without_title,
)
from mimo.rendering.screen import Screen, accent, bad, dim, strong

_LINES = 6
"""Lines of a result that are printed; `mind show` prints all."""


@render.register
def _(result: SearchResults, screen: Screen) -> None:
    if not result.results:
        screen.line(f"nothing found for “{result.query}”")
        screen.note(result.notice or "try other words; `mind list` lists all memories")
        return
    terms = [word for word in result.query.split() if len(word) > 2]
    several = len({row.project for row in result.results}) > 1
    for row in result.results:
        _row(row, screen, terms, project=several)
    screen.line(dim(f"{count(result.total, 'result')}; `mind show ID` shows one whole"))
    if result.notice:
        screen.note(result.notice)


def _row(row: SearchResult, screen: Screen, terms: list[str], *, project: bool) -> None:
    screen.line(dim(f"{row.relevance:.2f}"), "  ", strong(row.title), *row_labels(row))
    about = "  ".join(part for part in (row.type, day(row.date), tagged(row.tags)) if part)
    screen.line(accent(row.id), "  ", dim(about), indent=6)
    place = f"{row.project}: " if project else ""
    origin = f"  from {row.source}" if row.source else ""
    screen.line(dim(f"{place}{row.source_file}:{row.source_line}{origin}"), indent=6)
    for warning in filter(None, (row.warning, row.stale)):
        screen.line(bad(warning), indent=6)
    body = without_title(row.passage or row.content, row.title)
    if body:
        screen.text(first_lines(body, _LINES), terms=terms, indent=6)
    if row.reasoning and row.reasoning.splitlines()[0] not in body:
        screen.text(f"because {row.reasoning.splitlines()[0]}", terms=terms, indent=6)
    screen.blank()
