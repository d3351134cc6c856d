"""`mind show` and `mind list`: reading memories."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Unpack

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Json, Omitted, Out, command, notes_of
from mimo.errors import AmbiguousId, Invalid, NotFound, join_texts
from mimo.frozen import frozen, replace
from mimo.memory.ids import with_handles
from mimo.memory.model import Filter, Link, Record, Sort
from mimo.operations.rows import (
    NONE_PASSES,
    NORMAL_IMPORTANCE,
    At,
    Facts,
    Filters,
    Group,
    Limit,
    Offset,
    OfUser,
    Reference,
    TrustLabel,
    Untrusted,
    facts,
    narrowed,
    untrusted,
    view,
)
from mimo.rendering import (
    BELOW,
    LEAST_OF_A_TITLE,
    Screen,
    bad,
    dim,
    fitted,
    ident,
    path,
    strong,
    warn,
)
from mimo.rendering.results import (
    count,
    day,
    lead,
    minute,
    paged,
    render,
    row_labels,
    row_warnings,
    tagged,
    trailing,
    type_mark,
    without_title,
)
from mimo.text.clean import exposed

if TYPE_CHECKING:
    from mimo.operations.finding import Options, Page


@frozen
class LinkRow:
    """A link to another memory."""

    to: str
    type: str
    title: Annotated[str | None, Out("Title of the other memory; null if it is missing")]
    trust: Untrusted = None


_LIMIT = 50


@view(
    "id type title content topic tags importance confidence outcome status category source by"
    " created_at updated_at sections links warning superseded_by competing extra private trust file"
    " line stale scope"
)
class MemoryDetails(Facts):
    """A whole memory."""

    tags: tuple[str, ...]
    status: Omitted[str]
    links: tuple[LinkRow, ...]
    private: bool
    digest: Annotated[
        Omitted[str], Out("Digest of an unapproved text, for `mind trust --digest`")
    ] = None
    others: Annotated[
        Omitted[tuple[str, ...]],
        Out("Texts of the other memories in the unapproved file, which an approval covers, too"),
    ] = None


@view(
    "id type title tags importance created_at trust file outcome status warning superseded_by"
    " competing private stale scope"
)
class MemoryRow(Facts):
    """A memory in a list."""

    project: Annotated[Omitted[str], Out("Name of the project, in a list of all")] = None
    chunks: Annotated[
        Omitted[int], Out("Number of chunks of an ingested file, whose id the row has")
    ] = None


@frozen
class MemoryRows:
    """One page of the memories."""

    memories: tuple[MemoryRow, ...]
    total: Annotated[
        int,
        Out("Number of rows that pass the filters, on all pages; an ingested file is one of them"),
    ]
    offset: int
    chunks: Annotated[Omitted[int], Out("Number of chunks in the ingested files, on all pages")] = (
        None
    )
    unreadable: Annotated[Omitted[int], Out("Files that could not be read")] = None
    notice: Annotated[Omitted[str], Out("The revision and the days shown")] = None
    ids_only: Annotated[Omitted[bool], Out("True if only the ids are printed")] = None


@command(
    "mind_show",
    cli="show",
    effect=Effect.READ,
    has_budget=True,
    toolset="extra",
    of_user=True,
    errors=(Invalid, NotFound, AmbiguousId),
    examples=("mind show k3v7mq", "mind show auth_strategy", "mind show k3v7mq --at v1.2"),
)
def show(
    call: Call,
    id: Annotated[str, notes_of(Reference)[0]._replace(several=True)],
    *,
    at: At = None,
) -> MemoryDetails:
    """Show a whole memory, or several

    The id of an ingested file shows an outline of its chunks. If no id matches, or only the
    beginning of one, the newest current decision on that topic is shown, or else the only memory
    with that title, file name or alias.
    """
    from mimo.operations import lookup, past

    call = past.at(call, at).call if at is not None else call
    if parts := lookup.source(call, id, topics=True):
        return _outline(call, parts)
    record = lookup.meant(call, id)
    call.count_uses([record])
    memory, digest = record.memory, _to_approve(call, record)
    return facts(call, [record], MemoryDetails)[0].row(
        MemoryDetails,
        status=memory.status,
        updated_at=lookup.updated_at(call, record),
        links=tuple(dict.fromkeys(_link(call, link, record.place.path) for link in memory.links)),
        private=record.place.private or call.mind.is_users,
        digest=digest,
        others=(lookup.texts_beside(call, record) or None) if digest else None,
    )


def _to_approve(call: Call, record: Record) -> str | None:
    """Returns the digest of a text that a person can approve; None for an agent."""
    is_open = call.agent is None and not call.mind.trust.trusted(record.place.approval)
    return record.place.digest if is_open else None


def _link(call: Call, link: Link, path: str) -> LinkRow:
    """Returns a link of the memory in a file, with the memory that it leads to."""
    record = call.index.named(link.to, near=path)
    if record is None:
        return LinkRow(to=link.to, type=link.type, title=None)
    id, trust = record.memory.id, untrusted(call, record)
    return LinkRow(to=id, type=link.type, title=record.memory.heading, trust=trust)


def _outline(call: Call, parts: tuple[Record, ...]) -> MemoryDetails:
    """Returns an ingested file as a memory whose content is an outline of its chunks."""
    from mimo.operations import lookup

    top_part = parts[0]
    digest = _to_approve(call, top_part)
    head, extra = call.mind.store.source(top_part.place), top_part.memory.extra
    details: dict[str, Json] = {"strategy": extra["strategy"], "chunks": len(parts)}
    if head:
        details |= {"sha256": head.sha256} | dict(head.metadata)
    lines = [
        f"- `{part.memory.id}` lines {part.memory.extra['lines']}: {part.memory.heading}"
        for part in parts
    ]
    return facts(call, [top_part], MemoryDetails)[0].row(
        MemoryDetails,
        id=top_part.parent or "",
        title=top_part.origin,
        content="\n".join(lines),
        outcome=None,
        status=None,
        source=top_part.origin,
        updated_at=lookup.updated_at(call, top_part),
        sections={},
        links=(),
        warning=None,
        superseded_by=None,
        extra=details,
        private=top_part.place.private or call.mind.is_users,
        line=1,
        digest=digest,
        others=tuple(lookup.written(part.memory) for part in parts) if digest else None,
    )


@command(
    "mind_list",
    cli="list",
    effect=Effect.READ,
    has_budget=True,
    toolset="extra",
    of_user=True,
    errors=(Invalid, NotFound),
    examples=(
        "mind list --type decision",
        "mind list --tag api --when 'this week'",
        "mind list --user",
        "mind list --untrusted",
        "mind list --all-projects --when today",
        "mind list --tag draft --ids",
    ),
    is_long=True,
)
def list_(
    call: Call,
    *,
    limit: Limit = _LIMIT,
    offset: Offset = 0,
    sort: Annotated[Sort, Arg("Order of the list")] = Sort.RECENT,
    private: Annotated[bool, Arg("Only private memories, which git does not get")] = False,
    untrusted: Annotated[bool, Arg("Only memories that are not approved here")] = False,
    all_projects: Annotated[bool, Arg("Memories of all registered projects")] = False,
    at: At = None,
    everywhere: OfUser = False,
    chunks: Annotated[bool, Arg("List the chunks of ingested files one by one")] = False,
    group: Group = None,
    ids: Annotated[
        bool, Arg("Print only ids, of all memories that pass", surfaces=Surface.CLI)
    ] = False,
    **filters: Unpack[Filters],
) -> MemoryRows:
    """List the memories, newest first

    An ingested file is one row with the number of its chunks that pass, unless chunks are listed.
    In a list of all projects, each other project is asked as its own policy permits. Its private
    memories are listed only to people who ask for them.
    """
    from mimo.operations import finding, past

    is_outside = call.mind.is_users and not everywhere
    notice = "no project here; this is your memory for all projects" if is_outside else None
    all_projects = all_projects or group is not None
    if all_projects and (at is not None or everywhere):
        raise Invalid(
            "`all_projects` lists the present memories of projects",
            hint="leave out `at` and `user`",
        )
    if at is not None:
        state = past.at(call, at)
        call, notice = state.call, state.label
    conditions = narrowed(call, private=private, untrusted=untrusted, **filters)
    limit = sys.maxsize if ids and limit == _LIMIT else limit
    options = finding.Options(filter=conditions, sort=sort, limit=limit, offset=offset)
    if all_projects:
        page = _of_projects(call, options, group, private=private, chunks=chunks)
    else:
        page = _of_project(call, options, notice, chunks=chunks)
    return replace(page, ids_only=True) if ids else page


def _of_project(call: Call, options: "Options", notice: str | None, *, chunks: bool) -> MemoryRows:
    """Returns one page of the memories of the project, with a notice beside it."""
    from mimo.operations import finding, lookup, refresh

    page = finding.listing(call, options) if chunks else finding.folded(call, options)
    of_edges = lookup.edges_notice(call, options.filter.types)
    reason = NONE_PASSES if not page.total and options.filter != Filter() else None
    return MemoryRows(
        memories=tuple(_rows(page, facts(call, page.records, MemoryRow))),
        total=page.total,
        offset=options.offset,
        chunks=page.all_chunks or None,
        unreadable=len(refresh.problems(call)) or None,
        notice=join_texts(notice, call.notice, of_edges, reason),
    )


def _of_projects(
    call: Call, options: "Options", group: str | None, *, private: bool, chunks: bool
) -> MemoryRows:
    """Returns one page of the memories of all registered projects."""
    from mimo.operations import across, finding
    from mimo.operations.disclosure import hides_private

    end = min(options.offset + options.limit, sys.maxsize)
    base = replace(options, offset=0, limit=end)
    filtered = replace(options.filter, private=private)  # `mind` may be the user's own memory.
    shared = replace(base, filter=replace(filtered, shared=True))

    def listed(target: Call, here: bool) -> tuple[finding.Page, list[MemoryRow]]:
        is_hidden = hides_private(call, is_here=here, is_asked=private)
        request = base if here else shared if is_hidden else replace(base, filter=filtered)
        page = finding.listing(target, request) if chunks else finding.folded(target, request)
        rows = facts(target, page.records, MemoryRow, shared=is_hidden)
        return page, list(_rows(page, rows))

    answers, skipped = across.ask_each(call, "mind_list", listed, group=group)
    rows = [replace(row, project=name) for name, _, (_, some) in answers for row in some]
    rows.sort(key=lambda row: row.created_at, reverse=True)
    if options.sort is Sort.IMPORTANCE:
        rows.sort(key=lambda row: row.importance, reverse=True)
    return MemoryRows(
        memories=tuple(rows[options.offset : options.offset + options.limit]),
        total=sum(page.total for _, _, (page, _) in answers),
        offset=options.offset,
        chunks=sum(page.all_chunks for _, _, (page, _) in answers) or None,
        notice=join_texts(*skipped, call.notice),
    )


def _rows(page: "Page", memories: Sequence[Facts]) -> Iterator[MemoryRow]:
    """Yields the rows of memories, and of the ingested files that their first chunks represent."""
    for record, memory in zip(page.records, memories, strict=True):
        if (id := record.parent) is not None and id in page.chunks:
            yield memory.row(MemoryRow, id=id, title=record.origin, chunks=page.chunks[id])
        else:
            yield memory.row(MemoryRow)


@render.register
def _(result: MemoryDetails, screen: Screen) -> None:
    write: Callable[[str], None] = screen.markdown
    if result.trust is TrustLabel.UNTRUSTED:
        # A person may approve it as it is shown. Formatted Markdown hides comments, for example.
        result, write = exposed(result), screen.text
    screen.line(strong(result.title), *row_labels(result))
    for warning in row_warnings(result, result.stale):
        screen.line(bad(with_handles(warning)), indent=2)
    _facts(result, screen)
    if result.extra:
        # Separate from our own rows: any author can write `trust: trusted` into a header.
        screen.line(dim("other fields:"), indent=2)
        listed = [
            (key, ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
            for key, value in result.extra.items()
        ]
        screen.pairs(listed, indent=4)
    sections = [f"## {name}\n\n{text}" for name, text in result.sections.items()]
    is_outline = "chunks" in result.extra and not result.content.startswith("#")
    content = with_handles(result.content) if is_outline else result.content
    if result.trust is TrustLabel.TRUSTED:
        content = without_title(content, result.title)
    if body := "\n\n".join(part for part in (content, *sections) if part):
        screen.blank()
        write(body)
    if result.others:
        screen.blank()
        screen.line(warn(f"an approval covers these texts of {result.file}, too:"))
    for text in result.others or ():
        screen.blank()
        screen.text(text, indent=2)


def _facts(result: MemoryDetails, screen: Screen) -> None:
    """Writes what is known about a memory, the facts that it has in few lines."""
    stamp = minute(result.created_at)
    by = f" by {result.by}" if result.by else ""
    # All of an unapproved one is to be read.
    fit = fitted if result.trust is TrustLabel.TRUSTED else lambda part: part
    tags = fit(dim(f"  {tagged(result.tags)}" if result.tags else ""))
    screen.line(ident(result.id), "  ", result.type, dim(f"  {stamp}{by}"), tags, indent=2)
    rows = [
        ("topic", result.topic),
        ("status", result.status),
        ("category", result.category),
        ("source", result.source),
        (
            "importance",
            None if result.importance == NORMAL_IMPORTANCE else f"{result.importance:g}",
        ),
        ("confidence", None if result.confidence is None else f"{result.confidence:g}"),
    ]
    summary = "  ".join(f"{name} {value}" for name, value in rows if value)
    if summary:
        screen.line(fit(dim(summary)), indent=2)
    screen.line(path(f"{result.file}:{result.line}"), indent=2)
    for link in result.links:
        title = fit(f"  {link.title}") if link.title else warn("  missing")
        target = ident(link.to) if link.title else link.to
        screen.line(dim(f"{link.type} "), target, title, indent=2)


@render.register
def _(result: MemoryRows, screen: Screen) -> None:
    if result.ids_only:
        for row in result.memories:
            screen.line(ident(row.id))
        return
    if result.unreadable:
        files = count(result.unreadable, "file")
        screen.note(f"{files} could not be read; `mind doctor` lists them")
    if not result.total:
        screen.line("no memories")
        if NONE_PASSES not in (result.notice or ""):
            screen.note("`mind add TEXT` stores one")
        return
    for row in result.memories:
        _write(row, screen)
    row_count = len(result.memories)
    are_folded = any(row.chunks for row in result.memories)
    chunks = count(result.chunks, "chunk") if result.chunks else ""
    part = paged(row_count, result.total, result.offset, "memory", "memories")
    screen.line(dim(part))
    if are_folded:
        screen.line(dim(f"the files have {chunks}; to list them: --chunks"))


def _write(row: MemoryRow, screen: Screen) -> None:
    mark = "file" if row.chunks else type_mark(row.type)
    chunks = dim(f"  {count(row.chunks, 'chunk')}" if row.chunks else "")
    place = dim(f"  {row.project}" if row.project else "")
    title = fitted(row.title, LEAST_OF_A_TITLE)
    marks = row_labels(row, brief=not screen.setting.details)
    start = lead(row.id, row.created_at, mark, screen)
    screen.line(*start, title, chunks, *marks, place, trailing(row.tags))
    if not screen.setting.details:
        return
    is_set = row.importance != NORMAL_IMPORTANCE
    importance = f"  importance {row.importance:g}" if is_set else ""
    screen.line(dim(f"{row.type}  {day(row.created_at)}{importance}"), indent=BELOW)
    screen.line(path(row.file), indent=BELOW)
    for warning in row_warnings(row, row.stale):
        screen.line(bad(with_handles(warning)), indent=BELOW)
