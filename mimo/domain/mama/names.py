"""Ids of rows as ids of memories: kept where they can be, made safe with a hash elsewhere."""

from collections.abc import Iterable
from hashlib import sha256

from mimo.domain import ids
from mimo.domain.memory import Kind


def safe(kind: Kind, raw: str, *, salt: str = "") -> str:
    """Returns an id that stands for `raw` alone, with what of it can be read; always the same."""
    readable = ids.slug(raw)
    start = readable if readable.startswith(kind.value) else f"{kind.value}_{readable}"
    digest = sha256(f"{raw}{salt}".encode("utf-8", "replace")).hexdigest()
    return f"{start.rstrip('_')}_{digest[:8]}"


def kept(kind: Kind, raw: str) -> str:
    """Returns `raw` where it can be an id, else the safe one that stands for it."""
    return raw if ids.is_id(raw) and not raw.startswith(".") else safe(kind, raw)


def assigned(wanted: Iterable[tuple[Kind, str]]) -> tuple[str, ...]:
    """Returns an id for each kind and raw id, no two of them alike.

    Ids that differ in case alone would be one file where file names fold case.
    """
    taken: set[str] = set()
    found = []
    for kind, raw in wanted:
        name, times = kept(kind, raw), 0
        while name.casefold() in taken:
            times += 1
            name = safe(kind, raw, salt=f"\0{kind.value}{times}")
        taken.add(name.casefold())
        found.append(name)
    return tuple(found)
