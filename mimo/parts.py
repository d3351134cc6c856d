"""What an opened memory is made of: each part is opened when first needed, and then shared."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

from mimo.config import Config
from mimo.errors import Invalid, MindError
from mimo.store import place
from mimo.store.projects import Project

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
    from mimo.store.watch import Watch


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
        from mimo.store.watch import Watch

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
            place.index_owner(self.home, self.randomness),
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
            return Values(self.project.root, place.index_owner(self.home, self.randomness))

        return cast("Values", self._once("values", make))

    @property
    def guard(self) -> "Guard":
        """What stands before every call; outside a project it holds what holds by default."""
        from mimo.guard.guard import Guard
        from mimo.guard.session import Session
        from mimo.store.audit import AuditLog

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
        return place.index_folder(self.project.root, self.home)

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
            owner = place.index_owner(self.home, self.randomness)
            index = Index.open(self.index_folder, self.embedder, owner)
            index.turn = lambda: holding(self.index_folder / "building")
            return self.trusting(index)

        return cast("Index", self._once("index", make))
