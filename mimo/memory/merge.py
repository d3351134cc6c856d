"""A field of a memory by the name that a version of it goes by, read and set as text.

A merge that can't decide names the field `the text`, `the section Reasoning`, or by its key in the
header, whose value it writes as the header does.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.memory.codec import fields, front_matter
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
from mimo.memory.codec.file import Parsed, is_owned, parse, read_document
from mimo.memory.model import Memory, Section, Version

# Three-way merging of texts, line by line.


_MANY = 4_000
"""Lines beyond which popular ones are not compared: the time would grow with their square."""


class Hunk(NamedTuple):
    """A stretch of a merge: what each side makes of it, alike where they agree."""

    ours: Sequence[str]
    theirs: Sequence[str]


def merged_lines(base: str, ours: str, theirs: str) -> tuple[str, ...]:
    """Returns the text that holds the changes of both sides, or two where they contradict.

    Each of the two has all the changes that don't contradict.
    """
    if ours == theirs or theirs == base:
        return (ours,)
    if ours == base:
        return (theirs,)
    hunks = list(_hunks(base.split("\n"), ours.split("\n"), theirs.split("\n")))
    first = "\n".join(line for hunk in hunks for line in hunk.ours)
    second = "\n".join(line for hunk in hunks for line in hunk.theirs)
    return (first,) if first == second else (first, second)


def _hunks(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[Hunk]:
    at_base = at_ours = at_theirs = 0
    for start, left, right, length in _common(base, ours, theirs):
        yield _decided(base[at_base:start], ours[at_ours:left], theirs[at_theirs:right])
        same = base[start : start + length]
        yield Hunk(same, same)
        at_base, at_ours, at_theirs = start + length, left + length, right + length


def _decided(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Hunk:
    """Returns a stretch with what one side alone changed taken for both."""
    if theirs == base:
        return Hunk(ours, ours)
    if ours == base:
        return Hunk(theirs, theirs)
    return Hunk(ours, theirs)


def _common(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> list[tuple[int, int, int, int]]:
    """Returns (in base, in ours, in theirs, length) of what all three share, and their ends."""
    left, right = _matches(base, ours), _matches(base, theirs)
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        (a, b, n), (c, d, m) = left[i], right[j]
        start, end = max(a, c), min(a + n, c + m)
        if start < end:
            found.append((start, b + start - a, d + start - c, end - start))
        if a + n < c + m:
            i += 1
        else:
            j += 1
    return [*found, (len(base), len(ours), len(theirs), 0)]


def _matches(base: Sequence[str], side: Sequence[str]) -> list[tuple[int, int, int]]:
    from difflib import SequenceMatcher

    many = max(len(base), len(side)) > _MANY
    blocks = SequenceMatcher(None, base, side, autojunk=many).get_matching_blocks()
    return [(a, b, size) for a, b, size in blocks if size]


# Several versions of one field, merged as sets.


GONE = "null"
"""How a version says that the field was removed."""

_MOST_PAIRS = 16
_OUTCOMES = ("FAILED", "PARTIAL", "SUCCESS")


@frozen
class Standing:
    """A field on one side: what is in force, and what competes with it."""

    value: str
    competing: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        """Returns every version."""
        return self.competing | {self.value}


def settle(
    base: Standing, ours: Standing, theirs: Standing, order: Callable[[str], Any]
) -> Standing:
    """Returns the versions that are left of a field, and which of them is in force.

    That is the one that a side chose against nobody, or else the first by `order`.
    """
    if theirs == base or ours == theirs:
        return ours
    if ours == base:
        return theirs
    both, either = ours.all & theirs.all, ours.all | theirs.all
    kept = both | (either - base.all) or either
    return Standing(
        value=(value := _in_force(base.value, ours.value, theirs.value, kept, order)),
        competing=kept - {value},
    )


def settle_text(base: Standing, ours: Standing, theirs: Standing) -> Standing:
    """Returns the versions that are left of a text; changes at different places are joined."""
    pairs = len(ours.all) * len(theirs.all)
    one_sided = theirs == base or ours in (base, theirs)
    if one_sided or base.competing or pairs > _MOST_PAIRS:
        return settle(base, ours, theirs, _longest_first)
    made = {
        text
        for left in ours.all
        for right in theirs.all
        for text in merged_lines(base.value, left, right)
    }
    value = min(made, key=_longest_first)
    return Standing(value=value, competing=frozenset(made - {value}))


def _in_force(
    base: str, ours: str, theirs: str, kept: Collection[str], order: Callable[[str], Any]
) -> str:
    chosen = ours if theirs in (base, ours) else theirs if ours == base else None
    return chosen if chosen in kept and chosen is not None else min(kept, key=order)


def order_of(key: str) -> Callable[[str], Any]:
    """Returns what sorts the versions of a header key: the careful one first, none at all last."""

    def place(text: str) -> tuple[bool, float, str]:
        return (text == GONE, _care(key, text), text)

    return place


def _care(key: str, text: str) -> float:
    if key == "outcome":
        return _OUTCOMES.index(text) if text in _OUTCOMES else len(_OUTCOMES)
    if key in ("confidence", "importance"):
        try:
            number = float(text.strip('"'))
        except ValueError:
            return 2.0
        return number if key == "confidence" else -number
    return 0.0 if key != "protected" or text == "true" else 1.0


def shown(values: Mapping[str, Any], key: str) -> str:
    """Returns the value of a header key on one line, as a version has it."""
    return front_matter.flow(values[key]) if key in values else GONE


def united(base: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    """Returns a list with what either side added, without what either removed."""
    known = [{_name(item): item for item in side} for side in (base, ours, theirs)]
    before, left, right = known
    kept = [item for name, item in before.items() if name in left and name in right]
    added = {name: item for name, item in {**left, **right}.items() if name not in before}
    return [*kept, *(added[name] for name in sorted(added))]


def _name(item: Any) -> str:
    return json.dumps(item, sort_keys=True, ensure_ascii=False, default=str)


def _longest_first(text: str) -> tuple[int, str]:
    return (-len(text), text)


# A header as the lines of each key, merged key by key.


UNDECIDED: Any = object()
"""Stands for what both sides changed differently."""

Rivals = Sequence[Mapping[str, frozenset[str]]]
"""What competes in the base, ours and theirs, by the name of the field."""


class NoMerge(Exception):
    """A file is written in a way that only a person, or a merge of its text, can do justice."""


@frozen
class Keys:
    """A header: the lines of each key, with the comments before it, and its data."""

    raw: Mapping[str, str]
    data: Mapping[str, Any]
    tail: str = ""
    """What follows the last key: comments."""


@frozen
class MergedHeader:
    """The text of a merged header, and what competes with its keys."""

    text: str
    competing: Mapping[str, frozenset[str]]


def name_of(key: str) -> str:
    """Returns how a version names a key."""
    plain = key.replace("_", "").replace("-", "").replace(".", "")
    return key if plain.isalnum() else front_matter.scalar(key)


def merged(base: Document, ours: Document, theirs: Document, competing: Rivals) -> MergedHeader:
    """Returns the header that holds what both sides say.

    Raises `NoMerge` where both changed it and it is no YAML with each key on lines of its own, and
    `Unreadable`.
    """
    texts = [one.header.replace("\r\n", "\n") for one in (base, ours, theirs)]
    if not any(competing) and (plain := one_sided(*texts)) is not UNDECIDED:
        return MergedHeader(text=plain, competing={})
    if any(one.syntax == "toml" for one in (ours, theirs)):
        made = merged_lines(texts[0], texts[1], texts[2])
        if len(made) > 1 or any(competing):
            raise NoMerge
        return MergedHeader(text=made[0], competing={})
    return _by_key((keys_of(texts[0]), keys_of(texts[1]), keys_of(texts[2])), competing)


def one_sided(base: Any, ours: Any, theirs: Any) -> Any:
    """Returns what the side that changed something says; UNDECIDED where both did."""
    if theirs in (base, ours):
        return ours
    return theirs if ours == base else UNDECIDED


def keys_of(text: str) -> Keys:
    """Returns the keys of a header. Raises `NoMerge`, and `Unreadable`."""
    data = front_matter.load_flat(text)
    if data is not None:
        return Keys(raw=dict(zip(data, text.splitlines(keepends=True), strict=True)), data=data)
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
    return Keys(raw=raw, data=header.data, tail=text[start:])


def _by_key(sides: tuple[Keys, Keys, Keys], competing: Rivals) -> MergedHeader:
    left: dict[str, frozenset[str]] = {}
    raw: dict[str, str] = {}
    order = _order(sides)
    names = {name_of(key): key for key in order}
    # A version may outlive the key that it competes with.
    alone = {name for side in competing for name in side} - names.keys()
    for name, key in {**names, **{name: name for name in sorted(alone)}}.items():
        text, kept = _key(key, sides, [side.get(name, frozenset()) for side in competing])
        if text is not None:
            raw[key] = text if text.endswith("\n") else f"{text}\n"
        if kept:
            left[name] = kept
    tails = [side.tail for side in sides]
    tail = one_sided(*tails)
    return MergedHeader(
        text="".join(raw.values()) + (max(tails[1:]) if tail is UNDECIDED else tail),
        competing=left,
    )


def _key(
    key: str, sides: tuple[Keys, Keys, Keys], rivals: Sequence[frozenset[str]]
) -> tuple[str | None, frozenset[str]]:
    """Returns the lines of one key, None where it is gone, and what competes with it."""
    if not any(rivals):
        taken = one_sided(*(side.raw.get(key) for side in sides))
        if taken is not UNDECIDED:
            return taken, frozenset()
        base, ours, theirs = (side.data.get(key) for side in sides)
        if isinstance(ours, list) and isinstance(theirs, list):
            joined = united(base if isinstance(base, list) else [], ours, theirs)
            return _lead(key, sides) + front_matter.entry(key, joined), frozenset()
    base_, ours_, theirs_ = (
        Standing(value=shown(side.data, key), competing=rival)
        for side, rival in zip(sides, rivals, strict=True)
    )
    left = settle(base_, ours_, theirs_, order_of(key))
    return _raw(key, left.value, sides), left.competing


def _raw(key: str, value: str, sides: tuple[Keys, Keys, Keys]) -> str | None:
    """Returns the lines of a key with a value, as a side wrote them where one did."""
    if value == GONE and not any(key in side.raw for side in sides[1:]):
        return None
    as_written = [
        side.raw[key] for side in sides[1:] if shown(side.data, key) == value and key in side.raw
    ]
    if value == GONE:
        return max(as_written, default=None)
    return max(as_written, default=f"{_lead(key, sides)}{front_matter.scalar(key)}: {value}")


def _lead(key: str, sides: tuple[Keys, Keys, Keys]) -> str:
    """Returns the comments before a key."""
    leads = []
    for side in sides[1:]:
        kept = []
        for line in side.raw.get(key, "").splitlines(keepends=True):
            if line.strip() and not line.lstrip().startswith("#"):
                break
            kept.append(line)
        leads.append("".join(kept))
    return max(leads)


def _order(sides: tuple[Keys, Keys, Keys]) -> list[str]:
    """Returns all keys: those that were there in their order, new ones of ours in their place."""
    base, ours, theirs = sides
    order = list(base.raw)
    new = {key for side in (ours, theirs) for key in side.raw if key not in base.raw}
    known = [key for key in fields.KEYS if key in new]
    for key in known:
        place = fields.KEYS.index(key)
        before = [n for n, other in enumerate(order) if other in fields.KEYS[:place]]
        order.insert(max(before) + 1 if before else 0, key)
    return [*order, *sorted(new.difference(known))]


# A file of memory, merged by its parts: header, text, sections, and what competes already.


TEXT = "the text"
"""How a version names the content."""

_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Merged:
    """A merged file, and what is to be told about it."""

    data: bytes
    competing: tuple[str, ...] = ()
    """The fields of which both sides say something else."""
    dropped: bool = False
    """Whether one of two copies of an ingested file was left out: it is to be ingested again."""


def section_name(section: Section) -> str:
    """Returns how a version names a section."""
    return f"the section {section.value}"


def merge(base: bytes, ours: bytes, theirs: bytes, *, path: str) -> Merged | None:
    """Returns the file that holds what both sides say; None where only its text can be merged.

    `base` is empty where there is no common ancestor. What comes back can always be read.
    """
    try:
        if is_source(path):
            return _source(base, ours, theirs)
        if (whole := one_sided(base, ours, theirs)) is not UNDECIDED:
            _read(whole)
            return Merged(data=whole)
        return _memory((_document(base), _read(ours), _read(theirs)), path)
    except (Unreadable, NoMerge, Invalid):
        return None


def _read(data: bytes) -> Document:
    return read_document(data)[0]


def _document(base: bytes) -> Document:
    """Returns the ancestor; an empty one where it is missing, or conflicted itself."""
    try:
        return _read(base)
    except Unreadable:
        return Document(text="", newline="\n")


def _memory(documents: tuple[Document, Document, Document], path: str) -> Merged | None:
    owned = all(_owned(one, path) for one in documents[1:])
    layouts = [layout_of(one.body, newline=one.newline, sections=owned) for one in documents]
    rivals = [_rivals(layout.versions) for layout in layouts]
    header = merged(*documents, _of_keys(rivals))
    competing = dict(header.competing)
    content = _text(TEXT, [one.content.text for one in layouts], rivals, competing)
    sections = {}
    for section in Section if owned else ():
        texts = [one.texts.get(section, "") for one in layouts]
        if text := _text(section_name(section), texts, rivals, competing):
            sections[section] = text
    versions = tuple(_versions(competing))
    wanted = (content, sections, versions)
    newline, plain = _newline(documents), _body(layouts, wanted, owned=owned)
    text = f"{_fenced(documents, header.text)}{plain}"
    data = ("\ufeff" * _bom(documents) + text.replace("\n", newline)).encode()
    return _checked(data, path, wanted, owned=owned)


def _owned(document: Document, path: str) -> bool:
    _, header = read_document(document.text.encode())
    understood, _ = fields.understand(header)
    return is_owned(understood, path)


def _rivals(versions: Sequence[Version]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for one in versions:
        found[one.field] = found.get(one.field, frozenset()) | {one.text}
    return found


def _is_of_body(name: str) -> bool:
    return name == TEXT or name in {section_name(section) for section in Section}


def _of_keys(
    rivals: Sequence[Mapping[str, frozenset[str]]],
) -> Sequence[Mapping[str, frozenset[str]]]:
    return [{n: v for n, v in one.items() if not _is_of_body(n)} for one in rivals]


def _text(
    name: str,
    texts: Sequence[str],
    rivals: Sequence[Mapping[str, frozenset[str]]],
    competing: dict[str, frozenset[str]],
) -> str:
    """Returns the text in force, and adds to `competing` what competes with it."""
    base, ours, theirs = (
        Standing(value=text, competing=rival.get(name, frozenset()))
        for text, rival in zip(texts, rivals, strict=True)
    )
    left = settle_text(base, ours, theirs)
    # Blank lines at the edges of a hunk may be all that is left of a text.
    value, others = trim(left.value), {trim(text) for text in left.competing}
    if others := others - {value}:
        competing[name] = frozenset(others)
    return value


def _versions(competing: Mapping[str, frozenset[str]]) -> Iterator[Version]:
    for name in sorted(competing, key=lambda name: (_is_of_body(name), name)):
        for text in sorted(competing[name]):
            yield Version(field=name, text=text)


def _body(
    layouts: Sequence[Layout],
    wanted: tuple[str, Mapping[Section, str], tuple[Version, ...]],
    *,
    owned: bool,
) -> str:
    """Returns the body as a merge of its lines has it where that says what is wanted.

    Blank lines and the order of sections then stay as somebody wrote them.
    """
    base, ours, theirs = ("\n".join(layout.lines) for layout in layouts)
    made = merged_lines(base, ours, theirs)
    if len(made) == 1:
        found = layout_of(made[0], newline="\n", sections=owned)
        if (found.content.text, found.texts, found.versions) == wanted:
            return made[0]
    content, sections, versions = wanted
    return render_body(content, sections, versions, escaped=owned)


def _fenced(documents: tuple[Document, Document, Document], header: str) -> str:
    """Returns a header within its fences, as a side has them where it has just this header."""
    for one in sorted(documents[1:], key=lambda one: one.text):
        if one.syntax and one.header.replace("\r\n", "\n") == header:
            return one.text[: one.body_start].replace("\r\n", "\n")
    fence = "+++" if any(one.syntax == "toml" for one in documents[1:]) else "---"
    return f"{fence}\n{header}{fence}\n" if header else ""


def _newline(documents: tuple[Document, Document, Document]) -> str:
    base, ours, theirs = (one.newline for one in documents)
    chosen = one_sided(base, ours, theirs)
    return "\n" if chosen is UNDECIDED else str(chosen)


def _bom(documents: tuple[Document, Document, Document]) -> bool:
    base, ours, theirs = (one.bom for one in documents)
    return bool(one_sided(base, ours, theirs))


def _checked(
    data: bytes,
    path: str,
    wanted: tuple[str, Mapping[Section, str], tuple[Version, ...]],
    *,
    owned: bool,
) -> Merged | None:
    """Returns the result if it reads as was meant: better a conflict than a wrong merge."""
    parsed = parse(data, path=path, modified=_ANY_TIME)
    if not isinstance(parsed, Parsed) or parsed.owned != owned:
        return None
    memory = parsed.memory
    if (memory.content, memory.sections, memory.competing) != wanted:
        return None
    return Merged(data=data, competing=tuple(dict.fromkeys(one.field for one in wanted[2])))


def _source(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    """Returns the newer copy of an ingested file; its chunks are no text that could be merged."""
    chosen = one_sided(base, ours, theirs)
    if chosen is not UNDECIDED:
        return Merged(data=chosen)
    return Merged(data=max(ours, theirs, key=_age), dropped=True)


def _age(data: bytes) -> tuple[str, bytes]:
    _, header = read_document(data, MAX_SOURCE_BYTES)
    return (str(header.get("created", "")), data)


_DEFAULTS: dict[str, Any] = {"tags": (), "links": (), "importance": 0.5}


def is_text(name: str) -> bool:
    """Returns whether a version of that name is prose, of which more than one can hold."""
    return name == TEXT or _section(name) is not None


def in_force(memory: Memory, name: str) -> str:
    """Returns what a memory says of a field, as a version of it would say it."""
    if name == TEXT:
        return memory.content
    if section := _section(name):
        return memory.sections.get(section, "")
    key = next(iter(_header(name, GONE)))
    return shown({**memory.extra, **fields.written(memory, memory.links)}, key)


def chosen(memory: Memory, name: str, text: str) -> Memory:
    """Returns a memory in which a field says what a version of it says, and no longer competes.

    Raises `Invalid` where the text is no value that a header can hold.
    """
    rest = tuple(one for one in memory.competing if one.field != name)
    memory = replace(memory, competing=rest)
    if name == TEXT:
        return replace(memory, content=text)
    if section := _section(name):
        return replace(memory, sections={**memory.sections, section: text})
    header = _header(name, text)
    key = next(iter(header))
    understood, extra = fields.understand(header)
    others = {other: value for other, value in memory.extra.items() if other != key}
    if text != GONE and key in extra:
        others |= extra
    if key not in fields.KEYS:
        return replace(memory, extra=others)
    changes: dict[str, Any] = {key: understood.get(key, _DEFAULTS.get(key))}
    return replace(memory, extra=others, **changes)


def _section(name: str) -> Section | None:
    return next((section for section in Section if section_name(section) == name), None)


def _header(name: str, text: str) -> dict[str, Any]:
    """Returns the one key and its value that a header with this line holds."""
    try:
        _, header = read_document(f"---\n{name}: {text or GONE}\n---\nx\n".encode())
    except Unreadable:
        header = {}
    if len(header) != 1:
        raise Invalid(f"`{text}` is no value of `{name}`", hint="settle it with `mind edit`")
    return header
