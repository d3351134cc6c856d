"""The output of `mind init`, `status`, `config`, `index` and `doctor`."""

from mimo.features.review.trusting import show_look
from mimo.features.upkeep import Verdict
from mimo.features.upkeep.commands import (
    Diagnosis,
    Indexed,
    Initialised,
    ProjectStatus,
    Settings,
    Shared,
    SharedState,
    Status,
)
from mimo.rendering import Part, Screen, accent, bad, dim, good, strong, warn
from mimo.rendering.results import count, day, render, shown, tally


@render.register
def _(result: Initialised, screen: Screen) -> None:
    done = "has a memory now" if result.created else "had a memory already"
    screen.line(good("✓ "), strong(result.name), f" {done}  ", dim(result.path))
    for path in result.added:
        screen.line(dim(f"wrote {path}"), indent=2)
    if result.include:
        screen.blank()
        screen.line("found ", ", ".join(result.found), "; to search them as memories, put")
        screen.line(accent(result.include), indent=4)
        screen.line("into .mind/config.toml", indent=2)
    for notice in result.notices:
        screen.note(notice)
    screen.blank()
    if result.arrived:
        show_look(result.arrived, screen)
        screen.blank()
        screen.line("another author wrote them: go through them with ", accent("`mind review`"))
        screen.line("or approve all of them with ", accent("`mind trust`"))
    screen.line("next: ", accent('mind add "what should be remembered"'))


_SHOWN = 5
"""Unreadable files that are named here; `mind doctor` lists them all."""


@render.register
def _(result: Status, screen: Screen) -> None:
    if result.current_project:
        _project(result.current_project, screen)
    else:
        screen.line("no project here; ", accent("`mind init`"), " makes one")
    screen.blank()
    if own := result.user_memory:
        proposed = f", {own.proposed:,} proposed (`mind review --user`)" if own.proposed else ""
        memories = count(own.memories, "memory", "memories")
        screen.line(dim(f"{memories} for all projects{proposed}"))
    total = result.global_stats
    if total.projects_registered > (1 if result.current_project else 0):
        registered = count(total.projects_registered, "registered project")
        screen.line(
            dim(f"{registered}, {count(total.total_memories, 'memory', 'memories')} in all")
        )
    if result.daemon.running:
        screen.line(dim("the daemon is running"))
    else:
        screen.line(dim("the daemon is not running; nothing needs it (start: `mind daemon start`)"))
    for warning in result.warnings:
        screen.line(warn(warning))


def _project(project: ProjectStatus, screen: Screen) -> None:
    health = good("good") if project.memory_health == "good" else warn(project.memory_health)
    screen.line(strong(project.name), "  ", dim(project.path))
    rows: list[tuple[str, Part]] = [("memory", health), ("holds", _counts(project))]
    origins = project.origins
    if origins.in_place:
        included = f", {origins.included:,} of them by `include`" if origins.included else ""
        in_place = count(origins.in_place, "memory", "memories")
        rows.append(("in place", f"{in_place} in your documents{included}"))
    if origins.chunks:
        files = count(origins.ingested_files, "file")
        rows.append(("ingested", f"{files}, {count(origins.chunks, 'chunk')}"))
    if project.last_activity:
        rows.append(("last activity", day(project.last_activity)))
    if project.stack:
        rows.append(("stack", ", ".join(project.stack)))
    rows.append(("trust", project.trust))
    if project.waiting:
        rows.append(("to review", warn(f"{tally(project.waiting)}  (`mind review`)")))
    if project.shared:
        rows.append(("shared index", _shared_state(project.shared)))
    screen.pairs(rows, indent=2)
    for unread in project.unreadable[:_SHOWN]:
        line = f":{unread.line}" if unread.line else ""
        screen.line(warn(f"unreadable: {unread.file}{line}"), dim(f"  {unread.reason}"), indent=2)
    if len(project.unreadable) > _SHOWN:
        more = len(project.unreadable) - _SHOWN
        screen.line(warn(f"and {more:,} more; `mind doctor` lists them"), indent=2)


def _shared_state(state: SharedState) -> Part:
    pushed = f"{state.place}, pushed {day(state.pushed)}"
    if state.changes == 0:
        return f"{pushed}, up to date"
    changes = "changed" if state.changes is None else count(state.changes, "change")
    return warn(f"{pushed}, {changes} since  (`mind index --push`)")


def _counts(project: ProjectStatus) -> str:
    stats = project.stats
    parts = [
        count(project.memories, "memory", "memories"),
        count(stats.decisions, "decision"),
        count(stats.issues_open, "open issue"),
        count(stats.learnings, "learning"),
        count(stats.edges, "edge"),
    ]
    return ", ".join([parts[0], *(part for part in parts[1:] if not part.startswith("0 "))])


@render.register
def _(result: Settings, screen: Screen) -> None:
    for row in result.settings:
        value = shown(row.value) if row.value not in ("", []) else "-"
        screen.line(accent(row.key), " = ", value, dim(f"  ({row.origin})"))
        screen.line(dim(row.help), indent=4)
    for warning in result.warnings:
        screen.line(warn(warning))


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
    changes = f"{result.added:,} new, {result.changed:,} changed, {result.removed:,} deleted"
    screen.line(dim(f"files: {changes}"), indent=2)
    if result.encoded:
        compared = count(result.encoded, "memory", "memories")
        screen.line(dim(f"{compared} prepared for comparison in context"), indent=2)
    if result.unreadable:
        unread = count(result.unreadable, "file could", "files could")
        screen.line(warn(f"{unread} not be read; `mind doctor` lists them"), indent=2)
    if result.shared:
        _write_shared(result.shared, screen)


def _write_shared(result: Shared, screen: Screen) -> None:
    if result.withdrawn:
        screen.line(good("✓ "), "withdrawn from ", strong(result.place))
        return
    held = count(result.memories, "memory", "memories")
    screen.line(good("✓ "), f"{held} in the shared index at ", strong(result.place))
    changes = f"{result.added:,} new, {result.removed:,} removed, {result.vectors:,} vectors sent"
    screen.line(dim(changes), indent=2)
    if result.left_out:
        screen.line(warn(f"{result.left_out} can't be stored there"), indent=2)
    roles = [f"{row.role} ({row.right})" for row in result.roles]
    screen.line(dim(f"open to {', '.join(roles)}"), indent=2)
    if len(roles) < 2:
        screen.note("no other role can read it yet: `mind index --reader ROLE`, or `everyone`")


@render.register
def _(result: Diagnosis, screen: Screen) -> None:
    for check in result.checks:
        line = f":{check.line}" if check.line else ""
        place = f"{check.file}{line}  " if check.file else ""
        screen.line(_MARKS[check.verdict], dim(f"{check.name:<9}"), place, check.message)
        if check.hint and check.verdict is not Verdict.OK and not check.file:
            screen.line(dim(f"hint: {check.hint}"), indent=17)
    screen.blank()
    warnings = sum(check.verdict is Verdict.WARNING for check in result.checks)
    noted = f", {count(warnings, 'warning')}" if warnings else ""
    screen.line(good(f"healthy{noted}") if result.healthy else bad("not healthy"))
