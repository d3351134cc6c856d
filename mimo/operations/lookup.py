"""From what a user or an agent writes to the memory: an id, an abbreviation of one, or a topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from mimo.errors import AmbiguousId, NotFound
from mimo.memory.ids import handle_of
from mimo.memory.model import Kind, Memory, Problem, Record
from mimo.mind import Mind
from mimo.operations import refresh
from mimo.text.phrases import cut

SURE_LENGTH = 6
"""The minimum length of a reliable abbreviation: the length of the random end of an id."""

_LISTED, _TITLE = 5, 40
"""The number of candidates in a hint, and of characters of their titles."""
_EDGES = "edges"
"""The folder of the user's edges in `$MIND_HOME`: those for all projects, which are no memories."""
_TYPES = frozenset({"source", *(kind.value for kind in Kind)})


def one(mind: Mind, wanted: str, *, surely: bool = False) -> Record:
    """Returns the memory with that id, or the only one that the abbreviation fits.

    `surely` refuses an abbreviation that may fit by accident: a short one, or the name of a type.
    The beginning of a handle is one too: once its memory is removed, it may fit the next one.
    Raises `NotFound` with the decisions on that topic or the nearest ids, also for an edge for all
    projects, or `AmbiguousId` with the candidates: the chunks if `wanted` is an ingested file.
    """
    ids = refresh.up_to_date(mind).matching(wanted)
    if len(ids) != 1:
        _check_no_source(mind, wanted, ids)
    if len(ids) > 1:
        raise _ambiguous(mind, wanted, "memories", ids)
    if surely and ids:
        _check_sure(mind, wanted, ids[0], ids)
    record = mind.index.get(ids[0]) if ids else None
    if record and refresh.reread(mind, [record]):
        record = mind.index.get(ids[0])
    if record is None:
        _check_no_edge(mind, wanted)
        on_topic = tuple(decision.memory.id for decision in mind.index.current(wanted))
        near = on_topic or (mind.index.nearest_ids(wanted) if wanted else ())
        raise NotFound(
            f"Memory not found: `{wanted}`",
            hint=_did_you_mean(mind, near) if near else _list_all(mind),
            details={"id": wanted, "nearest": named(mind, near)},
        )
    return record


def meant(mind: Mind, wanted: str, *, alone: bool = False) -> Record:
    """Returns the memory with that id, or the newest current decision on that topic.

    A short topic is rather meant than the beginning of a handle. Raises `NotFound` and
    `AmbiguousId`; with `alone`, the latter also if decisions on the topic compete.
    """
    index = refresh.up_to_date(mind)
    on_topic = index.current(wanted) if len(wanted) < SURE_LENGTH else ()
    if not on_topic:
        try:
            return one(mind, wanted)
        except NotFound as error:
            on_topic = index.current(wanted)
            if not on_topic:
                if not error.details["nearest"] and (near := like_topic(mind, wanted)):
                    error.hint = near
                raise
    if alone:
        check_alone(mind, wanted, on_topic)
    return on_topic[0]


def check_alone(mind: Mind, topic: str, decisions: Sequence[Record]) -> None:
    """Raises `AmbiguousId` if several decisions on a topic compete."""
    if len(decisions) > 1:
        ids = [record.memory.id for record in decisions]
        raise AmbiguousId(
            f"{len(ids)} decisions on `{topic}` compete",
            hint=f"name one: {', '.join(_presented(mind, ids[:_LISTED]))}",
            details={"candidates": named(mind, ids)},
        )


def anywhere(mind: Mind, wanted: str) -> tuple[Mind, Record]:
    """Returns the memory that `meant` returns, and where it is: here, or in the user's own.

    Raises `NotFound` and `AmbiguousId`.
    """
    user = mind.user()
    if user is None or not mind.is_outside:
        try:
            return mind, meant(mind, wanted, alone=True)
        except NotFound:
            if user is None:
                raise
            with suppress(NotFound):
                return user, meant(user, wanted, alone=True)
            raise
    return user, meant(user, wanted, alone=True)


def source(
    mind: Mind, wanted: str, *, surely: bool = False, topics: bool = False
) -> tuple[Record, ...]:
    """Returns the chunks of the ingested file with that id, or an abbreviation of it.

    Returns none if `wanted` is not a source; the id of a memory takes precedence, and with `topics`
    also a short topic, as in `meant`. `surely` is as in `one`. Raises `AmbiguousId` with the
    candidates.
    """
    ids = refresh.up_to_date(mind).matching(wanted)
    # The id of a memory, which is the usual case, is found at once, an abbreviation is compared.
    parents = mind.index.matching(wanted, sources=True) if ids != (wanted,) else ()
    if not parents or (topics and len(wanted) < SURE_LENGTH and mind.index.current(wanted)):
        return ()
    chunks = tuple(f"{parent}." for parent in parents)
    candidates = [*parents, *(id for id in ids if not id.startswith(chunks))]
    if len(candidates) > 1:
        raise _ambiguous(mind, wanted, "sources and memories", candidates)
    if surely:
        _check_sure(mind, wanted, parents[0], candidates)
    parts = mind.index.parts(parents[0])
    return mind.index.parts(parents[0]) if refresh.reread(mind, parts) else parts


def texts_beside(mind: Mind, record: Record) -> tuple[str, ...]:
    """Returns the texts of the other memories in a memory's file: an approval covers them, too."""
    read = mind.store.read(record.place.path)
    return tuple(
        written(other.memory)
        for other in (() if isinstance(read, Problem) else read)
        if other.place.digest == record.place.digest and other.memory.id != record.memory.id
    )


def written(memory: Memory) -> str:
    """Returns the texts of a memory: its title, content and sections."""
    sections = [f"## {name}\n\n{text}" for name, text in memory.sections.items()]
    title = "" if memory.heading in memory.content else memory.heading
    return "\n\n".join(part for part in (title, memory.content, *sections) if part)


def _check_no_source(mind: Mind, wanted: str, ids: Sequence[str]) -> None:
    """Raises `AmbiguousId` if `wanted`, which fits these memories, is rather an ingested file."""
    parents = mind.index.matching(wanted, sources=True)
    if len(parents) != 1 or not all(id.startswith(f"{parents[0]}.") for id in ids):
        return
    chunks = [part.memory.id for part in mind.index.parts(parents[0])]
    raise AmbiguousId(
        f"`{wanted}` is an ingested file",
        hint=f"name one of its chunks: {_listed(mind, chunks)};"
        " to change its text, ingest the changed file again",
        details={"candidates": named(mind, chunks[:20])},
    )


def edges_notice(mind: Mind, types: frozenset[Kind] | None) -> str | None:
    """Returns a notice for a list of these types, if the user has edges for all projects."""
    if not types or Kind.EDGE not in types or not _global_edges(mind):
        return None
    return (
        "edges for all projects are not memories: `mind edges list` lists them, and `mind edges`"
        " finds those that apply"
    )


def _global_edges(mind: Mind) -> list[str]:
    """Returns the names of the user's edges; none for users of a team's server."""
    return [] if mind.member else [file.stem for file in (mind.home / _EDGES).glob("*.md")]


def _check_no_edge(mind: Mind, wanted: str) -> None:
    """Raises `NotFound` for a global edge, by its name or at least half of its handle."""
    edges = _global_edges(mind)
    names = [name for name in edges if name == wanted]
    if not names and len(wanted) >= SURE_LENGTH // 2:
        names = [name for name in edges if handle_of(name).startswith(wanted)]
    if len(names) == 1:
        file = mind.home / _EDGES / f"{names[0]}.md"
        raise NotFound(
            f"`{wanted}` is an edge for all projects, not a memory",
            hint=f"`mind edges list` lists it; to change or remove it, edit or delete `{file}`",
            details={"id": wanted, "nearest": names},
        )


def _ambiguous(mind: Mind, wanted: str, kinds: str, candidates: Sequence[str]) -> AmbiguousId:
    return AmbiguousId(
        f"`{wanted}` fits {len(candidates)} {kinds}",
        hint=f"use more letters: {_listed(mind, candidates)}",
        details={"candidates": named(mind, candidates[:20])},
    )


def _list_all(mind: Mind) -> str:
    from mimo.store.revisions import PastStore

    if isinstance(mind.store, PastStore):
        return f"`mind list --at {mind.store.commit.short}` shows the memories at that revision"
    return "`mind list` shows all memories"


def _listed(mind: Mind, candidates: Sequence[str]) -> str:
    more = ", …" if candidates[_LISTED:] else ""
    return f"{', '.join(_presented(mind, candidates[:_LISTED]))}{more}"


def like_topic(mind: Mind, wanted: str) -> str:
    """Returns a hint with the topics that are most like a text; empty if there is none."""
    topics = [cut(topic, _TITLE) for topic in mind.index.nearest_topics(wanted)]
    return f"did you mean the topic {' or '.join(topics)}?" if topics else ""


def named(mind: Mind, ids: Sequence[str]) -> list[str]:
    """Returns ids, with handles for unapproved texts: an agent reads ids that an author chose."""
    return [handle_of(id) if _title(mind, id) is None else id for id in ids]


def _did_you_mean(mind: Mind, ids: Sequence[str]) -> str:
    return f"did you mean {' or '.join(_presented(mind, ids))}?"


def _presented(mind: Mind, ids: Sequence[str]) -> Iterator[str]:
    """Yields memories and ingested files as a hint names them: by handle and approved title."""
    for id in ids:
        title = _title(mind, id)
        yield handle_of(id) if title is None else f"{mind.handle(id).text} ({cut(title, _TITLE)})"


def _title(mind: Mind, id: str) -> str | None:
    """Returns the title of a memory or ingested file; None if it is not approved."""
    record = mind.index.get(id)
    first = record or next(iter(mind.index.parts(id)), None)
    if first is None or not mind.trust.trusted(first.place.digest):
        return None
    return record.memory.heading if record else first.origin


def _check_sure(mind: Mind, wanted: str, id: str, candidates: Sequence[str]) -> None:
    """Raises `AmbiguousId` if `wanted` is too short an abbreviation of `id`, or names a type."""
    name = wanted.strip("_")
    if wanted != id and (len(name) < SURE_LENGTH or name in _TYPES):
        raise AmbiguousId(
            f"`{wanted}` is too short or too general an abbreviation",
            hint=_did_you_mean(mind, [id]),
            details={"candidates": named(mind, candidates)},
        )
