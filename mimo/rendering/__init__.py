"""Where a command's answer and its errors are written."""

import os
import sys
from io import TextIOWrapper
from typing import Any, TextIO

from mimo.errors import Internal, MindError, StorageFailed
from mimo.text.clean import escaped, inert, one_line


def prepare() -> None:
    """Lets standard output take every character, where its encoding has not all of them.

    Raises `StorageFailed` where it is closed.
    """
    if sys.stdout is None:
        raise StorageFailed("standard output is closed", hint="give the program one to write to")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Returns whether a standard stream, which is None if it is closed, is a terminal."""
    return stream is not None and stream.isatty()


def as_json(data: Any, indent: int | None = None) -> str:
    """Returns JSON text that says exactly the data, and is harmless on a terminal."""
    import json

    wide = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    return escaped(json.dumps(data, ensure_ascii=not wide, indent=indent))


def write(text: str) -> None:
    """Write to standard output.

    Raises `StorageFailed` where it can't take the text, `BrokenPipeError` where nobody reads on.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        give_up_stdout()
        raise StorageFailed(f"the answer could not be written: {error.strerror}") from error


def flush() -> None:
    """Flush standard output, so that what fails then is still reported."""
    write("")


def give_up_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's own flush at exit is silent."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(error: MindError, as_wire: bool) -> int:
    """Print an error on standard error and return its exit status."""
    if isinstance(error, Internal) and os.environ.get("MIND_DEBUG"):
        import traceback

        for entry in traceback.format_exception(error.__cause__ or error):
            for line in entry.splitlines():
                complain(line)
    if as_wire:
        from mimo.guard.privacy import redact_error

        redact_error(error)
        _write_error(as_json(error.wire()))
    else:
        for line in lines_of(error):
            complain(line)
    return error.exit_status


def lines_of(error: MindError) -> list[str]:
    """Returns an error as people read it: `error: message [CODE]`, then a hint."""
    lines = [f"error: {error.message} [{error.code}]"]
    return [*lines, f"hint: {error.hint}"] if error.hint else lines


def complain(text: str) -> None:
    """Print one line on standard error: without secrets, control characters and commands."""
    from mimo.guard.privacy import redacted

    _write_error(inert(one_line(redacted(text).value)))


def _write_error(line: str) -> None:
    """Write a line to standard error, or nowhere if that is closed."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except (OSError, AttributeError, ValueError):
        return


def interrupted() -> None:
    """Say that a person stopped the work, in the place of how far it was."""
    shown = is_terminal(sys.stderr)
    _write_error("\r\x1b[Kinterrupted" if shown else "interrupted")


WORTH_SHOWING = 200
"""Work of fewer steps is done before anybody could read how far it is."""


def progress(what: str, done: int, total: int) -> None:
    """Show on the terminal how far long work is, in one line that goes when it is done."""
    if total < WORTH_SHOWING or (done % (total // 100) and done != total):
        return
    from mimo.guard.privacy import redacted

    line = f"{one_line(redacted(what).value)} {done:,} of {total:,}" if done < total else ""
    sys.stderr.write(f"\r\x1b[K{line}")
    sys.stderr.flush()
