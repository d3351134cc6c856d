"""How a sync looks."""

from mimo.cli.render import Screen, accent, dim, good, render, strong
from mimo.cli.render.words import count
from mimo.commands.sync import Synced

_MARKS = {"added": "+", "changed": "~", "removed": "-"}


@render.register
def _(result: Synced, screen: Screen) -> None:
    where = f"on {result.branch}" if result.branch else "on no branch (detached head)"
    files = count(len(result.files), "file")
    if result.dry_run:
        screen.line(f"would commit {files} {where}" if result.files else "nothing to commit")
    elif result.commit:
        screen.line(good("✓ "), "committed ", strong(files), f" {where} as ", accent(result.commit))
    else:
        screen.line("nothing to commit")
    if result.message:
        screen.line(dim(result.message.split("\n", 1)[0]), indent=2)
    for one in result.files:
        screen.line(f"{_MARKS[one.change]} {one.file}", indent=2)
    if result.pulled:
        screen.line(good("✓ "), "pulled: ", dim(result.pulled.splitlines()[-1]))
        for line in result.pulled.splitlines():
            if line.startswith("mind: "):
                screen.note(line.removeprefix("mind: "))
    if result.pushed:
        screen.line(good("✓ "), "pushed")
    if result.notice:
        screen.note(result.notice)
