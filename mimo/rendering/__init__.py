"""Output: the standard streams, and the screen that renderers write to."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import partial
from io import TextIOWrapper
from typing import Any, TextIO, TypeAlias

from mimo.errors import Internal, Invalid, MindError, StorageFailed
from mimo.frozen import NamedTuple
from mimo.memory.ids import handle_of, with_handles
from mimo.text.clean import escaped, inert, one_line, visible


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
    """Returns data as JSON, with control characters escaped for a terminal.

    Characters that the encoding of standard output may lack are escaped, too.
    """
    import json

    encoding = (not _captured.get() and getattr(sys.stdout, "encoding", None)) or "utf-8"
    is_ascii = not encoding.lower().startswith("utf")
    return escaped(json.dumps(data, ensure_ascii=is_ascii, indent=indent))


class Output:
    """The output of a command, which another process prints."""

    def __init__(self) -> None:
        """Starts with nothing written."""
        self.text = ""
        self.errors: list[str] = []


_captured: ContextVar[Output | None] = ContextVar("captured", default=None)


@contextmanager
def captured() -> Iterator[Output]:
    """Gives what the block writes to standard output and standard error of this thread."""
    output = Output()
    token = _captured.set(output)
    try:
        yield output
    finally:
        _captured.reset(token)


def page(text: str) -> None:
    """Shows a text in the user's pager."""
    import click

    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(text, color=True)


def write(text: str) -> None:
    """Writes to standard output.

    Raises `StorageFailed` if it can't be written, `BrokenPipeError` if its reader closed it.
    """
    if output := _captured.get():
        output.text += text
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        give_up_stdout()
        raise StorageFailed(f"the answer could not be written: {error.strerror}") from error


def flush() -> None:
    """Flushes standard output while an error can still be reported."""
    write("")


def give_up_stdout() -> None:
    """Points standard output at the null device, so that the flush at exit is silent."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(error: MindError, *, as_wire: bool, coded: bool = False) -> int:
    """Prints an error on standard error, with its code on request, and returns its exit status."""
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
        for line in lines_of(error, coded=coded):
            complain(line)
    return error.exit_status


def lines_of(error: MindError, *, coded: bool = False) -> list[str]:
    """Returns the lines of an error: `error: message`, with ` [CODE]` on request, and the hint."""
    message, hint = error.typed or (error.message, error.hint)
    lines = [f"error: {message}{f' [{error.code}]' if coded else ''}"]
    return [*lines, f"hint: {hint}"] if hint else lines


def complain(text: str) -> None:
    """Prints one line on standard error: without secrets, control characters and commands."""
    _write_error(safe(text))


def edit_text(text: str) -> str:
    """Returns a text as the user changed it in the editor; empty if the user saved none.

    Raises `Invalid` if the editor fails.
    """
    import click

    try:
        return (click.edit(text, require_save=True) or "").strip()
    except click.ClickException as error:
        raise Invalid(f"the editor failed: {error.message}", hint="set $EDITOR") from error


def ask_exactly(question: str) -> None:
    """Prints a question on standard error: hidden characters as escapes, and nothing replaced.

    Raises `Invalid` if it contains a secret, which would have to be redacted.
    """
    from mimo.guard.privacy import redacted

    scan = redacted(question)
    if scan.value != question:
        raise Invalid(
            f"the question contains a secret ({', '.join(scan.kinds)}): it can't be shown in full",
            hint="keep the secret in a variable of the environment, which "
            "`mind config --user procedures.env NAME` makes visible to procedures",
        )
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):
        columns = 0
    width = max(20, columns or 80)
    for line in question.split("\n"):
        for part in _folded(visible(line), width):
            _write_error(part)


_BAR = "    | "


def _folded(line: str, width: int) -> Iterator[str]:
    """Yields the parts of a line, of which all but the first begin with a bar.

    If the terminal wrapped it, a text with many blanks could imitate the next line.
    """
    part, cells = "", 0
    for char in line:
        # More than the terminal may need: the width of some characters depends on its font.
        size = 1 if char.isascii() else 2
        if cells + size >= width:
            word = part[part.rfind(" ") + 1 :]
            word = word if len(word) < len(part) // 2 else ""
            yield part.removesuffix(word)
            part = _BAR + word
            cells = sum(1 if each.isascii() else 2 for each in part)
        part, cells = part + char, cells + size
    yield part


def safe(text: str) -> str:
    """Returns a message on one line, without secrets, control characters and commands.

    It names memories by their handles.
    """
    from mimo.guard.privacy import redacted

    return inert(one_line(with_handles(redacted(text).value)))


def _write_error(line: str) -> None:
    """Writes a line to standard error, or nowhere if that is closed."""
    if output := _captured.get():
        output.errors.append(line)
        return
    try:
        if _shown:  # The line takes the place of a task's progress.
            sys.stderr.write(_ERASED)
            _shown.clear()
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except (OSError, AttributeError, ValueError):
        return


def interrupted(*notes: str) -> None:
    """Prints that the user stopped the command, in place of the progress line, and notes on it."""
    text = ": ".join(("interrupted", *map(safe, notes)))
    _write_error(f"{_ERASED}{text}" if is_terminal(sys.stderr) else text)


_ERASED = "\r\x1b[K"
_PROGRESS_SECONDS = 0.5
"""The time from the start of a task to its first line of progress, and between two lines."""

_due: dict[str, float] = {}
"""When the next line of each task is shown."""
_shown: set[str] = set()
"""The tasks of which a line is shown."""


def progress(task: str, done: int, total: int) -> None:
    """Shows the progress of a long task in one line, which is erased at the end."""
    line, now = "", time.monotonic()
    if done >= total:
        _due.pop(task, None)
        if task not in _shown:
            return
        _shown.remove(task)
    elif now < _due.setdefault(task, now + _PROGRESS_SECONDS):
        return
    else:
        from mimo.guard.privacy import redacted

        line = f"{one_line(redacted(task).value)} {done:,} of {total:,}"
        _due[task] = now + _PROGRESS_SECONDS
        _shown.add(task)
    sys.stderr.write(f"{_ERASED}{line}")
    sys.stderr.flush()


# The screen that renderers write to.


BELOW = 8
"""The columns before the lines that belong to a memory, below its title: those of its handle."""

LEAST_OF_A_TITLE, _LEAST_OF_A_PATH = 12, 20
"""The fewest columns to which a line is cut."""


class Styled(NamedTuple):
    """A piece of text with a role, which decides its colour."""

    text: str
    role: str
    unique: int = 0
    """Of a handle, the number of letters at its beginning that are highlighted."""
    least: int | None = None
    """The fewest columns to which a terminal may cut it to keep the line whole; None for all."""


Part: TypeAlias = str | Styled


strong = partial(Styled, role="strong")
"""Text that is emphasized, such as a title."""

dim = partial(Styled, role="dim")
"""Text of less weight, such as a date or a path."""

good = partial(Styled, role="good")
"""Text for a success."""

bad = partial(Styled, role="bad")
"""Text for a failure."""

warn = partial(Styled, role="warn")
"""Text for a warning."""

accent = partial(Styled, role="accent")
"""Text that the user may copy, such as a name, a command or a path."""


def ident(id: str) -> Styled:
    """Returns the name of a memory or an ingested file, which a screen prints as its handle."""
    return Styled(id, "id")


def fitted(part: Part, least: int = 0) -> Styled:
    """Returns a part that a terminal cuts if its line is too long: the last of a line first.

    A path loses its beginning, any other text its end. With 0 columns left, nothing is printed.
    """
    return part._replace(least=least) if isinstance(part, Styled) else Styled(part, "", 0, least)


def titled(text: str) -> Styled:
    """Returns the title of a memory, which a terminal cuts to keep the line whole."""
    return Styled(text, "strong", 0, LEAST_OF_A_TITLE)


def path(text: str) -> Styled:
    """Returns a path, perhaps with a line, which a terminal never wraps."""
    return Styled(text, "path", 0, _LEAST_OF_A_PATH)


def text_of(part: Part) -> str:
    """Returns a part's text on one line, without control characters."""
    return one_line(part.text if isinstance(part, Styled) else part)


class Setting(NamedTuple):
    """The facts around a result that its output depends on."""

    handle: Callable[[str], tuple[str, int]] = lambda id: (handle_of(id), 0)
    """Returns the handle of a memory, and the number of its letters that are unique."""
    now: datetime | None = None
    """The time from which ages are counted; None for the present."""
    zone: tzinfo = UTC
    """The zone of the times that are shown."""
    details: bool = False
    """True if the user asked for details with `--long`."""


class Screen:
    """The output of a renderer: plain text without escape sequences, for pipes.

    It removes control characters from all text. `TerminalScreen` adds colour.
    """

    setting = Setting()
    trust_command = "`mind trust --all`"
    """The command that approves everything; on a terminal it shows the texts first."""

    def __init__(self) -> None:
        """Starts with nothing written."""
        self._lines: list[str] = []

    def resolved(self, part: Part) -> Part:
        """Returns a part as it is printed: an id as the handle."""
        if not isinstance(part, Styled) or part.role != "id":
            return part
        handle, unique = self.setting.handle(part.text)
        return Styled(handle, "handle", unique)

    def line(self, *parts: Part, indent: int = 0) -> None:
        """Writes one line."""
        texts = map(text_of, map(self.resolved, parts))
        self._lines.append(inert((" " * indent + "".join(texts)).rstrip()))

    def text(self, body: str, *, terms: Sequence[str] = (), indent: int = 0) -> None:
        """Writes prose, wrapped on a terminal, with the words of `terms` highlighted."""
        for line in body.splitlines():
            self.line(line, indent=indent)

    def verbatim(self, body: str, *, commands: bool = False) -> None:
        """Writes text for another program line by line, never wrapped.

        With `commands`, workflow commands of a build service in the text stay active: its data is
        already escaped. Otherwise they are made inert.
        """
        for line in body.removesuffix("\n").split("\n") if body else ():
            text = text_of(line).rstrip()
            self._lines.append(text if commands else inert(text))

    def markdown(self, body: str) -> None:
        """Writes Markdown: formatted on a terminal, unchanged elsewhere."""
        self.text(body)

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Part]]) -> None:
        """Writes rows in columns, never cut, or nothing if there are no rows."""
        cells = [[" ".join(text_of(self.resolved(cell)).split()) for cell in row] for row in rows]
        if not cells:
            return
        all_rows = [list(headers), *cells]
        widths = [max(len(row[place]) for row in all_rows) for place in range(len(headers))]
        for row in all_rows:
            self.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))

    def finish(self, *, pager: bool) -> None:
        """Shows the written text, in a pager if it is longer than the terminal."""
        write("".join(f"{line}\n" for line in self._lines))

    def blank(self) -> None:
        """Writes an empty line."""
        self.line()

    def heading(self, title: str) -> None:
        """Writes a heading."""
        self.line(strong(title))

    def pairs(self, rows: Iterable[tuple[str, Part]], *, indent: int = 0) -> None:
        """Writes names and values, the values aligned."""
        listed = list(rows)
        width = max((len(name) for name, _ in listed), default=0)
        for name, value in listed:
            self.line(dim(f"{name}:".ljust(width + 2)), value, indent=indent)

    def note(self, message: str) -> None:
        """Prints a note on standard error."""
        complain(f"note: {message}")
