"""Finding memories: by a query, by id, and in lists; in one project or in all of them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

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
from mimo.memory.relations import MAX_DEPTH, Graph
from mimo.mind import Mind
from mimo.operations import refresh
from mimo.store import projects
from mimo.text.phrases import notices

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

_UNRELATED = "nothing matches well; these are the nearest"
_TYPES = frozenset({"source", *(kind.value for kind in Kind)})

T = TypeVar("T")


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


EVERYTHING = Options()


@frozen
class Page:
    """A part of a list, and the number of memories in the whole list."""

    records: tuple[Record, ...]
    total: int


def search(mind: Mind, text: str, options: Options, *, counted: bool = True) -> Found:
    """Returns the memories of this project that best match `text`, best first.

    Without a threshold, these may be unrelated if there are no related ones. `notice` reports that,
    and an incomplete search. Unless `counted` is false, each related match counts as used. Raises
    `SearchFailed` if not even the files can be read.
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
    hits = [replace(hit, score=score) for hit, score in zip(matches.hits, scores, strict=True)]
    notice = notices(mind.notice, matches.notice)
    if counted:
        _note_related(mind, hits)
        if is_open and hits and hits[0].score < THRESHOLD:
            notice = notices(notice, _UNRELATED)
    return replace(matches, hits=tuple(hits), notice=notice)


def search_projects(
    mind: Mind, text: str, options: Options, *, private: bool
) -> tuple[list[tuple[Mind, Hit]], str | None]:
    """Returns the best matches of all registered projects with their projects, best first.

    Each other project is searched through its own guard, and its private memories are neither
    matched nor named unless a person asks for `private` ones. The notice names the projects that
    could not be searched, with the reason. Otherwise as `search`.
    """
    _check_query(text)
    with_private = private and mind.agent is None
    shared = replace(options, filter=replace(options.filter, shared=True))

    def search_one(other: Mind, here: bool) -> Found:
        if here or with_private:
            return search(other, text, options, counted=False)
        matched = search(other, text, shared, counted=False)
        return replace(matched, hits=tuple(_without_private(other, hit) for hit in matched.hits))

    answers, skipped = ask_each(mind, "mind_search", search_one)
    incomplete = [f"{name}: {answer.notice}" for name, _, answer in answers if answer.notice]
    notice = notices(*skipped, *incomplete)
    matches = [(project, hit) for _, project, answer in answers for hit in answer.hits]
    matches.sort(key=lambda match: -match[1].score)
    if options.threshold is None and matches and matches[0][1].score < THRESHOLD:
        matches, notice = matches[:NEAREST], notices(notice, _UNRELATED)
    elif options.threshold is None:
        matches = [match for match in matches if match[1].score >= THRESHOLD]
    matches = matches[: options.limit]
    for project in {project for project, _ in matches}:
        _note_related(project, [hit for owner, hit in matches if owner is project])
    return matches, notice


def _without_private(mind: Mind, hit: Hit) -> Hit:
    """Returns a match that names no private memory: an id has words of the text."""
    newer = hit.newer
    ids = {*newer.superseded_by, *newer.claimed_by, *hit.competing}
    private = {id for id in ids if not (named := mind.index.get(id)) or named.place.private}
    superseded_by, claimed_by, competing = (
        tuple(id for id in ids if id not in private)
        for ids in (newer.superseded_by, newer.claimed_by, hit.competing)
    )
    return replace(hit, newer=Newer(superseded_by, claimed_by), competing=competing)


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


def _note_related(mind: Mind, hits: Iterable[Hit]) -> None:
    """Counts the related memories as used, but not the closest of unrelated ones."""
    note(mind, [hit.record for hit in hits if hit.score >= THRESHOLD])


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


# Lists, links and ids.


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


def linked(
    mind: Mind,
    start: Sequence[str],
    *,
    depth: int,
    types: Collection[str] = (),
    most: int | None = None,
) -> Graph:
    """Returns the memories within `depth` links of `start`, and the links between them.

    A start is an id or a title, as in a link. At most `MAX_DEPTH` links are followed, in both
    directions, only links of `types` if any are given, and the nearest `most` memories are kept.
    """
    return refresh.up_to_date(mind).graph(
        start, depth=max(0, min(depth, MAX_DEPTH)), types=types, most=most, now=mind.now()
    )


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
    parents = refresh.up_to_date(mind).matching(wanted, sources=True)
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


def ask_each(
    mind: Mind, tool: str, question: Callable[[Mind, bool], T], *, diagnosis: bool = False
) -> tuple[list[tuple[str, Mind, T]], list[str]]:
    """Returns each registered project's name, memory and answer, the open one's last; and problems.

    `question` gets a project, and whether it is the open one. The policy of each other project
    permits, limits and records the call of `tool`. A project with `search_all` off is asked only
    if it is the open one. Each problem is the reason for which a project was skipped, which reveals
    nothing of its policy.
    """
    registry = projects.registered(mind.home)
    here = mind.project.root if mind.has_project else None
    answers: list[tuple[str, Mind, T]] = []
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
                answers.append((entry.name, other, question(other, False)))
        except Exception as error:  # one broken project must not stop the others
            if mind.halted and mind.halted():
                raise
            skipped.append(f"{entry.name} was skipped: {_reason(error, tool)}")
    if here:
        names = (entry.name for entry in registry.projects if entry.path == here)
        name = next(names, mind.project.name)
        try:
            answers.append((name, mind, question(mind, True)))
        except (SearchFailed, StorageFailed) as error:
            skipped.append(f"{name}: {error.message}")
    return answers, skipped


def _reason(error: Exception, tool: str) -> str:
    """Returns the reason for skipping a project, without rules or names of its policy."""
    if isinstance(error, Denied):
        invalid = error.reason == "policy"
        return "its policy is invalid" if invalid else f"its policy does not permit `{tool}`"
    if isinstance(error, RateLimited):
        return "its policy permits no more calls for now"
    code = error.code if isinstance(error, MindError) else type(error).__name__
    return f"it can't be read ({code}); run `mind doctor` there"
