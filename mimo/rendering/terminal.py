"""The screen of a terminal: colour, tables and a pager, by rich."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mimo.memory.codec.document import is_formatted_soon
from mimo.rendering import BELOW, Part, Screen, Styled, page, text_of, write
from mimo.text.clean import HIDDEN, clean, compiled

STYLES = {
    "strong": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "accent": "cyan",
    "handle": "cyan",
    "path": "dim",
}
UNIQUE, REST = "bold magenta", "dim"
"""The letters of a handle that are unique, and those after them."""
MARK = "bold yellow"

LEAST_WIDTH = 10


class TerminalScreen(Screen):
    """A screen with colour, whose pager opens if the text is longer than the terminal."""

    trust_command = "`mind trust`"

    def __init__(
        self, *, colour: bool, width: int | None = None, height: int | None = None
    ) -> None:
        """Starts with nothing written; the default size is that of the terminal."""
        self._written = StringIO()
        self._console = Console(
            file=self._written,
            force_terminal=True,
            no_color=not colour,
            # With a size it is the terminal of another process, whose variables are not here.
            color_system="auto" if width is None else "standard",
            width=width,
            height=height,
            markup=False,
            highlight=False,
            emoji=False,
        )
        # The environment may have any number in COLUMNS; rich fails at a few.
        self._console.width = max(self._console.width, LEAST_WIDTH)

    def line(self, *parts: Part, indent: int = 0) -> None:
        """Writes one line, whose wrapped parts keep its indentation, or are below the title."""
        if not parts:
            self._console.print()
            return
        width = self._console.width - indent
        text = Text.assemble(*self._fitted(parts, width))
        begins = parts[0].role if isinstance(parts[0], Styled) else ""
        if begins in ("id", "handle") and text.cell_len > width:
            head = text.wrap(self._console, width)[0]
            self._console.print(Padding(head, (0, 0, 0, indent), expand=False))
            text = text[len(head.plain) :]
            text.plain, indent = text.plain.lstrip(), indent + BELOW
        self._console.print(Padding(text, (0, 0, 0, indent), expand=False))

    def _fitted(self, parts: Sequence[Part], width: int) -> list[Text]:
        """Returns the pieces of a line, cut as far as they may be if it is wider than `width`."""
        resolved = list(map(self.resolved, parts))
        pieces = list(map(styled, resolved))
        over = sum(piece.cell_len for piece in pieces) - width
        for part, piece in reversed(list(zip(resolved, pieces, strict=True))):
            if over <= 0:
                break
            if isinstance(part, Styled) and part.least is not None:
                length = piece.cell_len
                _cut(piece, max(part.least, length - over), from_start=part.role == "path")
                over -= length - piece.cell_len
        return pieces

    def text(self, body: str, *, terms: Sequence[str] = (), indent: int = 0) -> None:
        """Writes prose, wrapped, with the words of `terms` highlighted."""
        text = Text(clean(body).expandtabs(4))
        mark(text, terms)
        self._console.print(Padding(text, (0, 0, 0, indent), expand=False))

    def verbatim(self, body: str, *, commands: bool = False) -> None:
        """Writes text unchanged; the terminal wraps long lines, so that they can be copied."""
        self._console.print(Text(clean(body)), soft_wrap=True)

    def markdown(self, body: str) -> None:
        """Writes Markdown, formatted unless that takes long."""
        if is_formatted_soon(clean(body)):
            self._console.print(Markdown(clean(body), hyperlinks=False))
        else:
            self.verbatim(body)

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Part]]) -> None:
        """Writes rows as a table that fits the width."""
        listed = list(rows)
        if not listed:
            return
        table = Table(*headers, box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for column in table.columns:
            column.overflow = "fold"
        for row in listed:
            table.add_row(*[styled(self.resolved(cell)) for cell in row])
        self._console.print(table)

    @property
    def written(self) -> str:
        """The written text, with escape sequences for its colours."""
        # Markdown entities such as `&#x202e;` have become characters only here.
        return compiled(f"[{HIDDEN}]").sub("", self._written.getvalue())

    def finish(self, *, pager: bool) -> None:
        """Prints the written text, in a pager if it is longer than the terminal."""
        text = self.written
        if pager and text.count("\n") >= self._console.height:
            page(text)
        else:
            write(text)


def mark(text: Text, words: Iterable[str]) -> None:
    """Highlights words in a text."""
    # Scripts without spaces have no boundaries of words.
    each = [rf"\b{re.escape(w)}\b" if w.isascii() else re.escape(w) for w in words if w.strip()]
    if each:
        text.highlight_regex(rf"(?i){'|'.join(each)}", MARK)


def _cut(piece: Text, width: int, *, from_start: bool) -> None:
    """Cuts a piece of a line to a number of columns, with `…` for the missing part."""
    if piece.cell_len <= width:
        return
    if not from_start:
        piece.truncate(width, overflow="ellipsis")
        piece.plain = piece.plain if width else ""
        return
    text, columns = piece.plain, 0
    start = len(text)
    while start and (columns := columns + cell_len(text[start - 1])) < width:
        start -= 1
    piece.plain = f"…{text[start:]}" if width else ""


def styled(part: Part) -> Text:
    """Returns a part as text of rich."""
    if isinstance(part, Styled) and part.unique:
        text = text_of(part)
        return Text.assemble((text[: part.unique], UNIQUE), (text[part.unique :], REST))
    return Text(text_of(part), style=STYLES.get(part.role, "") if isinstance(part, Styled) else "")
