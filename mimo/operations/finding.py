"""Finding memories: by a query, and in lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from mimo.call import Call
from mimo.errors import Cancelled, Invalid, MindError, SearchFailed, StorageFailed, join_texts
from mimo.frozen import NamedTuple, frozen, replace
from mimo.index.rows import SURE, Found, Hit, Newer, Request, least
from mimo.memory.decay import Use
from mimo.memory.model import Filter, Kind, Record, Sort, topic_key
from mimo.operations import refresh
from mimo.text.calendar import MONTHS

if TYPE_CHECKING:
    from mimo.memory.relations import Graph
    from mimo.when import Interval
    from mimo.when.question import Asking, NamedTime

T = TypeVar("T")

THRESHOLD = SURE

NEAREST = 3
"""The number of memories in an answer if no match is sure."""

MOST_QUERY = 10_000
"""The maximum length of a query, in characters."""

_ADVANTAGE = 0.05
"""A match of the user's own memory is above one of a project only if it is better by more."""
_ORDERED = 20
"""The number of matches of each memory that are ordered, at least."""

WEAK = "no sure match; these are the nearest, and weak"
_NEWEST = "the query names no subject; these are the newest memories"
_DECISIONS = "the question is about no other subject; these are the newest decisions"
_LATEST = "the question is about the latest work; these are the newest memories"
_READ = 300
"""The number of checkpoints that are read if the newest is archived."""
_OTHER_TIME = 0.99
"""The highest score of a memory of another time than the one that a question names."""
_BESIDE = ", then memories of other times that name it"
_PASSAGE = 2_000
"""Characters of a listed memory that count as its passage."""


@frozen
class Options:
    """Which memories a search or a list returns, how many, and in which order."""

    filter: Filter = Filter()
    """Applied before the limit."""
    limit: int = -1
    """Maximum number of memories; -1 for all."""
    offset: int = 0
    sort: Sort = Sort.RECENT
    """The order of a list; a search sorts by relevance."""
    threshold: float | None = None
    """Minimum score of a match; None for the sure ones or, if there are none, the nearest."""


EVERYTHING = Options()


@frozen
class Page:
    """A part of a list, and the number of memories in the whole list."""

    records: tuple[Record, ...]
    total: int
    """The number of memories; in a folded list, an ingested file counts as one."""
    chunks: Mapping[str, int] = MappingProxyType({})
    """The number of chunks of each ingested file on this page of a folded list."""
    all_chunks: int = 0
    """The number of chunks on all pages of a folded list."""


class Answer(NamedTuple):
    """The answer of one project."""

    result: Found
    remark: str | None = None
    """The way in which the query was understood."""
    below: str = ""
    """The continuation of the remark for matches of another time, which are below the others."""

    def remark_on(self, hits: Iterable[Hit]) -> str | None:
        """Returns the remark on the matches that are shown."""
        has_other_times = self.below and any(map(is_of_other_time, hits))
        return f"{self.remark}{self.below}" if has_other_times else self.remark


def is_weak(hit: Hit) -> bool | None:
    """Returns True for a match that is not sure, or None, as rows report it."""
    return True if hit.score < THRESHOLD else None


def is_of_other_time(hit: Hit) -> bool:
    """Returns whether a memory in the list of a time is of another time, and only names it."""
    return THRESHOLD <= hit.score <= _OTHER_TIME


def sure_or_nearest(
    matches: list[T], options: Options, weak: Callable[[T], bool | None]
) -> tuple[list[T], str | None]:
    """Returns the sure ones of some matches or, if there are none, the nearest, and a remark.

    With a threshold, it returns all of them.
    """
    if options.threshold is not None or not matches:
        return matches, None
    sure = [match for match in matches if not weak(match)]
    return (sure, None) if sure else (matches[:NEAREST], WEAK)


def search(call: Call, text: str, options: Options, *, counted: bool = True) -> Found:
    """Returns the memories of this project that answer `text`, best first.

    Without a threshold these are the sure matches, or else the nearest ones above the floor, which
    are weak. A query without a subject is answered by a list, newest first. `notice` reports both,
    the time that the query names, and an incomplete search. If `counted` is set, each sure match
    counts as used. Raises `SearchFailed` if not even the files can be read.
    """
    return _noted(call, answer_of(call, text, options), options, counted=counted)


def _noted(call: Call, answer: Answer, options: Options, *, counted: bool) -> Found:
    """Returns an answer with its notice; counts its sure matches as used if `counted`."""
    result = answer.result
    notice = join_texts(call.notice, result.notice, answer.remark_on(result.hits))
    if counted and not result.listed:
        note_sure(call, result.hits)
    if options.threshold is None and not result.listed and result.hits and is_weak(result.hits[0]):
        notice = join_texts(notice, WEAK)
    return replace(result, notice=notice)


def search_with_user(
    call: Call, text: str, options: Options, *, counted: bool = True, alone: bool = False
) -> tuple[list[tuple[Call, Hit]], Found]:
    """Returns the same with the matches of the user's memory for all projects, if there is one.

    Each match has the memory that it is from; the second value has the notice and the numbers.
    With `alone`, the user's memory is left out.
    """
    user = None if alone else call.user()
    if user is not None:
        return _search_beside(call, user, text, options, counted=counted)
    result = _noted(call, answer_of(call, text, options), options, counted=counted)
    return [(call, hit) for hit in result.hits], result


def approved(options: Options) -> Options:
    """Returns the options limited to approved memories."""
    return replace(options, filter=replace(options.filter, approved=True))


def with_room(options: Options) -> Options:
    """Returns the options with a limit that is enough to order the matches of several memories.

    The user's note on a topic is below a project's memory on it, wherever that is.
    """
    return replace(options, limit=max(options.limit, _ORDERED))


def places(matches: Sequence[tuple[Call, Hit]]) -> list[tuple[float, bool]]:
    """Returns the place of each match: what a project decided is above a general preference.

    Among equal matches, and on the same topic, those of projects are first.
    """
    topics: dict[str, float] = {}
    for owner, hit in matches:
        topic = topic_key(hit.record.memory.topic or "")
        if topic and not owner.mind.is_users:
            topics[topic] = max(hit.score, topics.get(topic, 0.0))

    def place(owner: Call, hit: Hit) -> tuple[float, bool]:
        if not owner.mind.is_users:
            return hit.score, True
        ceiling = topics.get(topic_key(hit.record.memory.topic or ""), 1.0)
        return min(hit.score - _ADVANTAGE, ceiling), False

    return [place(owner, hit) for owner, hit in matches]


def best_first(matches: Sequence[tuple[Call, Hit]]) -> list[tuple[Call, Hit]]:
    """Returns matches of several memories in the order of their places."""
    placed = zip(places(matches), matches, strict=True)
    return [match for _, match in sorted(placed, key=itemgetter(0), reverse=True)]


def _search_beside(
    call: Call, user: Call, text: str, options: Options, *, counted: bool
) -> tuple[list[tuple[Call, Hit]], Found]:
    """Returns the best matches of a project and of the user's memory for all projects.

    Weak matches of the user's memory are returned only if the project has none, since one of a few
    notes is always the nearest. Only approved ones are returned, since an agent of another project
    may have added others. A question about a time or about the latest work is about the project.
    Among equal matches, and on the same topic, the project's are first. Otherwise as `search`.
    """
    limit, options = options.limit, with_room(options)
    answer, problem = answer_of(call, text, options), None
    result = answer.result
    try:
        user_result = answer_of(user, text, approved(options)).result
    except Cancelled:
        raise
    except MindError as error:
        user_result, problem = Found(hits=(), considered=0), f"your own memory: {error.message}"
    more = [] if user_result.listed else list(user_result.hits)
    if options.threshold is None and result.hits:
        more = [hit for hit in more if hit.score >= THRESHOLD]
    hits, is_local = list(result.hits), True
    if more and options.threshold is None and (result.listed or (hits[:1] and is_weak(hits[0]))):
        hits, is_local = [], False
    matches = [*((call, hit) for hit in hits), *((user, hit) for hit in more)]
    if more:  # Otherwise the order is the project's own.
        matches = best_first(matches)
    matches = matches[:limit]
    is_listed = result.listed and not more
    if counted and not is_listed:
        for owner in (call, user):
            note_sure(owner, [hit for source, hit in matches if source is owner])
    remark = answer.remark_on(hit for owner, hit in matches if owner is call) if is_local else None
    notice = join_texts(call.notice, result.notice, user_result.notice, problem, remark)
    if options.threshold is None and matches and not is_listed and is_weak(matches[0][1]):
        notice = join_texts(notice, WEAK)
    considered = result.considered + user_result.considered
    return matches, replace(result, considered=considered, listed=is_listed, notice=notice)


def answer_of(call: Call, text: str, options: Options) -> Answer:
    """Returns the answer of one project. Raises `Invalid` and `SearchFailed`."""
    from mimo.when.question import Way, understood

    check_length(text)
    try:
        refresh.refresh(call)
        asking = understood(text, call.mind.local_now())
        is_again = False
        while True:
            if asking.way is Way.SPAN:
                answer = _of_span(call, text, asking, options)
            elif asking.way is not Way.SEARCH:
                answer = _listed(call, asking, options, latest=asking.way is Way.LATEST)
            elif asking.time:
                answer = _in_time(call, text, asking.time, options)
            else:
                answer = Answer(_searched(call, text, options))
                if asking.otherwise and all(map(is_weak, answer.result.hits)):
                    latest = asking.otherwise is Way.LATEST
                    answer = _listed(call, asking, options, latest=latest)
            records = map(attrgetter("record"), answer.result.hits)
            if is_again or not refresh.reread(call, records):
                return answer
            is_again = True
    except StorageFailed as error:
        raise SearchFailed(
            f"nothing could be searched: {error.message}", hint=error.hint
        ) from error


def request(call: Call, text: str, options: Options) -> Request:
    """Returns the request for the sure matches, or else the nearest, or those above a threshold."""
    is_open = options.threshold is None
    return Request(
        text,
        filter=options.filter,
        limit=options.limit,
        threshold=THRESHOLD if options.threshold is None else options.threshold,
        now=call.mind.local_now(),
        nearest=min(options.limit, NEAREST) if is_open else 0,
    )


def _searched(call: Call, text: str, options: Options) -> Found:
    """Returns the matches, each superseded one below the memories that supersede it."""
    is_open = options.threshold is None
    matches = call.index.search(request(call, text, options))
    refresh.note_vectors(call)
    best = matches.hits[0].score if matches.hits else 0.0
    if is_open and best < least(matches.considered):
        return replace(matches, hits=())
    limit = NEAREST if is_open and best < THRESHOLD else options.limit
    hits = _with_successors(call, matches.hits, options.filter)
    return replace(matches, hits=tuple(hits[: min(limit, options.limit)]))


def _in_time(call: Call, text: str, time: NamedTime, options: Options) -> Answer:
    """Returns the matches, only those of the time that a question names if one of them is sure.

    If no match at all is sure, those of that time are first. A date is not a condition: a memory of
    another day may be about it. The ranking prefers memories of that day.
    """
    weak: tuple[Hit, ...] = ()
    for span in time.meant if time.is_relative else ():
        if within := _within(options, span):
            result = _searched(call, time.rest, within)
            if result.hits and not is_weak(result.hits[0]):
                return Answer(result, f"only from this time: {_resolved(call, time, span)}")
            weak = weak or result.hits
    result = _searched(call, text, options)
    if weak and options.threshold is None and all(map(is_weak, result.hits)):
        hits = {hit.record.memory.id: hit for hit in (*weak, *result.hits)}
        result = replace(result, hits=tuple(hits.values())[: min(NEAREST, options.limit)])
    named = _resolved(call, time, time.spans[0])
    if time.is_relative:
        return Answer(result, f"no sure match is of this time: {named}; all times were searched")
    return Answer(result, f"all times were searched, not only this one: {named}")


def _within(options: Options, span: Interval) -> Options | None:
    """Returns the options limited to a span of time; None if no time meets both."""
    chosen = options.filter
    since = max((end for end in (chosen.since, span.since) if end), default=None)
    until = min((end for end in (chosen.until, span.until) if end), default=None)
    if since and until and since >= until:
        return None
    return replace(options, filter=replace(chosen, since=since, until=until))


def _resolved(call: Call, time: NamedTime, span: Interval) -> str:
    from mimo.when import shown

    return f"`{time.expression}` ({shown(span, call.mind.local_now())})"


def _of_span(call: Call, text: str, asking: Asking, options: Options) -> Answer:
    """Returns the memories of a time, then those of other times that name the date.

    If there are none, it returns the newest ones, which are weak. In each case it is a list, which
    is about this project. The remark states which of them it is.
    """
    time = asking.time
    if time is None:
        raise TypeError(asking)
    result, remark = (
        Found(hits=(), considered=call.index.count(options.filter), listed=True),
        None,
    )
    types = options.filter.types
    narrow = [frozenset({Kind.DECISION})] if asking.decisions and types is None else []
    tried = (*narrow, types)
    widest = time.spans[len(time.meant) :]
    for kinds, span in (*product(tried, time.meant), *product(tried, widest)):
        within = _within(options, span)
        if within and not result.hits:
            chosen = replace(within, filter=replace(within.filter, types=kinds))
            hits = _newest(call, chosen, score=1.0, resuming=asking.resuming, documents=False)
            result = replace(result, hits=hits)
            named = _resolved(call, time, span)
            remark = f"the {'decisions' if narrow else 'memories'} of this time: {named}"
            if narrow and kinds is types:
                remark = f"no decision is of this time: {named}; these are its other memories"
    missing = f"no memory is of this time: {_resolved(call, time, time.spans[-1])}"
    mentions = [] if time.is_relative else _naming(call, text, time, options)
    if result.hits:
        listed = {hit.record.memory.id for hit in result.hits}
        mentions = [hit for hit in mentions if hit.record.memory.id not in listed]
        result = replace(result, hits=(*result.hits, *mentions)[: options.limit])
        return Answer(result, remark, _BESIDE)
    if mentions:
        return Answer(replace(result, hits=tuple(mentions)), f"{missing}; these name it")
    newest = _listed(call, asking, options, weak=True)
    if not newest.result.hits:
        return Answer(newest.result, missing)
    kind = "newest decisions" if newest.remark == _DECISIONS else "newest"
    return Answer(newest.result, f"{missing}; these are the {kind}")


def _naming(call: Call, text: str, time: NamedTime, options: Options) -> list[Hit]:
    """Returns the sure matches whose text names a date, on whichever day they were written.

    Their scores are below that of a memory of the time.
    """
    from mimo.text.tokens import query_terms, tokenize

    names = [set(query_terms(time.expression).content)]
    start, end = time.days(call.mind.local_now().tzinfo) or (None, None)
    if start and start == end:
        month = MONTHS[start.month - 1]
        forms = (f"{start}", f"{month} {start.day}", f"{month[:3]} {start.day}")
        names += map(set, map(tokenize, forms))

    def names_it(hit: Hit) -> bool:
        memory = hit.record.memory
        words = set(tokenize(f"{memory.heading}\n{memory.text}"))
        return any(name <= words for name in names)

    return [
        replace(hit, score=min(hit.score, _OTHER_TIME))
        for hit in _searched(call, text, options).hits
        if not is_weak(hit) and names_it(hit)
    ]


def _listed(
    call: Call, asking: Asking, options: Options, *, latest: bool = False, weak: bool = False
) -> Answer:
    """Returns the latest work, the decisions, or the newest memories, which are weak.

    With `weak`, the decisions are weak as well.
    """
    result = Found(hits=(), considered=call.index.count(options.filter), listed=True)
    if asking.decisions and options.filter.types is None:
        kinds = replace(options.filter, types=frozenset({Kind.DECISION}))
        chosen = replace(options, filter=kinds)
        decisions = _newest(call, chosen, score=float(not weak), resuming=False)
        if decisions:
            return Answer(replace(result, hits=decisions), _DECISIONS)
    hits = _newest(call, options, score=float(latest), resuming=latest)
    return Answer(replace(result, hits=hits), (_LATEST if latest else _NEWEST) if hits else None)


def _newest(
    call: Call, options: Options, *, score: float, resuming: bool, documents: bool = True
) -> tuple[Hit, ...]:
    """Returns the newest memories as matches; with `resuming`, the newest checkpoint is first."""
    if options.threshold is not None and score < options.threshold:
        return ()
    records = newest(call, options.filter, options.limit, documents=documents)
    if resuming and options.filter.types is None:
        kinds = replace(options.filter, types=frozenset({Kind.CHECKPOINT}))
        active = (
            record
            for limit in (1, _READ)
            for record in call.index.records(kinds, limit=limit)
            if (record.memory.status or "").lower() != "archived"
        )
        if checkpoint := next(active, None):
            tail = [record for record in records if record != checkpoint]
            records = (checkpoint, *tail)[: options.limit]
    newer = call.index.newer([record.memory.id for record in records])
    return _as_hits(call, records, score, newer)


def newest(call: Call, filter: Filter, limit: int, *, documents: bool = True) -> tuple[Record, ...]:
    """Returns the newest memories, and `documents` only if there is nothing else."""
    records = call.index.records(replace(filter, whole=True), limit=limit)
    return records if records or not documents else call.index.records(filter, limit=limit)


def _as_hits(
    call: Call, records: Sequence[Record], score: float, newer: Mapping[str, Newer]
) -> tuple[Hit, ...]:
    """Returns memories that are in an answer without a match of their own."""
    competing = call.index.competing([record.memory.id for record in records])
    return tuple(
        Hit(
            record=record,
            score=score,
            passage=record.memory.content[:_PASSAGE] or record.memory.heading,
            line=record.place.line,
            newer=newer[record.memory.id],
            competing=competing.get(record.memory.id, ()),
        )
        for record in records
    )


def _with_successors(call: Call, hits: Sequence[Hit], filter: Filter) -> list[Hit]:
    """Returns the matches with each superseded one below its successors, over all steps.

    A successor answers the same question, so a current one that did not match itself is added, with
    the score of the match that it replaces. A circle of matches keeps its order.
    """
    matches = {hit.record.memory.id: hit for hit in hits}
    complete: dict[str, Hit] = {}
    for id, hit in matches.items():
        if id in complete:
            continue
        above: dict[str, Hit] = {}
        reached, ahead = set[str](), hit.newer.superseded_by
        while ahead := tuple(dict.fromkeys(new for new in ahead if new not in reached)):
            reached.update(ahead)
            newer = call.index.newer(ahead)
            current = [new for new in ahead if not newer[new].superseded_by]
            missing_ids = [new for new in current if new not in matches]
            added = _as_hits(call, call.index.among(missing_ids, filter), hit.score, newer)
            moved = (matches[new] for new in ahead if new in matches)
            above = {new.record.memory.id: new for new in (*added, *moved)} | above
            ahead = tuple(after for old in ahead for after in newer[old].superseded_by)
        for new, successor in above.items():
            if id not in reached or new not in matches:
                higher = replace(successor, score=max(successor.score, hit.score))
                complete.setdefault(new, higher)
        complete[id] = hit
    return list(complete.values())


def check_length(text: str) -> None:
    """Raises `Invalid` for a text that is too long to search for."""
    if len(text) > MOST_QUERY:
        raise Invalid(
            f"a query of {len(text):,} characters is too long",
            hint=f"ask in {MOST_QUERY:,} characters at most",
            details={"field": "query"},
        )


def note_sure(call: Call, hits: Iterable[Hit]) -> None:
    """Counts the related memories as used, but not the closest of unrelated ones."""
    note(call, [hit.record for hit in hits if hit.score >= THRESHOLD])


# Uses of memories, which keep them from fading.


def note(call: Call, records: Iterable[Record]) -> None:
    """Counts a use of each memory: a search matches it, or it was shown or loaded.

    An answer never fails because its uses can't be counted.
    """
    if not call.caller.counts_uses:
        return
    with suppress(MindError, OSError):
        call.mind.accesses.note([record.memory.id for record in records], call.mind.now())


def uses(call: Call) -> dict[str, Use]:
    """Returns the number of uses of each memory on this machine, and the last one."""
    with suppress(MindError, OSError):
        call.mind.accesses.flush()
    return call.mind.accesses.uses()


# Lists and links.


def listing(call: Call, options: Options = EVERYTHING) -> Page:
    """Returns one page of the memories that pass the filter, and the number of all that do."""
    index = refresh.up_to_date(call)
    records = _page(call, index.records, options)
    return Page(records=records, total=index.count(options.filter))


def _page(
    call: Call, query: Callable[..., tuple[Record, ...]], options: Options
) -> tuple[Record, ...]:
    """Returns one page of the memories, as their files are now."""
    page = partial(
        query, options.filter, sort=options.sort, limit=options.limit, offset=options.offset
    )
    records = page()
    return page() if refresh.reread(call, records) else records


def folded(call: Call, options: Options) -> Page:
    """Returns one page of the memories that pass the filter, an ingested file as one of them.

    Its first chunk that passes the filter represents it.
    """
    index = refresh.up_to_date(call)
    records = _page(call, index.folded_records, options)
    parents = [record.parent for record in records if record.parent is not None]
    numbers = index.folded(options.filter)
    return Page(
        records=records,
        total=numbers.rows,
        chunks=index.chunk_counts(parents, options.filter) if parents else {},
        all_chunks=numbers.chunks,
    )


def total(call: Call, *, shared: bool = False, roughly: bool = False) -> int:
    """Returns the number of memories of a project; with `shared`, without private ones.

    With `roughly`, it is the number when the project was last indexed, and no file is looked at.
    """
    if not roughly or call.index.changed_at() is None:
        refresh.refresh(call)
    return call.index.count(Filter(shared=shared))


def linked(
    call: Call,
    start: Sequence[str],
    *,
    depth: int,
    types: Collection[str] = (),
    limit: int | None = None,
    shared: bool = False,
) -> Graph:
    """Returns the memories within `depth` links of `start`, and the links between them.

    A start is an id or a title, as in a link. At most `MAX_DEPTH` links are followed, in both
    directions, only links of `types` if any are given, and the nearest `limit` memories are kept.
    With `shared`, private memories are left out, and with them what only they lead to.
    """
    from mimo.memory.relations import MAX_DEPTH

    steps, index = max(0, min(depth, MAX_DEPTH)), refresh.up_to_date(call)
    return index.graph(
        start, depth=steps, types=types, most=limit, shared=shared, now=call.mind.now()
    )


def successor(call: Call, id: str) -> str | None:
    """Returns the id of the newest memory that supersedes this one, or None."""
    return call.index.superseded_by((id,)).get(id)
