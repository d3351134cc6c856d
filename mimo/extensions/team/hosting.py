"""The projects behind an HTTP server: each with its own memory, application and sessions.

A session belongs to the project that its first request named. At any other project its id is
unknown, so no session reaches two memories.
"""

import gc
import logging
import os
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import NotificationParams
from starlette.types import Receive, Scope, Send

from mimo.api import (
    GRACE_SECONDS,
    PERSON,
    Answers,
    App,
    Call,
    Cancelled,
    Command,
    Conflict,
    Console,
    Context,
    Hint,
    Invalid,
    Mind,
    MindError,
    NoProject,
    Permissions,
    Registered,
    disk,
    files,
    listening,
    projects,
    roots,
    session_id,
)
from mimo.extensions.team import logs, sharing
from mimo.extensions.team.publishing import Repository
from mimo.extensions.team.tokens import Member

log = logging.getLogger("mind.http")

IDLE_SECONDS = 30 * 60.0
"""The time without requests after which a session ends, and a project's memory is closed."""

MOST_SESSIONS = 256
"""The number of sessions of a project that may be open at once."""

MOST_PROJECTS = 64
"""The number of projects that stay open at once; each takes some megabytes and ten open files."""

EXCHANGE_SECONDS = 5.0
"""The time between two looks for commits of others in a bare repository."""

SHARE_SECONDS = 10.0
"""The time between two looks for commits that the shared index lacks."""

INDEX = "index"
"""The name of the shared index among the parts of a server."""

_TOGETHER = 8
"""The number of closed projects whose memory is freed at once.

The parts of a project refer to each other, 1 MB in all. Finding them takes some 50 ms.
"""

BORROWED = "mind.borrowed"
"""The key of the projects that a request works on, besides its own, in the scope of the request."""

MOST_NAMED = 10
"""The number of projects that an error names."""

WAY = "name a registered project in the URL (/mcp/NAME) or in the header X-Mind-Project"

MakeApp = Callable[[listening.Memory, type[App]], App]


class Hosted:
    """A project that is served."""

    def __init__(
        self,
        app: App,
        memory: listening.Memory,
        idle: float,
        listener: listening.Listener | None = None,
        repository: Repository | None = None,
    ) -> None:
        """Takes the parts; `listener` answers the user's commands meanwhile.

        Calls that write commit to the `repository`.
        """
        self.app, self.memory, self.listener = app, memory, listener
        self.repository = repository
        self.sessions = StreamableHTTPSessionManager(
            app.server(), session_idle_timeout=idle, max_sessions=MOST_SESSIONS
        )
        self.ended = anyio.Event()
        self.used = time.monotonic()
        self.requests = self.calls = 0
        """The open requests, and those of them that are no streams of notifications."""
        self.borrowed = 0
        """The number of times that open requests without a named project use this one."""

    def close(self) -> None:
        """Waits for cancelled calls, and closes the memory."""
        if self.listener:
            self.listener.close()
        self.app.finish()
        self.memory.close()


class Hosting:
    """The projects that are served, each opened with its first request."""

    def __init__(
        self,
        home: Path,
        make: MakeApp,
        answers: Answers | None = None,
        *,
        default: Path | None = None,
        idle: float = IDLE_SECONDS,
        is_team: bool = False,
        commits: bool = False,
        copies: Collection[Path] = (),
    ) -> None:
        """`default` is the project of requests that name none; `is_team` if requests have users.

        With `commits`, each writing call commits. Those in `copies`, working copies of the server,
        are pushed, too.
        """
        self._is_team, self._commits, self._copies = is_team, commits, frozenset(copies)
        self.home, self._make, self._answers, self._idle = home, make, answers, idle
        self._default = default
        self._hosted: dict[Path | None, Hosted] = {}
        self._closed = 0
        self._opening = anyio.Lock()
        self._tasks: TaskGroup
        self.is_ending = False

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serves projects meanwhile; at the end, closes them."""
        async with anyio.create_task_group() as self._tasks:
            retiring = anyio.CancelScope()
            self._tasks.start_soon(self._retire, retiring)
            try:
                yield
            finally:
                retiring.cancel()
                for hosted in self._hosted.values():
                    hosted.ended.set()

    async def finish_calls(self) -> None:
        """Waits until running calls are answered, for a limited time; new ones are refused."""
        self.is_ending = True
        for hosted in self._hosted.values():
            hosted.app.subscriptions.close()
        with anyio.move_on_after(GRACE_SECONDS):
            while any(hosted.calls for hosted in self._hosted.values()):
                await anyio.sleep(0.05)

    async def serve(self, root: Path | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request for a project, or for none."""
        hosted = await self._at(root)
        is_call = scope["method"] != "GET"
        if not is_call:
            # No stream is resumed: the SDK would look for an earlier one, and give no answer.
            headers = [header for header in scope["headers"] if header[0] != b"last-event-id"]
            scope = {**scope, "headers": headers}
        scope[BORROWED] = borrowed = list[Hosted]()
        hosted.requests += 1
        hosted.calls += is_call
        try:
            await hosted.sessions.handle_request(scope, receive, send)
        finally:
            hosted.calls -= is_call
            hosted.requests -= 1
            del scope[BORROWED]
            for each in borrowed:
                each.borrowed -= 1
            for each in (hosted, *borrowed):
                each.used = time.monotonic()

    def gauges(self) -> dict[str, tuple[str, int]]:
        """Returns the sizes of the server by the names of their metrics, with descriptions."""
        hosted = dict(self._hosted)  # Requests open and close projects meanwhile.
        opened = list(hosted.values())
        sessions = sum(len(getattr(each.sessions, "_server_instances", ())) for each in opened)
        repositories = [each.repository for each in opened if each.repository]
        with closing(Mind(home=self.home, project=None)) as mind:
            index = sharing.server_in(mind) and _answers(mind)
        return {
            "mind_projects_open": ("Projects whose memory is open", sum(map(bool, hosted))),
            "mind_sessions": ("Open sessions", sessions),
            "mind_requests_open": ("Requests in progress", sum(each.requests for each in opened)),
            "mind_repositories_behind": (
                "Open projects whose commits could not be exchanged",
                sum(each.is_behind for each in repositories),
            ),
            "mind_shared_index_behind": (
                "Open projects with commits that the shared index lacks",
                sum(_is_behind(each.memory) for root, each in hosted.items() if root),
            ),
            "mind_shared_index_up": ("Whether the shared index answers", int(bool(index))),
        }

    def unready(self) -> list[str]:
        """Returns the parts of the server that can't be used now: `projects`, `INDEX`."""
        parts = []
        with closing(Mind(home=self.home, project=None)) as mind:
            try:
                needed = {*self._copies, *([self._default] if self._default else [])}
                for root in needed:
                    projects.explicit(root, self.home)
                if projects.registered(self.home).problem:
                    parts.append("projects")
            except MindError:
                parts.append("projects")
            if not _answers(mind):
                parts.append(INDEX)
        return parts

    def is_open(self, root: Path) -> bool:
        """Returns whether the memory of a project is open."""
        return root in self._hosted

    async def memory(self, root: Path, scope: Scope) -> listening.Memory:
        """Returns the memory of a project, which stays open until the request has ended."""
        hosted = await self._at(root)
        if BORROWED in scope:  # The client still waits.
            hosted.borrowed += 1
            scope[BORROWED].append(hosted)
        hosted.used = time.monotonic()
        return hosted.memory

    async def _at(self, root: Path | None) -> Hosted:
        hosted = self._hosted.get(root)
        if hosted is None:
            async with self._opening:
                hosted = self._hosted.get(root)
                if hosted is None:
                    self._make_room()
                    hosted = self._opened(root)
                    await self._tasks.start(self._keep, root, hosted)
                    self._hosted[root] = hosted  # Not before it can serve other requests.
        return hosted

    def _opened(self, root: Path | None) -> Hosted:
        if root is None:
            memory = listening.Memory(self._outside)
            app = self._make(memory, Unnamed)
            if isinstance(app, Unnamed):
                app.hosting = self
            return Hosted(app, memory, self._idle)
        is_copy = root in self._copies
        has_commits = is_copy or self._commits
        repository = Repository(root, self.home, pushes=is_copy) if has_commits else None
        memory = listening.Memory(lambda: Mind.open(root, project=root), repository)
        listener = listening.Listener(self.home, memory, self._answers) if self._answers else None
        if listener:
            listener.start()
        return Hosted(self._make(memory, Named), memory, self._idle, listener, repository)

    def _outside(self) -> Mind:
        """Returns the memory of a session without a project: the user's for all projects."""
        way = WAY if self._is_team else f"{WAY}: {self._names()}"
        # The users of a team share this memory, and may not all know the names of its projects.
        return Mind(home=self.home, project=None, way_to_project=way)

    async def _keep(
        self, root: Path | None, hosted: Hosted, *, task_status: TaskStatus[None]
    ) -> None:
        """Keeps a project open until it has ended."""
        try:
            async with hosted.sessions.run(), anyio.create_task_group() as tasks:
                if hosted.repository and hosted.repository.pushes:
                    exchange = hosted.repository.exchange
                    await anyio.to_thread.run_sync(exchange)  # Before the first answer.
                    tasks.start_soon(
                        _now_and_then, EXCHANGE_SECONDS, exchange, hosted.repository.root.name
                    )
                if root is not None:
                    share = partial(_share, hosted)
                    tasks.start_soon(_now_and_then, SHARE_SECONDS, share, root.name)
                task_status.started()
                await hosted.ended.wait()
                tasks.cancel_scope.cancel()
        finally:
            hosted.app.subscriptions.close()
            if self._hosted.get(root) is hosted:
                del self._hosted[root]
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(hosted.close)
            self._closed += 1
            if self._closed % _TOGETHER == 0:
                gc.collect()

    async def _retire(self, scope: anyio.CancelScope) -> None:
        """Closes projects that were not used for long."""
        with scope:
            while True:
                await anyio.sleep(self._idle / 30)
                oldest = time.monotonic() - self._idle
                for root, hosted in self._unused():
                    if hosted.used < oldest:
                        self._end(root)

    def _make_room(self) -> None:
        """Closes the project that was used least recently if too many are open."""
        if len(self._hosted) >= MOST_PROJECTS and (unused := self._unused()):
            self._end(unused[0][0])

    def _unused(self) -> list[tuple[Path | None, Hosted]]:
        """Returns the projects that no client uses or follows, least recently used first."""

        def is_unused(hosted: Hosted) -> bool:
            apps = [each.app for each in self._hosted.values()]
            is_followed = any(app.subscriptions.follows(hosted.memory) for app in apps)
            return not (hosted.requests or hosted.borrowed or is_followed)

        unused = [item for item in self._hosted.items() if is_unused(item[1])]
        return sorted(unused, key=lambda item: item[1].used)

    def _end(self, root: Path | None) -> None:
        self._hosted.pop(root).ended.set()

    # The project that a request names.

    def named(self, names: tuple[str, ...], member: Member | None = None) -> Path | None:
        """Returns the root of the project that the URL and the header of a request name.

        If they name none, returns the only project of the user's token, or else the default. Raises
        `NoProject`, `Untrusted`, or `Invalid`. A project that is not permitted to the user is
        unknown.
        """
        if not names and member and len(member.projects) == 1:
            names = member.projects
        if not names:
            default = self._default
            return default if default and self.may_open(member, default) else None
        named = {self._root(name, member) for name in names}
        if len(named) > 1:
            raise Invalid("the URL and the header name different projects", hint=WAY)
        return named.pop()

    def may_open(self, permissions: Permissions | None, root: Path) -> bool:
        """Returns whether a request may work on a project."""
        registered = projects.registered(self.home).projects
        return permissions is None or permissions.may_open(root, registered)

    def _permitted(self, member: Member | None) -> list[Registered]:
        """Returns the registered projects that a request may work on."""
        registered = projects.registered(self.home).projects
        return [item for item in registered if not member or member.may_open(item.path, registered)]

    def _root(self, name: str, member: Member | None) -> Path:
        permitted = self._permitted(member)
        matches = [item.path for item in permitted if name in (item.name, str(item.path))]
        if len(matches) > 1:
            paths = ", ".join(f"`{path}`" for path in matches)
            raise Conflict(
                f"several projects are named `{name}`",
                hint=f"give the path in the header X-Mind-Project: {paths}",
            )
        if not matches:
            raise NoProject(
                f"no project named `{name}` is registered",
                hint=Hint("run ", Command("init"), f" in it, or {WAY}: {self._names(member)}"),
            )
        if matches[0] in self._copies:
            return matches[0]  # Its exchange may bring back what a commit of others has removed.
        # An open project was checked before, and is again when its settings change.
        if matches[0] in self._hosted and os.path.lexists(matches[0] / disk.STORE / files.CONFIG):
            return matches[0]
        return projects.explicit(matches[0], self.home).root

    def _names(self, member: Member | None = None) -> str:
        names = [f"`{item.name}`" for item in self._permitted(member)]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return ", ".join(names[:MOST_NAMED]) + more if names else "none is registered"

    def around(self, folder: Path) -> Path | None:
        """Returns the root of the registered project around a client's root, or None."""
        try:
            project = projects.find(folder, self.home)
        except (MindError, OSError, ValueError):
            return None
        registered = {item.path for item in projects.registered(self.home).projects}
        return project.root if project and project.root in registered else None


async def _now_and_then(seconds: float, work: Callable[[], object], name: str) -> None:
    """Does work of the project `name` after each pause; a failure is logged, since others go on."""
    problem = ""
    while True:
        await anyio.sleep(seconds)
        previous, problem = problem, ""
        try:
            await anyio.to_thread.run_sync(work)
        except Exception as error:  # noqa: BLE001 - it would end the server
            problem = type(error).__name__
            if isinstance(error, MindError):
                problem = f"{error.message}; {error.hint}"
            if problem != previous:
                log.warning("work of `%s` between the calls failed: %s", name, problem)


def _answers(mind: Mind) -> bool:
    """Returns whether the shared index answers, or none is set up."""
    try:
        if server := sharing.server_in(mind):
            with server.session() as sql:
                sql.execute("SELECT 1")
    except MindError:
        return False
    return True


def _share(hosted: Hosted) -> None:
    """Pushes new commits of a project to the shared index if it was pushed before."""
    console = Console(halted=hosted.ended.is_set)
    with suppress(Cancelled):
        sharing.push_if_behind(Call(hosted.memory.mind(), PERSON, console))


def _is_behind(memory: listening.Memory) -> bool:
    with suppress(MindError):
        return sharing.is_behind(Call(memory.mind()))
    return False


class _Session(roots.Roots):
    """The project among the roots of a session."""

    project: Path | None = None


class Named(App):
    """The server of the project that its requests name."""

    async def memory_of(self, ctx: Context) -> listening.Memory:
        """Returns the memory of the project."""
        logs.follow(ctx)
        return await super().memory_of(ctx)


class Unnamed(App):
    """Sessions whose requests name no project: the client's roots do, in the older protocol."""

    hosting: Hosting

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Nothing is known of any session yet."""
        super().__init__(*args, **settings)
        self._roots: OrderedDict[str, _Session] = OrderedDict()

    def server(self) -> Any:
        """Returns the protocol server, which hears of changed roots."""
        server = super().server()
        name = "notifications/roots/list_changed"
        server.add_notification_handler(name, NotificationParams, self._changed)
        return server

    async def memory_of(self, ctx: Context) -> listening.Memory:
        """Returns the memory of the first registered project among the client's roots.

        Without one, it is a memory outside of any project.
        """
        logs.follow(ctx)
        if (id := session_id(ctx)) is None:
            return self._memory
        session = self._roots.setdefault(id, _Session())
        if len(self._roots) > 2 * MOST_SESSIONS:
            self._roots.popitem(last=False)
        if roots.are_offered(ctx):
            await session.update(ctx, partial(self._take, ctx, session))
        root = session.project
        if root is None or not self.hosting.may_open(self.permissions_of(ctx), root):
            return self._memory
        return await self.hosting.memory(root, getattr(ctx.request, "scope", {}))

    def _take(self, ctx: Context, session: _Session, folders: list[Path] | None) -> None:
        permissions = self.permissions_of(ctx)
        around = map(self.hosting.around, folders or ())
        permitted = (root for root in around if root and self.hosting.may_open(permissions, root))
        session.project = next(permitted, None)

    async def _changed(self, ctx: Context, _: NotificationParams | None) -> None:
        if session := self._roots.get(session_id(ctx) or ""):
            session.expire()
