"""Three-way merging of a memory's file: its header, its text, its sections and their versions.

Where both sides changed the same thing, one version becomes the current one and the other is kept
beside it as a competing version, until the user resolves it. Lists such as tags and links are
united (`united`); of two scalars the more careful one is current (`order_of`); texts are merged
line by line (`merged_lines`).

A version names its field `the text`, `the section Reasoning`, or by its key in the header, and
has the value as the header writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import product, takewhile
from typing import Any

from mimo.errors import Command, Hint, Invalid
from mimo.frozen import NamedTuple, frozen, replace
from mimo.memory.codec import front_matter
from mimo.memory.codec.document import (
    MAX_SOURCE_BYTES,
    Document,
    Layout,
    Unreadable,
    is_source,
    layout_of,
    render_body,
    trim,
)
from mimo.memory.codec.file import KEYS, Parsed, is_owned, parse, read_document, understand, written
from mimo.memory.lines import UNDECIDED, changes_of, merged_lines, one_sided
from mimo.memory.model import Memory, Section, Version

TEXT = "the text"
"""The name of the content in a version."""
GONE = "null"
"""The text of a version in which the field was removed."""

_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_NONE: frozenset[str] = frozenset()
_BEFORE_COMMENT = re.compile(r"(?:^|(?<=[ \t]))(?=#)")
_DEFAULTS: dict[str, Any] = {"tags": (), "links": (), "importance": 0.5}
_OUTCOMES = ("FAILED", "PARTIAL", "SUCCESS")
_MOST_PAIRS = 16
_MOST_HASHES = 50
"""Each `#` in a changed key is tried as the start of a comment, by reading the key without it."""

Sides = tuple[Document, Document, Document]
"""The base, ours and theirs."""
Rivals = Mapping[str, frozenset[str]]
"""The competing versions of one side, by the name of the field."""


@frozen
class Merged:
    """A merged file, and the conflicts in it."""

    data: bytes
    competing: tuple[str, ...] = ()
    """The fields that both sides changed differently."""
    dropped: bool = False
    """True if one of two copies of an ingested file was dropped: it must be ingested again."""


class NoMerge(Exception):
    """A file is written in a way that only a person, or a merge of its text, can merge."""


def merge(base: bytes, ours: bytes, theirs: bytes, *, path: str) -> Merged | None:
    """Returns the merged file, which is always readable; None if only its text can be merged.

    `base` is empty if the sides have no ancestor in common.
    """
    try:
        result = one_sided(base, ours, theirs)
        if is_source(path):
            # Chunks can't be merged as text: the newer copy of an ingested file is kept.
            both = result is UNDECIDED
            return Merged(data=max(ours, theirs, key=_age) if both else result, dropped=both)
        if result is not UNDECIDED:
            read_document(result)
            return Merged(data=result)
        return _memory((_ancestor(base), read_document(ours)[0], read_document(theirs)[0]), path)
    except (Unreadable, NoMerge, Invalid):
        return None


def _age(data: bytes) -> tuple[str, bytes]:
    _, header = read_document(data, MAX_SOURCE_BYTES)
    return (str(header.get("created", "")), data)


def _ancestor(base: bytes) -> Document:
    """Returns the ancestor; an empty document if it is missing, or in conflict itself."""
    try:
        return read_document(base)[0]
    except Unreadable:
        return Document(text="", newline="\n")


# A memory's file: header and body.


def _memory(documents: Sides, path: str) -> Merged | None:
    headers = (read_document(document.text.encode())[1] for document in documents[1:])
    owned = all(is_owned(understand(header)[0], path) for header in headers)
    layouts = [layout_of(doc.body, newline=doc.newline, sections=owned) for doc in documents]
    rivals = [_rivals(layout.versions) for layout in layouts]
    of_header = [{n: v for n, v in side.items() if not is_text(n)} for side in rivals]
    header, competing = _merged_header(documents, of_header)

    def merged(name: str, texts: Sequence[str]) -> str:
        """Returns the current text, and adds the versions that compete with it."""
        sides = (
            _Versions(value=text, competing=side.get(name, frozenset()))
            for text, side in zip(texts, rivals, strict=True)
        )
        result = _resolve_text(*sides)
        # The edges of a hunk may leave nothing but blank lines.
        value = trim(result.value)
        if variants := {trim(text) for text in result.competing} - {value}:
            competing[name] = frozenset(variants)
        return value

    content = merged(TEXT, [layout.content.text for layout in layouts])
    sections = {}
    for section in Section if owned else ():
        texts = [layout.texts.get(section, "") for layout in layouts]
        if text := merged(section_name(section), texts):
            sections[section] = text
    versions = tuple(
        Version(field=name, text=text)
        for name in sorted(competing, key=lambda name: (is_text(name), name))
        for text in sorted(competing[name])
    )
    body = _Body(content, sections, versions)
    text = _fenced(documents, header) + _merged_body(layouts, body, owned=owned)
    newline = one_sided(*(document.newline for document in documents))
    bom = bool(one_sided(*(document.bom for document in documents)))
    text = "\ufeff" * bom + text.replace("\n", "\n" if newline is UNDECIDED else newline)
    # A conflict is better than a wrong merge.
    parsed = parse(text.encode(), path=path, modified=_ANY_TIME)
    if not isinstance(parsed, Parsed) or parsed.owned != owned:
        return None
    memory = parsed.memory
    if (memory.content, memory.sections, memory.competing) != body:
        return None
    fields = tuple(dict.fromkeys(version.field for version in versions))
    return Merged(data=text.encode(), competing=fields)


def _rivals(versions: Sequence[Version]) -> dict[str, frozenset[str]]:
    rivals: dict[str, frozenset[str]] = {}
    for version in versions:
        rivals[version.field] = rivals.get(version.field, frozenset()) | {version.text}
    return rivals


class _Body(NamedTuple):
    """The parts of a merged body."""

    content: str
    sections: Mapping[Section, str]
    versions: tuple[Version, ...]


def _merged_body(layouts: Sequence[Layout], body: _Body, *, owned: bool) -> str:
    """Returns the body as a merge of its lines, or one side, has it, if that has the same parts.

    Blank lines and the order of sections are then preserved.
    """
    merged = merged_lines(*("\n".join(layout.lines) for layout in layouts))
    sides = {"\n".join(layout.lines) for layout in layouts[1:] if _parts(layout) == body}
    for texts in (merged, sides):
        for text in texts if len(texts) == 1 else ():
            if _parts(layout_of(text, newline="\n", sections=owned)) == body:
                return text
    return render_body(*body, escaped=owned)


def _parts(layout: Layout) -> tuple[str, Mapping[Section, str], tuple[Version, ...]]:
    """Returns the parts as in `_Body`, with each copy of a competing version."""
    versions = tuple(Version(field=name, text=part.text) for name, part in layout.competing)
    return layout.content.text, layout.texts, versions


def _fenced(documents: Sides, header: str) -> str:
    """Returns a header within its fences, as the side with the same header has them."""
    for document in sorted(documents[1:], key=lambda document: document.text):
        if document.syntax and document.header.replace("\r\n", "\n") == header:
            return document.text[: document.body_start].replace("\r\n", "\n")
    fence = "+++" if any(document.syntax == "toml" for document in documents[1:]) else "---"
    return f"{fence}\n{header}{fence}\n" if header else ""


# The header, key by key.


@frozen
class _Keys:
    """The lines of each key of a header, with the comments before it, and its data."""

    raw: Mapping[str, str]
    data: Mapping[str, Any]
    tail: str = ""
    """Comments after the last key."""


def _merged_header(
    documents: Sides, rivals: Sequence[Rivals]
) -> tuple[str, dict[str, frozenset[str]]]:
    """Returns the merged header, and the competing versions of its keys.

    Raises `Unreadable`, and `NoMerge` if both sides changed it and it is not YAML with each key on
    lines of its own.
    """
    base, ours, theirs = (document.header.replace("\r\n", "\n") for document in documents)
    if not any(rivals) and (plain := one_sided(base, ours, theirs)) is not UNDECIDED:
        return plain, {}
    if any(document.syntax == "toml" for document in documents[1:]):
        texts = merged_lines(base, ours, theirs)
        if len(texts) > 1 or any(rivals):
            raise NoMerge
        return texts[0], {}
    return _by_key((_keys_of(base), _keys_of(ours), _keys_of(theirs)), rivals)


def _keys_of(text: str) -> _Keys:
    data = front_matter.load_flat(text)
    if data is not None:
        lines = re.findall(r"\S.*\n(?: .*\n)*", text)
        return _Keys(raw=dict(zip(data, lines, strict=True)), data=data)
    try:
        header = front_matter.read(text)
    except front_matter.NotAMapping:
        raise NoMerge from None
    if header.flow or any(entry.column for entry in header.entries):
        raise NoMerge
    raw, start = {}, 0
    for entry in header.entries:
        end = max(entry.value.end, text.index(":", entry.end) + 1)
        end = text.find("\n", len(text[:end].rstrip())) + 1 or len(text)
        raw[entry.key], start = text[start:end], end
    return _Keys(raw=raw, data=header.data, tail=text[start:])


def _by_key(
    sides: tuple[_Keys, _Keys, _Keys], rivals: Sequence[Rivals]
) -> tuple[str, dict[str, frozenset[str]]]:
    competing: dict[str, frozenset[str]] = {}
    raw: dict[str, str] = {}
    names = {_version_name(key): key for key in _order(sides)}
    # A version can outlive the key that it competes with.
    alone = {name for side in rivals for name in side} - names.keys()
    for name, key in {**names, **{name: name for name in sorted(alone)}}.items():
        text, versions = _merged_key(key, sides, [side.get(name, frozenset()) for side in rivals])
        if text is not None:
            raw[key] = text if text.endswith("\n") else f"{text}\n"
        if versions:
            competing[name] = versions
    tail = one_sided(*(side.tail for side in sides))
    if tail is UNDECIDED:
        tail = "".join(united(*(side.tail.splitlines(keepends=True) for side in sides)))
    return "".join(raw.values()) + tail, competing


def _merged_key(
    key: str, sides: tuple[_Keys, _Keys, _Keys], rivals: Sequence[frozenset[str]]
) -> tuple[str | None, frozenset[str]]:
    """Returns the lines of one key (None if it was removed) and its competing versions."""
    if not any(rivals):
        raw = one_sided(*(side.raw.get(key) for side in sides))
        if raw is not UNDECIDED:
            return raw, _NONE
        lists = [side.data.get(key) for side in sides]
        if all(isinstance(side, list | None) for side in lists[1:]) and any(lists[1:]):
            items = united(*(side if isinstance(side, list) else [] for side in lists))
            return _commented(key, front_matter.entry(key, items) if items else "", sides), _NONE
    versions = [
        _Versions(value=_value_text(side.data, key), competing=rival)
        for side, rival in zip(sides, rivals, strict=True)
    ]
    merged = _resolve(versions[0], versions[1], versions[2], partial(order_of, key))
    return _raw(key, merged.value, sides), merged.competing


def _raw(key: str, value: str, sides: tuple[_Keys, _Keys, _Keys]) -> str | None:
    """Returns the lines of a key with a value, as one of the sides wrote them if possible."""
    as_written = [
        "".join(_split(side.raw[key])[1])
        for side in sides[1:]
        if _value_text(side.data, key) == value and key in side.raw
    ]
    line = "" if value == GONE else f"{front_matter.scalar(key)}: {value}"
    return _commented(key, max(as_written, default=line), sides)


def _commented(key: str, text: str, sides: tuple[_Keys, _Keys, _Keys]) -> str | None:
    """Returns the lines of a key below the comments of both sides; None if nothing is left.

    A comment within the lines of a key is put above them if these are replaced.
    """
    text = text if text.endswith("\n") or not text else f"{text}\n"
    above = [_split(side.raw.get(key, ""))[0] for side in sides[1:]]
    comments = [_comments(side.raw.get(key, "")) for side in sides]
    remarks, within = united(*comments), _comments(text)
    if above[0] == above[1] and set(remarks) <= {*within, *_comments("".join(above[0]))}:
        return "".join(above[0]) + text or None
    return "".join(f"{comment}\n" for comment in remarks if comment not in within) + text or None


def _split(raw: str) -> tuple[list[str], list[str]]:
    """Returns the blank lines and comments above a key, and the lines of the key."""
    lines = raw.splitlines(keepends=True)
    above = list(takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), lines))
    return above, lines[len(above) :]


def _comments(raw: str) -> list[str]:
    """Returns the comments in the lines of a key: the parts that can be omitted from `#` on.

    Raises `NoMerge` if there are too many to try.
    """
    if "#" not in raw:
        return []
    if raw.count("#") > _MOST_HASHES:
        raise NoMerge
    lines, comments = raw.splitlines(), []
    for number, line in enumerate(lines):
        for start in (match.end() for match in _BEFORE_COMMENT.finditer(line)):
            shorter = [*lines[:number], line[:start], *lines[number + 1 :]]
            if _data("\n".join(shorter)) == _data("\n".join(lines)):
                comments.append(line[start:].rstrip())
                lines = shorter
                break
    return comments


def _data(text: str) -> object:
    try:
        return front_matter.read(text).data
    except (front_matter.NotAMapping, Unreadable):
        return None


def _order(sides: tuple[_Keys, _Keys, _Keys]) -> list[str]:
    """Returns all keys: existing ones in their order, new ones of ours at their usual place."""
    order = list(sides[0].raw)
    new = {key for side in sides[1:] for key in side.raw}.difference(order)
    new_keys = [key for key in KEYS if key in new]
    for key in new_keys:
        earlier = KEYS[: KEYS.index(key)]
        places = [place for place, name in enumerate(order, 1) if name in earlier]
        order.insert(max(places, default=0), key)
    return [*order, *sorted(new.difference(new_keys))]


# Values: lists are united, of scalars and texts one version is current.


def united(base: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    """Returns a list of tags or links with the additions and without the removals of both sides."""
    ancestor, left, right = (
        {json.dumps(item, sort_keys=True, ensure_ascii=False, default=str): item for item in side}
        for side in (base, ours, theirs)
    )
    common = [item for name, item in ancestor.items() if name in left and name in right]
    added = {name: item for name, item in {**left, **right}.items() if name not in ancestor}
    return [*common, *(added[name] for name in sorted(added))]


def order_of(key: str, text: str) -> tuple[bool, float, str]:
    """Returns the sort key of a version of a header key: the careful one first, a removal last."""
    care = 0.0
    if key == "outcome":
        care = _OUTCOMES.index(text) if text in _OUTCOMES else len(_OUTCOMES)
    elif key in ("confidence", "importance"):
        try:
            care = float(text.strip('"')) * (1 if key == "confidence" else -1)
        except ValueError:
            care = 2.0
    elif key == "protected":
        care = float(text != "true")
    return (text == GONE, care, text)


@frozen
class _Versions:
    """A field on one side: its current value, and the versions that compete with it."""

    value: str
    competing: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        """Returns every version."""
        return self.competing | {self.value}


def _resolve(
    base: _Versions, ours: _Versions, theirs: _Versions, order: Callable[[str], Any]
) -> _Versions:
    """Returns the remaining versions of a field.

    The current one is that of the only side that changed it, or else the first by `order`.
    """
    if theirs == base or ours == theirs:
        return ours
    if ours == base:
        return theirs
    both, either = ours.all & theirs.all, ours.all | theirs.all
    survivors = both | (either - base.all) or either
    chosen = one_sided(base.value, ours.value, theirs.value)
    value = chosen if chosen in survivors else min(survivors, key=order)
    return _Versions(value=value, competing=survivors - {value})


def _resolve_text(base: _Versions, ours: _Versions, theirs: _Versions) -> _Versions:
    """Returns the remaining versions of a text; changes at different places are combined."""
    pairs = len(ours.all) * len(theirs.all)
    unchanged = theirs == base or ours in (base, theirs)
    if unchanged or base.competing or pairs > _MOST_PAIRS:
        return _resolve(base, ours, theirs, _by_length)
    parents: dict[str, frozenset[tuple[str, str]]] = {}
    for left, right in product(ours.all, theirs.all):
        texts = merged_lines(base.value, left, right)
        sides = {("ours", left), ("theirs", right)}
        for text, side in zip(
            texts, [sides] if len(texts) == 1 else [{s} for s in sorted(sides)], strict=True
        ):
            parents[text] = parents.get(text, frozenset()) | side
    survivors = _not_contained(base.value, parents)
    value = min(survivors, key=_by_length)
    return _Versions(value=value, competing=frozenset(survivors - {value}))


def _not_contained(base: str, parents: Mapping[str, frozenset[tuple[str, str]]]) -> set[str]:
    """Returns the texts without those whose changes are all in another text of the same parents.

    If the branches A and B conflict, and C with B only, then C with A has all changes of C alone.
    """
    if len(parents) < 3:
        return set(parents)
    changes = {text: changes_of(base, text) for text in parents}
    return {
        text
        for text, of_text in parents.items()
        if not any(
            of_text <= of_rival and changes[text] < changes[rival]
            for rival, of_rival in parents.items()
        )
    }


def _by_length(text: str) -> tuple[int, str]:
    return (-len(text), text)


# Fields of a memory by the names that versions have for them.


def section_name(section: Section) -> str:
    """Returns the name of a section in a version."""
    return f"the section {section.value}"


def is_text(name: str) -> bool:
    """Returns whether versions of that name are prose, of which several can be kept."""
    return name == TEXT or _section(name) is not None


def current_version(memory: Memory, name: str) -> str:
    """Returns the current value of a field, written as in a version."""
    if name == TEXT:
        return memory.content
    if section := _section(name):
        return memory.sections.get(section, "")
    key = next(iter(_header(name, GONE)))
    return _value_text({**memory.extra, **written(memory, memory.links)}, key)


def chosen(memory: Memory, name: str, text: str) -> Memory:
    """Returns a memory whose field has the value of a version and no competing versions.

    Raises `Invalid` if a header can't hold the value.
    """
    versions = tuple(version for version in memory.competing if version.field != name)
    memory = replace(memory, competing=versions)
    if name == TEXT:
        return replace(memory, content=text)
    if section := _section(name):
        return replace(memory, sections={**memory.sections, section: text})
    header = _header(name, text)
    key = next(iter(header))
    understood, extra = understand(header)
    fields = {field: value for field, value in memory.extra.items() if field != key}
    if text != GONE and key in extra:
        fields |= extra
    if key not in KEYS:
        return replace(memory, extra=fields)
    changes: dict[str, Any] = {key: understood.get(key, _DEFAULTS.get(key))}
    return replace(memory, extra=fields, **changes)


def _section(name: str) -> Section | None:
    return next((section for section in Section if section_name(section) == name), None)


def _version_name(key: str) -> str:
    """Returns the name of a header key in a version."""
    plain = key.replace("_", "").replace("-", "").replace(".", "")
    return key if plain.isalnum() else front_matter.scalar(key)


def _value_text(values: Mapping[str, Any], key: str) -> str:
    """Returns the value of a header key on one line, as in a version."""
    return front_matter.flow(values[key]) if key in values else GONE


def _header(name: str, text: str) -> dict[str, Any]:
    """Returns the one key and value of a header with this line."""
    try:
        _, header = read_document(f"---\n{name}: {text or GONE}\n---\nx\n".encode())
    except Unreadable:
        header = {}
    if len(header) != 1:
        raise Invalid(
            f"`{text}` is not a value of `{name}`", hint=Hint("resolve it with ", Command("edit"))
        )
    return header
