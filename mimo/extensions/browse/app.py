"""The browser itself: it asks for answers in threads, and shows them when they arrive."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, TypeVar

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.events import AppFocus, Key, Resize
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from mimo.api import Call, MemoryDetails, MindError, Part, bad, dim, good, replace, strong, terminal
from mimo.extensions.browse.changing import Changing
from mimo.extensions.browse.lanes import Halted, Job, Lane
from mimo.extensions.browse.model import KEYS, PAGE, SMALLEST, Listed, Page, Place, Row, View
from mimo.extensions.browse.reading import Reader, Run, message_of
from mimo.extensions.browse.widgets import STYLES, Footer, Help, Line, Pane, Preview, Rows, joined

T = TypeVar("T")

WIDE, LOW = 100, 16
"""The columns from which the preview is beside the list, and the rows from which both are shown."""

TYPING_SECONDS, MOVING_SECONDS = 0.15, 0.06
"""The time without a key after which a query is sent, or a row is previewed."""

WATCHING_SECONDS = 2.0
MESSAGE_SECONDS = 8.0
CLOSING_SECONDS = 2.0


_PRIORITY_KEYS = ("ctrl+c", "tab", "shift+tab", "slash")
"""The keys that have another meaning in Textual itself, and the one whose next keys are text.

The action of such a key has run before the next key is looked at.
"""


class Answered(Message):
    """A thread has something to show."""

    def __init__(self, show: Callable[[], None]) -> None:
        """Takes the function that shows it."""
        super().__init__()
        self.show = show


class Query(Input):
    """The line with the query, from which the list can be moved, too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.move(1)"),
        Binding("up", "app.move(-1)"),
        Binding("pagedown", "app.turn(1)"),
        Binding("pageup", "app.turn(-1)"),
        Binding("escape", "app.leave"),
        Binding("enter", "app.leave_query"),
    ]


class Browser(App[None]):
    """The application."""

    AUTO_FOCUS: ClassVar[str | None] = "Rows"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(name, key.action, key.help, show=False, priority=name in _PRIORITY_KEYS)
        for key in KEYS
        for name in key.names.split(",")
    ]

    CSS = STYLES

    def __init__(self, call: Call, run: Run, query: str = "") -> None:
        """Takes an opened memory, the function that runs a command on it, and the first query."""
        super().__init__(ansi_color=True)
        self.reader = Reader(call, run, self._note_progress)
        self.places = [Place(query=query)]
        self.rows = Rows(id="rows")
        self.preview = Preview(id="preview")
        self.failure: BaseException | None = None
        """An error of the browser itself."""
        self._lists = Lane("list", latest=True)
        self._previews = Lane("preview", latest=True)
        self.changing = Changing(self, self.reader)
        self._typing: Timer | None = None
        self._moving: Timer | None = None
        self._telling: Timer | None = None
        self._notice = ""
        self._previewed: tuple[object, ...] | None = None
        self._opened: Row | None = None
        """The row whose preview counts as a use of the memory."""

    @property
    def place(self) -> Place:
        """The list that is shown."""
        return self.places[-1]

    def compose(self) -> ComposeResult:
        """Yields the parts of the screen from the top down."""
        yield Line(id="small")
        yield Line(id="top")
        with Horizontal(id="ask"):
            yield Line(id="slash")
            yield Query(self.place.query, placeholder="search", id="query", select_on_focus=False)
        with Container(id="body"):
            yield self.rows
            yield self.preview
        yield Line(id="message")
        yield Footer(id="footer")

    def on_mount(self) -> None:
        """Asks for the first list."""
        self.theme = "ansi-dark" if "ansi-dark" in self.available_themes else "textual-ansi"
        self.query_one("#slash", Line).text = Text(" / ", "bold")
        self.rows.empty = "reading…"
        self.set_interval(WATCHING_SECONDS, self._watch)
        self.app_resume_signal.subscribe(self, self._come_back)
        self._read()

    def on_unmount(self) -> None:
        """Stops the threads."""
        for lane in (self._lists, self._previews, self.changing.lane):
            lane.close(CLOSING_SECONDS)

    # Answers of threads.

    @on(Answered)
    def _show_answer(self, message: Answered) -> None:
        if self.rows.is_attached:  # The last answers may come while the screen is taken apart.
            message.show()

    def _after(self, seconds: float, act: Callable[[], None]) -> Timer:
        """Acts after some time, unless the browser ends before."""
        return self.set_timer(seconds, lambda: act() if self.rows.is_attached else None)

    def ask(self, lane: Lane, work: Callable[[Halted], T], show: Callable[[T], None]) -> None:
        """Lets a thread do the work, and shows the result, or the error in the line above keys."""

        def done(result: T | MindError) -> None:
            if isinstance(result, MindError):
                self.post_message(Answered(partial(self.tell_error, result)))
            else:
                self.post_message(Answered(partial(show, result)))

        lane.put(Job(work=work, done=done))

    def _note_progress(self, task: str, done: int, total: int) -> None:
        """Shows the progress of long work, which a thread reports."""
        if total >= 200 and (done % (total // 100) == 0 or done == total):
            text = f"{task} {done:,} of {total:,}" if done < total else ""
            self.post_message(Answered(partial(self.tell, (dim(text),))))

    def tell(self, parts: Sequence[Part]) -> None:
        """Shows a message for some seconds; an empty one removes the last."""
        if self._telling:
            self._telling.stop()
        self.query_one("#message", Line).text = Text(" ").append_text(joined(parts))
        self.screen_stack[0].set_class(any(parts), "telling")
        self._telling = self._after(MESSAGE_SECONDS, partial(self.tell, ()))

    def tell_error(self, error: MindError) -> None:
        """Shows an error with its hint."""
        self.tell((bad("error: "), message_of(error)))
        self._show_top()

    # The list.

    def _read(self, offset: int = 0, *, afresh: bool = False) -> None:
        """Reads the rows of the place from `offset`; if `afresh`, no others stay."""
        place = self.place
        work = partial(self.reader.page, place, offset)
        self.ask(self._lists, work, partial(self._show_page, place, afresh=afresh))
        self._after(0.3, self._show_top)

    def _show_page(
        self, place: Place, page: Page, *, afresh: bool = False, again: bool = False
    ) -> None:
        if replace(place, cursor=0) != replace(self.place, cursor=0):
            return
        chosen = self.rows.chosen if again else None
        previous = Listed() if afresh or again else self.rows.listed
        listed = previous.with_page(page)
        self._notice = page.notice or ""
        self.rows.empty = _empty(place)
        self.rows.show(listed, listed.place_of(chosen, self.rows.cursor))
        self._show_top()

    @on(Rows.Missing)
    def _read_missing(self, message: Rows.Missing) -> None:
        if not self._lists.is_busy:
            self._read(message.offset)

    def _go(self, place: Place) -> None:
        """Shows another list in place of the current one."""
        self.places[-1] = replace(self.place, cursor=self.rows.cursor)
        self.places.append(place)
        self._arrive()

    def _arrive(self) -> None:
        """Reads the list of a place that was just reached."""
        self._notice = ""
        self.rows.empty = "reading…"
        self.rows.show(Listed(), 0)
        self.rows.cursor = self.place.cursor
        self.focus_list()
        self._read(self.place.cursor // PAGE * PAGE)

    def _show_top(self) -> None:
        """Writes the first line: the project, the place, and the number of rows."""
        place, total = self.place, self.rows.listed.total
        left = Text(" ").append_text(joined([strong(self.reader.name), *_heading(place)]))
        number = f"{min(self.rows.cursor + 1, total):,}/{total:,}" if total else ""
        busy = "…" if self._lists.is_busy else ""
        right = joined([dim(f"{self._notice}  ")] if self._notice else [])
        right.append(f"{busy} {number} ")
        line = self.query_one("#top", Line)
        room = max(0, self.size.width - right.cell_len)
        left.truncate(room, overflow="ellipsis", pad=True)
        line.text = left.append_text(right)

    def _watch(self) -> None:
        """Reads the list again if another process may have changed files."""
        if self.app_focus and not self._lists.is_busy and len(self.screen_stack) == 1:
            self.ask(self._lists, lambda _: self.reader.has_changed(), self._reload_changed)

    @on(AppFocus)
    def _watch_again(self) -> None:
        self._watch()

    def _come_back(self, _: object) -> None:
        """Draws everything again after another program had the terminal."""
        for widget in self.screen.query("*"):
            widget.refresh()
        self.action_reload()

    def _reload_changed(self, has_changed: bool) -> None:
        if has_changed:
            self.action_reload()
        else:
            self.rows.want()  # Its request may have met a busy thread.

    # The query.

    @on(Input.Changed, "#query")
    def _note_query(self, message: Input.Changed) -> None:
        if message.value == self.places[0].query:
            return
        del self.places[1:]
        self.places[0] = Place(view=self.places[0].view, query=message.value)
        if self._typing:
            self._typing.stop()
        self._typing = self._after(TYPING_SECONDS, self._search)

    def _search(self) -> None:
        self.rows.cursor = 0
        self._read(afresh=True)

    # The preview.

    @on(Pane.Moved)
    def _plan_preview(self) -> None:
        self._show_top()
        if self._moving:
            self._moving.stop()
        self._moving = self._after(MOVING_SECONDS, self._read_preview)

    def _read_preview(self) -> None:
        row = self.rows.chosen
        if row is None:
            self._previews.drop()
            self._show_preview(None, ())
            return
        work = partial(
            self._preview_of, row, self.place.query, self.preview.text_width, row == self._opened
        )
        self._opened = None
        self.ask(self._previews, work, partial(self._show_preview, row))

    def _preview_of(
        self, row: Row, query: str, width: int, counted: bool, halted: Halted
    ) -> tuple[Text, ...]:
        """Returns the title and the lines of a preview."""
        try:
            title = terminal.styled(self.reader.handle(row.id)) if row.id else Text()
            return title, *self.reader.preview(row, query, width, halted, counted=counted)
        except MindError as error:  # Such as a memory that was removed meanwhile.
            return Text(), joined([bad("error: "), message_of(error)])

    def view(self, id: str) -> None:
        """Shows a memory in the preview, which is not in the list."""
        row = Row(identity=(id,), id=id, title=id)
        work = partial(self._preview_of, row, "", self.preview.text_width, True)
        self.ask(self._previews, work, partial(self._show_preview, row))

    def preview_to_approve(
        self, id: str, lane: Lane, callback: Callable[[MemoryDetails], None]
    ) -> None:
        """Shows the whole text of a memory in the preview."""
        width = self.preview.text_width

        def show(read: tuple[MemoryDetails, tuple[Text, ...]]) -> None:
            memory, lines = read
            self._previews.drop()
            if self._moving:
                self._moving.stop()  # Otherwise the preview of the row would replace the text.
            self._show_preview(Row(identity=(id, "whole"), id=id, title=id), (Text(), *lines))
            self.preview.border_title = memory.title
            callback(memory)

        self.ask(lane, lambda _: self.reader.to_approve(id, width), show)

    def shows_whole(self, id: str) -> bool:
        """Returns whether the preview still shows the text of `preview_to_approve`."""
        return self._previewed == (id, "whole")

    def _show_preview(self, row: Row | None, lines: Sequence[Text]) -> None:
        title, *body = lines or (Text(),)
        is_new_row = row is None or self._previewed != row.identity
        self._previewed = row.identity if row else None
        self.preview.border_title = title.plain
        self.preview.show(body, from_start=is_new_row)

    @on(Rows.Opened)
    def _open_clicked(self) -> None:
        self.action_open()

    # The sizes.

    def on_resize(self, event: Resize) -> None:
        """Arranges the parts for the new size."""
        width, height = event.size
        is_small = width < SMALLEST[0] or height < SMALLEST[1]
        screen = self.screen_stack[0]
        screen.set_class(width >= WIDE, "wide")
        screen.set_class(height < LOW, "low")
        screen.set_class(is_small, "small")
        needed = f"{SMALLEST[0]}×{SMALLEST[1]}"
        small = f"too small: {width}×{height}, needs {needed}"
        self.query_one("#small", Line).text = Text(small)
        self.call_after_refresh(self._plan_preview)

    def focus_list(self) -> None:
        """Gives the keys to the list."""
        self.screen_stack[0].set_class(False, "reading")
        self.rows.screen.set_focus(self.rows)

    # The actions of keys.

    @property
    def _pane(self) -> Pane:
        """The part that the keys for moving move."""
        return self.preview if self.preview.has_focus else self.rows

    def action_move(self, lines: int) -> None:
        """Moves by rows or lines."""
        self._pane.move(lines)

    def action_turn(self, pages: int) -> None:
        """Moves by pages."""
        self._pane.turn(pages)

    def action_ends(self, bottom: int) -> None:
        """Moves to the first or the last row or line."""
        self._pane.to_end(bool(bottom))

    def action_switch(self) -> None:
        """Gives the keys to the other one of list and preview."""
        if self.rows.has_focus:
            self.screen_stack[0].set_class(True, "reading")
            self.screen.set_focus(self.preview)
        else:
            self.focus_list()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Returns whether an action is possible: a slash in the query is text."""
        return action != "search" or (
            len(self.screen_stack) == 1 and self.focused is not self.query_one(Query)
        )

    def action_search(self) -> None:
        """Gives the keys to the query."""
        if len(self.places) > 1:
            del self.places[1:]
            self._arrive()
        self.screen_stack[0].set_class(False, "reading")
        self.screen.set_focus(self.query_one(Query))

    def action_leave_query(self) -> None:
        """Gives the keys to the list."""
        self.focus_list()

    def action_leave(self) -> None:
        """Leaves the preview, the query, the list or the search, whichever is innermost."""
        if not self.rows.has_focus:
            self.focus_list()
        elif len(self.places) > 1:
            self.places.pop()
            self._arrive()
        elif self.place.query:
            self.query_one(Query).value = ""
        elif self.place.view is View.SESSIONS:
            self.action_sessions()

    def action_reload(self) -> None:
        """Reads the list again."""
        place, offset = self.place, self.rows.cursor // PAGE * PAGE
        work = partial(self.reader.page, place, offset)
        self.ask(self._lists, work, partial(self._show_page, place, again=True))

    def action_help(self) -> None:
        """Shows the keys."""
        self.push_screen(Help())

    def action_open(self) -> None:
        """Opens the chosen row."""
        row = self.rows.chosen
        if row is None:
            return
        if self.place.view is View.REVIEW and row.item is not None:
            self.changing.offer(row.item)
        elif self.place.view is View.LINKS:
            self.action_links()
        else:
            self._opened = row
            self._read_preview()
            if not self.preview.has_focus:
                self.action_switch()

    def action_links(self) -> None:
        """Lists the links of the chosen memory."""
        if (row := self._chosen_memory()) is not None:
            self._go(Place(view=View.LINKS, about=row))

    def action_review(self) -> None:
        """Lists the items to review."""
        if self.place.view is not View.REVIEW:
            self._go(Place(view=View.REVIEW))

    def action_sessions(self) -> None:
        """Lists earlier sessions, in which the query then searches; or the memories again."""
        if not self.reader.has_sessions:
            self.tell((dim("earlier sessions are not kept: "), "mind config sessions.enabled on"))
            return
        is_shown = self.places[0].view is View.SESSIONS
        view = View.MEMORIES if is_shown else View.SESSIONS
        self.places[:] = [Place(view=view, query=self.places[0].query)]
        self._arrive()

    def action_copy(self) -> None:
        """Copies the id of the chosen memory."""
        row = self.rows.chosen
        session = f"session:{row.session[0]}" if row and row.session else ""
        if session or (row := self._chosen_memory()) is not None:
            name = session or (row and row.id) or ""
            self.copy_to_clipboard(name)
            self.tell((good("✓ "), f"copied {name}"))

    def _chosen_memory(self) -> Row | None:
        """Returns the chosen row if it is a memory; else shows that it is none."""
        row = self.rows.chosen
        if row is not None and row.id is None:
            self.tell((bad("error: "), f"“{row.title}” is not a memory"))
            return None
        return row

    def action_edit(self) -> None:
        """Opens the chosen memory, or the text of the chosen proposal, in the user's editor."""
        item = self.rows.chosen.item if self.rows.chosen else None
        if item is not None and item.kind == "proposal":
            self.changing.press(item, "e")
        elif (row := self._chosen_memory()) is not None:
            self.changing.change("edit", {"id": row.id})

    def action_delete(self) -> None:
        """Removes the chosen memory."""
        if (row := self._chosen_memory()) is not None:
            self.changing.change("rm", {"id": row.id})

    def action_undo(self) -> None:
        """Undoes the last change, after a question if it was not made here."""
        self.changing.undo()

    def action_redo(self) -> None:
        """Redoes the change that was undone last."""
        self.changing.redo()

    def on_key(self, event: Key) -> None:
        """Resolves an item of the review by the key of its action, if it has no other meaning.

        A text that is being read in the preview can be approved from there.
        """
        row, key = self.rows.chosen, event.character or ""
        can_press = self.rows.has_focus or (self.preview.has_focus and key == "t")
        if len(self.screen_stack) == 1 and can_press and row is not None and row.item is not None:
            self.changing.press(row.item, key)

    # Errors of the browser itself.

    def _handle_exception(self, error: Exception) -> None:
        self.failure = error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Ends the browser without printing the traceback, which may contain memories."""
        self._close_messages_no_wait()


def _heading(place: Place) -> list[Part]:
    if place.view is View.REVIEW:
        return [dim(" > "), "review"]
    if place.about is not None:
        return [dim(" > links of "), place.about.title]
    if place.view is View.SESSIONS:
        return [dim(" > "), "search of sessions" if place.query.strip() else "sessions"]
    return [dim(" > "), "search" if place.query.strip() else "memories"]


def _empty(place: Place) -> str:
    """Returns the text for a list without rows."""
    if place.view is View.REVIEW:
        return "nothing to review"
    if place.view is View.LINKS:
        return "no memory is linked with this one"
    if place.query.strip():
        return "nothing found; try other words"
    if place.view is View.SESSIONS:
        return "no sessions; `mind sessions index` reads them"
    return "no memories; `mind add TEXT` stores one"


def run(call: Call, run: Run, query: str, *, colour: bool) -> int:
    """Runs the browser until the user quits; returns the number of changes.

    Raises the error that ended the browser, if one did.
    """
    if colour:
        os.environ.pop("NO_COLOR", None)  # It may be empty, which counts as unset elsewhere.
    else:
        os.environ["NO_COLOR"] = "1"
    browser = Browser(call, run, query)
    browser.run()
    if browser.failure is not None:
        raise browser.failure
    return browser.changing.count
