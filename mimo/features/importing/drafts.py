"""Drafts of memories, as the readers of other tools make them, and the values in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import chain, count, repeat, takewhile
from pathlib import Path
from typing import Any

from mimo.features.importing import foreign
from mimo.features.importing.surroundings import Surroundings
from mimo.frozen import field, frozen, replace
from mimo.memory import ids, naming
from mimo.memory.codec.document import MAX_FILE_BYTES, decode, prose_lines, trim
from mimo.memory.model import Kind, Link, Memory, Section
from mimo.operations.rows import row_of
from mimo.privacy.model import without
from mimo.privacy.secrets import secrets_in
from mimo.text.clean import storable

LARGEST_JSON = 256 * 1024 * 1024
"""The largest file of JSON, which is read as a whole."""

_LONGEST = 200
"""Characters of a link that the header shows because it leads nowhere."""


@frozen
class Source:
    """The source of an import: a file, or the files of a folder or of a zip archive."""

    path: Path
    name: str
    """Its last part, without `.zip`: the name of a vault or of a project."""
    files: Mapping[str, int]
    """The size of each file by its path in the source, with `/`."""
    hidden: frozenset[str]
    """The hidden files and folders at its top, such as `.obsidian`."""
    content: Callable[[str, int], bytes]
    """Returns the bytes of one of the files. Raises `Unreadable` if they are more than a limit."""
    is_file: bool = False
    skipped: Sequence[tuple[str, str]] = ()
    """Files that are not read, each with the reason."""
    surroundings: Surroundings = Surroundings()
    """The folders that contain it, which may be private."""

    def text(self, name: str, limit: int = MAX_FILE_BYTES) -> str:
        """Returns the text of a file. Raises `Unreadable`."""
        return decode(self.content(name, limit), limit)[0]

    def json(self, name: str) -> Any:
        """Returns the data of a file of JSON. Raises `Unreadable`."""
        return foreign.parsed(self.text(name, LARGEST_JSON))

    def named(self, *endings: str) -> list[str]:
        """Returns the files whose names end so, those at the top first."""
        names = [name for name in self.files if name.lower().endswith(endings)]
        return sorted(names, key=lambda name: (name.count("/"), name))


@frozen
class Draft:
    """A memory of another tool, as a reader yields it. Names in its links are that tool's own."""

    key: str
    """Its id in the other tool, the same each time. A place in the source is not one."""
    group: str
    """The other tool's word for such memories, such as `entities`."""
    type: Kind = Kind.FACT
    content: str = ""
    created: datetime | None = None
    """None if the source gives no time: none is made up."""
    title: str | None = None
    topic: str | None = None
    tags: tuple[str, ...] = ()
    status: str | None = None
    category: str | None = None
    confidence: float | None = None
    importance: float = 0.5
    sections: Mapping[Section, str] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    names: tuple[str, ...] = ()
    """Other names by which links mean it, the surest first: its title, aliases."""
    path: str = ""
    """The path in the source of a file that is a note of that name."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    private: bool = False
    project: str | None = None
    """The project that it is of, if the source has those of several."""
    skipped: str | None = None
    """The reason why it does not become a memory."""
    whole: Memory | None = None
    """The memory itself, with its id, if mind exported it."""
    is_unique: bool = False
    """True if each export has it under its key, which no other memory has."""


@frozen
class Item:
    """A row or a draft of the source as the memory that it becomes, or the reason against it."""

    group: str
    """The table or the kind that it is of in the other tool."""
    key: str
    """Its own id there, as text."""
    memory: Memory | None
    skipped: str | None = None
    private: bool = False
    is_undated: bool = False
    """True if the source gives no time, so that the memory has that of its import."""


# Drafts as memories: their ids, and links by these ids.


@frozen
class Resolved:
    """The memories of drafts, and the number of links between them."""

    items: tuple[Item, ...]
    links: int = 0
    unresolved: int = 0
    """Links to something that is not in the source, or that a shared memory must not name."""


def resolved(
    drafts: Sequence[Draft],
    format: str,
    existing: Mapping[str, Memory],
    *,
    hidden: Container[str] = (),
    private: bool = False,
    now: datetime,
) -> Resolved:
    """Returns the memories of drafts. The same drafts always become the same memories.

    `existing` has the memories here by the source in their header, and `hidden` the ids of
    private ones; with `private`, all become so. A shared memory gets no link to a private one.
    `now` is the time of a memory whose source gives none; its header has `undated: true` then.
    """
    sources = dict(zip(_sources(drafts, format, existing), drafts, strict=True))
    taken = {
        source: existing[source].id if source in existing else _new_id(draft, source)
        for source, draft in sources.items()
    }
    unshared = {
        taken[source]
        for source, draft in sources.items()
        if private or draft.private or taken[source] in hidden
    }
    names, shared_names = _names(sources, taken, ()), _names(sources, taken, unshared)
    used: set[str] = set()
    items, counts = [], Counter[str]()
    for source, draft in sources.items():
        id = taken[source]
        item = _item(source, draft, id, names if id in unshared else shared_names, counts, now)
        if item.memory and item.memory.id.casefold() in used:
            reason = f"another memory of the source has its id, `{item.memory.id}`"
            item = replace(item, memory=None, skipped=reason)
        elif item.memory:
            used.add(item.memory.id.casefold())
        items.append(item)
    return Resolved(items=tuple(items), links=counts["links"], unresolved=counts["unresolved"])


def _sources(drafts: Sequence[Draft], format: str, existing: Mapping[str, Memory]) -> Iterable[str]:
    """Returns the source of each draft, as the header of its memory has it.

    Drafts with the same key differ by a digest of their texts: a number would be another draft's
    after one is removed. Only those with the same text, too, have a number.
    """
    keys = [f"{format}:{_one_line(draft.key)}" for draft in drafts]
    longer = [
        f"{key}#{foreign.digest(draft.content)}" for draft, key in zip(drafts, keys, strict=True)
    ]
    taken: dict[str, int] = {}
    for place, (draft, *names) in enumerate(zip(drafts, keys, longer, strict=True)):
        stored = (*names, *takewhile(existing.__contains__, _numbered(names[-1])))
        same = (name for name in stored if _has_text(existing.get(name), draft))
        if source := next((name for name in same if name not in taken), None):
            taken[source] = place
    recognised = set(taken.values())
    for place, (key, long) in enumerate(zip(keys, longer, strict=True)):
        if place not in recognised:
            unused = (name for name in chain((key, long), _numbered(long)) if name not in taken)
            taken[next(unused)] = place
    return sorted(taken, key=taken.__getitem__)


def _numbered(key: str) -> Iterator[str]:
    return (f"{key}#{number}" for number in count(2))


def _has_text(memory: Memory | None, draft: Draft) -> bool:
    return memory is not None and memory.content == trim(draft.content or draft.title or "")


def _names(
    sources: Mapping[str, Draft], taken: Mapping[str, str], hidden: Container[str]
) -> naming.Names:
    """Returns the ids of drafts, without hidden ones, by the names that links may use."""
    named: list[naming.Named] = []
    for source, draft in sources.items():
        id, path = taken[source], draft.path
        if not draft.skipped and id not in hidden:
            ranks = chain((naming.Rank.TITLE,), repeat(naming.Rank.ALIAS))
            names = [(naming.Rank.ID, draft.key), *zip(ranks, draft.names, strict=False)]
            names += [(naming.Rank.FILE, path)] if path else []
            named += [naming.Named(rank, naming.key_of(name), id, path) for rank, name in names]
    return naming.Names(named)


def _meant(names: naming.Names, target: str, draft: Draft) -> str | None:
    """Returns the id that a link of a draft means; None if it means no draft."""
    return next(iter(names.meant(target, draft.path)), None)


def _item(
    source: str,
    draft: Draft,
    id: str,
    names: naming.Names,
    counts: Counter[str],
    now: datetime,
) -> Item:
    """Returns a draft as a memory with an id; links to unknown names are kept as text."""
    item = Item(group=draft.group, key=draft.key, memory=None, private=draft.private)
    if draft.skipped:
        return replace(item, skipped=draft.skipped)
    if draft.whole:
        counts["links"] += len(draft.whole.links)
        return replace(item, memory=draft.whole)
    content = _with_ids(draft, draft.content, names, counts)
    sections = {
        name: _with_ids(draft, body, names, counts) for name, body in draft.sections.items() if body
    }
    if not (content.strip() or sections or draft.title):
        return replace(item, skipped="it is empty")
    links: list[Link] = []
    unknown: list[str] = []
    for link in draft.links:
        to = _meant(names, link.to, draft)
        if to is None and f"[[{link.to}" not in draft.content:
            unknown.append(f"{link.type} {link.to}")
        elif to and to != id:
            links.append(replace(link, to=to))
    counts["links"] += len(links)
    counts["unresolved"] += len(unknown)
    extra = dict(draft.extra)
    if unknown:
        extra["unresolved_links"] = [_one_line(name)[:_LONGEST] for name in unknown[:_MOST_UNKNOWN]]
    if draft.created is None:
        extra["undated"] = True
    memory = row_of(
        draft,
        Memory,
        id=id,
        content=content or draft.title or "",
        created=draft.created or now,
        title=draft.title and storable(draft.title),
        source=source,
        links=tuple(dict.fromkeys(links)),
        sections=sections,
        extra=extra,
    )
    return replace(item, memory=memory, is_undated=draft.created is None)


def _new_id(draft: Draft, source: str) -> str:
    """Returns the id of a new memory: readable words, and a digest of its source."""
    if draft.whole:
        return draft.whole.id
    text = draft.title or draft.topic or draft.content
    words = ids.slug(without(text, secrets_in(text)))
    words = "" if ids.holds_secret(words) else words
    digest = sha256(source.encode("utf-8", "replace")).hexdigest()[:10]
    return "_".join(part for part in (draft.type.value, words, digest) if part)


def _with_ids(draft: Draft, content: str, names: naming.Names, counts: Counter[str]) -> str:
    """Returns Markdown in which `[[Title]]` of another draft names the id of its memory."""
    if "[[" not in content:
        return content

    def replaced(match: re.Match[str]) -> str:
        target, anchor, label = match["target"], match["anchor"] or "", match["shown"]
        if target and label and (is_swapped or label.startswith(naming.VAULT)):
            label, (target, mark, anchor) = target, label.partition("#")
            target, anchor = naming.without_vault(target), mark + anchor
        if target is None or not target.strip():
            return match[0]
        id = _meant(names, target, draft)
        if id is None:
            counts["unresolved"] += not match["embed"]
            return match[0]
        counts["links"] += 1
        bar = "\\|" if in_table else "|"
        return f"{match['embed']}[[{id}{anchor}{bar}{label or target.strip() + anchor}]]"

    lines, is_swapped = content.split("\n"), naming.OF_DENDRON.issubset(draft.extra)
    in_table = False
    for number, line in list(prose_lines(lines)):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        starts = "|" in following and _DELIMITERS.fullmatch(following) is not None
        in_table = bool(line.strip()) and (in_table or starts)
        if "[[" in line:
            lines[number] = _WIKILINK.sub(replaced, line)
    return "\n".join(lines)


_WIKILINK = re.compile(
    r"`[^`\n]*`|(?P<embed>!?)\[\[(?P<target>[^\[\]|#^\n]*?)(?P<anchor>[#^][^\[\]|\n]*?)?"
    r"(?:\\?\|(?P<shown>[^\[\]\n]*))?\]\]"
)
_DELIMITERS = re.compile(r"[ \t>]*\|?(?:[ \t]*+:?-++:?[ \t]*+\|?)++\r?")
"""The second line of a table. In its rows, a bar in a link has a backslash before it."""
_MOST_UNKNOWN = 20


def _one_line(content: str) -> str:
    return " ".join(storable(content).split())
