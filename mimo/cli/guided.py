"""`mind review` and `mind trust` on a terminal: one item at a time, one key for each action."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mimo import rendering
from mimo.data import files
from mimo.errors import Conflict, MindError
from mimo.features.notes.reading import MemoryDetails
from mimo.features.review import Waiting
from mimo.features.review.actions import (
    CHANGED,
    OF_ONE,
    READ_FIRST,
    Action,
    chosen,
    identity,
    keys_of,
    named_in,
)
from mimo.features.review.commands import Review, ReviewItem, show_item
from mimo.features.review.trusting import FirstLook, look_of, show_look, text_of
from mimo.frozen import field, frozen, replace
from mimo.rendering import Part, Screen, Setting, accent, dim, ident, strong
from mimo.rendering.results import count, screen_for, setting_of, show_on
from mimo.text.clean import clean, storable

if TYPE_CHECKING:
    from mimo.call import Call

Run = Callable[[str, Mapping[str, Any]], object]
"""Runs the command at a path of the command line."""

_ENDS = ("\x03", "\x04", "")
"""The characters for Ctrl-C, Ctrl-D and the end of input if they don't stop the program."""


@frozen
class Walk:
    """The state of the loop: the items that were skipped, and the commands that were run."""

    run: Run
    arguments: Mapping[str, Any]
    """Those of the command."""
    options: Mapping[str, Any]
    setting: Setting
    text: Callable[[str], bytes]
    """Returns the bytes of a file, empty if it is missing."""
    everything: Callable[[], FirstLook | None]
    """Returns a summary of all that is not approved, with the names of all files."""
    skipped: list[tuple[Any, ...]] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)
    read: dict[str, MemoryDetails] = field(default_factory=dict)
    """The whole memories that were shown, by id."""
    texts: dict[str, str] = field(default_factory=dict)
    """The texts of files without memories that were shown, by path."""

    @contextmanager
    def screen(self, *, pager: bool = False) -> Iterator[Screen]:
        """Gives a new screen to write on, which is shown at the end of the block."""
        screen = screen_for(sys.stdout, os.environ, colour=not self.options.get("no_color"))
        screen.setting = self.setting
        yield screen
        screen.finish(pager=pager and not self.options.get("no_pager"))

    def line(self, *parts: Part) -> None:
        """Writes one line at once."""
        with self.screen() as screen:
            screen.line(*parts)


def review(call: Call, run: Run, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Asks about each open item until none is left or the user quits; changes apply at once.

    Then it offers to go through the fading memories, which are not listed with the others.
    """
    walk = _walk(call, run, arguments, options)
    try:
        if _go_through(walk) and _wants_fading(walk):
            walk = replace(walk, arguments={**arguments, "kinds": [Waiting.FADING.value]})
            _go_through(walk)
    except KeyboardInterrupt:
        walk.line()
    finally:
        left = _listed(walk).total
        done = f"{len(walk.resolved):,} resolved" if walk.resolved else "nothing was changed"
        walk.line(dim(f"{done}; {left:,} left" if left else f"{done}; nothing is left"))


def _walk(call: Call, run: Run, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> Walk:
    user = call.user() if call.mind.is_outside or arguments.get("user") else None
    return Walk(
        run=run,
        arguments=arguments,
        options=options,
        setting=setting_of(call.mind, options),
        text=partial(text_of, user or call),
        everything=partial(look_of, user or call, listed=True),
    )


def _go_through(walk: Walk) -> bool:
    """Asks about each open item, or as many as the user wants.

    Returns whether the user has answered all and did not quit.
    """
    for _ in range(walk.arguments.get("limit", sys.maxsize)):
        item = _next(walk)
        if item is None:
            return True
        if not _resolve(walk, *item):
            return False
    return False


def _wants_fading(walk: Walk) -> bool:
    """Returns whether memories fade that were not listed, and the user wants to see each."""
    fading = _listed(walk).fading
    fade = count(fading or 0, "memory fades", "memories fade")
    return bool(fading) and _confirmed(f"{fade}; go through them?")


def trust(
    call: Call, run: Run, arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> object | None:
    """Shows everything that is not approved, and approves it if the user confirms.

    Returns the result of the command, or None if the user does not confirm.
    """
    walk = _walk(call, run, arguments, options)
    is_asked = not (arguments.get("ids") or arguments.get("mine"))
    look = walk.everything() if is_asked else None
    if look is not None:
        _look(walk, look)
        later = ", and later changes on the default branch" if arguments.get("follow") else ""
        if not _confirmed(f"approve all of it for the agents on this machine{later}?"):
            walk.line("nothing was approved")
            return None
        arguments = {**arguments, "digest": look.digest}
    return run("trust", arguments)


def _look(walk: Walk, look: FirstLook) -> None:
    with walk.screen(pager=True) as screen:
        show_look(look, screen)
        screen.blank()


def _listed(walk: Walk, **arguments: Any) -> Review:
    listed = walk.run("review", {**walk.arguments, **arguments, "limit": 1000})
    if not isinstance(listed, Review):
        raise TypeError(listed)
    return listed


def _next(walk: Walk) -> tuple[ReviewItem, int] | None:
    """Returns the first item that was not skipped, and the number of items left."""
    listed = _listed(walk)
    left = [item for item in listed.items if identity(item) not in walk.skipped]
    if not left:
        return None
    if listed.arrived and not walk.skipped and not walk.resolved:
        _look(walk, listed.arrived)
    return left[0], len(left)


def _resolve(walk: Walk, item: ReviewItem, left: int) -> bool:
    """Shows an item and runs the actions of keys until it is resolved or skipped.

    Returns whether to go on with the next item.
    """
    keys = keys_of(item)
    _show(walk, item, left, keys)
    while True:
        key = _key()
        if key == "q":
            return False
        if key == "s":
            walk.skipped.append(identity(item))
            return True
        if key == "?":
            _show(walk, item, left, keys, in_full=True)
        elif key not in keys:
            click.echo("\a", nl=False)
        elif _do(walk, item, keys[key]):
            return True


def _show(
    walk: Walk, item: ReviewItem, left: int, keys: Mapping[str, Action], *, in_full: bool = False
) -> None:
    labels = {**{key: action.label for key, action in keys.items()}, **_ALWAYS}
    with walk.screen() as screen:
        screen.line(dim(f"── {left:,} left "))
        show_item(item, screen)
        screen.blank()
        if in_full:
            for key, label in labels.items():
                screen.line(accent(key), f"  {label}", indent=2)
        else:
            screen.line(*(part for key in labels for part in (accent(key), f" {labels[key]}   ")))


_ALWAYS = {"s": "skip", "q": "quit", "?": "the keys"}


def _do(walk: Walk, item: ReviewItem, action: Action) -> bool:
    """Runs the action of a key and returns whether the item may have changed."""
    if action.path in OF_ONE and len(named_in(item)) > 1:
        id = _one_of(walk, named_in(item))
        if id is None:
            return False
        action = chosen(action, item, id, walk.setting.handle(id)[0])
    try:
        arguments = _agreed(walk, item, action)
        if arguments is None:
            return False
        result = walk.run(action.path, arguments)
    except MindError as error:
        for line in rendering.lines_of(error):
            rendering.complain(line)
        return isinstance(error, Conflict)
    if result is None:
        walk.line("nothing changed")
        return False
    with walk.screen() as screen:
        show_on(screen, result)
        screen.blank()
    if isinstance(result, MemoryDetails):
        walk.read[arguments["id"]] = result
        return False
    walk.resolved.append(action.path)
    return True


def _agreed(walk: Walk, item: ReviewItem, action: Action) -> dict[str, Any] | None:
    """Returns the arguments of an action; None if the user does not confirm it, or must read first.

    Raises `Conflict` if the item has changed since it was shown.
    """
    arguments = dict(action.arguments or {})
    if action.text:
        arguments["text"] = rendering.edit_text(action.text)
        if not arguments["text"]:
            return None
    look = walk.everything() if action.approves_all else None
    if look is not None:
        _look(walk, look)
        arguments["digest"] = look.digest
    if action.asks and not _confirmed(action.asks):
        return None
    if action.resolves and item not in _listed(walk, kinds=[item.kind.value]).items:
        raise Conflict(CHANGED)
    if action.approves and item.id is None:
        data = walk.text(item.file)
        if walk.texts.get(item.file) != (digest := files.digest(data)):
            walk.texts[item.file] = digest
            with walk.screen(pager=True) as screen:
                screen.text(storable(data.decode("utf-8", "replace")) or "the file is missing")
                screen.blank()
                screen.line(READ_FIRST)
            return None
        arguments |= {"digest": digest} if data else {}
    elif action.approves:
        if not _has_read(walk, action.approves):
            return None
        arguments["digest"] = walk.read[action.approves].digest
    return arguments


def _has_read(walk: Walk, id: str) -> bool:
    """Returns whether the current text of a memory was shown; shows it if it was not."""
    current = walk.run("show", {"id": id})
    if not isinstance(current, MemoryDetails):
        raise TypeError(current)
    if walk.read.get(id) == current:
        return True
    walk.read[id] = current
    with walk.screen() as screen:
        show_on(screen, current)
        screen.blank()
        screen.line(READ_FIRST)
    return False


def _one_of(walk: Walk, names: Sequence[str]) -> str | None:
    """Returns the memory that the user chooses, or None for a key that is not its number."""
    parts: list[Part] = [strong("which?")]
    for number, name in enumerate(names, 1):
        parts += [f"{',' if number > 1 else ''} {number} ", ident(name)]
    walk.line(*parts)
    key = _key()
    return names[int(key) - 1] if key.isdecimal() and 1 <= int(key) <= len(names) else None


def _confirmed(question: str) -> bool:
    """Returns whether the user pressed y."""
    click.echo(f"{clean(question)} [y/N] ", nl=False)
    answer = _key()
    click.echo("yes" if answer.lower() == "y" else "no")
    return answer.lower() == "y"


def _key() -> str:
    """Returns the pressed key; raises `KeyboardInterrupt` for Ctrl-C, Ctrl-D and the end."""
    try:
        key = click.getchar()
    except EOFError:
        raise KeyboardInterrupt from None
    if key in _ENDS:
        raise KeyboardInterrupt
    return key if key.startswith("\x1b") else key[0]
