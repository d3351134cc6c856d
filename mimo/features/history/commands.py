"""The memory in git: `mind sync`, `log`, `blame`, `diff` and `restore`."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Unpack

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.data import disk, files
from mimo.data.disk import STORE
from mimo.errors import (
    AmbiguousId,
    Cancelled,
    Command,
    Conflict,
    Denied,
    Hint,
    Invalid,
    MindError,
    NotFound,
    Option,
    SecretDetected,
    StorageFailed,
    join_texts,
)
from mimo.features.history import revisions
from mimo.features.history.revisions import DiffRow, compare, markdown
from mimo.frozen import frozen
from mimo.index import survey
from mimo.memory.ids import begins_handle
from mimo.memory.model import Problem, Record
from mimo.operations import lookup, refresh, sharing, syncing, undoing
from mimo.operations.rows import (
    File,
    Limit,
    Reference,
    Times,
    TrustLabel,
    Undo,
    Untrusted,
    untrusted,
)
from mimo.operations.syncing import leaks
from mimo.project import commit as commits
from mimo.project import git, init
from mimo.project.revisions import Change, Commit, Step, contents, is_memory, records_at
from mimo.when import Interval, window

_SHARED_RULES = f"/*\n!/{STORE}/\n".encode()
"""Ignore rules of the folder of the user's memory once that is a repository."""

_NONE_THEN = "no commit of this time changed the memory"


@frozen
class CommitRow:
    """A commit."""

    commit: str
    date: datetime
    author: str
    agents: Annotated[Omitted[str], Out("The agents that remembered it, by commas")]
    subject: str
    trust: Annotated[TrustLabel, Out("`untrusted`: names and subjects can't be approved")] = (
        TrustLabel.UNTRUSTED
    )


@frozen
class ChangedFile:
    """A file that a commit changed."""

    file: File
    change: Annotated[str, Out("`added`, `changed` or `removed`")]
    id: Annotated[Omitted[str], Out("The memory that the file holds, in a log at that commit")] = (
        None
    )
    title: Annotated[Omitted[str], Out("The title of that memory")] = None
    trust: Untrusted = None


@frozen
class LogRow:
    """A commit, and what it did to the memory."""

    commit: CommitRow
    files: tuple[ChangedFile, ...]


@frozen
class Log:
    """The commits that changed the memory, newest first."""

    commits: tuple[LogRow, ...]
    notice: Omitted[str] = None


@frozen
class BlamedLine:
    """A line of a memory's file."""

    line: Annotated[int, Out("Its number, from 1")]
    text: str
    commit: CommitRow


@frozen
class Blame:
    """The lines of a memory, each with its author."""

    id: str
    title: str
    by: Annotated[Omitted[str], Out("The agent that made the memory")]
    session: Annotated[Omitted[str], Out("The session in which it was made")]
    trust: Untrusted
    file: File
    lines: tuple[BlamedLine, ...]


@frozen
class Restored:
    """A memory that was brought back."""

    id: str
    title: str
    trust: Untrusted
    file: File
    commit: CommitRow
    replaced: Annotated[Omitted[bool], Out("True if the text of an existing file changed")] = None
    approved: Annotated[Omitted[bool], Out("True if a person approves an unapproved text")] = None
    undo: Undo = None


@command(
    "mind_log",
    cli="log",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId),
    examples=("mind log", "mind log k3v7mq", "mind log auth_strategy"),
)
def log(
    call: Call,
    id: Annotated[
        str | None,
        Arg(
            "Only this memory: its id, short id or topic, or the id of a deleted one",
            complete="memory",
        ),
    ] = None,
    *,
    limit: Limit = 20,
    **times: Unpack[Times],
) -> Log:
    """Show the commits that changed the memory, newest first"""
    span = window(
        times.get("time_filter"),
        times.get("from_date"),
        times.get("to_date"),
        now=call.mind.local_now(),
    )
    steps = tuple(revisions.log(call, id, limit, span))
    is_cut = any(step.commit.id in git.boundary(call.mind.project.root) for step in steps)
    texts = contents(call.mind.project.root, (place for step in steps for place in _places(step)))
    return Log(
        commits=tuple(
            LogRow(
                commit=_commit(step.commit),
                files=tuple(
                    _file_at(call, change, step.commit, texts.get(place))
                    for change, place in zip(step.files, _places(step), strict=True)
                ),
            )
            for step in steps
        ),
        notice=git.SHALLOW if is_cut else None if steps or span == Interval() else _NONE_THEN,
    )


@command(
    "mind_blame",
    cli="blame",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId),
    examples=("mind blame k3v7mq",),
)
def blame(call: Call, id: Reference) -> Blame:
    """Show who wrote each line of a memory, and when

    The id of an ingested file shows the lines of all its chunks.
    """
    parts = lookup.source(call, id, topics=True)
    record = parts[0] if parts else lookup.meant(call, id)
    session = record.memory.extra.get("session")
    lines, is_approved = revisions.blame(call, record)
    unapproved = call.agent and not is_approved  # A person may have changed the file since.
    return Blame(
        id=(record.parent if parts else None) or record.memory.id,
        title=record.origin if parts else record.memory.heading,
        by=record.memory.by,
        session=str(session) if session is not None else None,
        trust=TrustLabel.UNTRUSTED if unapproved else untrusted(call, record),
        file=record.place.path,
        lines=tuple(
            BlamedLine(line=line.number, text=line.text, commit=_commit(commit))
            for line, commit in lines
        ),
    )


@command(
    "mind_restore",
    cli="restore",
    effect=Effect.WRITE,
    toolset="extra",
    errors=(Invalid, NotFound, AmbiguousId, Conflict, StorageFailed),
    examples=("mind restore k3v7mq --at HEAD~3",),
)
def restore(
    call: Call,
    id: Annotated[
        str, Arg("Id of the memory or ingested file, which may be deleted", complete="id")
    ],
    *,
    at: Annotated[
        str, Arg("The commit, branch, tag or date to take it from", complete="revision")
    ] = "HEAD",
) -> Restored:
    """Restore a memory from an earlier revision

    Its file becomes the one of that commit, byte for byte. The text that it replaces, committed or
    not, goes to the trash: undo brings it back. A person who restores a text of another
    author approves it.
    """
    record, commit, replaced, was_trusted = revisions.restore(call, id, at)
    return Restored(
        id=record.parent or record.memory.id,
        title=record.origin if record.parent else record.memory.heading,
        trust=untrusted(call, record),
        file=record.place.path,
        commit=_commit(commit),
        replaced=replaced or None,
        approved=(not was_trusted and call.mind.trust.trusted(record.place.approval)) or None,
        undo=undoing.entry_id(),
    )


def _commit(commit: Commit) -> CommitRow:
    return CommitRow(
        commit=commit.short,
        date=commit.when,
        author=commit.author,
        agents=commit.agents or None,
        subject=commit.subject,
    )


def _places(step: Step) -> list[tuple[str, str]]:
    """Returns the commit and the path of the text of each changed file; before a removal."""
    commit = step.commit.id
    return [
        (f"{commit}^" if change.change == "removed" else commit, change.path)
        for change in step.files
    ]


def _file_at(call: Call, change: Change, commit: Commit, data: bytes | None) -> ChangedFile:
    """Returns a changed file, with the memory that it held then if it is the only one."""
    record = None
    # A name that is not UTF-8 is not printable, and its file holds no memory.
    if data is not None and is_memory(change.path) and change.path.isprintable():
        records = records_at(call.mind.project.root, data, change.path, commit)
        record = None if isinstance(records, Problem) or len(records) != 1 else records[0]
    return _row_of(call, change, record)


def _file(call: Call, change: Change) -> ChangedFile:
    """Returns a changed file, with its memory if it is the only one in that file."""
    stem = PurePosixPath(change.path).stem
    record = call.index.get(stem) or _of_short_name(call, stem)
    is_of_file = record is not None and record.place.path == change.path
    return _row_of(call, change, record if is_of_file else None)


def _of_short_name(call: Call, stem: str) -> Record | None:
    """Returns the memory whose letters end the name of a file, see the setting `files.names`."""
    letters = stem.rpartition("-")[2]
    matches = call.index.matching(letters) if begins_handle(letters) else ()
    return call.index.get(matches[0]) if len(matches) == 1 else None


def _row_of(call: Call, change: Change, record: Record | None) -> ChangedFile:
    if record is None:
        return ChangedFile(file=change.path, change=change.change)
    memory = record.memory
    return ChangedFile(
        file=change.path,
        change=change.change,
        id=memory.id,
        title=memory.heading,
        trust=untrusted(call, record),
    )


class Format(StrEnum):
    """The output format of a difference."""

    TEXT = "text"
    MARKDOWN = "markdown"


@frozen
class Diff:
    """The differences between two states of the memory."""

    before: Annotated[str, Out("The commit that is compared with; empty if there is none yet")]
    after: Annotated[str, Out("A commit, or `working tree`")]
    between: Annotated[str, Out("Both in words, such as `since main at 1a2b3c, 3 days ago`")]
    added: int
    changed: int
    removed: int
    superseded: int
    contradicted: int
    outcomes: Annotated[int, Out("Number of changed outcomes")]
    memories: tuple[DiffRow, ...]
    text: Annotated[Omitted[str], Out("The difference in the `format`")] = None
    trust: Annotated[Omitted[TrustLabel], Out("`untrusted` if one of the memories is")] = None


@command(
    "mind_diff",
    cli="diff",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound),
    examples=("mind diff", "mind diff v1.1..v1.2", "mind diff --branch --format markdown"),
)
def diff(
    call: Call,
    revisions: Annotated[
        str | None,
        Arg(
            "Two revisions, `A..B`; `A...B`: changes of B since the merge base; `A`: changes of the"
            " working tree (default: what is not committed yet)",
            complete="revisions",
        ),
    ] = None,
    *,
    branch: Annotated[bool, Arg("Changes of this branch since it left the main one")] = False,
    format: Annotated[Format, Arg("Text, or Markdown for a pull request")] = Format.TEXT,
) -> Diff:
    """Show uncommitted changes, or changes between revisions

    Lists the memories that were added, changed and removed, the memories that they supersede and
    contradict, and changed outcomes of decisions.
    """
    difference = compare(call, revisions, branch=branch)
    rows = difference.rows
    text = markdown(rows) if format is Format.MARKDOWN else None
    return Diff(
        before=difference.before,
        after=difference.after,
        between=difference.between,
        added=sum(row.change == "added" for row in rows),
        changed=sum(row.change == "changed" for row in rows),
        removed=sum(row.change == "removed" for row in rows),
        superseded=sum(len(row.supersedes) for row in rows),
        contradicted=sum(len(row.contradicts) for row in rows),
        outcomes=sum(row.outcome_changed or False for row in rows),
        memories=rows,
        text=text,
        trust=next((row.trust for row in rows if row.trust is TrustLabel.UNTRUSTED), None),
    )


@frozen
class Synced:
    """The result of a sync."""

    commit: Annotated[str | None, Out("The new commit; null if there was nothing to commit")]
    branch: Annotated[str | None, Out("The branch; null on a detached head")]
    message: Annotated[str | None, Out("The commit's message")]
    files: tuple[ChangedFile, ...]
    trust: Annotated[Omitted[TrustLabel], Out("`untrusted` if a memory of the message is")] = None
    pulled: Annotated[Omitted[str], Out("Git's output of the pull")] = None
    pushed: Annotated[Omitted[bool], Out("Whether the branch was pushed")] = None
    dry_run: Annotated[Omitted[bool], Out("Whether nothing was done")] = None
    notice: Omitted[str] = None


@command(
    "mind_sync",
    cli="sync",
    effect=Effect.WRITE,
    toolset="extra",
    errors=(Invalid, Conflict, SecretDetected, StorageFailed),
    examples=(
        "mind sync",
        "mind sync --pull --push",
        "mind sync --dry-run",
        "mind sync --user --remote git@example.org:me/memories.git",
    ),
)
def sync(
    call: Call,
    *,
    message: Annotated[
        str | None, Arg("Message of the commit (default: lists the memories)", short="m")
    ] = None,
    pull: Annotated[bool, Arg("Then pull from the upstream", surfaces=Surface.CLI)] = False,
    push: Annotated[bool, Arg("Then push the branch", surfaces=Surface.CLI)] = False,
    dry_run: Annotated[bool, Arg("Only report what would be committed")] = False,
    everywhere: Annotated[
        bool,
        Arg("Your memory for all projects, with its remote", wire="user", surfaces=Surface.CLI),
    ] = False,
    remote: Annotated[
        str | None,
        Arg("With --user: the repository that your machines share", surfaces=Surface.CLI),
    ] = None,
) -> Synced:
    """Commit the memory, and nothing else

    Everything under `.mind/` that git does not ignore, but never files of `private/`, `.local/` or
    `.index/`, regardless of git's ignore rules. Other staged changes stay staged. Your hooks run
    and your signature is made as always. Your memory for all projects, if you choose it, is merged
    with that of your other machines at its remote.
    """
    if everywhere:
        _check_user_sync(call, dry_run=dry_run)
        call = call if dry_run else _prepared(call, remote)
        pull = push = _has_remote(call, is_needed=pull or push)
    elif remote is not None:
        raise Invalid(
            "`remote` is of your memory for all projects",
            hint=Hint("add ", Option(user=True), "; in a project, `git remote add` names one"),
        )
    done = syncing.sync(call, message=message, pull=pull, push=push, dry_run=dry_run)
    root = call.mind.project.root
    remarks: list[str] = [Hint(f"{leak.message}: ", leak.hint) for leak in leaks(root)]
    if ignored := syncing.ignored(call.mind.project.root):
        remarks.append(ignored)
    if everywhere and not dry_run:
        remarks += _of_machines(call, has_remote=pull)
    elif not dry_run and sharing.url_of(call.mind):
        try:
            sharing.shared_index(call).push_if_behind(call)
        except Cancelled:
            raise
        except MindError as error:
            remarks.append(Hint("the shared index was not updated: ", error.message))
    return Synced(
        commit=done.commit,
        branch=done.branch,
        message=done.message,
        files=tuple(_file(call, change) for change in done.pending),
        trust=TrustLabel.UNTRUSTED if syncing.unapproved(call, done.pending) else None,
        pulled=done.pulled,
        pushed=done.pushed or None,
        dry_run=dry_run or None,
        notice=join_texts(*remarks, *done.remarks),
    )


def _check_user_sync(call: Call, *, dry_run: bool) -> None:
    """Raises `Denied` for an agent, which must not publish the user's memory.

    Raises `Invalid` for a dry run before the first sync.
    """
    if call.agent is not None:
        raise Denied(
            "an agent can't sync the user's memory for all projects",
            hint="only a person can, on the command line",
        )
    if dry_run and not git.is_top(call.mind.project.root):
        raise Invalid(
            "your memory for all projects is not in git yet",
            hint=Hint("run ", Command("sync", user=True), " without ", Option(dry_run=True)),
        )


def _prepared(call: Call, remote: str | None) -> Call:
    """Makes the user's memory for all projects a git repository, and returns the call on that.

    `remote` is the repository that the user's machines share. Raises `Invalid` and `StorageFailed`.
    """
    root = call.mind.project.root
    if not git.is_top(root):
        paths, trusts = refresh.up_to_date(call).ask(survey.approvals), call.mind.trust.checker()
        approved = {name: path for name, path in paths.items() if trusts(name)}
        git.create(root)
        call = call.on(call.mind.reopened())
        # Within another repository, the approvals had the key of that one.
        call.mind.trust.approve(approved, reviewed=approved, paths=approved)
    rules = root / disk.IGNORE_FILE
    if (data := files.content(rules)) is not None and data == f"{disk.IGNORE_ALL}\n".encode():
        files.replace(rules, _SHARED_RULES, expect=files.digest(data))
    init.complete(root)
    syncing.install(root)
    if remote is not None:
        place = Path(remote).expanduser()
        commits.set_remote(root, str(place.resolve()) if place.is_dir() else remote)
    return call


def _has_remote(call: Call, *, is_needed: bool) -> bool:
    """Returns whether the user's memory has a remote. Raises `Invalid` if it needs one."""
    has_remote = git.output(call.mind.project.root, "remote", "get-url", "origin") is not None
    if is_needed and not has_remote:
        raise Invalid(
            "your memory for all projects has no remote",
            hint=Hint("name an empty repository with ", Option(remote="URL")),
        )
    return has_remote


def _of_machines(call: Call, *, has_remote: bool) -> list[str]:
    """Returns remarks on a sync of the user's memory: texts that wait, or a missing remote."""
    if not has_remote:
        way = (Option(remote="URL"), " names a repository that your other machines share")
        return [Hint("it is on this machine only; ", *way)]
    index, trusted = refresh.up_to_date(call), call.mind.trust.checker()
    if waiting := index.cached(survey.approved, trusted).unapproved:
        many = "1 memory waits" if waiting == 1 else f"{waiting:,} memories wait"
        return [Hint(f"{many} for your approval; ", Command("review", user=True), " lists them")]
    return []
