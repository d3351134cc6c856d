"""The answers of commands, as rows of the list and as lines of the preview.

Every answer comes from a command, so it passes the same checks as on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from rich.ansi import AnsiDecoder
from rich.text import Text

from mimo.api import (
    AmbiguousId,
    Arc,
    Call,
    Conflict,
    Console,
    LinkedMemory,
    LinkGraph,
    MemoryDetails,
    MemoryRow,
    MemoryRows,
    MindError,
    NotFound,
    Part,
    Review,
    ReviewItem,
    Screen,
    SearchResult,
    SearchResults,
    Setting,
    Undone,
    accent,
    actions,
    age,
    arrow_of,
    bad,
    count,
    day,
    dim,
    earlier,
    fitted,
    frozen,
    ident,
    kind_of,
    matching_words,
    replace,
    row_labels,
    setting_of,
    show_item,
    show_on,
    strong,
    tagged,
    terminal,
    type_mark,
    undoing,
    use_zone,
    warn,
)
from mimo.extensions.browse.lanes import Halted
from mimo.extensions.browse.model import PAGE, Page, Place, Row, View

if TYPE_CHECKING:
    from mimo.api import Progress

T = TypeVar("T")

Run = Callable[[Call, str, Mapping[str, Any]], object]
"""Runs the command at a path of the command line; None if the user changed nothing."""

MOST_MATCHES = 100
"""The number of matches that are listed."""

MOST_SESSIONS, MOST_PROMPTS = 1000, 50
"""The number of sessions that are listed, and of prompts of one that is shown whole."""

MOST_TEXT = 50_000
"""Characters of a memory that the preview shows; the editor has all of them."""

MOST_LINKS = 200


class Pane(terminal.TerminalScreen):
    """A screen whose lines are shown in a part of the terminal; notes are among them."""

    def __init__(self, width: int, setting: Setting) -> None:
        """Starts with nothing written."""
        super().__init__(colour=True, width=width, height=1)
        self.setting = setting

    def note(self, message: str) -> None:
        """Writes a note, which would otherwise go to standard error."""
        self.line(dim(message))

    def lines(self) -> tuple[Text, ...]:
        """Returns the written lines."""
        return tuple(AnsiDecoder().decode(self.written))


@frozen
class Done:
    """The result of a change."""

    message: str
    change: str | None = None
    """The id by which it can be undone."""


class Reader:
    """The memory that is browsed; may be used by several threads at once."""

    def __init__(self, call: Call, run: Run, progress: Progress) -> None:
        """Takes an opened memory, and the function that runs a command on it."""
        self._call = call
        self._run = run
        self._progress = progress
        self._renewing = Lock()
        self.unapproved = ""
        """The digest of the texts that were not approved when the review was listed."""
        use_zone(call.mind.zone)

    @property
    def name(self) -> str:
        """The name of the project."""
        return self._call.mind.project.name

    def close(self) -> None:
        """Closes the memory."""
        self._call.mind.close()

    def run(
        self,
        path: str,
        arguments: Mapping[str, Any],
        halted: Halted | None = None,
        *,
        counted: bool = False,
    ) -> object:
        """Returns the result of a command; None if the user changed nothing in the editor.

        With `counted`, the memories in the answer count as used.
        """
        with self._renewing:
            if self._call.mind.is_outdated:
                old_mind = self._call.mind
                self._call = self._call.on(old_mind.reopened())
                old_mind.close()
        # Questions and partial output belong to a command that writes to the terminal.
        console = Console(progress=self._progress, halted=halted)
        caller = replace(self._call.caller, counts_uses=counted)
        return self._run(Call(self._call.mind, caller, console), path, arguments)

    def has_changed(self) -> bool:
        """Returns whether a file may have changed since it was last read."""
        self._call.mind.watch()
        return self._call.mind.watched is None or self._call.mind.watched.changed()

    # Lists.

    def page(self, place: Place, offset: int, halted: Halted) -> Page:
        """Returns the rows of a list from `offset`."""
        use_zone(self._call.mind.zone)
        pane = self._pane(80)
        page = self._page(pane, place, offset, halted)
        rows = (replace(row, lead=tuple(map(pane.resolved, row.lead))) for row in page.rows)
        return replace(page, rows=tuple(rows))

    def _page(self, pane: Pane, place: Place, offset: int, halted: Halted) -> Page:
        if place.view is View.REVIEW:
            review = self._answer(Review, "review", {"limit": 1000}, halted)
            self.unapproved = review.arrived.digest if review.arrived else ""
            return Page(rows=tuple(map(_item_row, review.items)), total=len(review.items))
        if place.about is not None:
            graph = self._graph(place.about.id or "", halted)
            rows = tuple(_neighbours(graph))
            return Page(rows=rows, total=len(rows))
        if place.view is View.SESSIONS:
            return self._sessions(pane, place.query.strip(), halted)
        if place.query.strip():
            asked = {"query": place.query.strip(), "limit": MOST_MATCHES}
            results = self._answer(SearchResults, "search", asked, halted)
            rows = tuple(_match_row(pane, row) for row in results.results)
            return Page(rows=rows, total=len(rows), notice=results.notice)
        asked = {"limit": PAGE, "offset": offset}
        listed = self._answer(MemoryRows, "list", asked, halted)
        unreadable = f"{count(listed.unreadable, 'file')} unreadable" if listed.unreadable else None
        return Page(
            rows=tuple(_memory_row(pane, row) for row in listed.memories),
            total=listed.total,
            offset=offset,
            notice=unreadable,
        )

    def _sessions(self, pane: Pane, query: str, halted: Halted) -> Page:
        """Returns the sessions that match, or the latest: an extension has them."""
        asked = {"query": query, "limit": MOST_MATCHES} if query else {"limit": MOST_SESSIONS}
        listed: Any = self.run("sessions search" if query else "sessions", asked, halted)
        rows = tuple(_session_row(pane, row) for row in listed.sessions)
        return Page(rows=rows, total=len(rows), notice=listed.notice)

    @property
    def has_sessions(self) -> bool:
        """True if the user keeps earlier sessions."""
        return earlier.sessions_of(self._call.mind) is not None

    # Previews.

    def preview(
        self, row: Row, query: str, width: int, halted: Halted, *, counted: bool
    ) -> tuple[Text, ...]:
        """Returns the lines of a memory, or of an item of the review, for that width."""
        screen = self._pane(width)
        if row.item is not None:
            _show_item(row.item, screen)
            return screen.lines()
        if row.session is not None:
            session, around = row.session
            asked = {"session": session, **({"around": around} if around else {})}
            show_on(screen, self.run("sessions show", asked, halted))
            return _highlighted(screen.lines(), query)
        if row.id is None:
            screen.line(warn("this memory is missing"))
            return screen.lines()
        details = self._details(row.id, halted, counted=counted)
        links: tuple[Row, ...] = ()
        with suppress(AmbiguousId, NotFound):  # Only its chunks are in the graph.
            links = tuple(_neighbours(self._graph(row.id, halted)))
        _show_memory(details, links, screen)
        return _highlighted(screen.lines(), query)

    def to_approve(self, id: str, width: int) -> tuple[MemoryDetails, tuple[Text, ...]]:
        """Returns a memory and the lines of its whole text, to be read before it is approved."""
        memory, screen = self._details(id, None), self._pane(width)
        show_on(screen, memory)
        return memory, screen.lines()

    def approve(self, read: MemoryDetails) -> Done | None:
        """Approves a text that the user has read; returns None if it has changed since."""
        if self._details(read.id, None) != read:
            return None
        try:
            return self.change("trust", {"ids": [read.id], "digest": read.digest})
        except Conflict:
            return None

    def _details(self, id: str, halted: Halted | None, *, counted: bool = False) -> MemoryDetails:
        return self._answer(MemoryDetails, "show", {"id": id}, halted, counted=counted)

    # Changes.

    def change(
        self, path: str, arguments: Mapping[str, Any], item: ReviewItem | None = None
    ) -> Done:
        """Runs a command that changes something, and returns what it did.

        With `item`, it changes nothing unless that item of the review is still the same.
        """
        if item is not None:
            listed = {"kinds": [item.kind.value], "limit": 1000}
            if item not in self._answer(Review, "review", listed, None).items:
                return Done(message=actions.CHANGED)
        previous = self._last_change()
        result = self.run(path, arguments)
        if result is None:
            return Done(message="nothing changed")
        message, change = self._first_line(result), self._last_change()
        if change == previous:
            return Done(message=message)
        return Done(message=f"{message}; u undoes it", change=change)

    def undoable(self) -> Undone:
        """Returns the change that `undo` would undo. Raises `MindError` if there is none."""
        return self._answer(Undone, "undo", {"dry_run": True}, None)

    def undo(self, change: str) -> Done:
        """Undoes a change."""
        return self._done(
            self._answer(Undone, "undo", {"id": change}, None), "undone", "; U redoes it"
        )

    def redo(self) -> Done:
        """Redoes the change that was undone last. Raises `MindError` if there is none."""
        return self._done(self._answer(Undone, "redo", {}, None), "redone", "; u undoes it")

    def _done(self, undone: Undone, verb: str, hint: str) -> Done:
        command = undoing.name_of(undone.change.command) if undone.change else "nothing"
        return Done(message=f"{verb}: {command}{hint}", change=undone.redo)

    def _last_change(self) -> str | None:
        listed = self._answer(Undone, "undo", {"list": True, "limit": 1}, None)
        return listed.changes[0].id if listed.changes else None

    def handle(self, id: str) -> Part:
        """Returns the handle of a memory."""
        return self._pane(80).resolved(ident(id))

    def _pane(self, width: int) -> Pane:
        return Pane(width, setting_of(self._call.mind))

    def _first_line(self, result: object) -> str:
        """Returns the first line that a command would print."""
        pane = self._pane(1000)
        show_on(pane, result)
        return next((line.plain.strip() for line in pane.lines() if line.plain.strip()), "done")

    def _graph(self, id: str, halted: Halted | None) -> LinkGraph:
        about = {"id": id, "depth": 1, "limit": MOST_LINKS}
        return self._answer(LinkGraph, "graph", about, halted)

    def _answer(
        self,
        kind: type[T],
        path: str,
        arguments: Mapping[str, Any],
        halted: Halted | None,
        *,
        counted: bool = False,
    ) -> T:
        result = self.run(path, arguments, halted, counted=counted)
        if not isinstance(result, kind):
            raise TypeError(result)
        return result


# Rows.


def _memory_row(screen: Screen, row: MemoryRow) -> Row:
    mark = "file" if row.chunks else type_mark(row.type)
    chunks = (dim(f"  {count(row.chunks, 'chunk')}"),) if row.chunks else ()
    return _listed(row, age(row.created_at, screen), mark, chunks)


def _match_row(screen: Screen, row: SearchResult) -> Row:
    weak = (dim("  weak"),) if row.weak else ()
    return _listed(row, age(row.date, screen), type_mark(kind_of(row.type)), weak)


def _session_row(screen: Screen, row: Any) -> Row:
    """Returns the row of a session; of a long one, its beginning or what matches is shown."""
    around = row.best[0].turn if row.best else 1 if row.prompts > MOST_PROMPTS else None
    return Row(
        identity=("session", row.id),
        id=None,
        title=row.title,
        lead=(accent(row.id), dim(f"  {age(row.date, screen):>4}"), dim(f"  {row.client}")),
        marks=(dim("  weak"),) if row.weak else (),
        extra=(dim(f"  {row.branch}"),) if row.branch else (),
        session=(row.id, around),
    )


def _listed(row: MemoryRow | SearchResult, old: str, mark: str, remarks: tuple[Part, ...]) -> Row:
    return Row(
        identity=(row.id,),
        id=row.id,
        title=row.title,
        lead=(ident(row.id), dim(f"  {old:>4}"), dim(f"  {mark}")),
        marks=(*remarks, *row_labels(row, brief=True)),
        extra=(dim(f"  {tagged(row.tags)}"),) if row.tags else (),
    )


def _item_row(item: ReviewItem) -> Row:
    return Row(
        identity=actions.identity(item),
        id=item.id if item.kind != "proposal" else None,
        title=item.title or item.file,
        relation=(warn(f"{item.kind:<13} "),),
        item=item,
    )


def _neighbours(graph: LinkGraph) -> Iterator[Row]:
    """Yields a row for each link of the memory that a graph starts from."""
    start = graph.start[0]
    nodes = {node.id: node for node in graph.nodes}
    for arc in graph.links:
        if start in (arc.source, arc.target):
            forward = arc.source == start
            neighbour = nodes[arc.target if forward else arc.source]
            yield _link_row(arc, neighbour, forward=forward)
    for arc in graph.missing:
        if arc.source == start:
            yield Row(
                identity=(arc.type, arc.target),
                id=None,
                title=arc.target,
                relation=(dim(f"{arrow_of(arc, forward=True)}  "),),
                marks=(warn("  missing"),),
            )


def _link_row(arc: Arc, neighbour: LinkedMemory, *, forward: bool) -> Row:
    return Row(
        identity=(arc.type, forward, neighbour.id),
        id=neighbour.id,
        title=neighbour.title,
        relation=(dim(f"{arrow_of(arc, forward=forward)}  "),),
        marks=tuple(row_labels(neighbour, brief=True)),
    )


# Lines.


def _show_memory(memory: MemoryDetails, links: Sequence[Row], screen: Screen) -> None:
    """Writes a memory as `mind show` does, with its links in both directions at the end."""
    left = len(memory.content) - MOST_TEXT
    content = memory.content[:MOST_TEXT] if left > 0 else memory.content
    show_on(screen, replace(memory, content=content, links=()))
    if left > 0:
        screen.note(f"… {left:,} more characters; e opens all of them")
    if links:
        screen.blank()
        screen.heading(count(len(links), "link"))
    for row in links:
        screen.line(*row.relation, fitted(row.title), *row.marks, indent=2)


def _show_item(item: ReviewItem, screen: Screen) -> None:
    """Writes an item of the review, and the keys that resolve it."""
    show_item(item, screen)
    screen.blank()
    keys = actions.keys_of(item)
    for key, action in keys.items():
        screen.line(accent(key), f"  {action.label}", indent=2)
    if keys:
        screen.line(dim("enter offers these actions"), indent=2)
    else:
        screen.line(bad("repair this file in an editor"), indent=2)


def _highlighted(lines: Sequence[Text], query: str) -> tuple[Text, ...]:
    """Returns the lines with the words of a query highlighted."""
    for line in lines:
        terminal.mark(line, matching_words(line.plain, query))
    return tuple(lines)


def message_of(error: MindError) -> str:
    """Returns an error on one line, with its hint."""
    return f"{error.message}; {error.hint}" if error.hint else error.message


def question_of(undone: Undone) -> tuple[Part, ...]:
    """Returns the question whether to undo a change that was not made here."""
    change = undone.change
    files = [file.file for file in undone.files or () if not undoing.is_own(file.file)]
    if change is None:
        return ("undo the last change?",)
    by = f" by {change.by}" if change.by else ""
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    about = f" of {day(change.time)}{by}: {files[0]}{more}" if files else ""
    return ("undo ", strong(undoing.name_of(change.command)), f"{about}?")
