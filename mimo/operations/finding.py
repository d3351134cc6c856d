"""Finding memories: by a query, by id, and in lists; in one project or in all of them."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

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

if TYPE_CHECKING:
    from mimo.store.revisions import Commit

THRESHOLD = 0.3
"""The score that separates related from unrelated."""

NEAREST = 3
"""The number of memories in an answer if none reaches the threshold."""

SURE_LENGTH = 6
"""The minimum length of a reliable abbreviation: the length of the random end of an id."""

MOST_QUERY = 10_000
"""The maximum length of a query, in characters."""

_TYPES = frozenset({"source", *(kind.value for kind in Kind)})

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


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
    """True if all registered projects are searched."""
    private: bool = False
    """True if private memories of other projects are searched; never for an agent."""


EVERYTHING = Options()


EVERYTHING = Options()


@frozen
class Page:
    """A part of a list, and the number of memories in the whole list."""

    records: tuple[Record, ...]
    total: int


@frozen
class ProjectHit:
    """A match, with its project and the decisions that compete with it."""

    mind: Mind
    hit: Hit
    shared: bool = False
    """True if private memories of the project must not be named beside it."""

    @property
    def score(self) -> float:
        """Returns the score of the match."""
        return self.hit.score


@frozen
class ProjectHits:
    """The matches in one or more projects, best first."""

    hits: tuple[ProjectHit, ...]
    notice: str | None = None


Matches = TypeVar("Matches", Found, ProjectHits)


def find(mind: Mind, text: str, options: Options) -> ProjectHits:
    """Returns the best matches in this project or, with `everywhere`, in all registered ones.

    Each other project is searched through its own guard. The notice names projects that could not
    be searched, with the reason. Otherwise as `search`.
    """
    mind.prepare()
    if options.everywhere:
        matches = _in_projects(mind, text, options)
    else:
        matches = _of_project(mind, peek(mind, text, options))
    for project in {id(hit.mind): hit.mind for hit in matches.hits}.values():
        _note_related(project, [hit.hit for hit in matches.hits if hit.mind is project])
    return matches if options.threshold is not None else _related_or_closest(matches)


def search(mind: Mind, text: str, options: Options) -> Found:
    """Returns the memories of this project that best match `text`, best first.

    `notice` reports an incomplete search. Each match that reaches the default threshold counts as
    used. Raises `SearchFailed` if not even the files can be read.
    """
    matches = peek(mind, text, options)
    _note_related(mind, matches.hits)
    return matches if options.threshold is not None else _related_or_closest(matches)


def peek(mind: Mind, text: str, options: Options) -> Found:
    """Returns the matches without counting them as used.

    Without a threshold, these may be unrelated if there are no related ones.
    """
    _check_query(text)
    is_open = options.threshold is None
    try:
        refresh.refresh(mind)
        matches = mind.index.search(
            text,
            filter=options.filter,
            limit=options.limit,
            threshold=THRESHOLD if options.threshold is None else options.threshold,
            nearest=min(options.limit, NEAREST) if is_open else 0,
            now=mind.now(),
        )
    except StorageFailed as error:
        raise SearchFailed(
            f"nothing could be searched: {error.message}", hint=error.hint
        ) from error
    # Order and score have different formulas. A score never rises from one match to the next:
    # a match above another one is at least as relevant.
    scores = [*accumulate((hit.score for hit in reversed(matches.hits)), max)][::-1]
    return replace(
        matches,
        hits=tuple(
            replace(hit, score=score) for hit, score in zip(matches.hits, scores, strict=True)
        ),
        notice=_joined(mind.notice, matches.notice),
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


def _joined(*notices: str | None) -> str | None:
    return "; ".join(filter(None, notices)) or None


def _note_related(mind: Mind, hits: Iterable[Hit]) -> None:
    """Counts the related memories as used, but not the closest of unrelated ones."""
    note(mind, [hit.record for hit in hits if hit.score >= THRESHOLD])


def _related_or_closest(matches: Matches) -> Matches:
    """Returns the related matches or, if there are none, the few closest.

    Texts that share no word rarely score high enough, and the caller can judge them.
    """
    related = tuple(hit for hit in matches.hits if hit.score >= THRESHOLD)
    if related or not matches.hits:
        return replace(matches, hits=related)
    notice = _joined(matches.notice, "nothing matches well; these are the nearest")
    return replace(matches, hits=matches.hits[:NEAREST], notice=notice)


def _in_projects(mind: Mind, text: str, options: Options) -> ProjectHits:
    """Returns the best matches in all registered projects, ranked together by their score."""
    _check_query(text)
    with_private = options.private and mind.agent is None
    shared = replace(options, filter=replace(options.filter, shared=True))

    def search_one(other: Mind, *, here: bool) -> Found:
        return peek(other, text, options if here or with_private else shared)

    answers, skipped = ask_each(mind, "mind_search", search_one)
    hits: list[ProjectHit] = []
    notices = list(skipped)
    for answer in answers:
        only_shared = not (answer.here or with_private)
        hits += _of_project(answer.mind, answer.value, shared=only_shared).hits
        if answer.value.notice:
            notices.append(f"{answer.name}: {answer.value.notice}")
    hits.sort(key=lambda hit: -hit.score)
    return ProjectHits(hits=tuple(hits[: options.limit]), notice=_joined(*notices))


def _of_project(mind: Mind, matches: Found, *, shared: bool = False) -> ProjectHits:
    """Returns the matches of a project; with `shared`, none names a private memory."""
    hits = matches.hits
    if shared:
        hits = tuple(replace(hit, newer=_shared_of(mind, hit.newer)) for hit in hits)
    rows = tuple(ProjectHit(mind=mind, hit=hit, shared=shared) for hit in hits)
    return ProjectHits(hits=rows, notice=matches.notice)


def _shared_of(mind: Mind, newer: Newer) -> Newer:
    return Newer(_shared(mind, newer.superseded_by), _shared(mind, newer.claimed_by))


def _shared(mind: Mind, ids: Iterable[str]) -> tuple[str, ...]:
    """Returns the ids without those of private memories: an id has words of the text."""
    records = ((id, mind.index.get(id)) for id in ids)
    return tuple(id for id, record in records if record and not record.place.private)


def with_competing(
    hits: tuple[ProjectHit, ...],
) -> list[tuple[ProjectHit, tuple[str, ...] | None]]:
    """Returns each match with the ids of the decisions of its project that compete with it."""
    ids: dict[int, list[str]] = {}
    minds = {id(hit.mind): hit.mind for hit in hits}
    for hit in hits:
        ids.setdefault(id(hit.mind), []).append(hit.hit.record.memory.id)
    others = {name: mind.index.competing(ids[name]) for name, mind in minds.items()}

    def competing(hit: ProjectHit) -> tuple[str, ...] | None:
        named = others[id(hit.mind)].get(hit.hit.record.memory.id)
        return (_shared(hit.mind, named) or None) if named and hit.shared else named

    return [(hit, competing(hit)) for hit in hits]


# Uses of memories, which keep them from fading.


def note(mind: Mind, records: Iterable[Record]) -> None:
    """Counts a use of each memory: a search matches it, or it was shown or loaded.

    An answer never fails because its uses can't be counted.
    """
    with suppress(MindError, OSError):
        mind.accesses.note([record.memory.id for record in records], mind.now())


def uses(mind: Mind) -> dict[str, Use]:
    """Returns the number of uses of each memory on this machine, and the last one."""
    with suppress(MindError, OSError):
        mind.accesses.flush()
    return mind.accesses.uses()


# Lists and ids.


def listing(mind: Mind, options: Options = EVERYTHING) -> Page:
    """Returns one page of the memories that pass the filter, and the number of all that do."""
    index = refresh.up_to_date(mind)
    records = index.records(
        options.filter, sort=options.sort, limit=options.limit, offset=options.offset
    )
    return Page(records=records, total=index.count(options.filter))


def total(mind: Mind, *, shared: bool = False) -> int:
    """Returns the number of memories of a project; with `shared`, without private ones."""
    return refresh.up_to_date(mind).count(Filter(shared=shared))


def successor(mind: Mind, id: str) -> str | None:
    """Returns the id of the newest memory that supersedes this one, or None."""
    return mind.index.superseded_by((id,)).get(id)


def one(mind: Mind, wanted: str, *, surely: bool = False) -> Record:
    """Returns the memory with that id, or the only one whose id begins or ends with it.

    `surely` refuses an abbreviation that may match by accident: a short one, or the name of a
    type. Raises `NotFound` with the nearest ids, or `AmbiguousId` with the candidates.
    """
    ids = refresh.up_to_date(mind).matching(wanted)
    if len(ids) > 1:
        raise _ambiguous(wanted, "memories", ids)
    if surely and ids:
        _check_sure(wanted, ids[0], ids)
    record = mind.index.get(ids[0]) if ids else None
    if record is None:
        near = mind.index.nearest_ids(wanted) if wanted else ()
        raise NotFound(
            f"Memory not found: `{wanted}`",
            hint=f"did you mean {' or '.join(near)}?" if near else "`mind list` shows all memories",
            details={"id": wanted, "nearest": list(near)},
        )
    return record


def source(mind: Mind, wanted: str, *, surely: bool = False) -> tuple[Record, ...]:
    """Returns the chunks of the ingested file with that id, or an abbreviation of it.

    Returns none if `wanted` is not a source; the id of a memory takes precedence. `surely` is as in
    `one`. Raises `AmbiguousId` with the candidates.
    """
    parents = refresh.up_to_date(mind).parents(wanted)
    if not parents:
        return ()
    ids = mind.index.matching(wanted)
    if ids == (wanted,):
        return ()
    chunks = tuple(f"{parent}." for parent in parents)
    candidates = [*parents, *(id for id in ids if not id.startswith(chunks))]
    if len(candidates) > 1:
        raise _ambiguous(wanted, "sources and memories", candidates)
    if surely:
        _check_sure(wanted, parents[0], candidates)
    return mind.index.parts(parents[0])


def _ambiguous(wanted: str, kinds: str, candidates: Sequence[str]) -> AmbiguousId:
    return AmbiguousId(
        f"`{wanted}` fits {len(candidates)} {kinds}",
        hint=f"use more of the id: {', '.join(candidates[:5])}{', …' if candidates[5:] else ''}",
        details={"candidates": list(candidates[:20])},
    )


def _check_sure(wanted: str, id: str, candidates: Sequence[str]) -> None:
    """Raises `AmbiguousId` if `wanted` is too short an abbreviation of `id`, or names a type."""
    name = wanted.strip("_")
    if wanted != id and (len(name) < SURE_LENGTH or name in _TYPES):
        raise AmbiguousId(
            f"`{wanted}` is too short or too general an abbreviation",
            hint=f"did you mean {id}?",
            details={"candidates": list(candidates)},
        )


# Earlier revisions.


@frozen
class Past:
    """The memory at a commit."""

    mind: Mind
    commit: "Commit"

    @property
    def label(self) -> str:
        """Returns the date and the subject of the commit."""
        commit = self.commit
        return f"as of {commit.when:%Y-%m-%d} ({commit.short}: {commit.subject})"


def at(mind: Mind, revision: str) -> Past:
    """Returns the memory at a commit, branch, tag or date.

    The digest of its files names its index, which is cached. Raises `Invalid` outside a git
    repository, and `NotFound` if the project had no memory.
    """
    from mimo.index.index import Index
    from mimo.operations.syncing import repository
    from mimo.store import revisions
    from mimo.store.revisions import PastStore, Uncounted

    root = repository(mind)
    commit = revisions.resolve(root, revision, now=mind.now())
    state = revisions.tree_id(root, commit.id)
    if not state:
        raise NotFound(
            f"there was no memory at {commit.short} ({commit.when:%Y-%m-%d})",
            hint="`mind log` lists the commits that have some",
        )

    def parts() -> dict[str, Any]:
        owner = projects.index_owner(mind.home, mind.randomness)
        index = Index.open_past(mind.index_folder, state[:20], mind.embedder, owner)
        return {
            "store": PastStore(root, commit),
            "index": mind.trusting(index),
            "embedder": mind.embedder,
            "trust": mind.trust,
            "accesses": Uncounted(mind.project.root),
        }

    key = mind.index_folder / state / commit.id
    return Past(mind=mind.beside(key, parts), commit=commit)


# All projects of the user, each other one through its own guard.


class Question(Protocol[T_co]):
    """A question for each project; `here` is true for the open one."""

    def __call__(self, mind: Mind, /, *, here: bool) -> T_co:
        """Returns the answer of a project."""


class Answer(NamedTuple, Generic[T]):
    """The answer of a project."""

    name: str
    mind: Mind
    here: bool
    value: T


class Answers(NamedTuple, Generic[T]):
    """The answers of the projects that could be asked."""

    answers: tuple[Answer[T], ...]
    skipped: tuple[str, ...]
    """The other projects, each with the reason; a reason reveals nothing of a policy."""


def ask_each(
    mind: Mind, tool: str, question: Question[T], *, diagnosis: bool = False
) -> Answers[T]:
    """Returns the answers of the open project and of all registered ones.

    The policy of each other project permits, limits and records the call of `tool`. A project with
    `search_all` off is asked only if it is the open one.
    """
    registry = projects.registered(mind.home)
    here = mind.project.root if mind.has_project else None
    answers: list[Answer[T]] = []
    skipped = [registry.problem] if registry.problem else []
    for entry in registry.projects:
        mind.heed()
        if entry.path == here or not entry.search_all:
            continue
        try:
            other = mind.at(entry)
            if other is None:
                skipped.append(f"{entry.name} is missing")
                continue
            call = Call(
                tool=tool,
                operation=Operation.READ,
                diagnosis=diagnosis,
                agent=mind.agent,
                at=mind.now(),
            )
            with other.guard.passing(call, mind.timer.monotonic):
                answers.append(Answer(entry.name, other, False, question(other, here=False)))
        except Exception as error:  # one broken project must not stop the others
            if mind.halted and mind.halted():
                raise
            skipped.append(f"{entry.name} was skipped: {_reason(error, tool)}")
    if here:
        name = next(
            (entry.name for entry in registry.projects if entry.path == here), mind.project.name
        )
        try:
            answers.append(Answer(name, mind, True, question(mind, here=True)))
        except (SearchFailed, StorageFailed) as error:
            skipped.append(f"{name}: {error.message}")
    return Answers(tuple(answers), tuple(skipped))


def _reason(error: Exception, tool: str) -> str:
    """Returns the reason for skipping a project, without rules or names of its policy."""
    if isinstance(error, Denied):
        invalid = error.reason == "policy"
        return "its policy is invalid" if invalid else f"its policy does not permit `{tool}`"
    if isinstance(error, RateLimited):
        return "its policy permits no more calls for now"
    code = error.code if isinstance(error, MindError) else type(error).__name__
    return f"it can't be read ({code}); run `mind doctor` there"
