"""Reading a file as a memory, and writing a new one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mimo.domain import ids
from mimo.domain.codec import body, emit, fields, flat, prose, restricted_yaml, toml_header
from mimo.domain.codec.document import MAX_FILE_BYTES, MAX_HEADER_BYTES, Document, Unreadable, split
from mimo.domain.memory import Kind, Link, Memory, Problem, Section, Version
from mimo.errors import Invalid
from mimo.frozen import frozen


@frozen
class Parsed:
    """What a file says: a memory, where its content begins, and whether mind wrote it."""

    memory: Memory
    line: int
    """The 1-based line on which the content begins."""
    owned: bool
    """Whether the file is under `.mind/` with an id and a type of ours in its header."""


def parse(data: bytes, *, path: str, modified: datetime) -> Parsed | Problem:
    """Returns the memory that a file holds, or why it holds none.

    `path` is relative to the project's root, with `/`; it gives the id and the type where the
    header doesn't. `modified` (time zone aware) is taken for the time of creation where the
    header gives no date. Content stays as it is but for blank lines around it, and for CRLF
    where the whole file has it.
    """
    try:
        document, header = read_document(data)
        return interpret(document, header, path=path, modified=modified)
    except Unreadable as error:
        return Problem(path=path, line=error.line, reason=error.reason)


def read_document(data: bytes, limit: int = MAX_FILE_BYTES) -> tuple[Document, dict[str, Any]]:
    """Returns a file's parts and the data of its header. Raises `Unreadable`."""
    document = split(data, limit)
    if not document.text.strip():
        raise Unreadable("the file is empty")
    if data.removeprefix(b"\xef\xbb\xbf").startswith(b"<<<<<<< "):
        raise Unreadable("it begins with an unresolved merge conflict", 1)
    if document.syntax is None:
        return document, {}
    if len(document.header.encode()) > MAX_HEADER_BYTES:
        return _not_a_header(document, Unreadable("the header is larger than 64 KiB", 1))
    try:
        header = _load(document)
    except restricted_yaml.NotAMapping:
        return document.without_header(), {}
    except Unreadable as error:
        return _not_a_header(document, Unreadable(error.reason, (error.line or 1) + 1))
    if not header and document.header.strip():
        # Only comments, which are headings in Markdown: a title between two rules.
        return document.without_header(), {}
    return document, header


def interpret(
    document: Document, header: Mapping[str, Any], *, path: str, modified: datetime
) -> Parsed:
    """Returns the memory that a file's parts make."""
    understood, extra = fields.understand(header)
    owned = is_owned(understood, path)
    layout = body.layout(
        document.body, newline=document.newline, sections=owned, competing=in_store(path)
    )
    content, sections = layout.content.text, layout.texts
    links = understood.pop("links", ())
    defaults = {
        "id": ids.of_path(path),
        "type": ids.folder_kind(path) or Kind.FACT,
        "title": prose.title(content),
        "created": modified.astimezone(UTC),
    }
    memory = Memory(
        **(defaults | understood),
        content=content,
        sections=sections,
        competing=layout.versions,
        links=_united(links, body_links(content, sections)),
        extra=extra,
    )
    return Parsed(memory=memory, line=document.body_line + layout.content.start, owned=owned)


def render(memory: Memory) -> bytes:
    """Returns the file of a new memory; `parse` gives back `normal(memory)`.

    Raises `Invalid` for what a file can't hold.
    """
    memory = normal(memory)
    own = fields.written(memory, header_links(memory))
    if memory.title == prose.title(memory.content):
        own.pop("title", None)
    header = own | {key: value for key, value in memory.extra.items() if key not in own}
    lines = emit.lines(header)
    return encoded(f"---\n{lines}---\n{_body(memory)}", lines)


def _body(memory: Memory) -> str:
    return body.render(memory.content, memory.sections, memory.competing)


def encoded(text: str, header: str) -> bytes:
    """Returns a file's text as bytes; raises `Invalid` where `parse` would refuse them."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise Invalid("the text holds half of a surrogate pair, which is no character") from None
    if b"\0" in data:
        raise Invalid("the text holds a NUL character", hint="a memory is text; leave it out")
    if len(data) > MAX_FILE_BYTES:
        raise Invalid(f"a file of {len(data):,} bytes is too large for a memory")
    if len(header.encode()) > MAX_HEADER_BYTES:
        raise Invalid("the header is larger than 64 KiB", hint="put long text into the content")
    return data


def normal(memory: Memory) -> Memory:
    """Returns `memory` as its file would give it back.

    Blank lines around texts go, so do empty fields and `#` before tags; the title falls back to
    the first heading; `[[…]]` in the text are among the links.
    """
    content = body.trim(memory.content)
    sections = _normal_sections(memory.sections)
    cleaned = replace(
        memory,
        content=content,
        sections=sections,
        competing=_normal_versions(memory.competing),
        title=fields.clean_title(memory.title) or prose.title(content),
        topic=fields.clean_text(memory.topic),
        tags=fields.clean_tags(memory.tags),
        category=fields.clean_text(memory.category),
        source=fields.clean_text(memory.source),
        status=fields.clean_text(memory.status),
        by=fields.clean_text(memory.by),
        created=memory.created.astimezone(UTC),
        links=_united(header_links(memory), body_links(content, sections)),
    )
    # What is left of a key that can't be understood gives way to a field that says something.
    own = fields.written(cleaned, header_links(cleaned))
    extra = {key: value for key, value in memory.extra.items() if key not in own}
    return replace(cleaned, extra=extra)


def header_links(memory: Memory) -> tuple[Link, ...]:
    """Returns the links that the text doesn't hold already."""
    in_body = body_links(memory.content, memory.sections)
    return tuple(link for link in memory.links if link not in in_body)


def body_links(content: str, sections: Mapping[Section, str]) -> tuple[Link, ...]:
    """Returns the links that `[[target]]` in the text make, all of type `relates_to`."""
    texts = [content, *(sections[name] for name in Section if name in sections)]
    targets = dict.fromkeys(target for text in texts for target in prose.references(text))
    return tuple(Link(to=target) for target in targets)


def is_owned(understood: Mapping[str, Any], path: str) -> bool:
    """Returns whether a header with these fields is one that mind wrote."""
    return in_store(path) and "id" in understood and "type" in understood


def in_store(path: str) -> bool:
    """Returns whether a file is one of `.mind/`, where git merges with our driver."""
    return path.startswith(".mind/")


def content_line(data: bytes) -> int:
    """Returns the 1-based line on which the content of a file of mind's own begins."""
    document = split(data)
    layout = body.layout(document.body, newline=document.newline, sections=True)
    return document.body_line + layout.content.start


def _load(document: Document) -> dict[str, Any]:
    if document.syntax == "toml":
        return toml_header.load(document.header)
    plain = flat.load(document.header)
    return restricted_yaml.load(document.header) if plain is None else plain


def _not_a_header(document: Document, error: Unreadable) -> tuple[Document, dict[str, Any]]:
    """Returns the file as a text that begins with a rule, unless a header was meant."""
    if document.looks_like_header:
        raise error
    return document.without_header(), {}


def _normal_sections(sections: Mapping[Section, str]) -> dict[Section, str]:
    trimmed = {section: body.trim(text) for section, text in sections.items()}
    return {section: text for section, text in trimmed.items() if text}


def _normal_versions(versions: Sequence[Version]) -> tuple[Version, ...]:
    trimmed = (Version(field=one.field.strip(), text=body.trim(one.text)) for one in versions)
    return tuple(dict.fromkeys(trimmed))


def _united(*links: tuple[Link, ...]) -> tuple[Link, ...]:
    return tuple(dict.fromkeys(link for group in links for link in group))
