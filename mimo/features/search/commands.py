"""`mind search`: finds memories by meaning and by words."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Unpack

from mimo.call import Call, Surface
from mimo.call.extensions import loaded, scopes
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import Command, Denied, Hint, Invalid, NotFound, SearchFailed, join_texts
from mimo.frozen import frozen, replace
from mimo.index.rows import Hit
from mimo.memory.ids import HANDLE_LENGTH, begins_handle, handle_of, with_handles
from mimo.memory.model import KIND_ALIASES, Filter, Kind, Section
from mimo.operations import finding, searching
from mimo.operations.rows import (
    NONE_PASSES,
    At,
    ClientMemory,
    Facts,
    Filters,
    Group,
    Limit,
    Query,
    QuotedSession,
    TrustLabel,
    facts_of_hits,
    matched,
    narrowed,
    relevance,
    view,
)
from mimo.operations.rows import row_of as plain_row
from mimo.rendering import BELOW, Screen, bad, dim, fitted, ident, path, strong
from mimo.rendering.results import (
    LINES,
    after_title,
    age,
    because_of,
    count,
    day,
    first_lines,
    match_count,
    render,
    row_labels,
    row_warnings,
    tagged,
    write_weak,
)
from mimo.text.tokens import excerpt, matching_words

MOST_CONTENT = 2_000
"""Characters of a memory that is returned whole; of a longer one the best passage is."""

_EMPTY = "the memory is empty"
_SHOWS_IT = " shows it"
_OUTSIDE = "no project here; your memory for all projects was searched"

_PASSAGE = 240
"""Characters of a result that are printed; `mind show` prints all."""

Threshold = Annotated[
    float | None,
    Arg(
        "Minimum relevance (default 0.3, and some weak ones below)",
        listed=False,
        ge=0,
        le=1,
    ),
]


class Scope(StrEnum):
    """The projects to search."""

    PROJECT = "project"
    ALL = "all"


@view(
    "id type title content reasoning project source_file source_line confidence relevance date tags"
    " trust scope source passage excerpt outcome status warning superseded_by competing private"
    " stale weak"
)
class SearchResult(Facts):
    """A memory that matches."""

    type: Annotated[str, Out("Its type, by the name that `types` gives it")]  # type: ignore[assignment] # wider
    reasoning: str | None
    project: Annotated[str, Out("Name of the project")]
    source_file: Annotated[str, Out("Its file, relative to the project")]
    source_line: Annotated[int, Out("Line of the best passage, from 1")]
    confidence: Annotated[float, Out("Confidence that the memory itself states, 0 to 1", usual=1.0)]
    relevance: Annotated[float | None, Out("Probability of an answer, 0 to 1; null in a list")]
    date: datetime
    scope: Annotated[
        Omitted[str],
        Out("`user`: of the user's own memory"),
    ] = None


@frozen
class SearchResults:
    """The memories that match a query, best first."""

    query: str
    total: Annotated[int, Out("Number of results")]
    results: tuple[SearchResult, ...]
    sessions: Annotated[
        Omitted[tuple[QuotedSession, ...]], Out("Earlier sessions, which are not results")
    ] = None
    client_memories: Annotated[
        Omitted[tuple[ClientMemory, ...]], Out("Memories of clients, which are not results")
    ] = None
    notice: Omitted[str] = None


@command(
    "mind_search",
    cli="search",
    effect=Effect.READ,
    has_budget=True,
    toolset="search",
    needs_project=False,
    of_user=True,
    errors=(Invalid, NotFound, SearchFailed),
    examples=(
        "mind search why did we choose JWT",
        'mind search "rate limit" --type decision --when "last month"',
        "mind search --scope all safari cookies",
        "mind search --group work safari cookies",
        "mind search --at v1.2 rate limit",
    ),
    is_long=True,
    description="""\
Semantic search across memories. Use when CLAUDE.md context isn't enough. At most twice a turn.""",
    title="Search memories",
)
def search(
    call: Call,
    query: Query,
    *,
    scope: Annotated[
        str,
        Arg(
            "This project or all registered ones",
            agents="",
            scopes=tuple(Scope),
        ),
    ] = Scope.PROJECT,
    limit: Limit = 10,
    threshold: Threshold = None,
    at: At = None,
    private: Annotated[
        bool,
        Arg("With --scope all, also private memories of other projects", surfaces=Surface.CLI),
    ] = False,
    everywhere: Annotated[
        bool, Arg("Only your memory for all projects", wire="user", surfaces=Surface.CLI)
    ] = False,
    group: Group = None,
    **filters: Unpack[Filters],
) -> SearchResults:
    """Find memories by meaning and by words

    Filters are applied before the limit. A superseded memory is listed below its successor, and a
    failed decision is marked. The user's memory for all projects is searched too. With `--scope
    all`, each other project is searched as its own policy permits, without its private memories.
    """
    scope = Scope.ALL if group is not None else scope
    _check(call, scope, at, private=private, everywhere=everywhere)
    call, revision = (call, None) if at is None else _at(call, at)
    conditions, types = narrowed(call, **filters), filters.get("types", ())
    weak = searching.most_weak(call)
    options = finding.Options(filter=conditions, limit=limit, threshold=threshold, weak=weak)
    call.mind.prepare()
    if scope not in tuple(Scope):
        rows, notice = loaded(scopes()[scope])(call, query, options, types)
    else:
        if scope == Scope.ALL:
            from mimo.operations import across

            answer = across.search_projects(call, query, options, private=private, group=group)
        else:
            answer = searching.search(call, query, options, with_user=at is None)
            if not answer.considered:
                reason = _EMPTY if conditions == Filter() else NONE_PASSES
                answer = replace(answer, notice=join_texts(answer.notice, reason))
        rows = rows_of(answer.matches, types)
        notice = join_texts(answer.notice, answer.beyond)
    is_narrow = any(value for name, value in filters.items() if name != "types")
    if conditions.types and Kind.EDGE in conditions.types and not (is_narrow or at):
        rows = [*rows, *_global_edges(call, query, types)][:limit]
        notice = None if rows and notice in (_EMPTY, NONE_PASSES) else notice
    outside = None if everywhere or scope != Scope.PROJECT or not call.mind.is_users else _OUTSIDE
    notice = join_texts(revision, outside, notice, _id_notice(call, query, at, conditions, rows))
    result = SearchResults(query=query, total=len(rows), results=tuple(rows), notice=notice)
    return result if everywhere or at or group else _with_sessions(call, result, conditions, scope)


def _check(call: Call, scope: str, at: str | None, *, private: bool, everywhere: bool) -> None:
    """Raises `Denied` or `Invalid` for options that exclude each other or the caller."""
    if private and call.agent is not None:
        raise Denied("private memories of other projects are shown to people, not to agents")
    if everywhere and scope != Scope.PROJECT:
        raise Invalid(f"`user` and the scope `{scope}` exclude each other", hint="use one of them")
    if private and scope not in tuple(Scope):
        raise Invalid(f"the scope `{scope}` has no private memories", hint="leave `private` out")
    if at is not None and scope != Scope.PROJECT:
        raise Invalid(
            "only one project at a time can be searched at a revision", hint="leave `scope` out"
        )


def _id_notice(
    call: Call, query: str, at: str | None, conditions: Filter, rows: Sequence[SearchResult]
) -> str | None:
    """Returns a notice if the query is the id or the handle of a memory that is not the first."""
    if " " in (query := query.strip()) or len(query) < HANDLE_LENGTH:
        return None
    ids = call.index.matching(query) if begins_handle(query) else (query,)
    ids = tuple(id for id in ids if query in (id, handle_of(id)))
    if not call.index.among(ids, conditions) or (rows and rows[0].id in ids):
        return None
    return Hint(f"`{query}` is the id of a memory: ", Command("show", query, at=at), _SHOWS_IT)


def _global_edges(call: Call, query: str, types: Sequence[str]) -> list[SearchResult]:
    """Returns the user's pitfalls for all projects that match; other searches load no module."""
    from mimo.features.pitfalls import sources
    from mimo.features.pitfalls.edge import memory_of

    if not call.origin.guard.permits("mind_edges"):
        return []
    return [
        plain_row(
            edge,
            SearchResult,
            type=names_of(types).get(Kind.EDGE, Kind.EDGE),
            content=memory_of(edge)[0],
            project="",
            source_file=edge.file,
            source_line=edge.line,
            confidence=1.0,
            relevance=score,
            date=datetime.fromisoformat(edge.created),
            tags=edge.stack_tags,
            trust=TrustLabel.TRUSTED,
            scope="user",
        )
        for edge, score in sources.matching(call, query)
    ]


def _with_sessions(
    call: Call, result: SearchResults, conditions: Filter, scope: str
) -> SearchResults:
    """Returns a result with sessions that surely match; other searches load no module for them."""
    if call.mind.config["sessions.enabled"] != "on":
        return result
    from mimo.operations import earlier

    sessions = earlier.matching(call, result.query, conditions, all_projects=scope == Scope.ALL)
    texts = [row.content for row in result.results]
    memories = earlier.memories(call, result.query, conditions, texts)
    labels = (memories and earlier.OF_CLIENTS, sessions and earlier.LABEL)
    return replace(
        result,
        sessions=sessions or None,
        client_memories=memories or None,
        notice=join_texts(result.notice, *(labels if call.agent is not None else ())),
    )


def _at(call: Call, revision: str) -> tuple[Call, str]:
    """Returns the memory at a revision and the label of that."""
    from mimo.operations import past

    earlier = past.at(call, revision)
    return earlier.call, earlier.label


def names_of(types: Sequence[str]) -> dict[Kind, str]:
    """Returns the names that the caller used for types: `learning`."""
    words = [word.strip().lower() for word in types]
    aliases = KIND_ALIASES.items()
    return {kind: word for word, kind in aliases if word in words and kind.value not in words}


def rows_of(matches: Sequence[tuple[Call, Hit]], types: Sequence[str]) -> list[SearchResult]:
    """Returns the rows of matches, with the names that the caller used for types."""
    names = names_of(types)
    return [
        row_of(memory, hit, owner.mind.project.name, names)
        for (owner, hit), memory in zip(matches, facts_of_hits(matches), strict=True)
    ]


def row_of(memory: Facts, hit: Hit, project: str, names: Mapping[Kind, str]) -> SearchResult:
    """Returns a row whose type has the name that the caller used: `learning`."""
    return memory.row(
        SearchResult,
        **matched(hit, memory.content, MOST_CONTENT),
        type=names.get(memory.type, memory.type),
        project=project,
        source_file=memory.file,
        source_line=hit.line,
        confidence=1.0 if memory.confidence is None else memory.confidence,
        relevance=relevance(hit),
        date=memory.created_at,
    )


@render.register
def _(result: SearchResults, screen: Screen) -> None:
    if not result.results:
        screen.line(f"nothing found for “{result.query}”")
        if not (result.notice or "").endswith((_EMPTY, NONE_PASSES, _SHOWS_IT)):
            screen.note("try other words or fewer filters; `mind list` lists all memories")
        _write_sessions(result, screen)
        return
    several = len({row.project for row in result.results if not row.scope}) > 1
    sure = [row for row in result.results if not row.weak]
    for row in result.results:
        if row.weak and not screen.setting.details:
            write_weak(row, row.title, row.date, screen, row.project if several else "")
        else:
            _write(row, screen, result.query, project=several)
    summary = match_count(len(sure), result.total - len(sure))
    if all(row.relevance is None for row in result.results):  # A list, not matches.
        dates = [row.date for row in result.results]
        is_ordered = len(dates) > 1 and dates == sorted(dates, reverse=True)
        order = ", newest first" if is_ordered else ""
        summary = f"{count(result.total, 'memory', 'memories')}{order}"
    screen.line(dim(summary))
    _write_sessions(result, screen)


def _write_sessions(result: SearchResults, screen: Screen) -> None:
    for memory in result.client_memories or ():
        screen.line(
            *(dim(f"{memory.origin}  "), strong(memory.title)),
            dim(f"  {age(memory.date, screen)}  {memory.path}:{memory.line}"),
        )
        passage = first_lines(after_title(memory.passage, memory.title))
        screen.text(passage, terms=matching_words(passage, result.query), indent=BELOW)
    for row in result.sessions or ():
        head, *lines = [*filter(None, [row.title]), *row.content.splitlines()]
        screen.line(
            *(dim("earlier session  "), ident(row.session), "  "),
            *(fitted(strong(head.removeprefix("user: "))), dim(f"  {age(row.date, screen)}")),
            dim(f"  {row.project}" if row.project else ""),
        )
        passage = first_lines("\n".join(lines))
        screen.text(passage, terms=matching_words(passage, result.query), indent=BELOW)


def _write(row: SearchResult, screen: Screen, query: str, *, project: bool) -> None:
    weak = (dim("  weak"),) if row.weak else ()
    named = project if row.scope is None else row.scope != "user"
    place = dim(f"  {row.project}" if named else "")
    when = dim(f"  {age(row.date, screen)}")
    screen.line(ident(row.id), "  ", strong(row.title), when, *weak, *row_labels(row), place)
    if screen.setting.details:
        score = "" if row.relevance is None else f"{row.relevance:.2f}"
        facts = (score, row.type, day(row.date), tagged(row.tags))
        screen.line(fitted(dim("  ".join(filter(None, facts)))), indent=BELOW)
        screen.line(path(f"{row.source_file}:{row.source_line}"), indent=BELOW)
        if row.source:
            screen.line(dim("from "), path(row.source), indent=BELOW)
    for warning in row_warnings(row, row.stale if screen.setting.details else None):
        screen.line(bad(with_handles(warning)), indent=BELOW)
    text = row.passage or row.content
    if row.warning:  # It states the outcome already.
        text = text.partition(f"## {Section.OUTCOME}\n")[0].rstrip()
    body = after_title(text, row.title)
    because = row.reasoning.strip().splitlines()[0] if row.reasoning else ""
    if because and body.startswith(because):
        body = "" if row.warning and not screen.setting.details else because_of(body)
    elif because and because not in body and (screen.setting.details or not body):
        body = f"{body}\n{because_of(because)}".strip()
    if body:
        limit = MOST_CONTENT if screen.setting.details else _PASSAGE
        passage = first_lines(excerpt(body, query, limit, LINES))
        screen.text(passage, terms=matching_words(passage, query), indent=BELOW)
