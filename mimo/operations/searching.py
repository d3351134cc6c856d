"""Searching one memory or several together: by a query, a time, or for the latest work.

All that are searched form one pool, whose matches are ordered and scored together. What an answer
shows of them is decided in one place, `shown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from mimo.call import Call
from mimo.errors import (
    Cancelled,
    Command,
    Hint,
    Invalid,
    MindError,
    SearchFailed,
    StorageFailed,
    join_texts,
)
from mimo.frozen import NamedTuple, frozen, replace
from mimo.index.rows import SURE, Found, Hit, Request, least
from mimo.memory.model import Filter, Kind, Record, Section, topic_key
from mimo.memory.note import closed_as
from mimo.operations import refresh
from mimo.operations.finding import Options, newest
from mimo.text.calendar import MONTHS

if TYPE_CHECKING:
    from datetime import datetime

    from mimo.when import Interval
    from mimo.when.question import Asking, NamedTime

T = TypeVar("T")

Match = tuple[Call, Hit]
"""A match, and the memory that it is from."""

NEAREST = 3
"""The number of weak matches in an answer without a sure one."""

ROWS = 10
"""The number of rows up to which weak matches are added to sure ones."""

OF_PEOPLE, OF_AGENTS = ROWS, 3
"""The most weak matches beside sure ones: a person skims them, an agent reads them all."""

MOST_QUERY = 10_000
"""The maximum length of a query, in characters."""

_RANKED = 30
"""The number of matches of each memory that are ordered together, at least."""

WEAK = "no sure match; these are the nearest, and weak"
_NEWEST = "the query names no subject; these are the newest memories"
_DECISIONS = "the question is about no other subject; these are the newest decisions"
_LATEST = "the question is about the latest work; these are the newest memories"
_OPEN = "the question is about open work; these are the open issues, next steps and plans"
_THEN_OPEN = "below the matches are the open issues, next steps and plans"
_CLOSED = "no issue or plan is open; these are the newest memories"
_READ = 300
"""The number of checkpoints, issues or plans that are read to find one that is not closed."""
_OTHER_TIME = 0.99
"""The highest score of a memory of another time than the one that a question names."""
_BESIDE = ", then memories of other times that name it"
_PASSAGE = 2_000
"""Characters of a listed memory that count as its passage."""


@frozen
class Answer:
    """The matches of a query that are shown, best first."""

    matches: tuple[Match, ...]
    considered: int
    """The number of memories that passed the filter."""
    notice: str | None = None
    """The time that the query names, that no match is sure, and an incomplete search."""
    listed: bool = False
    """True for a list, newest first: the query names no subject."""
    sure: int = 0
    """The number of matches that are not weak; they come first."""
    more: int = 0
    """The number of sure matches beyond the limit."""

    @property
    def hits(self) -> tuple[Hit, ...]:
        """Returns the matches without their memories."""
        return tuple(hit for _, hit in self.matches)


class Listed(NamedTuple):
    """The list of one memory that answers a question about a time, or about no subject."""

    hits: tuple[Hit, ...]
    remark: str | None = None
    """The way in which the query was understood."""
    below: str = ""
    """The continuation of the remark for matches of another time, which are below the others."""


class Asked(NamedTuple):
    """The answer of one memory before it is scored with others."""

    call: Call | None
    """None for memories that are not on this machine."""
    filter: Filter
    tries: tuple[Found, ...]
    """The answers to the tries of a question, as `_tries` lists them."""
    listed: Listed | None = None
    """Its list, if the question may ask for one."""
    is_users: bool = False
    """True for the user's memory for all projects."""


def is_weak(hit: Hit) -> bool | None:
    """Returns True for a match that is not sure, or None, as rows report it."""
    return True if hit.score < SURE else None


def most_weak(call: Call) -> int:
    """Returns the most weak matches beside sure ones for the caller."""
    return OF_AGENTS if call.agent else OF_PEOPLE


def apart(
    rows: Sequence[T], answer: Answer, options: Options
) -> tuple[tuple[T, ...], tuple[T, ...] | None]:
    """Returns the rows of matches that reach the threshold, and those of weak ones, if any.

    Each row is of the match at its place. A list, and a query with a threshold, has no weak ones.
    """
    if options.threshold is not None or answer.listed:
        return tuple(rows), None
    return tuple(rows[: answer.sure]), tuple(rows[answer.sure :]) or None


def is_of_other_time(hit: Hit) -> bool:
    """Returns whether a memory in the list of a time is of another time, and only names it."""
    return SURE <= hit.score <= _OTHER_TIME


def search(
    call: Call, text: str, options: Options, *, counted: bool = True, with_user: bool = False
) -> Answer:
    """Returns the memories of this project that answer `text`.

    With `with_user`, those of the user's memory for all projects are in the same pool. If `counted`
    is set, each sure match counts as used. Raises `Invalid`, and `SearchFailed` if not even the
    files can be read.
    """
    from mimo.when.question import understood

    check_length(text)
    asking, problem = understood(text, call.mind.local_now()), None
    pool = [ask(call, text, asking, options)]
    if with_user and (user := call.user()):
        problem = add_users(pool, user, text, asking, options)
    answer = answered(text, asking, pool, options, counted=counted)
    if number := call.index.count_unread():
        files = "1 file" if number == 1 else f"{number:,} files"
        unread = Hint(f"{files} can't be read; ", Command("doctor"), " names them")
        problem = join_texts(unread, problem)
    return replace(answer, notice=join_texts(call.notice, answer.notice, problem))


def add_users(
    pool: list[Asked], user: Call, text: str, asking: Asking, options: Options
) -> str | None:
    """Adds what the user's memory for all projects knows to a pool, or returns why that failed.

    Only approved memories are in it: an agent of another project may have added others. They are
    compared by meaning if the others were.
    """
    approved = replace(options, filter=replace(options.filter, approved=True))
    result = [try_.evidence for asked in pool for try_ in asked.tries if try_.evidence]
    by_meaning = any(evidence.cosines.of for evidence in result) or not result
    try:
        pool.append(ask(user, text, asking, approved, by_meaning=by_meaning))
    except Cancelled:
        raise
    except MindError as error:
        return f"your own memory: {error.message}"
    return None


def ask(
    call: Call, text: str, asking: Asking, options: Options, *, by_meaning: bool | None = None
) -> Asked:
    """Returns what one memory knows about a query, with `by_meaning` as in a `Request`.

    Raises `SearchFailed`.
    """
    from mimo.when.question import Way

    try:
        refresh.refresh(call)
        is_again = False
        while True:
            tries = []
            for words, narrowed, _ in _tries(text, asking, options):
                if narrowed:
                    asked = request(call, words, narrowed)._replace(by_meaning=by_meaning)
                    result = call.index.search(asked)
                    tries.append(_shared(call, result) if asked.filter.shared else result)
                else:
                    tries.append(Found(hits=(), considered=0))
            refresh.note_vectors(call)
            listed = None
            if asking.way is not Way.SEARCH or asking.otherwise:
                listed = _list(call, text, asking, options)
            best = [hit.record for result in tries for hit in result.hits[: options.limit]]
            records = [*best, *map(attrgetter("record"), listed.hits if listed else ())]
            if is_again or not refresh.reread(call, records):
                return Asked(call, options.filter, tuple(tries), listed, call.mind.is_users)
            is_again = True
    except StorageFailed as error:
        raise SearchFailed(
            f"nothing could be searched: {error.message}", hint=error.hint
        ) from error


def _shared(call: Call, result: Found) -> Found:
    """Returns matches that private memories, which are left out, neither replace nor contest."""
    ids = [hit.record.memory.id for hit in result.hits]
    newer = call.index.newer(ids, shared=True)
    competing = call.index.competing(ids, shared=True)
    hits = (
        replace(hit, newer=newer[id], competing=competing.get(id, ()))
        for id, hit in zip(ids, result.hits, strict=True)
    )
    return replace(result, hits=tuple(hits))


def _tries(
    text: str, asking: Asking, options: Options
) -> list[tuple[str, Options | None, Interval | None]]:
    """Returns what is searched for, until one finds a sure match; a span of time is the last value.

    The memories of a time that the question names come before all memories. A date is not a
    condition: a memory of another day may be about it. The ranking prefers memories of that day.
    """
    from mimo.when.question import Way

    if asking.way is not Way.SEARCH:
        return []
    time = asking.time
    spans = time.meant if time and time.is_relative else ()
    within = [(time.rest if time else text, _within(options, span), span) for span in spans]
    return [*within, (text, options, None)]


def request(call: Call, text: str, options: Options) -> Request:
    """Returns the request for enough matches to order them with those of other memories."""
    return Request(
        text,
        filter=options.filter,
        limit=max(options.limit, _RANKED),
        now=call.mind.local_now(),
        folded=True,
    )


def answered(
    text: str, asking: Asking, pool: Sequence[Asked], options: Options, *, counted: bool = True
) -> Answer:
    """Returns the answer of all memories in a pool; in it, the open project is the first."""
    from mimo.when.question import Way

    if not pool:
        return Answer(matches=(), considered=0)
    now = next(asked.call.mind.local_now() for asked in pool if asked.call)

    projects = [asked for asked in pool if not asked.is_users] or list(pool)
    if asking.way is not Way.SEARCH:
        return _one_list(projects, options)
    remark, answer = None, Answer(matches=(), considered=0)
    weak = answer
    for number, (_, _, span) in enumerate(_tries(text, asking, options)):
        answer = _pooled(text, pool, number, options)
        if span is None or asking.time is None:
            break
        if answer.sure:
            remark = f"only from this time: {_resolved(asking.time, span, now)}"
            break
        weak = answer if answer.matches and not weak.matches else weak
    is_about_work = asking.otherwise is Way.OPEN
    if asking.otherwise and options.threshold is None and (is_about_work or not answer.sure):
        answer = _below(answer, _one_list(projects, options), options.limit)
    if asking.time and not remark:
        remark = _searched_times(asking.time, now)
        if weak.matches and not answer.sure and options.threshold is None:
            # If no match at all is sure, those of that time are first.
            both = {hit.record.memory.id: (owner, hit) for owner, hit in answer.matches}
            first = {hit.record.memory.id: (owner, hit) for owner, hit in weak.matches}
            most = min(NEAREST, options.limit)
            answer = replace(answer, matches=tuple((first | both).values())[:most])
    sure = [match for match in answer.matches[: answer.sure] if counted and not match[1].is_listed]
    for owner in dict.fromkeys(owner for owner, _ in sure):
        owner.count_uses(hit.record for other, hit in sure if other is owner)
    is_open = options.threshold is None and not answer.listed
    is_all_weak = is_open and answer.matches and not answer.sure
    notice = join_texts(answer.notice, remark, WEAK if is_all_weak else None)
    return replace(answer, notice=notice)


def _below(answer: Answer, listed: Answer, limit: int) -> Answer:
    """Returns a list, below the sure matches of a short question such as `todo` if it has any."""
    if not answer.sure:
        return listed
    sure = answer.matches[: answer.sure]
    names = {(owner, hit.record.memory.id) for owner, hit in sure}
    rest = [match for match in listed.matches if (match[0], match[1].record.memory.id) not in names]
    matches = (*sure, *rest)[:limit]
    notice = join_texts(answer.notice, _THEN_OPEN if rest else None)
    return replace(answer, matches=matches, sure=len(matches), notice=notice)


def _searched_times(time: NamedTime, now: datetime) -> str:
    named = _resolved(time, time.spans[0], now)
    if time.is_relative:
        return f"no sure match is of this time: {named}; all times were searched"
    return f"all times were searched, not only this one: {named}"


def _pooled(text: str, pool: Sequence[Asked], number: int, options: Options) -> Answer:
    """Returns what is shown of the matches of one try in all memories."""
    matches = ordered(text, pool, number)
    answers = [asked.tries[number] for asked in pool]
    considered = sum(result.considered for result in answers)
    rows = shown([hit for _, hit in matches], considered, options)
    sure = sum(not is_weak(hit) for _, hit in matches)
    notices = [result.notice for result in answers]
    return Answer(
        matches=tuple((asked.call, hit) for asked, hit in matches[:rows] if asked.call),
        considered=considered,
        notice=join_texts(*dict.fromkeys(filter(None, notices))),
        sure=min(sure, rows),
        more=max(0, sure - rows),
    )


def ordered(text: str, pool: Sequence[Asked], number: int) -> list[tuple[Asked, Hit]]:
    """Returns the matches of one try in all memories of a pool, best first."""
    from mimo.index.search import pooled

    answers = [asked.tries[number] for asked in pool]
    if len(pool) > 1:
        answers = _each_once(answers)
    matches = with_successors([(pool[place], hit) for place, hit in pooled(text, answers)])
    return _below_topic(matches) if any(asked.is_users for asked in pool) else matches


def shown(hits: Sequence[Hit], considered: int, options: Options) -> int:
    """Returns how many matches are shown, of some in order: the one rule for every surface.

    With a threshold, those that reach it. Otherwise the sure ones, and those of the weak ones below
    them that are near and that the surface has room for; without a sure one, the nearest three,
    unless even the best is far. The limit holds in any case.
    """
    limit = len(hits) if options.limit < 0 else options.limit
    least_score = SURE if options.threshold is None else options.threshold
    sure = sum(hit.score >= least_score for hit in hits)
    if options.threshold is not None:
        return min(sure, limit)
    if not sure:
        is_far = not hits or hits[0].score < least(considered)
        return 0 if is_far else min(NEAREST, limit, len(hits))
    near = sum(least(considered) <= hit.score < SURE for hit in hits)
    return min(sure + min(options.weak, max(0, ROWS - sure), near), limit)


def _each_once(answers: Sequence[Found]) -> list[Found]:
    """Returns answers in which a memory of the same text in several projects is in the first alone.

    Worktrees and clones of a repository have the same files.
    """
    seen: set[tuple[str, str]] = set()
    once = []
    for result in answers:
        hits = []
        for hit in result.hits:
            name = hit.record.memory.id, hit.record.place.digest
            if name not in seen:
                hits.append(hit)
        seen.update((hit.record.memory.id, hit.record.place.digest) for hit in hits)
        once.append(replace(result, hits=tuple(hits)))
    return once


def _below_topic(matches: list[tuple[Asked, Hit]]) -> list[tuple[Asked, Hit]]:
    """Returns matches with the user's note on a topic below those of a project on it.

    What a project decided is above a general preference.
    """
    topics = {
        topic_key(hit.record.memory.topic or "") for asked, hit in matches if not asked.is_users
    } - {""}
    late = [
        (asked, hit)
        for asked, hit in matches
        if asked.is_users and topic_key(hit.record.memory.topic or "") in topics
    ]
    for asked, hit in late:
        topic = topic_key(hit.record.memory.topic or "")
        matches.remove((asked, hit))
        last = max(
            place
            for place, (other, above) in enumerate(matches)
            if topic_key(above.record.memory.topic or "") == topic
        )
        score = min(hit.score, matches[last][1].score)
        matches.insert(last + 1, (asked, replace(hit, score=score)))
    return matches


def with_successors(matches: Sequence[tuple[Asked, Hit]]) -> list[tuple[Asked, Hit]]:
    """Returns the matches with each superseded one below its successors, over all steps.

    A successor answers the same question, so a current one that did not match itself is added, with
    the score of the match that it replaces. A circle of matches keeps its order.
    """
    by_name = {(id(asked), hit.record.memory.id): (asked, hit) for asked, hit in matches}
    complete: dict[tuple[int, str], tuple[Asked, Hit]] = {}
    for name, (asked, hit) in by_name.items():
        if name in complete:
            continue
        above: dict[str, Hit] = {}
        own = {id for of, id in by_name if of == name[0]}
        local = own if asked.call is None else None  # Others' memories are not here.
        reached, ahead = set[str](), hit.newer.superseded_by
        while ahead := tuple(
            new
            for new in dict.fromkeys(ahead)
            if new not in reached and (local is None or new in local)
        ):
            reached.update(ahead)
            added: tuple[Hit, ...] = ()
            if asked.call is None:
                newer = {new: by_name[name[0], new][1].newer for new in ahead}
            else:
                newer = asked.call.index.newer(ahead, shared=asked.filter.shared)
                current = [new for new in ahead if not newer[new].superseded_by]
                missing = [new for new in current if new not in own]
                records = asked.call.index.among(missing, asked.filter)
                added = _as_hits(asked.call, records, hit.score, asked.filter)
            moved = (by_name[name[0], new][1] for new in ahead if new in own)
            above = {new.record.memory.id: new for new in (*added, *moved)} | above
            ahead = tuple(after for old in ahead for after in newer[old].superseded_by)
        for new, successor in above.items():
            if name[1] not in reached or new not in own:
                higher = replace(successor, score=max(successor.score, hit.score))
                complete.setdefault((name[0], new), (asked, higher))
        complete[name] = asked, hit
    return list(complete.values())


# Lists: questions about a time or about no subject.


def _one_list(projects: Sequence[Asked], options: Options) -> Answer:
    """Returns the lists of projects as one, newest first.

    The memories of a time in one project are better than the newest ones of another, and are above
    those that only name it.
    """
    calls = [(asked.call, asked.filter) for asked in projects if asked.call]
    considered = sum(call.index.count(filter) for call, filter in calls)
    lists = [(asked, asked.listed) for asked in projects if asked.listed]
    sure = [pair for pair in lists if not all(map(is_weak, pair[1].hits))]
    lists = sure or lists
    once = _each_once([Found(hits=listed.hits, considered=0) for _, listed in lists])
    matches = [
        (asked, hit) for (asked, _), result in zip(lists, once, strict=True) for hit in result.hits
    ]
    if len(lists) > 1:
        matches.sort(key=lambda match: match[1].record.memory.created, reverse=True)
        matches.sort(key=lambda match: is_of_other_time(match[1]))
    matches = matches[: options.limit]
    has_other_times = any(is_of_other_time(hit) for _, hit in matches)
    owners = [asked for asked, hit in matches if not is_of_other_time(hit)]
    remarks = [
        f"{listed.remark}{listed.below if has_other_times else ''}"
        for asked, listed in lists
        if listed.remark and (asked in owners or not owners)
    ]
    return Answer(
        matches=tuple((asked.call, hit) for asked, hit in matches if asked.call),
        considered=considered,
        notice=join_texts(*dict.fromkeys(remarks)),
        listed=True,
    )


def _within(options: Options, span: Interval) -> Options | None:
    """Returns the options limited to a span of time; None if no time meets both."""
    chosen = options.filter
    since = max((end for end in (chosen.since, span.since) if end), default=None)
    until = min((end for end in (chosen.until, span.until) if end), default=None)
    if since and until and since >= until:
        return None
    return replace(options, filter=replace(chosen, since=since, until=until))


def _resolved(time: NamedTime, span: Interval, now: datetime) -> str:
    from mimo.when import shown

    return f"`{time.expression}` ({shown(span, now)})"


def _list(call: Call, text: str, asking: Asking, options: Options) -> Listed:
    """Returns the list of one memory for a question about a time, or without a subject."""
    from mimo.when.question import Way

    if asking.way is Way.SPAN:
        return _of_span(call, text, asking, options)
    if Way.OPEN in (asking.way, asking.otherwise):
        return _open_work(call, asking, options)
    is_latest = Way.LATEST in (asking.way, asking.otherwise)
    return _listed(call, asking, options, latest=is_latest)


def _of_span(call: Call, text: str, asking: Asking, options: Options) -> Listed:
    """Returns the memories of a time, then those of other times that name the date.

    If there are none, it returns the newest ones, which are weak. In each case it is a list, which
    is about this project. The remark states which of them it is.
    """
    time = asking.time
    if time is None:
        raise TypeError(asking)
    hits: tuple[Hit, ...] = ()
    remark = None
    types = options.filter.types
    narrow = [frozenset({Kind.DECISION})] if asking.decisions and types is None else []
    tried = (*narrow, types)
    widest = time.spans[len(time.meant) :]
    for kinds, span in (*product(tried, time.meant), *product(tried, widest)):
        within = _within(options, span)
        if within and not hits:
            chosen = replace(within, filter=replace(within.filter, types=kinds))
            hits = _newest(call, chosen, score=1.0, resuming=asking.resuming, documents=False)
            named = _resolved(time, span, call.mind.local_now())
            remark = f"the {'decisions' if narrow else 'memories'} of this time: {named}"
            if narrow and kinds is types:
                remark = f"no decision is of this time: {named}; these are its other memories"
    missing = f"no memory is of this time: {_resolved(time, time.spans[-1], call.mind.local_now())}"
    mentions = [] if time.is_relative else _naming(call, text, time, options)
    if hits:
        listed = {hit.record.memory.id for hit in hits}
        mentions = [hit for hit in mentions if hit.record.memory.id not in listed]
        return Listed((*hits, *mentions)[: options.limit], remark, _BESIDE)
    if mentions:
        return Listed(tuple(mentions), f"{missing}; these name it")
    latest = _listed(call, asking, options, weak=True)
    if not latest.hits:
        return Listed((), missing)
    kind = "newest decisions" if latest.remark == _DECISIONS else "newest"
    return Listed(latest.hits, f"{missing}; these are the {kind}")


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

    result = call.index.search(request(call, text, options))
    if options.filter.shared:
        result = _shared(call, result)
    return [
        replace(hit, score=min(hit.score, _OTHER_TIME))
        for hit in result.hits[: options.limit]
        if not is_weak(hit) and names_it(hit)
    ]


def _listed(
    call: Call, asking: Asking, options: Options, *, latest: bool = False, weak: bool = False
) -> Listed:
    """Returns the latest work, the decisions, or the newest memories, which are weak.

    With `weak`, the decisions are weak as well.
    """
    if asking.decisions and options.filter.types is None:
        kinds = replace(options.filter, types=frozenset({Kind.DECISION}))
        chosen = replace(options, filter=kinds)
        decisions = _newest(call, chosen, score=float(not weak), resuming=False)
        if decisions:
            return Listed(decisions, _DECISIONS)
    hits = _newest(call, options, score=float(latest), resuming=latest)
    return Listed(hits, (_LATEST if latest else _NEWEST) if hits else None)


def _newest(
    call: Call, options: Options, *, score: float, resuming: bool, documents: bool = True
) -> tuple[Hit, ...]:
    """Returns the newest memories as matches; with `resuming`, the newest checkpoint is first."""
    if options.threshold is not None and score < options.threshold:
        return ()
    records = newest(call, options.filter, options.limit, documents=documents)
    if resuming:
        checkpoint = _checkpoint(call, options.filter)
        tail = [record for record in records if record not in checkpoint]
        records = (*checkpoint, *tail)[: options.limit]
    return _as_hits(call, records, score, options.filter)


def _checkpoint(call: Call, filter: Filter) -> tuple[Record, ...]:
    """Returns the newest checkpoint that is not archived; none if the filter has types."""
    if filter.types is not None:
        return ()
    kinds = replace(filter, types=frozenset({Kind.CHECKPOINT}))
    for limit in (1, _READ):
        for record in call.index.records(kinds, limit=limit):
            if (record.memory.status or "").lower() != "archived":
                return (record,)
    return ()


def _open_work(call: Call, asking: Asking, options: Options) -> Listed:
    """Returns the open issues, the newest checkpoint and the open plans of one memory.

    A question for the next step is answered by the checkpoint first. If no issue or plan is open,
    the answer is the latest work.
    """
    issues, plans = (_open(call, kind, options.filter) for kind in (Kind.ISSUE, Kind.PLAN))
    if not issues and not plans:
        latest = _newest(call, options, score=1.0, resuming=True)
        return Listed(latest, _CLOSED if latest else None)
    checkpoint = _checkpoint(call, options.filter)
    if asking.resuming:
        records = (*checkpoint, *plans, *issues)
    else:  # However many issues are open, the next steps are in the answer.
        room = max(1, options.limit - len(checkpoint) - min(1, len(plans)))
        records = (*issues[:room], *checkpoint, *plans, *issues[room:])
    records = records[: options.limit]
    hits = _as_hits(call, records, 1.0, options.filter)
    steps = [hit.record.memory.sections.get(Section.NEXT_STEPS) for hit in hits]
    return Listed(
        tuple(
            replace(hit, passage=text) if text else hit
            for hit, text in zip(hits, steps, strict=True)
        ),
        _OPEN,
    )


def _open(call: Call, kind: Kind, filter: Filter) -> tuple[Record, ...]:
    """Returns the issues or plans that are neither closed nor superseded, newest first."""
    if filter.types is not None and kind not in filter.types:
        return ()
    kinds = replace(filter, types=frozenset({kind}), whole=True)
    records = call.index.records(kinds, limit=_READ)
    newer = call.index.newer([record.memory.id for record in records])
    return tuple(
        record
        for record in records
        if closed_as(kind, record.memory.status) is None
        and not newer[record.memory.id].superseded_by
    )


def _as_hits(
    call: Call, records: Sequence[Record], score: float, filter: Filter
) -> tuple[Hit, ...]:
    """Returns memories that are in an answer without a match of their own."""
    ids = [record.memory.id for record in records]
    newer = call.index.newer(ids, shared=filter.shared)
    competing = call.index.competing(ids, shared=filter.shared)
    return tuple(
        Hit(
            record=record,
            score=score,
            passage=record.memory.content[:_PASSAGE] or record.memory.heading,
            line=record.place.line,
            newer=newer[record.memory.id],
            competing=competing.get(record.memory.id, ()),
            is_listed=True,
        )
        for record in records
    )


def check_length(text: str) -> None:
    """Raises `Invalid` for a text that is too long to search for."""
    if len(text) > MOST_QUERY:
        raise Invalid(
            f"a query of {len(text):,} characters is too long",
            hint=f"ask in {MOST_QUERY:,} characters at most",
            details={"field": "query"},
        )
