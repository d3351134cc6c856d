"""Searching one memory or several together: by a query, a time, or for the latest work.

All that are searched form one pool, whose matches are ordered and scored together. What an answer
shows of them is decided in one place, `row_count`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from mimo.call import Call
from mimo.errors import (
    Cancelled,
    Invalid,
    MindError,
    SearchFailed,
    StorageFailed,
    join_texts,
)
from mimo.frozen import NamedTuple, frozen, replace
from mimo.index.rows import SURE, Found, Hit, Request, least
from mimo.memory.model import Filter, topic_key
from mimo.memory.naming import is_named, key_of
from mimo.operations import refresh
from mimo.operations.finding import Options
from mimo.operations.lists import (
    NEWEST,
    Listed,
    as_hits,
    is_of_other_time,
    list_for,
    resolved,
    within,
)
from mimo.text.clean import compiled

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

RANKED = 60
"""The number of matches of each memory that are ordered together, at least."""

WEAK = "no sure match; these are the nearest, and weak"
_RESPELLED = SURE - 0.01
"""The highest score of a match of the nearest words, which is never sure."""
STAY_OPEN = 16
"""The number of other projects that stay open: each takes several open files and 0.4 MB."""
_THEN_OPEN = "below the matches are the open issues, next steps and plans"


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
    beyond: str | None = None
    """The notice that sure matches are beyond the limit."""

    @property
    def hits(self) -> tuple[Hit, ...]:
        """Returns the matches without their memories."""
        return tuple(hit for _, hit in self.matches)


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
    return True if hit.score < SURE and not hit.is_listed else None


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
    from mimo.index.selection import count_unread  # The completion of options needs no SQLite.

    asking, problem = understood(text, call.mind.local_now()), None
    pool = [ask(call, text, asking, options)]
    if with_user and (user := call.user()):
        problem = add_users(pool, user, text, asking, options)
    answer = answered(text, asking, pool, options, counted=counted)
    if asking.time:
        from mimo.project import git
        from mimo.project.walk import COMMITS, LOG

        is_of_git = any(hit.record.place.path in (LOG, COMMITS) for hit in answer.hits)
        if is_of_git and git.boundary(call.mind.project.root):
            problem = join_texts(problem, git.SHALLOW)
    if number := call.index.cached(count_unread):
        files = "1 file" if number == 1 else f"{number:,} files"
        problem = join_texts(f"{files} can't be read (doctor names them)", problem)
    return replace(answer, notice=join_texts(call.notice, answer.notice, problem))


def check_length(text: str) -> None:
    """Raises `Invalid` for a query of more than `MOST_QUERY` characters."""
    if len(text) > MOST_QUERY:
        raise Invalid(
            f"a query of {len(text):,} characters is too long",
            hint=f"ask in {MOST_QUERY:,} characters at most",
            details={"field": "query"},
        )


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
                empty = Found(hits=(), considered=0)
                tries.append(_find(call, by_meaning, words, narrowed) if narrowed else empty)
            listed = None
            if asking.way is not Way.SEARCH or asking.otherwise:
                listed = list_for(call, text, asking, options, partial(_find, call, by_meaning))
            best = [hit.record for result in tries for hit in result.hits[: options.limit]]
            records = [*best, *map(attrgetter("record"), listed.hits if listed else ())]
            if is_again or not refresh.reread(call, records):
                return Asked(call, options.filter, tuple(tries), listed, call.mind.is_users)
            is_again = True
    except StorageFailed as error:
        raise SearchFailed(
            f"nothing could be searched: {error.message}", hint=error.hint
        ) from error


def _find(call: Call, by_meaning: bool | None, text: str, options: Options) -> Found:
    """Returns the matches in one memory.

    Approved literal matches are among them, however many others there are. If private memories are
    left out, these neither replace nor contest a match.
    """
    asked = request(call, text, options)._replace(by_meaning=by_meaning)
    result = call.index.search(asked)
    names = [hit.record.place.approval for hit in result.hits]
    if len(names) >= asked.limit and not call.mind.trust.trusted(*names):
        approved = replace(options.filter, approved=True)
        result = _with_literal(result, call.index.search(asked._replace(filter=approved)), text)
    if not options.filter.shared:
        return result
    ids = [hit.record.memory.id for hit in result.hits]
    newer = call.index.newer(ids, shared=True)
    competing = call.index.competing(ids, shared=True)
    hits = (
        replace(hit, newer=newer[id], competing=competing.get(id, ()))
        for id, hit in zip(ids, result.hits, strict=True)
    )
    return replace(result, hits=tuple(hits))


def _with_literal(result: Found, approved: Found, text: str) -> Found:
    """Returns an answer with the approved literal matches that others left no room for."""
    keys = {hit.key for hit in result.hits}
    key = key_of(text)
    literal = (hit for hit in approved.hits if hit.is_literal or is_named(hit.record, key))
    hits = (*result.hits, *(hit for hit in literal if hit.key not in keys))
    of, more = result.evidence, approved.evidence
    if of and more:
        cosines = of.cosines._replace(of={**more.cosines.of, **of.cosines.of})
        of = of._replace(candidates={**more.candidates, **of.candidates}, cosines=cosines)
    return replace(result, hits=hits, evidence=of)


def _approved_first(matches: list[tuple[Asked, Hit]]) -> list[tuple[Asked, Hit]]:
    """Returns matches with the approved literal ones first: texts of a pull never hide them."""
    literal = [(asked, hit) for asked, hit in matches if hit.is_literal]
    approved = [
        (asked, hit)
        for asked, hit in literal
        if not asked.call or asked.call.mind.trust.trusted(hit.record.place.approval)
    ]
    if not approved or len(approved) == len(literal):
        return matches
    lowest = min(hit.score for _, hit in approved)
    below = [
        (asked, replace(hit, score=min(hit.score, lowest)) if hit.is_literal else hit)
        for asked, hit in matches
        if (asked, hit) not in approved
    ]
    return [*approved, *sorted(below, key=lambda match: not match[1].is_literal)]


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
    narrow = [(time.rest if time else text, within(options, span), span) for span in spans]
    return [*narrow, (text, options, None)]


def request(call: Call, text: str, options: Options) -> Request:
    """Returns the request for enough matches to order them with those of other memories."""
    return Request(
        text,
        filter=options.filter,
        limit=max(options.limit, RANKED),
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
            remark = f"only from this time: {resolved(asking.time, span, now)}"
            break
        weak = answer if answer.matches and not weak.matches else weak
    answer = _respelled(text, asking, pool, options, answer)
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
    return replace(answer, notice=join_texts(answer.notice, remark))


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


def _respelled(
    text: str, asking: Asking, pool: Sequence[Asked], options: Options, answer: Answer
) -> Answer:
    """Returns weak matches of the nearest words of the memories, for words that none of them has.

    That is `answer` if it is sure, the query is not short, no memory has words near to all, or the
    pool has memories that are closed again.
    """
    if answer.sure or options.threshold is not None or len(pool) > STAY_OPEN + 1:
        return answer
    from mimo.index.spelling import nearest, terms, unknown

    own = [(asked.call, asked.filter) for asked in pool if asked.call]
    spelled: dict[str, str] = {}
    for word in unknown(text, [asked.tries[-1] for asked in pool]):
        near = []
        for call, conditions in own:
            # The notice has the word: for an agent it is one of an approved memory.
            is_approved = conditions.approved or call.agent is not None
            passing = replace(conditions, approved=is_approved)
            near += call.index.ask(nearest, call.index.cached(terms), word, passing)
        if not near:
            return answer
        spelled[word] = min(near)[-1]
    if not spelled:
        return answer
    text = compiled(r"\w+").sub(lambda match: spelled.get(match[0], match[0]), text)
    again = [
        ask(call, text, asking, replace(options, filter=conditions), by_meaning=False)
        for call, conditions in own
    ]
    nearby = _pooled(text, again, -1, options)
    sure = nearby.matches[: min(nearby.sure, max(options.weak, NEAREST))]
    if not any(hit.is_literal for _, hit in sure):
        return answer
    matches = [(owner, replace(hit, score=min(hit.score, _RESPELLED))) for owner, hit in sure]
    missing, present = (
        " and ".join(map('"{}"'.format, words)) for words in zip(*spelled.items(), strict=True)
    )
    notice = f"no memory has {missing}; these have {present}"
    return Answer(matches=tuple(matches), considered=nearby.considered, notice=notice)


def _searched_times(time: NamedTime, now: datetime) -> str:
    named = resolved(time, time.spans[0], now)
    if time.is_relative:
        return f"no sure match is of this time: {named}; all times were searched"
    return f"all times were searched, not only this one: {named}"


def _pooled(text: str, pool: Sequence[Asked], number: int, options: Options) -> Answer:
    """Returns what is shown of the matches of one try in all memories."""
    matches = ordered(text, pool, number)
    answers = [asked.tries[number] for asked in pool]
    considered = sum(result.considered for result in answers)
    rows = row_count([hit for _, hit in matches], considered, options)
    sure = sum(not is_weak(hit) for _, hit in matches)
    notices = [result.notice for result in answers]
    is_all_weak = rows and not sure and options.threshold is None
    return Answer(
        matches=tuple((asked.call, hit) for asked, hit in matches[:rows] if asked.call),
        considered=considered,
        notice=join_texts(*dict.fromkeys(notices), WEAK if is_all_weak else None),
        sure=min(sure, rows),
        beyond=beyond([hit for _, hit in matches], rows, options),
    )


def ordered(text: str, pool: Sequence[Asked], number: int) -> list[tuple[Asked, Hit]]:
    """Returns the matches of one try in all memories of a pool, best first."""
    from mimo.index.search import pooled

    answers = [asked.tries[number] for asked in pool]
    pool = [asked._replace(filter=each.filter) for asked, each in zip(pool, answers, strict=True)]
    if len(pool) > 1:
        once = _each_once([each.hits for each in answers])
        answers = [replace(each, hits=hits) for each, hits in zip(answers, once, strict=True)]
    matches = [(pool[place], hit) for place, hit in pooled(text, answers)]
    if sum(hit.is_literal for _, hit in matches) > 1:
        matches = _approved_first(matches)
    matches = with_successors(matches)
    return _below_topic(matches) if any(asked.is_users for asked in pool) else matches


def row_count(hits: Sequence[Hit], considered: int, options: Options) -> int:
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


def beyond(hits: Sequence[Hit], rows: int, options: Options) -> str | None:
    """Returns the notice that the limit leaves sure ones of some matches out, beyond `rows`."""
    requested = sum(hit.score >= max(SURE, options.threshold or 0) for hit in hits)
    if requested <= rows:
        return None
    more = " or more" if requested >= RANKED else ""
    noun = "result is" if requested - rows == 1 and not more else "results are"
    return f"{requested - rows:,}{more} sure {noun} beyond the limit"


def _each_once(answers: Sequence[tuple[Hit, ...]]) -> list[tuple[Hit, ...]]:
    """Returns matches in which a memory of the same text in several projects is in the first alone.

    Worktrees and clones of a repository have the same files.
    """
    owners: dict[tuple[str, str], int] = {}
    distinct = []
    for number, hits in enumerate(answers):
        names = [(hit.record.memory.id, hit.record.place.digest) for hit in hits]
        pairs = zip(names, hits, strict=True)
        own = (hit for name, hit in pairs if owners.setdefault(name, number) == number)
        distinct.append(tuple(own))
    return distinct


def _below_topic(matches: list[tuple[Asked, Hit]]) -> list[tuple[Asked, Hit]]:
    """Returns matches with the user's note on a topic below those of a project on it.

    What a project decided is above a general preference.
    """

    def topic_of(hit: Hit) -> str:
        return topic_key(hit.record.memory.topic or "")

    topics = {topic_of(hit) for asked, hit in matches if not asked.is_users} - {""}
    of_user = [match for match in matches if match[0].is_users and topic_of(match[1]) in topics]
    for asked, hit in of_user:
        matches.remove((asked, hit))
        same = [place for place, (_, each) in enumerate(matches) if topic_of(each) == topic_of(hit)]
        score = min(hit.score, matches[same[-1]][1].score)
        matches.insert(same[-1] + 1, (asked, replace(hit, score=score)))
    return matches


def with_successors(matches: Sequence[tuple[Asked, Hit]]) -> list[tuple[Asked, Hit]]:
    """Returns the matches with each superseded one below its successors, over all steps.

    A successor answers the same question, so a current one that did not match itself is added, with
    the score of the match that it replaces. A circle of matches keeps its order.
    """
    by_name = {(id(asked), hit.record.memory.id): (asked, hit) for asked, hit in matches}
    if not any(hit.newer.superseded_by for _, hit in matches):
        return list(by_name.values())
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
                added = as_hits(asked.call, records, hit.score, asked.filter, is_listed=False)
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
    sure = [pair for pair in lists if any(hit.score >= SURE for hit in pair[1].hits)]
    lists = sure or lists
    once = _each_once([listed.hits for _, listed in lists])
    matches = [(asked, hit) for (asked, _), hits in zip(lists, once, strict=True) for hit in hits]
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
    if NEWEST in remarks and len(matches) == options.limit < considered:
        remarks.append("more are beyond the limit")
    return Answer(
        matches=tuple((asked.call, hit) for asked, hit in matches if asked.call),
        considered=considered,
        notice=join_texts(*dict.fromkeys(remarks)),
        listed=True,
    )
