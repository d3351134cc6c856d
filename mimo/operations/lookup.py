"""From what a user or an agent writes to the memory: an id, an abbreviation of one, or a topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from mimo.call import Call
from mimo.data import disk
from mimo.data.files import digest
from mimo.errors import AmbiguousId, Command, Hint, NotFound
from mimo.memory.ids import handle_of
from mimo.memory.model import Kind, Memory, Problem, Record
from mimo.operations import refresh
from mimo.operations.disclosure import names_of, title_of
from mimo.text.phrases import cut

SURE_LENGTH = 6
"""The minimum length of a reliable abbreviation: the length of the random end of an id."""

_LISTED, _TITLE = 5, 40
"""The number of candidates in a hint, and of characters of their titles."""
_EDGES = "edges"
"""The folder of the user's edges in `$MIND_HOME`: those for all projects, which are no memories."""
_TYPES = frozenset({"source", *map(str, Kind)})


def one(call: Call, reference: str, *, surely: bool = False) -> Record:
    """Returns the memory with that id, or the only one that the abbreviation fits.

    `surely` refuses an abbreviation that may fit by accident: a short one, or the name of a type.
    The beginning of a handle is one too: once its memory is removed, it may fit the next one.
    Raises `NotFound` with the decisions on that topic or the nearest ids, also for an edge for all
    projects, or `AmbiguousId` with the candidates: the chunks if `reference` is an ingested file.
    """
    ids = refresh.up_to_date(call).matching(reference)
    if len(ids) != 1:
        _check_no_source(call, reference, ids)
    if len(ids) > 1:
        raise _ambiguous(call, reference, "memories", ids)
    if surely and ids:
        _check_sure(call, reference, ids[0], ids)
    record = call.index.get(ids[0]) if ids else None
    if record and refresh.reread(call, [record]):
        record = call.index.get(ids[0])
    if record is None:
        _check_no_edge(call, reference)
        on_topic = tuple(decision.memory.id for decision in call.index.current(reference))
        near = on_topic or (call.index.nearest_ids(reference) if reference else ())
        raise NotFound(
            f"Memory not found: `{reference}`",
            hint=_did_you_mean(call, near) if near else _list_all(call),
            details={"id": reference, "nearest": names_of(call, near)},
        )
    return record


def meant(call: Call, reference: str, *, alone: bool = False) -> Record:
    """Returns the memory with that id, the newest current decision on that topic, or that title.

    A short topic is rather meant than the beginning of a handle. Raises `NotFound` and
    `AmbiguousId`; with `alone`, the latter also if decisions on the topic compete.
    """
    is_short = len(reference) < SURE_LENGTH
    on_topic = refresh.up_to_date(call).current(reference) if is_short else ()
    if not on_topic:
        try:
            return one(call, reference)
        except NotFound as error:
            if not (on_topic := call.index.current(reference)):
                if titled := call.index.titled(reference):
                    return titled
                if not error.details["nearest"] and (near := like_topic(call, reference)):
                    error.hint = near
                raise
    if alone:
        check_alone(call, reference, on_topic)
    return on_topic[0]


def check_alone(call: Call, topic: str, decisions: Sequence[Record]) -> None:
    """Raises `AmbiguousId` if several decisions on a topic compete."""
    if len(decisions) > 1:
        ids = [record.memory.id for record in decisions]
        raise AmbiguousId(
            f"{len(ids)} decisions on `{topic}` compete",
            hint=f"name one: {', '.join(_presented(call, ids[:_LISTED]))}",
            details={"candidates": names_of(call, ids)},
        )


def anywhere(call: Call, reference: str) -> tuple[Call, Record]:
    """Returns the memory that `meant` returns, and where it is: here, or in the user's own.

    Raises `NotFound` and `AmbiguousId`.
    """
    user = call.user()
    if user is None or not call.mind.is_outside:
        try:
            return call, meant(call, reference, alone=True)
        except NotFound:
            if user is None:
                raise
            with suppress(NotFound):
                return user, meant(user, reference, alone=True)
            raise
    return user, meant(user, reference, alone=True)


def source(
    call: Call, reference: str, *, surely: bool = False, topics: bool = False
) -> tuple[Record, ...]:
    """Returns the chunks of the ingested file with that id, or an abbreviation of it.

    Returns none if `reference` is not a source; the id of a memory takes precedence, and with
    `topics` also a short topic, as in `meant`. `surely` is as in `one`. Raises `AmbiguousId` with
    the candidates.
    """
    ids = refresh.up_to_date(call).matching(reference)
    # The id of a memory, which is the usual case, is found at once, an abbreviation is compared.
    parents = call.index.matching(reference, sources=True) if ids != (reference,) else ()
    if not parents or (topics and len(reference) < SURE_LENGTH and call.index.current(reference)):
        return ()
    chunks = tuple(f"{parent}." for parent in parents)
    candidates = [*parents, *(id for id in ids if not id.startswith(chunks))]
    if len(candidates) > 1:
        raise _ambiguous(call, reference, "sources and memories", candidates)
    if surely:
        _check_sure(call, reference, parents[0], candidates)
    parts = call.index.parts(parents[0])
    return call.index.parts(parents[0]) if refresh.reread(call, parts) else parts


def texts_beside(call: Call, record: Record) -> tuple[str, ...]:
    """Returns the texts of the other parts of an ingested text: an approval covers them, too."""
    read = call.mind.store.read(record.place.path) if record.parent else ()
    return tuple(
        written(sibling.memory)
        for sibling in (() if isinstance(read, Problem) else read)
        if record.parent
        and sibling.parent == record.parent
        and sibling.memory.id != record.memory.id
    )


def updated_at(call: Call, record: Record) -> datetime | None:
    """Returns when a memory's file last changed; None for the message of a commit.

    That is the date of its last commit if it still has that text, since all files of a clone are
    new, and else the time of the file.
    """
    from mimo.project import git, revisions

    store, path = call.mind.store, record.place.path
    revision = store.commit.id if isinstance(store, revisions.PastStore) else "HEAD"
    stamp, root = store.stamp(path), call.mind.project.root
    if stamp is None:
        return None
    blob, seconds = git.last_version(root, path, revision) or ("", 0)
    for data in revisions.blobs(root, [blob] if blob else ()).values():
        if record.place.digest in (digest(data), digest(data.replace(b"\n", b"\r\n"))):
            return disk.moment(seconds)
    return disk.moment(stamp.mtime_ns / 1_000_000_000)


def written(memory: Memory) -> str:
    """Returns the texts of a memory: its title, content and sections."""
    sections = [f"## {name}\n\n{text}" for name, text in memory.sections.items()]
    title = "" if memory.heading in memory.content else memory.heading
    return "\n\n".join(part for part in (title, memory.content, *sections) if part)


def _check_no_source(call: Call, reference: str, ids: Sequence[str]) -> None:
    """Raises `AmbiguousId` if `reference`, which fits these memories, is an ingested file."""
    parents = call.index.matching(reference, sources=True)
    if len(parents) != 1 or not all(id.startswith(f"{parents[0]}.") for id in ids):
        return
    chunks = [part.memory.id for part in call.index.parts(parents[0])]
    raise AmbiguousId(
        f"`{reference}` is an ingested file",
        hint=f"name one of its chunks: {_listed(call, chunks)};"
        " to change its text, ingest the changed file again",
        details={"candidates": names_of(call, chunks[:20])},
    )


def edges_notice(call: Call, types: frozenset[Kind] | None) -> str | None:
    """Returns a notice for a list of these types, if the user has edges for all projects."""
    if not types or Kind.EDGE not in types or not _global_edges(call):
        return None
    return Hint(
        "pitfalls for all projects are not memories: ",
        Command("pitfalls list"),
        " lists them, and ",
        Command("pitfalls"),
        " finds those that apply",
    )


def _global_edges(call: Call) -> list[str]:
    """Returns the names of the user's edges; none for users of a team's server."""
    return [file.stem for file in (call.mind.home / _EDGES).glob("*.md")] if call.owns_home else []


def _check_no_edge(call: Call, reference: str) -> None:
    """Raises `NotFound` for a global edge, by its name or at least half of its handle."""
    edges = _global_edges(call)
    names = [name for name in edges if name == reference]
    if not names and len(reference) >= SURE_LENGTH // 2:
        names = [name for name in edges if handle_of(name).startswith(reference)]
    if len(names) == 1:
        file = call.mind.home / _EDGES / f"{names[0]}.md"
        raise NotFound(
            f"`{reference}` is a pitfall for all projects, not a memory",
            hint=Hint(
                Command("pitfalls list"),
                f" lists it; to change or remove it, edit or delete `{file}`",
            ),
            details={"id": reference, "nearest": names},
        )


def _ambiguous(call: Call, reference: str, kinds: str, candidates: Sequence[str]) -> AmbiguousId:
    return AmbiguousId(
        f"`{reference}` fits {len(candidates)} {kinds}",
        hint=f"use more letters: {_listed(call, candidates)}",
        details={"candidates": names_of(call, candidates[:20])},
    )


def _list_all(call: Call) -> str:
    from mimo.project.revisions import PastStore

    if isinstance(call.mind.store, PastStore):
        return Hint(
            Command("list", at=call.mind.store.commit.short), " shows the memories at that revision"
        )
    return Hint(Command("search"), " and ", Command("list"), " show ids")


def _listed(call: Call, candidates: Sequence[str]) -> str:
    more = ", …" if candidates[_LISTED:] else ""
    return f"{', '.join(_presented(call, candidates[:_LISTED]))}{more}"


def like_topic(call: Call, reference: str) -> str:
    """Returns a hint with the topics that are most like a text; empty if there is none."""
    near = call.index.nearest_topics(reference) if call.origin.guard.permits("mind_list") else ()
    topics = [cut(topic, _TITLE) for topic in near]
    return f"did you mean the topic {' or '.join(topics)}?" if topics else ""


def _did_you_mean(call: Call, ids: Sequence[str]) -> str:
    return f"did you mean {' or '.join(_presented(call, ids))}?"


def _presented(call: Call, ids: Sequence[str]) -> Iterator[str]:
    """Yields memories and ingested files as a hint names them: by handle and approved title."""
    for id in ids:
        title = title_of(call, id)
        yield (
            handle_of(id)
            if title is None
            else f"{call.mind.handle(id).text} ({cut(title, _TITLE)})"
        )


def _check_sure(call: Call, reference: str, id: str, candidates: Sequence[str]) -> None:
    """Raises `AmbiguousId` if `reference` is too short an abbreviation of `id`, or names a type."""
    name = reference.strip("_")
    if reference != id and (len(name) < SURE_LENGTH or name in _TYPES):
        raise AmbiguousId(
            f"`{reference}` is too short or too general an abbreviation",
            hint=_did_you_mean(call, [id]),
            details={"candidates": names_of(call, candidates)},
        )
