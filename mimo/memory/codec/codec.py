"""Reading a file as a memory, and writing a new one."""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, date, datetime, time
from itertools import pairwise
from typing import Any

from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.memory import ids
from mimo.memory.codec import fields, yaml
from mimo.memory.codec.document import MAX_FILE_BYTES, MAX_HEADER_BYTES, Document, Unreadable, split
from mimo.memory.codec.yaml import GONE, moment
from mimo.memory.model import Kind, Link, Memory, Problem, Section, Version

# Headers in TOML (`+++`), as Hugo writes them: read, and edited line by line.


_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def load(text: str) -> dict[str, Any]:
    """Returns the data of a header, dates and times as ISO text.

    Raises `Unreadable` with the 1-based line in `text`.
    """
    import tomllib

    try:
        plain = _plain(tomllib.loads(text.replace("\r\n", "\n")), depth=1)
    except (ValueError, OverflowError, RecursionError) as error:
        found = re.search(r" ?\(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else 1
        reason = str(error).replace(found[0], "") if found else str(error)
        raise Unreadable(f"header: {reason[:1].lower()}{reason[1:]}", line) from None
    return {str(key): value for key, value in plain.items()}


def edit(text: str, changes: Mapping[str, Any]) -> str:
    """Returns the header with some top-level keys set, or removed where the value is GONE.

    All other text stays as it is. Raises `Invalid` where a key can't be told apart.
    """
    for key, value in changes.items():
        line = "" if value is GONE else f"{_key(key)} = {_value(value)}\n"
        start, end = _toml_header_extent(text, key)
        text = text[:start] + line + text[end:]
    return text


def _toml_header_extent(text: str, key: str) -> tuple[int, int]:
    """Returns where the lines of `key` are, or the empty place where it would go."""
    table = _TABLE.search(text)
    top = table.start() if table else len(text)
    name = re.escape(key)
    found = re.compile(rf"^[ \t]*(?:{name}|\"{name}\"|'{name}')[ \t]*=", re.MULTILINE).search(text)
    if found is None or found.start() >= top:
        if re.search(rf"^[ \t]*\[+[ \t]*{name}[ \t]*[.\]]", text, re.MULTILINE):
            raise Invalid(f"`{key}` is a table in this file's header", hint="edit it by hand")
        return top, top
    end = found.end()
    while end < len(text):
        end = text.find("\n", end) + 1 or len(text)
        if _is_whole(text[found.start() : end]):
            return found.start(), end
    raise Invalid(f"`{key}` can't be changed in this file's header", hint="edit it by hand")


def _is_whole(text: str) -> bool:
    import tomllib

    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {_value(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise Invalid(f"a TOML header can't hold `{value!r}`", hint="edit it by hand")


def _plain(value: Any, depth: int) -> Any:
    """Returns TOML's data as JSON-like data."""
    if depth > 20:
        raise Unreadable("header: nested too deeply", 1)
    if isinstance(value, dict):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, datetime):
        return moment(value) if value.tzinfo else moment(value.replace(tzinfo=UTC))
    if isinstance(value, date | time):
        return value.isoformat()
    return value


# What Markdown text says about itself: its title and the memories it refers to.


_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\r]*)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+([^\r]*))?\r?")
_SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*\r?")
_REFERENCE = re.compile(
    r"(?<!!)\[\[([^\s\[\]|#^][^\[\]|#^\r]*)(?:[#^][^\[\]|]*)?(?:\|[^\[\]]*)?\]\]"
)


def prose_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yields the 0-based number and text of each line outside fenced code and HTML comments."""
    fence, comment = "", False
    for number, line in enumerate(lines):
        if comment:
            comment = "-->" not in line
            continue
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
        elif line.lstrip(" ").startswith("<!--"):
            comment = "-->" not in line
        else:
            yield number, line


def title(content: str) -> str | None:
    """Returns the text of the first heading of level 1, or else of a heading that opens `content`.

    A heading of a lower level that stands after other text names a part, not the whole.
    """
    lines = content.split("\n")
    opening = None
    for position, (number, line) in enumerate(prose_lines(lines)):
        level, text = _heading(lines, number, line)
        if level == 1 and text:
            return text
        if position == 0 and text:
            opening = text
    return opening


def references(text: str) -> tuple[str, ...]:
    """Returns the targets of all `[[target]]` and `[[target|alias]]` outside code, each once."""
    if "[[" not in text:
        return ()
    found: dict[str, None] = {}
    for _, line in prose_lines(text.split("\n")):
        if "[[" in line:
            found.update((hit[1].strip(), None) for hit in _REFERENCE.finditer(_uncoded(line)))
    return tuple(found)


def _heading(lines: Sequence[str], number: int, line: str) -> tuple[int, str]:
    """Returns the level and text of the heading that a line is, or level 0."""
    if found := _ATX.fullmatch(line):
        text = " ".join((found[2] or "").split())
        bare = text.rstrip("#")
        return len(found[1]), bare.rstrip() if not bare or bare[-1] in " \t" else text
    below = lines[number + 1] if number + 1 < len(lines) else ""
    starts = number == 0 or not lines[number - 1].strip()
    if line.strip() and starts and _SETEXT.fullmatch(below) and not line.startswith(("    ", "\t")):
        return (1 if "=" in below else 2), " ".join(line.split())
    return 0, ""


def _uncoded(line: str) -> str:
    """Returns a line without its code spans: text between two runs of as many backticks."""
    runs = [(run.start(), run.end()) for run in re.finditer("`+", line)]
    by_length: dict[int, list[int]] = {}
    for start, end in runs:
        by_length.setdefault(end - start, []).append(start)
    kept, position = [], 0
    for start, end in runs:
        if start < position:
            continue
        same = by_length[end - start]
        after = bisect_right(same, start)
        if after < len(same):
            kept.append(line[position:start])
            position = same[after] + end - start
    return " ".join([*kept, line[position:]])


# A body taken apart into its content and the fixed sections, line by line.


_NAMES = "|".join(re.escape(section.value) for section in Section)
_COMPETING = r"Competing: (\S(?:.*\S)?)"
_HEADING = re.compile(rf"## (?:({_NAMES})|{_COMPETING})[ \t\r]*")
_LOOKS_LIKE_HEADING = re.compile(rf"\\*## (?:{_NAMES}|{_COMPETING})[ \t\r]*")
_ESCAPED = re.compile(rf"\\+## (?:{_NAMES}|{_COMPETING})[ \t\r]*")
_BLANK = " \t\r\n"


@frozen
class Part:
    """A stretch of lines: `start` to `end` without the blank lines around it."""

    start: int
    end: int
    text: str
    heading: int | None = None
    """The line of its heading; None for the content."""


@frozen
class Layout:
    """The lines of a body, without their ends, and which belong to what."""

    lines: Sequence[str]
    content: Part
    sections: Mapping[Section, Part] = field(default_factory=dict)
    competing: Sequence[tuple[str, Part]] = ()
    """The field of each version, and where it stands."""

    @property
    def texts(self) -> dict[Section, str]:
        """Returns the text of each section that has any."""
        return {section: part.text for section, part in self.sections.items() if part.text}

    @property
    def versions(self) -> tuple[Version, ...]:
        """Returns the competing versions, each once."""
        found = (Version(field=name, text=part.text) for name, part in self.competing)
        return tuple(dict.fromkeys(found))


def layout_of(body: str, *, newline: str, sections: bool, competing: bool = True) -> Layout:
    """Returns the parts of a body; without `sections`, its content is what stands in it.

    Without `competing` as well, that is all of it.
    """
    lines = body.split(newline) if newline == "\n" else body.replace(newline, "\n").split("\n")
    starts: dict[Section, int] = {}
    versions: list[tuple[str, int]] = []
    for number, line in enumerate(lines):
        if not line.startswith("## ") or not (found := _HEADING.fullmatch(line)):
            continue
        if found[1] is None and competing:
            versions.append((found[2], number))
        elif found[1] and sections:
            # A second heading of the same name is text: nothing of it may be lost.
            starts.setdefault(Section(found[1]), number)
    bounds = [*sorted([*starts.values(), *(number for _, number in versions)]), len(lines)]
    ends = dict(pairwise(bounds))
    return Layout(
        lines=lines,
        content=_part(lines, 0, bounds[0], escaped=sections),
        sections={s: _part(lines, n + 1, ends[n], heading=n) for s, n in starts.items()},
        competing=[(name, _part(lines, n + 1, ends[n], heading=n)) for name, n in versions],
    )


def render_body(
    content: str,
    sections: Mapping[Section, str],
    competing: Sequence[Version] = (),
    *,
    escaped: bool = True,
) -> str:
    """Returns the body of a new file: the content, then each section under its heading."""
    parts = [escape(content) if escaped else content] if content else []
    parts += [f"## {name}\n{escape(sections[name])}" for name in Section if sections.get(name, "")]
    parts += ["\n".join(_competing(one)) for one in competing]
    return "\n\n".join(parts) + "\n" if parts else ""


def _competing(version: Version) -> Sequence[str]:
    heading = f"## Competing: {version.field}"
    return (heading, escape(version.text)) if version.text else (heading,)


def trim(text: str) -> str:
    """Returns `text` without the blank lines around it."""
    lines = text.split("\n")
    start, end = _extent(lines, 0, len(lines))
    return "\n".join(lines[start:end])


def escape(text: str) -> str:
    """Returns `text` with a backslash before each line that would begin a section."""
    return "\n".join(
        f"\\{line}" if _LOOKS_LIKE_HEADING.fullmatch(line) else line for line in text.split("\n")
    )


def unescape(line: str) -> str:
    """Returns a line as it was before `escape`."""
    return line[1:] if _ESCAPED.fullmatch(line) else line


def _part(
    lines: Sequence[str], start: int, end: int, *, heading: int | None = None, escaped: bool = True
) -> Part:
    start, end = _extent(lines, start, end)
    inner = lines[start:end]
    text = "\n".join(map(unescape, inner) if escaped else inner)
    return Part(start=start, end=end, text=text, heading=heading)


def _extent(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Returns `start` and `end` moved over blank lines; an empty part is the place it began."""
    first, last = start, end
    while first < last and not lines[first].strip(_BLANK):
        first += 1
    while last > first and not lines[last - 1].strip(_BLANK):
        last -= 1
    return (first, last) if first < last else (start, start)


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
    except yaml.NotAMapping:
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

    Raises `Invalid` for what a file can't hold.
    """
    memory = normal(memory)
    own = fields.written(memory, header_links(memory))
    if memory.title == title(memory.content):
        own.pop("title", None)
    header = own | {key: value for key, value in memory.extra.items() if key not in own}
    lines = yaml.emitted_lines(header)
    return encoded(f"---\n{lines}---\n{_body(memory)}", lines)


def _body(memory: Memory) -> str:
    return render_body(memory.content, memory.sections, memory.competing)


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
    content = trim(memory.content)
    sections = _normal_sections(memory.sections)
    cleaned = replace(
        memory,
        content=content,
        sections=sections,
        competing=_normal_versions(memory.competing),
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
    targets = dict.fromkeys(target for text in texts for target in references(text))
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
    layout = layout_of(document.body, newline=document.newline, sections=True)
    return document.body_line + layout.content.start


def _load(document: Document) -> dict[str, Any]:
    if document.syntax == "toml":
        return load(document.header)
    plain = yaml.load_flat(document.header)
    return yaml.load(document.header) if plain is None else plain


def _not_a_header(document: Document, error: Unreadable) -> tuple[Document, dict[str, Any]]:
    """Returns the file as a text that begins with a rule, unless a header was meant."""
    if document.looks_like_header:
        raise error
    return document.without_header(), {}


def _normal_sections(sections: Mapping[Section, str]) -> dict[Section, str]:
    trimmed = {section: trim(text) for section, text in sections.items()}
    return {section: text for section, text in trimmed.items() if text}


def _normal_versions(versions: Sequence[Version]) -> tuple[Version, ...]:
    trimmed = (Version(field=one.field.strip(), text=trim(one.text)) for one in versions)
    return tuple(dict.fromkeys(trimmed))


def _united(*links: tuple[Link, ...]) -> tuple[Link, ...]:
    return tuple(dict.fromkeys(link for group in links for link in group))
