"""How it looks to resume work, and to see a decision with all around it."""

from mimo.cli.render import Screen, accent, bad, dim, render, strong, warn
from mimo.cli.render.words import day, labels, row_labels, tagged
from mimo.commands.common import TrustLabel
from mimo.commands.load import Checkpoint, Context, RelatedMemory
from mimo.commands.rows import Remembered


@render.register
def _(result: Checkpoint, screen: Screen) -> None:
    if result.summary is None:
        screen.line("no checkpoint")
        screen.note(result.notice or "")
        return
    where = f" on {result.branch}" if result.branch else ""
    by = f" by {result.by}" if result.by else ""
    marks = labels(trust=result.trust or TrustLabel.TRUSTED)
    screen.line(strong(f"Checkpoint, {result.age}{where}{by}"), *marks)
    if result.notice:
        screen.line(warn(result.notice))
    screen.blank()
    screen.markdown(result.summary)
    _list(screen, "Next steps", result.next_steps)
    _list(screen, "Open files", list(result.open_files))
    screen.blank()
    screen.line(accent(result.id or ""), dim(f"  {result.file}"))


def _list(screen: Screen, title: str, items: object) -> None:
    """Write a list under its title, or a text that was given instead of one."""
    if not items:
        return
    screen.blank()
    screen.line(strong(title))
    if isinstance(items, str):
        screen.markdown(items)
        return
    for item in items if isinstance(items, list) else []:
        first, *more = str(item).splitlines() or [""]
        screen.line(f"- {first}", indent=2)
        for line in more:
            screen.line(line, indent=4)


@render.register
def _(result: Context, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    show(result.memory, screen, whole=True)
    if result.related:
        screen.blank()
        screen.line(strong("Linked"))
    links = {(link.source, link.target): link.type for link in result.links}
    for other in result.related:
        _related(other, result.memory.id, links, screen)
    for target in result.missing:
        screen.line(dim(f"links to {target}, which is not there"), indent=2)


def _related(
    other: RelatedMemory, start: str, links: dict[tuple[str, str], str], screen: Screen
) -> None:
    out, back = links.get((start, other.id)), links.get((other.id, start))
    how = f"{out} → " if out else f"← {back} " if back else "· "
    marks = labels(outcome=other.outcome, superseded_by=other.superseded_by, trust=other.trust)
    screen.line(dim(how), other.title, *marks, indent=2 * other.depth)
    screen.line(accent(other.id), dim(f"  {day(other.created_at)}"), indent=2 * other.depth + 2)
    if other.warning:
        screen.line(bad(other.warning), indent=2 * other.depth + 2)


def show(row: Remembered, screen: Screen, *, whole: bool = False) -> None:
    """Write one memory with all that says whether it still holds."""
    screen.line(strong(row.title), *row_labels(row))
    if row.warning:
        screen.text(row.warning, indent=2)
    about = (row.type, row.topic, day(row.created_at), tagged(row.tags), row.by)
    screen.line(accent(row.id), "  ", dim("  ".join(part for part in about if part)), indent=2)
    text = _without_title(row)
    if whole:
        if text:
            screen.blank()
            screen.markdown(text)
        if row.reasoning:
            screen.blank()
            screen.line(strong("Reasoning"))
            screen.markdown(row.reasoning)
        return
    if text:
        screen.text(_cut(text), indent=2)
    if row.reasoning:
        screen.text(f"because {_cut(row.reasoning)}", indent=2)


def _without_title(row: Remembered) -> str:
    first, _, rest = row.content.strip().partition("\n")
    same = first.lstrip("# ").strip() == row.title.strip().rstrip("…")
    return (rest if same else row.content).strip("\n")


def _cut(text: str) -> str:
    lines = text.strip().splitlines()
    return "\n".join([*lines[:4], *(["…"] if len(lines) > 4 else [])])
