"""A file of memory, merged by its parts: header, text, sections, and what competes already."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from mimo.domain.codec import body, fields, parse
from mimo.domain.codec.body import Layout
from mimo.domain.codec.codec import Parsed, is_owned, read_document
from mimo.domain.codec.document import MAX_SOURCE_BYTES, Document, Unreadable, is_source
from mimo.domain.memory import Section, Version
from mimo.domain.merge import lines
from mimo.domain.merge.header import UNDECIDED, NoMerge, merged, one_sided
from mimo.domain.merge.versions import Standing, settle_text
from mimo.errors import Invalid
from mimo.frozen import frozen

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
    layouts = [body.layout(one.body, newline=one.newline, sections=owned) for one in documents]
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
    value, others = body.trim(left.value), {body.trim(text) for text in left.competing}
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
    made = lines.merged(base, ours, theirs)
    if len(made) == 1:
        found = body.layout(made[0], newline="\n", sections=owned)
        if (found.content.text, found.texts, found.versions) == wanted:
            return made[0]
    content, sections, versions = wanted
    return body.render(content, sections, versions, escaped=owned)


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
