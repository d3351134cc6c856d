"""Standard output and standard error: results, errors, notes and progress."""

import os
import sys
from io import TextIOWrapper
from typing import Any, TextIO

from mimo.errors import Internal, MindError, StorageFailed
from mimo.text.clean import escaped, inert, one_line


def prepare() -> None:
    """Makes standard output accept every character, even if its encoding lacks some.

    Raises `StorageFailed` if it is closed.
    """
    if sys.stdout is None:
        raise StorageFailed("standard output is closed", hint="give the program one to write to")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Returns whether a standard stream, which is None if it is closed, is a terminal."""
    return stream is not None and stream.isatty()


def as_json(data: Any, indent: int | None = None) -> str:
    """Returns data as JSON, with control characters escaped for a terminal."""
    import json

    wide = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    return escaped(json.dumps(data, ensure_ascii=not wide, indent=indent))


def write(text: str) -> None:
    """Write to standard output.

    Raises `StorageFailed` if it can't be written, `BrokenPipeError` if its reader closed it.
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
    """Flush standard output while an error can still be reported."""
    write("")


def give_up_stdout() -> None:
    """Point standard output at the null device, so that the flush at exit is silent."""
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
    """Returns the lines of an error on a terminal: `error: message [CODE]`, then the hint."""
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
    """Print that the user stopped the command, in place of the progress line."""
    _write_error("\r\x1b[Kinterrupted" if is_terminal(sys.stderr) else "interrupted")


WORTH_SHOWING = 200
"""The fewest steps of a task whose progress is shown; a shorter one ends too soon to be read."""


def progress(task: str, done: int, total: int) -> None:
    """Show the progress of a long task in one line, which is erased at the end."""
    if total < WORTH_SHOWING or (done % (total // 100) and done != total):
        return
    from mimo.guard.privacy import redacted

    line = f"{one_line(redacted(task).value)} {done:,} of {total:,}" if done < total else ""
    sys.stderr.write(f"\r\x1b[K{line}")
    sys.stderr.flush()
