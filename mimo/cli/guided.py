"""`mind review` and `mind trust` on a terminal: one thing at a time, one key each."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mimo import rendering
from mimo.errors import MindError
from mimo.features.review import Waiting
from mimo.features.review.commands import Review, ReviewItem
from mimo.features.review.render import show_item
from mimo.features.review.resolving import BOTH
from mimo.features.review.trusting import look_of, show_look
from mimo.frozen import frozen
from mimo.memory.merge import is_text
from mimo.rendering.results import screen_for, show_on
from mimo.rendering.screen import Part, Screen, accent, dim, strong
from mimo.text.clean import clean

if TYPE_CHECKING:
    from mimo.mind import Mind

Call = Callable[[str, Mapping[str, Any]], object]
"""Runs the command at a path of the command line."""

_ENDS = ("\x03", "\x04", "")
"""What a terminal sends for Ctrl-C, Ctrl-D and its end, where it does not stop the program."""


@frozen
class Action:
    """What a key does."""

    label: str
    path: str = ""
    """The command that it runs; nothing for what the loop does itself."""
    arguments: Mapping[str, Any] | None = None
    asks: str = ""
    """What has to be confirmed first."""


@frozen
class Walk:
    """The loop's state: whom to ask, and how many things were settled or passed over."""

    call: Call
    options: Mapping[str, Any]
    passed: list[tuple[Any, ...]]
    settled: list[str]

    def screen(self) -> Screen:
        """Returns a new screen to write on."""
        return screen_for(sys.stdout, os.environ, colour=not self.options.get("no_color"))

    def line(self, *parts: Part) -> None:
        """Write one line at once."""
        screen = self.screen()
        screen.line(*parts)
        screen.finish(pager=False)


def review(call: Call, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Goes through what waits, one thing at a time; whatever was done is done when it ends."""
    walk = Walk(call=call, options=options, passed=[], settled=[])
    try:
        while (found := _next(walk, arguments)) is not None and _settle(walk, *found):
            continue
    except KeyboardInterrupt:
        walk.line()
    finally:
        left = _listed(walk, arguments).total
        done = f"{len(walk.settled):,} settled" if walk.settled else "nothing was changed"
        walk.line(dim(f"{done}; {left:,} left" if left else f"{done}; nothing waits any more"))


def trust(
    mind: "Mind", call: Call, arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> object | None:
    """Shows what is not approved yet and approves it after a yes; returns the command's result."""
    look = None if arguments.get("ids") or arguments.get("mine") else look_of(mind)
    if look is not None and look.memories:
        walk = Walk(call=call, options=options, passed=[], settled=[])
        screen = walk.screen()
        show_look(look, screen)
        screen.blank()
        screen.finish(pager=False)
        later = ", and what reaches the default branch later" if arguments.get("follow") else ""
        if not _confirmed(f"approve all of it for the agents on this machine{later}?"):
            walk.line("nothing was approved")
            return None
    return call("trust", arguments)


def _listed(walk: Walk, arguments: Mapping[str, Any]) -> Review:
    found = walk.call("review", {**arguments, "limit": 1000})
    if not isinstance(found, Review):
        raise TypeError(found)
    return found


def _next(walk: Walk, arguments: Mapping[str, Any]) -> tuple[ReviewItem, int] | None:
    """Returns the first thing that was not passed over, and how many are left with it."""
    found = _listed(walk, arguments)
    left = [item for item in found.items if _name(item) not in walk.passed]
    if not left:
        return None
    if found.arrived and not walk.passed and not walk.settled:
        screen = walk.screen()
        show_look(found.arrived, screen)
        screen.blank()
        screen.finish(pager=False)
    return left[0], len(left)


def _name(item: ReviewItem) -> tuple[Any, ...]:
    """Returns what tells one thing from another while it waits unchanged."""
    return (item.kind, item.id, item.file, item.field, item.why)


def _settle(walk: Walk, item: ReviewItem, left: int) -> bool:
    """Shows one thing and does what a key says, till it is settled or passed over.

    Returns whether to go on with the next.
    """
    keys = _keys(item)
    _show(walk, item, left, keys)
    while True:
        key = _key()
        if key == "q":
            return False
        if key == "s":
            walk.passed.append(_name(item))
            return True
        if key == "?":
            _show(walk, item, left, keys, whole=True)
        elif key not in keys:
            click.echo("\a", nl=False)
        elif _do(walk, item, keys[key]):
            return True


def _show(
    walk: Walk, item: ReviewItem, left: int, keys: Mapping[str, Action], *, whole: bool = False
) -> None:
    screen = walk.screen()
    screen.line(dim(f"── {left:,} left "))
    show_item(item, screen)
    screen.blank()
    every = {**{key: action.label for key, action in keys.items()}, **_ALWAYS}
    if whole:
        for key, label in every.items():
            screen.line(accent(key), f"  {label}", indent=2)
    else:
        told = [part for key, label in every.items() for part in (accent(key), f" {label}   ")]
        screen.line(*told)
    screen.finish(pager=False)


_ALWAYS = {"s": "skip", "q": "quit", "?": "the keys"}


def _keys(item: ReviewItem) -> dict[str, Action]:
    """Returns what the keys do with a thing."""
    return dict(_choices(item)) | dict(_ways(item))


def _choices(item: ReviewItem) -> Iterator[tuple[str, Action]]:
    """Yields a key for each of those that contradict each other, and one for all of them."""
    about = {"id": item.id, "kind": item.kind.value}
    if item.field:
        about["field"] = item.field
    for choice in item.choices[:9]:
        number = str(choice.number)
        taken = about | {"take": number}
        yield number, Action(label="holds", path="review settle", arguments=taken)
    if item.choices and (item.field is None or is_text(item.field)):
        both = about | {"take": BOTH}
        yield "b", Action(label="both hold", path="review settle", arguments=both)


def _ways(item: ReviewItem) -> Iterator[tuple[str, Action]]:
    """Yields the keys that a thing has by why it waits."""
    if item.kind is Waiting.UNREADABLE:
        return
    one = {"id": item.id}
    kept = one | {"kind": item.kind.value}
    if item.kind is Waiting.UNTRUSTED:
        yield "t", Action(label="trust", path="trust", arguments={"ids": [item.id]})
        question = "approve everything here that is not, for the agents on this machine?"
        yield "a", Action(label="trust all", path="trust", arguments={}, asks=question)
        yield "k", Action(label="leave", path="review keep", arguments=kept)
    if item.kind in (Waiting.STALE, Waiting.OUTDATED):
        yield "k", Action(label="still true", path="review keep", arguments=kept)
    if item.kind is Waiting.FADING:
        yield "k", Action(label="keep", path="keep", arguments=one)
    yield "v", Action(label="view", path="show", arguments=one)
    yield "e", Action(label="edit", path="edit", arguments=one)
    if item.type == "decision" and item.kind in _REPLACEABLE:
        yield "u", Action(label="supersede", path="evolve supersede", arguments=one)
    yield "f", Action(label="forget", path="rm", arguments=one, asks=f"remove {item.file}?")


_REPLACEABLE = (Waiting.DECISIONS, Waiting.CONTRADICTION, Waiting.STALE)


def _do(walk: Walk, item: ReviewItem, action: Action) -> bool:
    """Runs what a key stands for and returns whether something was changed."""
    arguments = dict(action.arguments or {})
    if action.path in _OF_ONE and len(_named(item)) > 1:
        chosen = _one_of(walk, _named(item))
        if chosen is None:
            return False
        arguments["id"] = chosen
    if action.asks and not _confirmed(action.asks):
        return False
    try:
        result = walk.call(action.path, arguments)
    except MindError as error:
        for told in rendering.lines_of(error):
            rendering.complain(told)
        return False
    if result is None:
        walk.line("nothing changed")
        return False
    screen = walk.screen()
    show_on(screen, result)
    screen.blank()
    screen.finish(pager=False)
    if action.path == "show":
        return False
    walk.settled.append(action.path)
    return True


_OF_ONE = ("show", "edit", "rm", "evolve supersede")
"""Commands that take one memory where a thing is about several."""


def _named(item: ReviewItem) -> list[str]:
    return [choice.id for choice in item.choices if choice.id]


def _one_of(walk: Walk, names: Sequence[str]) -> str | None:
    """Returns the memory that is meant; None where another key than a number was pressed."""
    walk.line(strong("which? "), ", ".join(f"{n} {name}" for n, name in enumerate(names, 1)))
    key = _key()
    return names[int(key) - 1] if key.isdecimal() and 1 <= int(key) <= len(names) else None


def _confirmed(question: str) -> bool:
    """Returns whether a person pressed y."""
    click.echo(f"{clean(question)} [y/N] ", nl=False)
    answer = _key()
    click.echo("yes" if answer.lower() == "y" else "no")
    return answer.lower() == "y"


def _key() -> str:
    """Returns the key that was pressed; raises `KeyboardInterrupt` where that ends it all."""
    try:
        key = click.getchar()
    except EOFError:
        raise KeyboardInterrupt from None
    if key in _ENDS:
        raise KeyboardInterrupt
    return key if key.startswith("\x1b") else key[0]
