"""Finding memories: by meaning and words, by id, and in lists."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Generic, NamedTuple, Protocol, TypeVar

from mimo.errors import (
    AmbiguousId,
    Denied,
    Invalid,
    MindError,
    NotFound,
    RateLimited,
    SearchFailed,
    StorageFailed,
)
from mimo.frozen import frozen
from mimo.guard.policy import Call, Operation
from mimo.index.rows import Found, Hit, Newer
from mimo.memory.decay import Use
from mimo.memory.model import Filter, Kind, Record, Sort
from mimo.mind import Mind
from mimo.operations import refresh
from mimo.store import projects

# Counting what was found and shown, which keeps memories from fading.


def note(mind: Mind, records: Iterable[Record]) -> None:
    """Counts an access to each memory: a search answered with it, or it was shown or loaded.

    Nobody waits for it, and an answer never fails because it can't be counted.
    """
    with suppress(MindError, OSError):
        mind.accesses.note([one.memory.id for one in records], mind.now())


def uses(mind: Mind) -> dict[str, Use]:
    """Returns how often each memory was used on this machine, and when last."""
    with suppress(MindError, OSError):
        mind.accesses.flush()
    return mind.accesses.uses()


# All projects of the user, each other one asked through its own guard.


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Question(Protocol[T_co]):
    """What is asked of each project; `here` is the one that is open."""

    def __call__(self, mind: Mind, /, *, here: bool) -> T_co:
        """Returns the answer of a project."""


class Answer(NamedTuple, Generic[T]):
    """The answer of a project."""

    name: str
    mind: Mind
    here: bool
    value: T


class Answers(NamedTuple, Generic[T]):
    """The answers of all projects that could be asked, and why the others could not."""

    found: tuple[Answer[T], ...]
    skipped: tuple[str, ...]
    """The name of each skipped project with the reason, which tells nothing of its policy."""


def ask_each(
    mind: Mind, tool: str, question: Question[T], *, diagnosis: bool = False
) -> Answers[T]:
    """Returns what each registered project and the open one answer.

    Each other project permits, counts and records the call of `tool` as its own policy says. A
    project that the user keeps apart (`search_all`) is not asked, unless it is the open one.
    """
    registry = projects.registered(mind.home)
    here = mind.project.root if mind.has_project else None
    found: list[Answer[T]] = []
    skipped = [registry.problem] if registry.problem else []
    for known in registry.projects:
        mind.heed()
        if known.path == here or not known.search_all:
            continue
        try:
            other = mind.at(known)
            if other is None:
                skipped.append(f"{known.name} is gone")
                continue
            call = Call(
                tool=tool,
                operation=Operation.READ,
                diagnosis=diagnosis,
                agent=mind.agent,
                at=mind.now(),
            )
            with other.guard.passing(call, mind.timer.monotonic):
                found.append(Answer(known.name, other, False, question(other, here=False)))
        except Exception as error:  # one broken project must not stop the others
            if mind.halted and mind.halted():
                raise
            skipped.append(f"{known.name} was skipped: {_reason(error, tool)}")
    if here:
        name = next((one.name for one in registry.projects if one.path == here), mind.project.name)
        try:
            found.append(Answer(name, mind, True, question(mind, here=True)))
        except (SearchFailed, StorageFailed) as error:
            skipped.append(f"{name}: {error.message}")
    return Answers(tuple(found), tuple(skipped))


def _reason(error: Exception, tool: str) -> str:
    """Returns why a project was skipped, and neither a rule of its policy nor a name in it."""
    if isinstance(error, Denied):
        invalid = error.reason == "policy"
        return "its policy is invalid" if invalid else f"its policy does not permit `{tool}`"
    if isinstance(error, RateLimited):
        return "its policy permits no more calls for now"
    code = error.code if isinstance(error, MindError) else type(error).__name__
    return f"it can't be read ({code}); run `mind doctor` there"


THRESHOLD = 0.3
"""The score that separates related from unrelated."""

NEAREST = 3
"""How many memories are answered where none reaches the threshold."""

SURE_LENGTH = 6
"""Characters of a cut id that is surely meant: those that end every id of ours."""
_TYPES = frozenset({"source", *(kind.value for kind in Kind)})

MOST_QUERY = 10_000
"""Characters of the longest query."""


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
    threshold: float | None = THRESHOLD
    """Minimum score of a match; None for the default and, if no match reaches it, the closest."""
    everywhere: bool = False
    """Whether all registered projects are searched."""
    private: bool = False
    """Whether private memories of other projects are searched; never for an agent."""


EVERYTHING = Options()


@frozen
class Page:
    """A part of a list, and how many memories the whole of it has."""

    records: tuple[Record, ...]
    total: int


@frozen
class ProjectHit:
    """A hit, and the project that it is from."""

    mind: Mind
    hit: Hit
    shared: bool = False
    """Whether nothing private of the project may be named beside it."""

    @property
    def score(self) -> float:
        """Returns the score of the hit."""
        return self.hit.score


@frozen
class ProjectHits:
    """The matches in one or more projects, best first."""

    hits: tuple[ProjectHit, ...]
    notice: str | None = None


Matches = TypeVar("Matches", Found, ProjectHits)


def find(mind: Mind, text: str, options: Options) -> ProjectHits:
    """Returns the best matches in this project or, with `everywhere`, in all registered ones."""
    if options.everywhere:
        return _search_projects(mind, text, options)
    return _of_project(mind, search(mind, text, options))


def search(mind: Mind, text: str, options: Options) -> Found:
    """Returns the memories of this project that best match `text`, best first.

    `notice` reports an incomplete search. Each match that reaches the default threshold counts as
    used. Raises `SearchFailed` if not even the files can be read.
    """
    found = peek(mind, text, options)
    note(mind, _related(found.hits))
    return found if options.threshold is not None else _related_or_closest(found)


def peek(mind: Mind, text: str, options: Options) -> Found:
    """Returns the matches without counting them as used.

    Without a threshold these may be matches that are not related, if no other is.
    """
    _check_query(text)
    is_open = options.threshold is None
    try:
        found = refresh.ask(
            mind,
            lambda index: index.search(
                text,
                filter=options.filter,
                limit=options.limit,
                threshold=THRESHOLD if options.threshold is None else options.threshold,
                nearest=min(options.limit, NEAREST) if is_open else 0,
                now=mind.now(),
            ),
        )
    except StorageFailed as error:
        raise SearchFailed(
            f"nothing could be searched: {error.message}", hint=error.hint
        ) from error
    return replace(
        found,
        hits=_never_rising(found.hits),
        notice="; ".join(filter(None, (mind.notice, found.notice))) or None,
    )


def _related(hits: Iterable[Hit]) -> list[Record]:
    """Returns the memories that are related; the closest of unrelated ones do not count as used."""
    return [hit.record for hit in hits if hit.score >= THRESHOLD]


def _related_or_closest(found: Matches) -> Matches:
    """Returns the related matches or, if there are none, the few closest.

    Texts that share no word rarely score high enough, and the caller can judge them.
    """
    related = tuple(hit for hit in found.hits if hit.score >= THRESHOLD)
    if related or not found.hits:
        return replace(found, hits=related)
    notice = "nothing matches well; these are the nearest"
    return replace(
        found,
        hits=found.hits[:NEAREST],
        notice="; ".join(filter(None, (found.notice, notice))),
    )


def _check_query(text: str) -> None:
    """Raises `Invalid` for a text that can't be searched for."""
    if not text.strip():
        raise Invalid("the query is empty", hint="say what to look for")
    if len(text) > MOST_QUERY:
        raise Invalid(
            f"a query of {len(text):,} characters is too long",
            hint=f"ask in {MOST_QUERY:,} characters at most",
            details={"field": "query"},
        )


def _never_rising(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Returns the hits with scores that never rise from one to the next.

    The order and the score come from different formulas; that a hit stands above another says
    that it is at least as relevant.
    """
    rising = accumulate((hit.score for hit in reversed(hits)), max)
    return tuple(
        replace(hit, score=score) for hit, score in zip(hits, [*rising][::-1], strict=True)
    )


def _of_project(mind: Mind, found: Found, *, shared: bool = False) -> ProjectHits:
    hits = [
        replace(hit, newer=_shared_of(mind, hit.newer)) if shared else hit for hit in found.hits
    ]
    rows = tuple(ProjectHit(mind=mind, hit=hit, shared=shared) for hit in hits)
    return ProjectHits(hits=rows, notice=found.notice)


def _shared_of(mind: Mind, newer: Newer) -> Newer:
    """Returns what claims to supersede a memory, without private memories."""
    return Newer(_shared(mind, newer.superseded_by), _shared(mind, newer.claimed_by))


def _shared(mind: Mind, ids: Iterable[str]) -> tuple[str, ...]:
    """Returns those ids that are not of private memories: an id has words of the text."""
    records = ((id, mind.index.get(id)) for id in ids)
    return tuple(id for id, record in records if record and not record.place.private)


def with_competing(
    hits: tuple[ProjectHit, ...],
) -> list[tuple[ProjectHit, tuple[str, ...] | None]]:
    """Returns each hit with the ids of the decisions of its project that compete with it."""
    ids: dict[int, list[str]] = {}
    minds = {id(found.mind): found.mind for found in hits}
    for found in hits:
        ids.setdefault(id(found.mind), []).append(found.hit.record.memory.id)
    others = {name: mind.index.competing(ids[name]) for name, mind in minds.items()}

    def competing(found: ProjectHit) -> tuple[str, ...] | None:
        named = others[id(found.mind)].get(found.hit.record.memory.id)
        return (_shared(found.mind, named) or None) if named and found.shared else named

    return [(found, competing(found)) for found in hits]


def _search_projects(mind: Mind, text: str, options: Options) -> ProjectHits:
    """Returns the best matches of all registered projects, ranked together by their score.

    Each other project is searched through its own guard. The notice names those that could not be
    searched, with the reason.
    """
    _check_query(text)
    with_private = options.private and mind.agent is None
    shared = replace(options, filter=replace(options.filter, shared=True))

    def matches(other: Mind, *, here: bool) -> Found:
        return peek(other, text, options if here or with_private else shared)

    answers, skipped = ask_each(mind, "mind_search", matches)
    hits: list[ProjectHit] = []
    notices = list(skipped)
    for answer in answers:
        hits += _of_project(
            answer.mind, answer.value, shared=not (answer.here or with_private)
        ).hits
        notices += [f"{answer.name}: {answer.value.notice}"] if answer.value.notice else []
    hits.sort(key=lambda hit: -hit.score)
    best = hits[: options.limit]
    for other in {id(hit.mind): hit.mind for hit in best}.values():
        note(other, _related(hit.hit for hit in best if hit.mind is other))
    found = ProjectHits(hits=tuple(best), notice="; ".join(notices) or None)
    return found if options.threshold is not None else _related_or_closest(found)


def listing(mind: Mind, options: Options = EVERYTHING) -> Page:
    """Returns one page of the memories that pass the filter, and the number of all that do."""
    return refresh.ask(
        mind,
        lambda index: Page(
            records=index.records(
                options.filter, sort=options.sort, limit=options.limit, offset=options.offset
            ),
            total=index.count(options.filter),
        ),
    )


def total(mind: Mind, *, shared: bool = False) -> int:
    """Returns the number of memories of a project, perhaps without private ones."""
    return refresh.ask(mind, lambda index: index.count(Filter(shared=shared)))


def successor(mind: Mind, id: str) -> str | None:
    """Returns the id of the newest memory that supersedes this one, or None."""
    return mind.index.superseded_by((id,)).get(id)


def one(mind: Mind, wanted: str, *, surely: bool = False) -> Record:
    """Returns the memory with that id, or the only one whose id begins or ends with it.

    With `surely`, a cut id must be such that it was meant: neither short nor the name of a type, of
    which there happens to be only one. Raises `NotFound` with the nearest ids, or `AmbiguousId`
    with the candidates.
    """
    found = refresh.ask(mind, lambda index: index.matching(wanted)) if wanted else ()
    if len(found) > 1:
        raise AmbiguousId(
            f"`{wanted}` fits {len(found)} memories",
            hint=f"say more of it: {', '.join(found[:5])}{', …' if len(found) > 5 else ''}",
            details={"candidates": list(found[:20])},
        )
    if surely and found and found[0] != wanted and not is_sure(wanted):
        raise AmbiguousId(
            f"`{wanted}` says too little to be sure",
            hint=f"did you mean {found[0]}?",
            details={"candidates": list(found)},
        )
    record = mind.index.get(found[0]) if found else None
    if record is None:
        raise _not_found(mind, wanted)
    return record


def is_sure(cut: str) -> bool:
    """Returns whether a cut id says enough that nobody can have meant another one."""
    said = cut.strip("_")
    return len(said) >= SURE_LENGTH and said not in _TYPES


def _not_found(mind: Mind, wanted: str) -> NotFound:
    near = mind.index.nearest_ids(wanted) if wanted else ()
    hint = f"did you mean {' or '.join(near)}?" if near else "`mind list` shows what there is"
    return NotFound(
        f"Memory not found: `{wanted}`", hint=hint, details={"id": wanted, "nearest": list(near)}
    )
