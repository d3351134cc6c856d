"""Stale memories: those that cite a place in the project's files that has changed since."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from mimo import disk
from mimo.errors import Invalid, MindError
from mimo.frozen import frozen
from mimo.memory.model import Memory, Problem, Record, Section
from mimo.mind import Mind
from mimo.store import files, git, revisions
from mimo.store.revisions import Commit

MOST = 50
"""Citations of one text that are checked."""
_LARGEST = 1_000_000
"""Bytes of the largest file that is compared."""
_MOST_COMMITS = 20
"""Changes of one memory's file that are searched."""

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
    """A cited place in a file: lines, or a name."""

    text: str
    """As it was written."""
    path: str
    """With `/`, as it was written; below the project's root if it is one of its files."""
    first: int = 0
    """From 1; 0 if a name is cited."""
    last: int = 0
    symbol: str = ""


def citations(text: str) -> tuple[Citation, ...]:
    """Returns the places that a text cites, each once, in their order; at most `MOST`."""
    cited: dict[Citation, None] = {}
    for match in _CITATION.finditer(_URL.sub(" ", text)):
        if (citation := _citation(match)) is not None:
            cited[citation] = None
            if len(cited) == MOST:
                break
    return tuple(cited)


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
    """Returns a message on the change of a cited place; None if it is the same or never existed.

    `then` and `now` are the file's text; `now` is None if it is missing. Lines that only moved, or
    changed their indentation, are the same.
    """
    if citation.symbol:
        if not _names(then, citation):
            return None
        if now is None:
            return f"{citation.path} is missing"
        return None if _names(now, citation) else f"{citation.symbol} is not in {citation.path}"
    every = _lines(then)
    cited = every[citation.first - 1 : citation.last]
    if citation.last > len(every) or not any(_WORD.search(line) for line in cited):
        return None
    if now is None:
        return f"{citation.path} is missing"
    if _times(cited, _lines(now)) >= _times(cited, every):
        return None
    first, last = citation.first, citation.last
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    return f"{lines} of {citation.path} changed"


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def _times(block: Sequence[str], lines: Sequence[str]) -> int:
    """Returns the number of occurrences of a block of lines in a text."""
    size, times, place = len(block), 0, 0
    while place + size <= len(lines):
        same = lines[place] == block[0] and list(lines[place : place + size]) == list(block)
        times += same
        place += size if same else 1
    return times


def _names(text: str, citation: Citation) -> bool:
    """Returns whether a file contains the cited name: as a word, or as a heading's anchor."""
    name = citation.symbol.rpartition(".")[2]
    if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
        return True
    if not citation.path.lower().endswith((".md", ".markdown")):
        return False
    return any(_anchor(title) == citation.symbol.lower() for title in _HEADING.findall(text))


def _anchor(title: str) -> str:
    """Returns a heading's anchor as forges make it."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", "-")


@frozen
class Stale:
    """A memory, a place that it cites, and the change of that place."""

    record: Record
    citation: Citation
    reason: str
    since: Commit
    """The commit at which the memory was last known to be right."""


@frozen
class _Known:
    """The time when a memory was last known to be right."""

    at: Commit
    written: datetime | None = None
    """The time when its file was written, if its text is not committed yet."""


@frozen
class _File:
    """A cited file in the working tree; `text` is None if it is missing."""

    text: str | None
    modified: datetime | None = None


def stale(mind: Mind, records: Iterable[Record]) -> tuple[Stale, ...]:
    """Returns the stale citations in these memories.

    A file is compared with its text when the memory's text was last written: at the commit that
    added it, or, if it is not committed yet, at the last commit before the time of the memory's
    file. There are none without git, and in a partial clone without the contents of its history.
    """
    citing = {r.memory.id: (r, cited) for r in records if (cited := citations(_prose(r)))}
    root = mind.project.root
    if not citing or not git.has_repository(root):
        return ()
    try:
        known = _known(mind, [record for record, _ in citing.values()])
        wanted = [(known[name].at.id, c.path) for name in known for c in citing[name][1]]
        content = revisions.contents(root, wanted)
    except Invalid:
        return ()
    then = {pair: data.decode("utf-8", "replace") for pair, data in content.items()}
    paths = {path for _, path in then}
    now = {path: file for path in paths if (file := _look(mind, path))}
    return tuple(
        Stale(record=citing[name][0], citation=one, reason=reason, since=right.at)
        for name, right in known.items()
        for one in citing[name][1]
        if (reason := _reason(one, then.get((right.at.id, one.path)), now, right))
    )


def _prose(record: Record) -> str:
    """Returns the text that may cite; an ingested text is a copy of another author's."""
    return "" if record.parent is not None else record.memory.text


def _reason(
    citation: Citation, then: str | None, now: Mapping[str, _File], right: _Known
) -> str | None:
    file = now.get(citation.path)
    if then is None or file is None:
        return None
    older = right.written and file.modified and file.modified <= right.written
    return None if older else changed(citation, then, file.text)


def _known(mind: Mind, records: Sequence[Record]) -> dict[str, _Known]:
    """Returns, by id, the time when each memory got its text: the text was right then."""
    root = mind.project.root
    committed = revisions.commits_by_path(root)
    asked = [
        (commit.id, record.place.path)
        for record in records
        for commit in committed.get(record.place.path, ())[:_MOST_COMMITS]
    ]
    then = revisions.contents(root, asked)
    known: dict[str, _Known] = {}
    written: dict[str, datetime] = {}
    for record in records:
        name, path = record.memory.id, record.place.path
        if at := _first_with_text(record, committed.get(path, []), then):
            known[name] = _Known(at=at)
        elif stamp := mind.store.stamp(path):
            written[name] = _moment(stamp.mtime_ns)
    before = revisions.commits_before(root, written.values())
    for name, moment in written.items():
        if commit := before[moment]:
            known[name] = _Known(at=commit, written=moment)
    return known


def _first_with_text(
    record: Record, commits: Iterable[Commit], then: Mapping[tuple[str, str], bytes]
) -> Commit | None:
    """Returns the first of the newest commits in which the memory has its current text."""
    first = None
    for commit in commits:
        data = then.get((commit.id, record.place.path))
        if data is None or _claims(_memory(data, record)) != _claims(record.memory):
            break
        first = commit
    return first


def _claims(memory: Memory | None) -> tuple[str, ...] | None:
    """Returns the texts of a memory except its header and outcome."""
    if memory is None:
        return None
    others = [text for name, text in memory.sections.items() if name is not Section.OUTCOME]
    return (memory.content, *others)


def _memory(data: bytes, record: Record) -> Memory | None:
    from mimo.memory import codec

    path = record.place.path
    parsed = codec.parse(data, path=path, modified=record.memory.created)
    return None if isinstance(parsed, Problem) else parsed.memory


def _look(mind: Mind, path: str) -> _File | None:
    """Returns a file of the working tree; None if it can't be compared."""
    try:
        data, status = disk.look(files.safe_path(mind.project.root, path), limit=_LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return _File(text=None)
    except (OSError, MindError):
        return None
    if status.st_size > _LARGEST:
        return None
    return _File(text=data.decode("utf-8", "replace"), modified=_moment(status.st_mtime_ns))


def _moment(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1_000_000_000, UTC)
