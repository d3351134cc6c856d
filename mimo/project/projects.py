"""Projects: finding them, their registry, and the place of their index."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path

from mimo.data import disk, files
from mimo.data.disk import STORE
from mimo.data.failures import failure
from mimo.data.files import CONFIG, LOCAL
from mimo.data.locks import lock
from mimo.data.state import StateFile
from mimo.errors import (
    Command,
    Hint,
    LaterFormat,
    MindError,
    NoProject,
    Option,
    StorageFailed,
    Untrusted,
    join_texts,
)
from mimo.frozen import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REGISTRY = "projects.json"
_MAX_BYTES = 4_000_000
_PROJECT_MARKS = ("MEMORY.md", ".gitattributes", "facts", "decisions", "checkpoints")
_LEVELS = 2
"""Depth of the folders in `.mind/` with memories: `private/facts`."""


# The index folder and the user's secret.


def index_folder(root: Path, home: Path) -> Path:
    """Returns `.mind/.index`; if that can't be used safely, a folder in the user's cache."""
    inside = root / STORE / ".index"
    writable = os.access(inside if inside.exists() else inside.parent, os.W_OK)
    if writable and not _is_unsafe(inside):
        return inside
    return home / "cache" / disk.sha256(os.fsencode(root)).hex()[:16]


def index_owner(home: Path, randomness: Callable[[int], bytes]) -> str:
    """Returns the user's secret, which marks an index as theirs; creates a missing one.

    A clone can't contain it. A home in a repository, such as one of the user's settings, gets an
    ignore file first, unless it has one. Raises `StorageFailed`.
    """
    path = owner_file(home)
    if (data := files.content(path)) is None:
        files.ensure(home / disk.IGNORE_FILE, f"{disk.IGNORE_ALL}\n".encode())
        files.ensure(path, randomness(16).hex().encode(), mode=0o600)
        data = files.content(path) or b""
    return data.decode("ascii", "replace")


def known_owner(home: Path) -> str | None:
    """Returns the user's secret; None if there is none yet."""
    try:
        return disk.read(owner_file(home)).decode("ascii", "replace")
    except OSError:
        return None


def owner_file(home: Path) -> Path:
    """Returns the path of the user's secret."""
    return home / "index-owner"


def _is_unsafe(folder: Path) -> bool:
    """Returns whether a folder is another user's, or is or contains a symbolic link.

    If the user allowed a project of another user, the folder may have the same owner.
    """
    try:
        status = folder.lstat()
    except OSError:
        return False
    if stat.S_ISLNK(status.st_mode):
        return True
    if disk.is_foreign(status) and not disk.is_foreign(folder.parent.lstat()):
        return True
    try:
        with os.scandir(folder) as entries:
            return any(entry.is_symlink() for entry in entries)
    except OSError:
        return False


# Projects and their registry.


class Project(NamedTuple):
    """A folder that contains a `.mind/` with a `config.toml`."""

    root: Path
    """Absolute, without symbolic links."""
    name: str
    inner: Path | None = None
    """The top of another repository, in which the search for the project began."""
    worktree: Path | None = None
    """The folder at the place of `root` in a linked worktree, if it began there: agents read it."""

    @property
    def store(self) -> Path:
        """Returns the `.mind/` of the project."""
        return self.root / STORE


def user_root(home: Path) -> Path:
    """Returns the folder of the memory that the user has for all projects."""
    return home / "memories"


def served_root(home: Path) -> Path:
    """Returns the folder of the working copies that a server has of bare repositories."""
    return home / "served"


def of_user(home: Path) -> Project | None:
    """Returns the memory that the user has for all projects, as a project; None without one."""
    root = user_root(home)
    exists = os.path.isdir(f"{root}/{STORE}")  # noqa: PTH112 - asked by every search
    return Project(root=root, name="user") if exists else None


class Registered(NamedTuple):
    """A project in the registry."""

    path: Path
    name: str
    added: datetime | None = None
    search_all: bool = True
    """True if a search through all projects includes it."""


class Registry(NamedTuple):
    """The projects on this machine, and the problem with their list."""

    projects: tuple[Registered, ...] = ()
    problem: MindError | None = None


def find(start: Path, home: Path) -> Project | None:
    """Returns the nearest project, from `start` upward; None if there is none.

    The `.mind/` of a home ($MIND_HOME) is not a project and is skipped, as is the one with the
    user's memory for all projects. So is a project of another user above `start`, unless the user
    allowed it. A linked worktree without a project has that of its main worktree. Raises
    `NoProject` at a `.mind` that is not a folder or was never initialised, since memories must not
    be saved further up, and `StorageFailed` at one that can't be entered. Raises `Untrusted` if
    the project in `start`, or the only one, is another user's.
    """
    # `Path.resolve` fails for a link to itself before Python 3.13.
    start, real_home = Path(os.path.realpath(start)), Path(os.path.realpath(home))
    refused: Untrusted | None = None
    top: Path | None = None
    for folder in (start, *start.parents):
        try:
            if project := _project_at(folder, home, real_home):
                is_other = top and _is_other_repository(top, project.root)
                return project._replace(inner=top) if is_other else project
        except Untrusted as error:
            if folder == start:
                raise
            refused = refused or error
        if top is None and os.path.lexists(f"{folder}/.git"):
            top = folder
            if project := _of_main_worktree(start, top, home, real_home):
                return project
    if refused:
        raise refused
    return None


def _of_main_worktree(start: Path, top: Path, home: Path, real_home: Path) -> Project | None:
    """Returns the project of the main worktree if `top` is a linked one without a project.

    All worktrees of a repository that ignores `.mind/` share that memory.
    """
    if not os.path.isfile(f"{top}/.git"):  # noqa: PTH113 - the `.git` of most folders is a folder
        return None
    from mimo.project.location import locate

    common = locate(top).common
    if common is None or common.name != ".git":
        return None
    main = common.parent
    for folder in (main / start.relative_to(top), *(main / start.relative_to(top)).parents):
        if project := _project_at(folder, home, real_home):
            return project._replace(worktree=top / folder.relative_to(main))
        if folder == main:
            break
    return None


def _is_other_repository(top: Path, root: Path) -> bool:
    """Returns whether a working tree within a project is of another repository.

    Submodules and worktrees of the project's repository are not.
    """
    from mimo.project import git

    folder, common = git.directory(top), git.common_directory(root)
    if folder is None or common is None:
        return True
    return not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(common))


def source_of(project: Project) -> str:
    """Returns the line that names a project beside an answer in another repository within it."""
    return f"from the project `{project.root}`, which is around this repository"


def check_reach(project: Project) -> None:
    """Raises `NoProject` if a change would be made around the repository, without being asked."""
    if project.inner:
        raise NoProject(
            f"`{project.inner}` is a repository without a memory, and the project around it,"
            f" `{project.root}`, is changed only if it is named",
            hint=Hint(
                *("run ", Command("init", str(project.inner)), " for a memory of its own, or name"),
                *(" the project with ", Option(project=str(project.root)), " or MIND_PROJECT"),
            ),
        )


def explicit(root: Path, home: Path) -> Project:
    """Returns the project in a folder that the user named.

    Raises `NoProject` if the folder has no `.mind/`, `StorageFailed` if it can't be entered, and
    `Untrusted` if it is another user's.
    """
    resolved, real_home = Path(os.path.realpath(root)), Path(os.path.realpath(home))
    if project := _project_at(resolved, home, real_home):
        return project
    if is_home(resolved / STORE):
        raise NoProject(
            f"`{root}` is not a project: its `.mind/` is a home of mind ($MIND_HOME)",
            hint=Hint("run ", Command("init"), " in the project's folder, or name another folder"),
        )
    with suppress(Untrusted):
        project = find(resolved, home)
        if project and not resolved.is_relative_to(project.root):
            return project  # The folder is in a linked worktree.
    inside = f"; the project around it is `{project.root}`" if project else ""
    raise NoProject(
        f"`{root}` is not a project: it has no `.mind/`{inside}",
        hint=Hint("run ", Command("init"), f" in `{root}`, or name another folder"),
    )


def is_home(store: Path) -> bool:
    """Returns whether a `.mind/` is a home ($MIND_HOME) of any user, by its files."""
    return any(os.path.lexists(f"{store}/{name}") for name in disk.HOME_MARKS)


def check_owner(root: Path, home: Path) -> None:
    """Raises `Untrusted` if a project's `.mind/` is another user's and the user did not allow it.

    Another user could show texts to agents, or name programs to run.
    """
    for name in (STORE, f"{STORE}/{CONFIG}", LOCAL):
        with suppress(OSError):
            status = os.lstat(f"{root}/{name}")
            if not disk.is_foreign(status):
                continue
            from mimo.config import load

            allowed = load(user=home / CONFIG, project=None)["safe.projects"]
            if "*" not in allowed and str(root) not in allowed:
                raise disk.refusal(
                    root / name,
                    status,
                    hint=Hint(
                        f"if you trust that user, add `{root}` to your settings (",
                        Command("config", "safe.projects", str(root)),
                        "), or change the owner with chown",
                    ),
                )


def check_home(home: Path) -> None:
    """Raises `Untrusted` if $MIND_HOME, with approvals and keys, can't be mind's own.

    It is another user's, or a folder with other things.
    """
    with suppress(OSError):
        status = home.stat()
        if disk.is_foreign(status):
            raise disk.refusal(
                home,
                status,
                hint="set MIND_HOME to a folder of your own, or change the owner with chown",
            )
    if entry := disk.not_of_home(home):
        raise Untrusted(
            f"`MIND_HOME` is `{home}`, which is not mind's own: it has `{entry}`",
            hint="set it to a new folder, or unset it for `~/.mind`",
            details={"path": str(home), "name": entry},
        )


def _project_at(folder: Path, home: Path, real_home: Path) -> Project | None:
    """Returns the project of exactly this folder. Raises as `find` does."""
    store = folder / STORE
    try:
        mode = store.lstat().st_mode
    except OSError:
        return None
    if store == real_home or (stat.S_ISLNK(mode) and os.path.realpath(store) == f"{real_home}"):
        return None
    if folder == user_root(real_home):
        return None
    check_owner(folder, home)
    if not stat.S_ISDIR(mode):
        kind = "a symbolic link, which is never followed" if stat.S_ISLNK(mode) else "a file"
        raise NoProject(
            f"`{store}` is {kind}", hint=Hint("move it away, then run ", Command("init"))
        )
    if is_home(store):
        if any(os.path.lexists(f"{store}/{name}") for name in _PROJECT_MARKS):
            # As a clone may bring it: memories must not be saved in a project around it.
            marks = " and ".join(disk.HOME_MARKS)
            raise NoProject(
                f"`{store}` has memories, and files of a home of mind ($MIND_HOME)",
                hint=f"if it is a project, remove {marks} from its `.mind/`",
            )
        return None
    try:
        os.lstat(f"{store}/{CONFIG}")
        return Project(root=folder, name=folder.name)
    except FileNotFoundError:
        pass
    except OSError as error:  # Memories must not be saved in a project around it.
        raise failure("read", store, error) from error
    if _holds_memories(store):
        raise NoProject(
            f"`{folder}` is not a project yet: its `.mind/` has memories but no `{CONFIG}`",
            hint=Hint("run ", Command("init", str(folder)), " to use them"),
        )
    return None


def _holds_memories(store: Path) -> bool:
    """Returns whether a `.mind/` contains Markdown in one of the folders of memories."""
    deepest = str(store).count(os.sep) + _LEVELS
    for folder, folders, names in os.walk(store):
        if any(name.endswith(".md") for name in names):
            return True
        if folder.count(os.sep) >= deepest:
            folders.clear()
    return False


def registered(home: Path) -> Registry:
    """Returns the registered projects, oldest first; a damaged list is reported in `problem`.

    Damaged entries are left out.
    """
    try:
        entries = _LISTS.read(home, REGISTRY) or ()
    except MindError as error:
        return Registry(problem=error)
    usable = tuple(entry for entry in entries if entry)
    if len(usable) == len(entries):
        return Registry(usable)
    return Registry(usable, StorageFailed(f"`{home / REGISTRY}` is damaged", hint=_MEND))


def registering(home: Path) -> AbstractContextManager[None]:
    """Returns the lock under which the registry changes."""
    return lock(home / "lock")


def register(home: Path, project: Project, *, now: datetime) -> str | None:
    """Adds a project to the registry, unless it is registered; returns a notice, or None.

    A damaged list is copied, and replaced by one of its usable entries. One of a later version of
    mind is left as it is. The caller holds the lock. Raises `StorageFailed`.
    """
    path, registry = home / REGISTRY, registered(home)
    if isinstance(problem := registry.problem, LaterFormat):
        return join_texts(problem.message, "the project was not added", problem.hint)
    entries, notice = registry.projects, None
    if all(entry.path != project.root for entry in entries):
        added = Registered(path=project.root, name=project.name, added=now.astimezone(UTC))
        entries = (*entries, added)
    elif problem is None:
        return None
    if problem:
        data = files.content(path) or b""
        aside = path.with_name(f"{path.name}.damaged-{files.digest(data)[:8]}")
        files.replace(aside, data)
        remark = f"the new list keeps {len(registry.projects)} of its projects"
        notice = f"{problem.message}; it was renamed to `{aside}`, and {remark}"
    _write(home, entries)
    return notice


def unregister(home: Path, paths: Collection[Path]) -> None:
    """Removes projects from the registry; their files stay. Raises `StorageFailed`."""
    if not paths:
        return
    with registering(home):
        registry = registered(home)
        if registry.problem:
            raise registry.problem
        _write(home, [entry for entry in registry.projects if entry.path not in paths])


def _write(home: Path, entries: Iterable[Registered]) -> None:
    from mimo.text.calendar import iso_utc

    items = []
    for item in entries:
        when = iso_utc(item.added) if item.added else None
        apart = {} if item.search_all else {"search_all": False}
        items.append({"path": str(item.path), "name": item.name, "added": when} | apart)
    _LISTS.write(home, REGISTRY, items)


def _registered(item: Any) -> Registered | None:
    """Returns an entry of the list; None for a damaged one."""
    try:
        added, name, path = item.get("added"), item["name"], Path(item["path"])
        when = datetime.fromisoformat(added) if added else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(name, str) or not path.is_absolute() or "\0" in str(path):
        return None
    apart = item.get("search_all") is False
    return Registered(path=path, name=name, added=when, search_all=not apart)


_MEND = "`init` in a project keeps it aside and makes a new list"
_LISTS = StateFile(lambda items: tuple(map(_registered, items)), hint=_MEND, limit=_MAX_BYTES)
