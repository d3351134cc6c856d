"""Memories that cite a place in the project's files which says something else since."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from mimo.errors import Invalid, MindError
from mimo.frozen import frozen
from mimo.memory.model import Memory, Problem, Record, Section
from mimo.mind import Mind
from mimo.store import files, revisions
from mimo.store.git import Repository
from mimo.store.revisions import Touch

# Places in the project's files that a text names, and whether they still say the same.


MOST = 50
"""Citations of one text that are looked at."""

_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://\S*")
_CITATION = re.compile(
    r"(?<![\w.@+~/\\:#-])"
    r"((?:[\w.@+-]++/)*+[\w.@+-]++)"
    r"(?::(\d{1,7})(?:[-–](\d{1,7}))?(?::\d+)?|#L(\d{1,7})(?:-L?(\d{1,7}))?|#([A-Za-z_][\w.-]*\w|\w))"
    r"(?![\w/]|:\d|\.\d)"
)
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}")
_NAMED = frozenset({"Makefile", "Dockerfile", "Justfile", "Rakefile", "Gemfile", "Procfile"})
_HOSTS = frozenset({".com", ".org", ".net", ".edu", ".gov", ".local", ".localhost"})
_ABBREVIATED = frozenset({"i.e", "e.g", "a.m", "p.m", "cf"})
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


@frozen
class Citation:
    """A place in a file: lines, or something that has a name."""

    text: str
    """As it was written."""
    path: str
    """With `/`, as it was written; below the project's root if it is one of its files."""
    first: int = 0
    """From 1; 0 where a name is cited."""
    last: int = 0
    symbol: str = ""


def citations(text: str) -> tuple[Citation, ...]:
    """Returns the places that a text cites, each once, in their order; at most `MOST`."""
    found: dict[Citation, None] = {}
    for match in _CITATION.finditer(_URL.sub(" ", text)):
        if (one := _citation(match)) is not None:
            found[one] = None
            if len(found) == MOST:
                break
    return tuple(found)


def _citation(match: re.Match[str]) -> Citation | None:
    path = match[1].removeprefix("./")
    if not _is_file(path):
        return None
    if match[6]:
        return Citation(text=match[0], path=path, symbol=match[6])
    first = int(match[2] or match[4])
    last = int(match[3] or match[5] or first)
    return Citation(text=match[0], path=path, first=first, last=last) if 0 < first <= last else None


def _is_file(path: str) -> bool:
    """Returns whether a word may be the path of a file below the project."""
    *folders, name = path.split("/")
    if name in _NAMED:
        return True
    stem, dot, extension = name.rpartition(".")
    ending = f"{dot}{extension}"
    hosted = not folders and ending.lower() in _HOSTS
    odd = name.lower() in _ABBREVIATED or ".." in folders or "." in folders
    return bool(stem and _EXTENSION.fullmatch(ending)) and not (hosted or odd)


def changed(citation: Citation, then: str, now: str | None) -> str | None:
    """Returns what became of a cited place, in words; None where it says the same or never did.

    `then` and `now` are the file's text, `now` None where it is gone. Lines that only moved, or
    were indented anew, say the same.
    """
    if citation.symbol:
        if not _names(then, citation):
            return None
        if now is None:
            return f"{citation.path} is gone"
        return None if _names(now, citation) else f"{citation.symbol} is gone from {citation.path}"
    every = _lines(then)
    cited = every[citation.first - 1 : citation.last]
    if citation.last > len(every) or not any(_WORD.search(line) for line in cited):
        return None
    if now is None:
        return f"{citation.path} is gone"
    if _times(cited, _lines(now)) >= _times(cited, every):
        return None
    one = citation.first == citation.last
    which = f"line {citation.first}" if one else f"lines {citation.first}-{citation.last}"
    return f"{which} of {citation.path} changed"


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def _times(block: Sequence[str], lines: Sequence[str]) -> int:
    """Returns how often a block of lines stands in a text."""
    size, found, place = len(block), 0, 0
    while place + size <= len(lines):
        same = lines[place] == block[0] and list(lines[place : place + size]) == list(block)
        found += same
        place += size if same else 1
    return found


def _names(text: str, citation: Citation) -> bool:
    """Returns whether a file has something of that name: a word of it, or a heading's anchor."""
    name = citation.symbol.rpartition(".")[2]
    if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
        return True
    if not citation.path.lower().endswith((".md", ".markdown")):
        return False
    return any(_anchor(title) == citation.symbol.lower() for title in _HEADING.findall(text))


def _anchor(title: str) -> str:
    """Returns a heading as forges link to it."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", "-")


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
        then = revisions.texts(repository, wanted)
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
    committed = revisions.all_touches(repository)
    asked = [
        (touch.commit, record.place.path)
        for record in records
        for touch in committed.get(record.place.path, ())[:_MOST_COMMITS]
    ]
    then = revisions.contents(repository, asked)
    known: dict[str, _Known] = {}
    written: dict[str, datetime] = {}
    for record in records:
        name, path = record.memory.id, record.place.path
        if at := _first_said(record, committed.get(path, []), then):
            known[name] = _Known(at=at)
        elif stamp := mind.store.stamp(path):
            written[name] = _moment(stamp.mtime_ns)
    before = revisions.commits_before(repository, written.values())
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
    from mimo.memory import codec

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
