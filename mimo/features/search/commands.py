"""`mind recall`: what is remembered about something, in a few sentences."""

from collections.abc import Mapping
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
    narrowed,
    trust_of,
)
from mimo.commands.spec import Arg, Effect, Omitted, Out, Surface, command
from mimo.errors import Denied, Invalid, NotFound, SearchFailed
from mimo.features.search import Summary, summarise
from mimo.frozen import frozen
from mimo.memory import outcomes
from mimo.memory.ids import uri_of
from mimo.memory.model import Kind, Outcome, Section
from mimo.mind import Mind
from mimo.operations import finding, freshness, past
from mimo.operations.finding import ProjectHit

# `mind search`: find memories by meaning and by words.


MOST_CONTENT = 2_000
"""Characters of a memory that an answer carries whole; of a longer one it has the best passage."""


class Scope(StrEnum):
    """Where to search."""

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
    source_line: Annotated[int, Out("The line of the best passage, from 1")]
    confidence: Annotated[float, Out("How sure the memory itself is, 0 to 1")]
    relevance: Annotated[float, Out("How well it matches, 0 to 1")]
    date: datetime
    tags: tuple[str, ...]
    trust: Trust
    source: Annotated[
        Omitted[str], Out("Where it is from, such as docs/api.md:120-148", omit=True)
    ] = None
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
    total: Annotated[int, Out("How many results there are")]
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
    threshold: Annotated[
        float | None,
        Arg("Lowest relevance to answer with; unless said 0.3, or the nearest three", ge=0, le=1),
    ] = None,
    at: At = None,
    private: Annotated[
        bool,
        Arg("With --scope all, private memories of other projects too", surfaces=Surface.CLI),
    ] = False,
) -> SearchResults:
    """Find memories by meaning and by words

    Filters are applied before the limit. A superseded memory stands below its successor, and a
    decision that failed says so. With `--scope all`, each other project is searched as its own
    policy permits, and without its private memories.
    """
    if private and mind.agent is not None:
        raise Denied("private memories of other projects are shown to people, not to agents")
    if at is not None and scope is Scope.ALL:
        raise Invalid("the past is searched in one project at a time", hint="leave --scope out")
    then = past.at(mind, at) if at is not None else None
    mind = then.mind if then else mind
    conditions = narrowed(
        mind,
        types=types,
        tags=tags,
        time_filter=time_filter,
        from_date=from_date,
        to_date=to_date,
    )
    options = finding.Options(
        filter=conditions,
        limit=limit,
        threshold=threshold,
        everywhere=scope is Scope.ALL,
        private=private,
    )
    found = finding.find(mind, query, options)
    minds = {id(hit.mind): hit.mind for hit in found.hits}
    stale = {
        key: freshness.stale(of, [hit.hit.record for hit in found.hits if hit.mind is of])
        for key, of in minds.items()
    }
    rows = tuple(
        _row(hit, competing, stale[id(hit.mind)])
        for hit, competing in finding.with_competing(found.hits)
    )
    notice = "; ".join(filter(None, (then.told if then else None, found.notice))) or None
    return SearchResults(query=query, total=len(rows), results=rows, notice=notice)


def _row(
    found: ProjectHit, competing: tuple[str, ...] | None, stale: Mapping[str, str]
) -> SearchResult:
    hit, memory = found.hit, found.hit.record.memory
    long = len(memory.content) > MOST_CONTENT
    return SearchResult(
        id=memory.id,
        type=memory.type,
        title=memory.heading,
        content=hit.passage if long else memory.content,
        reasoning=memory.sections.get(Section.REASONING),
        project=found.mind.project.name,
        source_file=hit.record.place.path,
        source_line=hit.line,
        confidence=1.0 if memory.confidence is None else memory.confidence,
        relevance=round(hit.score, 4),
        date=memory.created,
        tags=memory.tags,
        trust=trust_of(found.mind, hit.record),
        source=memory.source,
        passage=None if long or _same(hit.passage, memory.content) else hit.passage,
        excerpt=long or None,
        outcome=memory.outcome,
        warning=outcomes.warning(memory, claimed_by=hit.newer.claimant),
        superseded_by=hit.newer.successor,
        competing=competing,
        private=hit.record.place.private or None,
        stale=stale.get(memory.id),
    )


def _same(passage: str, content: str) -> bool:
    """Returns whether the passage is all there is."""
    return passage.strip() == content.strip()


@frozen
class Recollection:
    """What is remembered about something."""

    summary: Annotated[str, Out("Text that stands for itself, from the memories that match best")]
    confidence: Annotated[
        float | None,
        Out("How likely the first of them is what was meant, 0 to 1; null where unknown"),
    ]
    source_refs: Annotated[
        tuple[str, ...], Out("Resources that it was made from, in its order: mind://memory/{id}")
    ]


@command(
    "recall_memory",
    cli="recall",
    effect=Effect.READ,
    toolset="recall",
    needs_project=False,
    examples=("mind recall why did we choose JWT", "mind recall where did I stop --json"),
    description="Retrieves past interactions or summaries relevant to the query. "
    "Use when the user asks about previous context or continuity.",
)
def recall_memory(
    mind: Mind,
    query: Annotated[str, Arg("What to recall", words=True)],
) -> Recollection:
    """Recall what is remembered about something, in a few sentences

    Tells the best passages of up to three memories, with date, outcome and what supersedes them.
    Memory that nobody here has approved is left out. That nothing is found is an answer, too.
    """
    return recollection(summarise(mind, query))


def recollection(found: Summary) -> Recollection:
    """Returns a summary as it is published."""
    return Recollection(
        summary=found.text,
        confidence=found.confidence,
        source_refs=tuple(uri_of(id) for id in found.sources),
    )
