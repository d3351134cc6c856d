"""The servers: lines on standard input, and bytes on connections of HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import close, pipe, write
from typing import Any
from unittest.mock import patch

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from mcp_types import INTERNAL_ERROR, JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.server import ServerState

from fuzz.project import SECRET, a_project, is_changed
from mimo.call import Caller, Surface
from mimo.call.table import all_commands
from mimo.errors import Internal
from mimo.extensions.team import http
from mimo.extensions.team.hosting import Hosting
from mimo.extensions.web.app import Changes, Viewer
from mimo.extensions.web.gate import HEADERS
from mimo.mind import Mind
from mimo.operations.connections import Connection
from mimo.operations.listening import Memory
from mimo.server import stdio
from mimo.server.app import App

TOKEN = "the-token-of-the-fuzzer"
PORT = 8123
_SECONDS = 10.0
_STREAM_SECONDS = 0.3
"""The time after which a client hangs up on a stream that does not end."""
_CALL_SECONDS = 8.0
"""The same for any other request."""

_LONGER = re.compile(rb"cancel|listen|subscri")
"""Methods after which some requests rightly get no answer."""

SESSION = b"@session@"
"""The place of the id of an open session in the bytes of a connection."""

START = (
    b'{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": '
    b'"2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}}'
)
_INTERNAL = (0, INTERNAL_ERROR)
"""Codes of errors that are defects."""


def check_answer(message: Mapping[str, Any]) -> None:
    """Checks that a message of JSON-RPC does not report an internal error."""
    error, result = message.get("error"), message.get("result")
    if isinstance(error, Mapping):
        assert error.get("code") not in _INTERNAL, message
    if isinstance(result, Mapping) and "mind/error" in result.get("_meta", {}):
        assert result["_meta"]["mind/error"]["error"]["code"] != Internal.code, message


@contextmanager
def _no_errors_logged() -> Iterator[None]:
    """Raises what a server logs as an error, with its traceback."""
    errors: list[logging.LogRecord] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = errors.append  # type: ignore[method-assign,assignment]
    root = logging.getLogger()
    handler.addFilter(lambda record: not _is_about_hanging_up(record))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
    if errors:
        raise AssertionError(errors[0].getMessage()) from (errors[0].exc_info or (None, None))[1]


def _is_about_hanging_up(record: logging.LogRecord) -> bool:
    """Returns whether a record is about a client that hung up, which the servers do not log."""
    error = record.exc_info[1] if record.exc_info else None
    return record.name.startswith("mcp.") or isinstance(error, ClientDisconnect)


class _Output:
    """Standard output, which closes the input when every request has been answered."""

    is_open = True

    def __init__(self, expected: int, input: int) -> None:
        self.lines: list[str] = []
        self._expected = expected
        self._input: int | None = input

    async def write(self, text: str) -> None:
        self.lines.append(text)
        answered = sum('"method"' not in line[:80] for line in self.lines)
        if answered == self._expected:
            self.close_input()

    async def flush(self) -> None:
        """Does nothing: every line is kept."""

    def close_input(self) -> None:
        """Ends the input of the server, if it has not ended."""
        if self._input is not None:
            close(self._input)
        self._input = None


def frames(data: bytes) -> None:
    """Each line gets its answer, one that is not a message an error, and the server stays."""
    # A last request, whose answer shows that the lines before did no harm.
    lines = [*data.split(b"\n"), b'{"jsonrpc": "2.0", "id": "the last", "method": "ping"}']
    ids: Counter[Any] = Counter()
    invalid: list[str] = []
    for line in lines:
        with suppress(ValidationError):
            text = line.decode("utf-8", "replace")
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
            if isinstance(message, JSONRPCRequest):
                ids[message.id] += 1
                continue
            if not isinstance(message, JSONRPCNotification) or "id" not in json.loads(text):
                continue
        ids[None] += bool(text.strip())
        invalid.append(text)
    may_be_fewer = bool(_LONGER.search(data)) or max(ids.values()) > 1
    reading, writing = pipe()
    output: Any = _Output(1 if may_be_fewer else sum(ids.values()), writing)

    async def served(app: App) -> None:
        with anyio.fail_after(_SECONDS):
            await stdio.serve(app, reading)

    with (
        a_project() as call,
        patch.object(stdio, "stdio_server", lambda lines: stdio_server(lines, output)),
        _no_errors_logged(),
    ):
        app = App(Memory(lambda: call.mind), all_commands(), toolsets=["all"], naming="underscore")
        threading.Thread(
            target=_fed, args=(writing, b"\n".join(lines) + b"\n"), daemon=True
        ).start()
        try:
            anyio.run(served, app)
        finally:
            app.finish()
            output.close_input()
            # A thread that still reads would take the input of the next descriptor of this number.
            for thread in threading.enumerate():
                if thread.name == "standard input":
                    thread.join(_SECONDS)
            close(reading)
    answers = [json.loads(line) for line in output.lines]
    for answer in answers:
        assert answer["jsonrpc"] == "2.0"
        check_answer(answer)
    answered = Counter(answer.get("id") for answer in answers if "method" not in answer)
    # The error for an invalid line has its id, if it can be read.
    for id in answered.keys() - ids.keys():
        assert id is None or any(_has_id(line, id) for line in invalid), id
    assert answered.total() <= ids.total()
    if not may_be_fewer:
        assert answered.total() == ids.total()
        assert all(answered[id] >= times for id, times in ids.items() if id is not None)


def _has_id(line: str, id: Any) -> bool:
    """Returns whether an invalid line has an id, which may be one of its numbers or texts."""
    with suppress(ValueError, RecursionError, AttributeError):
        return bool(json.loads(line).get("id") == id)
    return str(id) in line


def _fed(descriptor: int, data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[write(descriptor, data) :]


class _Transport(asyncio.Transport):
    """A connection that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", PORT)})
        self.written, self._is_closing = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += b"" if self._is_closing else bytes(data)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    abort = close

    def pause_reading(self) -> None:
        """Nothing is read: all bytes have been given."""

    resume_reading = pause_reading


class _Response:
    """The response to one request, as the server of HTTP gets it."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 0, dict[str, str](), b""

    def add(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            assert not self.status
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        self.body += message.get("body", b"")


class _Client:
    """An application with what its client gets, and the time at which the client hangs up."""

    def __init__(self, app: ASGIApp, data: bytes) -> None:
        self.responses: list[_Response] = []
        self.has_hung_up = False
        self._app, self._may_last = app, bool(_LONGER.search(data))
        self._wait(_CALL_SECONDS)

    def _wait(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    @property
    def is_tired(self) -> bool:
        """Returns whether the client waits no longer."""
        return time.monotonic() > self._deadline

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        self.responses.append(response := _Response())
        may_last = self._may_last or scope["method"] != "POST"
        is_complete = False

        async def received() -> Message:
            nonlocal is_complete
            if not is_complete:  # The rest of the body may not come.
                self._wait(_STREAM_SECONDS)
            message = await receive()
            if not may_last and not message.get("more_body"):
                is_complete = True
                self._wait(_CALL_SECONDS)
            return message

        async def sent(message: Message) -> None:
            if not self.has_hung_up:
                response.add(message)
            await send(message)

        await self._app(scope, received, sent)


async def _exchange(app: ASGIApp, data: bytes) -> list[_Response]:
    """Returns the responses of an application to the bytes of a connection."""
    client = _Client(app, data)
    config = uvicorn.Config(client, http=Connection, ws="none", lifespan="off", log_config=None)
    config.load()
    state, transport = ServerState(), _Transport()
    connection = Connection(config, state, {}, asyncio.get_running_loop())
    connection.connection_made(transport)
    if data:  # No bytes would mean the end of the connection.
        connection.data_received(data)
    while state.tasks and not transport.is_closing() and not client.is_tired:
        await asyncio.wait(state.tasks, timeout=0.1)
    client.has_hung_up = True
    connection.connection_lost(None)
    if state.tasks:
        _, waiting = await asyncio.wait(state.tasks, timeout=_SECONDS)
        assert not waiting, "a request does not end"
    return [response for response in client.responses if response.status]


def _check(data: bytes, responses: list[_Response]) -> None:
    for response in responses:
        assert response.status < 500 or response.status == 503, response.body
        assert TOKEN.encode() in data or SECRET.encode() not in response.body
        kind = response.headers.get("content-type", "").partition(";")[0]
        if kind == "application/json" and response.body:
            message = json.loads(response.body)
            if isinstance(message, dict):
                check_answer(message)
        elif kind == "text/event-stream":
            for line in response.body.splitlines():
                if line.startswith(b"data: {"):
                    check_answer(json.loads(line.removeprefix(b"data: ")))


BEARER = b"Authorization: Bearer " + TOKEN.encode()
JSON = (b"Content-Type: application/json", b"Accept: application/json, text/event-stream")
AS_CLIENT = (BEARER, *JSON)


def request(line: bytes, body: bytes = b"", *headers: bytes) -> bytes:
    """Returns a request to the server, with the length of its body."""
    every = [b"Host: 127.0.0.1:%d" % PORT, *headers, b"Content-Length: %d" % len(body)]
    return line + b" HTTP/1.1\r\n" + b"\r\n".join(every) + b"\r\n\r\n" + body


def requests(data: bytes) -> None:
    """The server of MCP over HTTP answers any bytes, and without the token shows no memory.

    The bytes may name an open session. If they have the token, another one is tried, too.
    """
    with (
        a_project() as call,
        _no_errors_logged(),
        patch.object(Mind, "open", lambda *_, **__: call.mind),
    ):

        def make(memory: Memory, kind: type[App]) -> App:
            return kind(memory, all_commands(), toolsets=["all"], naming="underscore")

        async def served() -> None:
            hosting = Hosting(call.mind.home, make, default=call.mind.project.root)
            gate = http.Gate(hosting, http.place_of(str(PORT), ()), TOKEN)
            async with hosting.running():
                sent = data
                if SESSION in data:
                    (started,) = await _exchange(gate, request(b"POST /mcp", START, *AS_CLIENT))
                    sent = data.replace(SESSION, started.headers["mcp-session-id"].encode())
                if TOKEN.encode() in sent:
                    other = sent.replace(TOKEN.encode(), TOKEN[::-1].encode())
                    _check(other, await _exchange(gate, other))
                _check(sent, await _exchange(gate, sent))

        asyncio.run(served())


def pages(data: bytes) -> None:
    """The viewer answers any bytes, always with its rules for the browser; GET changes no file."""
    with a_project() as call, _no_errors_logged():
        viewer = Viewer(lambda: call.mind, Caller(surface=Surface.CLI), TOKEN, Changes())
        responses = asyncio.run(_exchange(viewer.application(PORT), data))
        _check(data, responses)
        for response in responses:
            assert HEADERS.items() <= response.headers.items()
    assert b"POST" in data or not is_changed()
