"""The shared index: pushing this working copy to it, and searching the projects in it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mimo import disk
from mimo.errors import Denied, Invalid, MindError, StorageFailed
from mimo.frozen import NamedTuple, frozen, replace
from mimo.guard import policy as policies
from mimo.guard.policy import ActivePolicies, Call, Operation
from mimo.index.rows import Hit, Request
from mimo.index.search import search
from mimo.mind import Mind
from mimo.operations import refresh
from mimo.operations.finding import FLOOR, NEAREST, THRESHOLD, Options, check_length
from mimo.store import files, git, projects, revisions
from mimo.text.clean import one_line
from mimo.text.phrases import notices

if TYPE_CHECKING:
    from mimo.index.postgres.connection import Connected, Server
    from mimo.index.postgres.source import View
    from mimo.index.postgres.writing import Pushed, WorkingCopy

EVERYONE = "everyone"
"""The word for all roles of the database."""

_STATE = "shared.json"
_HELD = "pushing"

_PRIORITY = 19
"""The lowest: any other work on the machine goes first."""


@frozen
class Sharing:
    """The state of this working copy in the shared index, as it was last pushed."""

    place: str
    """The server and the database."""
    pushed: datetime
    memories: int


class SharedMatch(NamedTuple):
    """A memory of another project that matches."""

    hit: Hit
    view: View
    approved: bool
    """True if the project's own user has approved its text."""


# Pushing.


def server_of(mind: Mind) -> Server:
    """Returns the server of the shared index. Raises `Invalid` if no setting names one."""
    if mind.shared_index is None:
        raise Invalid(
            "no shared index is set up",
            hint="`mind config index.url postgresql://USER@HOST/DATABASE`, or MIND_INDEX_URL",
        )
    return mind.shared_index


def sharing(mind: Mind) -> Sharing | None:
    """Returns what was last pushed from here; None if nothing was, or to another server."""
    if mind.shared_index is None or not mind.has_project or mind.is_users:
        return None
    with suppress(OSError, ValueError, LookupError, TypeError):
        state = json.loads(disk.read(_state_file(mind)))
        pushed = datetime.fromisoformat(state["pushed"])
        if state["place"] == mind.shared_index.place:
            return Sharing(place=state["place"], pushed=pushed, memories=int(state["memories"]))
    return None


def push(mind: Mind) -> Pushed:
    """Brings the shared index up to date with this working copy.

    The first push of a project is for a person to make: it starts sharing. Raises `Denied`,
    `Invalid`, and `StorageFailed` if the server can't be used.
    """
    from mimo.index.postgres import writing

    server = server_of(mind)
    if mind.is_users:
        raise Invalid("the memory for all projects is yours alone, and is never shared")
    if sharing(mind) is None:
        _check_person(mind, "start sharing a project")
    refresh.refresh(mind)
    copy = working_copy(mind)
    with mind.index.sources() as sources:
        pushed = writing.push(server, copy, sources, mind.advance)
    state = {
        "place": server.place,
        "pushed": mind.now().isoformat(),
        "memories": pushed.memories,
    }
    files.replace(_state_file(mind), json.dumps(state).encode(), mode=0o600)
    return pushed


def push_later(mind: Mind) -> None:
    """Starts a process that pushes this working copy, if it was pushed before."""
    from mimo.operations.syncing import start

    with suppress(MindError, OSError):
        if mind.environ.get("MIND_BACKGROUND") != "off" and sharing(mind):
            start("mimo.operations.shared", mind.project.root, mind.home)


def permit(mind: Mind, role: str, level: str | None) -> None:
    """Lets a role of the database read or write this project; None lets it no longer.

    Raises `Denied`, `Invalid`, and `StorageFailed` if the server can't be used.
    """
    _check_person(mind, "change who reads a project")
    server = server_of(mind)
    with server.session() as sql:
        key = _own_key(mind, sql)
        name = "public" if role == EVERYONE else role
        exists = sql.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
        if exists is None and name != "public":
            raise Invalid(
                f"the database has no role `{role}`",
                hint=f"name a role of `{server.place}`, or `{EVERYONE}`",
            )
        sql.execute("SELECT mind.share(%s, %s, %s)", (key, name, level))


def roles(mind: Mind) -> dict[str, str]:
    """Returns the roles that may use this project, each with `read`, `write` or `admin`."""
    server = server_of(mind)
    with server.reading() as sql:
        stored = sql.execute(
            "SELECT role, level FROM mind.access WHERE project = %s ORDER BY role",
            (_own_key(mind, sql),),
        ).fetchall()
    return {EVERYONE if role == "public" else role: level for role, level in stored}


def withdraw(mind: Mind) -> None:
    """Removes this project from the shared index, at once for every reader.

    Raises `Denied`, `Invalid`, and `StorageFailed` if the server can't be used.
    """
    _check_person(mind, "withdraw a project")
    server = server_of(mind)
    with server.session() as sql:
        key = _own_key(mind, sql)
        sql.execute("SELECT mind.withdraw(%s)", (key,))
        # Readers have lost it already, and need not wait for this.
        sql.execute("SELECT mind.clear(%s)", (key,))
    with suppress(OSError, MindError):
        files.remove(_state_file(mind))


def working_copy(mind: Mind) -> WorkingCopy:
    """Returns the names of this project and working copy.

    The identity of a project in git comes from its first commits, so that all clones have the same.
    Raises `Invalid` in a shallow clone, which lacks them.
    """
    from mimo.index.postgres.writing import WorkingCopy

    root = mind.project.root
    label = git.branch(root) or ""
    is_default, committed = True, None
    if git.output(root, "rev-parse", "--is-shallow-repository") == "true":
        raise Invalid(
            "a shallow clone lacks the first commit, which identifies the project",
            hint="`git fetch --unshallow`, or a checkout with its whole history in CI",
        )
    first = git.output(root, "rev-list", "--max-parents=0", "HEAD")
    if first:
        below = git.output(root, "rev-parse", "--show-prefix") or ""
        identity = disk.blake2b("\n".join([*sorted(first.split()), below]).encode()).hex()
        with suppress(MindError):
            main = revisions.short_name(root, revisions.main_branch(root))
            is_default = label == main.removeprefix("origin/")
        if when := git.output(root, "log", "-1", "--format=%cI"):
            committed = datetime.fromisoformat(when)
    else:
        identity = _identity_without_git(mind)
    policy = files.content(root / policies.FILE)
    return WorkingCopy(
        identity=identity,
        project=one_line(mind.project.name),
        name=_name(mind),
        label=label,
        is_default=is_default,
        committed=committed,
        policy=None if policy is None else policy.decode("utf-8", "replace"),
    )


def _name(mind: Mind) -> str:
    """Returns the name of this working copy, equal for all its pushes."""
    owner = projects.index_owner(mind.home, mind.randomness)
    return disk.blake2b(f"{owner}\n{mind.project.root}".encode("utf-8", "surrogateescape")).hex()


def _identity_without_git(mind: Mind) -> str:
    path = files.local(mind.project.root, "shared-identity")
    if (data := files.content(path)) is None:
        with suppress(StorageFailed):  # Another process created it.
            files.write_new(path, mind.randomness(16).hex().encode(), mode=0o600)
        data = files.content(path) or b""
    return data.decode("ascii", "replace")


def _state_file(mind: Mind) -> Path:
    return files.local(mind.project.root, _STATE)


def _own_key(mind: Mind, sql: Connected) -> int:
    """Returns the number of this project. Raises `Invalid` if it was not pushed."""
    identity = working_copy(mind).identity
    stored = sql.execute("SELECT key FROM mind.projects WHERE identity = %s", (identity,))
    row = stored.fetchone()
    if row is None:
        raise Invalid(
            "this project is not in the shared index", hint="`mind index --push` puts it there"
        )
    return int(row[0])


def _check_person(mind: Mind, action: str) -> None:
    if mind.agent is not None:
        raise Denied(f"only a person may {action}", hint="run the command in a terminal")


# Searching.


def search_others(
    mind: Mind, text: str, options: Options
) -> tuple[list[SharedMatch], int, str | None]:
    """Returns the best matches of the other projects in the shared index, best first.

    The second value is the number of these projects. Each project's policy binds, and the notice
    names the projects that it excludes. Raises `StorageFailed` if the server can't be used.
    """
    from mimo.index.postgres import source

    check_length(text)
    server = server_of(mind)
    own = working_copy(mind).identity if mind.has_project else ""
    skipped: list[str] = []

    def choose(sql: Connected) -> Sequence[View]:
        views = source.others(sql, own)
        return [view for view in views if _permits(mind, view, skipped)]

    models = mind.embedder, lambda: mind.encoder
    with source.opened(server, choose, *models, mind.shared_role) as opened:
        answer = search(opened, _request(mind, text, options))
        views = {view.project: view for view in opened.views}
        approved = opened.approved(answer.hits)
    hits = answer.hits
    best = hits[0].score if hits else 0.0
    if options.threshold is None and best < max(FLOOR, THRESHOLD / (answer.considered + 1)):
        hits = ()
    matches = [
        SharedMatch(hit, views[hit.project], (hit.project, hit.record.memory.id) in approved)
        for hit in hits
    ]
    return matches, len(views), notices(*skipped, answer.notice)


def _request(mind: Mind, text: str, options: Options) -> Request:
    return Request(
        text,
        replace(options.filter, private=False),
        limit=options.limit,
        threshold=THRESHOLD if options.threshold is None else options.threshold,
        nearest=min(options.limit, NEAREST) if options.threshold is None else 0,
        now=mind.local_now(),
    )


def _permits(mind: Mind, view: View, skipped: list[str]) -> bool:
    """Returns whether a project's policy permits a search by this caller."""
    if view.policy is None:
        return True
    call = Call(tool="mind_search", operation=Operation.READ, agent=mind.agent, at=mind.now())
    try:
        stated = policies.parse(view.policy.encode(), policies.FILE)
    except policies.InvalidPolicy:
        skipped.append(f"{view.name} was skipped: its policy is invalid")
        return False
    verdict = ActivePolicies(policies=(policies.DEFAULT, stated)).judge(call)
    if not verdict.permitted:
        skipped.append(f"{view.name} was skipped: its policy does not permit `mind_search`")
    return verdict.permitted


def main() -> None:
    """Pushes the project that the command line names, if it was pushed before."""
    root, home = Path(sys.argv[1]), sys.argv[2]
    os.nice(_PRIORITY)
    with suppress(MindError, OSError):
        mind = Mind.open(root, project=root, environ={**os.environ, "MIND_HOME": home})
        with files.holding(mind.index_folder / _HELD) as ours:
            if ours and sharing(mind):
                push(mind)


if __name__ == "__main__":
    main()
