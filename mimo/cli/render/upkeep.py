"""How the index and the doctor report."""

from mimo.cli.render import Part, Screen, bad, dim, good, render, warn
from mimo.cli.render.words import count
from mimo.commands.upkeep import Check, Diagnosis, Indexed, Verdict

_MARKS: dict[Verdict, Part] = {
    Verdict.OK: good("ok      "),
    Verdict.WARNING: warn("warning "),
    Verdict.FAULT: bad("fault   "),
}


@render.register
def _(result: Indexed, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    held = count(result.memories, "memory", "memories")
    screen.line(good("✓ "), f"{held}, {count(result.passages, 'passage')}")
    changes = f"{result.added:,} new, {result.changed:,} changed, {result.removed:,} gone"
    screen.line(dim(f"files: {changes}"), indent=2)
    if result.unreadable:
        unread = count(result.unreadable, "file could", "files could")
        screen.line(warn(f"{unread} not be read; `mind doctor` lists them"), indent=2)


@render.register
def _(result: Diagnosis, screen: Screen) -> None:
    for check in result.checks:
        _check(check, screen)
    screen.blank()
    warnings = sum(check.verdict is Verdict.WARNING for check in result.checks)
    noted = f", {count(warnings, 'warning')}" if warnings else ""
    screen.line(good(f"healthy{noted}") if result.healthy else bad("something is at fault"))


def _check(check: Check, screen: Screen) -> None:
    place = f"{check.file}{f':{check.line}' if check.line else ''}  " if check.file else ""
    screen.line(_MARKS[check.verdict], dim(f"{check.name:<9}"), place, check.message)
    if check.hint and check.verdict is not Verdict.OK and not check.file:
        screen.line(dim(f"hint: {check.hint}"), indent=17)
