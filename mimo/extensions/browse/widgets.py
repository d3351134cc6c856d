"""The parts of the browser's screen: the list, the preview, the lines around them, the dialogs.

All text is drawn line by line from texts of rich, so that nothing in a memory is read as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from mimo.api import Part, terminal
from mimo.extensions.browse.model import (
    KEYS,
    PAGE,
    Choice,
    Label,
    Listed,
    Row,
    labels_within,
    text_of,
)

STYLES = """
Screen { background: ansi_default; color: ansi_default; }
ModalScreen { background: transparent; }
Line { height: 1; background: ansi_default; color: ansi_default; }
#ask { height: 1; }
#slash { width: 3; }
Query, Query:focus {
    width: 1fr; height: 1; border: none; padding: 0;
    background: ansi_default; color: ansi_default;
}
Query > .input--placeholder { color: ansi_default; text-style: dim; }
Query > .input--cursor {
    background: ansi_default; color: ansi_default; text-style: reverse;
}
#body { height: 1fr; layout: vertical; }
Pane {
    background: ansi_default; color: ansi_default; overflow-x: hidden;
    scrollbar-size-vertical: 1; scrollbar-color: ansi_bright_black;
    scrollbar-color-hover: ansi_white; scrollbar-color-active: ansi_white;
    scrollbar-background: ansi_default; scrollbar-background-hover: ansi_default;
    scrollbar-background-active: ansi_default;
}
Rows { height: 2fr; }
Preview {
    height: 3fr; border-top: solid ansi_bright_black; border-title-color: ansi_default;
    border-title-background: ansi_default;
}
Preview:focus { border-top: heavy ansi_cyan; }
.wide #body { layout: horizontal; }
.wide Rows { width: 9fr; height: 100%; }
.wide Preview { width: 11fr; height: 100%; border-left: solid ansi_bright_black; }
.wide Preview:focus { border-left: heavy ansi_cyan; }
.low Preview { display: none; }
.low.reading Preview { display: block; }
.low.reading Rows { display: none; }
#message { display: none; }
.telling #message { display: block; }
#small { display: none; height: 1fr; }
.small #small { display: block; }
.small #top, .small #ask, .small #body, .small Footer, .small #message { display: none; }
"""
"""The arrangement and the colours of the screen: those of the terminal, whichever it has."""

_FEWEST_TITLE = 32
"""The columns that a title keeps; the parts before it are left out for them."""

_CHOSEN = Style(reverse=True)
_MARKED = Style(bold=True)


def joined(parts: Sequence[Part]) -> Text:
    """Returns parts as one text of rich."""
    return Text("").join(map(terminal.styled, parts))


def fitted(row: Row, width: int) -> Text:
    """Returns the text of a row for that width: its title is cut, its marks are not."""
    marks = joined(row.marks)
    lead, room = list(row.lead), max(0, width - _FEWEST_TITLE)
    while lead and sum(terminal.styled(part).cell_len for part in lead) > room:
        lead.pop()
    text = joined([*row.relation, *lead, "  " if lead else ""])
    title = terminal.styled(row.title)
    title.truncate(max(8, width - text.cell_len - marks.cell_len), overflow="ellipsis")
    text.append_text(title).append_text(marks)
    extra = joined(row.extra)
    return text.append_text(extra) if text.cell_len + extra.cell_len <= width else text


class Line(Widget):
    """A line of text."""

    text: reactive[Text] = reactive(Text, always_update=True)

    def render_line(self, y: int) -> Strip:
        """Returns the text, cut at the end."""
        text = self.text.copy() if y == 0 else Text()
        return strip_of(self, text, self.size.width)


def strip_of(widget: Widget, text: Text, width: int, style: Style | None = None) -> Strip:
    """Returns a text as a line of a widget, cut or padded to that width."""
    text.no_wrap = True
    text.truncate(width, overflow="ellipsis", pad=True)
    if style is not None:
        text.stylize(style)
    segments = text.render(widget.app.console, end="")
    return Strip(segments).adjust_cell_length(width, style).simplify()


class Footer(Line):
    """The last line of the screen: keys, which can be clicked."""

    labels: Sequence[Label] = ()

    def on_resize(self, event: events.Resize) -> None:
        """Shows the keys that the new width has room for."""
        self.labels = labels_within(event.size.width)
        text = Text(" ")
        for label in self.labels:
            key, _, word = text_of(label.key).partition(" ")
            text.append(key, _MARKED).append(f" {word}  ")
        self.text = text

    async def on_click(self, event: events.Click) -> None:
        """Does what the clicked key does."""
        for label in self.labels:
            if label.start <= event.x < label.end:
                await self.app.run_action(label.key.action)


class Pane(ScrollView, can_focus=True, inherit_bindings=False):
    """A part of the screen that scrolls by lines and is drawn line by line."""

    class Moved(Message):
        """The pane shows or marks another line."""

    def move(self, lines: int) -> None:
        """Scrolls by lines."""
        self.scroll_relative(y=lines, animate=False)

    def turn(self, pages: int) -> None:
        """Scrolls by pages."""
        self.move(pages * max(1, self.size.height - 1))

    def to_end(self, bottom: bool) -> None:
        """Scrolls to the first or to the last line."""
        self.scroll_to(y=self.max_scroll_y if bottom else 0, animate=False)


class Preview(Pane):
    """The text of the chosen memory."""

    def __init__(self, *, id: str) -> None:
        """Starts empty."""
        super().__init__(id=id)
        self._lines: Sequence[Text] = ()

    @property
    def text_width(self) -> int:
        """The columns of a line: those inside of the margins and the scroll bar."""
        return max(10, self.scrollable_content_region.width - 2)

    def show(self, lines: Sequence[Text], *, from_start: bool) -> None:
        """Shows other lines."""
        self._lines = lines
        self.virtual_size = Size(self.size.width, len(lines))
        if from_start:
            self.scroll_to(y=0, animate=False, immediate=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Returns a line of the text."""
        place = y + self.scroll_offset.y
        text = self._lines[place].copy() if place < len(self._lines) else Text()
        width = self.scrollable_content_region.width
        return strip_of(self, Text(" ").append_text(text), width)


class Rows(Pane):
    """The list, of which only the visible rows are read and drawn."""

    class Opened(Message):
        """The user clicked the chosen row again."""

    class Missing(Message):
        """Rows that are visible have not been read yet."""

        def __init__(self, offset: int) -> None:
            """Takes the first row of the page that is missing."""
            super().__init__()
            self.offset = offset

    def __init__(self, *, id: str) -> None:
        """Starts empty."""
        super().__init__(id=id)
        self.listed = Listed()
        self.cursor = 0
        self.empty = ""
        """The text that is shown if the list has no rows."""

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor; None if the list is empty or the row was not read yet."""
        return self.listed.rows.get(self.cursor)

    def want(self) -> None:
        """Asks for the page of the first visible row that was not read yet."""
        top = round(self.scroll_target_y)
        for place in range(top, min(self.listed.total, top + self.size.height)):
            if place not in self.listed.rows:
                self.post_message(self.Missing(place // PAGE * PAGE))
                return

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Asks for the rows that have become visible."""
        super().watch_scroll_y(old_value, new_value)
        self.want()

    def on_resize(self) -> None:
        """Asks for the rows that have become visible."""
        self.want()

    def show(self, listed: Listed, cursor: int) -> None:
        """Shows other rows."""
        self.listed = listed
        self.virtual_size = Size(self.size.width, listed.total)
        self.choose(cursor)
        self.want()

    def choose(self, place: int) -> None:
        """Moves the cursor to a row, or to the nearest one that exists."""
        self.cursor = max(0, min(place, self.listed.total - 1))
        self.scroll_to_region(
            Region(0, self.cursor, 1, 1), animate=False, force=True, immediate=True
        )
        self.refresh()
        self.post_message(self.Moved())

    def move(self, lines: int) -> None:
        """Moves the cursor by rows."""
        self.choose(self.cursor + lines)

    def to_end(self, bottom: bool) -> None:
        """Moves the cursor to the first or to the last row."""
        self.choose(self.listed.total - 1 if bottom else 0)

    def on_click(self, event: events.Click) -> None:
        """Chooses the clicked row, or opens it if it was chosen before."""
        place = event.y + self.scroll_offset.y
        if place >= self.listed.total:
            return
        if place == self.cursor:
            self.post_message(self.Opened())
        self.choose(place)

    def render_line(self, y: int) -> Strip:
        """Returns a row."""
        place, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if place >= self.listed.total:
            text = Text(f" {self.empty}" if y == 0 and not self.listed.total else "")
            return strip_of(self, text, width)
        row = self.listed.rows.get(place)
        if row is None:
            return strip_of(self, Text("  …"), width)
        text = fitted(row, width - 3)
        if place != self.cursor:
            return strip_of(self, Text("  ").append_text(text), width)
        # Without the styles of its parts, of which some are hard to read if reversed.
        mark = Text(f"> {text.plain}")
        return strip_of(self, mark, width, _CHOSEN if self.has_focus else _MARKED)

    def on_focus(self) -> None:
        """Draws the cursor of a list with the focus."""
        self.refresh()

    def on_blur(self) -> None:
        """Draws the cursor of a list without the focus."""
        self.refresh()


class Choose(ModalScreen[object]):
    """A question with some answers, each with a key; the result is None if there is no answer."""

    DEFAULT_CSS = """
    Choose { align: center middle; background: transparent; }
    Choose Vertical {
        width: auto; height: auto; max-width: 95%; max-height: 95%;
        border: round ansi_cyan; background: ansi_default; padding: 0 1;
    }
    Choose Line { background: ansi_default; height: 1; }
    """

    def __init__(self, question: Sequence[Part], choices: Sequence[Choice]) -> None:
        """Takes the question and its answers."""
        super().__init__()
        self._question = joined(question)
        self._choices = choices
        self._cursor = 0

    def compose(self) -> ComposeResult:
        """Yields the question and a line for each answer."""
        texts = [self._question, *map(self._answer, range(len(self._choices)))]
        width = max(text.cell_len for text in texts) + 2
        with Vertical():
            for text in texts:
                line = Line()
                line.styles.width = width
                line.text = text
                yield line

    def _answer(self, place: int) -> Text:
        choice, is_chosen = self._choices[place], place == self._cursor
        text = Text("> " if is_chosen else "  ")
        text.append(choice.key, _MARKED).append("  ").append_text(terminal.styled(choice.label))
        text.stylize(_CHOSEN if is_chosen else "")
        return text

    def _mark(self, place: int) -> None:
        self._cursor = place % len(self._choices)
        for number, line in enumerate(list(self.query(Line))[1:]):
            line.text = self._answer(number)

    def on_key(self, event: events.Key) -> None:
        """Gives the answer of a key, or moves to another answer."""
        event.stop()
        event.prevent_default()
        matches = [choice for choice in self._choices if choice.key == event.character]
        if matches:
            self.dismiss(matches[0].value)
        elif event.key in ("down", "j", "tab"):
            self._mark(self._cursor + 1)
        elif event.key in ("up", "k", "shift+tab"):
            self._mark(self._cursor - 1)
        elif event.key == "enter":
            self.dismiss(self._choices[self._cursor].value)
        elif event.key in ("escape", "q", "ctrl+c"):
            self.dismiss(None)

    def on_click(self, event: events.Click) -> None:
        """Gives the clicked answer; a click elsewhere gives none."""
        lines = list(self.query(Line))
        if event.widget in lines[1:]:
            self.dismiss(self._choices[lines.index(event.widget) - 1].value)
        elif event.widget is self:
            self.dismiss(None)


class Help(ModalScreen[None]):
    """The list of all keys."""

    DEFAULT_CSS = """
    Help { align: center middle; background: transparent; }
    Help Preview {
        width: 68; max-width: 100%; height: auto; max-height: 100%;
        border: round ansi_cyan; background: ansi_default;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q,question_mark,ctrl+c,enter", "dismiss", "Close")
    ]

    def compose(self) -> ComposeResult:
        """Yields the list."""
        preview = Preview(id="keys")
        preview.border_title = "keys"
        preview.styles.height = len(KEYS) + 2
        yield preview

    def on_mount(self) -> None:
        """Writes the list."""
        lines = [Text(f"{key.symbols:<10}", _MARKED).append(key.help, "not bold") for key in KEYS]
        preview = self.query_one(Preview)
        preview.show(lines, from_start=True)
        preview.focus()
