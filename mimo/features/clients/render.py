"""How installing looks."""

from mimo.features.clients.commands import Action, ClientRow, FileRow, Installation
from mimo.rendering.results import render
from mimo.rendering.screen import Part, Screen, accent, dim, good, warn

_MARKS: dict[Action, Part] = {
    Action.CREATED: good("✓ "),
    Action.CHANGED: good("✓ "),
    Action.REMOVED: good("✓ "),
    Action.UNCHANGED: dim("= "),
    Action.YOURS: warn("! "),
}


@render.register
def _(result: Installation, screen: Screen) -> None:
    if result.client is None:
        screen.table(("client", "here", "installed for"), map(_cells, result.clients))
        for row in (row for row in result.clients if row.problem):
            screen.note(str(row.problem))
        screen.line("give it the memory with ", accent("`mind install CLIENT`"))
        return
    if result.notice:
        screen.note(result.notice)
    for file in result.files:
        _file(file, screen, dry_run=result.dry_run)
    if result.then:
        screen.line("next: ", result.then)


def _file(row: FileRow, screen: Screen, *, dry_run: bool) -> None:
    if row.action is not Action.YOURS:
        action = f"would be {row.action}" if dry_run and row.diff else row.action
        screen.line(_MARKS[row.action], f"{action}  ", accent(row.file))
    if row.note:
        screen.line(warn(row.note), indent=2)
    if row.backup:
        screen.line(dim(f"a copy of it as it was: {row.backup}"), indent=2)
    if row.diff:
        screen.verbatim(row.diff)


def _cells(row: ClientRow) -> tuple[Part, ...]:
    here = good("yes") if row.found else dim("no")
    installed = good(" ".join(row.installed)) if row.installed else dim("–")
    return accent(row.client), here, warn("can't be read") if row.problem else installed
