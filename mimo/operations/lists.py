"""The lists that answer questions about a time, about the latest or open work, or about nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING

from mimo.call import Call
from mimo.frozen import NamedTuple, replace
from mimo.index.rows import SURE, Found, Hit
from mimo.memory.model import Filter, Kind, Record, Section
from mimo.memory.note import closed_as
from mimo.operations.finding import Options, newest
from mimo.text.calendar import MONTHS

if TYPE_CHECKING:
    from datetime import datetime

    from mimo.when import Interval
    from mimo.when.question import Asking, NamedTime

Find = Callable[[str, Options], Found]
"""A search of one memory."""

NEWEST = "the query names no subject; these are the newest memories"
_DECISIONS = "the question is about no other subject; these are the newest decisions"
_LATEST = "the question is about the latest work; these are the newest memories"
_OPEN = "the question is about open work; these are the open issues, next steps and plans"
_CLOSED = "no issue or plan is open; these are the newest memories"
_READ = 300
"""The number of checkpoints, issues or plans that are read to find one that is not closed."""
_OTHER_TIME = 0.99
"""The highest score of a memory of another time than the one that a question names."""
_BESIDE = ", then memories of other times that name it"
_PASSAGE = 2_000
"""Characters of a listed memory that count as its passage."""


class Listed(NamedTuple):
    """The list of one memory that answers a question about a time, or about no subject."""

    hits: tuple[Hit, ...]
    remark: str | None = None
    """The way in which the query was understood."""
    below: str = ""
    """The continuation of the remark for matches of another time, which are below the others."""


def is_of_other_time(hit: Hit) -> bool:
    """Returns whether a memory in the list of a time is of another time, and only names it."""
    return SURE <= hit.score <= _OTHER_TIME


def within(options: Options, span: Interval) -> Options | None:
    """Returns the options limited to a span of time; None if no time meets both."""
    chosen = options.filter
    since = max((end for end in (chosen.since, span.since) if end), default=None)
    until = min((end for end in (chosen.until, span.until) if end), default=None)
    if since and until and since >= until:
        return None
    return replace(options, filter=replace(chosen, since=since, until=until))


def resolved(time: NamedTime, span: Interval, now: datetime) -> str:
    """Returns an expression of a time with the span that it names now."""
    from mimo.when import shown

    return f"`{time.expression}` ({shown(span, now)})"


def list_for(call: Call, text: str, asking: Asking, options: Options, find: Find) -> Listed:
    """Returns the list of one memory for a question about a time, or without a subject.

    `find` searches that memory.
    """
    from mimo.when.question import Way

    if asking.way is Way.SPAN:
        return _of_span(call, text, asking, options, find)
    if Way.OPEN in (asking.way, asking.otherwise):
        return _open_work(call, asking, options)
    has_latest_text = Way.LATEST in (asking.way, asking.otherwise)
    return _listed(call, asking, options, latest=has_latest_text)


def _of_span(call: Call, text: str, asking: Asking, options: Options, find: Find) -> Listed:
    """Returns the memories of a time, then those of other times that name the date.

    If there are none, it returns the newest ones, with score 0. In each case it is a list, which
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
    spans = (*product(tried, time.meant), *product(tried, widest))
    # Documents, such as the notes of a journal, are of a time only if nothing else is.
    for documents, (kinds, span) in product((False, True), spans):
        narrow_options = within(options, span)
        if narrow_options and not hits:
            kinds_alone = replace(narrow_options.filter, types=kinds)
            chosen = replace(narrow_options, filter=kinds_alone)
            hits = _newest(call, chosen, score=1.0, resuming=asking.resuming, documents=documents)
            named = resolved(time, span, call.mind.local_now())
            remark = f"the {'decisions' if narrow else 'memories'} of this time: {named}"
            if narrow and kinds is types:
                remark = f"no decision is of this time: {named}; these are its other memories"
    missing = f"no memory is of this time: {resolved(time, time.spans[-1], call.mind.local_now())}"
    mentions = [] if time.is_relative else _naming(call, text, time, options, find)
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


def _naming(call: Call, text: str, time: NamedTime, options: Options, find: Find) -> list[Hit]:
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
        for hit in find(text, options).hits[: options.limit]
        if hit.score >= SURE and names_it(hit)
    ]


def _listed(
    call: Call, asking: Asking, options: Options, *, latest: bool = False, weak: bool = False
) -> Listed:
    """Returns the latest work, the decisions, or the newest memories, with a score of 0.

    With `weak`, the decisions have that score as well.
    """
    if asking.decisions and options.filter.types is None:
        kinds = replace(options.filter, types=frozenset({Kind.DECISION}))
        chosen = replace(options, filter=kinds)
        decisions = _newest(call, chosen, score=float(not weak), resuming=False)
        if decisions:
            return Listed(decisions, _DECISIONS)
    hits = _newest(call, options, score=float(latest), resuming=latest)
    return Listed(hits, (_LATEST if latest else NEWEST) if hits else None)


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
    return as_hits(call, records, score, options.filter)


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
    hits = as_hits(call, records, 1.0, options.filter)
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


def as_hits(
    call: Call, records: Sequence[Record], score: float, filter: Filter, *, is_listed: bool = True
) -> tuple[Hit, ...]:
    """Returns memories that are in an answer without a match of their own.

    They are rows of a list if `is_listed`, which have no relevance.
    """
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
            is_listed=is_listed,
        )
        for record in records
    )
