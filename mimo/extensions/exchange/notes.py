"""Notes in Markdown: Obsidian, basic-memory, OKF, nb, Claude Code's memory, and lists of rules."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from itertools import chain
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from mimo.api import (
    DATES,
    Draft,
    Kind,
    Link,
    NamedTuple,
    Source,
    Unreadable,
    created_in,
    document,
    file_title,
    foreign,
    header_fault,
    ids,
    naming,
    read_document,
    replace,
)

RULES = ("claude.md", "claude.local.md", "agents.md", "gemini.md", ".cursorrules", ".windsurfrules")
"""The names, in lower case, of files with rules for agents."""

MARKDOWN = (".md", ".markdown")
"""The endings, in lower case, of files with notes."""

_INDEX = "index.md"
_CHANGED = ("modified", "updated", "updated_at", "last_modified", "date modified")
_TAG = re.compile(r"(?:(?<=\s)|^)#([^\W\d_][\w/-]{0,60}|\d[\w/-]*[^\W\d_][\w/-]*)")
_MARKDOWN_LINK = re.compile(
    # The text may have brackets with a backslash before them, or in pairs.
    r"(?<![!\\])\[(?:[^\[\]\\\n]|\\.|\[[^\[\]\n]*+\](?!\())*+\]"
    r"\(<?([^()\s<>#]+?\.(?:md|markdown))(?:#[^()\s<>]*)?>?\)"
)
_OWN_START = re.compile(r"^<!-- MIND:CONTEXT\b", re.M)
_OWN_END = re.compile(r"^<!-- MIND:END -->[^\n]*\n?", re.M)


class Note(NamedTuple):
    """A file of Markdown: its header and the text below it."""

    name: str
    header: Mapping[str, Any]
    body: str
    problem: str | None = None

    @property
    def is_own(self) -> bool:
        """Returns whether its header is that of a memory in `.mind/`."""
        return {"id", "type", "created"} <= self.header.keys()

    @property
    def stem(self) -> str:
        """Returns the name of the file without folders and `.md`."""
        return naming.stem_of(self.name)


def read(source: Source, name: str) -> Note:
    """Returns a file as a note; its problem is the reason that it can't be read."""
    try:
        data = source.content(name, 1024 * 1024)
        parts, header = read_document(data, lenient=True)
    except Unreadable as error:
        where = f"line {error.line}: " if error.line else ""
        return Note(name, {}, "", f"{where}{error.reason}")
    except OSError as error:
        return Note(name, {}, "", (error.strerror or str(error)).lower())
    if document.is_empty(data):
        return Note(name, {}, "", "its text is not here: it is a pointer of git-lfs or git-annex")
    body = parts.body.replace("\r\n", "\n")
    marks = _MARK.findall(parts.header or parts.text) if header_fault(data) else ()
    if not all(_is_no(value.strip(" \t\r\"'")) for value in marks):
        # The mark may be on a line that is not read.
        header[_PRIVATE] = True
    return Note(name, header, document.trim(body))


def all_notes(source: Source, *, leave: Sequence[str] = ()) -> Iterator[Note]:
    """Yields the notes of a source, except files of some names."""
    for name in source.named(*MARKDOWN):
        if name.rpartition("/")[2].lower() not in leave:
            yield read(source, name)


def is_private(source: Source, note: Note) -> bool:
    """Returns whether the memory of a note must stay on this machine, by its header or folder."""
    # What its owner marked so, in any tool, must not be committed.
    marked = is_marked(note.header) if note.header else _UNREAD.match(note.body) is not None
    # An index by mind has the titles of the memories in its folder `private/`.
    is_index = note.name.rpartition("/")[2].lower() == _INDEX
    paths = [note.name, *(linked(note.name, note.body) if is_index else ())]
    return marked or any(source.surroundings.covers(path, by_mind=note.is_own) for path in paths)


def key_of(source: Source, name: str) -> str:
    """Returns the key of a file: the name of the vault or folder, and the path in it."""
    return name if source.is_file else f"{source.name}/{name}"


def draft_of(source: Source, note: Note, group: str, prefix: str, **fields: Any) -> Draft:
    """Returns a note with the properties that all kinds of notes have.

    Properties without a field of their own stay in the header, or below the text if they are long.
    """
    key = key_of(source, note.name)
    if note.problem:
        return Draft(key=key, group=group, skipped=note.problem)
    header = dict(note.header)
    dates = [key for key in header if key.lower() in DATES]
    used = {"title", "tags", "tag", *naming.ALIASES, "id", "source", *dates}
    aliases = foreign.tags(naming.aliases(header, note.body))
    created = created_in(header, note.name) or first_moment(header, _CHANGED)
    raw_title = header.get("title")
    is_text = isinstance(raw_title, str | int | float)
    name = " ".join(str(raw_title).split()) if is_text else None
    kind = fields.pop("type", None) or kind_in(header) or Kind.FACT
    if kind.value == header.get("type"):
        used.add("type")
    properties = {name: value for name, value in header.items() if name not in used}
    # Values without a meaning for a field are kept, too.
    odd = [key for key in dates if not foreign.moment(header[key])]
    odd += [key for key in ("tags", "tag") if isinstance(header.get(key), Mapping)]
    for field in ("id", "source", *(() if is_text else ("title",)), *odd):
        if header.get(field):
            properties[f"{prefix}_{field}"] = header[field]
    if aliases:
        properties["aliases"] = list(aliases)
    extra, prose = foreign.divided(properties, prefix)
    title = name or file_title(note.body, note.name) or naming.words_of(note.name)
    return Draft(
        key=key,
        group=group,
        type=kind,
        content=foreign.joined(fields.pop("content", note.body), *prose),
        created=created,
        title=title,
        tags=foreign.tags(header.get("tags"), header.get("tag"), list(fields.pop("more_tags", ()))),
        names=(title, *aliases, *fields.pop("names", ())),
        path=note.name,
        links=(*fields.pop("links", ()), *file_links(source, note)),
        extra=extra | fields.pop("more", {}),
        private=fields.pop("private", False) or is_private(source, note),
        **fields,
    )


def first_moment(header: Mapping[str, Any], keys: Sequence[str]) -> datetime | None:
    """Returns the first time under one of the keys."""
    times = (
        foreign.moment(header[key])
        for key in keys
        if isinstance(header.get(key), str | int | float)
    )
    return next(filter(None, times), None)


def kind_in(header: Mapping[str, Any]) -> Kind | None:
    """Returns the type that a header names in mind's words."""
    with suppress(ValueError):
        return Kind(str(header.get("type", "")).strip().lower())
    return None


def inline_tags(body: str) -> list[str]:
    """Returns the `#tags` in a text, outside code and headings."""
    lines = (re.sub(r"`[^`]*`", "", line) for _, line in document.prose_lines(body.split("\n")))
    return [tag for line in lines if "#" in line for tag in _TAG.findall(line)]


def file_links(source: Source, note: Note) -> tuple[Link, ...]:
    """Returns the links `[text](path.md)` of a note to other files of the source."""
    paths = dict.fromkeys(path for path in linked(note.name, note.body) if path in source.files)
    return tuple(Link(to=key_of(source, path)) for path in paths)


def linked(name: str, text: str) -> Iterator[str]:
    """Yields the paths in the source to which a text in the file `name` has links."""
    folder = posixpath.dirname(name)
    for _, line in document.prose_lines(text.split("\n")):
        for match in _MARKDOWN_LINK.finditer(line) if "](" in line else ():
            target = unquote(match[1])
            at = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
            yield posixpath.normpath(at)


# Vaults.


def obsidian(source: Source) -> Iterator[Draft]:
    """Yields the notes of an Obsidian vault."""
    for note in all_notes(source):
        links = [
            Link(to=match[1].strip(), type=ids.slug(name) or "relates_to")
            for name, value in note.header.items()
            for item in (value if isinstance(value, list) else [value])
            if isinstance(item, str) and (match := _PROPERTY_LINK.fullmatch(item.strip()))
        ]
        more = inline_tags(note.body)
        yield draft_of(source, note, "notes", "obsidian", links=links, more_tags=more)


_PROPERTY_LINK = re.compile(r"\[\[([^\[\]|#^]++)[^\[\]]*+\]\]")


_RELATION = re.compile(
    r'\s*[-*] (?:"([^"\n]+)"\s*|([^\[\]"\n]*))\[\[([^\[\]|#^\n]++)[^\[\]\n]*+\]\]'
)
_OBSERVATION = re.compile(r"\s*[-*] \[(?![ xX-]\])[^\[\]()\n]+\] \S")


def basic_memory(source: Source) -> Iterator[Draft]:
    """Yields the notes of basic-memory. Observations stay in the text; relations become links."""
    for note in all_notes(source):
        links, more = [], []
        for _, line in document.prose_lines(note.body.split("\n")):
            if _OBSERVATION.match(line):
                more += _TAG.findall(line)
            elif match := _RELATION.match(line):
                words = (match[1] or match[2] or "").strip()
                links.append(link_of(words, match[3].strip()))
        permalink = note.header.get("permalink")
        names = (permalink,) if isinstance(permalink, str) else ()
        yield draft_of(
            source, note, "notes", "basic_memory", links=links, names=names, more_tags=more
        )


def link_of(words: str, to: str, confidence: float | None = None) -> Link:
    """Returns a link whose relation is in the words of the other tool."""
    type = ids.slug(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words)) or "relates_to"
    return Link(
        to=to, type=type, given=words if words and words != type else None, confidence=confidence
    )


_RESERVED = (_INDEX, "log.md")
_OF_OKF = frozenset(("generated", "verified", "sources", "stale_after", "resource"))


def is_bundle(notes: Sequence[Note]) -> bool:
    """Returns whether notes are surely concepts of OKF: all have a type, and a key of OKF's."""
    concepts = [note for note in notes if note.name.rpartition("/")[2] not in _RESERVED]
    return bool(concepts) and all(
        isinstance(note.header.get("type"), str) and note.header.keys() & _OF_OKF
        for note in concepts
    )


def okf(source: Source) -> Iterator[Draft]:
    """Yields the concepts of a bundle in the Open Knowledge Format."""
    for note in all_notes(source, leave=_RESERVED):
        header = dict(note.header)
        generated = header.get("generated")
        at = generated.get("at") if isinstance(generated, Mapping) else header.get("timestamp")
        description = header.pop("description", None)
        status = header.pop("status", None)
        if not isinstance(description, str):
            description = None
        problem = note.problem
        if problem is None and not isinstance(header.get("type"), str):
            problem = "its header has no `type`, which OKF requires"
        draft = draft_of(
            source,
            note._replace(header=header, problem=problem),
            "concepts",
            "okf",
            content=foreign.joined(description, note.body),
            status=status if isinstance(status, str) else None,
        )
        yield draft if draft.created else replace(draft, created=foreign.moment(at))


_TODO = re.compile(r"# \[([ xX])\] (.*)")


def nb(source: Source) -> Iterator[Draft]:
    """Yields the notes, bookmarks and to-dos of an nb notebook, or of all notebooks."""
    for note in all_notes(source):
        head, _, tail = note.body.partition("\n")
        more = inline_tags(note.body)
        if todo := _TODO.match(head):
            draft = draft_of(
                source,
                note._replace(body=f"# {todo[2]}\n{tail}".rstrip()),
                "todos",
                "nb",
                type=Kind.PLAN,
                status="open" if todo[1] == " " else "done",
                more_tags=more,
            )
        else:
            group = "bookmarks" if note.name.endswith(".bookmark.md") else "notes"
            draft = draft_of(source, note, group, "nb", more_tags=more)
        yield draft
    for name in source.files:
        if not name.lower().endswith(MARKDOWN):
            reason = "it is not Markdown, which alone is read"
            yield Draft(key=key_of(source, name), group="files", skipped=reason)


# Rules and notes for agents.

_MORE_FILES = re.compile(r"[\d,]+ more files in this folder")
"""The last line of an index by mind, if not all files have a line."""
_CLAUDE_KINDS = {"feedback": Kind.INSIGHT}


def claude_memory(source: Source) -> Iterator[Draft]:
    """Yields the topics of Claude Code's automatic memory, and rules that only its index has."""
    if source.name == "memory":
        # The folder above is named for the project.
        source = replace(source, name=source.path.resolve().parent.name)
    unread = dict.fromkeys((name for name, _ in source.skipped), True)
    topics: set[str] = set()
    for note in all_notes(source, leave=("memory.md",)):
        if note.problem:
            unread[note.name] = _may_be_private(source, note.name)
        else:
            topics.add(note.name)
        header = dict(note.header)
        metadata = header.pop("metadata", None)
        nested = dict(metadata) if isinstance(metadata, Mapping) else {}
        kind = nested.pop("type", None) or header.pop("type", None)
        slug, description = header.pop("name", None), header.pop("description", None)
        if not isinstance(description, str):
            description = None
        more = {"claude_type": kind} if isinstance(kind, str) else {}
        header |= {key: value for key, value in nested.items() if key not in header}
        header.setdefault("title", slug)
        yield draft_of(
            source,
            note._replace(header=header),
            "topics",
            "claude",
            type=_CLAUDE_KINDS.get(str(kind), Kind.FACT),
            content=foreign.joined(None if description == note.body else description, note.body),
            names=(slug,) if isinstance(slug, str) else (),
            private=is_marked(nested),
            more=more,
        )
    if "MEMORY.md" in source.files:
        yield from _rules(source, "MEMORY.md", topics, unread)


def _may_be_private(source: Source, name: str) -> bool:
    """Returns whether a topic that can't be read may have been marked as private."""
    try:
        data = source.content(name, 1024 * 1024)
    except (Unreadable, OSError):
        return True
    is_named = b"private" in data.replace(b"\0", b"").lower()
    return is_named or source.surroundings.covers(name, by_mind=False)


def rules(source: Source) -> Iterator[Draft]:
    """Yields each item of the lists in files such as CLAUDE.md, under its headings."""
    names = [name for name in source.files if name.rpartition("/")[2].lower() in RULES]
    for name in names or (list(source.files) if source.is_file else []):
        yield from _rules(source, name)


def _rules(
    source: Source,
    name: str,
    topics: Container[str] = (),
    unread: Mapping[str, bool] = MappingProxyType({}),
) -> Iterator[Draft]:
    """Yields the items of a file, except entries that link only to `topics`.

    `unread` are the topics that can't be read: an entry is all that is left of one. The value is
    whether the topic may be private.
    """
    note = read(source, name)
    key = key_of(source, name)
    if note.problem:
        yield Draft(key=key, group="rules", skipped=note.problem)
        return
    created = created_in(note.header)
    private = is_private(source, note)
    paragraphs = 0
    for headings, item in _items(_without_notes(note.body)):
        if item is None:
            paragraphs += 1
            continue
        paths = list(linked(name, item))
        is_entry = any(path in topics for path in paths) or _MORE_FILES.fullmatch(item)
        if is_entry and not any(path in unread for path in paths):
            continue
        words = " > ".join([*headings, " ".join(item.split())])
        digest = sha256(words.encode("utf-8", "replace")).hexdigest()[:12]
        yield Draft(
            key=f"{key}#{digest}",
            group="rules",
            content=item,
            created=created,
            topic=headings[-1] if headings else None,
            private=private or any(unread.get(path) for path in paths),
            extra={"headings": list(headings)} if len(headings) > 1 else {},
        )
    if paragraphs:
        reason = "it is not an item of a list; agents read it in its file"
        for number in range(paragraphs):
            yield Draft(key=f"{key}#{number + 1}", group="paragraphs", skipped=reason)


def _without_notes(body: str) -> str:
    """Returns the text of a file without the notes that mind keeps in it."""
    parts, end = [], 0
    while (start := _OWN_START.search(body, end)) and (stop := _OWN_END.search(body, start.end())):
        parts.append(body[end : start.start()])
        end = stop.end()
    return "".join(parts) + body[end:]


_BULLET = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)")
_RULE = re.compile(r"([-*_])(?:[ \t]*+\1){2,}+[ \t]*+")
_BELOW_ALL = 7
"""A level that ends no part."""


def _items(body: str) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Yields the items of lists with the headings above them, and None for another paragraph."""
    lines = body.split("\n")
    prose = dict(document.prose_lines(lines))
    marks = _marks(lines, prose)
    headings: Mapping[int, str] = {}
    item: list[str] | None = None
    in_paragraph = in_code = False

    def path() -> tuple[str, ...]:
        # The title of the file is above all of them.
        levels = [level for level in sorted(headings) if level > 1 or len(headings) == 1]
        return tuple(headings[level] for level in levels)

    for number, line in enumerate(lines):
        is_prose = number in prose
        mark = marks.get(number)
        bullet = _BULLET.match(line) if is_prose and not mark else None
        is_indented = not line.strip() or line[0] in " \t"
        is_inner = item is not None and (is_indented or (in_code and not is_prose))
        in_code = is_inner and not is_prose
        if (mark or bullet or not is_inner) and item is not None:
            yield path(), _dedented(item)
            item = None
        if mark:
            level, words = mark
            headings = {depth: text for depth, text in headings.items() if depth < level}
            headings |= {level: words} if words else {}
            in_paragraph = False
        elif bullet:
            item, in_paragraph = [line[bullet.end() :]], False
        elif is_inner and item is not None:
            item.append(line)
        elif not line.strip():
            in_paragraph = False
        elif is_prose and not in_paragraph:
            in_paragraph = True
            yield path(), None
    if item is not None:
        yield path(), _dedented(item)


def _marks(lines: Sequence[str], prose: Mapping[int, str]) -> Mapping[int, tuple[int, str]]:
    """Returns the headings by their lines. A rule, or the line below a heading, has no text."""
    marks: dict[int, tuple[int, str]] = {}
    for number, line in prose.items():
        if _RULE.fullmatch(line):
            marks[number] = _BELOW_ALL, ""
        elif line[:1] not in (" ", "\t") and not _BULLET.match(line):
            level, words = document.heading(lines, number, line)
            if level:
                marks[number] = level, words
            if level and not line.startswith("#"):
                marks[number + 1] = _BELOW_ALL, ""
    return marks


def _dedented(item: Sequence[str]) -> str:
    """Returns the text of an item, whose later lines lose their common indent."""
    from textwrap import dedent

    return document.trim("\n".join([item[0], dedent("\n".join(item[1:]))]))


# Marks of privacy.

_PRIVATE, _METADATA = "private", "metadata"
_UNREAD = re.compile(
    r"(?:---|\+\+\+)[ \t]*\n(?:(?!---|\+\+\+).*\n)*?[ \t]*[\"']?private[\"']?[ \t]*[:=]", re.I
)
"""The beginning of a text whose header is not one for YAML, such as `private:true`."""
_MARK = re.compile(r"^[ \t]*[\"']?private[\"']?[ \t]*[:=](.*)$", re.I | re.M)
"""The line of a header."""
_NO = frozenset(("", "false", "no", "off", "0"))


def is_marked(values: Mapping[str, Any]) -> bool:
    """Returns whether a header or an object of JSON marks a memory as private.

    Only a clear no does not: false, no, off, 0 or nothing. The case of the key has no meaning. The
    mark may also be in its `metadata`.
    """
    inner = (value for value in _under(_METADATA, values) if isinstance(value, Mapping))
    marks = chain.from_iterable(_under(_PRIVATE, part) for part in (values, *inner))
    return not all(map(_is_no, marks))


def _under(name: str, values: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the values under a name, whose case has no meaning."""
    return (value for key, value in values.items() if str(key).strip().casefold() == name)


def _is_no(value: object) -> bool:
    return value.strip().casefold() in _NO if isinstance(value, str) else not value
