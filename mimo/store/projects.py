"""Projects: how one is found, and the registry of those on this machine."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from mimo.errors import NoProject
from mimo.store import files
from mimo.store.locking import lock
from mimo.store.names import STORE

REGISTRY = "projects.json"
_MAX_BYTES = 4_000_000


class Project(NamedTuple):
    """A folder that holds a `.mind/`."""

    root: Path
    """Absolute, without symbolic links."""
    name: str

    @property
    def store(self) -> Path:
        """Returns its `.mind/`."""
        return self.root / STORE


class Registered(NamedTuple):
    """A project as the registry knows it."""

    path: Path
    name: str
    added: datetime | None = None
    search_all: bool = True
    """Whether a search through all projects looks into it: `"search_all": false` keeps it apart."""


class Registry(NamedTuple):
    """The projects on this machine, and what is wrong with their list."""

    projects: tuple[Registered, ...] = ()
    problem: str | None = None


def find(start: Path, home: Path) -> Project | None:
    """Returns the project of the nearest folder, from `start` upward, that holds a `.mind/`.

    `home` ($MIND_HOME) is a folder of mind's own and makes no project of its parent. Raises
    `NoProject` at a `.mind` that is no folder: what is remembered must not end up further up.
    """
    start = start.resolve()
    own = home.resolve()
    for folder in (start, *start.parents):
        store = folder / STORE
        if store.resolve() == own or not os.path.lexists(store):
            continue
        if _is_store(store):
            return Project(root=folder, name=folder.name)
        what = "a symbolic link, which is never followed" if store.is_symlink() else "a file"
        raise NoProject(f"`{store}` is {what}", hint="move it away, then run `mind init`")
    return None


def explicit(root: Path, home: Path) -> Project:
    """Returns the project that somebody named by its folder.

    Raises `NoProject` where it has no `.mind/` of its own.
    """
    resolved = root.resolve()
    project = find(resolved, home)
    if project is not None and project.root == resolved:
        return project
    if (resolved / STORE).is_symlink():
        raise NoProject(f"`{resolved / STORE}` is a symbolic link", hint="links are never followed")
    inside = f"; the project around it is `{project.root}`" if project else ""
    raise NoProject(
        f"`{root}` is no project: it has no `.mind/`{inside}",
        hint=f"run `mind init` in `{root}`, or name another folder",
    )


def registered(home: Path) -> Registry:
    """Returns the registered projects, oldest first; a damaged list is told, not raised."""
    import json

    path = home / REGISTRY
    try:
        data = json.loads(files.read(path, limit=_MAX_BYTES).decode("utf-8"))
        return Registry(projects=tuple(_registered(item) for item in data))
    except FileNotFoundError:
        return Registry()
    except OSError as error:
        return Registry(problem=files.failure("read", path, error).message)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Registry(problem=f"`{path}` is damaged")


def register(home: Path, project: Project, *, now: datetime) -> str | None:
    """Adds a project to the registry, once; returns what had to be said about it, if anything.

    A damaged list is kept under another name beside the new one. Raises `StorageFailed`.
    """
    import json

    path = home / REGISTRY
    with lock(home / "lock"):
        registry = registered(home)
        if registry.problem is None and any(p.path == project.root for p in registry.projects):
            return None
        notice = None
        if registry.problem is not None:
            aside = _set_aside(path)
            notice = f"{registry.problem}; it is kept as `{aside}`, and a new one begins"
        added = Registered(path=project.root, name=project.name, added=now.astimezone(UTC))
        items = [_data(item) for item in (*registry.projects, added)]
        text = json.dumps(items, indent=2, ensure_ascii=False)
        files.replace(path, f"{text}\n".encode("utf-8", "surrogateescape"))
        return notice


def _set_aside(path: Path) -> Path:
    try:
        data = files.read(path)
    except OSError as error:
        raise files.failure("read", path, error) from error
    aside = path.with_name(f"{path.name}.damaged-{files.digest(data)[:8]}")
    files.replace(aside, data)
    return aside


def _registered(item: Any) -> Registered:
    added = item.get("added")
    path = Path(_text(item["path"]))
    if not path.is_absolute() or "\0" in str(path):
        raise ValueError(path)
    return Registered(
        path=path,
        name=_text(item["name"]),
        added=datetime.fromisoformat(added) if added else None,
        search_all=item.get("search_all") is not False,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _data(project: Registered) -> dict[str, str | bool | None]:
    added = project.added.isoformat().replace("+00:00", "Z") if project.added else None
    apart = {} if project.search_all else {"search_all": False}
    return {"path": str(project.path), "name": project.name, "added": added} | apart


def _is_store(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
