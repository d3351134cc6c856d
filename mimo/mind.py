"""Mind: one opened memory, which calls share. `Call` has what belongs to one of them."""

from __future__ import annotations

import os
from _thread import RLock
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from mimo.config import FORMAT, ZONE, Config, load
from mimo.data import disk, files
from mimo.data.failures import failure
from mimo.data.files import POLICY
from mimo.errors import Invalid, MindError, NoProject, StorageFailed, Untrusted
from mimo.memory.ids import handle_of
from mimo.project import projects
from mimo.project.projects import Project, Registered, Registry
from mimo.surroundings import Clock, Timer

if TYPE_CHECKING:
    from mimo.guard.guard import Guard
    from mimo.index.embedding import Embedder
    from mimo.index.index import Index, Reader
    from mimo.index.names import Handle
    from mimo.project.accesses import Accesses
    from mimo.project.events import EventLog
    from mimo.project.memories import MemoryStore
    from mimo.project.trash import Trash
    from mimo.project.trust import Trust
    from mimo.project.values import Values
    from mimo.project.watch import Watch

T = TypeVar("T")

_MOST_PAST = 4
"""The number of earlier revisions that stay open: each takes seven open files."""

_FILES = 2
"""The files of settings; while some wait for approval, the approvals count, too."""
_RETRY_SECONDS = 600.0
"""The time after which an index that could not be used is tried again."""


_LASTING = ("embedding", "encoder", "index", "vectors", "pending")
"""Subjects of notices that belong to every call, until the next notice about the same."""

WAY_TO_PROJECT = (
    "run `mind init` in the project first, or name one with --project DIR or MIND_PROJECT"
)
"""The hint of the error that there is no project."""


class part(Generic[T]):  # noqa: N801 - used as a decorator, as `property` is
    """A part of a `Mind`: opened on first use, then shared by all views of that `Mind`."""

    def __init__(self, open_part: Callable[[Any], T]) -> None:
        """Takes the method that opens the part."""
        self._open = open_part
        self._name = open_part.__name__
        self.__doc__ = open_part.__doc__

    @overload
    def __get__(self, mind: None, owner: object) -> part[T]: ...
    @overload
    def __get__(self, mind: Mind, owner: object) -> T: ...
    def __get__(self, mind: Mind | None, owner: object) -> T | part[T]:
        """Returns the part, and opens it if no view has done so."""
        if mind is None:
            return self
        parts = mind._parts
        with mind._opening:
            if self._name not in parts:
                parts[self._name] = self._open(mind)
            value: T = parts[self._name]
            return value


def no_working_directory() -> NoProject:
    """Returns the error for a relative path, or no path, if the working directory was deleted."""
    return NoProject(
        "the working directory no longer exists",
        hint="change to another one, or name a project by its absolute path with --project",
    )


class Mind:
    """An opened memory: its project, settings, clock, files and index."""

    def __init__(
        self,
        *,
        home: Path,
        project: Project | None,
        clock: Clock = disk.system_clock,
        randomness: Callable[[int], bytes] = os.urandom,
        environ: Mapping[str, str] | None = None,
        timer: Timer | None = None,
        way_to_project: str = WAY_TO_PROJECT,
    ) -> None:
        """Takes the surroundings, and the hint of the error that there is no project.

        Nothing is opened or read yet.
        """
        self.home, self._project = home, project
        self._missing: MindError | None = None
        self._refused: MindError | None = None
        self.clock = clock
        self.randomness = randomness
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.is_users = False
        """True for the memory that the user has for all projects."""
        self.is_past = False
        """True for the memory at an earlier revision."""
        self.way_to_project = way_to_project
        self.timer = timer or Timer()
        self._parts: dict[str, Any] = {}
        self._opening = RLock()
        self._notices: dict[str, str | None] = {}
        self._others: dict[Path, Mind] = {}

    @classmethod
    def open(
        cls,
        start: Path | None,
        *,
        project: Path | None = None,
        environ: Mapping[str, str] | None = None,
        clock: Clock = disk.system_clock,
    ) -> Mind:
        """Returns the memory of the project around `start`, or of the named project.

        `project`, or else `MIND_PROJECT`, names a project; without `start` only these count. A
        missing or refused project raises only when something uses the project.
        """
        environ = os.environ if environ is None else environ
        named = project or (Path(environ["MIND_PROJECT"]) if environ.get("MIND_PROJECT") else None)
        mind = cls(home=disk.home_of(environ), project=None, clock=clock, environ=environ)
        try:
            projects.check_home(mind.home)
        except Untrusted as error:
            mind._missing = error
            return mind
        try:
            if named:
                mind._project = projects.explicit(named, mind.home)
            elif start:
                mind._project = projects.find(start, mind.home)
            else:
                mind._refused = no_working_directory()
        except OSError as error:
            mind._missing = (
                no_working_directory()
                if not start
                else failure("open", Path(str(error.filename or named or start)), error)
            )
        except (NoProject, StorageFailed) as error:
            mind._missing = error
        except Untrusted as error:
            # A refused project above `start` does not stop commands that need no project.
            mind._missing, mind._refused = (error, None) if named else (None, error)
        return mind

    def close(self) -> None:
        """Closes the open parts, which the next use opens again, and `watch` the subscription.

        An index that is not closed keeps its journal file.
        """
        with self._opening:  # Another call may be in `beside`.
            minds = [*self._others.values()]
            self._others.clear()
        for mind in minds:
            mind.close()
        if self.is_past:  # A thread that still uses it must not open the project's index instead.
            self.index.close()
            return
        if accesses := self._parts.pop("accesses", None):
            accesses.flush()
        if watch := self._parts.get("watch"):
            watch.close()
        for name in ("index", "guard", "values", "trust"):
            if opened := self._parts.pop(name, None):
                opened.close()
        for resource in self._parts.pop("resources", {}).values():
            resource.close()

    # Views: the same memory for another caller, and the memories of other projects.

    def _view(self, *, parts: dict[str, Any], project: Project | None = None) -> Mind:
        """Returns a copy with the given parts and, if given, another project."""
        view = object.__new__(type(self))
        vars(view).update(vars(self))
        if parts is not self._parts:
            view._notices, view._others, view.is_past = {}, {}, False
        view._parts = parts
        if project:
            view._project, view.is_users = project, False
        return view

    @contextmanager
    def visited(self, environ: Mapping[str, str]) -> Iterator[Mind]:
        """Yields a view for one call of another process of the user, with its environment.

        Its checks, session and notices are its own; files and index are shared, as is the user's
        memory for all projects if it is open.
        """
        own_parts = ("guard", "session", "values", "events")
        parts = dict(self._parts)  # Another call may open one meanwhile.
        view = self._view(parts={k: v for k, v in parts.items() if k not in own_parts})
        view._notices = dict(self._notices)
        view.environ = environ
        self.user()
        users = projects.user_root(self.home)
        shared = self._others.get(users)
        if shared is not None:
            view._others[users] = shared
        opened = set(view._parts)
        try:
            yield view
        finally:
            if accesses := view._parts.get("accesses"):
                accesses.flush()
            if "index_replaced" in view._parts.keys() - opened:
                opened.add("index")  # It stays open for the next call.
                self.use_index(view._parts["index"], notice=view.noted("index"))
                if self.watched:
                    self.watched.unsettle()  # It may lack changes that another view has indexed.
            for name in view._parts.keys() - opened:
                if close := getattr(view._parts[name], "close", None):
                    close()
            while view._others:
                mind = view._others.popitem()[1]
                if mind is not shared:
                    mind.close()

    def reopened(self) -> Mind:
        """Returns the same memory; settings, files and index are read again."""
        return self._view(parts={})

    def outside(self) -> Mind:
        """Returns a view without a project."""
        view = self._view(parts={})
        view._project = view._missing = None
        return view

    def is_of_home(self, path: Path) -> bool:
        """Returns whether a path is in mind's home, but not in a project that is itself there."""
        return path.is_relative_to(self.home) and not self.project.root.is_relative_to(self.home)

    def registered(self) -> Registry:
        """Returns the registered projects."""
        return projects.registered(self.home)

    def at(self, registered: Registered, *, stays: bool = True) -> Mind | None:
        """Returns the memory of a registered project; None if the project is missing.

        It shares this memory's home, clock and embedder, and stays open for the next call. Unless
        it `stays`, the caller closes it.
        """
        if self._project and registered.path == self._project.root:
            return self
        try:
            project = projects.find(registered.path, self.home)
        except (MindError, OSError, ValueError):
            return None
        if project is None or project.root != registered.path:
            return None

        if stays:
            return self.beside(registered.path, self._parts_elsewhere, project)
        return self._view(parts=self._parts_elsewhere(), project=project)

    def user(self, *, make: bool = False) -> Mind | None:
        """Returns the memory that the user has for all projects; None if there is none.

        With `make`, a missing one is made.
        """
        if self.is_users:
            return None
        if make:
            from mimo.project.init import make_users

            make_users(self.home)
        project = projects.of_user(self.home)
        if project is None:
            return None

        user = self.beside(project.root, self._parts_elsewhere, project)
        user.is_users = True
        user._missing = user._refused = None
        return user

    def _parts_elsewhere(self) -> dict[str, Any]:
        return {"embedder": self.embedder, "session": self.guard.session.elsewhere()}

    @property
    def is_outside(self) -> bool:
        """True if there is no project around, and none was refused or named in vain."""
        return self._project is None and not (self._missing or self._refused)

    def beside(
        self, key: Path, parts: Callable[[], dict[str, Any]], project: Project | None = None
    ) -> Mind:
        """Returns a memory with the given parts, which stays open under `key`.

        Without a project, it is this one at an earlier revision; the last used ones stay open.
        """
        with self._opening:
            closed, mind = [], self._others.get(key)
            if mind is None or mind.is_outdated:
                new = self._view(parts=parts(), project=project)
                new.is_past = project is None
                closed += [mind] if mind else []
                mind = new
            if mind.is_past:
                self._others.pop(key, None)
                past = [key for key, each in self._others.items() if each.is_past]
                closed += map(self._others.pop, past[: -_MOST_PAST + 1])
            self._others[key] = mind  # The last one is that used last.
        for each in closed:
            each.close()
        return mind

    # Time, notices and events.

    def now(self) -> datetime:
        """Returns the current time, UTC."""
        return self.clock()

    def local_now(self) -> datetime:
        """Returns the current time in the user's zone, for phrases such as `today`."""
        return self.now().astimezone(self.zone)

    @property
    def zone(self) -> tzinfo:
        """The zone of shown times, the setting `time.zone`."""
        name = self.config[ZONE]
        if name == "UTC":
            return UTC
        from mimo.zones import zone_of

        return zone_of(name)

    @property
    def zone_name(self) -> str:
        """The IANA name of that zone, for programs that show times themselves."""
        from mimo.zones import LOCAL_NAME, system_name

        name: str = self.config[ZONE]
        return (system_name(self.environ) or "UTC") if name == LOCAL_NAME else name

    def note(self, about: str, notice: str | None) -> bool:
        """Sets the notice about a subject of all calls; returns False for any other subject."""
        if about not in _LASTING:
            return False
        self._notices[about] = notice
        return True

    def noted(self, about: str) -> str | None:
        """Returns the notice about one subject of all calls, or None."""
        return self._notices.get(about)

    def notices(self) -> Iterable[str | None]:
        """Returns the notices that belong to every call."""
        return tuple(self._notices.values())

    def tell(self, name: str, measurements: Mapping[str, float], /, **metadata: object) -> None:
        """Logs an event such as `mimo.ingest.file`. An event that can't be written is dropped."""
        from mimo.project.events import Event

        event = Event(name=name, time=self.now(), measurements=measurements, metadata=metadata)
        with suppress(MindError, OSError):
            self.events.write(event)

    # The project and its settings.

    def check(self) -> None:
        """Raises `Untrusted` if another user owns $MIND_HOME or the named project."""
        if isinstance(self._missing, Untrusted):
            raise self._missing

    @property
    def has_project(self) -> bool:
        """True if there is a project.

        Raises `NoProject` or `Untrusted` if the user named a project that can't be used.
        """
        if self._missing:
            raise self._missing
        return self._project is not None

    @property
    def project(self) -> Project:
        """The project. Raises `NoProject` or `Untrusted` if there is none that can be used."""
        if self._missing:
            raise self._missing
        if self._project is None:
            raise self._refused or NoProject("there is no project here", hint=self.way_to_project)
        return self._project

    @property
    def source(self) -> str:
        """The line that names the project if it is around another repository; else empty."""
        project = self._project
        return projects.source_of(project) if project and project.inner else ""

    @property
    def folder(self) -> Path:
        """The project's `.mind/`."""
        return self.project.root / ".mind"

    @part
    def config(self) -> Config:
        """The settings of the user, and those of the project that are approved."""
        self._parts["settings"] = self._settings_stamps()
        if self._project is None or self.is_users:
            user, of_project = self._settings_files()
            return load(user=user, project=of_project)
        from mimo.project.trust import Trust

        opened = self._parts.get("trust")  # A view of an earlier revision has its own.
        trust: Trust = opened or Trust(self.home, self._project.root, texts=self._approvable)
        config = trust.settings(asks_git=True)
        self._parts["trust"] = trust
        if config.waiting:  # They apply as soon as they are approved.
            self._parts["settings"] = self._settings_stamps(waits=True)
        return config

    def _approvable(self) -> Iterator[tuple[str, bytes]]:
        """Returns the files that an earlier version may have approved, with its settings."""
        from mimo.project.memories import MemoryStore

        user, of_project = self._settings_files()
        config, root = load(user=user, project=of_project), self.project.root
        return MemoryStore(root, config["include"], comments=config["comments"]).texts()

    def check_format(self) -> None:
        """Raises `StorageFailed` if a later version of mind wrote the store or its approvals."""
        self.config.check_format()
        self.trust.check_format()

    @property
    def is_outdated(self) -> bool:
        """True if the settings were changed, or the project was removed, since they were read.

        Also some minutes after the index had to be replaced, since the cause may have passed.
        """
        # A folder that can't be looked up now counts as removed.
        if self._project and not os.path.isdir(self._project.store):  # noqa: PTH112 - raises nothing
            return True
        replaced = self._parts.get("index_replaced")
        if replaced is not None and self.timer.monotonic() - replaced >= _RETRY_SECONDS:
            return True
        read: tuple[object, ...] | None = self._parts.get("settings")
        return read is not None and read != self._settings_stamps(waits=len(read) > _FILES)

    def _settings_files(self) -> tuple[Path, Path | None]:
        of_project = self._project.store / "config.toml" if self._project else None
        return self.home / "config.toml", of_project

    def _settings_stamps(self, *, waits: bool = False) -> tuple[object, ...]:
        paths = (*self._settings_files(), *((self.home / "trust.db",) if waits else ()))
        return tuple(path and disk.stamp(path, follow=True) for path in paths)

    # The parts.

    @part
    def store(self) -> MemoryStore:
        """The project's files."""
        from mimo.project.memories import MemoryStore

        config = self.config
        if self.is_users:
            return MemoryStore(self.project.root)
        return MemoryStore(
            self.project.root,
            include=config["include"],
            comments=config["comments"],
            commits=config["commits"],
        )

    def watch(self) -> None:
        """Subscribes to file changes, so that a long-running process need not scan for them."""
        from mimo.project.watch import Watch

        folders, watch = self.store.folders(), self.watched
        if folders and (watch is None or watch.is_closed):
            self._parts["watch"] = Watch(folders)

    @property
    def watched(self) -> Watch | None:
        """The subscription to file changes, if `watch` was called."""
        watch: Watch | None = self._parts.get("watch")
        return watch

    @part
    def trust(self) -> Trust:
        """The approvals of the project's files on this machine."""
        from mimo.project.trust import Trust

        if self.is_users:  # Not even a repository around $MIND_HOME vouches for it.
            return Trust(self.home, self.project.root, texts=self._approvable)
        config, opened = self.config, self._parts.get("trust")
        trust: Trust = opened or Trust(self.home, self.project.root, texts=self._approvable)
        trust.use(config, asks_git=True)
        return trust

    @property
    def trash(self) -> Trash:
        """The text that commands removed or replaced."""
        from mimo.project.trash import Trash

        return Trash(
            self.project.root,
            projects.index_owner(self.home, self.randomness),
            most_bytes=self.config["trash.megabytes"] * 1_000_000,
            most_days=self.config["trash.days"],
            now=self.now,
        )

    @part
    def accesses(self) -> Accesses:
        """The uses of the memories on this machine."""
        from mimo.project.accesses import Accesses

        return Accesses(self.project.root)

    @part
    def events(self) -> EventLog:
        """The project's event log."""
        from mimo.project.events import EventLog

        return EventLog(self.project.root)

    @part
    def values(self) -> Values:
        """The key-value store."""
        from mimo.project.values import Values

        owner = projects.index_owner(self.home, self.randomness)
        return Values(self.project.root, owner, is_later=self.config.format > FORMAT)

    @part
    def guard(self) -> Guard:
        """The checks and the audit of every call; the default policy applies outside a project."""
        from mimo.guard.audit import AuditLog, Session
        from mimo.guard.guard import Guard

        root = self._project.root if self._project else None
        session = self._parts.get("session") or Session(self.environ, started=self.now())
        log = AuditLog(self.home, root, self.randomness)

        def trusted(name: str) -> bool:
            if is_approved := self.trust.trusted(name):
                self.trust.keep(POLICY, name)
            return is_approved

        latest = files.reread(self.home / "trust.db", lambda _: self.trust.latest()[POLICY])

        def owner() -> str:
            return projects.index_owner(self.home, self.randomness)

        return Guard(
            root=root, trusted=trusted, latest=latest, owner=owner, session=session, log=log
        )

    @part
    def embedder(self) -> Embedder | None:
        """The embedding model; None if the user's own model can't be used."""
        from mimo.index.embedding import open_embedder

        try:
            return open_embedder(self.config["embedding.model"] or None)
        except Invalid as error:
            self.note("embedding", f"found by words only: {error.message}")
            return None

    @property
    def encoder(self) -> Embedder | None:
        """The model of the second vectors; None if it is off or can't be used, or without numpy."""
        from mimo.index.embedding import open_encoder, without_encoder

        try:
            return open_encoder(self.config, stays_here=self.is_users)
        except Invalid as error:
            self.note("encoder", without_encoder(error))
            return None

    def prepare(self) -> None:
        """Opens the parts that nearly every answer needs, before work begins that uses them.

        A part that can't be opened raises its error when it is used.
        """
        for name in ("config", "store", "trust", "index"):
            with suppress(MindError, OSError):
                getattr(self, name)

    @property
    def index_folder(self) -> Path:
        """The index's folder: `.mind/.index`, or one in the user's cache if that can't be used."""
        return projects.index_folder(self.project.root, self.home)

    @part
    def index(self) -> Index:
        """The index of the project's files; created if it is missing or damaged."""
        from mimo.data.locks import holding
        from mimo.index.index import Index

        folder, embedder = self.index_folder, self.embedder
        index = Index.open(folder, embedder, projects.index_owner(self.home, self.randomness))
        index.turn = lambda: holding(folder / "building")
        return self.trusting(index)

    def resource(self, open: Callable[[Mind], T]) -> T:
        """Returns a resource of an extension: opened with the first use, closed with the memory.

        `open` is the same function each time, and returns an object with `close`.
        """
        with self._opening:
            opened: dict[Any, T] = self._parts.setdefault("resources", {})
            if open not in opened:
                opened[open] = open(self)
            return opened[open]

    def trusting(self, index: Index) -> Index:
        """Returns the index, with this memory's approvals."""

        def approvals() -> Callable[[str], bool]:
            return self.trust.checker()  # The trust store is opened if an answer depends on it.

        def approve(claims: Collection[str]) -> None:
            with suppress(MindError, OSError):  # They are noted again with the next change.
                self.trust.approve(claims)

        index.approvals.checker, index.approve = approvals, approve
        index.encoder = lambda: self.encoder
        return index

    def handle(self, id: str, reader_of: Callable[[Index], Reader] = lambda index: index) -> Handle:
        """Returns the name of a memory in people's output.

        Only an index that is open already is asked for it, by `reader_of`. The abbreviation of one
        of the user's memory fits none of the project, where it is looked up first.
        """
        from mimo.index.names import Handle

        index: Index | None = self._parts.get("index")
        users = self._others.get(projects.user_root(self.home))
        with suppress(MindError, OSError):
            if index and (handle := reader_of(index).handle(id)):
                return handle
            index = users._parts.get("index") if users else None
            if index and (handle := reader_of(index).handle(id)):
                return handle if self.is_outside else reader_of(self.index).apart(handle, id)
        return Handle(handle_of(id), 0)

    def use_index(self, index: Index, *, notice: str | None) -> None:
        """Uses an index in memory, for some minutes; `notice` states the reason."""
        self._parts["index"] = self.trusting(index)
        self._parts["index_replaced"] = self.timer.monotonic()
        self.note("index", notice)
