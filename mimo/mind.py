"""Mind: an opened memory, made once and passed down to everything that needs one."""

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

from mimo.config import Config, load
from mimo.errors import Cancelled, Invalid, MindError, NoProject, Untrusted
from mimo.store import projects
from mimo.store.files import failure
from mimo.store.projects import Project, Registered
from mimo.surroundings import Ask, Clock, Progress, Timer, stamp_of, system_clock
from mimo.surroundings import home_of as home_of

if TYPE_CHECKING:
    from mimo.guard.guard import Guard
    from mimo.index.embedding import Embedder
    from mimo.index.index import Index
    from mimo.store.accesses import Accesses
    from mimo.store.events import EventLog
    from mimo.store.memories import MemoryStore
    from mimo.store.trash import Trash
    from mimo.store.trust import Trust
    from mimo.store.values import Values
    from mimo.store.walk import Watch


# What an opened memory is made of: each part is opened when first needed, and then shared.


class Parts(ABC):
    """The parts of one memory. What they are opened with is known to the memory itself."""

    home: Path
    randomness: Callable[[int], bytes]
    environ: Mapping[str, str]
    _project: Project | None
    _parts: dict[str, Any]
    _making: RLock

    @property
    @abstractmethod
    def has_project(self) -> bool:
        """Returns whether there is a project to work on."""

    @property
    @abstractmethod
    def project(self) -> Project:
        """Returns the project."""

    @property
    @abstractmethod
    def config(self) -> Config:
        """The settings in force."""

    @abstractmethod
    def now(self) -> datetime:
        """Returns the time of day, UTC."""

    @abstractmethod
    def note(self, about: str, notice: str | None) -> None:
        """Keeps what people must know about one thing."""

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        """Returns a part that is made when first needed and shared by every view."""
        with self._making:
            if name not in self._parts:
                self._parts[name] = make()
            return self._parts[name]

    @property
    def store(self) -> "MemoryStore":
        """The project's files."""
        from mimo.store.memories import MemoryStore

        def make() -> MemoryStore:
            named = self.config
            return MemoryStore(
                self.project.root,
                include=named["include"],
                comments=named["comments"],
                commits=named["commits"],
            )

        return cast("MemoryStore", self._once("store", make))

    def watch(self) -> None:
        """Lets the system tell of changes, which spares a long-lived process most looks."""
        from mimo.store.walk import Watch

        folders = self.store.folders()
        if folders and "watch" not in self._parts:
            self._parts["watch"] = Watch(folders)

    @property
    def watched(self) -> "Watch | None":
        """What tells of changes, where somebody asked for that."""
        return cast("Watch | None", self._parts.get("watch"))

    @property
    def trust(self) -> "Trust":
        """What somebody here has approved of the project's files."""
        from mimo.store.trust import opened

        def make() -> "Trust":
            named = self.config
            return opened(
                self.home,
                self.project.root,
                named["trust.only"],
                include=named["include"],
                comments=named["comments"],
            )

        return cast("Trust", self._once("trust", make))

    @property
    def trash(self) -> "Trash":
        """The text that commands removed or replaced."""
        from mimo.store.trash import Trash

        return Trash(
            self.project.root,
            projects.index_owner(self.home, self.randomness),
            most_bytes=self.config["trash.megabytes"] * 1_000_000,
            most_days=self.config["trash.days"],
            now=self.now,
        )

    @property
    def accesses(self) -> "Accesses":
        """How the memories were used on this machine."""
        from mimo.store.accesses import Accesses

        return cast("Accesses", self._once("accesses", lambda: Accesses(self.project.root)))

    @property
    def events(self) -> "EventLog":
        """The log of what happened in this project."""
        from mimo.store.events import EventLog

        return cast("EventLog", self._once("events", lambda: EventLog(self.project.root)))

    def tell(self, name: str, measurements: Mapping[str, float], /, **metadata: object) -> None:
        """Adds an event such as `mimo.ingest.file` to the log; what can't be written is dropped."""
        from mimo.store.events import Event

        event = Event(name=name, time=self.now(), measurements=measurements, metadata=metadata)
        with suppress(MindError, OSError):
            self.events.write(event)

    @property
    def values(self) -> "Values":
        """The values under keys."""
        from mimo.store.values import Values

        def make() -> Values:
            return Values(self.project.root, projects.index_owner(self.home, self.randomness))

        return cast("Values", self._once("values", make))

    @property
    def guard(self) -> "Guard":
        """What stands before every call; outside a project it holds what holds by default."""
        from mimo.guard.audit import AuditLog
        from mimo.guard.call import Session
        from mimo.guard.guard import Guard

        def trusted(digest: str) -> bool:
            return self.trust.trusted(digest)

        def make() -> Guard:
            root = self._project.root if self._project else None
            session = self._parts.get("session") or Session(self.environ, started=self.now())
            log = AuditLog(self.home, root, self.randomness)
            return Guard(root=root, trusted=trusted, session=session, log=log)

        return cast("Guard", self._once("guard", make))

    @property
    def embedder(self) -> "Embedder | None":
        """What turns text into vectors; None where the user's own model can't be used."""
        return cast("Embedder | None", self._once("embedder", self._open_embedder))

    def _open_embedder(self) -> "Embedder | None":
        from mimo.index.embedding import open_embedder

        try:
            return open_embedder(self.config["embedding.model"] or None)
        except Invalid as error:
            self.note("embedding", f"found by words only: {error.message}")
            return None

    @property
    def index_folder(self) -> Path:
        """Where the index is kept: `.mind/.index`, or the user's cache where that can't be used."""
        return projects.index_folder(self.project.root, self.home)

    def trusting(self, index: "Index") -> "Index":
        """Returns an index that knows what is approved here."""

        def approvals() -> Callable[[str], bool]:
            return self.trust.checker()  # Opened where the first answer depends on it.

        index.approvals = approvals
        return index

    @property
    def index(self) -> "Index":
        """The index over the project's files; made where it is missing or damaged."""
        from mimo.index.index import Index
        from mimo.store.locking import holding

        def make() -> Index:
            owner = projects.index_owner(self.home, self.randomness)
            index = Index.open(self.index_folder, self.embedder, owner)
            index.turn = lambda: holding(self.index_folder / "building")
            return self.trusting(index)

        return cast("Index", self._once("index", make))


def no_working_directory() -> NoProject:
    """Returns the error of a relative path, or none at all, in a folder that was deleted."""
    return NoProject(
        "the working directory no longer exists",
        hint="change to another one, or name a project by its absolute path with --project",
    )


class Mind(Parts):
    """An opened memory: where it is, its settings, its clock, its files and its index."""

    def __init__(
        self,
        *,
        home: Path,
        project: Project | None,
        clock: Clock = system_clock,
        randomness: Callable[[int], bytes] = os.urandom,
        environ: Mapping[str, str] | None = None,
        timer: Timer | None = None,
    ) -> None:
        """Nothing is opened or read before it is needed."""
        self.home, self._project = home, project
        self._missing: MindError | None = None
        self._refused: MindError | None = None
        self.clock = clock
        self.randomness = randomness
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.author: str | None = None
        """The program that signs what is written; None for a person."""
        self.agent: str | None = None
        """The program that asks, in its shell too; None for a person."""
        self.allows_secrets = False
        self.progress: Progress | None = None
        """Told of long work; set by a surface that can show it."""
        self.halted: Callable[[], bool] | None = None
        """Tells long work whether its caller has given up; set by a surface that knows."""
        self.ask: Ask | None = None
        """Asks the person at the terminal; set by a surface that has one."""
        self.partial: Callable[[object], None] | None = None
        """Shows a part of an answer that has no end; set by a surface that can."""
        self.timer = timer or Timer()
        self._parts: dict[str, Any] = {}
        self._making = RLock()
        self._notices: dict[str, str | None] = {}
        self._others: dict[Path, Mind] = {}

    def _view(self, *, parts: dict[str, Any], project: Project | None = None) -> "Mind":
        """Returns a copy that has the given parts, and perhaps another project."""
        view = copy.copy(self)
        if parts is not self._parts:
            view._notices, view._others = {}, {}  # noqa: SLF001 - of our own class
        view._parts, view._project = parts, project or self._project  # noqa: SLF001 - as above
        return view

    @classmethod
    def open(
        cls,
        start: Path | None,
        *,
        project: Path | None = None,
        environ: Mapping[str, str] | None = None,
        clock: Clock = system_clock,
    ) -> "Mind":
        """Returns the memory of the project that `start` lies in, or of the one that is named.

        A project is named by `project`, or else by `MIND_PROJECT`; without `start` only these
        count. A project that is missing or refused is an error once something asks for it.
        """
        environ = os.environ if environ is None else environ
        named = project or (Path(environ["MIND_PROJECT"]) if environ.get("MIND_PROJECT") else None)
        mind = cls(home=home_of(environ), project=None, clock=clock, environ=environ)
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
        except NoProject as error:
            mind._missing = error
        except Untrusted as error:
            # One that was merely met on the way up stops nothing that needs no project.
            mind._missing, mind._refused = (error, None) if named else (None, error)
        return mind

    def acting_as(self, author: str | None) -> "Mind":
        """Returns the same memory for one call, signed by `author`."""
        view = self._view(parts=self._parts)
        view.author = author
        return view

    def heard(self, progress: Progress | None, halted: Callable[[], bool] | None) -> "Mind":
        """Returns the same memory, with long work told to one caller and stopped by it."""
        view = self._view(parts=self._parts)
        view.progress, view.halted = progress, halted
        return view

    def heed(self) -> None:
        """Raises `Cancelled` if the caller has given up; called where stopping leaves all whole."""
        if self.halted and self.halted():
            raise Cancelled("the caller gave up")

    def advance(self, what: str, done: int, total: int) -> None:
        """Reports how far long work is. Raises `Cancelled` if the caller has given up."""
        self.heed()
        if self.progress:
            self.progress(what, done, total)

    def at(self, known: Registered) -> "Mind | None":
        """Returns the memory of a registered project, or None where it is gone.

        It has this one's home, clock and embedder, and is kept open for the next question.
        """
        if self._project and known.path == self._project.root:
            return self
        try:
            project = projects.find(known.path, self.home)
        except (MindError, OSError, ValueError):
            return None
        if project is None or project.root != known.path:
            return None

        def parts() -> dict[str, Any]:
            return {"embedder": self.embedder, "session": self.guard.session.elsewhere()}

        return self.beside(known.path, parts, project)

    def beside(
        self, key: Path, parts: Callable[[], dict[str, Any]], project: Project | None = None
    ) -> "Mind":
        """Returns a memory made of other parts, which is kept open under `key`."""
        with self._making:
            other = self._others.get(key)
            if other is None or other.is_outdated:
                other = self._others[key] = self._view(parts=parts(), project=project)
            view = other._view(parts=other._parts)  # noqa: SLF001 - of our own class
            view.author, view.agent = self.author, self.agent
            view.halted = self.halted
            return view

    def reopened(self) -> "Mind":
        """Returns the same memory with its settings, files and index read anew."""
        return self._view(parts={})

    def now(self) -> datetime:
        """Returns the time of day, UTC."""
        return self.clock()

    def check(self) -> None:
        """Raises `Untrusted` if another user owns $MIND_HOME, or the project that was named."""
        if isinstance(self._missing, Untrusted):
            raise self._missing

    def outside(self) -> "Mind":
        """Returns the same memory as it is seen from outside of any project."""
        view = self._view(parts={})
        view._project = view._missing = None  # noqa: SLF001 - of our own class
        return view

    @property
    def has_project(self) -> bool:
        """Returns whether there is a project to work on.

        Raises `NoProject` or `Untrusted` if the user named one that can't be used.
        """
        if self._missing:
            raise self._missing
        return self._project is not None

    @property
    def project(self) -> Project:
        """Returns the project; raises `NoProject` or `Untrusted` if there is none to use."""
        if self._missing:
            raise self._missing
        if self._project is None:
            raise self._refused or NoProject(
                "there is no project here",
                hint="run `mind init` in the project first, or name one with --project DIR "
                "or MIND_PROJECT",
            )
        return self._project

    @property
    def folder(self) -> Path:
        """Returns the project's `.mind/`."""
        return self.project.root / ".mind"

    @property
    def config(self) -> Config:
        """The settings in force."""
        self._once("settings", self._settings_stamps)
        user, of_project = self._settings_files()
        made = self._once("config", lambda: load(user=user, project=of_project))
        return cast("Config", made)

    @property
    def is_outdated(self) -> bool:
        """Whether the settings were changed, or the project went, after they were read."""
        read = self._parts.get("settings")
        gone = self._project is not None and not self._project.store.is_dir()
        return gone or (read is not None and read != self._settings_stamps())

    def _settings_files(self) -> tuple[Path, Path | None]:
        of_project = self._project.store / "config.toml" if self._project else None
        return self.home / "config.toml", of_project

    def _settings_stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(stamp_of(path) for path in self._settings_files())

    def close(self) -> None:
        """Closes what is open: an index that is not closed keeps its journal."""
        while self._others:
            self._others.popitem()[1].close()
        if accesses := self._parts.pop("accesses", None):
            with suppress(MindError, OSError):
                accesses.flush()
        for part in ("index", "guard", "values"):
            if opened := self._parts.pop(part, None):
                opened.close()
        if watched := self._parts.pop("watch", None):
            watched.close()

    def use_index(self, index: "Index", *, notice: str) -> None:
        """Puts another index in the place of one that can't be used; `notice` says why."""
        self._parts["index"] = self.trusting(index)
        self.note("index", notice)

    def note(self, about: str, notice: str | None) -> None:
        """Keeps what people must know about one thing; None where all is well again."""
        self._notices[about] = notice

    def noted(self, about: str) -> str | None:
        """Returns what people must know about one thing, or None."""
        return self._notices.get(about)

    @property
    def notice(self) -> str | None:
        """What people must know about answers, or None."""
        return "; ".join(told for told in self._notices.values() if told) or None
