"""Edits of a file in place: only the differences are written, every other byte is unchanged.

Comments, order, quoting, unknown keys, CRLF, a byte order mark and the end of the file survive. The
result is read again before it is returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mimo.errors import Command, Hint, Invalid
from mimo.frozen import replace
from mimo.memory.codec import front_matter
from mimo.memory.codec.document import (
    Document,
    Layout,
    Part,
    Unreadable,
    escape,
    layout_of,
    render_body,
    title,
)
from mimo.memory.codec.file import (
    KEYS,
    clean_title,
    encoded,
    file_title,
    is_owned,
    links_in,
    normal,
    parse,
    read_document,
    understand,
    written,
)
from mimo.memory.codec.front_matter import GONE, LISTS, Entry, flow
from mimo.memory.codec.items import Edit, as_written, by_hand, emptied, line_start, list_edits
from mimo.memory.model import Link, Memory, Problem, Section, Version, is_elsewhere

_BLOCK_MARK = re.compile(r"[|>][-+0-9]*")
_REMARK = re.compile(r"(?:^|\s)#", re.MULTILINE)
_COMMENT = re.compile(r"([ \t]*)#.*\n")
_IN_BODY = ("content", "sections", "competing")


def splice(original: bytes, previous: Memory, after: Memory, *, path: str) -> bytes:
    """Returns `original`, which reads as `previous`, changed so that it reads as `normal(after)`.

    Raises `Invalid` if that would change text that another writer owns.
    """
    try:
        document, header = read_document(original)
    except Unreadable as error:
        line = f", line {error.line}" if error.line else ""
        raise Invalid(
            f"`{path}`{line} can't be changed: {error.reason}", hint="correct it by hand first"
        ) from None
    understood, _ = understand(header)
    changes = _changes(previous, after, header, understood, path)
    owned = is_owned(understood, path)
    body = _body(document, previous, after, owned=owned, competing=not is_elsewhere(path))
    data = _joined(document, changes, body)
    _verify(data, previous, after, changes, path=path)
    return data


def identified(original: bytes, memory: Memory) -> bytes:
    """Returns `original` with the id, the type and a time of creation in its header.

    These no longer depend on the file's path and time then. Raises `Unreadable` and `Invalid`.
    """
    document, header = read_document(original)
    understood, _ = understand(header)
    fields = {"id": memory.id, "type": memory.type.value}
    changes: dict[str, Any] = {
        key: value for key, value in fields.items() if understood.get(key) != value
    }
    if "created" not in understood:
        changes["created"] = memory.created
    return _joined(document, changes, document.body) if changes else original


def _joined(document: Document, changes: Mapping[str, Any], body: str) -> bytes:
    """Returns a file with changes of its header, and with this body. Raises `Invalid`."""
    header = _header(document, changes)
    if changes and document.syntax is None:
        header = f"---{document.newline}{header}---{document.newline}"
    start = document.text[: document.header_start]
    fence = document.text[document.header_end : document.body_start]
    if changes and document.syntax and not header.strip() and _is_text(body):
        start = fence = header = ""  # An empty header is only two rules.
    elif body and document.syntax and not fence.endswith("\n"):
        fence += document.newline
    return encoded("\ufeff" * document.bom + start + header + fence + body, header)


def _is_text(body: str) -> bool:
    """True if a file of only this body has no header."""
    try:
        return read_document(body.encode(), lenient=True)[0].syntax is None
    except Unreadable:
        return False


def _changes(
    previous: Memory,
    after: Memory,
    header: Mapping[str, Any],
    understood: Mapping[str, Any],
    path: str,
) -> dict[str, Any]:
    """Returns the header keys to set, or to remove for the value `GONE`, in writing order."""
    explicit = understood.get("links", ())
    target = normal(after)
    old = written(previous, explicit)
    new = written(target, _explicit_links(target, explicit))
    old["title"] = understood.get("title", GONE)
    text = target.content
    default = file_title(text, path) if is_elsewhere(path) else title(text)
    if clean_title(after.title) is None or (old["title"] is GONE and target.title == default):
        new["title"] = GONE
    changes = {key: new.get(key, GONE) for key in KEYS if new.get(key, GONE) != old.get(key, GONE)}
    for key in LISTS & changes.keys() & previous.extra.keys() & after.extra.keys():
        raise Invalid(
            f"`{key}:` in the header can't be read, and would be lost",
            hint=Hint(f"correct `{key}:` in the file: ", Command("doctor"), " names it"),
        )
    for key in {**previous.extra, **after.extra}:
        value = after.extra.get(key, GONE)
        if key not in changes and value != previous.extra.get(key, GONE):
            changes[key] = value
    return {key: value for key, value in changes.items() if value is not GONE or key in header}


def _explicit_links(memory: Memory, explicit: Sequence[Link]) -> Sequence[Link]:
    """Returns the links for the header; existing ones keep their places."""
    in_body = set(links_in(memory))
    listed, link_set = set(explicit), set(memory.links)
    new_links = [link for link in memory.links if link not in in_body or link in listed]
    joined = [link for link in explicit if link in link_set]
    joined += [link for link in new_links if link not in listed]
    # Links that are in the text as well may be anywhere; the others must be in the given order.
    is_in_order = [link for link in joined if link not in in_body] == [
        link for link in new_links if link not in in_body
    ]
    return joined if is_in_order else new_links


def _header(document: Document, changes: Mapping[str, Any]) -> str:
    if not changes:
        return document.header
    if document.syntax == "toml":
        plain = document.header.replace("\r\n", "\n")
        data = front_matter.load(plain, "toml")
        same = {
            key: as_written(key, old, value)
            for key, value in changes.items()
            if isinstance(value, list) and isinstance(old := data.get(key), list)
        }
        return _with_ends(front_matter.edit_toml(plain, {**changes, **same}), document.newline)
    header = front_matter.read(document.header)
    if header.flow:
        if _REMARK.search(document.header):
            raise Invalid(
                "a header in braces with comments can't be changed", hint="edit it by hand"
            )
        data = {**header.data, **changes}
        fields = {key: value for key, value in data.items() if value is not GONE}
        return _with_ends(front_matter.emitted_lines(fields), document.newline)
    text = _applied(document.header, _edits(document.header, header.entries, changes), document)
    is_bare = {entry.key for entry in header.entries} <= changes.keys() and all(
        value is GONE for value in changes.values()
    )
    if is_bare and text.strip() and not front_matter.read(text).entries:
        # A header of comments alone would read as headings between two rules, so a key is kept.
        fields = {**changes, header.entries[0].key: None}
        text = _applied(document.header, _edits(document.header, header.entries, fields), document)
    return text


def _edits(text: str, entries: Sequence[Entry], changes: Mapping[str, Any]) -> Iterable[Edit]:
    existing = {entry.key: entry for entry in entries}
    indent = " " * (entries[0].column if entries else 0)
    # A new item of a list comes before a new key at the same place.
    for key, value in sorted(changes.items(), key=lambda change: change[0] not in existing):
        entry = existing.get(key)
        if entry is None:
            place = _place(text, existing, key)
            lines = front_matter.entry(key, value).replace("\n", f"\n{indent}")
            yield place, place, f"{indent}{lines}\n"
        elif value is GONE:
            removal = line_start(text, entry.start), _line_end(text, _value_end(text, entry)), ""
            # Other keys mean something without a value, too.
            yield from (key in LISTS and emptied(text, entry)) or [removal]
        else:
            yield from _replaced(text, entry, value)


def _replaced(text: str, entry: Entry, value: Any) -> Iterable[Edit]:
    """Yields the edits that give an entry another value and keep the comment beside it."""
    after_colon = text.index(":", entry.end) + 1
    if text[entry.end : after_colon - 1].strip():
        raise by_hand(entry)
    old, end = entry.value, _value_end(text, entry)
    line_end = text.find("\n", after_colon)
    if isinstance(value, list) and isinstance(old.data, list):
        yield from list_edits(text, entry, value)
    elif isinstance(value, list) and entry.key == "links":
        dash = " " * (entry.column + 2) + "- "
        yield old.start, old.end, ""
        yield line_end + 1, line_end + 1, "".join(f"{dash}{flow(item, 3)}\n" for item in value)
    elif text.startswith(("|", ">"), old.start) and old.start < line_end:
        mark = _BLOCK_MARK.match(text, old.start)
        yield old.start, mark.end() if mark else old.start, flow(value)
        yield line_start(text, line_end + 1), _line_end(text, end), ""
    elif end > old.start and old.start < line_end:
        yield old.start, end, flow(value)
    else:
        yield after_colon, after_colon, f" {flow(value)}"
        if end > line_end:
            yield line_end - (text[line_end - 1] == "\r"), end, ""


def _place(text: str, existing: Mapping[str, Entry], key: str) -> int:
    """Returns the place of a new key: in the fixed order for keys of mind, else at the end."""
    if key in KEYS:
        position = KEYS.index(key)
        for neighbour in reversed(KEYS[:position]):
            if neighbour in existing:
                entry = existing[neighbour]
                place = _line_end(text, _value_end(text, entry))
                # Comments that are indented below a value belong to it.
                while (match := _COMMENT.match(text, place)) and len(match[1]) > entry.column:
                    place = match.end()
                return place
        for neighbour in KEYS[position + 1 :]:
            if neighbour in existing:
                place = line_start(text, existing[neighbour].start)
                while place and _COMMENT.match(text, above := line_start(text, place - 1)):
                    place = above
                return place
    return len(text)


def _value_end(text: str, entry: Entry) -> int:
    """Returns the end of an entry's value, without the trailing line ends of a block scalar."""
    end = max(entry.value.end, text.index(":", entry.end) + 1)
    return len(text[:end].rstrip())


def _line_end(text: str, position: int) -> int:
    return text.find("\n", position) + 1 or len(text)


def _applied(text: str, edits: Iterable[Edit], document: Document) -> str:
    """Returns `text` with all edits; those at the same place keep their order."""
    parts, position = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        parts += [text[position:start], _with_ends(new, document.newline)]
        position = end
    return "".join([*parts, text[position:]])


def _with_ends(text: str, newline: str) -> str:
    return text if newline == "\n" else text.replace("\n", newline)


def _body(
    document: Document, previous: Memory, after: Memory, *, owned: bool, competing: bool
) -> str:
    source, target = normal(previous), normal(after)
    if all(getattr(source, name) == getattr(target, name) for name in _IN_BODY):
        return document.body
    if target.sections and not owned:
        raise Invalid(
            "only a file that mind wrote can have sections", hint="write it into the text by hand"
        )
    layout = layout_of(document.body, newline=document.newline, sections=owned, competing=competing)
    # Each line keeps its own end, and new ones end as the first line; the last may have none.
    lines = document.body.split("\n")
    is_lf = document.newline == "\n"
    mark = "" if is_lf or (len(lines) > 1 and not lines[0].endswith("\r")) else "\r"
    lines[-1] += mark
    edits = sorted(_line_edits(layout, target, owned=owned), key=lambda edit: edit[:2])
    for start, end, new in reversed(edits):
        lines[start:end] = [line + mark for line in new]
    if lines and lines[-1].strip() and not layout.lines[-1]:
        lines.append("")
    text = "\n".join(lines)
    return text if is_lf else text.removesuffix("\r")


def _line_edits(
    layout: Layout, target: Memory, *, owned: bool
) -> Iterable[tuple[int, int, list[str]]]:
    yield _text_edit(layout, layout.content, target.content, owned=owned)
    for section in Section:
        part, text = layout.sections.get(section), target.sections.get(section, "")
        if part is not None and part.heading is not None:
            if text:
                yield _text_edit(layout, part, text, owned=owned)
            elif part.text:
                yield part.heading, part.end, []
        elif text:
            yield _new_section(layout, section, target)
    yield from _version_edits(layout, target)


def _version_edits(layout: Layout, target: Memory) -> Iterable[tuple[int, int, list[str]]]:
    """Yields the edits that remove resolved versions and add new ones."""
    left = tuple(version for version in layout.versions if version in target.competing)
    # If the order differs, all are written again.
    prefix = left if left == target.competing[: len(left)] else ()
    for name, part in layout.competing:
        if Version(field=name, text=part.text) not in prefix and part.heading is not None:
            end = max(part.end, part.heading + 1)
            while end < len(layout.lines) and not layout.lines[end].strip():
                end += 1
            yield part.heading, end, []
    if new := target.competing[len(prefix) :]:
        end = len(layout.lines)
        yield end, end, ["", *render_body("", {}, new).split("\n")]


def _text_edit(layout: Layout, part: Part, text: str, *, owned: bool) -> tuple[int, int, list[str]]:
    """Returns the edit of the lines that differ between a part and its new text."""
    old = list(layout.lines[part.start : part.end])
    new = (escape(text) if owned else text).split("\n") if text else []
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    replaced = new[head : len(new) - tail]
    if new and not old and part.start < len(layout.lines) and layout.lines[part.start].strip():
        replaced = [*replaced, ""]
    return part.start + head, part.end - tail, replaced


def _new_section(layout: Layout, section: Section, target: Memory) -> tuple[int, int, list[str]]:
    """Returns the edit that adds a section before the first that comes after it in order."""
    lines = [f"## {section}", *escape(target.sections[section]).split("\n")]
    order = list(Section)
    later = [layout.sections[s] for s in order[order.index(section) + 1 :] if s in layout.sections]
    if later and later[0].heading is not None:
        return later[0].heading, later[0].heading, [*lines, ""]
    end = max([layout.content.end, *(part.end for part in layout.sections.values())])
    if layout.competing:
        return end, end, ["", *lines, ""]
    return end, end, ["", *lines] if end or target.content else lines


def _verify(
    data: bytes, previous: Memory, after: Memory, changes: Mapping[str, Any], *, path: str
) -> None:
    """Raises `Invalid` unless `data` reads as `after`: no edit is better than a wrong one."""
    parsed = parse(data, path=path, modified=previous.created)
    if isinstance(parsed, Problem):
        reason = parsed.reason
    elif _foreign(normal(parsed.memory)) == _foreign(normal(after)):
        return
    else:
        reason = "the result would read differently"
    keys = ", ".join(changes) or "the text"
    raise Invalid(f"`{path}` can't be changed ({keys}): {reason}", hint="edit it by hand")


def _foreign(memory: Memory) -> Memory:
    """Returns a memory without values of mind's keys that have no meaning."""
    return replace(memory, extra={k: v for k, v in memory.extra.items() if k not in KEYS})
