"""`mind status`: how the memory is, at a glance."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from mimo.commands.common import File
from mimo.commands.spec import Effect, Needs, command
from mimo.commands.types import Out
from mimo.domain.clean import one_line
from mimo.domain.memory import Kind
from mimo.domain.policy import Operation
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import (
    approval,
    edges,
    elsewhere,
    leaks,
    merging,
    overview,
    recall,
    upkeep,
    waiting,
)
from mimo.services.overview import Health, Origins, Overview
from mimo.store import daemon, projects

_LONGEST_WARNING = 300


@frozen
class DaemonStatus:
    """Whether the optional watcher runs; everything works without it."""

    running: bool
    pid: int | None
    uptime_seconds: int | None
    projects_watching: int
    last_index: Annotated[datetime | None, Out("When the index of this project last changed")]


@frozen
class ProjectStats:
    """What a project's memory holds."""

    decisions: int
    issues_open: int
    issues_resolved: int
    learnings: int
    edges: int
    sessions_inferred: int


@frozen
class ProjectOrigins:
    """Which of a project's memories are not in files that mind keeps, one for each."""

    in_place: Annotated[int, Out("In documents that people wrote, read where they are")]
    included: Annotated[int, Out("Of these, outside `.mind/`, named by the setting `include`")]
    ingested_files: int
    chunks: Annotated[int, Out("Of the ingested files; each chunk is a memory")]


@frozen
class Unreadable:
    """A file that could not be read as a memory; it was left as it is."""

    file: File
    line: int | None
    reason: str


@frozen
class ProjectStatus:
    """The current project's memory."""

    path: str
    name: str
    stack: tuple[str, ...]
    memory_health: Health
    last_activity: datetime | None
    stats: ProjectStats
    memories: int
    origins: ProjectOrigins
    trust: Annotated[str, Out("How far the files here are trusted")]
    waiting: Annotated[dict[str, int], Out("How many things wait for a person, by reason")]
    unreadable: tuple[Unreadable, ...]


@frozen
class GlobalStats:
    """All registered projects together."""

    projects_registered: int
    global_edges: int
    total_memories: int


@frozen
class Status:
    """How the memory is."""

    daemon: DaemonStatus
    current_project: ProjectStatus | None
    global_stats: GlobalStats
    warnings: tuple[str, ...]


@command(
    "mind_status",
    cli="status",
    effect=Effect.READ,
    toolset="edges",
    needs=Needs(Operation.READ, diagnosis=True),
    needs_project=False,
    examples=("mind status",),
    description="Check Mind daemon status and project stats.",
)
def status(mind: Mind) -> Status:
    """Show how the memory is"""
    current = _project(mind) if mind.has_project else None
    return Status(
        daemon=_daemon(mind),
        current_project=current,
        global_stats=_everywhere(mind),
        warnings=(*map(_shortened, mind.config.warnings), *_of_git(mind)),
    )


def _shortened(warning: str) -> str:
    """Returns a warning about settings on one line: its words may be those of a clone."""
    line = one_line(warning)
    return line if len(line) <= _LONGEST_WARNING else f"{line[:_LONGEST_WARNING]}…"


def _of_git(mind: Mind) -> Iterator[str]:
    """Yields warnings about private files in git, and about how git merges memories."""
    if not mind.has_project:
        return
    for leak in leaks.leaks(mind.project.root):
        yield f"{leak.message}: {leak.hint}"
    if warning := merging.lacking(mind.project.root):
        yield f"{warning}; `mind doctor --fix` mends that"


def _daemon(mind: Mind) -> DaemonStatus:
    found = daemon.running(mind.home)
    started = found.started if found else None
    return DaemonStatus(
        running=found is not None,
        pid=found.pid if found else None,
        uptime_seconds=int((mind.now() - started).total_seconds()) if started else None,
        projects_watching=len(found.watching) if found else 0,
        last_index=mind.index.changed_at() if mind.has_project else None,
    )


def _project(mind: Mind) -> ProjectStatus:
    counted = overview.overview(mind)
    return ProjectStatus(
        path=str(mind.project.root),
        name=mind.project.name,
        stack=edges.technologies(mind),
        memory_health=counted.health(mind.now()),
        last_activity=counted.newest,
        stats=_stats(counted),
        memories=counted.total,
        origins=_origins(counted.origins),
        trust=approval.describe(mind),
        waiting=waiting.count(mind),
        unreadable=tuple(
            Unreadable(file=problem.path, line=problem.line, reason=problem.reason)
            for problem in upkeep.problems(mind)
        ),
    )


def _stats(counted: Overview) -> ProjectStats:
    number = counted.by_type
    return ProjectStats(
        decisions=number.get(Kind.DECISION, 0),
        issues_open=number.get(Kind.ISSUE, 0) - counted.issues_resolved,
        issues_resolved=counted.issues_resolved,
        learnings=number.get(Kind.INSIGHT, 0),
        edges=number.get(Kind.EDGE, 0),
        sessions_inferred=counted.sessions,
    )


def _origins(counted: Origins) -> ProjectOrigins:
    return ProjectOrigins(
        in_place=counted.in_place,
        included=counted.included,
        ingested_files=counted.ingested_files,
        chunks=counted.chunks,
    )


def _everywhere(mind: Mind) -> GlobalStats:
    counted = elsewhere.ask_each(mind, "mind_status", _total, diagnosis=True)
    return GlobalStats(
        projects_registered=len(projects.registered(mind.home).projects),
        global_edges=len(edges.of_everybody(mind)),
        total_memories=sum(answer.value for answer in counted.found),
    )


def _total(mind: Mind, *, here: bool) -> int:
    return recall.total(mind, shared=not here)
