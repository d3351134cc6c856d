"""`mind status`: the state of the memory."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Annotated

from mimo.call import Call
from mimo.call.spec import Effect, Needs, Omitted, Out, command
from mimo.errors import Command, Hint, Invalid, MindError
from mimo.features import daemon, review
from mimo.features.pitfalls import sources
from mimo.features.review import trusting
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.index.embedding import open_encoder, other_machine
from mimo.index.meanings import count_missing
from mimo.memory.model import Filter, Kind
from mimo.operations import (
    across,
    disclosure,
    earlier,
    encoding,
    finding,
    overview,
    running,
    sharing,
    syncing,
)
from mimo.operations.overview import Health
from mimo.operations.rows import File, row_of
from mimo.operations.sharing import SharedState
from mimo.rendering import Part, Screen, accent, dim, good, strong, warn
from mimo.rendering.results import count, day, minute, render, tally
from mimo.text.clean import one_line

_LONGEST_WARNING = 300
_MAX_FILES = 5
"""Unreadable files that are named here; `mind doctor` lists them all."""


@frozen
class DaemonStatus:
    """The state of the optional daemon; everything works without it."""

    running: bool
    pid: int | None
    uptime_seconds: int | None
    projects_watching: int
    last_index: Annotated[datetime | None, Out("When the index of this project last changed")]
    start: Annotated[Omitted[str], Out("The command that starts it if it is not running")] = None


@frozen
class ProjectStats:
    """The numbers of a project's memories."""

    decisions: int
    issues_open: int
    issues_resolved: int
    learnings: int
    edges: int
    sessions_inferred: int


@frozen
class ProjectOrigins:
    """The numbers of memories in documents and ingested files."""

    in_place: Annotated[int, Out("In documents that people wrote, read where they are")]
    included: Annotated[int, Out("Of these, outside `.mind/`, named by the setting `include`")]
    ingested_files: int
    chunks: Annotated[int, Out("Of the ingested files; each chunk is a memory")]


@frozen
class Unreadable:
    """A file that could not be read as a memory, which was not changed."""

    file: File
    line: int | None
    reason: str


@frozen
class Meaning:
    """The texts that the encoder has read, for searches in other words: memories and chunks."""

    read: int
    unread: Annotated[int, Out("Texts that servers read between calls, or `mind index` now")]


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
    trust: Annotated[str, Out("A description of the trust in the files here")]
    waiting: Annotated[dict[str, int], Out("Number of items to review, by kind")]
    unreadable: tuple[Unreadable, ...]
    shared: Annotated[
        Omitted[SharedState], Out("Its state in the shared index, if it was pushed")
    ] = None
    meaning: Annotated[
        Omitted[Meaning], Out("How many texts are read for their meaning, if not all are")
    ] = None


@frozen
class GlobalStats:
    """All registered projects together."""

    projects_registered: int
    global_edges: int
    total_memories: int


@frozen
class UserMemory:
    """The memory that the user has for all projects."""

    memories: int
    proposed: Annotated[int, Out("Of these, added by agents and not approved")]


@frozen
class RunningProcess:
    """A process that runs until the user or the client stops it."""

    kind: Annotated[running.Kind, Out("The command of `mind` that it runs")]
    pid: int
    since: datetime | None


@frozen
class Status:
    """The state of the memory."""

    daemon: DaemonStatus
    current_project: ProjectStatus | None
    global_stats: GlobalStats
    warnings: tuple[str, ...]
    user_memory: Annotated[Omitted[UserMemory], Out("The user's memory for all projects")] = None
    sessions: Annotated[
        Omitted[int], Out("Earlier sessions with agents that are kept, if that is on")
    ] = None
    running: Annotated[
        tuple[RunningProcess, ...],
        Out("The daemon, MCP servers and viewers that run for this project", omit=True),
    ] = ()


@command(
    "mind_status",
    cli="status",
    effect=Effect.READ,
    toolset="edges",
    needs=Needs(Operation.READ, diagnosis=True),
    needs_project=False,
    examples=("mind status",),
    description="Check Mind daemon status and project stats. Use if something seems wrong.",
    title="Show the status",
)
def status(call: Call) -> Status:
    """Show the state of the memory"""
    process = daemon.running(call.mind.home)
    started = process.started if process else None
    registered = call.registered().projects
    paths = {str(entry.path) for entry in registered}
    totals, _ = across.ask_each(
        call,
        "mind_status",
        lambda project, here: finding.total(
            project,
            shared=disclosure.hides_private(call, is_here=here, is_asked=False),
            roughly=not here,
        ),
        diagnosis=True,
    )
    return Status(
        daemon=DaemonStatus(
            running=process is not None,
            pid=process.pid if process else None,
            uptime_seconds=int((call.mind.now() - started).total_seconds()) if started else None,
            projects_watching=len(paths.intersection(process.watching)) if process else 0,
            last_index=call.index.changed_at() if call.mind.has_project else None,
            start=None if process else "mind daemon start",
        ),
        current_project=_project(call) if call.mind.has_project else None,
        global_stats=GlobalStats(
            projects_registered=len(registered),
            global_edges=len(sources.user_edges(call)),
            total_memories=sum(total for _, _, total in totals),
        ),
        warnings=tuple(_warnings(call)),
        user_memory=_user_memory(call),
        sessions=_sessions(call),
        running=tuple(_running(call, process)),
    )


def _running(call: Call, process: daemon.Running | None) -> Iterator[RunningProcess]:
    """Yields what runs for this project; outside of any project, all of it."""
    root = call.mind.project.root if call.mind.has_project else None
    if process and (root is None or str(root) in process.watching):
        yield RunningProcess(kind=running.Kind.DAEMON, pid=process.pid, since=process.started)
    for server in running.servers(call.mind.home, root):
        yield row_of(server, RunningProcess)


def _user_memory(call: Call) -> UserMemory | None:
    user = call.user()
    if user is None:
        return None
    with suppress(MindError):  # `mind doctor` reports the reason.
        memories = finding.total(user)
        approved = user.index.folded(Filter(approved=True)).rows
        return UserMemory(memories=memories, proposed=memories - approved)
    return None


def _sessions(call: Call) -> int | None:
    with suppress(MindError):  # `mind doctor` reports the reason.
        if call.sees_sessions and (sessions := earlier.sessions_of(call.mind)):
            return sessions.number(call.mind)
    return None


def _warnings(call: Call) -> Iterator[str]:
    """Yields warnings about settings, private files in git, and the merging of memories."""
    for warning in disclosure.of_settings(call):
        # The text may be from a clone.
        line = one_line(warning)
        yield line if len(line) <= _LONGEST_WARNING else f"{line[:_LONGEST_WARNING]}…"
    try:
        if call.mind.config["embedding.encoder"] not in ("on", "off"):
            open_encoder(call.mind.config)  # `mind doctor` asks it; that may take seconds.
    except Invalid as error:
        yield Hint(f"{error.message}; ", error.hint)
    if call.mind.has_project:
        for leak in syncing.leaks(call.mind.project.root):
            yield Hint(f"{leak.message}: ", leak.hint)
        if lacking := syncing.lacking(call.mind.project.root):
            yield Hint(f"{lacking}; ", Command("doctor", fix=True), " repairs that")
        if ignored := syncing.ignored(call.mind.project.root):
            yield ignored
        if failure := syncing.failure_of_commit(call):
            yield Hint(f"{failure}; ", Command("sync"), " commits the changes")


def _project(call: Call) -> ProjectStatus:
    counted = overview.overview(call)
    number = counted.by_type
    return ProjectStatus(
        path=str(call.mind.project.root),
        name=call.mind.project.name,
        stack=sources.technologies(call),
        memory_health=counted.health(call.mind.now()),
        last_activity=counted.newest,
        stats=ProjectStats(
            decisions=number.get(Kind.DECISION, 0),
            issues_open=number.get(Kind.ISSUE, 0) - counted.issues_resolved,
            issues_resolved=counted.issues_resolved,
            learnings=number.get(Kind.INSIGHT, 0),
            edges=number.get(Kind.EDGE, 0),
            sessions_inferred=counted.sessions,
        ),
        memories=counted.total,
        origins=row_of(counted.origins, ProjectOrigins),
        trust=trusting.describe(call),
        waiting=review.count(call),
        unreadable=tuple(
            row_of(problem, Unreadable, file=problem.path)
            for problem in disclosure.of_problems(call)
        ),
        shared=_shared_state(call),
        meaning=_meaning(call),
    )


def _meaning(call: Call) -> Meaning | None:
    """Returns how far the encoder has read; None if it is off, lacks numpy, or has read all."""
    place, files = call.mind.config["embedding.encoder"], tuple(call.mind.index.files())
    if place == "off" or not files[1:]:
        return None
    is_here = place == "on" or not other_machine(place)
    unread = call.index.ask(count_missing, files[1], with_private=is_here)
    if not unread:
        return None
    from importlib.util import find_spec

    read = max(0, call.index.totals().visible - unread)
    return Meaning(read=read, unread=unread) if find_spec("numpy") else None


def _shared_state(call: Call) -> SharedState | None:
    with suppress(MindError):  # `mind doctor` reports the reason.
        if sharing.url_of(call.mind):
            return sharing.shared_index(call).state(call)
    return None


# The output.


@render.register
def _(result: Status, screen: Screen) -> None:
    if result.current_project:
        _draw_project(result.current_project, screen)
    else:
        screen.line("no project here; ", accent("`mind init`"), " makes one")
    screen.blank()
    if user := result.user_memory:
        proposed = f", {user.proposed:,} proposed (`mind review --user`)" if user.proposed else ""
        memories = count(user.memories, "memory", "memories")
        screen.line(dim(f"{memories} for all projects{proposed}"))
    if result.sessions is not None:
        screen.line(dim(f"{count(result.sessions, 'earlier session')} kept (`mind sessions`)"))
    total = result.global_stats
    if total.projects_registered > (1 if result.current_project else 0):
        registered = count(total.projects_registered, "registered project")
        screen.line(
            dim(f"{registered}, {count(total.total_memories, 'memory', 'memories')} in all")
        )
    for process in result.running:
        started = f", started {minute(process.since)}" if process.since else ""
        screen.line(dim(f"`mind {process.kind}` runs as process {process.pid}{started}"))
    if not result.daemon.running:
        screen.line(dim("the daemon is not running; nothing needs it (start: `mind daemon start`)"))
    for warning in result.warnings:
        screen.line(warn(warning))


def _draw_project(project: ProjectStatus, screen: Screen) -> None:
    health = good("good") if project.memory_health == "good" else warn(project.memory_health)
    screen.line(strong(project.name), "  ", dim(project.path))
    rows: list[tuple[str, Part]] = [("memory", health), ("holds", _counts(project))]
    origins = project.origins
    if origins.in_place:
        included = f", {origins.included:,} of them by `include`" if origins.included else ""
        in_place = count(origins.in_place, "memory", "memories")
        rows.append(("in place", f"{in_place} read where they are{included}"))
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
    if (meaning := project.meaning) and meaning.unread >= encoding.NOTABLE:
        read = f"{meaning.read:,} of {meaning.read + meaning.unread:,} texts are read"
        others = "servers read the rest between calls, slowly on battery  (`mind index`: now)"
        rows.append(("meaning", f"{read}; {others}"))
    if project.shared:
        rows.append(("shared index", _shared_row(project.shared)))
    screen.pairs(rows, indent=2)
    for unread in project.unreadable[:_MAX_FILES]:
        line = f":{unread.line}" if unread.line else ""
        screen.line(warn(f"unreadable: {unread.file}{line}"), dim(f"  {unread.reason}"), indent=2)
    if len(project.unreadable) > _MAX_FILES:
        more = len(project.unreadable) - _MAX_FILES
        screen.line(warn(f"and {more:,} more; `mind doctor` lists them"), indent=2)


def _shared_row(state: SharedState) -> Part:
    pushed = f"{state.place}, pushed {day(state.pushed)}"
    if state.changes == 0:
        return f"{pushed}, up to date"
    changes = "changed" if state.changes is None else count(state.changes, "change")
    return warn(Hint(f"{pushed}, {changes} since  (", Command("index", push=True), ")"))


def _counts(project: ProjectStatus) -> str:
    stats = project.stats
    kinds = (
        (stats.decisions, "decision"),
        (stats.issues_open, "open issue"),
        (stats.learnings, "insight"),
        (stats.edges, "pitfall"),
    )
    memories = count(project.memories, "memory", "memories")
    return ", ".join([memories, *(count(number, kind) for number, kind in kinds if number)])
