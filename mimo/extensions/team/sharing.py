"""A project in the shared index: pushing it, who may read it, and withdrawing it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimo.api import (
    Call,
    Command,
    Denied,
    Hint,
    Invalid,
    MindError,
    StateFile,
    StorageFailed,
    disk,
    files,
    frozen,
    git,
    locate,
    locks,
    one_line,
    projects,
    refresh,
    replace,
    revisions,
    tracking,
)
from mimo.api import (
    schema as index_schema,
)
from mimo.api import (
    sharing as shared,
)

if TYPE_CHECKING:
    from mimo.api import Mind
    from mimo.extensions.team.postgres.connection import Connected, Server
    from mimo.extensions.team.postgres.writing import Pushed, WorkingCopy

EVERYONE = "everyone"
"""The word for all roles of the database."""

_HELD = "pushing"

_RENEWED = timedelta(days=30)
"""The time after which a state is pushed again without a change: the index removes old ones."""

_USER = re.compile(r"^(?:[a-z][a-z0-9+]*://)?(?:[^@/]*@)?")
"""The parts of an address of a repository before the name of its machine."""

_WORTH_FETCHING = 100
"""The number of missing vectors from which asking the server pays: making them takes 2 s."""


@frozen
class Sharing:
    """The state of this working copy in the shared index, as it was last pushed."""

    place: str
    """The server and the database."""
    pushed: datetime
    memories: int
    commit: str
    """The commit that was checked out then."""
    root: str
    """The folder of the working copy then."""
    identity: str
    """The project that has the state."""
    address: str
    """The digest of the repository's address then."""
    view: str
    """The name of the state."""
    index: tuple[str, int, int]
    """The local index, its revision, and the number of its memories."""
    fingerprint: int
    """That of the memories that are not private."""


def server_in(mind: Mind) -> Server | None:
    """Returns the server of the shared index; None if no setting names one."""
    return mind.resource(_opened) if shared.url_of(mind) else None


def _opened(mind: Mind) -> Server:
    from mimo.extensions.team.postgres.connection import Server

    return Server(shared.url_of(mind))


def server_of(call: Call) -> Server:
    """Returns the server of the shared index. Raises `Invalid` if no setting names one."""
    server = server_in(call.mind)
    if server is None:
        raise Invalid(
            "no shared index is set up",
            hint=Hint(
                Command("config", "index.url", "postgresql://USER@HOST/DATABASE"),
                ", or MIND_INDEX_URL",
            ),
        )
    return server


def pushed_here(call: Call) -> Sharing | None:
    """Returns what was last pushed from here; None if nothing was, or to another server."""
    server = server_in(call.mind)
    if server is None or not call.mind.has_project or call.mind.is_users:
        return None
    with suppress(MindError):
        path = _own_file(call)
        state = _PUSHED.read(path.parent, path.name)
        if state and state.place == server.place:
            return state
    return None


def _pushed(state: Any) -> Sharing:
    return Sharing(
        place=str(state["place"]),
        pushed=datetime.fromisoformat(state["pushed"]),
        memories=int(state["memories"]),
        commit=str(state["commit"]),
        root=str(state["root"]),
        identity=str(state["identity"]),
        address=str(state.get("address", "")),
        view=str(state["view"]),
        index=(str(state["file"]), int(state["revision"]), int(state["of"])),
        fingerprint=int(state["fingerprint"]),
    )


_PUSHED = StateFile(_pushed)


def changes_since(call: Call, pushed: Sharing) -> int | None:
    """Returns about the number of changes that were not pushed, 0 only if there are none.

    None if the number is not known.
    """
    refresh.refresh(call)
    file, revision, memories = pushed.index
    is_same = call.index.file == file
    if is_same and call.index.totals().revision == revision:
        return 0
    if call.index.fingerprint() == pushed.fingerprint:
        return 0
    changes = call.index.changes_since(revision, memories) if is_same else None
    return None if changes is None else max(1, changes)


def is_behind(call: Call) -> bool:
    """Returns whether this working copy was pushed, and changed since, or long ago.

    Changes need no commit: a memory that became private may never have been in one.
    """
    pushed = pushed_here(call)
    if pushed is None:
        return False
    if call.mind.now() - pushed.pushed > _RENEWED:
        return True
    return pushed.commit != _commit(call) or changes_since(call, pushed) != 0


def _commit(call: Call) -> str:
    return git.output(call.mind.project.root, "rev-parse", "--verify", "--quiet", "HEAD") or ""


def push(call: Call, *, join: bool = False) -> Pushed:
    """Brings the shared index up to date with this working copy.

    The first push of a project is for a person to make: it starts sharing. Raises `Denied`,
    `Invalid`, and `StorageFailed` if the server can't be used.
    """
    from mimo.extensions.team.postgres import writing

    server = server_of(call)
    if call.mind.is_users:
        raise Invalid("the memory for all projects is yours alone, and is never shared")
    previous = pushed_here(call)
    if previous is None or (call.agent is not None and _is_withdrawn(call, previous)):
        _check_person(call, "start sharing a project")
    commit = _commit(call)
    refresh.refresh(call)
    copy = working_copy(call)
    if previous and not join:
        _check_id(call, previous)
    if previous and _is_ours(call, previous):
        copy = replace(copy, replaced=previous.view)
    call.release()
    with call.mind.index.sources() as sources:
        # The first read begins after the wait for other pushes, which may be of later changes.
        joins = join or _is_known(call, previous)
        pushed = writing.push(server, copy, sources, call.advance, joins=joins)
        file, totals = call.index.file, index_schema.totals(sources.sql)
        fingerprint = tracking.fingerprint(sources.sql)
    if previous and copy.replaced and previous.identity != copy.identity:
        with server.session() as sql:
            writing.leave(sql, previous.identity, previous.view)
    state = {
        "place": server.place,
        "pushed": call.mind.now().isoformat(),
        "memories": pushed.memories,
        "commit": commit,
        "root": str(call.mind.project.root),
        "identity": copy.identity,
        "address": copy.address,
        "view": copy.name,
        "file": file,
        "revision": totals.revision,
        "of": totals.memories,
        "fingerprint": fingerprint,
    }
    path = _own_file(call)
    _PUSHED.write(path.parent, path.name, state)
    return pushed


def _is_withdrawn(call: Call, pushed: Sharing) -> bool:
    """Returns whether the project was withdrawn, as far as this role may know."""
    with server_of(call).reading() as sql:
        stored = sql.execute(
            "SELECT withdrawn FROM mind.projects WHERE identity = %s", (pushed.identity,)
        ).fetchone()
    return stored == (True,)


def _check_id(call: Call, pushed: Sharing) -> None:
    """Raises `Invalid` unless the project has the id with which it was pushed from here.

    A commit of others may have changed it, also to the id of a project that others read.
    """
    if pushed.identity != _identity(call):
        raise Invalid(
            f"the id in `{files.SETTINGS}` is not that of the project that was pushed from here",
            hint=Hint(
                "restore that line, or start again with ",
                Command("index", push=True, join=True),
                ", for readers whom you name",
            ),
        )


def _is_known(call: Call, pushed: Sharing | None) -> bool:
    """Returns whether this repository was pushed from here as the project that its id names."""
    if pushed is None or pushed.identity != identity(call) or not _is_ours(call, pushed):
        return False
    # A repository without a remote may move, and get one.
    remote, here = _addresses(call)
    return remote is None or pushed.address in (remote, here)


def _is_ours(call: Call, previous: Sharing) -> bool:
    """Returns whether a state is that of this working copy, and not of one that was copied."""
    root = Path(previous.root)
    return root == call.mind.project.root or not (root / disk.STORE).is_dir()


def permit(call: Call, role: str, level: str | None) -> None:
    """Lets a role of the database read or write this project; None lets it no longer.

    A role that may write may also read, and keeps its right. Raises `Denied`, `Invalid`, also if
    the role owns the project and is to lose that, and `StorageFailed` if the server can't be used.
    """
    _check_person(call, "change who reads a project")
    server = server_of(call)
    with server.session() as sql:
        key = _own_key(call, sql)
        name = "public" if role == EVERYONE else role
        held = "SELECT level FROM mind.access WHERE project = %s AND role = %s"
        old_level = sql.execute(held, (key, name)).fetchone()
        exists = sql.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
        # A dropped role may come back by its name.
        if exists is None and old_level is None and name != "public":
            raise Invalid(
                f"the database has no role `{role}`",
                hint=f"name a role of `{server.place}`, or `{EVERYONE}`",
            )
        if level is None and old_level == ("admin",):
            raise Invalid(
                f"`{role}` owns the project in the shared index and keeps its right",
                hint=Hint(Command("index", withdraw=True), " removes the project from it"),
            )
        if (level, old_level) != ("read", ("write",)):
            sql.execute("SELECT mind.share(%s, %s, %s)", (key, name, level))


def roles(call: Call) -> dict[str, str]:
    """Returns the roles that may use this project, each with `read`, `write` or `admin`."""
    server = server_of(call)
    with server.reading() as sql:
        stored = sql.execute(
            "SELECT role, level FROM mind.access WHERE project = %s ORDER BY role",
            (_own_key(call, sql),),
        ).fetchall()
    return {EVERYONE if role == "public" else role: level for role, level in stored}


def withdraw_project(call: Call) -> None:
    """Removes this project from the shared index, at once for every reader.

    Raises `Denied`, `Invalid`, and `StorageFailed` if the server can't be used.
    """
    from mimo.extensions.team.postgres import writing

    _check_person(call, "withdraw a project")
    server = server_of(call)
    with server.session() as sql:
        key = _own_key(call, sql)
        sql.execute("SELECT mind.withdraw(%s)", (key,))
        # Readers have lost it already, and need not wait for this, or for a push that runs.
        with writing.locked(sql, key):
            sql.execute("SELECT mind.clear(%s)", (key,))
    with suppress(OSError, MindError):
        files.remove(_own_file(call))


def working_copy(call: Call) -> WorkingCopy:
    """Returns the names of this project and working copy. Raises `Invalid` without an id."""
    from mimo.extensions.team.postgres.writing import WorkingCopy

    root = call.mind.project.root
    label = git.branch(root) or ""
    is_default, committed = True, None
    project = _identity(call)
    if seconds := git.output(root, "log", "-1", "--format=%ct"):
        committed = disk.moment(int(seconds))
        with suppress(MindError):
            main = revisions.short_name(root, revisions.main_branch(root))
            is_default = label == main.removeprefix("origin/")
    stated = call.mind.guard.policy_text()
    remote, here = _addresses(call)
    return WorkingCopy(
        identity=project,
        address=remote or here,
        project=one_line(call.mind.project.name),
        name=_name(call),
        label=label,
        is_default=is_default,
        committed=committed,
        policy=None if stated is None else stated.decode("utf-8", "replace"),
    )


def identity(call: Call) -> str | None:
    """Returns the identity of a project, equal for all clones and forks; None without an id."""
    id = call.mind.config.values.get("id")
    return disk.blake2b(id.encode("utf-8", "surrogateescape")).hex() if id else None


def _identity(call: Call) -> str:
    """Returns the identity of a project. Raises `Invalid` without an id."""
    if (stated := identity(call)) is None:
        raise Invalid(
            "this project has no id, by which the shared index knows it",
            hint=Hint(Command("doctor", fix=True), " gives it one"),
        )
    return stated


def _addresses(call: Call) -> tuple[str | None, str]:
    """Returns the digests of the addresses of the repository: of its remote, and on this machine.

    Ways to write one address, and names and passwords in it, make no difference.
    """
    place = locate(call.mind.project.root)
    owner = projects.index_owner(call.mind.home, call.mind.randomness)

    def digest(address: str) -> str:
        if address.startswith("/"):  # Another machine has other files there.
            address = f"{owner}\n{address}"
        return disk.blake2b(f"{address}\n{place.inside}".encode("utf-8", "surrogateescape")).hex()

    url = git.output(place.root, "config", "--get", "remote.origin.url")
    remote = _USER.sub("", url or "").rstrip("/").removesuffix(".git").rstrip("/")
    here = str(place.common or place.root).removesuffix("/.git")
    return (digest(remote.replace(":", "/", 1)) if url else None), digest(here)


def _name(call: Call) -> str:
    """Returns the name of this working copy, equal for all its pushes."""
    owner = projects.index_owner(call.mind.home, call.mind.randomness)
    return disk.blake2b(
        f"{owner}\n{call.mind.project.root}".encode("utf-8", "surrogateescape")
    ).hex()


def _own_file(call: Call) -> Path:
    # A clone could bring a file of another name, and so start sharing, or name another project.
    owner = projects.index_owner(call.mind.home, call.mind.randomness)
    return files.local(call.mind.project.root, files.own_name("shared", owner))


def _own_key(call: Call, sql: Connected) -> int:
    """Returns the number of this project. Raises `Invalid` if this repository was not pushed."""
    remote, here = _addresses(call)
    stored = sql.execute(
        "SELECT key FROM mind.projects WHERE identity = %s AND (address = %s OR %s)",
        (_identity(call), remote or here, _is_known(call, pushed_here(call))),
    )
    row = stored.fetchone()
    if row is None:
        raise Invalid(
            "this project is not in the shared index",
            hint=Hint(Command("index", push=True), " puts it there"),
        )
    return int(row[0])


def _check_person(call: Call, action: str) -> None:
    if call.agent is not None:
        raise Denied(f"only a person may {action}", hint="run the command in a terminal")


def fetch_vectors(call: Call) -> int:
    """Gets encoder's vectors that others have made already, and returns their number.

    Does nothing if few are missing, or if the server can't be used: they are made here, then.
    """
    from mimo.extensions.team.postgres import source

    server, meanings = server_in(call.mind), call.mind.index.meanings
    names = call.index.ask(meanings.missing_names) if server and meanings else []
    if server is None or meanings is None or len(names) < _WORTH_FETCHING:
        return 0
    fetched = 0
    with suppress(StorageFailed, ValueError), server.reading() as sql:
        for some in index_schema.portions(names):
            vectors = source.vectors_of(sql, meanings.encoder.model, some)
            width = meanings.vectors.state().width or len(meanings.encoder.encode("a"))
            sound = {name: vector for name, vector in vectors.items() if len(vector) in (0, width)}
            meanings.vectors.put(sound)
            fetched += len(sound)
            call.advance("Fetching vectors", fetched, len(names))
    return fetched


def push_if_behind(call: Call) -> None:
    """Pushes until nothing is missing, unless another process does so. Raises as `push`.

    A project that was withdrawn, in another clone, stays so until a person pushes it.
    """
    while (pushed := pushed_here(call)) and is_behind(call):
        with locks.holding(call.mind.index_folder / _HELD) as ours:
            if not ours:  # The process that holds it looks again afterwards.
                return
            if _is_withdrawn(call, pushed):
                files.remove(_own_file(call))
                return
            push(call)


# The functions that commands of the core ask for, see `SharedIndex`.


def publish(call: Call, levels: Mapping[str, str], *, join: bool) -> shared.Shared:
    """Pushes the project, and gives rights to roles."""
    place, pushed = server_of(call).place, push(call, join=join)
    for role, level in levels.items():
        permit(call, role, level)
    return shared.Shared(
        place=place,
        memories=pushed.memories,
        added=pushed.added,
        removed=pushed.removed,
        vectors=pushed.vectors,
        left_out=pushed.left_out,
        roles=_roles(call),
    )


def restrict(call: Call, revoked: Sequence[str], *, withdraw: bool) -> shared.Shared:
    """Withdraws the project, or takes rights from roles."""
    place, pushed = server_of(call).place, pushed_here(call)
    if withdraw:
        withdraw_project(call)
    for role in revoked:
        permit(call, role, None)
    return shared.Shared(
        place=place,
        memories=pushed.memories if pushed and not withdraw else 0,
        added=0,
        removed=0,
        vectors=0,
        left_out=0,
        roles=() if withdraw else _roles(call),
        withdrawn=withdraw,
    )


def _roles(call: Call) -> tuple[shared.SharedRole, ...]:
    return tuple(shared.SharedRole(role=role, right=right) for role, right in roles(call).items())


def state(call: Call) -> shared.SharedState | None:
    """Returns the state as last pushed from here; None if nothing was."""
    pushed = pushed_here(call)
    if pushed is None:
        return None
    return shared.SharedState(
        place=pushed.place,
        pushed=pushed.pushed,
        memories=pushed.memories,
        changes=changes_since(call, pushed),
    )


def described(call: Call) -> str:
    """Returns the state for `mind doctor`.

    Raises `StorageFailed` if the server can't be used, or does not have what was pushed any more,
    and `Invalid` if the project has no id, or another one than when it was pushed.
    """
    from mimo.extensions.team.postgres import schema, source

    server, pushed = server_of(call), pushed_here(call)
    _identity(call)
    if pushed:
        _check_id(call, pushed)
    with server.reading() as sql:
        schema.check_format(sql)
        if pushed and not source.has_view(sql, pushed.identity, pushed.view):
            raise StorageFailed(
                f"`{server.place}` does not have the memories of this clone any more,"
                f" which were pushed on {pushed.pushed:%Y-%m-%d}",
                hint=Hint(Command("index", push=True), " sends them again"),
            )
    if pushed is None:
        return f"`{server.place}` answers; this project was not pushed from here"
    day = f"{pushed.pushed:%Y-%m-%d}"
    return f"`{server.place}` answers; memories pushed on {day}: {pushed.memories:,}"
