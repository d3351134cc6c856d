"""The model of the browser: its keys, the places that it shows, and the rows of a list."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mimo.api import Part, field, frozen

if TYPE_CHECKING:
    from mimo.api import ReviewItem

PAGE = 200
"""The number of rows that are read at a time."""

SMALLEST = (40, 10)
"""The columns and rows that the browser needs."""


# The keys.


@frozen
class Key:
    """Keys with the same action."""

    names: str
    """The names of the keys, separated by commas."""
    symbols: str
    """The keys as the help lists them."""
    action: str
    help: str
    label: str = ""
    """The word in the last line of the screen; empty if only the help lists the keys."""


KEYS = (
    Key(names="slash", symbols="/", action="search", help="Search as you type", label="search"),
    Key(
        names="enter",
        symbols="enter",
        action="open",
        help="Open the memory, follow the link, or resolve the item",
        label="open",
    ),
    Key(names="g", symbols="g", action="links", help="List the linked memories", label="graph"),
    Key(names="r", symbols="r", action="review", help="List the items to review", label="review"),
    Key(names="s", symbols="s", action="sessions", help="List earlier sessions, or memories again"),
    Key(names="e", symbols="e", action="edit", help="Edit in $EDITOR", label="edit"),
    Key(names="d", symbols="d", action="delete", help="Delete the memory", label="delete"),
    Key(names="u", symbols="u", action="undo", help="Undo the last change", label="undo"),
    Key(names="U", symbols="U", action="redo", help="Redo the change that was undone last"),
    Key(names="y", symbols="y", action="copy", help="Copy the id", label="copy id"),
    Key(
        names="escape,backspace,left",
        symbols="esc ← ⌫",
        action="leave",
        help="Go back, or clear the search",
        label="back",
    ),
    Key(names="j,down", symbols="j ↓", action="move(1)", help="Next row or line"),
    Key(names="k,up", symbols="k ↑", action="move(-1)", help="Previous row or line"),
    Key(names="pagedown,ctrl+d,space", symbols="pgdn ^d", action="turn(1)", help="Next page"),
    Key(names="pageup,ctrl+u", symbols="pgup ^u", action="turn(-1)", help="Previous page"),
    Key(names="home", symbols="home", action="ends(0)", help="First row or line"),
    Key(names="end,G", symbols="end G", action="ends(1)", help="Last row or line"),
    Key(
        names="tab,shift+tab",
        symbols="tab",
        action="switch",
        help="Switch between list and preview",
    ),
    Key(names="ctrl+r", symbols="^r", action="reload", help="Read the files again"),
    Key(names="ctrl+z", symbols="^z", action="suspend_process", help="Return to the shell for now"),
    Key(names="question_mark", symbols="?", action="help", help="Show the keys", label="help"),
    Key(names="q,ctrl+c", symbols="q ^c", action="quit", help="Quit", label="quit"),
)
"""All keys of the main screen, the most useful ones first."""

_FIXED_ACTIONS = ("help", "quit")
"""The actions that the last line names however narrow it is."""


@frozen
class Label:
    """A key in the last line of the screen, and its columns."""

    key: Key
    start: int
    end: int


def labels_within(width: int) -> list[Label]:
    """Returns the keys for a line of that width, those with less use left out first."""
    named = [key for key in KEYS if key.label]
    chosen = [key for key in named if key.action in _FIXED_ACTIONS]
    for key in named:
        if key not in chosen and sum(len(text_of(k)) + 2 for k in [*chosen, key]) <= width:
            chosen.append(key)
    start, labels = 1, []
    for key in sorted(chosen, key=KEYS.index):
        labels.append(Label(key=key, start=start, end=start + len(text_of(key))))
        start = labels[-1].end + 2
    return labels


def text_of(key: Key) -> str:
    """Returns a key with its label, such as `g graph`."""
    return f"{key.symbols.split()[0]} {key.label}"


# The places, and the rows of their lists.


class View(StrEnum):
    """The kind of a list."""

    MEMORIES = "memories"
    LINKS = "links"
    REVIEW = "review"
    SESSIONS = "sessions"


@frozen
class Row:
    """A row of a list."""

    identity: tuple[object, ...]
    """The values by which the row is found again after the list was read again."""
    id: str | None
    """The memory; None if there is none, such as behind a link to a missing memory."""
    title: str
    relation: tuple[Part, ...] = ()
    """The parts at the beginning, which are never cut: how a link leads here, or what is wrong."""
    lead: tuple[Part, ...] = ()
    """The parts before the title, which are left out if they do not fit, the last one first."""
    marks: tuple[Part, ...] = ()
    """The parts after the title, which are never cut."""
    extra: tuple[Part, ...] = ()
    """The parts at the end, which are left out if they do not fit."""
    item: ReviewItem | None = None
    session: tuple[str, int | None] | None = None
    """The id of an earlier session, and the turn to show; None for all of it."""


@frozen
class Place:
    """A list that the browser shows, and the chosen row."""

    view: View = View.MEMORIES
    query: str = ""
    about: Row | None = None
    """The memory whose links are listed."""
    cursor: int = 0


@frozen
class Page:
    """A part of a list."""

    rows: tuple[Row, ...]
    total: int
    offset: int = 0
    notice: str | None = None


@frozen
class Listed:
    """The known rows of a list, of which only some pages have been read."""

    total: int = 0
    rows: Mapping[int, Row] = field(default_factory=dict)

    def with_page(self, page: Page) -> Listed:
        """Returns the list with the rows of a page; one that is not full is the last."""
        end = page.offset + len(page.rows)
        total = page.total if len(page.rows) >= PAGE else end
        rows = {place: row for place, row in self.rows.items() if place < total}
        rows |= dict(enumerate(page.rows, page.offset))
        return Listed(total=total, rows=rows)

    def place_of(self, row: Row | None, near: int) -> int:
        """Returns where a row is, or the nearest place if it is no longer in the list."""
        if row is not None:
            for place, candidate in self.rows.items():
                if candidate.identity == row.identity:
                    return place
        return max(0, min(near, self.total - 1))


@frozen
class Choice:
    """One of the answers to a question."""

    key: str
    label: str
    value: Any
