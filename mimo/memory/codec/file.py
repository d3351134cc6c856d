"""A memory <-> its file: reading a file, writing a new one; `splice` edits one in place."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.memory import ids
from mimo.memory.codec import fields, front_matter
from mimo.memory.codec.document import (
    BLANK,
    MAX_FILE_BYTES,
    MAX_HEADER_BYTES,
    Document,
    Unreadable,
    layout_of,
    references,
    render_body,
    split,
    title,
    trim,
)
from mimo.memory.model import Kind, Link, Memory, Problem, Section, Version


@frozen
class Parsed:
    """A memory as read from its file."""

    memory: Memory
    line: int
    """The 1-based line on which the content begins."""
    owned: bool
    """True if the file is in `.mind/` with an id and a type in its header: mind wrote it."""


def parse(data: bytes, *, path: str, modified: datetime) -> Parsed | Problem:
    """Returns the memory in a file, or the reason that there is none.

    `path` is relative to the project's root, with `/`; it gives id and type if the header does
    not. `modified` (time zone aware) is the time of creation if the header has no date. Content
    is unchanged, except for blank lines around it and for CRLF if the whole file has it.
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
        header = front_matter.load(document.header, document.syntax)
    except front_matter.NotAMapping:
        return document.without_header(), {}
    except Unreadable as error:
        return _not_a_header(document, Unreadable(error.reason, (error.line or 1) + 1))
    if not header and document.header.strip():
        # Only comments, which are Markdown headings: a title between two rules.
        return document.without_header(), {}
    return document, header


def interpret(
    document: Document, header: Mapping[str, Any], *, path: str, modified: datetime
) -> Parsed:
    """Returns the memory from the parts of a file."""
    understood, extra = fields.understand(header)
    owned = is_owned(understood, path)
    layout = layout_of(
        document.body, newline=document.newline, sections=owned, competing=in_store(path)
    )
    content, sections = layout.content.text, layout.texts
    links = understood.pop("links", ())
    defaults = {
        "id": ids.of_path(path),
        "type": ids.folder_kind(path) or Kind.FACT,
        "title": title(content),
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

    Raises `Invalid` for text that a file can't hold.
    """
    memory = normal(memory)
    own = fields.written(memory, header_links(memory))
    if memory.title == title(memory.content):
        own.pop("title", None)
    own |= {key: value for key, value in memory.extra.items() if key not in own}
    lines = front_matter.emitted_lines(own)
    body = render_body(memory.content, memory.sections, memory.competing)
    return encoded(f"---\n{lines}---\n{body}", lines)


def encoded(text: str, header: str) -> bytes:
    """Returns a file's text as bytes; raises `Invalid` if `parse` would refuse them."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise Invalid("the text contains half of a surrogate pair") from None
    if b"\0" in data:
        raise Invalid("the text holds a NUL character", hint="a memory is text; leave it out")
    if len(data) > MAX_FILE_BYTES:
        raise Invalid(f"a file of {len(data):,} bytes is too large for a memory")
    if len(header.encode()) > MAX_HEADER_BYTES:
        raise Invalid("the header is larger than 64 KiB", hint="put long text into the content")
    return data


def normal(memory: Memory) -> Memory:
    """Returns `memory` as it would be read from its file.

    Blank lines around texts, empty fields and `#` before tags are dropped; the title defaults to
    the first heading; `[[…]]` in the text are among the links.
    """
    content = trim(memory.content)
    sections = {name: trim(text) for name, text in memory.sections.items() if text.strip(BLANK)}
    cleaned = replace(
        memory,
        content=content,
        sections=sections,
        competing=tuple(
            dict.fromkeys(
                Version(field=version.field.strip(), text=trim(version.text))
                for version in memory.competing
            )
        ),
        title=fields.clean_title(memory.title) or title(content),
        topic=fields.clean_text(memory.topic),
        tags=fields.clean_tags(memory.tags),
        category=fields.clean_text(memory.category),
        source=fields.clean_text(memory.source),
        status=fields.clean_text(memory.status),
        by=fields.clean_text(memory.by),
        created=memory.created.astimezone(UTC),
        links=_united(header_links(memory), body_links(content, sections)),
    )
    # A key with a value of no meaning is replaced by the field of the same name.
    own = fields.written(cleaned, header_links(cleaned))
    extra = {key: value for key, value in memory.extra.items() if key not in own}
    return replace(cleaned, extra=extra)


def header_links(memory: Memory) -> tuple[Link, ...]:
    """Returns the links that are not in the text."""
    in_body = body_links(memory.content, memory.sections)
    return tuple(link for link in memory.links if link not in in_body)


def body_links(content: str, sections: Mapping[Section, str]) -> tuple[Link, ...]:
    """Returns the links from `[[target]]` in the text, all of type `relates_to`."""
    texts = [content, *(sections[name] for name in Section if name in sections)]
    targets = dict.fromkeys(target for text in texts for target in references(text))
    return tuple(Link(to=target) for target in targets)


def is_owned(understood: Mapping[str, Any], path: str) -> bool:
    """Returns whether a header with these fields was written by mind."""
    return in_store(path) and "id" in understood and "type" in understood


def in_store(path: str) -> bool:
    """Returns whether a file is in `.mind/`, where git uses our merge driver."""
    return path.startswith(".mind/")


def content_line(data: bytes) -> int:
    """Returns the 1-based line on which the content begins in a file that mind wrote."""
    document = split(data)
    layout = layout_of(document.body, newline=document.newline, sections=True)
    return document.body_line + layout.content.start


def _not_a_header(document: Document, error: Unreadable) -> tuple[Document, dict[str, Any]]:
    """Returns the file as a text that begins with a rule; raises `error` for a broken header."""
    if document.looks_like_header:
        raise error
    return document.without_header(), {}


def _united(*links: tuple[Link, ...]) -> tuple[Link, ...]:
    return tuple(dict.fromkeys(link for group in links for link in group))
