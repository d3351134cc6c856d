"""How a difference looks."""

from mimo.cli.render import Screen, accent, dim, render, strong, warn
from mimo.cli.render.words import count
from mimo.commands.diff import Diff, DiffRow

_MARKS = {"added": "+", "changed": "~", "removed": "-"}


@render.register
def _(result: Diff, screen: Screen) -> None:
    if result.text is not None:
        for line in result.text.splitlines():
            screen.line(line)
        return
    for row in result.memories:
        _row(row, screen)
    told = [f"{getattr(result, name)} {name}" for name in ("added", "changed", "removed")]
    told += [
        f"{n} {name}" for name in ("superseded", "contradicted") if (n := getattr(result, name))
    ]
    told += [count(result.outcomes, "other outcome")] if result.outcomes else []
    screen.line(dim(f"{result.before}..{result.after}: {', '.join(told)}"))


def _row(row: DiffRow, screen: Screen) -> None:
    screen.line(f"{_MARKS[row.change]} ", dim(f"{row.type} "), strong(row.title))
    screen.line(accent(row.id), indent=4)
    if row.outcome_changed:
        screen.line(warn(f"{row.outcome_before or 'open'} → {row.outcome or 'open'}"), indent=4)
    if row.fields:
        screen.line(dim(f"changed: {', '.join(row.fields)}"), indent=4)
    for ids, verb in ((row.supersedes, "supersedes"), (row.contradicts, "contradicts")):
        for name in ids:
            screen.line(warn(f"{verb} {name}"), indent=4)
