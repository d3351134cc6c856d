"""The formats of sources, which extensions add."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mimo.call.extensions import extensions, loaded
from mimo.errors import Command, Hint, Invalid
from mimo.features.importing import database
from mimo.memory.codec.document import Unreadable

if TYPE_CHECKING:
    from mimo.features.importing.drafts import Draft, Source


def formats() -> tuple[str, ...]:
    """Returns the names of all installed formats."""
    return tuple(dict.fromkeys(name for each in extensions().values() for name in each.importers))


def reader(format: str) -> Callable[[Source], Iterator[Draft]]:
    """Returns the function that yields the memories of a source of a format."""
    named = (each.importers.get(format) for each in extensions().values())
    function: Callable[[Source], Iterator[Draft]] = loaded(next(filter(None, named)))
    return function


def recognised(source: Source) -> str:
    """Returns the format of a source. Raises `Invalid` unless the content shows one."""
    if not source.files:
        raise Invalid(f"`{source.path}` has no files that can be read", hint="check the path")
    recognisers = filter(None, (each.recogniser for each in extensions().values()))
    try:
        found = [str(format) for name in recognisers for format in loaded(name)(source) or ()]
    except Unreadable as error:
        where = f", line {error.line}" if error.line else ""
        raise Invalid(
            f"`{source.path}`{where}: {error.reason}", hint="correct it, or export it again"
        ) from None
    known = formats()
    candidates = [format for format in dict.fromkeys(found) if format in known]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise _unknown(source)
    raise Invalid(
        f"`{source.path}` may be of several formats",
        hint=f"name one: {', '.join(f'--from {format}' for format in candidates)}",
        details={"candidates": candidates},
    )


def _unknown(source: Source) -> Invalid:
    path = source.path
    if source.is_file and database.is_sqlite(path) and database.is_mama(database.table_names(path)):
        return Invalid(
            f"`{path}` is a database of MAMA",
            hint=Hint("it has an importer: ", Command("import mama", str(path))),
        )
    listing = f"formats are {', '.join(formats())}; " if formats() else ""
    return Invalid(
        f"the format of `{path}` is not known",
        hint=Hint(f"{listing}long documents: ", Command("ingest")),
    )
