"""Changes that the user makes in the browser: to a memory, or to an item of the review."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol, TypeVar

from textual.app import SuspendNotSupported

from mimo.api import (
    MemoryDetails,
    MindError,
    Part,
    ReviewItem,
    Undone,
    actions,
    edit_text,
    strong,
    text_of,
)
from mimo.extensions.browse.lanes import Halted, Lane
from mimo.extensions.browse.model import Choice
from mimo.extensions.browse.reading import Done, Reader, question_of
from mimo.extensions.browse.widgets import Choose

T = TypeVar("T")

_IN_EDITOR = ("edit", "evolve supersede")
"""The commands that open the user's editor."""

_YES_OR_NO = (Choice(key="y", label="yes", value=True), Choice(key="n", label="no", value=None))


class Screen(Protocol):
    """The functions of the browser that changes need."""

    def ask(self, lane: Lane, work: Callable[[Halted], T], show: Callable[[T], None]) -> None:
        """Lets a thread do the work, and shows the result."""

    def push_screen(self, screen: Choose, callback: Callable[[object], None]) -> object:
        """Asks the user; the answer is the value of a choice, or None."""

    def tell(self, parts: Sequence[Part]) -> None:
        """Shows a message."""

    def tell_error(self, error: MindError) -> None:
        """Shows an error."""

    def view(self, id: str) -> None:
        """Shows a memory in the preview."""

    def preview_to_approve(
        self, id: str, lane: Lane, callback: Callable[[MemoryDetails], None]
    ) -> None:
        """Shows the whole text of a memory in the preview."""

    def shows_whole(self, id: str) -> bool:
        """Returns whether the preview still shows the text of `preview_to_approve`."""

    def suspend(self) -> AbstractContextManager[None]:
        """Leaves the terminal to another program."""

    def action_reload(self) -> None:
        """Reads the list again."""


class Changing:
    """Runs commands that change something, one after the other, and shows what they did."""

    def __init__(self, screen: Screen, reader: Reader) -> None:
        """Takes the screen, and the memory that it shows."""
        self._screen = screen
        self._reader = reader
        self.lane = Lane("changes", latest=False)
        self.made: set[str] = set()
        """The ids of the changes that were made here."""
        self.count = 0
        self._read: MemoryDetails | None = None
        """The memory whose whole text was shown last, so that it may be approved."""

    def change(
        self, path: str, arguments: Mapping[str, Any], item: ReviewItem | None = None
    ) -> None:
        """Runs a command, in the user's editor if it needs one, or a text of it may be changed.

        With `item`, only if that item of the review is still as it was shown.
        """
        if path not in _IN_EDITOR and "text" not in arguments:
            work = partial(self._reader.change, path, arguments, item)
            self._screen.ask(self.lane, lambda _: work(), self._show)
            return
        try:
            with self._screen.suspend():
                done = self._in_editor(path, arguments)
        except SuspendNotSupported:
            self._screen.tell(("this terminal can't show an editor",))
            return
        if isinstance(done, MindError):
            self._screen.tell_error(done)
        else:
            self._show(done)

    def _in_editor(self, path: str, arguments: Mapping[str, Any]) -> Done | MindError:
        """Returns what a command did, or its error: raised, it would leave the screen blank."""
        try:
            if "text" in arguments:
                arguments = {**arguments, "text": edit_text(arguments["text"])}
                if not arguments["text"]:
                    return Done(message="nothing changed")
            return self._reader.change(path, arguments)
        except MindError as error:
            return error
        except KeyboardInterrupt:
            return Done(message="the editor was interrupted; nothing changed")

    def _show(self, done: Done) -> None:
        if done.change:
            self.made.add(done.change)
            self.count += 1
        self._screen.tell((done.message,))
        self._screen.action_reload()

    def undo(self) -> None:
        """Undoes the last change, after a question if it was not made here."""
        self._screen.ask(self.lane, lambda _: self._reader.undoable(), self._undo)

    def redo(self) -> None:
        """Redoes the change that was undone last."""
        self._screen.ask(self.lane, lambda _: self._reader.redo(), self._show)

    def _undo(self, planned: Undone) -> None:
        change = planned.change.id if planned.change else ""

        def undo() -> None:
            self._screen.ask(self.lane, lambda _: self._reader.undo(change), self._show)

        if change in self.made:
            undo()
        else:
            self._confirm(question_of(planned), undo)

    def _confirm(self, question: Sequence[Part], act: Callable[[], None]) -> None:
        """Acts if the user answers yes."""

        def answered(answer: object) -> None:
            if answer:
                act()

        self._screen.push_screen(Choose(question, _YES_OR_NO), answered)

    # The review.

    def press(self, item: ReviewItem, key: str) -> None:
        """Runs the action that a key has for an item, if it has one."""
        action = actions.keys_of(item).get(key)
        if action is not None:
            self._resolve(item, action)

    def offer(self, item: ReviewItem) -> None:
        """Asks how to resolve an item."""
        choices = [
            Choice(key=key, label=a.label, value=a) for key, a in actions.keys_of(item).items()
        ]

        def answered(action: object) -> None:
            if isinstance(action, actions.Action):
                self._resolve(item, action)

        if item.id is None and item.actions:
            self._screen.tell((f"read {item.file}, then run `{item.actions[0]}`",))
        elif choices:
            self._screen.push_screen(Choose((strong(item.title or item.file),), choices), answered)
        else:
            self._screen.tell((f"repair {item.file} in an editor",))

    def _resolve(self, item: ReviewItem, action: actions.Action) -> None:
        """Runs the action of an item, for one of its memories if it has several."""
        arguments = dict(action.arguments or {}) | ({"text": action.text} if action.text else {})
        several = [choice for choice in item.choices if choice.id]
        if action.approves_all:
            arguments["digest"] = self._reader.unapproved
        if action.path not in actions.OF_ONE or len(several) < 2:
            self._run(item, action, arguments)
            return
        choices = [
            Choice(key=str(number), label=side.title or side.id or "", value=side.id)
            for number, side in enumerate(several, 1)
        ]

        def answered(id: object) -> None:
            if isinstance(id, str):
                narrowed = actions.chosen(action, item, id, text_of(self._reader.handle(id)))
                self._run(item, narrowed, dict(narrowed.arguments or {}))

        self._screen.push_screen(Choose((f"{action.label}: which?",), choices), answered)

    def _approve(self, id: str) -> None:
        """Approves a memory if its current text was shown; shows it otherwise."""
        read, self._read = self._read, None
        if read is None or read.id != id or not self._screen.shows_whole(id):
            self._screen.preview_to_approve(id, self.lane, self._note_read)
            return

        def approved(done: Done | None) -> None:
            if done is None:
                self._screen.preview_to_approve(id, self.lane, self._note_read)
            else:
                self._show(done)

        self._screen.ask(self.lane, lambda _: self._reader.approve(read), approved)

    def _note_read(self, memory: MemoryDetails) -> None:
        self._read = memory
        self._screen.tell((actions.READ_FIRST,))

    def _run(self, item: ReviewItem, action: actions.Action, arguments: Mapping[str, Any]) -> None:
        def change() -> None:
            self.change(action.path, arguments, item if action.resolves else None)

        if action.approves:
            self._approve(action.approves)
        elif action.path == "show":
            self._screen.view(str(arguments["id"]))
        elif action.asks:
            self._confirm((action.asks,), change)
        else:
            change()
