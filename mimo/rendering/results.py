"""The printing of results: one renderer for each type of result.

A renderer writes to a `Screen`: the same calls make plain text in a pipe and colour on a terminal.
The renderers of a feature are in its `render.py`, which is imported when a result of one of its
commands is shown, or next to the commands themselves:

    @render.register
    def _(result: SearchResults, screen: Screen) -> None: ...

A result without a renderer is printed as JSON. The end of the module has the parts that
renderers share: dates, labels, counts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from mimo import rendering
from mimo.call.spec import to_json
from mimo.data.disk import system_clock
from mimo.memory.model import Kind, Outcome
from mimo.memory.outcomes import FAILED_BEFORE
from mimo.operations.rows import TrustLabel
from mimo.rendering import (
    LEAST_OF_A_TITLE,
    Part,
    Screen,
    Setting,
    bad,
    dim,
    fitted,
    good,
    ident,
    warn,
)
from mimo.text.calendar import abbreviation, in_zone, is_day
from mimo.text.clean import compiled

if TYPE_CHECKING:
    from mimo.mind import Mind

_UNDERLINE = r"\A {0,3}(?:=+|-{2,})[ \t]*(?:\n|\Z)"
LINES = 4
"""Lines that are shown of a text in a list."""
_HEADINGS = r"\A(?:(?:#.*|\S.*\n {0,3}(?:=+|-{2,})[ \t]*)(?:\n+|\Z))+"
"""The line below a title, and headings at the beginning of a text."""
_BEFORE_REASON = r"\A(?:Replaces \S+: |[Bb]ecause )"

Renderer = TypeVar("Renderer", bound=Callable[[Any, Screen], None])


class Renderers(dict[object, Callable[[Any, Screen], None]]):
    """The renderers of results, by type. `functools.singledispatch` would take longer to load."""

    def register(self, renderer: Renderer) -> Renderer:
        """Adds a renderer for the type of its first parameter."""
        self[next(iter(renderer.__annotations__.values()))] = renderer
        return renderer

    def __call__(self, result: object, screen: Screen) -> None:
        """Writes a result on the screen after its notice, as JSON if its type has no renderer."""
        renderer = self.get(type(result), as_data)
        if renderer is not as_data and (notice := getattr(result, "notice", None)):
            screen.note(notice)
        renderer(result, screen)


render = Renderers()
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_ALONE = Setting()
"""The setting of a result without a memory around it."""
_zone: ContextVar[tzinfo] = ContextVar("zone", default=UTC)
"""The zone of the times that a renderer writes; a server renders in several threads."""


def show_on(screen: Screen, result: object) -> None:
    """Writes a result with the renderer of its type, loading the module that holds it.

    A tuple has the results of several calls.
    """
    if isinstance(result, tuple):
        for number, part in enumerate(result):
            if number:
                screen.line()
            show_on(screen, part)
        return
    _zone.set(screen.setting.zone)
    if type(result) not in render:
        from importlib import import_module
        from importlib.util import find_spec

        feature = type(result).__module__.rpartition(".")[0]
        if find_spec(f"{feature}.render"):
            import_module(f"{feature}.render")
    render(result, screen)


def setting_of(
    mind: Mind,
    options: Mapping[str, Any] = _NOTHING,
    arguments: Mapping[str, Any] = _NOTHING,
) -> Setting:
    """Returns the setting of a command's result.

    The letters that are unique now may not be so at another revision, which arguments may name.
    """
    details = bool(options.get("long"))
    setting = Setting(handle=mind.handle, now=mind.now(), zone=mind.zone, details=details)
    return setting if arguments.get("at") is None else setting._replace(handle=_ALONE.handle)


def screen_for(stream: TextIO, environ: Mapping[str, str], *, colour: bool) -> Screen:
    """Returns a screen with colour for a terminal, and a plain one for anything else."""
    if not stream.isatty() or environ.get("TERM") == "dumb":
        return Screen()
    from mimo.rendering.terminal import TerminalScreen

    return TerminalScreen(colour=colour and not environ.get("NO_COLOR"))


def drawn(
    result: object,
    options: Mapping[str, Any],
    setting: Setting = _ALONE,
    screen: Screen | None = None,
) -> Callable[[], None]:
    """Returns the function that prints a result: as JSON with `--json`, otherwise as text.

    The default screen is that of standard output.

    The text is complete before: nothing that the setting refers to is used later.
    """
    if options.get("json"):
        text = rendering.as_json(to_json(result), indent=2) + "\n"
        return partial(rendering.write, text)
    if screen is None:
        screen = screen_for(sys.stdout, os.environ, colour=not options.get("no_color"))
    screen.setting = setting
    show_on(screen, result)
    return partial(screen.finish, pager=not options.get("no_pager"))


def show_part(part: object, options: Mapping[str, Any], setting: Setting = _ALONE) -> None:
    """Prints a part of a result that arrives in parts, such as a log line that was just written.

    Masks secrets, because a part does not pass through `invoke`. Ends the program if standard
    output was closed by its reader.
    """
    from mimo.guard.privacy import redacted

    part = redacted(part).value
    try:
        if options.get("json"):
            rendering.write(rendering.as_json(to_json(part)) + "\n")
        else:
            drawn(part, {**options, "no_pager": True}, setting)()
    except BrokenPipeError:
        rendering.give_up_stdout()
        raise SystemExit(0) from None


def as_data(result: object, screen: Screen) -> None:
    """Writes a result as JSON."""
    screen.verbatim(rendering.as_json(to_json(result), indent=2))


def shown(value: Any) -> str:
    """Returns a value as text for people."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        case list():
            return ", ".join(map(shown, value))
        case _:
            return str(value)


def use_zone(zone: tzinfo) -> None:
    """Sets the zone of the times that this thread writes; `show_on` does it for a renderer."""
    _zone.set(zone)


def _local(moment: datetime) -> datetime:
    """Returns a time in the user's zone."""
    return moment if is_day(moment) else in_zone(moment, _zone.get())


def day(moment: datetime) -> str:
    """Returns the date in the user's zone, such as `2026-11-20`."""
    return _local(moment).strftime("%Y-%m-%d")


def minute(moment: datetime) -> str:
    """Returns the time in the user's zone to the minute: `2026-11-20 15:30 UTC`."""
    local = _local(moment)
    return f"{local:%Y-%m-%d %H:%M} {abbreviation(local)}"


def stamp(moment: datetime) -> str:
    """Returns the time in the user's zone, for rows of many: `2026-11-20 15:30:12`."""
    return _local(moment).strftime("%Y-%m-%d %H:%M:%S")


def second(moment: datetime) -> str:
    """Returns the time in the user's zone to the second: `2026-11-20 15:30:12 UTC`."""
    return f"{stamp(moment)} {abbreviation(_local(moment))}"


_LONGEST_IN_DAYS, _LONGEST_IN_WEEKS, _YEAR = 14, 9 * 7, 365


def age(moment: datetime, screen: Screen) -> str:
    """Returns the age of a memory on a screen."""
    return short_age(moment, screen.setting.now or system_clock())


def short_age(moment: datetime, now: datetime) -> str:
    """Returns the age of a memory in at most four characters: `now`, `5m`, `3h`, `12d`, `5w`, `2y`.

    Months are `mo`. A time in the future is `new`.
    """
    seconds = (now - moment).total_seconds()
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86_400)
    if seconds < 0:
        return "new"
    if days >= _YEAR:
        return f"{days // _YEAR}y"
    if days >= _LONGEST_IN_WEEKS:
        return f"{days * 12 // _YEAR}mo"
    if days >= _LONGEST_IN_DAYS:
        return f"{days // 7}w"
    units = ((days, "d"), (hours, "h"), (minutes, "m"))
    return next((f"{number}{unit}" for number, unit in units if number), "now")


_MARKS = {
    Kind.OBSERVATION: "obs",
    Kind.ACTION: "act",
    Kind.DECISION: "dec",
    Kind.CHECKPOINT: "chk",
    Kind.INSIGHT: "ins",
    Kind.CONTEXT: "ctx",
    Kind.ISSUE: "iss",
}


def type_mark(kind: Kind) -> str:
    """Returns the type of a memory in four columns: `fact`, `dec `."""
    return f"{_MARKS.get(kind, kind.value):<4}"


def lead(id: str, created: datetime, mark: str, screen: Screen) -> tuple[Part, Part]:
    """Returns the begin of a memory's row in a list: its handle, age, and mark of its type."""
    return ident(id), dim(f"  {age(created, screen):>4}  {mark}  ")


def trailing(tags: Sequence[str]) -> Part:
    """Returns the tags at the end of a memory's row, as far as they fit."""
    return fitted(dim(f"  {tagged(tags)}" if tags else ""))


def labels(
    *,
    outcome: Outcome | None = None,
    closed: str | None = None,
    superseded_by: str | None = None,
    trust: TrustLabel = TrustLabel.TRUSTED,
    private: bool | None = None,
    competing: tuple[str, ...] | None = None,
    stale: str | None = None,
    scope: str | None = None,
    brief: bool = False,
) -> list[Part]:
    """Returns the labels of a memory that a reader must not miss, each after a space.

    `brief` leaves out the names of other memories.
    """
    parts: list[Part] = []
    if outcome is Outcome.FAILED:
        parts += ["  ", bad("FAILED")]
    elif outcome is not None:
        parts += ["  ", good(outcome) if outcome is Outcome.SUCCESS else warn(outcome)]
    if closed:
        from mimo.memory.note import ENDED

        parts += ["  ", (warn if closed in ENDED else good)(closed)]
    if superseded_by:
        parts += ["  ", warn("superseded")]
        parts += [] if brief else [warn(" by "), ident(superseded_by)]
    if competing:
        parts += ["  ", warn("competing" if brief else "competes with ")]
        parts += [] if brief else idents(competing)
    if stale:
        parts += ["  ", warn("stale")]
    if trust is TrustLabel.UNTRUSTED:
        parts += ["  ", warn("untrusted")]
    if scope or private:
        parts += ["  ", dim(scope or "private")]
    return parts


def row_labels(row: object, *, brief: bool = False) -> list[Part]:
    """Returns the labels of a memory, by those fields of its row that have one."""
    names = ("outcome", "superseded_by", "trust", "private", "competing", "stale", "scope")
    closed = None
    if status := getattr(row, "status", None):
        from mimo.memory.note import closed_as

        closed = closed_as(getattr(row, "type", Kind.ISSUE), status)
    fields = {n: getattr(row, n) for n in names if hasattr(row, n)}
    return labels(closed=closed, brief=brief, **fields)


def write_weak(row: object, title: str, created: datetime, screen: Screen, place: str = "") -> None:
    """Writes a match that is only near, on one line: the sure ones stand out."""
    when = dim("  ".join(("", age(created, screen), "weak", *filter(None, (place,)))))
    text = fitted(dim(title), LEAST_OF_A_TITLE)
    screen.line(ident(getattr(row, "id", "")), "  ", text, when, *row_labels(row, brief=True))


def match_count(sure: int, weak: int) -> str:
    """Returns the number of matches: `2 results, 1 weak`, or `1 weak result`."""
    if weak and not sure:
        return count(weak, "weak result")
    return f"{count(sure, 'result')}{f', {weak} weak' if weak else ''}"


def row_warnings(row: object, *warnings: str | None) -> Iterator[str]:
    """Yields the warnings about a memory and the others, without one that its label states."""
    warning = getattr(row, "warning", None)
    yield from filter(None, (None if warning == FAILED_BEFORE else warning, *warnings))


def idents(ids: Sequence[str]) -> list[Part]:
    """Returns the names of several memories, separated by commas."""
    return [part for id in ids for part in (", ", ident(id))][1:]


def after_same(text: str, title: str) -> str | None:
    """Returns the rest of a text that begins with its title; None for any other text.

    A mark may precede the title, as in `decided: Title`. A longer word is not the title.
    """
    mark = compiled(r"\W*[A-Za-z]+[^\w:]*:\W*").match(text)
    for start in (0, mark.end() if mark else 0):
        if title and text.startswith(title, start):
            tail = text[start + len(title) :]
            if not compiled(r"\w").match(tail):
                return tail
    return None


def without_title(text: str, title: str) -> str:
    """Returns the text without a first line that only repeats the title, as in `decided: Title`."""
    head, _, tail = text.strip().partition("\n")
    is_title = after_same(head.strip("# "), title.strip().rstrip("…")) == ""
    return (compiled(_UNDERLINE).sub("", tail) if is_title else text).strip("\n")


def because_of(reason: str) -> str:
    """Returns a reason after `because`, without the word or the replaced decision before it."""
    return f"because {compiled(_BEFORE_REASON).sub('', reason)}"


def after_title(text: str, title: str) -> str:
    """Returns the text without the title and headings at its beginning.

    Of a title that is only the beginning of the first line, the rest of the line is left.
    """
    beginning = title.strip().removesuffix("…").rstrip()
    body = without_title(text, title)
    body = compiled(_HEADINGS).sub("", body)
    if beginning == title.strip() or not body.startswith(beginning):
        return body
    return f"…{body[body.rfind(' ', 0, len(beginning) + 1) + 1 :]}"


def first_lines(text: str) -> str:
    """Returns the first lines of a text, with a line `…` if there are more than `LINES`."""
    lines = text.splitlines()
    return "\n".join([*lines[:LINES], *["…"] * (len(lines) > LINES)])


def tagged(tags: Sequence[str]) -> str:
    """Returns tags in their usual notation: `#auth #api`."""
    return " ".join(f"#{tag}" for tag in tags)


def tally(numbers: Mapping[str, int]) -> str:
    """Returns the number of each kind, without a plural: `untrusted 5, stale 2`."""
    return ", ".join(f"{kind} {number:,}" for kind, number in numbers.items())


def paged(rows: int, total: int, offset: int, noun: str, plural: str | None = None) -> str:
    """Returns which part of a list is shown: `17 memories`, or `1 to 10 of 17 memories`."""
    summary = count(total, noun, plural)
    if rows == total:
        return summary
    if rows == 1:
        return f"{noun} {offset + 1:,} of {total:,}"
    if not rows:
        return f"0 of {summary}: the offset {offset:,} is after the last one"
    return f"{offset + 1:,} to {offset + rows:,} of {summary}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Returns a number with its noun: `1 memory`, `1,204 memories`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
