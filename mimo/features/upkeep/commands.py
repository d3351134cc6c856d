"""The commands that keep a store healthy: `mind init`, `status`, `config`, `index`, `doctor`."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from mimo.commands.common import File
from mimo.commands.spec import Arg, Effect, Json, Needs, Omitted, Out, Surface, command
from mimo.config import SETTINGS, Setting, setting
from mimo.disk import STORE
from mimo.errors import Invalid, MindError, StorageFailed
from mimo.features import daemon, review, upkeep
from mimo.features.edges import sources
from mimo.features.review import trusting
from mimo.features.review.trusting import FirstLook, look_of
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import finding, overview, refresh, syncing
from mimo.operations.overview import Health, Origins, Overview
from mimo.store import projects
from mimo.store.init import init as make
from mimo.store.projects import Project, Registered, find
from mimo.surroundings import Question
from mimo.text.clean import one_line

_ANSWERS = ("yes", "no")
_ANSWER_SECONDS = 300.0


@frozen
class Initialised:
    """The result of `mind init`."""

    path: Annotated[str, Out("The project's root")]
    name: str
    created: Annotated[bool, Out("Whether there was no memory here before")]
    added: Annotated[tuple[str, ...], Out("Files that were written, relative to the project")]
    trusted: Annotated[bool, Out("Whether it is new, so that all in it is the user's own")]
    found: Annotated[tuple[str, ...], Out("Documents that are already here")]
    include: Annotated[str | None, Out("Line for .mind/config.toml that makes them memories")]
    notices: tuple[str, ...]
    arrived: Annotated[
        FirstLook | None, Out("A summary of unapproved files in an existing store", omit=True)
    ] = None


@command(
    "mind_init",
    cli="init",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, StorageFailed),
    examples=("mind init", "mind init ~/shop", "mind init --nested packages/api"),
)
def init(
    mind: Mind,
    directory: Annotated[str, Arg("The project's root", complete="path")] = ".",
    *,
    nested: Annotated[bool, Arg("Make it a project although it is inside another one")] = False,
) -> Initialised:
    """Make this directory a project with a memory of its own

    Writes `.mind/` with a settings file, a short MEMORY.md and the files that git needs, and
    overwrites nothing. In a git repository, git learns to merge memories. What is already here,
    such as decision records, is named, not copied.
    """
    root = Path(directory).expanduser().absolute()
    if not nested:
        _check_nesting(mind, root)
    report = make(root, mind.home, now=mind.now())
    syncing.install(report.project.root)
    return Initialised(
        path=str(report.project.root),
        name=report.project.name,
        created=report.created,
        added=report.added,
        trusted=report.created,
        found=report.found,
        include=report.include_line,
        notices=report.notices,
        arrived=_arrived(mind, report.project),
    )


def _check_nesting(mind: Mind, root: Path) -> None:
    """Raises `Invalid` if a new project would be inside another one and the user does not agree."""
    if os.path.lexists(root / STORE):
        return
    around = None
    with suppress(MindError, OSError):
        around = find(root.parent, mind.home)
    if around is None:
        return
    question = Question(f"`{root}` is inside the project `{around.root}`. Separate it?", _ANSWERS)
    if mind.ask is None or mind.ask(question, _ANSWER_SECONDS) != _ANSWERS[0]:
        raise Invalid(
            f"`{root}` is inside the project `{around.root}`, whose memory is used here",
            hint="for a memory of its own, run `mind init --nested`",
        )


def _arrived(mind: Mind, project: Project) -> FirstLook | None:
    """Returns a summary of an existing store whose files are not approved."""
    opened = mind.at(Registered(path=project.root, name=project.name))
    try:
        return look_of(opened) if opened else None
    except MindError:
        return None


_LONGEST_WARNING = 300


@frozen
class DaemonStatus:
    """The state of the optional daemon; everything works without it."""

    running: Annotated[bool, Out("False if there is none; `mind daemon start` starts it")]
    pid: int | None
    uptime_seconds: int | None
    projects_watching: int
    last_index: Annotated[datetime | None, Out("When the index of this project last changed")]


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


@frozen
class GlobalStats:
    """All registered projects together."""

    projects_registered: int
    global_edges: int
    total_memories: int


@frozen
class Status:
    """The state of the memory."""

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
    for leak in syncing.leaks(mind.project.root):
        yield f"{leak.message}: {leak.hint}"
    if warning := syncing.lacking(mind.project.root):
        yield f"{warning}; `mind doctor --fix` mends that"


def _daemon(mind: Mind) -> DaemonStatus:
    process = daemon.running(mind.home)
    started = process.started if process else None
    return DaemonStatus(
        running=process is not None,
        pid=process.pid if process else None,
        uptime_seconds=int((mind.now() - started).total_seconds()) if started else None,
        projects_watching=len(process.watching) if process else 0,
        last_index=mind.index.changed_at() if mind.has_project else None,
    )


def _project(mind: Mind) -> ProjectStatus:
    counted = overview.overview(mind)
    return ProjectStatus(
        path=str(mind.project.root),
        name=mind.project.name,
        stack=sources.technologies(mind),
        memory_health=counted.health(mind.now()),
        last_activity=counted.newest,
        stats=_stats(counted),
        memories=counted.total,
        origins=_origins(counted.origins),
        trust=trusting.describe(mind),
        waiting=review.count(mind),
        unreadable=tuple(
            Unreadable(file=problem.path, line=problem.line, reason=problem.reason)
            for problem in refresh.problems(mind)
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
    def total(project: Mind, here: bool) -> int:
        return finding.total(project, shared=not here)

    totals, _ = finding.ask_each(mind, "mind_status", total, diagnosis=True)
    return GlobalStats(
        projects_registered=len(projects.registered(mind.home).projects),
        global_edges=len(sources.of_user(mind)),
        total_memories=sum(total for _, _, total in totals),
    )


@frozen
class SettingRow:
    """A setting and its active value."""

    key: str
    value: Annotated[Json, Out("The active value")]
    origin: Annotated[str, Out("The owner of its file, or `default`")]
    help: str


@frozen
class Settings:
    """The active settings."""

    settings: tuple[SettingRow, ...]
    warnings: tuple[str, ...]


@command(
    "mind_config",
    cli="config",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, StorageFailed),
    examples=(
        "mind config",
        "mind config decay.rate 0.05",
        "mind config include 'docs/decisions/*.md'",
        "mind config decay.rate --unset",
    ),
)
def config(
    mind: Mind,
    key: Annotated[str | None, Arg("Name of the setting", complete="setting")] = None,
    value: Annotated[str | None, Arg("New value; commas part the items of a list")] = None,
    *,
    user: Annotated[bool, Arg("Change it for all projects of this user")] = False,
    unset: Annotated[bool, Arg("Go back to the default")] = False,
) -> Settings:
    """Show or change settings

    A setting is written to the project's `.mind/config.toml`, or with `--user` to the user's own
    file, where comments and everything else stay as they are.
    """
    if key is None:
        return _rows(mind, SETTINGS)
    target = setting(key)
    if value is None and not unset:
        return _rows(mind, (target,))
    changed = upkeep.change(mind, target, value, user=user)
    return _rows(changed, (target,))


def _rows(mind: Mind, wanted: tuple[Setting, ...]) -> Settings:
    values = mind.config
    rows = tuple(
        SettingRow(
            key=row.key,
            value=_plain(values[row.key]),
            origin=values.origins[row.key],
            help=row.help,
        )
        for row in wanted
    )
    return Settings(settings=rows, warnings=values.warnings)


def _plain(value: object) -> Json:
    return list(value) if isinstance(value, tuple) else value  # type: ignore[return-value]


@frozen
class Indexed:
    """The result of updating the index."""

    added: Annotated[int, Out("Files that are new")]
    changed: Annotated[int, Out("Files that were read again")]
    removed: Annotated[int, Out("Files that were deleted")]
    memories: int
    passages: Annotated[int, Out("Pieces of text that are searched")]
    unreadable: Annotated[int, Out("Files that could not be read; `mind doctor` lists them")]
    notice: Omitted[str] = None


class Verdict(StrEnum):
    """The verdict of a check."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@frozen
class Check:
    """The result of one check."""

    name: str
    verdict: Verdict
    message: str
    hint: Omitted[str] = None
    file: Annotated[Omitted[str], Out("The file that it is about", omit=True)] = None
    line: Annotated[Omitted[int], Out("The line in it, from 1", omit=True)] = None


@frozen
class Diagnosis:
    """The results of all checks."""

    healthy: Annotated[bool, Out("Whether there are no faults")]
    checks: tuple[Check, ...]

    @property
    def exit_status(self) -> int:
        """Returns the exit status of the command line: 1 if there is a fault."""
        return 0 if self.healthy else 1


@command(
    "mind_index",
    cli="index",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    errors=(StorageFailed,),
    examples=("mind index", "mind index --rebuild"),
)
def index(
    mind: Mind,
    *,
    rebuild: Annotated[bool, Arg("Delete the index and build it again")] = False,
) -> Indexed:
    """Update the index from the files

    Every command does so by itself; this one is for a large import, or to see the numbers.
    """
    done = refresh.rebuild(mind) if rebuild else refresh.refresh(mind)
    stats = mind.index.stats()
    return Indexed(
        added=done.added,
        changed=done.changed,
        removed=done.removed,
        memories=stats.memories,
        passages=stats.units,
        unreadable=len(refresh.problems(mind)),
        notice=mind.notice,
    )


@command(
    "mind_doctor",
    cli="doctor",
    effect=Effect.READ,
    needs=Needs(Operation.READ, diagnosis=True),
    toolset="extra",
    needs_project=False,
    examples=("mind doctor", "mind doctor --fix"),
)
def doctor(
    mind: Mind,
    *,
    fix: Annotated[
        bool, Arg("Repair git's settings and the modes of private files", surfaces=Surface.CLI)
    ] = False,
) -> Diagnosis:
    """Check the memory and its settings, with a hint for each problem

    Files that could not be read are listed with line and reason; they are never changed. `--fix`
    installs the merge driver in a clone (clones do not copy git settings), adds the lines that
    .mind/.gitignore and .mind/.gitattributes lack, and closes private files to other users. It
    approves nothing.
    """
    if fix:
        upkeep.mend(mind)
    rows = tuple(
        Check(
            name=finding.name,
            verdict=Verdict(finding.verdict),
            message=finding.message,
            hint=finding.hint or None,
            file=finding.file,
            line=finding.line,
        )
        for finding in upkeep.examine(mind)
    )
    return Diagnosis(healthy=all(row.verdict is not Verdict.FAULT for row in rows), checks=rows)
