"""Answering other processes of the same user over a socket: the half of the server.

`asking` has the other half, and the protocol. Of several servers of a project one listens, and the
next one takes over when it ends. Every call passes the same checks as in the process that asks.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from heapq import nlargest
from pathlib import Path
from socket import AF_UNIX, SHUT_RDWR, SOCK_STREAM, socket
from threading import BoundedSemaphore, Event, Lock, Thread
from typing import Any, Protocol

from mimo import installation
from mimo.call import Answers, Call, Caller, Console, Surface
from mimo.data import disk, locks
from mimo.data.loads import loads
from mimo.errors import MindError
from mimo.index.cosine import cosines
from mimo.index.embedding import ENCODED_LENGTH, Embedder
from mimo.mind import Mind
from mimo.operations import asking, refresh
from mimo.operations.encoding import Encoding
from mimo.project import projects

log = logging.getLogger("mind.socket")

MOST_CONNECTIONS = 16
SECONDS = 2.0
"""The time for a request to arrive, and for a reply to be read."""

MOST_NEAR = 20
"""The number of memories nearest to a prompt, of the project and of the user's own."""

_EXAMPLES = Path(__file__).parents[1] / "model" / "work.txt"
"""Each line has `+` or `-`, and an example of work of consequence, or of routine work."""

_LIKE = 3
"""The number of examples of each kind that count: the most similar ones."""

_PAUSE_SECONDS = 5.0
"""The time between two attempts to find a project, or to take a lock that is held."""

_AFTER_ERROR_SECONDS = 0.5
"""The time until the next connection is accepted if one could not be."""


class Repository(Protocol):
    """The repository of a served project, to which the calls of a server commit."""

    def writing(self, call: Call, author: str | None) -> AbstractContextManager[list[str]]:
        """Commits the files that the block writes; the list gets a notice if that fails."""


class Memory:
    """The memory behind a server, opened with the first call and kept open."""

    def __init__(
        self,
        open: Callable[[], Mind],
        repository: Repository | None = None,
        *,
        reads_sessions: bool = False,
    ) -> None:
        """Keeps how to open it; nothing is opened yet. Writing calls commit to a `repository`.

        With `reads_sessions`, the user's earlier sessions are read between calls if that is on.
        """
        self._open = open
        self.repository = repository
        self._mind: Mind | None = None
        self._has_moved = False
        self._lock = Lock()
        self.encoding = Encoding(self._minds)
        """The thread that makes missing vectors between calls; these run in its `pausing`."""
        if reads_sessions:
            self.encoding.sessions = lambda: self._mind

    def mind(self) -> Mind:
        """Returns the memory; without a project, each call looks for one again.

        An outdated one is closed; calls that still use it go on.
        """
        with self._lock:
            previous = self._mind
            if previous is not None and not self._has_moved and _is_current(previous):
                return previous
            opened, self._has_moved = self._open(), False
            if previous is not None:
                # The limits of the session include the calls before.
                opened.guard.session = previous.guard.session
            self._mind = opened
            _make_parts(opened)
        if previous is not None:
            previous.close()
        return opened

    def move(self, open: Callable[[], Mind]) -> None:
        """Makes the next call open another memory."""
        with self._lock:
            self._open, self._has_moved = open, True

    def _minds(self) -> Iterator[Mind]:
        """Yields the memory, if it is open, and the user's for all projects."""
        mind = self._mind
        if mind is not None:
            if mind.has_project:
                yield mind
            if user := mind.user():
                yield user

    def root(self) -> Path | None:
        """Returns the project's folder without opening its parts; None if none can be used."""
        with suppress(MindError):
            return (self._mind or self._open()).project.root
        return None

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
        self._folder = Path(asking.folder_of(str(home)))
        self._memory, self._answers = memory, answers
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
        with suppress(OSError, MindError):  # Such as a path that is too long for a socket.
            while (root := self._memory.root()) is None:
                if self._ended.wait(_PAUSE_SECONDS):
                    return
            path = self._folder / asking.name_of(str(root))
            disk.make_folder(self._folder)
            if not asking.is_private(str(self._folder)):
                return
            while (lock := locks.hold(path.with_suffix(".lock"), wait=0)) is None:
                if self._ended.wait(_PAUSE_SECONDS):
                    return
            try:
                self._listen(path)
            finally:
                path.unlink(missing_ok=True)
                os.close(lock)

    def _listen(self, path: Path) -> None:
        """Accepts connections until the end."""
        path.unlink(missing_ok=True)  # It is of a process that was killed.
        with socket(AF_UNIX, SOCK_STREAM) as listening:
            listening.bind(str(path))
            path.chmod(disk.FILE_MODE)
            listening.listen(MOST_CONNECTIONS)
            self._listening = listening
            while not self._ended.is_set():
                try:
                    peer, _ = listening.accept()
                except OSError:
                    self._ended.wait(_AFTER_ERROR_SECONDS)
                    continue
                if self._free.acquire(blocking=False):
                    Thread(target=self._converse, args=(peer,), daemon=True).start()
                else:
                    peer.close()

    def _converse(self, peer: socket) -> None:
        """Answers one connection. A client that fails or does not read is dropped."""
        try:
            with peer:
                if installation.is_changed():
                    log.info("mind was updated or removed; another server may listen")
                    self._stop()
                    return
                peer.settimeout(SECONDS)
                peer.sendall(_line(asking.GREETING))
                request = loads(asking.line(peer, SECONDS, asking.MOST_REQUEST))
                with self._memory.encoding.pausing():
                    reply = replied(self._memory.mind(), request, self._answers)
                data = _line(reply or {"no": True})
                peer.settimeout(SECONDS)
                peer.sendall(data if len(data) <= asking.MOST_REPLY else _line({"no": True}))
        except Exception as error:  # noqa: BLE001 - the process that asks does the work itself
            log.info("a request was not answered: %s", type(error).__name__)
        finally:
            self._free.release()


def _line(data: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(data)}\n".encode("ascii")


def replied(mind: Mind, request: Mapping[str, Any], answers: Answers) -> Mapping[str, Any] | None:
    """Returns the reply of a memory to a request; None if the other process must do the work.

    It must if its environment, its project or the setting `server.socket` does not match. A call
    that takes longer than the other process waits is cancelled.
    """
    if asking.shared(request) != asking.shared(asking.surroundings(mind.environ)):
        return None
    project = projects.find(Path(request["folder"]), mind.home)
    is_same = project is not None and not project.inner and project.root == mind.project.root
    if not is_same or mind.config["server.socket"] == "off":
        return None
    if request["ask"] == "status":
        return {"pid": os.getpid()}
    deadline = time.monotonic() + asking.ANSWER_SECONDS
    with mind.visited(request["environ"]) as view:
        caller = Caller(surface=Surface.CLI, agent=request.get("agent"))
        call = Call(view, caller, Console(halted=lambda: time.monotonic() > deadline))
        if request["ask"] == "near":
            near = _near(call, request["prompt"])
            with suppress(MindError):  # The near memories are given without the pitfalls.
                near |= (near["near"] and answers(call, request)) or {}
            return near
        return answers(call, request)


def _near(call: Call, prompt: str) -> dict[str, Any]:
    """Returns the memories nearest to a prompt with their cosines, and its kind of work."""
    reply: dict[str, Any] = {"near": refresh.up_to_date(call).nearest(prompt, MOST_NEAR)}
    if reply["near"] and (encoder := call.mind.encoder):
        reply["work"] = consequence(encoder, prompt)
        with suppress(MindError):  # The notes of the project are given without them.
            if of_user := call.mind.user():
                index = refresh.up_to_date(Call(of_user, call.caller))
                reply["near_of_user"] = index.nearest(prompt, MOST_NEAR)
    return reply


def consequence(encoder: Embedder, text: str) -> float:
    """Returns how much more a prompt is like work of consequence than like routine work, -1..1.

    Most prompts ask for routine work, which a memory does not change even if it is about the same
    things. It is a difference of two means of cosines, 0 for a text that the encoder can't read.
    """
    query = encoder.encode(text)
    consequential, routine = (
        sum(nlargest(_LIKE, cosines(query, vectors, ENCODED_LENGTH))) / _LIKE
        for vectors in _examples(encoder)
    )
    return consequential - routine


_vectors: dict[str, Sequence[Sequence[bytes]]] = {}
"""The vectors of the examples by each encoder: of consequence, and routine."""


def _examples(encoder: Embedder) -> Sequence[Sequence[bytes]]:
    """Returns the vectors of the examples; to make them takes half a second, once in a process."""
    if encoder.model not in _vectors:
        lines = _EXAMPLES.read_text(encoding="utf-8").splitlines()
        texts = ([line[2:] for line in lines if line[0] == kind] for kind in "+-")
        _vectors[encoder.model] = list(map(encoder.encode_many, texts))
    return _vectors[encoder.model]
