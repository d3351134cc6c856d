"""Stale memories: those that cite a place in the project's files that has changed since."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from mimo.call import Call
from mimo.data import disk, files
from mimo.errors import Invalid, MindError
from mimo.frozen import frozen
from mimo.memory.model import Memory, Problem, Record, Section
from mimo.project import git, revisions
from mimo.project.revisions import Commit

MOST = 50
"""Citations of one text that are checked."""
_LARGEST = 1_000_000
"""Bytes of the largest file that is compared."""
_MOST_COMMITS = 20
"""Changes of one memory's file that are searched."""

_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,40}://\S*")
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
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*)", re.MULTILINE)


@frozen
class Citation:
    """A cited place in a file: lines, or a name."""

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
        path, symbol = match[1].removeprefix("./"), match[6] or ""
        start = 0 if symbol else int(match[2] or match[4])
        end = 0 if symbol else int(match[3] or match[5] or start)
        if _is_file(path) and (symbol or 0 < start <= end):
            cited[Citation(path=path, first=start, last=end, symbol=symbol)] = None
            if len(cited) == MOST:
                break
    return tuple(cited)


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
    all_lines = _lines(then)
    cited = all_lines[citation.first - 1 : citation.last]
    if citation.last > len(all_lines) or not any(_WORD.search(line) for line in cited):
        return None
    if now is None:
        return f"{citation.path} is missing"
    if _times(cited, _lines(now)) >= _times(cited, all_lines):
        return None
    start, end = citation.first, citation.last
    lines = f"line {start}" if start == end else f"lines {start}-{end}"
    return f"{lines} of {citation.path} changed"


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def _times(block: Sequence[str], lines: Sequence[str]) -> int:
    """Returns the number of occurrences of a block of lines in a text."""
    haystack, part = ("".join(f"\n{line}\r" for line in text) for text in (lines, block))
    return haystack.count(part)


def _names(text: str, citation: Citation) -> bool:
    """Returns whether a file contains the cited name: as a word, or as a heading's anchor."""
    name = citation.symbol.rpartition(".")[2]
    if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
        return True
    if not citation.path.lower().endswith((".md", ".markdown")):
        return False
    for title in _HEADING.findall(text):
        # The anchor as forges make it.
        anchor = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
        if anchor.strip().replace(" ", "-") == citation.symbol.lower():
            return True
    return False


@frozen
class Stale:
    """A memory that cites a changed place, and the change."""

    record: Record
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


def stale(call: Call, records: Iterable[Record]) -> tuple[Stale, ...]:
    """Returns the stale citations in these memories.

    A file is compared with its text when the memory's text was last written: at the commit that
    added it, or, if it is not committed yet, at the last commit before the time of the memory's
    file. There are none without git, and in a partial clone without the contents of its history.
    An ingested text is a copy of another author's, whose citations mean other files.
    """
    own_records = (record for record in records if record.parent is None)
    citing = {r.memory.id: (r, cited) for r in own_records if (cited := citations(r.memory.text))}
    root = call.mind.project.root
    if not citing or not git.has_repository(root):
        return ()
    try:
        right = _last_right(call, [record for record, _ in citing.values()])
        places = [(right[id].at.id, place.path) for id in right for place in citing[id][1]]
        contents = revisions.contents(root, places)
    except Invalid:
        return ()
    current = {path: _look(call, path) for _, path in contents}
    results = []
    for id, known in right.items():
        record, cited = citing[id]
        for citation in cited:
            then, file = contents.get((known.at.id, citation.path)), current.get(citation.path)
            if then is None or file is None:
                continue
            if known.written and file.modified and file.modified <= known.written:
                continue
            if reason := changed(citation, then.decode("utf-8", "replace"), file.text):
                results.append(Stale(record=record, reason=reason, since=known.at))
    return tuple(results)


def _last_right(call: Call, records: Sequence[Record]) -> dict[str, _Known]:
    """Returns, by id, the time when each memory got its text: the text was right then."""
    root = call.mind.project.root
    committed = revisions.commits_by_path(root)
    asked = [
        (commit.id, record.place.path)
        for record in records
        for commit in committed.get(record.place.path, ())[:_MOST_COMMITS]
    ]
    contents = revisions.contents(root, asked)
    right: dict[str, _Known] = {}
    written: dict[str, datetime] = {}
    for record in records:
        id, path = record.memory.id, record.place.path
        earliest: Commit | None = None
        for commit in committed.get(path, ()):
            data = contents.get((commit.id, path))
            if data is None or not _has_text(data, record):
                break
            earliest = commit
        if earliest:
            right[id] = _Known(at=earliest)
        elif stamp := call.mind.store.stamp(path):
            written[id] = _moment(stamp.mtime_ns)
    commits = revisions.commits_before(root, written.values())
    for id, moment in written.items():
        if newest := commits[moment]:
            right[id] = _Known(at=newest, written=moment)
    return right


def _has_text(data: bytes, record: Record) -> bool:
    """Returns whether a file has the text of a memory; its header and outcome may differ."""
    from mimo.memory import codec

    parsed = codec.parse(data, path=record.place.path, modified=record.memory.created, lenient=True)
    return not isinstance(parsed, Problem) and _claims(parsed.memory) == _claims(record.memory)


def _claims(memory: Memory) -> tuple[str, ...]:
    texts = [text for name, text in memory.sections.items() if name is not Section.OUTCOME]
    return (memory.content, *texts)


def _look(call: Call, path: str) -> _File | None:
    """Returns a file of the working tree; None if it can't be compared."""
    try:
        data, status = disk.look(files.safe_path(call.mind.project.root, path), limit=_LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return _File(text=None)
    except (OSError, MindError):
        return None
    if status.st_size > _LARGEST:
        return None
    return _File(text=data.decode("utf-8", "replace"), modified=_moment(status.st_mtime_ns))


def _moment(nanoseconds: int) -> datetime:
    return disk.moment(nanoseconds / 1_000_000_000)
