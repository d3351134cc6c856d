"""The scene of a hook: its project, the approvals and settings there, its log and its sessions.

`$MIND_HOME/logs/hook.log` has one line for each action and stays small. `.mind/.local/sessions/`
has one JSON file for each session of a client, so that the hooks of a session repeat nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from mimo.data import append_log, disk, files
from mimo.data.files import CONFIG, POLICY, SESSIONS, SETTINGS
from mimo.data.locks import lock
from mimo.data.state import StateFile
from mimo.errors import MindError
from mimo.features.hooks.events import Event, Moment
from mimo.frozen import NamedTuple, replace
from mimo.index.catalog import Catalog, open_catalog
from mimo.project import projects
from mimo.project.trust import Trust
from mimo.text.clean import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mimo.guard.guard import Guard
    from mimo.guard.policy import Request

MAX_LOG_BYTES = 256 * 1024
_MAX_LINE = 400

MAX_MARKS = 500
"""Newest marks that a session keeps of each kind."""
MAX_SESSIONS = 50
_MAX_MESSAGE = 8_000
_MAX_SESSION_BYTES = 200_000
_OLD_SECONDS = 7 * 24 * 3600
_WAIT_SECONDS = 0.3
_MAX_SETTINGS = 64 * 1024
MAX_FILE_BYTES = 256 * 1024
_FEW = 400
"""Up to this number, approved texts are looked up, and others are not read."""

_SETTINGS = (b"hook", b"context", b"trust", b"sessions")
"""Words of every settings line, or of its table, that concerns a hook."""

CALLS = {
    Moment.START: ("hook/start", "mind_context"),
    Moment.PROMPT: ("hook/prompt", "mind_search"),
    Moment.TOOL: ("hook/edit", "mind_edges_check"),
    Moment.STOPPED: ("hook/stop", "mind_list"),
    Moment.COMPACTED: ("hook/summary", "mind_add"),
    Moment.ENDED: ("hook/summary", "mind_add"),
}
"""The name of each moment in a policy and in the audit log, and a tool whose rules apply, too."""


def log_path(home: Path) -> Path:
    """Returns the path of the log."""
    return home / "logs" / "hook.log"


def log_line(home: Path, now: datetime, text: str) -> None:
    """Adds one line to the log; a failure to write it is ignored."""
    from mimo.text.calendar import iso_utc

    path = log_path(home)
    line = " ".join(clean(text).split())[:_MAX_LINE]
    with suppress(OSError, MindError):
        stamp = iso_utc(now, "seconds")
        append_log.append(path, f"{stamp} {line}\n".encode("utf-8", "replace"), durable=False)
        if path.stat().st_size > MAX_LOG_BYTES:
            end = disk.read(path)[-MAX_LOG_BYTES // 2 :]
            files.replace(path, end[end.find(b"\n") + 1 :], mode=0o600)


CLONE = "\0clone"
"""The name of the session that remembers the notices about the clone itself."""

MAX_COUNT = 9
"""Highest number that a session counts to: more would write its file without any use."""


class Work(NamedTuple):
    """The work in a session, counted only while the setting `hook.capture` is on."""

    prompts: int = 0
    edits: int = 0
    began: str = ""
    """The time of its first event, in ISO 8601."""
    turn: str = ""
    """The time of the last prompt."""
    asked: bool = False
    """True once the agent was asked to record what the session leaves."""


class Session(NamedTuple):
    """The state of one session of a client."""

    shown: tuple[str, ...] = ()
    """Marks of the notes that the agent has seen."""
    warned: tuple[str, ...] = ()
    """Ids of the edges that were reported."""
    last: str = ""
    """The agent's last message."""
    memory: str = ""
    """The id of the memory that holds the session's summary."""
    work: Work = Work()

    def and_shown(self, marks: Iterable[str]) -> Session:
        """Returns the session with more notes that the agent has seen."""
        return self._replace(shown=tuple(dict.fromkeys((*self.shown, *marks)))[-MAX_MARKS:])

    def and_warned(self, ids: Iterable[str]) -> Session:
        """Returns the session with more edges that were reported."""
        return self._replace(warned=tuple(dict.fromkeys((*self.warned, *ids)))[-MAX_MARKS:])


class Allowed(NamedTuple):
    """The settings of hooks."""

    context: bool = True
    edges: bool = True
    summaries: bool = True
    capture: bool = False
    sessions: bool = False
    naming: str = "underscore"
    """The spelling of tool names."""
    budget: int = 6_000
    warnings: tuple[str, ...] = ()
    """The problems of the settings files, which may quote them."""


class Scene:
    """An event and the project that it happened in."""

    def __init__(
        self,
        event: Event,
        *,
        home: Path,
        root: Path,
        now: datetime,
        environ: Mapping[str, str],
        is_outside: bool = False,
        source: str = "",
        user: str | None = None,
        worktree: Path | None = None,
    ) -> None:
        """Takes the event and the project; reads the settings.

        Outside of any project, `root` is that of the user's memory for all projects. `source` names
        a project that is around another repository, in which nothing is saved unasked. `user` is
        that of a server, who has neither its files nor its memory for all projects. In a linked
        `worktree`, the client reads the files there.
        """
        self.event = event
        self.home = home
        self.root = root
        self.now = now
        self.environ = environ
        self.is_outside = is_outside
        self.source = source
        self.user = user
        self.files_root = worktree or root
        # A hook does not run git: the answers that other commands got from it are used.
        self.trust = Trust(home, root)
        latest = self.trust.latest()
        self.allowed = _allowed(home, root, self.trust, latest[SETTINGS] or b"")
        self._latest_policy = latest[POLICY]
        self.refusal: MindError | None = None
        """The reason why the policy or a limit does not permit this moment; None if it does."""
        self._started = time.monotonic()
        self._guard: Guard | None = None
        self._is_counted = False

    def log(self, text: str) -> None:
        """Adds a line to the log."""
        log_line(self.home, self.now, f"{self.event.dialect} {self.event.name}: {text}")

    # The policy and the audit log.

    def permits(self) -> bool:
        """Returns whether the policy permits this moment; the first time, it is counted.

        A refused one is recorded. Without a policy file, everything is permitted.
        """
        if self._has_policy() and not self._is_counted:
            self._is_counted = True
            request = self.request()
            try:
                self.guard.authorise(request)
                self.guard.limit(request)
            except MindError as error:
                self.refuse(request, error)
        return self.refusal is None

    def allows(self, tool: str, *, writes: bool = False) -> bool:
        """Returns whether the policy permits a tool; nothing is counted or recorded."""
        if self._has_policy():
            try:
                self.guard.authorise(replace(self.request(writes=writes), tool=tool, like=None))
            except MindError:
                return False
        return True

    def request(self, like: str = "", *, writes: bool = False) -> Request:
        """Returns this moment as the guard judges it, also by the rules of the tool `like`."""
        from mimo.guard.policy import Operation, Request

        tool, default = CALLS[self.event.moment]
        return Request(
            tool=tool,
            like=like or default,
            operation=Operation.WRITE if writes else Operation.READ,
            agent=self.event.dialect.value,
            user=self.user or None,
            at=self.now,
        )

    def refuse(self, request: Request, error: MindError) -> None:
        """Records and logs that a call was refused."""
        from mimo.guard.audit import ended_by
        from mimo.guard.privacy import for_log

        self.refusal = error
        self.guard.record(request, ended_by(error))
        self.log(f"denied: {for_log(f'{error.message}; {error.hint}')}")

    def record(self) -> None:
        """Adds this moment, which gave the agent memory, to the audit log."""
        from mimo.guard.audit import Ending

        ending = Ending(seconds=time.monotonic() - self._started)
        self.guard.record(self.request(), ending)

    @property
    def guard(self) -> Guard:
        """The checks of every call; outside of any project, the default policy applies."""
        if self._guard is None:
            from mimo.guard.audit import AuditLog
            from mimo.guard.audit import Session as Calls
            from mimo.guard.guard import Guard

            root = None if self.is_outside else self.root
            self._guard = Guard(
                root=root,
                trusted=self.trust.trusted,
                latest=lambda: self._latest_policy,
                owner=partial(projects.index_owner, self.home, os.urandom),
                session=Calls(self.environ, started=self.now),
                log=AuditLog(self.home, root, os.urandom),
            )
        return self._guard

    def _has_policy(self) -> bool:
        """Returns whether there is a policy file or an approved text of it; most have neither."""
        try:
            os.lstat(f"{self.root}/.mind/policy.yaml")
        except FileNotFoundError:
            return not self.is_outside and self._latest_policy is not None
        except OSError:
            pass
        return not self.is_outside

    # The memory.

    @contextmanager
    def index(self) -> Iterator[Catalog | None]:
        """Opens the index for reading; None if the user has no index of this project yet."""
        owner = projects.known_owner(self.home)
        if owner is None or self.is_outside:
            yield None
            return
        folder = projects.index_folder(self.root, self.home)
        trust = self.trust
        allowed = trust.trusted_digests(_FEW)
        year = self.now.year
        with open_catalog(folder, owner, trust.checker(), self.root, allowed, year=year) as catalog:
            yield catalog

    def of_user(self, read: Callable[[Catalog], list[Any]]) -> list[Any]:
        """Returns what `read` returns for the index of the user's memory for all projects.

        Returns nothing if there is none, or if it fails, so that the project's notes are given.
        """
        project = None if self.user is not None else projects.of_user(self.home)
        owner = projects.known_owner(self.home) if project else None
        if project is None or owner is None:
            return []
        folder = projects.index_folder(project.root, self.home)
        try:
            trust = Trust(self.home, project.root)
            allowed = trust.trusted_digests(_FEW)
            year = self.now.year
            with open_catalog(
                folder, owner, trust.checker(), project.root, allowed, year=year
            ) as catalog:
                return read(catalog) if catalog else []
        except MindError as error:
            from mimo.guard.privacy import for_log

            self.log(f"no notes for all projects: {for_log(error.message)}")
            return []

    def locked_sessions(self) -> AbstractContextManager[None]:
        """Makes other hooks of the project wait. Raises `StorageFailed`."""
        return lock(files.safe_path(self.root, f"{SESSIONS}/lock"), wait=_WAIT_SECONDS)

    def load_session(self, name: str) -> Session:
        """Returns the state of a session; an empty one if there is no file that can be read.

        Raises `StorageFailed` if the user's secret can be neither read nor made.
        """
        return _SESSIONS.read(self.root, self._session_file(name)) or Session()

    def save_session(self, name: str, session: Session) -> None:
        """Writes the state of a session. Raises `StorageFailed`."""
        fields = session._replace(last=session.last[-_MAX_MESSAGE:])._asdict()
        if session.work == Work():
            del fields["work"]
        else:
            fields["work"] = session.work._asdict()
        _SESSIONS.write(self.root, self._session_file(name), fields)

    def remove_old_sessions(self) -> None:
        """Removes sessions that are a week old, and all but `CLONE` and the newest ones."""
        with suppress(MindError):
            clone_name = self._session_file(CLONE).rpartition("/")[2]
            remove_old(files.safe_path(self.root, SESSIONS), MAX_SESSIONS, ".json", clone_name)

    def _session_file(self, name: str) -> str:
        """Returns the path of a session's file, which the author of a clone can't guess."""
        key = f"{name}\n{projects.index_owner(self.home, os.urandom)}"
        digest = disk.sha256(key.encode("utf-8", "replace")).hex()
        return f"{SESSIONS}/{digest[:24]}.json"


def text_of_file(root: Path, path: str) -> str:
    """Returns the text of a file that a tool writes; empty if it is new."""
    with suppress(OSError, ValueError, MindError):
        return disk.look(root / path, limit=MAX_FILE_BYTES)[0].decode("utf-8", "replace")
    return ""


def remove_old(folder: Path, limit: int = 1_000, ending: str = "", kept_name: str = "") -> None:
    """Removes files that are a week old, and all but `kept_name` and the newest `limit`."""
    with suppress(OSError, MindError):
        with os.scandir(folder) as entries:
            times = [
                (entry.stat(follow_symlinks=False).st_mtime, entry.path)
                for entry in entries
                if entry.name.endswith(ending) and entry.name != kept_name
            ]
        oldest = time.time() - _OLD_SECONDS
        for position, (modified, path) in enumerate(sorted(times, reverse=True)):
            if position >= limit or modified < oldest:
                files.remove(Path(path))


def _session(fields: Any) -> Session:
    """Returns the session in a file's data. Raises `ValueError` and the like for other data."""
    work = Work(**fields.pop("work", {}))
    marks, warned = (tuple(fields.pop(name)) for name in ("shown", "warned"))
    session = Session(shown=marks, warned=warned, work=work, **fields)
    texts = (*marks, *warned, session.last, session.memory)
    kinds = [type(value) for value in work] == [type(value) for value in Work()]
    times = (work.began, work.turn or work.began) if work != Work() else ()
    are_aware = all(datetime.fromisoformat(at).tzinfo for at in times)
    if not (kinds and are_aware and all(isinstance(text, str) for text in texts)):
        raise ValueError(fields)
    return session


_SESSIONS = StateFile(_session, limit=_MAX_SESSION_BYTES)


def of_event(
    event: Event, *, home: Path, now: datetime, environ: Mapping[str, str]
) -> Scene | None:
    """Returns the scene of an event.

    Outside of any project, there is one if the user's memory for all projects may be given; else
    it is None.
    """
    projects.check_home(home)
    start = Path(event.folder or environ.get("CLAUDE_PROJECT_DIR") or ".")
    if named := environ.get("MIND_PROJECT"):
        project: projects.Project | None = projects.explicit(Path(named), home)
    else:
        project = projects.find(start, home) if os.path.isdir(start) else None  # noqa: PTH112
    is_outside = project is None
    if is_outside and event.moment in (Moment.START, Moment.PROMPT):
        project = projects.of_user(home)
    if project is None:
        return None
    source = projects.source_of(project) if project.inner else ""
    return Scene(
        event,
        home=home,
        root=project.root,
        now=now,
        environ=environ,
        is_outside=is_outside,
        source=source,
        worktree=project.worktree,
    )


def _allowed(home: Path, root: Path, trust: Trust, latest: bytes) -> Allowed:
    """Returns the settings; files are parsed only if one of their lines may concern hooks.

    The project's file counts as far as its text is approved; `latest` is the last approved one.
    """
    texts: tuple[Path | bytes, ...] = (home / CONFIG, root / SETTINGS, latest)
    if not any(map(_concerns_hooks, texts)):
        return Allowed()
    config = trust.settings()
    return Allowed(
        context=config["hook.context"] == "on",
        edges=config["hook.edges"] == "on",
        summaries=config["hook.summaries"] == "on",
        capture=config["hook.capture"] == "on",
        sessions=config["sessions.enabled"] == "on",
        naming=config["mcp.tool_names"],
        budget=config["context.budget"],
        warnings=config.warnings,
    )


def _concerns_hooks(file: Path | bytes) -> bool:
    """Returns whether a settings file has a line, other than a comment, that may concern hooks.

    A link, a large file, and one that can't be read may. The file may be given as its text.
    """
    try:
        data = file if isinstance(file, bytes) else disk.look(file, limit=_MAX_SETTINGS)[0]
    except FileNotFoundError:
        return False
    except OSError:
        return True
    settings = [line for line in data.splitlines() if not line.lstrip().startswith(b"#")]
    is_cut = len(data) > _MAX_SETTINGS
    return is_cut or any(word in line for line in settings for word in _SETTINGS)
