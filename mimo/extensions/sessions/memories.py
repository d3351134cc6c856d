"""Memories that clients keep of their own, and the user's rules for agents in all projects.

The files belong to the clients: they are read, never changed, and count as unapproved. An index of
class C has their entries, masked, and follows the files at each search: there are few, and small.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path

from mimo.api import (
    SURE,
    Change,
    Chunking,
    ClientMemory,
    Filter,
    Memory,
    Mind,
    NamedTuple,
    Place,
    Record,
    Request,
    Stamp,
    Strategy,
    Unreadable,
    chunks,
    clean,
    disk,
    excerpt,
    one_line,
    read_document,
    replace,
)
from mimo.api import (
    Kind as MemoryKind,
)
from mimo.extensions.sessions import store, turning_on
from mimo.extensions.sessions.indexing import Sessions, tag_of
from mimo.extensions.sessions.readers import lines
from mimo.extensions.sessions.reading import project_of, without_secrets

FOLDER = "agents"
"""The folder of the index in the cache."""

LARGEST_FILE = 1_000_000
"""Bytes; larger files are left out."""

MOST_FILES = 500
"""The files of a folder that are read."""

_EXCERPT = 300
"""Characters of an entry in an answer."""

_SIZE = 1_500
"""Characters of an entry, about, of a file that is not one memory."""

_ONE_MEMORY = 6_000
"""Characters up to which a file with a header is one memory."""

_EVERYWHERE = "everywhere"
"""The tag of entries that are for all projects."""

_MEMORY, _RULES = "memory", "rules"


class Location(NamedTuple):
    """A folder with files of a client."""

    client: str
    kind: str
    folder: Path
    pattern: str
    project: str = ""
    """The project that they are for; empty if they are for all."""

    @property
    def origin(self) -> str:
        """Returns the label of its entries."""
        return f"{self.client.removesuffix('-code')} {self.kind}"

    @property
    def follows(self) -> bool:
        """Returns whether a file may be a link: rules are often kept with a user's dotfiles."""
        return self.kind == _RULES

    def files(self) -> Iterator[tuple[Path, Stamp]]:
        """Yields the files of the user that are there, with their states."""
        with suppress(OSError, ValueError):
            for path in islice(sorted(self.folder.glob(self.pattern)), MOST_FILES):
                name = os.path.realpath(path) if self.follows else path.name
                if name.endswith(".md") and (stamp := disk.stamp(path, follow=self.follows)):
                    yield path, stamp


def counts(mind: Mind) -> Mapping[str, int]:
    """Returns the number of files of this project and of all projects, by origin."""
    return Counter(location.origin for location, _ in _files(mind).values())


class AgentMemories(Sessions):
    """The index of what agents remember, apart from that of sessions, whose terms are others."""

    @property
    def _folder(self) -> Path:
        return self._mind.home / "cache" / FOLDER

    def update(
        self,
        advance: Callable[[int, int], object] = lambda done, total: None,
        limit: int | None = None,
    ) -> int:
        """Brings the index up to the files, and returns the number of those that changed."""
        return self._follow(_files(self._mind))

    def _follow(self, files: Mapping[Path, tuple[Location, Stamp]]) -> int:
        identity = self.index.begin()
        indexed, now = self.index.stamps(), time.time_ns()
        changes = []
        for path, (location, stamp) in files.items():
            indexed_stamp, read_ns = indexed.get(f"{path}", (None, 0))
            if indexed_stamp != stamp or not stamp.is_settled(read_ns):
                changes.append(_change(location, path, stamp, files.keys()))
        # Files of other projects stay in the index: they are found in these alone.
        paths = {f"{path}" for path in files}
        missing = (name for name in indexed.keys() - paths if disk.stamp(name) is None)
        changes += [Change(path=name, stamp=None) for name in missing]
        if changes:
            self.index.apply(changes, now_ns=now)
        self.index.note_all_compared(identity)
        return len(changes)

    def matching(
        self, query: str, limit: int, conditions: Filter, texts: Collection[str]
    ) -> list[ClientMemory]:
        """Returns the entries that surely match, best first, and each text once.

        `texts` are those of memories in the same answer, which are not repeated.
        """
        files = _files(self._mind)
        self._follow(files)
        scopes, number, now = [_EVERYWHERE], limit + len(texts), self._mind.now()
        if project := _project(self._mind):
            scopes.append(tag_of(project))
        filters = (replace(conditions, tags=frozenset((scope,))) for scope in scopes)
        requests = (Request(query, filter, number, now) for filter in filters)
        hits = [hit for request in requests for hit in self.index.search(request).hits]
        digests = {store.digest_of(text) for text in texts}
        rows = []
        for hit in sorted(hits, key=lambda hit: -hit.score):
            memory, place = hit.record.memory, hit.record.place
            copies = {store.digest_of(memory.content), store.digest_of(hit.passage)}
            if hit.score < SURE or Path(place.path) not in files or copies & digests:
                continue
            digests |= copies
            rows.append(
                ClientMemory(
                    origin=memory.source or "",
                    title=memory.heading,
                    passage=excerpt(hit.passage, query, _EXCERPT),
                    path=place.path,
                    line=place.line,
                    date=memory.created,
                )
            )
        return rows[:limit]


# The places of the clients' files.


def locations(mind: Mind) -> Iterator[Location]:
    """Yields the places of the clients that the user's settings admit."""
    clients = mind.config["sessions.clients"]
    home = Path(mind.environ.get("HOME") or Path.home())
    for location in _all(mind.environ, home, _project(mind)):
        if not clients or location.client in clients:
            yield location


def _files(mind: Mind) -> dict[Path, tuple[Location, Stamp]]:
    """Returns the files that are there, each with the first location that has it."""
    files: dict[Path, tuple[Location, Stamp]] = {}
    for location in locations(mind):
        for path, stamp in location.files():
            files.setdefault(path, (location, stamp))
    return files


def _project(mind: Mind) -> str:
    """Returns the main folder of the repository around; empty for none, or if it is left out."""
    project = turning_on.project(mind)
    selection = turning_on.selection(mind)
    return project if selection.admits(project) and selection.permits(project) else ""


def _all(environment: Mapping[str, str], home: Path, project: str) -> Iterator[Location]:
    def folder(variable: str, default: str) -> Path:
        return Path(environment.get(variable) or home / default)

    claude, codex = folder("CLAUDE_CONFIG_DIR", ".claude"), folder("CODEX_HOME", ".codex")
    gemini = folder("GEMINI_CLI_HOME", "") / ".gemini"
    copilot, settings = folder("COPILOT_HOME", ".copilot"), folder("XDG_CONFIG_HOME", ".config")
    if project:
        folder_of_project = claude / "projects" / _munged(project) / "memory"
        yield Location("claude-code", _MEMORY, folder_of_project, "*.md", project)
        slug = lines.text(_settings(gemini / "projects.json"), "projects", project)
        if slug and slug == Path(slug).name:
            yield Location("gemini", _MEMORY, gemini / "tmp" / slug / "memory", "*.md", project)
    # Only the user's own settings move them: a project could name any folder.
    if moved := lines.text(_settings(claude / "settings.json"), "autoMemoryDirectory"):
        place = home / moved[2:] if moved.startswith("~/") else Path(moved)
        if place.is_absolute():
            yield Location("claude-code", _MEMORY, place, "*.md")
    yield Location("codex", _MEMORY, codex / "memories", "MEMORY.md")
    yield Location("codex", _MEMORY, codex / "memories", "rollout_summaries/*.md")
    yield Location("claude-code", _RULES, claude, "CLAUDE.md")
    yield Location("claude-code", _RULES, claude, "rules/**/*.md")
    yield Location("codex", _RULES, codex, "AGENTS*.md")
    yield Location("gemini", _RULES, gemini, "GEMINI.md")
    yield Location("copilot", _RULES, copilot, "copilot-instructions.md")
    yield Location("copilot", _RULES, copilot, "instructions/**/*.instructions.md")
    yield Location("opencode", _RULES, settings / "opencode", "AGENTS.md")
    yield Location("cline", _RULES, home / "Documents" / "Cline" / "Rules", "*.md")


def _munged(path: str) -> str:
    """Returns the name that Claude Code gives to the folder of a project."""
    units = path.encode("utf-16-le", "surrogatepass")
    pairs = (units[place : place + 2] for place in range(0, len(units), 2))
    letters = (pair.decode("utf-16-le", "replace") for pair in pairs)
    return "".join(each if each.isascii() and each.isalnum() else "-" for each in letters)


def _settings(path: Path) -> Mapping[str, object]:
    """Returns a small file of JSON; empty if it can't be read."""
    return lines.mapping(lines.small(path, follow=True)) or {}


# The entries of a file.


class Entry(NamedTuple):
    """A part of a file that is found by itself."""

    title: str
    text: str
    line: int
    kind: str = ""
    projects: Sequence[str] = ()
    """The projects that it is for; empty if it is for all."""


def _change(location: Location, path: Path, stamp: Stamp, beside: Collection[Path]) -> Change:
    """Returns the entries of a file; none if it can't be read, or is not the user's."""
    records: list[Record] = []
    with suppress(OSError, Unreadable):
        data, status = disk.look(path, limit=LARGEST_FILE, follow=location.follows)
        if len(data) <= LARGEST_FILE and not disk.is_foreign(status):
            created = disk.moment(stamp.mtime_ns / 1e9)
            entries = _entries(location, path, data, beside)
            records += (_record(location, path, created, entry) for entry in entries)
    numbered = (
        replace(record, memory=replace(record.memory, id=f"{record.memory.id}-{number}"))
        for number, record in enumerate(records)
    )
    return Change(path=f"{path}", stamp=stamp, records=tuple(numbered))


def _record(location: Location, path: Path, created: datetime, entry: Entry) -> Record:
    tags = tuple(tag_of(project) for project in entry.projects)
    return Record(
        memory=Memory(
            id=store.digest_of(f"{path}").hex()[:16],
            type=MemoryKind.FACT,
            title=entry.title or None,
            content=entry.text,
            created=created,
            source=location._replace(kind=entry.kind).origin,
            tags=tags or (_EVERYWHERE,),
        ),
        place=Place(path=f"{path}", line=entry.line, digest="0" * 64, private=True),
    )


def _entries(
    location: Location, path: Path, data: bytes, beside: Collection[Path]
) -> Iterator[Entry]:
    """Yields the entries of a file, without secrets. Raises `Unreadable`."""
    document, header = read_document(data, lenient=True)
    fields = [one_line(f"{header.get(key) or ''}")[:_EXCERPT] for key in ("name", "description")]
    body = _OWN_NOTES.sub(lambda notes: "\n" * notes[0].count("\n"), document.body)
    # All of it is masked at once, before it is cut.
    text = clean(body).encode("utf-8", "replace").decode()
    name, description, body = without_secrets([*fields, text])
    scope = (location.project,) if location.project else ()
    line = document.body_line
    if name and len(body) <= _ONE_MEMORY:
        parts = ("" if description in body else description, body.strip())
        yield Entry(name, "\n\n".join(filter(None, parts)), line, location.kind, scope)
        return
    of_codex = location.client == "codex" and location.kind == _MEMORY
    for group in _GROUP.split(body) if of_codex and path.stem == "MEMORY" else [body]:
        projects = _folders(group) if of_codex else scope
        for headings, part in _parts(group, name or path.stem):
            links = {path.parent / target for target in _LINK.findall(part.text)}
            if (headings and headings[-1] in _LISTS) or not links.isdisjoint(beside):
                continue  # It leads to files that are read themselves.
            kind = _MEMORY if _OF_GEMINI in headings else location.kind
            yield part._replace(line=line + part.line, kind=kind, projects=projects)
        line += group.count("\n")


_OWN_NOTES = re.compile(r"(?ms)^<!-- MIND:CONTEXT\b.*?^<!-- MIND:END -->[^\n]*$")
"""The notes that mind itself keeps in a file with rules."""

_OF_GEMINI = "Gemini Added Memories"
_LISTS = frozenset(("keywords", "rollout_summary_files"))
"""Headings in the memory of Codex, of lists for its own search."""

_GROUP = re.compile(r"(?m)^(?=# )")
_LINK = re.compile(r"\[[^\]\n]*\]\(([^()\s]+\.md)\)")
_ITEM = re.compile(r"(?m)^(?:[-*+]|\d{1,9}[.)])[ \t]+")
_HEADINGS = re.compile(r"\A(?:#{1,6}[ \t][^\n]*(?:\n+|\Z))+")
_FOLDER = re.compile(r"(?m)^(?:applies_to:[^\n]*?\bcwd[ \t]*=|cwd:)[ \t]*([^;\n]+)")
_AND = re.compile(r"(?:,|[ \t]and)[ \t]+(?:cwd[ \t]*=[ \t]*)?")


def _folders(group: str) -> list[str]:
    """Returns the projects in which Codex learned something; none if it does not say."""
    folders = [folder.strip() for line in _FOLDER.findall(group) for folder in _AND.split(line)]
    return list(dict.fromkeys(project_of(folder) for folder in folders if folder[:1] == "/"))


def _parts(body: str, name: str) -> Iterator[tuple[Sequence[str], Entry]]:
    """Yields the sections of a text, and each item of a list by itself, with the headings above.

    Lines are counted from 0.
    """
    for chunk in chunks(body, Chunking(strategy=Strategy.MARKDOWN, chunk_size=_SIZE), "a.md"):
        title = " > ".join(chunk.path) or name
        headings = _HEADINGS.match(chunk.text)
        start = headings.end() if headings else 0
        starts = [start]
        if "```" not in chunk.text:  # An item within code is none.
            starts += [item.start() for item in _ITEM.finditer(chunk.text, start)]
        for begin, end in zip(starts, [*starts[1:], len(chunk.text)], strict=True):
            part = chunk.text[begin:end]
            line = chunk.first_line - 1 + chunk.text.count("\n", 0, begin)
            if content := _ITEM.sub("", part, count=1).strip():
                yield chunk.path, Entry(title, content, line)
