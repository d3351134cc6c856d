"""A field of a memory by the name that a version of it goes by, read and set as text.

A merge that can't decide names the field `the text`, `the section Reasoning`, or by its key in the
header, whose value it writes as the header does.
"""

from dataclasses import replace
from typing import Any

from mimo.domain.codec import fields
from mimo.domain.codec.codec import read_document
from mimo.domain.codec.document import Unreadable
from mimo.domain.memory import Memory, Section
from mimo.domain.merge.memory import TEXT, section_name
from mimo.domain.merge.versions import GONE, shown
from mimo.errors import Invalid

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
