"""The output of `mind sync`, `log`, `blame`, `diff` and `restore`."""

import re

from mimo.features.history.commands import Blame, ChangedFile, Diff, Log, Restored, Synced
from mimo.features.history.revisions import DiffRow
from mimo.memory.ids import source_of
from mimo.rendering import Screen, accent, dim, good, ident, path, strong, titled, warn
from mimo.rendering.results import count, day, idents, labels, render, row_labels, type_mark

_MARKS = {"added": "+", "changed": "~", "removed": "-"}
_CHANGES = re.compile(r"^ *\d+ files? changed")
"""The line in which git counts the files that a pull changed."""
_WIDTH = 16
_BELOW = " › "  # noqa: RUF001 - as in the titles of chunks


@render.register
def _(result: Log, screen: Screen) -> None:
    if not result.commits and not result.notice:
        screen.line("nothing was committed yet")
        screen.note("`mind sync` commits the memory")
    for row in result.commits:
        agents = f" with {row.commit.agents}" if row.commit.agents else ""
        who = dim(f"  {day(row.commit.date)}  {row.commit.author}{agents}")
        screen.line(accent(row.commit.commit), who)
        screen.line(strong(row.commit.subject), indent=2)
        for file in row.files:
            _show_file(file, screen, indent=4)


def _show_file(file: ChangedFile, screen: Screen, *, indent: int) -> None:
    """Writes the memory in a changed file, or the path of another or a missing one."""
    mark = dim(f"{_MARKS[file.change]} ")
    if file.id and file.title:
        screen.line(mark, ident(file.id), "  ", titled(file.title), indent=indent)
    else:
        screen.line(mark, path(file.file), indent=indent)


@render.register
def _(result: Blame, screen: Screen) -> None:
    screen.line(ident(result.id), "  ", strong(result.title), *row_labels(result))
    facts = [("made by", result.by), ("session", result.session)]
    screen.pairs([(name, value) for name, value in facts if value], indent=2)
    previous = ""
    for line in result.lines:
        about, commit = "", line.commit
        if commit.commit != previous:
            who = commit.agents or commit.author
            short = who if len(who) <= _WIDTH else f"{who[: _WIDTH - 1]}…"
            about = f"{commit.commit} {day(commit.date)} {short}"
        previous = commit.commit
        screen.line(dim(f"{about:<42}"), dim(f"{line.line:>4} "), line.text)


@render.register
def _(result: Restored, screen: Screen) -> None:
    then = f"as it was on {day(result.commit.date)} ({result.commit.commit})"
    title = titled(result.title)
    screen.line(good("✓ "), ident(result.id), "  ", title, *row_labels(result), dim(f"  {then}"))
    if result.approved:
        screen.note("this approves the text, which was not trusted before")
    if result.replaced:
        screen.note("the text before is in the trash; `mind undo` brings it back")
    elif result.undo:
        screen.note("`mind undo` removes it again")


@render.register
def _(result: Diff, screen: Screen) -> None:
    if result.text is not None:
        for line in result.text.splitlines():
            screen.line(line)
        return
    chunks: dict[tuple[str, str], list[DiffRow]] = {}
    for row in result.memories:
        if source := source_of(row.id):
            chunks.setdefault((source, row.change), []).append(row)
        else:
            _show_row(row, screen)
    for (source, change), rows in chunks.items():
        title, many = titled(rows[0].title.partition(_BELOW)[0]), count(len(rows), "chunk")
        screen.line(f"{_MARKS[change]} ", ident(source), dim("  file  "), title, f"  {many}")
    if not result.memories:
        screen.line(f"no changes {result.between}")
        return
    parts = [f"{getattr(result, name)} {name}" for name in ("added", "changed", "removed")]
    parts += [
        f"{n} {name}" for name in ("superseded", "contradicted") if (n := getattr(result, name))
    ]
    parts += [count(result.outcomes, "other outcome")] if result.outcomes else []
    screen.line(dim(f"{result.between}: {', '.join(parts)}"))


def _show_row(row: DiffRow, screen: Screen) -> None:
    about = dim(f"  {type_mark(row.type)}  ")
    marks = labels(trust=row.trust) if row.change != "removed" else ()
    screen.line(f"{_MARKS[row.change]} ", ident(row.id), about, titled(row.title), *marks)
    if row.outcome_changed:
        screen.line(warn(f"{row.outcome_before or 'open'} → {row.outcome or 'open'}"), indent=4)
    if row.fields:
        screen.line(dim(f"changed: {', '.join(row.fields)}"), indent=4)
    for ids, verb in ((row.supersedes, "supersedes"), (row.contradicts, "contradicts")):
        if ids:
            screen.line(warn(f"{verb} "), *idents(ids), indent=4)


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
    for file in result.files:
        _show_file(file, screen, indent=2)
    if result.pulled:
        lines = result.pulled.splitlines()
        changes = (line.strip() for line in lines if _CHANGES.search(line))
        screen.line(good("✓ "), "pulled: ", dim(next(changes, lines[-1])))
        for line in lines:
            if line.startswith("mind: "):
                screen.note(line.removeprefix("mind: "))
    if result.pushed:
        screen.line(good("✓ "), "pushed")
