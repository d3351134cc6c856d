"""The screen that renderers write to: plain text in a pipe, colour on a terminal."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from mimo.rendering import complain
from mimo.text.clean import inert, one_line


class Styled(NamedTuple):
    """A piece of text with a role, which decides its colour."""

    text: str
    role: str


Part: TypeAlias = str | Styled


def strong(text: str) -> Styled:
    """Returns text that is emphasized, such as a title."""
    return Styled(text, "strong")


def dim(text: str) -> Styled:
    """Returns text of less weight, such as an id, a date or a path."""
    return Styled(text, "dim")


def good(text: str) -> Styled:
    """Returns text for a success."""
    return Styled(text, "good")


def bad(text: str) -> Styled:
    """Returns text for a failure."""
    return Styled(text, "bad")


def warn(text: str) -> Styled:
    """Returns text for a warning."""
    return Styled(text, "warn")


def accent(text: str) -> Styled:
    """Returns text that the user may copy, such as a name, a command or a path."""
    return Styled(text, "accent")


def text_of(part: Part) -> str:
    """Returns a part's text on one line, without control characters."""
    return one_line(part.text if isinstance(part, Styled) else part)


class Screen(ABC):
    """The output of a renderer. It removes control characters from all text."""

    @abstractmethod
    def line(self, *parts: Part, indent: int = 0) -> None:
        """Write one line."""

    @abstractmethod
    def text(self, body: str, *, terms: Sequence[str] = (), indent: int = 0) -> None:
        """Write prose, wrapped on a terminal, with the words of `terms` highlighted."""

    @abstractmethod
    def markdown(self, body: str) -> None:
        """Write Markdown: formatted on a terminal, unchanged elsewhere."""

    @abstractmethod
    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Part]]) -> None:
        """Write rows in columns, or nothing if there are no rows."""

    @abstractmethod
    def finish(self, *, pager: bool) -> None:
        """Show the written text, in a pager if it is longer than the terminal."""

    @abstractmethod
    def verbatim(self, body: str, *, commands: bool = False) -> None:
        """Write text for another program line by line, never wrapped.

        With `commands`, workflow commands of a build service in the text stay active: its data is
        already escaped. Otherwise they are made inert.
        """

    def blank(self) -> None:
        """Write an empty line."""
        self.line()

    def heading(self, title: str) -> None:
        """Write a heading."""
        self.line(strong(title))

    def pairs(self, rows: Iterable[tuple[str, Part]], *, indent: int = 0) -> None:
        """Write names and values, the values aligned."""
        listed = list(rows)
        width = max((len(name) for name, _ in listed), default=0)
        for name, value in listed:
            self.line(dim(f"{name}:".ljust(width + 2)), value, indent=indent)

    def note(self, message: str) -> None:
        """Print a note on standard error."""
        complain(f"note: {message}")


class PlainScreen(Screen):
    """Plain text without escape sequences, for pipes and simple terminals."""

    def __init__(self) -> None:
        """Start with nothing written."""
        self._lines: list[str] = []

    def line(self, *parts: Part, indent: int = 0) -> None:
        """Write one line."""
        self._lines.append(inert((" " * indent + "".join(map(text_of, parts))).rstrip()))

    def text(self, body: str, *, terms: Sequence[str] = (), indent: int = 0) -> None:
        """Write prose line by line."""
        for line in body.splitlines():
            self.line(line, indent=indent)

    def verbatim(self, body: str, *, commands: bool = False) -> None:
        """Write each line as it is."""
        for line in body.removesuffix("\n").split("\n") if body else ():
            shown = text_of(line).rstrip()
            self._lines.append(shown if commands else inert(shown))

    def markdown(self, body: str) -> None:
        """Write Markdown unchanged."""
        self.text(body)

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Part]]) -> None:
        """Write rows in aligned columns, never cut."""
        cells = [[" ".join(text_of(cell).split()) for cell in row] for row in rows]
        if not cells:
            return
        every = [list(headers), *cells]
        widths = [max(len(row[place]) for row in every) for place in range(len(headers))]
        for row in every:
            self.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))

    def finish(self, *, pager: bool) -> None:
        """Write everything to standard output."""
        from mimo.rendering import write

        write("".join(f"{line}\n" for line in self._lines))
