"""The user's editor: for the file of a memory, and for a long text that was not given."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mimo.call.spec import Param
from mimo.data import disk
from mimo.data.failures import failure
from mimo.errors import Conflict, Invalid, MindError, StorageFailed
from mimo.rendering import complain

if TYPE_CHECKING:
    from mimo.call import Call

Run = Callable[[Mapping[str, Any]], object]
"""Runs the command with its arguments."""

_REMARK = re.compile(r"<!-- mind:.*?-->\n?", re.DOTALL)


def compose(params: Sequence[Param], arguments: Mapping[str, Any], run: Run) -> object | None:
    """Returns the result of `run` with the texts for `params` that the user wrote in the editor.

    The first text is at the top, each other one under its name as a heading. Returns None if the
    first is empty. If `run` fails, the texts stay in a draft that the error names.
    """
    draft = _draft(_form(params).encode())
    written = _opened(draft)
    result = None
    with _kept_on_error(draft):
        texts = _filled(_text(written), params)
        if params[0].name in texts:
            result = run({**arguments, **texts})
    _discard(draft)
    return result


def _form(params: Sequence[Param]) -> str:
    head, *tail = params
    form = f"\n<!-- mind: {head.arg.help}. This line is removed; an empty text cancels. -->\n"
    return form + "".join(
        f"\n## {_title(param)}\n\n<!-- mind: {param.arg.help} -->\n" for param in tail
    )


def _filled(text: str, params: Sequence[Param]) -> dict[str, str]:
    names = {_title(param): param.name for param in params[1:]}
    here, parts = params[0].name, dict[str, list[str]]()
    for line in _REMARK.sub("", text).split("\n"):
        if line.startswith("## ") and line[3:].strip() in names:
            here = names[line[3:].strip()]
        else:
            parts.setdefault(here, []).append(line)
    texts = {name: "\n".join(lines).strip() for name, lines in parts.items()}
    return {name: text for name, text in texts.items() if text}


def _title(param: Param) -> str:
    return param.name.replace("_", " ").capitalize()


@contextmanager
def _kept_on_error(draft: Path) -> Iterator[None]:
    """Adds the path of the draft to the hint of an error, or prints it if the user interrupts."""
    try:
        yield
    except KeyboardInterrupt:
        complain(f"note: your text is in {draft}")
        raise
    except MindError as error:
        message, hint = error.typed or (error.message, error.hint)
        error.typed = message, f"your text is in {draft}" + (f"; {hint}" if hint else "")
        raise


def _opened(draft: Path) -> bytes:
    """Returns the text of a draft after the user's editor, which is kept if the editor fails.

    Raises `Invalid` if the editor fails or removes the draft.
    """
    original = draft.read_bytes()
    for name in ("VISUAL", "EDITOR"):
        if not os.environ.get(name, "").strip():  # click would run the draft itself.
            os.environ.pop(name, None)
    try:
        with _kept_on_error(draft), _without_interrupts():
            click.edit(filename=str(draft))
    except (click.ClickException, ValueError) as error:
        hint = "set $EDITOR; nothing was changed"
        if _text_of(draft) in (original, None):
            _discard(draft)
        else:
            hint = f"your text is in {draft}; nothing was changed"
        message = error.message if isinstance(error, click.ClickException) else str(error)
        raise Invalid(f"the editor failed: {message}", hint=hint) from error
    written = _text_of(draft)
    if written is None:
        if not draft.exists():
            _discard(draft)
        raise Invalid(f"the editor left no file at {draft}", hint="nothing was changed")
    return written


def _text_of(draft: Path) -> bytes | None:
    """Returns the text of a draft; None if the editor has removed it or put a folder there."""
    with suppress(OSError):
        return draft.read_bytes()
    return None


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Leaves Ctrl-C to the editor, which owns the terminal and may stay open, as git does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A function, because the editor would inherit `SIG_IGN`.
    old_handler = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old_handler)


def edit(call: Call, arguments: Mapping[str, Any], run: Run) -> object | None:
    """Returns the result of `run` with the edited file, or None if the user changed nothing.

    Raises `Conflict` if the file changed meanwhile. If the text can't be stored, it stays in a
    draft that the error names.
    """
    from mimo.operations import lookup, saving

    call, record = lookup.anywhere(call, arguments["id"])
    saving.check_changeable(record)
    path = call.mind.project.root / record.place.path
    original = _content(path)
    draft = _draft(original)
    after, result = _opened(draft), None
    if after != original:
        with _kept_on_error(draft):
            if _content(path) != original:
                raise Conflict(f"`{record.place.path}` changed while you edited it")
            result = run({**arguments, "id": record.memory.id, "file_text": _text(after)})
    _discard(draft)
    return result


def _draft(content: bytes) -> Path:
    """Returns a file with `content` in a folder that only the user can enter.

    The folder is needed because an editor may replace the file, or make copies beside it, with
    other modes.
    """
    try:
        draft = Path(tempfile.mkdtemp(prefix="mind-"), "draft.md")
        draft.write_bytes(content)
    except OSError as error:
        raise failure("write", Path(error.filename or "the draft"), error) from error
    return draft


def _discard(draft: Path) -> None:
    shutil.rmtree(draft.parent, ignore_errors=True)


def _content(path: Path) -> bytes:
    try:
        return disk.read(path)
    except OSError as error:
        raise StorageFailed(f"`{path}` can't be read: {error.strerror}") from error


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Invalid("the text is not UTF-8", hint="save it as UTF-8") from None
