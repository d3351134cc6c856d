"""`mind search by-topic`, `by-context` and `recent`: searches that return whole memories."""

from typing import Annotated, Unpack

from mimo.call import Call
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import Invalid, SearchFailed, join_texts
from mimo.features.decisions.loading import RelatedLink, links_in, show
from mimo.features.search.commands import Threshold
from mimo.frozen import frozen, replace
from mimo.memory.ids import with_handles
from mimo.memory.model import SUPERSEDES, Filter, Record
from mimo.memory.relations import MAX_DEPTH
from mimo.operations import finding, lookup, refresh, searching
from mimo.operations.rows import (
    NONE_PASSES,
    BriefQuery,
    Limit,
    LinkedMemory,
    OtherLimit,
    Remembered,
    Times,
    Weak,
    linked_memories,
    narrowed,
    relevance,
    remembered,
)
from mimo.rendering import LEAST_OF_A_TITLE, Screen, dim, fitted, good, ident, strong, warn
from mimo.rendering.results import (
    because_of,
    count,
    day,
    lead,
    match_count,
    render,
    row_labels,
    row_warnings,
    trailing,
    type_mark,
    write_weak,
)

TOPIC_DEPTH = 3
MOST_RELATED = 20
"""Linked memories in an answer."""


@frozen
class Evolution:
    """The history of the decisions on a topic."""

    topic: str
    total: int
    current: Annotated[tuple[str, ...], Out("Ids of the current decisions; several compete")]
    results: Annotated[tuple[Remembered, ...], Out("The chain, newest first")]
    links: Annotated[tuple[RelatedLink, ...], Out("Which supersedes which")]
    notice: Omitted[str] = None


@frozen
class Relevant:
    """A memory that matches."""

    score: Annotated[float | None, Out("Probability of an answer, 0 to 1; null in a list")]
    memory: Remembered
    weak: Weak = None


@frozen
class InContext:
    """The memories that are relevant to a question, and those linked to them."""

    query: str
    total: int
    results: tuple[Relevant, ...]
    related: Annotated[tuple[LinkedMemory, ...], Out("Memories linked with the results")]
    nearest: Annotated[
        Omitted[tuple[Relevant, ...]],
        Out("Weak matches below the threshold, if none was given"),
    ] = None
    notice: Omitted[str] = None


@frozen
class Recent:
    """The newest memories."""

    total: Annotated[int, Out("Number of memories that pass the filters; a file is one")]
    results: Annotated[tuple[Remembered, ...], Out("Newest first")]
    notice: Omitted[str] = None


@command(
    "search/by_topic",
    effect=Effect.READ,
    has_budget=True,
    toolset="search",
    examples=("mind search by-topic auth_strategy",),
    description="""\
Use when: you know the exact topic. Shows how its decisions evolved, newest first.
Don't use for: questions → search/by_context""",
    title="Show a topic",
)
def by_topic(
    call: Call,
    topic: Annotated[str, Arg("The whole topic", agents="", words=True, complete="topic")],
) -> Evolution:
    """Show how the decisions on a topic evolved"""
    on_topic = finding.listing(call, finding.Options(filter=Filter(topic=topic))).records
    ids = [record.memory.id for record in on_topic]
    chain = finding.linked(call, ids, depth=TOPIC_DEPTH, types=(SUPERSEDES,))
    records = chain.newest_first()
    call.count_uses(records)
    current = refresh.up_to_date(call).current(topic)
    notice = call.notice
    if not records:
        notice = join_texts(notice, lookup.like_topic(call, topic))
    return Evolution(
        topic=topic,
        total=len(records),
        current=tuple(record.memory.id for record in current),
        results=remembered(call, records),
        links=links_in(call, chain, with_words=False),
        notice=notice,
    )


@command(
    "search/by_context",
    effect=Effect.READ,
    has_budget=True,
    toolset="search",
    errors=(Invalid, SearchFailed),
    examples=('mind search by-context "how do users log in"',),
    description="""\
Use when: about to decide something; "how did we…", "why did we…". Finds memories relevant to it,
and those linked to them.
Don't use for: known topics → search/by_topic""",
    title="Find related",
)
def by_context(
    call: Call,
    query: BriefQuery,
    *,
    limit: OtherLimit = 10,
    threshold: Threshold = None,
    **times: Unpack[Times],
) -> InContext:
    """Find memories about a question, and those linked to them"""
    conditions = narrowed(call, **times)
    options = finding.Options(
        filter=conditions, limit=limit, threshold=threshold, weak=searching.most_weak(call)
    )
    answer = searching.search(call, query, options)
    records = [hit.record for hit in answer.hits]
    rows = [
        Relevant(score=relevance(hit), memory=row, weak=searching.is_weak(hit))
        for hit, row in zip(answer.hits, remembered(call, records), strict=True)
    ]
    results, nearest = searching.apart(rows, answer, options)
    ids = [row.memory.id for row in results]
    around = finding.linked(call, ids, depth=MAX_DEPTH, limit=len(ids) + MOST_RELATED)
    return InContext(
        query=query,
        total=len(results),
        results=results,
        nearest=nearest,
        related=linked_memories(call, [node for node in around.nodes if node.depth]),
        notice=join_texts(answer.notice, answer.beyond),
    )


@command(
    "search/recent",
    effect=Effect.READ,
    has_budget=True,
    toolset="search",
    errors=(Invalid,),
    examples=("mind search recent", "mind search recent --type decision --when 'last week'"),
    description="""\
Use when: catching up on a day or week, without a question. Browses the newest memories.
Don't use for: resuming work → load/checkpoint""",
    title="Browse the newest",
)
def recent(
    call: Call,
    *,
    limit: Limit = 10,
    type: Annotated[str | None, Arg("Only this type of memory", agents="", complete="type")] = None,
    **times: Unpack[Times],
) -> Recent:
    """Show the newest memories"""
    conditions = narrowed(call, types=(type,) if type else (), **times)
    page = finding.folded(call, finding.Options(filter=conditions, limit=limit))
    results = tuple(map(_fold_row, page.records, remembered(call, page.records)))
    reason = NONE_PASSES if not results and conditions != Filter() else None
    return Recent(total=page.total, results=results, notice=join_texts(call.notice, reason))


def _fold_row(record: Record, row: Remembered) -> Remembered:
    """Returns the row of a memory; the first chunk of an ingested file represents the file."""
    if record.parent is None:
        return row
    return replace(row, id=record.parent, title=record.origin or row.title, excerpt=True)


@render.register
def _(result: Evolution, screen: Screen) -> None:
    if not result.results:
        screen.line(f"no memory on “{result.topic}”")
        if not result.notice:
            screen.note("`mind search recent` lists the newest memories")
        return
    if len(result.current) > 1:
        conflict = f"{len(result.current)} decisions on this topic compete"
        screen.line(warn(f"{conflict}; save a decision that supersedes them"))
        screen.blank()
    end = len(result.results) - 1
    for number, row in enumerate(result.results):
        mark = good("●") if row.id in result.current else dim("○")
        bar = " " if number == end else "│"
        about = dim(f"  {day(row.created_at)}  ")
        screen.line(mark, " ", ident(row.id), about, strong(row.title), *row_labels(row))
        because = because_of(row.reasoning.strip().splitlines()[0]) if row.reasoning else None
        for line in row_warnings(row, because):
            screen.line(dim(f"{bar}  "), with_handles(line))
        if number != end:
            screen.line(dim(bar))


@render.register
def _(result: InContext, screen: Screen) -> None:
    if not (result.results or result.nearest):
        screen.line(f"nothing found for “{result.query}”")
        screen.note("`mind search` also finds by words; other words may help")
        return
    for match in result.results:
        show(match.memory, screen)
    for match in result.nearest or ():
        write_weak(match.memory, match.memory.title, match.memory.created_at, screen)
    if result.related:
        screen.line(strong("Linked with these"))
    for neighbour in result.related:
        title = fitted(neighbour.title, LEAST_OF_A_TITLE)
        screen.line(ident(neighbour.id), "  ", title, *row_labels(neighbour, brief=True), indent=2)
    screen.line(dim(match_count(result.total, len(result.nearest or ()))))


@render.register
def _(result: Recent, screen: Screen) -> None:
    if not result.results:
        screen.line("no memories")
        if NONE_PASSES not in (result.notice or ""):
            screen.note("`mind add TEXT` stores one")
        return
    for row in result.results:
        start = lead(row.id, row.created_at, type_mark(row.type), screen)
        title = fitted(row.title, LEAST_OF_A_TITLE)
        screen.line(*start, title, *row_labels(row, brief=True), trailing(row.tags))
    row_count = len(result.results)
    screen.line(dim(f"{row_count:,} of {count(result.total, 'memory', 'memories')}, newest first"))
