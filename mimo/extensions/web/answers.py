"""The answers of the viewer: its own queries, which pass `invoke` like any command.

They are not in the table of commands. Each is bound by the rules of the command that gives the same
access, and none counts as a use of a memory: looking at a list keeps nothing from fading.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Unpack

from mimo.api import (
    MAX_DEPTH,
    SUPERSEDES,
    AmbiguousId,
    Arg,
    Call,
    Edge,
    EdgeFacts,
    EdgeProblem,
    Effect,
    Facts,
    Filter,
    Hit,
    Invalid,
    Kind,
    Link,
    Needs,
    NotFound,
    Omitted,
    Operation,
    Out,
    Record,
    SearchFailed,
    Surface,
    TrustLabel,
    after_title,
    closed_as,
    command,
    earlier,
    edge_problems,
    edge_row,
    finding,
    frozen,
    handle_of,
    heading,
    join_texts,
    lookup,
    matching_words,
    outcomes,
    refresh,
    replace,
    rows,
    searching,
    sources,
    survey,
    topic_key,
)

MOST_LINKS = 200
"""Memories around one that its page names."""

_MOST_TAGS = 60
_PASSAGE = 600
"""Characters of a passage in a list of matches."""
_ABOUT = 240
"""Characters of a text below a title."""


@rows.view(
    "id handle type title topic tags created_at by outcome warning superseded_by competing private"
    " trust stale file line scope"
)
class Row(Facts):
    """A memory in a list."""

    handle: Annotated[str, Out("Six letters by which commands name it")]
    about: Omitted[str] = None
    """Its reason, or the next line of its text after the title."""
    closed: Omitted[str] = None
    """The status of a closed issue or plan."""
    parent: Omitted[str] = None
    """The id of the ingested file that it is a part of."""
    origin: Omitted[str] = None
    """The path of that file."""


@frozen
class Rows:
    """One page of a list."""

    memories: tuple[Row, ...]
    total: int
    offset: int


@frozen
class Match:
    """A memory that matches a query, and its best passage."""

    memory: Row
    passage: str
    words: tuple[str, ...]
    """The words of title and passage that match."""
    relevance: float | None
    weak: rows.Weak = None


@frozen
class Matches:
    """The memories that match a query, best first."""

    query: str
    matches: tuple[Match, ...]
    notice: Omitted[str] = None


@frozen
class Arc:
    """A link; `source` is the memory that holds it."""

    source: str
    target: str
    type: str


@frozen
class Neighbour:
    """A link of a memory, with the memory at its other end."""

    id: str
    type: str
    incoming: bool
    """True if the other memory holds the link."""
    memory: Omitted[Row] = None
    """None if no memory has that id."""


@rows.view("importance confidence category source status content sections extra")
class Page(Facts):
    """A whole memory."""

    memory: Row
    status: Omitted[str]
    links: tuple[Neighbour, ...] = ()
    versions: tuple[Row, ...] = ()
    """The memories that supersede each other, newest first, with this one among them."""
    arcs: tuple[Arc, ...] = ()
    """The links by which they supersede each other."""
    parts: tuple[Row, ...] = ()
    """The parts of an ingested file."""
    digest: Omitted[str] = None
    """The digest of the text that an approval is of; None in a report."""
    others: Omitted[tuple[str, ...]] = None
    """The texts of the other memories in an unapproved file, which an approval covers, too."""


@frozen
class Chain:
    """The decisions on a topic, newest first."""

    topic: str
    versions: tuple[Row, ...]
    links: tuple[Arc, ...]


@frozen
class Chains:
    """Some of the topics, the most recently decided first."""

    chains: tuple[Chain, ...]
    total: int
    offset: int


@rows.view("id title description workaround severity source stack_tags trust file line")
class Pitfall(EdgeFacts):
    """A known pitfall."""


@frozen
class Pitfalls:
    """All pitfalls, the most severe first."""

    pitfalls: tuple[Pitfall, ...]
    problems: tuple[EdgeProblem, ...] = ()


@frozen
class Overview:
    """The size and the vocabulary of a project's memory."""

    project: str
    zone: Annotated[str, Out("The name of the zone in which days are shown")]
    total: int
    types: dict[str, int]
    tags: dict[str, int]
    sessions: bool
    """True if the user keeps earlier sessions, which have a view."""
    months: dict[str, int]
    """The number of memories created in each month, such as 2026-11."""


@frozen
class Topic:
    """The ids of the decisions on a topic, newest first."""

    topic: str
    ids: tuple[str, ...]


@frozen
class Contents:
    """Everything that a report holds."""

    project: str
    pages: tuple[Page, ...]
    chains: tuple[Topic, ...]
    pitfalls: tuple[Pitfall, ...]
    """Those of the project; the user's own are not part of it."""


_answer = partial(command, effect=Effect.READ, toolset="extra", surfaces=Surface.CLI)


def _like(tool: str) -> Needs:
    return Needs(Operation.READ, like=tool)


TrustFilter = Annotated[TrustLabel | None, Arg("Only memories that are, or are not, approved")]


@_answer("web_overview", needs=_like("mind_list"))
def overview(call: Call) -> Overview:
    """Return the size and the vocabulary of the memory"""
    index = refresh.up_to_date(call)
    types = {kind.value: number for kind, number in index.ask(survey.by_type).items()}
    return Overview(
        project=call.mind.project.name,
        zone=call.mind.zone_name,
        total=index.count(Filter()),
        types=dict(sorted(types.items())),
        sessions=earlier.sessions_of(call.mind) is not None,
        tags=dict(index.ask(survey.tags, _MOST_TAGS)),
        months=index.ask(survey.months, call.mind.zone),
    )


@_answer("web_list", needs=_like("mind_list"), errors=(Invalid,))
def list_(
    call: Call,
    *,
    trust: TrustFilter = None,
    limit: rows.Limit = 50,
    offset: rows.Offset = 0,
    **filters: Unpack[rows.Filters],
) -> Rows:
    """Return one page of the memories, newest first"""
    conditions = _narrowed(call, trust, **filters)
    page = finding.listing(call, finding.Options(filter=conditions, limit=limit, offset=offset))
    return Rows(memories=_rows(call, page.records), total=page.total, offset=offset)


@_answer("web_search", needs=_like("mind_search"), errors=(Invalid, SearchFailed))
def search(
    call: Call,
    query: rows.Query,
    *,
    trust: TrustFilter = None,
    limit: rows.Limit = 30,
    **filters: Unpack[rows.Filters],
) -> Matches:
    """Return the memories that match a query, best first"""
    conditions = _narrowed(call, trust, **filters)
    options = finding.Options(filter=conditions, limit=limit, weak=searching.OF_PEOPLE)
    answer = searching.search(call, query, options, counted=False, with_user=True)
    hits = answer.matches
    by_id = {
        (owner, row.id): row
        for owner in {owner for owner, _ in hits}
        for row in _rows(owner, [hit.record for holder, hit in hits if holder is owner])
    }
    matches = tuple(_match(hit, by_id[owner, hit.record.memory.id], query) for owner, hit in hits)
    notice = join_texts(answer.notice, answer.beyond)
    return Matches(query=query, matches=matches, notice=notice)


def _match(hit: Hit, memory: Row, query: str) -> Match:
    passage = hit.passage[:_PASSAGE]
    return Match(
        memory=memory,
        passage=passage,
        words=tuple(matching_words(f"{memory.title}\n{memory.about or ''}\n{passage}", query)),
        relevance=rows.relevance(hit),
        weak=searching.is_weak(hit),
    )


def _narrowed(call: Call, trust: TrustLabel | None, **filters: Unpack[rows.Filters]) -> Filter:
    return replace(
        rows.narrowed(call, **filters),
        approved=trust is TrustLabel.TRUSTED,
        unapproved=trust is TrustLabel.UNTRUSTED,
    )


@_answer(
    "web_page", needs=_like("mind_show"), of_user=True, errors=(Invalid, NotFound, AmbiguousId)
)
def page(call: Call, id: rows.Id) -> Page:
    """Return a whole memory, with its links and the versions that supersede each other"""
    index = refresh.up_to_date(call)
    if parts := lookup.source(call, id):
        return _outline(call, parts)
    record = index.named(id) or lookup.one(call, id)
    own_id = record.memory.id
    around = finding.linked(call, (own_id,), depth=1, limit=MOST_LINKS)
    chain = finding.linked(call, (own_id,), depth=MAX_DEPTH, types=(SUPERSEDES,))
    neighbours = [node.record for node in around.nodes]
    versions = chain.newest_first() if len(chain.nodes) > 1 else []
    records = [record, *neighbours, *versions]
    memories = rows.facts(call, records, Row)
    by_id = {row.id: row for row in map(_row, records, memories)}
    incoming = [
        Neighbour(id=edge.source, type=edge.type, incoming=True, memory=by_id.get(edge.source))
        for edge in around.edges
        if edge.target == own_id and edge.source != own_id
    ]
    outgoing = [_outgoing(call, record, link, by_id) for link in record.memory.links]
    return _page(
        memories[0],
        by_id[own_id],
        links=(*outgoing, *incoming),
        versions=tuple(by_id[version.memory.id] for version in versions),
        arcs=tuple(
            Arc(source=edge.source, target=edge.target, type=edge.type) for edge in chain.edges
        ),
        digest=record.place.digest,
        others=None
        if call.mind.trust.trusted(record.place.approval)
        else lookup.texts_beside(call, record) or None,
    )


@_answer("web_chains", needs=_like("search/by_topic"))
def chains(
    call: Call,
    *,
    text: Annotated[str, Arg("Only topics or titles that contain this text")] = "",
    limit: rows.Limit = 50,
    offset: rows.Offset = 0,
) -> Chains:
    """Return the decisions by topic, with what supersedes what"""
    conditions = Filter(types=frozenset({Kind.DECISION}))
    decisions = finding.listing(call, finding.Options(filter=conditions)).records
    words = text.casefold()
    listed = [
        group
        for group in _groups(decisions)
        if any(words in f"{r.memory.topic or ''} {r.memory.heading}".casefold() for r in group)
    ]
    some = listed[offset : offset + limit]
    by_id = {row.id: row for row in _rows(call, [record for group in some for record in group])}
    return Chains(
        chains=tuple(_chain(group, by_id) for group in some), total=len(listed), offset=offset
    )


@_answer("web_pitfalls", needs=_like("mind_edges"), needs_project=False)
def pitfalls(call: Call) -> Pitfalls:
    """Return all pitfalls, and the problems with their files"""
    edges = sources.all_edges(call)
    return Pitfalls(
        pitfalls=tuple(edge_row(edge, Pitfall) for edge in sorted(edges, key=_severe)),
        problems=edge_problems(call, edges),
    )


@_answer("web_contents", needs=_like("mind_list"))
def contents(
    call: Call,
    *,
    untrusted: Annotated[bool, Arg("Also memories that are not approved")] = False,
    private: Annotated[bool, Arg("Also private memories")] = False,
) -> Contents:
    """Return every memory for a report"""
    conditions = Filter(approved=not untrusted, shared=not private)
    records = finding.listing(call, finding.Options(filter=conditions)).records
    ordered = sorted(records, key=lambda record: record.memory.id)
    ordered.sort(key=lambda record: record.memory.created, reverse=True)
    memories = rows.facts(call, ordered, Row, shared=not private)
    # A report that leaves unapproved memories out names none of them.
    by_id = {
        record.memory.id: replace(_row(record, memory), warning=outcomes.warning(record.memory))
        for record, memory in zip(ordered, memories, strict=True)
    }
    pages = tuple(
        _page(
            memory,
            by_id[memory.id],
            links=tuple(_links_within(call, record, by_id, shared=not private)),
        )
        for record, memory in zip(ordered, memories, strict=True)
    )
    decisions = [record for record in ordered if record.memory.type is Kind.DECISION]
    return Contents(
        project=call.mind.project.name,
        pages=pages,
        chains=tuple(
            Topic(topic=_topic(group, by_id), ids=tuple(record.memory.id for record in group))
            for group in _groups(decisions)
        ),
        pitfalls=tuple(
            edge_row(edge, Pitfall)
            for edge in sorted(
                sources.project_edges(call, shared=not private),
                key=lambda edge: (_severe(edge), edge.id),
            )
            if untrusted or edge.trusted
        ),
    )


def _severe(edge: Edge) -> tuple[int, str]:
    return edge.severity.rank, edge.title


def _rows(call: Call, records: Sequence[Record]) -> tuple[Row, ...]:
    return tuple(map(_row, records, rows.facts(call, records, Row)))


def _row(record: Record, memory: Facts) -> Row:
    text = memory.reasoning or after_title(memory.content, memory.title)
    return memory.row(
        Row,
        handle=handle_of(memory.id),
        about=heading(None, text, "", _ABOUT) or None,
        closed=closed_as(memory.type, memory.status),
        parent=record.parent,
        origin=record.origin if record.parent else None,
    )


def _page(memory: Facts, row: Row, **fields: object) -> Page:
    return memory.row(Page, memory=row, status=memory.stated_status, **fields)


def _outline(call: Call, parts: Sequence[Record]) -> Page:
    """Returns an ingested file as a page with its text, which lists its parts."""
    memories = rows.facts(call, parts, Row)
    listed = tuple(map(_row, parts, memories))
    head = listed[0]
    id, title = head.parent or "", head.origin or ""
    row = replace(head, id=id, handle=handle_of(id), title=title, line=1, parent=None)
    text = "\n\n".join(part.memory.content for part in parts)
    return _page(
        memories[0],
        row,
        content=text,
        sections={},
        extra={},
        parts=listed,
        digest=parts[0].place.digest,
    )


def _outgoing(
    call: Call, source: Record, link: Link, by_id: dict[str, Row], *, shared: bool = False
) -> Neighbour:
    row = by_id.get(link.to)
    if row is None:
        record = call.index.named(link.to, near=source.place.path, shared=shared)
        row = by_id.get(record.memory.id) if record else None
    return Neighbour(id=row.id if row else link.to, type=link.type, incoming=False, memory=row)


def _links_within(
    call: Call, record: Record, by_id: dict[str, Row], *, shared: bool
) -> Iterator[Neighbour]:
    """Yields the links of a memory in a report, without those to memories that it leaves out.

    An id contains words of the topic or the title. A link to no memory stays.
    """
    for link in record.memory.links:
        neighbour = _outgoing(call, record, link, by_id, shared=shared)
        if neighbour.memory or call.index.named(link.to, near=record.place.path) is None:
            yield neighbour


def _groups(decisions: Iterable[Record]) -> list[list[Record]]:
    """Returns decisions, newest first, by topic; one without a topic joins one it supersedes."""
    topics: dict[str, list[Record]] = {}
    for record in decisions:
        key = topic_key(record.memory.topic or "") or f"\0{record.memory.id}"
        topics.setdefault(key, []).append(record)
    home = {record.memory.id: key for key, group in topics.items() for record in group}
    # Oldest first, so that a chain without a topic grows from its beginning.
    for key in [key for key in reversed(topics) if key.startswith("\0")]:
        (record,) = topics[key]
        for link in record.memory.links:
            target = home.get(link.to)
            if link.type == SUPERSEDES and target is not None and target != key:
                topics[target].insert(0, record)
                home[record.memory.id] = target
                del topics[key]
                break
    groups = [sorted(group, key=_newest, reverse=True) for group in topics.values()]
    return sorted(groups, key=lambda group: _newest(group[0]), reverse=True)


def _newest(record: Record) -> tuple[datetime, str]:
    return record.memory.created, record.memory.id


def _chain(group: Sequence[Record], by_id: dict[str, Row]) -> Chain:
    ids = {record.memory.id for record in group}
    return Chain(
        topic=_topic(group, by_id),
        versions=tuple(by_id[record.memory.id] for record in group),
        links=tuple(
            Arc(source=record.memory.id, target=link.to, type=link.type)
            for record in group
            for link in record.memory.links
            if link.to in ids
        ),
    )


def _topic(group: Sequence[Record], by_id: dict[str, Row]) -> str:
    topics = (record.memory.topic for record in group if record.memory.topic)
    return next(topics, by_id[group[0].memory.id].title)
