"""The operations store, search, list and delete of the `memory` tool."""

from enum import StrEnum
from typing import Annotated, TypedDict, Unpack

from mimo.call import Call
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, command
from mimo.errors import AmbiguousId, Invalid, NotFound, SecretDetected, StorageFailed, join_texts
from mimo.frozen import frozen, replace
from mimo.guard.policy import Operation
from mimo.memory.ids import with_handles
from mimo.memory.model import MAX_CONTENT_BYTES, Category, Kind, Record, Sort
from mimo.operations import finding, lookup, overview, removing, saving, searching
from mimo.operations.rows import (
    MEMORY,
    Again,
    Already,
    AlsoFrom,
    AlsoTo,
    BriefQuery,
    BriefTimeFilter,
    Facts,
    File,
    Importance,
    Limit,
    Offset,
    Private,
    SureId,
    Tags,
    facts,
    facts_of_hits,
    file_of,
    matched,
    narrowed,
    relevance,
    view,
)
from mimo.rendering import (
    BELOW,
    LEAST_OF_A_TITLE,
    Screen,
    bad,
    dim,
    fitted,
    good,
    ident,
    path,
    strong,
)
from mimo.rendering.results import (
    age,
    count,
    first_lines,
    lead,
    match_count,
    paged,
    render,
    row_labels,
    tagged,
    trailing,
    write_weak,
)

_BEGINNING = 2_000
"""Characters in a list of an ingested file that is larger than a memory can be."""

Threshold = Annotated[
    float | None,
    Arg(
        "Minimum score (default 0.3, weak matches in `nearest`)",
        agents="search: 0.3 by default",
        ge=0,
        le=1,
    ),
]


class MemorySort(StrEnum):
    """The orders of a list of memories."""

    RECENT = "recent"
    IMPORTANCE = "importance"
    DECAY_SCORE = "decay_score"


@frozen
class Stored:
    """The result of storing a memory."""

    stored: bool = True
    id: str
    embedding_generated: Annotated[bool, Out("Whether searches find it by meaning")]
    already: Already = None
    notice: Omitted[str] = None


@view(
    "id content category score created_at importance tags trust file line source passage excerpt"
    " outcome status warning superseded_by competing private stale weak scope"
)
class FoundMemory(Facts):
    """A memory that matches."""

    category: Category
    score: Annotated[float | None, Out("Probability of an answer, 0 to 1; null in a list")]
    line: Annotated[int, Out("Line of the best passage")]


@frozen
class MemorySearch:
    """The memories that match a query, best first."""

    results: tuple[FoundMemory, ...]
    total_searched: Annotated[int, Out("Number of memories that passed the filters")]
    nearest: Annotated[
        Omitted[tuple[FoundMemory, ...]],
        Out("Weak matches below the threshold, if none was given"),
    ] = None
    notice: Omitted[str] = None


@view(
    "id content category importance decay_score created_at tags protected trust file excerpt"
    " outcome status warning superseded_by competing private stale"
)
class ListedMemory(Facts):
    """A memory in a list."""

    category: Category
    decay_score: Annotated[float, Out("Remaining strength, 0 to 1")]
    protected: Annotated[bool, Out("Whether it never fades", usual=False)]


@frozen
class MemoryList:
    """One page of the memories."""

    memories: tuple[ListedMemory, ...]
    total: Annotated[int, Out("Number of memories that pass the filters, on all pages")]
    offset: int
    limit: int
    notice: Omitted[str] = None


@frozen
class Deleted:
    """The result of deleting a memory."""

    deleted: bool = True
    id: str
    file: File


@command(
    MEMORY,
    operation="store",
    effect=Effect.WRITE,
    needs=Needs(Operation.WRITE, like="mind_add"),
    toolset="memory",
    errors=(Invalid, SecretDetected, StorageFailed),
    examples=('mind memory store "The API allows 100 requests a minute" --tag api',),
)
def store(
    call: Call,
    content: Annotated[str, Arg("What to remember", agents="", stdin=True)],
    *,
    category: Annotated[Category, Arg("Category of the memory", agents="")] = Category.FACT,
    importance: Importance = 0.5,
    tags: Tags = (),
    private: Private = False,
    again: Again = False,
) -> Stored:
    """Store a fact, an observation, an action or a plan"""
    note = saving.draft(Kind(category), content, importance=importance, tags=tags)
    stored = saving.store_once(call, note, private=private, again=again)
    return Stored(
        id=stored.record.memory.id,
        embedding_generated=saving.is_embedded(call, stored.record),
        already=stored.already or None,
        notice=join_texts(stored.notice, call.notice),
    )


class _Filters(TypedDict, total=False):
    """The filters of its searches and lists."""

    category: Annotated[Category | None, Arg("Only this category", agents="")]
    time_filter: BriefTimeFilter
    from_date: AlsoFrom
    to_date: AlsoTo


@command(
    MEMORY,
    operation="search",
    effect=Effect.READ,
    needs=Needs(Operation.READ, like="mind_search"),
    has_budget=True,
    toolset="memory",
    of_user=True,
    errors=(Invalid,),
    examples=('mind memory search "rate limits" --when "last week"',),
    is_long=True,
)
def search(
    call: Call,
    query: BriefQuery,
    *,
    limit: Limit = 10,
    threshold: Threshold = None,
    **filters: Unpack[_Filters],
) -> MemorySearch:
    """Find the memories that best match a query"""
    options = finding.Options(
        filter=narrowed(call, **filters),
        limit=limit,
        threshold=threshold,
        weak=searching.most_weak(call),
    )
    answer = searching.search(call, query, options, with_user=True)
    rows = [
        memory.row(
            FoundMemory,
            **matched(hit, hit.record.memory.text, MAX_CONTENT_BYTES),
            category=memory.type.category,
            score=relevance(hit),
            line=hit.line,
        )
        for hit, memory in zip(answer.hits, facts_of_hits(answer.matches), strict=True)
    ]
    results, nearest = searching.apart(rows, answer, options)
    return MemorySearch(
        results=results,
        nearest=nearest,
        total_searched=answer.considered,
        notice=join_texts(answer.notice, answer.beyond),
    )


@command(
    MEMORY,
    operation="list",
    effect=Effect.READ,
    needs=Needs(Operation.READ, like="mind_list"),
    has_budget=True,
    toolset="memory",
    of_user=True,
    errors=(Invalid,),
    examples=("mind memory list --sort importance --limit 5",),
    is_long=True,
)
def list_memories(
    call: Call,
    *,
    limit: Limit = 20,
    offset: Offset = 0,
    sort: Annotated[MemorySort, Arg("Order of the list", agents="")] = MemorySort.RECENT,
    **filters: Unpack[_Filters],
) -> MemoryList:
    """Browse the memories page by page"""
    options = finding.Options(filter=narrowed(call, **filters), limit=limit, offset=offset)
    if sort is MemorySort.DECAY_SCORE:
        page = overview.strongest_first(call, options)
    else:
        page = finding.listing(call, replace(options, sort=Sort(sort)))
    scores = overview.scores(call, page.records)
    memories = facts(call, page.records, ListedMemory)
    rows = map(_listed, page.records, memories, scores)
    return MemoryList(
        memories=tuple(rows), total=page.total, offset=offset, limit=limit, notice=call.notice
    )


@command(
    MEMORY,
    operation="delete",
    effect=Effect.DESTROY,
    needs=Needs(Operation.WRITE, like="mind_rm"),
    toolset="memory",
    of_user=True,
    errors=(NotFound, AmbiguousId, StorageFailed),
    examples=("mind memory delete k3v7mq",),
)
def delete(call: Call, id: SureId) -> Deleted:
    """Remove a memory; git keeps what was committed

    The id of an ingested file removes all of its chunks, the id of a chunk only that chunk.
    """
    if parts := lookup.source(call, id, surely=True):
        removing.remove_source(call, parts)
        return Deleted(id=parts[0].parent or id, file=file_of(call, parts[0].place.path))
    record = removing.remove(call, id)
    return Deleted(id=record.memory.id, file=file_of(call, record.place.path))


def _listed(record: Record, memory: Facts, strength: overview.Strong) -> ListedMemory:
    text = record.memory.text
    is_long = len(text) > MAX_CONTENT_BYTES
    return memory.row(
        ListedMemory,
        content=text[:_BEGINNING] if is_long else text,
        excerpt=is_long or None,
        category=memory.type.category,
        decay_score=round(strength.score, 4),
        protected=strength.protected,
    )


@render.register
def _(result: Stored, screen: Screen) -> None:
    done = "stored before as " if result.already else "stored "
    screen.line(good("✓ "), done, ident(result.id))


@render.register
def _(result: Deleted, screen: Screen) -> None:
    screen.line(good("✓ "), "deleted ", ident(result.id))


@render.register
def _(result: MemorySearch, screen: Screen) -> None:
    for row in result.results:
        head, _, tail = row.content.strip().partition("\n")
        when = dim(f"  {age(row.created_at, screen)}")
        screen.line(ident(row.id), "  ", strong(head), when, *row_labels(row))
        if screen.setting.details:
            score = "" if row.score is None else f"{row.score:.2f}  "
            facts = f"{score}{row.category}  {tagged(row.tags)}"
            screen.line(fitted(dim(facts)), indent=BELOW)
            screen.line(path(f"{row.file}:{row.line}"), indent=BELOW)
        for warning in filter(None, (row.warning, row.stale)):
            screen.line(bad(with_handles(warning)), indent=BELOW)
        if tail.strip():
            screen.text(first_lines(tail.strip()), indent=BELOW)
    for row in result.nearest or ():
        head = row.content.strip().partition("\n")[0]
        write_weak(row, head, row.created_at, screen)
    searched = count(result.total_searched, "memory", "memories")
    matches = match_count(len(result.results), len(result.nearest or ()))
    screen.line(dim(f"{matches} in {searched}"))


@render.register
def _(result: MemoryList, screen: Screen) -> None:
    for row in result.memories:
        head = next((line for line in row.content.splitlines() if line.strip()), "")
        title = fitted(head, LEAST_OF_A_TITLE)
        start = lead(row.id, row.created_at, f"{row.category:<11}", screen)
        screen.line(*start, title, *row_labels(row, brief=True), trailing(row.tags))
        if screen.setting.details:
            facts = f"importance {row.importance:g}  strength {row.decay_score:.2f}"
            screen.line(dim(facts), indent=BELOW)
    row_count = len(result.memories)
    screen.line(dim(paged(row_count, result.total, result.offset, "memory", "memories")))
