"""The commands that keep a store healthy: `mind init`, `status`, `config`, `index`, `doctor`."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated

from mimo import disk
from mimo.commands.common import File
from mimo.commands.spec import Arg, Effect, Json, Needs, Omitted, Out, Surface, command, to_json
from mimo.config import SETTINGS, ZONE, setting
from mimo.disk import STORE
from mimo.errors import Denied, Invalid, MindError, StorageFailed
from mimo.features import daemon, review, upkeep
from mimo.features.edges import sources
from mimo.features.review import trusting
from mimo.features.review.trusting import FirstLook, look_of
from mimo.features.upkeep import Check, Verdict
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.memory.model import Filter, Kind
from mimo.mind import Mind
from mimo.operations import (
    across,
    encoding,
    finding,
    overview,
    reasons,
    refresh,
    settings,
    syncing,
)
from mimo.operations.overview import Health
from mimo.store.init import init as make
from mimo.store.projects import Registered, find
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
    any_format=True,
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
    """Create a memory for this project

    Writes `.mind/` with a settings file, a short MEMORY.md and the files that git needs, and
    overwrites nothing. In a git repository, git learns to merge memories. What is already here,
    such as decision records, is named, not copied.
    """
    root = disk.expanded(directory).absolute()
    if not nested:
        _check_nesting(mind, root)
    zone = _asked_zone(mind)
    report = make(root, mind.home, now=mind.now())
    project = report.project
    if zone:
        settings.change(mind, setting(ZONE), zone, user=True)
    syncing.install(project.root)
    arrived = None
    with suppress(MindError):
        opened = mind.at(Registered(path=project.root, name=project.name))
        arrived = look_of(opened) if opened else None
    return Initialised(
        path=str(project.root),
        name=project.name,
        created=report.created,
        added=report.added,
        trusted=report.created,
        found=report.found,
        include=report.include_line,
        notices=report.notices,
        arrived=arrived,
    )


def _asked_zone(mind: Mind) -> str | None:
    """Returns the value of `time.zone` that the user chooses, or None.

    Asks on a terminal only, and only if the setting is unset and the computer is not in UTC.
    """
    if mind.ask is None or mind.config.origins[ZONE] != "default":
        return None
    from mimo.zones import LOCAL_NAME, system_name

    name = system_name(mind.environ)
    if name is None:
        return None
    question = Question(f"Times are shown in UTC. Show them in local time ({name})?", _ANSWERS)
    answer = mind.ask(question, _ANSWER_SECONDS)
    return None if answer is None else LOCAL_NAME if answer == _ANSWERS[0] else "UTC"


def _check_nesting(mind: Mind, root: Path) -> None:
    """Raises `Invalid` if a new project would be inside another one and the user does not agree."""
    around = None
    if not os.path.lexists(root / STORE):
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


_LONGEST_WARNING = 300


@frozen
class DaemonStatus:
    """The state of the optional daemon; everything works without it."""

    running: bool
    pid: int | None
    uptime_seconds: int | None
    projects_watching: int
    last_index: Annotated[datetime | None, Out("When the index of this project last changed")]
    start: Annotated[
        Omitted[str], Out("The command that starts it if it is not running", omit=True)
    ] = None


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
class SharedState:
    """The state of this working copy in the shared index."""

    place: Annotated[str, Out("The server and the database")]
    pushed: Annotated[datetime, Out("When it was last pushed from here")]
    memories: Annotated[int, Out("Memories that were pushed; private ones never are")]
    changes: Annotated[int | None, Out("About the number of changes since; null if not known")]


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
        Omitted[SharedState], Out("Its state in the shared index, if it was pushed", omit=True)
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
class Status:
    """The state of the memory."""

    daemon: DaemonStatus
    current_project: ProjectStatus | None
    global_stats: GlobalStats
    warnings: tuple[str, ...]
    user_memory: Annotated[
        UserMemory | None, Out("The user's memory for all projects", omit=True)
    ] = None


@command(
    "mind_status",
    cli="status",
    effect=Effect.READ,
    toolset="edges",
    needs=Needs(Operation.READ, diagnosis=True),
    needs_project=False,
    examples=("mind status",),
    description="Check Mind daemon status and project stats. Use if something seems wrong.",
)
def status(mind: Mind) -> Status:
    """Show the state of the memory"""
    process = daemon.running(mind.home)
    started = process.started if process else None
    registered = mind.registered().projects
    paths = {str(entry.path) for entry in registered}
    totals, _ = across.ask_each(
        mind,
        "mind_status",
        lambda project, here: finding.total(project, shared=not here, roughly=not here),
        diagnosis=True,
    )
    return Status(
        daemon=DaemonStatus(
            running=process is not None,
            pid=process.pid if process else None,
            uptime_seconds=int((mind.now() - started).total_seconds()) if started else None,
            projects_watching=len(paths.intersection(process.watching)) if process else 0,
            last_index=mind.index.changed_at() if mind.has_project else None,
            start=None if process else "mind daemon start",
        ),
        current_project=_project(mind) if mind.has_project else None,
        global_stats=GlobalStats(
            projects_registered=len(registered),
            global_edges=len(sources.of_user(mind)),
            total_memories=sum(total for _, _, total in totals),
        ),
        warnings=tuple(_warnings(mind)),
        user_memory=_user_memory(mind),
    )


def _user_memory(mind: Mind) -> UserMemory | None:
    user = mind.user()
    if user is None:
        return None
    with suppress(MindError):  # `mind doctor` reports the reason.
        memories = finding.total(user)
        approved = user.index.count(Filter(approved=True))
        return UserMemory(memories=memories, proposed=memories - approved)
    return None


def _warnings(mind: Mind) -> Iterator[str]:
    """Yields warnings about settings, private files in git, and the merging of memories."""
    for warning in reasons.of_settings(mind):
        # The text may be from a clone.
        line = one_line(warning)
        yield line if len(line) <= _LONGEST_WARNING else f"{line[:_LONGEST_WARNING]}…"
    if mind.has_project:
        for leak in syncing.leaks(mind.project.root):
            yield f"{leak.message}: {leak.hint}"
        if lacking := syncing.lacking(mind.project.root):
            yield f"{lacking}; `mind doctor --fix` repairs that"


def _project(mind: Mind) -> ProjectStatus:
    counted = overview.overview(mind)
    number, origins = counted.by_type, counted.origins
    return ProjectStatus(
        path=str(mind.project.root),
        name=mind.project.name,
        stack=sources.technologies(mind),
        memory_health=counted.health(mind.now()),
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
        origins=ProjectOrigins(
            in_place=origins.in_place,
            included=origins.included,
            ingested_files=origins.ingested_files,
            chunks=origins.chunks,
        ),
        trust=trusting.describe(mind),
        waiting=review.count(mind),
        unreadable=tuple(
            Unreadable(file=problem.path, line=problem.line, reason=problem.reason)
            for problem in reasons.of_problems(mind)
        ),
        shared=_shared_state(mind),
    )


def _shared_state(mind: Mind) -> SharedState | None:
    if mind.shared_index is None:
        return None
    from mimo.operations import sharing

    with suppress(MindError):  # `mind doctor` reports the reason.
        if pushed := sharing.pushed_here(mind):
            return SharedState(
                place=pushed.place,
                pushed=pushed.pushed,
                memories=pushed.memories,
                changes=sharing.changes_since(mind, pushed),
            )
    return None


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
    any_format=True,
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
    value: Annotated[str | None, Arg("New value; commas separate the items of a list")] = None,
    *,
    user: Annotated[bool, Arg("Change it for all projects of this user")] = False,
    unset: Annotated[bool, Arg("Restore the default")] = False,
) -> Settings:
    """Show or change settings

    A setting is written to the project's `.mind/config.toml`, or with `--user` to the user's own
    file, where comments and everything else stay as they are.
    """
    if unset and (key is None or value is not None):
        raise Invalid(
            "`--unset` takes the name of a setting and no value",
            hint="`mind config decay.rate --unset` restores its default",
        )
    rows = SETTINGS if key is None else (setting(key),)
    if key is not None and (unset or value is not None):
        mind = settings.change(mind, rows[0], value, user=user)
    values = mind.config
    return Settings(
        settings=tuple(
            SettingRow(
                key=row.key,
                value=to_json(values[row.key]),
                origin=values.origins[row.key],
                help=row.help,
            )
            for row in rows
        ),
        warnings=reasons.of_settings(mind),
    )


@frozen
class SharedRole:
    """The right of a role of the database."""

    role: Annotated[str, Out("Its name, or `everyone`")]
    right: Annotated[str, Out("`read`, `write`, or `admin`, who pushed the project first")]


@frozen
class Shared:
    """The state of the project in the shared index."""

    place: Annotated[str, Out("The server and the database")]
    memories: Annotated[int, Out("Memories that were pushed; private ones never are")]
    added: Annotated[int, Out("Memories that the shared index did not have")]
    removed: int
    vectors: Annotated[int, Out("Vectors that it did not have")]
    left_out: Annotated[int, Out("Memories that PostgreSQL can't store")]
    roles: Annotated[tuple[SharedRole, ...], Out("The roles of the database that may use it")]
    withdrawn: Annotated[bool, Out("Whether the project was removed from it")] = False


@frozen
class Indexed:
    """The result of updating the index."""

    added: Annotated[int, Out("Files that are new")]
    changed: Annotated[int, Out("Files that were read again")]
    removed: Annotated[int, Out("Files that were deleted")]
    memories: int
    passages: Annotated[int, Out("Pieces of text that are searched")]
    encoded: Annotated[int, Out("Memories that can now be compared in context")]
    unreadable: Annotated[int, Out("Files that could not be read; `mind doctor` lists them")]
    notice: Omitted[str] = None
    shared: Annotated[Omitted[Shared], Out("What was pushed to the shared index", omit=True)] = None


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
    any_format=True,
    idempotent=True,
    toolset="extra",
    of_user=True,
    errors=(Denied, Invalid, StorageFailed),
    examples=(
        "mind index",
        "mind index --rebuild",
        "mind index --push --reader everyone",
    ),
)
def index(
    mind: Mind,
    *,
    rebuild: Annotated[bool, Arg("Delete the index and build it again")] = False,
    push: Annotated[bool, Arg("Bring the shared index up to date", surfaces=Surface.CLI)] = False,
    readers: Annotated[
        tuple[str, ...],
        Arg(
            "Role of the database that may read it there, or `everyone`",
            surfaces=Surface.CLI,
        ),
    ] = (),
    writers: Annotated[
        tuple[str, ...], Arg("Role that may push it, too, or `everyone`", surfaces=Surface.CLI)
    ] = (),
    revoke: Annotated[
        tuple[str, ...], Arg("Role that may no longer use it, or `everyone`", surfaces=Surface.CLI)
    ] = (),
    withdraw: Annotated[
        bool, Arg("Remove the project from the shared index", surfaces=Surface.CLI)
    ] = False,
) -> Indexed:
    """Update the index from the files

    Every command does so by itself; this one is for a large import, or to see the numbers. It also
    prepares all memories for comparison in context, which a search otherwise does bit by bit and in
    a process of low priority (unless `MIND_BACKGROUND` is `off`).

    With `--push`, the shared index of the setting `index.url` gets the same memories, without
    private ones. Others find them by `mind search --scope org` if `--reader` has named their role.
    """
    if withdraw and (push or readers or writers or revoke):
        raise Invalid("`--withdraw` excludes the other options", hint="use it alone")
    # At once: what follows takes time and may fail.
    shared = _restricted(mind, revoke, withdraw=withdraw)
    done = refresh.rebuild(mind) if rebuild else refresh.refresh(mind)
    encoded = encoding.encode(mind)
    levels = {**dict.fromkeys(readers, "read"), **dict.fromkeys(writers, "write")}
    if push or levels:
        shared = _pushed(mind, levels)
    stats = mind.index.stats()
    return Indexed(
        added=done.added,
        changed=done.changed,
        removed=done.removed,
        memories=stats.memories,
        passages=stats.units,
        encoded=encoded,
        unreadable=len(refresh.problems(mind)),
        notice=mind.notice,
        shared=shared,
    )


def _restricted(mind: Mind, revoked: Sequence[str], *, withdraw: bool) -> Shared | None:
    """Withdraws the project, or takes rights from roles; None if neither was asked for."""
    if not (revoked or withdraw):
        return None
    from mimo.operations import sharing

    place, pushed = sharing.server_of(mind).place, sharing.pushed_here(mind)
    if withdraw:
        sharing.withdraw(mind)
    for role in revoked:
        sharing.permit(mind, role, None)
    return Shared(
        place=place,
        memories=pushed.memories if pushed and not withdraw else 0,
        added=0,
        removed=0,
        vectors=0,
        left_out=0,
        roles=() if withdraw else _roles(mind),
        withdrawn=withdraw,
    )


def _pushed(mind: Mind, levels: dict[str, str]) -> Shared:
    """Pushes the project, and gives rights to roles."""
    from mimo.operations import sharing

    place, pushed = sharing.server_of(mind).place, sharing.push(mind)
    for role, level in levels.items():
        sharing.permit(mind, role, level)
    return Shared(
        place=place,
        memories=pushed.memories,
        added=pushed.added,
        removed=pushed.removed,
        vectors=pushed.vectors,
        left_out=pushed.left_out,
        roles=_roles(mind),
    )


def _roles(mind: Mind) -> tuple[SharedRole, ...]:
    from mimo.operations import sharing

    return tuple(SharedRole(role=role, right=right) for role, right in sharing.roles(mind).items())


@command(
    "mind_doctor",
    cli="doctor",
    finds=True,
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
    """Check the memory and its settings

    Files that could not be read are listed with line and reason; they are never changed. `--fix`
    installs the merge driver in a clone (clones do not copy git settings), adds the lines that
    .mind/.gitignore and .mind/.gitattributes lack, and closes private files to other users. It
    approves nothing.
    """
    if fix:
        upkeep.repair(mind)
    checks = tuple(upkeep.examine(mind))
    return Diagnosis(
        healthy=all(check.verdict is not Verdict.FAULT for check in checks), checks=checks
    )
