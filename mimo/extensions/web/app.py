"""The viewer as an application: its files, its answers as JSON, changes as they happen.

Every answer is the result of a declared command, called through `invoke` as the command line calls
it: policies, redaction and the audit are the same. Decisions are the commands of `mind review`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from mimo.api import (
    AmbiguousId,
    Call,
    Caller,
    Conflict,
    Denied,
    Invalid,
    Mind,
    MindError,
    NoProject,
    NotFound,
    RateLimited,
    Spec,
    TrustLabel,
    all_commands,
    clean,
    declared,
    disk,
    exposed,
    fault,
    files,
    invoke,
    loads_or_none,
    to_json,
    watch,
)
from mimo.extensions.web import answers, static_files
from mimo.extensions.web.gate import VIEWS, Gate
from mimo.extensions.web.markdown import rendered

T = TypeVar("T")

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

STATUS: Mapping[type[MindError], int] = {
    Invalid: 400,
    Denied: 403,
    NotFound: 404,
    NoProject: 404,
    AmbiguousId: 409,
    Conflict: 409,
    RateLimited: 429,
}

OWN = {
    "overview": answers.overview,
    "list": answers.list_,
    "search": answers.search,
    "page": answers.page,
    "chains": answers.chains,
    "pitfalls": answers.pitfalls,
}
"""The viewer's own queries."""

SHARED = {
    "graph": "graph",
    "review": "review",
    "sessions": "sessions",
    "sessions_search": "sessions search",
    "session": "sessions show",
}
"""Commands whose answers are shown as they are; an extension that is left out has none."""

_MOST_AT_ONCE = 4
"""Answers that are computed at the same time."""

_MOST_STREAMS = 24
_PULSE_SECONDS = 15.0


class Changes:
    """Reports to browsers that memories have changed, by a thread that watches their folders."""

    def __init__(self) -> None:
        """Nothing is watched before `start`."""
        self._stop = Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[asyncio.Queue[str | None]] = set()
        self._is_blind = False
        """True if the folders can't be watched any longer."""

    def start(self, folders: Callable[[], Sequence[Path]]) -> None:
        """Begins to watch folders, which may be others after a change, such as of settings."""
        Thread(target=self._watch, args=(folders,), name="changes", daemon=True).start()

    def close(self) -> None:
        """Stops watching, and ends all streams; called in the event loop."""
        self._stop.set()
        for queue in self._waiting:
            queue.put_nowait(None)

    @property
    def is_full(self) -> bool:
        """True if no other browser can wait for changes."""
        return len(self._waiting) >= _MOST_STREAMS

    async def stream(self) -> AsyncGenerator[bytes]:
        """Yields an event for each change, in the format of server-sent events."""
        self._loop = asyncio.get_running_loop()
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting.add(queue)
        try:
            yield b"event: ready\ndata: 1\n\n"
            if self._is_blind:
                queue.put_nowait("blind")
            while not self._stop.is_set():
                try:
                    name = await asyncio.wait_for(queue.get(), _PULSE_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if name is None:
                    return
                yield f"event: {name}\ndata: 1\n\n".encode()
        finally:
            self._waiting.discard(queue)

    def _watch(self, folders: Callable[[], Sequence[Path]]) -> None:
        try:
            while not self._stop.is_set():
                watched = folders()
                with suppress(FileNotFoundError):  # One was removed since they were listed.
                    for changed in watch.changes(watched, stop=self._stop, recursive=True):
                        # The system watches a removed folder no more, even if it comes back.
                        is_stale = not changed.isdisjoint(watched) or folders() != watched
                        if changed or is_stale:
                            self._report("changed")
                        if is_stale:
                            break
        except (MindError, OSError, RuntimeError):
            self._is_blind = True
            self._report("blind")

    def _report(self, name: str) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._announce, name)

    def _announce(self, name: str) -> None:
        for queue in self._waiting:
            queue.put_nowait(name)


class Viewer:
    """The endpoints, over the memory of one project."""

    def __init__(
        self, memory: Callable[[], Mind], caller: Caller, token: str, changes: Changes
    ) -> None:
        """Takes the memory to ask, the user who asks, and the secret that the page knows."""
        self._memory, self._caller, self._token, self._changes = memory, caller, token, changes
        self._free = anyio.CapacityLimiter(_MOST_AT_ONCE)
        self._deciding = anyio.Lock()

    def application(self, port: int) -> ASGIApp:
        """Returns the application behind its gate."""
        routes = [
            Route("/static/{name}", self.static),
            Route("/favicon.ico", self.icon),
            Route("/api/events", self.events),
            Route("/api/decide", self.decide, methods=["POST"]),
            Route("/api/{name}", self.ask),
            Route("/{view:path}", self.index),
        ]
        return Gate(Starlette(routes=routes), port=port, token=self._token)

    async def index(self, request: Request) -> Response:
        """Returns the page, whose script shows the view of its address."""
        view = request.path_params["view"].partition("/")[0]
        return _file("index.html" if view in VIEWS else "")

    async def static(self, request: Request) -> Response:
        """Returns a file of the page."""
        return _file(request.path_params["name"])

    async def icon(self, _: Request) -> Response:
        """Returns the icon, for a browser that asks for it by its usual name."""
        return _file("icon.svg")

    async def events(self, _: Request) -> Response:
        """Streams changes."""
        if self._changes.is_full:
            return Response("Too many pages are open\n", 503, media_type="text/plain")
        return StreamingResponse(self._changes.stream(), media_type="text/event-stream")

    async def ask(self, request: Request) -> Response:
        """Returns the answer to a query, whose arguments are JSON."""
        name, text = request.path_params["name"], request.query_params.get("args", "{}")
        spec = spec_of(name)
        if spec is None:
            return JSONResponse({"error": {"message": "no such query"}}, 404)
        return await self._answered(lambda: shown(self._invoke(spec, read(text))))

    async def decide(self, request: Request) -> Response:
        """Carries out a decision of the review, if the user has seen its current state."""
        body = (await request.body()).decode("utf-8", "replace")
        async with self._deciding:
            return await self._answered(lambda: self._decided(read(body)))

    def _decided(self, fields: Mapping[str, Any]) -> Any:
        path, arguments = decision(fields)
        read = None if path == "undo" else self._read_digest(fields)
        if path == "trust":
            arguments["digest"] = read
        return to_json(self._invoke(all_commands().at(path), arguments))

    def _read_digest(self, fields: Mapping[str, Any]) -> str | None:
        """Returns the digest of the text if a decision is about the page of a memory.

        Raises `Conflict` if the page or the item has changed since it was shown.
        """
        read = None
        if fields.get("action") in ("approve", "remove"):
            page = self._invoke(declared(answers.page), {"id": fields.get("id")})
            data = to_json(page)
            current, read = [digest(data)], data.get("digest")
        else:
            arguments = {"kinds": [fields.get("kind")], "limit": 1000}
            listed = to_json(self._invoke(all_commands().at("review"), arguments))
            current = [digest(item) for item in listed["items"]]
        if fields.get("seen") not in current:
            raise Conflict(
                "it has changed since this page showed it", hint="read it again, then decide"
            )
        return read

    def _invoke(self, spec: Spec, arguments: Mapping[str, Any]) -> object:
        call = Call(self._memory(), self._caller)
        if not (call.mind.folder / files.CONFIG).is_file():
            raise NoProject(
                f"the project `{call.mind.project.root}` was moved or deleted",
                hint="move it back, or stop this viewer and start one in the new folder",
            )
        return invoke(spec, call, arguments)

    async def _answered(self, work: Callable[[], Any]) -> Response:
        """Returns the result of work in a thread, or its error."""

        def caught() -> Response:
            try:
                return JSONResponse(work())
            except MindError as error:
                return refused(error)
            except Exception as error:  # noqa: BLE001 - no unexpected error is shown raw
                return refused(fault(error))

        return await anyio.to_thread.run_sync(caught, limiter=self._free, abandon_on_cancel=True)


def _file(name: str) -> Response:
    data = static_files().get(name)
    if data is None:
        return Response("No such file\n", 404, media_type="text/plain")
    return Response(data, media_type=TYPES[Path(name).suffix])


def spec_of(name: str) -> Spec | None:
    """Returns the command that answers a query, or None."""
    if name in OWN:
        return declared(OWN[name])
    return all_commands().at(SHARED[name]) if name in SHARED else None


def read(text: str) -> dict[str, Any]:
    """Returns the JSON object in a text; raises `Invalid`."""
    data = loads_or_none(text)
    if not isinstance(data, dict):
        raise Invalid("the arguments are not a JSON object")
    return data


def decision(fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the command for a decision, and its arguments; raises `Invalid`."""
    about = fields.get("id")
    if not isinstance(about, str) or not about:
        raise Invalid("a decision needs the id of a memory")
    match fields.get("action"):
        case "approve":
            return "trust", {"ids": [about]}
        case "remove":
            return "rm", {"id": about}
        case "hide":
            return "review keep", {"id": about, "kind": fields.get("kind")}
        case "take":
            names = ("take", "kind", "field", "against")
            return "review settle", {"id": about, **{name: fields.get(name) for name in names}}
        case "undo":
            return "undo", {"id": about}
        case "accept":
            return "sessions accept", {"ids": [about], "text": fields.get("text")}
        case "reject" | "never" as verdict:
            return "sessions reject", {"ids": [about], "never": verdict == "never"}
        case other:
            raise Invalid(f"`{other}` is not a decision")


def shown(result: object) -> Any:
    """Returns a result for the page: Markdown as trees, and what a decision must have seen."""
    data = to_json(result)
    if isinstance(result, answers.Page):
        page = exposed(data) if result.memory.trust is TrustLabel.UNTRUSTED else data
        return {**rendered(page), "written": written(page), "seen": digest(data)}
    if "items" in data:
        data["items"] = [{**item, "seen": digest(item)} for item in data["items"]]
    return data


def written(page: dict[str, Any]) -> str:
    """Returns the text of a page as it is written.

    An approval is of this text: Markdown that is formatted hides link targets, for example.
    """
    texts = [page["content"], *(f"## {name}\n\n{text}" for name, text in page["sections"].items())]
    if extra_texts := page.get("others"):
        texts += ["An approval covers these texts of the file, too:", *extra_texts]
    return clean("\n\n".join(texts))


def digest(data: Any) -> str:
    """Returns the digest of JSON data."""
    return disk.sha256(json.dumps(data, sort_keys=True).encode()).hex()


def refused(error: MindError) -> Response:
    """Returns the response for an error."""
    status = next((code for cls, code in STATUS.items() if isinstance(error, cls)), 500)
    # A message may quote half of a surrogate pair, which only JSON in ASCII can hold.
    return Response(json.dumps(error.wire()), status, media_type="application/json")
