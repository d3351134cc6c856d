"""Answering other processes of the same user over a socket: the half of the server.

`asking` has the other half, and the protocol. Of several servers of a project one listens, and the
next one takes over when it ends. Every call passes the same checks as in the process that asks.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from socket import AF_UNIX, SHUT_RDWR, SOCK_STREAM, socket
from threading import BoundedSemaphore, Event, Lock, Thread
from typing import Any

from mimo import installation
from mimo.call import Answers, Call, Caller, Console, Surface
from mimo.data.loads import loads
from mimo.errors import MindError
from mimo.mind import Mind
from mimo.operations import asking, refresh
from mimo.operations.encoding import Encoding
from mimo.operations.publishing import Repository
from mimo.store import projects

log = logging.getLogger("mind.socket")

MOST_CONNECTIONS = 16
SECONDS = 2.0
"""The time for a request to arrive, and for a reply to be read."""

MOST_NEAR = 10
"""The number of memories nearest to a prompt."""

_PAUSE_SECONDS = 5.0
"""The time between two attempts to find a project, or to take a lock that is held."""

_AFTER_ERROR_SECONDS = 0.5
"""The time until the next connection is accepted if one could not be."""


class Memory:
    """The memory behind a server, opened with the first call and kept open."""

    def __init__(self, open: Callable[[], Mind], repository: Repository | None = None) -> None:
        """Keeps how to open it; nothing is opened yet. Writing calls commit to a `repository`."""
        self._open = open
        self.repository = repository
        self._mind: Mind | None = None
        self._lock = Lock()
        self.encoding = Encoding(self._minds)
        """The thread that makes missing vectors between calls; these run in its `pausing`."""

    def mind(self) -> Mind:
        """Returns the memory; without a project, each call looks for one again.

        An outdated one is closed; calls that still use it go on.
        """
        with self._lock:
            before = self._mind
            if before is not None and _is_current(before):
                return before
            opened = self._open()
            if before is not None:
                # The limits of the session include the calls before.
                opened.guard.session = before.guard.session
            self._mind = opened
            _make_parts(opened)
        if before is not None:
            before.close()
        return opened

    def _minds(self) -> Iterator[Mind]:
        """Yields the memory, if it is open, and the user's for all projects."""
        mind = self._mind
        if mind is not None:
            if mind.has_project:
                yield mind
            if user := mind.user():
                yield user

    def root(self) -> Path | None:
        """Returns the project's folder without opening its parts; None without a project."""
        mind = self._mind or self._open()
        return mind.project.root if mind.has_project else None

    def close(self) -> None:
        """Closes the memory if it was opened, which writes buffered changes."""
        self.encoding.close()
        with self._lock:
            if self._mind is not None:
                self._mind.close()


def _is_current(mind: Mind) -> bool:
    """Returns whether the memory has a project and is not outdated."""
    with suppress(MindError):
        return mind.has_project and not mind.is_outdated
    return False


def _make_parts(mind: Mind) -> None:
    """Makes the parts that calls share, before several threads could each make their own."""
    if mind.has_project:
        with suppress(MindError):
            _ = mind.store, mind.trust
            mind.watch()
            _ = mind.index  # The last one, because it may be unusable.


class Listener:
    """The socket of one project, on which its memory is asked."""

    def __init__(self, home: Path, memory: Memory, answers: Answers) -> None:
        """Takes the memory, and the answers of the surface; nothing listens before `start`."""
        self._folder = asking.folder_of(str(home))
        self._memory = memory
        self._answers = answers
        self._ended = Event()
        self._listening: socket | None = None
        self._free = BoundedSemaphore(MOST_CONNECTIONS)
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begins to listen in a thread, as soon as no other server of the project does."""
        self._thread.start()

    def close(self) -> None:
        """Stops listening, so that another server can take over."""
        self._stop()
        self._thread.join(SECONDS)

    def _stop(self) -> None:
        self._ended.set()
        if self._listening:
            with suppress(OSError):
                self._listening.shutdown(SHUT_RDWR)

    def _run(self) -> None:
        try:
            root = self._memory.root()
            while root is None:
                if self._ended.wait(_PAUSE_SECONDS):
                    return
                root = self._memory.root()
            self._listen(asking.name_of(str(root)))
        except (OSError, MindError) as error:
            log.info("nothing listens: %s", type(error).__name__)

    def _listen(self, name: str) -> None:
        """Waits for the lock of a project, and accepts connections until the end."""
        with suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)  # noqa: PTH102 - as the other half names it
        if not asking.is_private(self._folder):
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        held = os.open(f"{self._folder}/{name}.lock", flags, 0o600)
        try:
            if not self._takes(held):
                return
            with suppress(FileNotFoundError):
                os.unlink(f"{self._folder}/{name}")  # noqa: PTH108 - of a process that ended
            with socket(AF_UNIX, SOCK_STREAM) as listening:
                self._bind(listening, name)
                self._listening = listening
                try:
                    self._accept(listening)
                finally:
                    with suppress(OSError):
                        os.unlink(f"{self._folder}/{name}")  # noqa: PTH108 - as above
        finally:
            os.close(held)

    def _takes(self, lock: int) -> bool:
        """Waits for an opened lock, and returns whether it could be taken before the end.

        Polls, because a thread that waits in `flock` can't be stopped.
        """
        while not self._ended.is_set():
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Freed when a process ends.
                return True
            self._ended.wait(_PAUSE_SECONDS)
        return False

    def _bind(self, listening: socket, name: str) -> None:
        address, descriptor = asking.addressed(self._folder, name)
        try:
            listening.bind(address)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        os.chmod(f"{self._folder}/{name}", 0o600)  # noqa: PTH101 - as above
        listening.listen(MOST_CONNECTIONS)

    def _accept(self, listening: socket) -> None:
        while not self._ended.is_set():
            try:
                peer, _ = listening.accept()
            except OSError:
                if self._ended.wait(_AFTER_ERROR_SECONDS):
                    return
                continue
            if not self._free.acquire(blocking=False):
                peer.close()
                continue
            Thread(target=self._converse, args=(peer,), daemon=True).start()

    def _converse(self, peer: socket) -> None:
        """Answers one connection. A client that fails or does not read is dropped."""
        try:
            with peer, suppress(OSError, ValueError):
                if not asking.is_own(peer):
                    return
                if installation.is_changed():
                    log.info("mind was updated or removed; another server may listen")
                    self._stop()
                    return
                peer.settimeout(SECONDS)
                peer.sendall(_line(asking.GREETING))
                request = loads(asking.line(peer, SECONDS, asking.MOST_REQUEST))
                deliver = partial(_delivered, peer)
                if not self._reply(request, deliver):
                    deliver({"no": True})
        finally:
            self._free.release()

    def _reply(self, request: object, deliver: Deliver) -> bool:
        if not isinstance(request, Mapping):
            return False
        try:
            with self._memory.encoding.pausing():
                return replied(self._memory.mind(), request, self._answers, deliver)
        except Exception as error:  # noqa: BLE001 - the process that asks does the work itself
            log.info("a request was not answered: %s", type(error).__name__)
            return False


Deliver = Callable[[Mapping[str, Any]], bool]
"""Sends a reply, and returns whether the other process took it in time."""


def _delivered(peer: socket, reply: Mapping[str, Any]) -> bool:
    data = _line(reply)
    is_whole = len(data) <= asking.MOST_REPLY
    peer.settimeout(SECONDS)
    peer.sendall(data if is_whole else _line({"no": True}))
    return is_whole and peer.recv(1) == asking.TAKEN


def _line(data: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(data)}\n".encode("ascii")


def replied(mind: Mind, request: Mapping[str, Any], answers: Answers, deliver: Deliver) -> bool:
    """Delivers the reply of a memory to a request; False if the other process must do the work.

    It must if its environment, its project or the setting `server.socket` does not match. The call
    is recorded if the other process takes the reply; otherwise that process makes and records it.
    """
    environ = request["environ"]
    theirs = asking.shared(environ), request["zone"]
    ours = asking.surroundings(mind.environ)
    if theirs != (asking.shared(mind.environ), ours["zone"]):
        return False
    if mind.config["server.socket"] == "off":
        return False
    project = projects.find(Path(request["folder"]), mind.home)
    if project is None or project.root != mind.project.root:
        return False
    if request["ask"] == "status":
        return deliver({"pid": os.getpid()})
    deadline = time.monotonic() + asking.ANSWER_SECONDS
    with mind.visited(environ) as view:
        caller = Caller(surface=Surface.CLI, agent=asking.agent_of(environ))
        call = Call(view, caller, Console(halted=lambda: time.monotonic() > deadline))
        if request["ask"] == "near":
            return deliver(_near(call, request))
        view.guard.hold_records()
        reply = answers(call, request)
        if reply is None:
            return False
        if deliver(reply):
            view.guard.release_records()
        return True


def _near(call: Call, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the memories nearest to a prompt by the encoder."""
    near = refresh.up_to_date(call).nearest(request["prompt"], MOST_NEAR)
    return {"near": near}
