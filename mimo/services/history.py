"""Who remembered what, when; and bringing an earlier state back."""

from contextlib import suppress

from mimo.domain.memory import Record
from mimo.errors import Conflict, Invalid, NotFound
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import capture, past, recall, upkeep
from mimo.services.approving import approving
from mimo.services.syncing import repository
from mimo.store import revisions
from mimo.store.memories import NewFile
from mimo.store.revisions import Commit, Step


@frozen
class Blamed:
    """A line of a memory's file, and the commit that it comes from."""

    commit: Commit
    number: int
    text: str


@frozen
class Restored:
    """A memory that was brought back, and from where."""

    record: Record
    commit: Commit


def log(mind: Mind, id: str | None, limit: int) -> tuple[Step, ...]:
    """Returns the commits that changed the memory, or one of it, newest first.

    A memory that is gone is looked for by the name of its file.
    """
    found = repository(mind)
    return tuple(revisions.steps(found, _path(mind, id) if id else None, limit))


def blame(mind: Mind, record: Record) -> tuple[Blamed, ...]:
    """Returns the lines of a memory's file as committed, each with its commit."""
    found = repository(mind)
    if not any(revisions.steps(found, record.place.path, 1)):
        raise NotFound(f"`{record.place.path}` was never committed", hint="`mind sync` commits it")
    lines = revisions.blame(found, record.place.path)
    known = revisions.commits(found, (line.commit for line in lines))
    return tuple(
        Blamed(commit=known[line.commit], number=line.number, text=line.text) for line in lines
    )


def restore(mind: Mind, id: str, revision: str) -> Restored:
    """Brings a memory back as it was; its file is then the one of that commit.

    Raises `NotFound` where it was not there then.
    """
    then = past.at(mind, revision)
    record = recall.one(then.mind, id, surely=True)
    if record.parent is not None:
        raise Invalid(
            f"`{record.memory.id}` is a part of an ingested file", hint="ingest the file again"
        )
    data = then.mind.store.raw(record)
    now = None
    with suppress(NotFound):
        now = recall.one(mind, record.memory.id)
    if now and now.memory.id == record.memory.id:
        restored = capture.rewrite(mind, now, data.decode())
    else:
        restored = _written(mind, record, data)
    return Restored(record=restored, commit=then.commit)


def _written(mind: Mind, record: Record, data: bytes) -> Record:
    """Writes the file of a memory that is gone; a person who brings it back approves it."""
    place = record.place
    capture.check_format(mind)
    with approving(mind, wanted=mind.author is None):
        taken = mind.store.create_all([NewFile(place.path, data, place.digest)])
    if taken:
        raise Conflict(f"`{place.path}` exists already", hint="it holds another memory by now")
    upkeep.note_change(mind, place.path)
    return record


def _path(mind: Mind, id: str) -> str:
    try:
        return recall.one(mind, id).place.path
    except NotFound:
        found = repository(mind)
        for step in revisions.steps(found, None, -1):
            for file in step.files:
                if file.path.rpartition("/")[2] == f"{id}.md":
                    return file.path
        raise
