"""`mind search`: finds memories by meaning and by words."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from mimo.commands.common import (
    At,
    Competing,
    FromDate,
    Limit,
    Stale,
    TagFilter,
    TimeFilter,
    ToDate,
    Trust,
    Types,
    Warning,
    facts_of,
    narrowed,
)
from mimo.commands.spec import Arg, Effect, Omitted, Out, Surface, command
from mimo.errors import Denied, Invalid, NotFound, SearchFailed
from mimo.frozen import frozen
from mimo.memory.model import Kind, Outcome
from mimo.mind import Mind
from mimo.operations import finding, freshness
from mimo.operations.finding import ProjectHit

MOST_CONTENT = 2_000
"""Characters of a memory that is returned whole; of a longer one the best passage is."""

Threshold = Annotated[
    float | None,
    Arg("Minimum relevance (default 0.3; if no match reaches it, the three closest)", ge=0, le=1),
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
    relevance: Annotated[float, Out("How well it matches, 0 to 1")]
    date: datetime
    tags: tuple[str, ...]
    trust: Trust
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
    errors=(Invalid, NotFound, SearchFailed),
    examples=(
        "mind search why did we choose JWT",
        'mind search "rate limit" --type decision --when "last month"',
        "mind search --scope all safari cookies",
        "mind search --at v1.2 rate limit",
    ),
    description="Semantic search across memories. Use when CLAUDE.md context isn't enough.",
)
def search(
    mind: Mind,
    query: Annotated[str, Arg("Search query", words=True)],
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
) -> SearchResults:
    """Find memories by meaning and by words

    Filters are applied before the limit. A superseded memory is listed below its successor, and a
    failed decision is marked. With `--scope all`, each other project is searched as its own policy
    permits, without its private memories.
    """
    if private and mind.agent is not None:
        raise Denied("private memories of other projects are shown to people, not to agents")
    revision = None
    if at is not None:
        if scope is Scope.ALL:
            raise Invalid(
                "only one project at a time can be searched at a revision",
                hint="leave --scope out",
            )
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
        everywhere=scope is Scope.ALL,
        private=private,
    )
    matches = finding.find(mind, query, options)
    stale = _stale(matches.hits)
    rows = tuple(
        _row(match, competing, stale[id(match.mind)].get(match.hit.record.memory.id))
        for match, competing in finding.with_competing(matches.hits)
    )
    notice = "; ".join(filter(None, (revision, matches.notice))) or None
    return SearchResults(query=query, total=len(rows), results=rows, notice=notice)


def _row(match: ProjectHit, competing: tuple[str, ...] | None, stale: str | None) -> SearchResult:
    hit = match.hit
    memory = facts_of(match.mind, hit.record, hit.newer, competing, stale)
    is_long = len(memory.content) > MOST_CONTENT
    is_whole = hit.passage.strip() == memory.content.strip()
    return memory.row(
        SearchResult,
        content=hit.passage if is_long else memory.content,
        project=match.mind.project.name,
        source_file=memory.file,
        source_line=hit.line,
        confidence=1.0 if memory.confidence is None else memory.confidence,
        relevance=round(hit.score, 4),
        date=memory.created_at,
        passage=None if is_long or is_whole else hit.passage,
        excerpt=is_long or None,
    )


def _stale(matches: Sequence[ProjectHit]) -> dict[int, dict[str, str]]:
    """Returns why memories may be out of date, by project and id."""
    minds = {id(match.mind): match.mind for match in matches}
    return {
        key: freshness.stale(mind, [match.hit.record for match in matches if match.mind is mind])
        for key, mind in minds.items()
    }
