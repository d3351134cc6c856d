"""`mind search by-topic`, `by-context` and `recent`: the search tools that MAMA names."""

from typing import Annotated

from mimo.commands.common import FromDate, Limit, TimeFilter, ToDate, narrowed
from mimo.commands.load import RelatedLink, RelatedMemory, related
from mimo.commands.rows import Remembered, remembered
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Omitted, Out
from mimo.domain.memory import SUPERSEDES
from mimo.domain.query import Filter
from mimo.errors import Invalid, SearchFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import accesses, graph, recall, upkeep

TOPIC_DEPTH = 3
CONTEXT_DEPTH = graph.MAX_DEPTH
MOST_RELATED = 20
"""Memories reached by links that an answer names."""


@frozen
class Evolution:
    """How the decisions on a topic followed each other."""

    topic: str
    total: int
    current: Annotated[tuple[str, ...], Out("Ids of the decisions in force; several compete")]
    results: Annotated[tuple[Remembered, ...], Out("The chain, newest first")]
    links: Annotated[tuple[RelatedLink, ...], Out("Which supersedes which")]
    notice: Omitted[str] = None


@frozen
class Relevant:
    """A memory that a search found."""

    score: Annotated[float, Out("How well it matches, 0 to 1")]
    memory: Remembered


@frozen
class InContext:
    """What is relevant to a question, and what is linked to that."""

    query: str
    total: int
    results: tuple[Relevant, ...]
    related: Annotated[tuple[RelatedMemory, ...], Out("What links lead to from the results")]
    notice: Omitted[str] = None


@frozen
class Recent:
    """What was remembered lately."""

    total: Annotated[int, Out("How many there are")]
    results: Annotated[tuple[Remembered, ...], Out("Newest first")]
    notice: Omitted[str] = None


@command(
    "search/by_topic",
    effect=Effect.READ,
    toolset="search",
    examples=("mind search by-topic auth_strategy",),
    description="""\
Show how the decisions on one topic evolved: exact topic, newest first, with what replaced what.

Use when:
- You know the topic's name (e.g., "auth_strategy") and want its history
- Before saving a decision, to see what was decided on the topic before

Don't use for:
- A question in your own words → use search/by_context
- What happened lately, whatever the topic → use search/recent""",
)
def by_topic(
    mind: Mind, topic: Annotated[str, Arg("The topic, whole", words=True, complete="topic")]
) -> Evolution:
    """Show how the decisions on a topic evolved"""
    on_topic = recall.listing(mind, narrowed=Filter(topic=topic), limit=-1).records
    ids = [record.memory.id for record in on_topic]
    chain = graph.traverse(mind, ids, depth=TOPIC_DEPTH, types=(SUPERSEDES,))
    records = graph.newest_first(chain)
    accesses.note(mind, records)
    current = upkeep.ask(mind, lambda index: index.current(topic))
    return Evolution(
        topic=topic,
        total=len(records),
        current=tuple(record.memory.id for record in current),
        results=remembered(mind, records),
        links=tuple(
            RelatedLink(source=edge.source, target=edge.target, type=edge.type)
            for edge in chain.edges
        ),
        notice=mind.notice if records else _no_such_topic(mind, topic),
    )


def _no_such_topic(mind: Mind, topic: str) -> str:
    near = mind.index.nearest_topics(topic)
    told = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"nothing is remembered on that topic{told}"


@command(
    "search/by_context",
    effect=Effect.READ,
    toolset="search",
    errors=(Invalid, SearchFailed),
    examples=('mind search by-context "how do users log in"',),
    description="""\
Find what is relevant to a question or a task, by meaning, and what is linked to it.

Use when:
- You are about to decide something and want to know what was decided, tried or learnt around it
- The user asks "how did we…", "why did we…" in their own words

Don't use for:
- The history of a topic whose name you know → use search/by_topic
- The newest memories → use search/recent""",
)
def by_context(
    mind: Mind,
    query: Annotated[str, Arg("The question or the task", words=True)],
    *,
    limit: Limit = 10,
    threshold: Annotated[
        float | None,
        Arg("Lowest score to answer with; unless said 0.3, or the nearest three", ge=0, le=1),
    ] = None,
    time_filter: TimeFilter = None,
    from_date: FromDate = None,
    to_date: ToDate = None,
) -> InContext:
    """Find what is relevant to a question, and what is linked to it"""
    when = narrowed(mind, time_filter=time_filter, from_date=from_date, to_date=to_date)
    if threshold is None:
        found = recall.search_or_nearest(
            recall.search_here, mind, query, narrowed=when, limit=limit
        )
    else:
        found = recall.search_here(mind, query, narrowed=when, limit=limit, threshold=threshold)
    hits = [one.hit for one in found.hits]
    rows = remembered(mind, [hit.record for hit in hits])
    ids = [hit.record.memory.id for hit in hits]
    around = graph.traverse(mind, ids, depth=CONTEXT_DEPTH, most=len(ids) + MOST_RELATED)
    return InContext(
        query=query,
        total=len(rows),
        results=tuple(
            Relevant(score=round(hit.score, 4), memory=row)
            for hit, row in zip(hits, rows, strict=True)
        ),
        related=related(mind, around),
        notice=found.notice,
    )


@command(
    "search/recent",
    effect=Effect.READ,
    toolset="search",
    errors=(Invalid,),
    examples=("mind search recent", "mind search recent --type decision --when 'last week'"),
    description="""\
Browse what was remembered lately, newest first.

Use when:
- Catching up: what was decided or learnt since yesterday, last week
- You don't know what to search for

Don't use for:
- Resuming your own work → use load/checkpoint
- A question → use search/by_context""",
)
def recent(
    mind: Mind,
    *,
    limit: Limit = 10,
    type: Annotated[str | None, Arg("Only this type of memory", complete="type")] = None,
    time_filter: TimeFilter = None,
    from_date: FromDate = None,
    to_date: ToDate = None,
) -> Recent:
    """Show what was remembered lately"""
    conditions = narrowed(
        mind,
        types=(type,) if type else (),
        time_filter=time_filter,
        from_date=from_date,
        to_date=to_date,
    )
    page = recall.listing(mind, narrowed=conditions, limit=limit)
    return Recent(total=page.total, results=remembered(mind, page.records), notice=mind.notice)
