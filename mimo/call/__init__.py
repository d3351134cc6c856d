"""Call: one call of a command, passed down to everything that the command calls.

A surface makes it of the opened project, the caller, and what the surface itself can do. Two calls
share the project and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, Protocol

from mimo.errors import Cancelled, Denied, MindError, join_texts
from mimo.frozen import frozen

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from mimo.call.spec import Spec
    from mimo.guard.audit import Session
    from mimo.index.index import Index, Reader, Snapshot
    from mimo.memory.model import Record
    from mimo.mind import Mind
    from mimo.project.projects import Registered, Registry
    from mimo.surroundings import Ask, Progress


class Surface(Flag):
    """The surfaces that offer a command or a parameter."""

    CLI = auto()
    MCP = auto()
    BOTH = CLI | MCP


class Permissions(Protocol):
    """The rights of one of several users of a server, which an extension states."""

    @property
    def name(self) -> str:
        """The name of the user, which records of calls contain."""

    @property
    def author(self) -> str:
        """The author of the user's commits, as git names one."""

    @property
    def reference(self) -> str | None:
        """The place from which another process reads the rights again; None if it can't."""

    def refusal(self, spec: Spec) -> Denied | None:
        """Returns the error for a command that the user may not call; None for any other."""

    def may_open(self, root: Path, registered: Iterable[Registered]) -> bool:
        """Returns whether the user may use a project, by its folder and all registered ones."""

    def is_current(self, now: datetime) -> bool:
        """Returns whether the user still has these rights. May raise `MindError`."""


@frozen
class Caller:
    """The program or the user behind a call."""

    surface: Surface
    name: str | None = None
    """The calling program, such as `claude-code`; its memories are signed with it."""
    agent: str | None = None
    """The agent that runs the command line in its shell; policies apply to it as to any other."""
    permissions: Permissions | None = None
    """The rights of one of several users of a server; None if everything is permitted."""
    allows_secrets: bool = False
    """True if the user asked to store a text that looks like a secret."""
    counts_uses: bool = True
    """False for a caller that passes by memories: its answers do not keep them from fading."""
    sees_sessions: bool = True
    """False for clients over HTTP, and for procedures: the user's earlier sessions are not sent."""
    session: Session | None = None
    """The session of one of several clients of a server; None for that of the process."""

    @property
    def author(self) -> str | None:
        """The program that signs changes: None for the user, `mcp` for an unnamed client."""
        return self.name or ("mcp" if self.surface is Surface.MCP else None)

    @property
    def actor(self) -> str | None:
        """The agent that makes the call; None for the user."""
        return self.author or self.agent


PERSON = Caller(surface=Surface.CLI)
"""A user at the command line."""

Answers = Callable[["Call", Mapping[str, Any]], "dict[str, Any] | None"]
"""Returns the reply to another process; None if that process must do the work itself."""


@frozen
class Console:
    """The abilities that a surface gives to a call: to ask, show progress, and cancel."""

    ask: Ask | None = None
    """Asks the user at the terminal."""
    progress: Progress | None = None
    """Receives the progress of long work."""
    show_line: Callable[[str], object] | None = None
    """Shows a line at once, for a call that may wait for long."""
    halted: Callable[[], bool] | None = None
    """Returns whether the caller has cancelled."""
    partial: Callable[[object], None] | None = None
    """Shows one part of an endless answer."""
    answers: Answers | None = None
    """Answers the command lines of other processes."""
    committing: Callable[[], AbstractContextManager[object]] = nullcontext
    """Commits what the block writes; of a server that commits, for a call that waits."""


class Call:
    """One call on an opened memory: the caller, the surface, and the notices of the answer."""

    def __init__(self, mind: Mind, caller: Caller = PERSON, console: Console | None = None) -> None:
        """Takes the memory that the call works on; the default caller is a user at a shell."""
        self.mind = mind
        self.origin = mind
        """The memory that the caller opened, whose policy also applies to the user's own memory."""
        self.caller = caller
        self.console = console or Console()
        self.notices: dict[str, str | None] = {}
        """The notices that belong to this call alone."""
        self._snapshots: dict[Index, Snapshot] | None = None
        """The states of indexes that the call reads, see `index`; None before it is started."""
        self._reads_only = False
        self.permissions = caller.permissions
        """The rights of one of several users of a server; None if everything is permitted."""
        self.owns_home = self.permissions is None
        """False if the home is that of a server's account, and not the caller's own."""
        self.sees_sessions = self.owns_home and caller.sees_sessions
        """True if answers may have words of the user's earlier sessions."""
        self.recorded = caller.permissions
        """The user of a server that the record of this call names."""

    def _like(self, mind: Mind, caller: Caller, console: Console) -> Call:
        call = Call(mind, caller, console)
        call._snapshots, call._reads_only = self._snapshots, self._reads_only
        call.origin = self.origin
        return call

    def started(self, *, reads_only: bool) -> Call:
        """Returns the call as a command uses it, until `release`; removes earlier notices.

        A command that `reads_only` compares the files with the index once.
        """
        self.notices.clear()
        call = Call(self.mind, self.caller, self.console)
        call.notices, call._snapshots, call._reads_only = self.notices, {}, reads_only
        return call

    def on(self, mind: Mind) -> Call:
        """Returns the call on another memory; it has its own notices."""
        return self._like(mind, self.caller, self.console)

    def by(self, caller: Caller) -> Call:
        """Returns a call of another caller on the same memory and surface."""
        return self._like(self.mind, caller, self.console)

    # The caller.

    @property
    def author(self) -> str | None:
        """The program that signs new memories; None for a person.

        In the user's own memory, an agent signs what it adds also in a shell.
        """
        return self.caller.actor if self.mind.is_users else self.caller.author

    @property
    def agent(self) -> str | None:
        """The calling program, also if it runs commands in a shell; None for a person."""
        return self.caller.actor

    @property
    def account(self) -> str | None:
        """The name of one of several users of a server; None for the only user."""
        return self.permissions.name if self.permissions else None

    def may_open(self, root: Path, registered: Iterable[Registered]) -> bool:
        """Returns whether the caller may use a project, by its folder and all registered ones."""
        return self.permissions is None or self.permissions.may_open(root, registered)

    @property
    def session(self) -> Session:
        """The session that the call belongs to."""
        return self.caller.session or self.mind.guard.session

    def record_as(self, permissions: Permissions | None) -> None:
        """Names another user of the server in the record of this call."""
        self.recorded = permissions

    # Other memories.

    def user(self, *, make: bool = False) -> Call | None:
        """Returns the call on the memory that the user has for all projects; None without one.

        With `make`, a missing one is made. None of several users of a server has one: it would be
        that of the server's own account.
        """
        if self.mind.is_users or not self.owns_home:
            return None
        user = self.mind.user(make=make)
        return self.on(user) if user else None

    def at(self, registered: Registered, *, stays: bool = True) -> Call | None:
        """Returns the call on a registered project, as `Mind.at`; None if it is missing.

        It has no snapshot of another project: there may be hundreds of them.
        """
        mind = self.mind.at(registered, stays=stays)
        if mind is self.mind:
            return self
        return Call(mind, self.caller, self.console) if mind else None

    def registered(self) -> Registry:
        """Returns the registered projects that the caller may open."""
        registry = self.mind.registered()
        if self.permissions is None:
            return registry
        projects = registry.projects
        permitted = tuple(entry for entry in projects if self.may_open(entry.path, projects))
        return registry._replace(projects=permitted)

    def count_uses(self, records: Iterable[Record]) -> None:
        """Counts a use of each memory: a search matches it, or it was shown or loaded.

        An answer never fails because its uses can't be counted.
        """
        if not self.caller.counts_uses:
            return
        with suppress(MindError, OSError):
            self.mind.accesses.note([record.memory.id for record in records], self.mind.now())

    # The index.

    @property
    def index(self) -> Reader:
        """The index as this call reads it: while a command runs, a snapshot of one state.

        A snapshot ends if the call writes to the index, with `release`, and with the command.
        """
        return self.reader_of(self.mind.index)

    def reader_of(self, index: Index) -> Reader:
        """Returns an index as this call reads it."""
        if self._snapshots is None:
            return index
        if index not in self._snapshots:
            self._snapshots[index] = index.snapshot(reads_only=self._reads_only)
        return self._snapshots[index]

    def release(self) -> None:
        """Ends the snapshots, as before a wait; the next query begins others."""
        for snapshot in (self._snapshots or {}).values():
            snapshot.end()

    @property
    def ask(self) -> Ask | None:
        """Asks the user at the terminal, while the call holds no snapshot; None if it can't."""
        self.release()
        return self.console.ask

    # Cancellation, progress and notices.

    def check_cancelled(self) -> None:
        """Raises `Cancelled` if the caller has cancelled. Long work calls it between its steps."""
        if self.console.halted and self.console.halted():
            raise Cancelled("the caller cancelled the call")

    def advance(self, label: str, done: int, total: int) -> None:
        """Reports the progress of long work. Raises `Cancelled` if the caller has cancelled."""
        self.check_cancelled()
        if self.console.progress:
            self.console.progress(label, done, total)

    def note(self, about: str, notice: str | None) -> None:
        """Sets the notice about one subject; None removes it."""
        if not self.mind.note(about, notice):
            self.notices[about] = notice

    def noted(self, about: str) -> str | None:
        """Returns the notice about one subject, or None."""
        return self.notices.get(about) or self.mind.noted(about)

    @property
    def notice(self) -> str | None:
        """All notices that belong beside an answer, or None."""
        return join_texts(*self.notices.values(), *self.mind.notices())
