"""Memories that cite a place in the project's files which says something else since."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from mimo.domain.citations import Citation, changed, citations
from mimo.domain.memory import Memory, Problem, Record, Section
from mimo.errors import Invalid, MindError
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.store import files, touches
from mimo.store.repository import Repository
from mimo.store.touches import Touch

_LARGEST = 1_000_000
"""Bytes of the largest file that is compared."""
_MOST_COMMITS = 20
"""Changes of one memory's file that are looked back over."""


@frozen
class Stale:
    """A memory, the place that it cites, and what became of that."""

    record: Record
    citation: Citation
    reason: str
    since: Touch
    """The commit at which the memory was last known to be right."""


@frozen
class _Known:
    """When a memory was last known to be right."""

    at: Touch
    written: datetime | None = None
    """When its file was written, where no commit has it so yet."""


@frozen
class _File:
    """A cited file as it stands; `text` is None where it is gone."""

    text: str | None
    modified: datetime | None = None


def stale(mind: Mind, records: Iterable[Record]) -> tuple[Stale, ...]:
    """Returns the citations in these memories that no longer hold.

    A file is compared with what it was when the memory's text was last written: at the commit that
    brought it, or, where none has it so yet, at the last one before the time of the memory's file.
    There are none without git, and in a partial clone that lacks the contents of its history.
    """
    citing = {r.memory.id: (r, found) for r in records if (found := citations(_prose(r)))}
    repository = Repository(mind.project.root)
    if not citing or not repository.is_there():
        return ()
    try:
        known = _known(mind, repository, [record for record, _ in citing.values()])
        wanted = [(known[name].at.commit, c.path) for name in known for c in citing[name][1]]
        then = touches.texts(repository, wanted)
    except Invalid:
        return ()
    paths = {path for _, path in then}
    now = {path: file for path in paths if (file := _look(mind, path))}
    return tuple(
        Stale(record=citing[name][0], citation=one, reason=reason, since=right.at)
        for name, right in known.items()
        for one in citing[name][1]
        if (reason := _reason(one, then.get((right.at.commit, one.path)), now, right))
    )


def _prose(record: Record) -> str:
    """Returns the text that may cite; what was ingested is a copy of what somebody else wrote."""
    return "" if record.parent is not None else record.memory.text


def _reason(
    citation: Citation, then: str | None, now: Mapping[str, _File], right: _Known
) -> str | None:
    found = now.get(citation.path)
    if then is None or found is None:
        return None
    older = right.written and found.modified and found.modified <= right.written
    return None if older else changed(citation, then, found.text)


def _known(mind: Mind, repository: Repository, records: Sequence[Record]) -> dict[str, _Known]:
    """Returns by id since when each memory says what it says: that was right at that time."""
    committed = touches.all_touches(repository)
    asked = [
        (touch.commit, record.place.path)
        for record in records
        for touch in committed.get(record.place.path, ())[:_MOST_COMMITS]
    ]
    then = touches.contents(repository, asked)
    known: dict[str, _Known] = {}
    written: dict[str, datetime] = {}
    for record in records:
        name, path = record.memory.id, record.place.path
        if at := _first_said(record, committed.get(path, []), then):
            known[name] = _Known(at=at)
        elif stamp := mind.store.stamp(path):
            written[name] = _moment(stamp.mtime_ns)
    before = touches.commits_before(repository, written.values())
    for name, moment in written.items():
        if touch := before[moment]:
            known[name] = _Known(at=touch, written=moment)
    return known


def _first_said(
    record: Record, commits: Iterable[Touch], then: Mapping[tuple[str, str], bytes]
) -> Touch | None:
    """Returns the first of the newest commits in which the memory says what it says now."""
    found = None
    for touch in commits:
        data = then.get((touch.commit, record.place.path))
        if data is None or _said(_memory(data, record)) != _said(record.memory):
            break
        found = touch
    return found


def _said(memory: Memory | None) -> tuple[str, ...] | None:
    """Returns what a memory claims: neither how it turned out nor what its header says."""
    if memory is None:
        return None
    others = [text for name, text in memory.sections.items() if name is not Section.OUTCOME]
    return (memory.content, *others)


def _memory(data: bytes, record: Record) -> Memory | None:
    from mimo.domain import codec

    path = record.place.path
    found = codec.parse(data, path=path, modified=record.memory.created)
    return None if isinstance(found, Problem) else found.memory


def _look(mind: Mind, path: str) -> _File | None:
    """Returns a file as it stands; None for what can't be compared."""
    try:
        data, status = files.look(files.safe_path(mind.project.root, path), limit=_LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return _File(text=None)
    except (OSError, MindError):
        return None
    if status.st_size > _LARGEST:
        return None
    return _File(text=data.decode("utf-8", "replace"), modified=_moment(status.st_mtime_ns))


def _moment(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1_000_000_000, UTC)
