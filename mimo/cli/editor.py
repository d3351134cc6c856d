"""`mind edit ID`: a memory's file in the person's own editor."""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mimo.errors import Conflict, Invalid, MindError, StorageFailed

if TYPE_CHECKING:
    from mimo.mind import Mind


def edit(
    mind: "Mind", arguments: Mapping[str, Any], run: Callable[[Mapping[str, Any]], object]
) -> object | None:
    """Returns what `run` makes of the text that came out of the editor; None where none changed.

    Raises `Conflict` where the file changed meanwhile. Where the text can't be stored it stays in a
    draft, which the error names.
    """
    from mimo.services import recall

    record = recall.one(mind, arguments["id"])
    path = mind.project.root / record.place.path
    before = _content(path)
    draft = _draft(before)
    try:
        click.edit(filename=str(draft))
    except click.ClickException as error:
        draft.unlink(missing_ok=True)
        raise Invalid(
            f"the editor failed: {error.message}", hint="set $EDITOR; nothing was changed"
        ) from error
    after = draft.read_bytes()
    try:
        if after != before:
            if _content(path) != before:
                raise Conflict(f"`{record.place.path}` changed while you edited it")
            result = run({**arguments, "file_text": _text(after)})
            draft.unlink()
            return result
    except MindError as error:
        error.hint = f"your text is in {draft}" + (f"; {error.hint}" if error.hint else "")
        raise
    draft.unlink()
    return None


def _draft(content: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix="mind-", suffix=".md")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    return Path(name)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageFailed(f"`{path}` can't be read: {error.strerror}") from error


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Invalid("the text is not UTF-8", hint="save it as UTF-8") from None
