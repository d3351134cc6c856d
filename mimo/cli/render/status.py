"""How the status looks."""

from mimo.cli.render import Part, Screen, accent, dim, good, render, strong, warn
from mimo.cli.render.words import count, day, tally
from mimo.commands.status import ProjectOrigins, ProjectStatus, Status

_SHOWN = 5
"""Unreadable files that are named here; `mind doctor` lists them all."""


@render.register
def _(result: Status, screen: Screen) -> None:
    if result.current_project:
        _project(result.current_project, screen)
    else:
        screen.line("no project here; ", accent("`mind init`"), " makes one")
    screen.blank()
    total = result.global_stats
    if total.projects_registered > (1 if result.current_project else 0):
        known = count(total.projects_registered, "registered project")
        screen.line(dim(f"{known}, {count(total.total_memories, 'memory', 'memories')} in all"))
    running = "runs" if result.daemon.running else "does not run; nothing needs it"
    screen.line(dim(f"the daemon {running}"))
    for warning in result.warnings:
        screen.line(warn(warning))


def _project(project: ProjectStatus, screen: Screen) -> None:
    health = good("good") if project.memory_health == "good" else warn(project.memory_health)
    screen.line(strong(project.name), "  ", dim(project.path))
    rows: list[tuple[str, Part]] = [("memory", health), ("holds", _counts(project))]
    if project.origins.in_place:
        rows.append(("in place", _in_place(project.origins)))
    if project.origins.chunks:
        chunks, files = project.origins.chunks, project.origins.ingested_files
        rows.append(("ingested", f"{count(files, 'file')}, {count(chunks, 'chunk')}"))
    if project.last_activity:
        rows.append(("last activity", day(project.last_activity)))
    if project.stack:
        rows.append(("stack", ", ".join(project.stack)))
    rows.append(("trust", project.trust))
    if project.waiting:
        rows.append(("waits for you", warn(f"{tally(project.waiting)}  (`mind review`)")))
    screen.pairs(rows, indent=2)
    for unread in project.unreadable[:_SHOWN]:
        line = f":{unread.line}" if unread.line else ""
        screen.line(warn(f"unreadable: {unread.file}{line}"), dim(f"  {unread.reason}"), indent=2)
    if len(project.unreadable) > _SHOWN:
        more = len(project.unreadable) - _SHOWN
        screen.line(warn(f"and {more:,} more; `mind doctor` lists them"), indent=2)


def _in_place(origins: ProjectOrigins) -> str:
    included = f", {origins.included:,} of them by `include`" if origins.included else ""
    return count(origins.in_place, "document") + included


def _counts(project: ProjectStatus) -> str:
    stats = project.stats
    parts = [
        count(project.memories, "memory", "memories"),
        count(stats.decisions, "decision"),
        count(stats.issues_open, "open issue"),
        count(stats.learnings, "learning"),
        count(stats.edges, "edge"),
    ]
    return ", ".join(part for part in parts[:1] + [p for p in parts[1:] if not p.startswith("0 ")])
