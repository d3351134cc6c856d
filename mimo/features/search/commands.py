"""`mind search`: finds memories by meaning and by words."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from mimo.commands.common import (
    At,
    Competing,
    FromDate,
    Limit,
    Owner,
    Query,
    Stale,
    TagFilter,
    TimeFilter,
    ToDate,
    Trust,
    Types,
    Warning,
    Weak,
    facts_of,
    narrowed,
)
from mimo.commands.spec import Arg, Effect, Omitted, Out, Surface, command
from mimo.errors import Denied, Invalid, NotFound, SearchFailed
from mimo.frozen import frozen
from mimo.index.rows import Hit
from mimo.memory.model import Kind, Outcome
from mimo.mind import Mind
from mimo.operations import finding, freshness
from mimo.rendering import Screen, accent, bad, dim, strong
from mimo.rendering.results import (
    count,
    day,
    first_lines,
    render,
    row_labels,
    tagged,
    without_title,
)
from mimo.text.phrases import notices

MOST_CONTENT = 2_000
"""Characters of a memory that is returned whole; of a longer one the best passage is."""

_LINES = 6
"""Lines of a result that are printed; `mind show` prints all."""

Threshold = Annotated[
    float | None,
    Arg("Minimum relevance (default 0.3, else the three nearest as weak)", ge=0, le=1),
]


class Scope(StrEnum):
    """The projects to search."""

    PROJECT = "project"
    ALL = "all"


@frozen
class SearchResult:
    """A memory that matches."""

    id: str
    type: Kind
    title: str
    content: Annotated[str, Out("The text, or the best passage of a long one (`excerpt`)")]
    reasoning: str | None
    project: Annotated[str, Out("Name of the project")]
    source_file: Annotated[str, Out("Its file, relative to the project")]
    source_line: Annotated[int, Out("Line of the best passage, from 1")]
    confidence: Annotated[float, Out("Confidence that the memory itself states, 0 to 1")]
    relevance: Annotated[float, Out("Probability that it answers the query, 0 to 1")]
    date: datetime
    tags: tuple[str, ...]
    trust: Trust
    scope: Owner = None
    source: Annotated[Omitted[str], Out("Its origin, such as docs/api.md:120-148", omit=True)] = (
        None
    )
    passage: Annotated[Omitted[str], Out("The best passage of a longer text", omit=True)] = None
    excerpt: Annotated[Omitted[bool], Out("Whether `content` is only that", omit=True)] = None
    outcome: Omitted[Outcome] = None
    warning: Warning = None
    superseded_by: Omitted[str] = None
    competing: Competing = None
    private: Annotated[Omitted[bool], Out("Whether it is kept out of git", omit=True)] = None
    stale: Stale = None
    weak: Weak = None


@frozen
class SearchResults:
    """The memories that match a query, best first."""

    query: str
    total: Annotated[int, Out("Number of results")]
    results: tuple[SearchResult, ...]
    notice: Omitted[str] = None


@command(
    "mind_search",
    cli="search",
    effect=Effect.READ,
    toolset="search",
    needs_project=False,
    of_user=True,
    errors=(Invalid, NotFound, SearchFailed),
    examples=(
        "mind search why did we choose JWT",
        'mind search "rate limit" --type decision --when "last month"',
        "mind search --scope all safari cookies",
        "mind search --at v1.2 rate limit",
    ),
    description="Semantic search across memories. Use when CLAUDE.md context isn't enough. "
    "Search at most twice a turn. Rows marked `weak` are only near.",
)
def search(
    mind: Mind,
    query: Query,
    *,
    scope: Annotated[Scope, Arg("This project, or all registered ones")] = Scope.PROJECT,
    types: Types = (),
    limit: Limit = 10,
    tags: TagFilter = (),
    time_filter: TimeFilter = None,
    from_date: FromDate = None,
    to_date: ToDate = None,
    threshold: Threshold = None,
    at: At = None,
    private: Annotated[
        bool,
        Arg("With --scope all, also private memories of other projects", surfaces=Surface.CLI),
    ] = False,
    everywhere: Annotated[
        bool, Arg("Only your memory for all projects", wire="user", surfaces=Surface.CLI)
    ] = False,
) -> SearchResults:
    """Find memories by meaning and by words

    Filters are applied before the limit. A superseded memory is listed below its successor, and a
    failed decision is marked. The user's memory for all projects is searched too. With `--scope
    all`, each other project is searched as its own policy permits, without its private memories.
    """
    _check(mind, scope, at, private=private, everywhere=everywhere)
    revision = None
    if at is not None:
        state = finding.at(mind, at)
        mind, revision = state.mind, state.label
    options = finding.Options(
        filter=narrowed(
            mind,
            types=types,
            tags=tags,
            time_filter=time_filter,
            from_date=from_date,
            to_date=to_date,
        ),
        limit=limit,
        threshold=threshold,
    )
    mind.prepare()
    if scope is Scope.ALL:
        from mimo.operations import across

        matches, notice = across.search_projects(mind, query, options, private=private)
    else:
        matches, answer = finding.search_with_user(mind, query, options, alone=at is not None)
        notice = answer.notice
    rows = tuple(_rows(matches))
    return SearchResults(
        query=query, total=len(rows), results=rows, notice=notices(revision, notice)
    )


def _check(mind: Mind, scope: Scope, at: str | None, *, private: bool, everywhere: bool) -> None:
    """Raises `Denied` or `Invalid` for options that exclude each other or the caller."""
    if private and mind.agent is not None:
        raise Denied("private memories of other projects are shown to people, not to agents")
    if everywhere and scope is Scope.ALL:
        raise Invalid("`--user` and `--scope all` exclude each other", hint="use one of them")
    if at is not None and scope is Scope.ALL:
        raise Invalid(
            "only one project at a time can be searched at a revision", hint="leave --scope out"
        )


def _rows(matches: Sequence[tuple[Mind, Hit]]) -> Iterator[SearchResult]:
    about = {
        project: (
            project.trust.checker(),
            freshness.stale(project, [hit.record for owner, hit in matches if owner is project]),
        )
        for project in {project for project, _ in matches}
    }
    for project, hit in matches:
        trusts, stale = about[project]
        yield _row(project, hit, trusts, stale.get(hit.record.memory.id))


def _row(mind: Mind, hit: Hit, trusts: Callable[[str], bool], stale: str | None) -> SearchResult:
    memory = facts_of(mind, trusts, hit.record, hit.newer, hit.competing or None, stale)
    is_long = len(memory.content) > MOST_CONTENT
    is_whole = hit.passage.strip() == memory.content.strip()
    return memory.row(
        SearchResult,
        content=hit.passage if is_long else memory.content,
        project=mind.project.name,
        source_file=memory.file,
        source_line=hit.line,
        confidence=1.0 if memory.confidence is None else memory.confidence,
        relevance=round(hit.score, 4),
        date=memory.created_at,
        passage=None if is_long or is_whole else hit.passage,
        excerpt=is_long or None,
        weak=finding.is_weak(hit),
    )


@render.register
def _(result: SearchResults, screen: Screen) -> None:
    if not result.results:
        screen.line(f"nothing found for “{result.query}”")
        screen.note(result.notice or "try other words; `mind list` lists all memories")
        return
    terms = [word for word in result.query.split() if len(word) > 2]
    several = len({row.project for row in result.results if not row.scope}) > 1
    for row in result.results:
        _write(row, screen, terms, project=several)
    screen.line(dim(f"{count(result.total, 'result')}; `mind show ID` shows one whole"))
    if result.notice:
        screen.note(result.notice)


def _write(row: SearchResult, screen: Screen, terms: list[str], *, project: bool) -> None:
    weak = (dim("  weak"),) if row.weak else ()
    screen.line(dim(f"{row.relevance:.2f}"), "  ", strong(row.title), *weak, *row_labels(row))
    about = "  ".join(part for part in (row.type, day(row.date), tagged(row.tags)) if part)
    screen.line(accent(row.id), "  ", dim(about), indent=6)
    place = f"{row.project}: " if project and not row.scope else ""
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
