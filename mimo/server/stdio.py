"""The MCP server on standard input and output: one client, one JSON-RPC message a line."""

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any, NamedTuple

import anyio
from anyio.abc import ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import RootModel, ValidationError

from mimo.call.table import all_commands
from mimo.data.loads import DataError, loads
from mimo.operations.listening import Memory
from mimo.server import GRACE_SECONDS, OPENING, Mode, chunk_of, until_a_signal
from mimo.server.app import App
from mimo.server.exposure import Listing
from mimo.server.roots import Rooted


def run(
    memory: Memory,
    input: int,
    remainder: bytes,
    move: Callable[[list[Path]], None] | None,
    toolsets: Sequence[str],
    naming: str,
    mode: Mode,
    settings: Mapping[str, object],
) -> signal.Signals | None:
    """Serves a connection until the client disconnects, see `serve`.

    With `move`, the client's roots name the project, if it lists them.
    """
    make = partial(Rooted, move=move) if move else App
    listing = Listing(mode, memory.root)
    listed: Any = {"toolsets": toolsets, "naming": naming, "settings": settings}
    app = make(memory, all_commands(), listing=listing, **listed)
    try:
        return anyio.run(serve, app, input, remainder)
    finally:
        app.finish()


async def serve(app: App, input: int, remainder: bytes = b"") -> signal.Signals | None:
    """Serves an application on standard input and output; logs go to standard error.

    `remainder` was read from the descriptor `input` before. Returns the signal that ended it, or
    None if the client disconnected.
    """
    server = app.server()

    async def finish() -> None:
        app.subscriptions.close()
        with anyio.move_on_after(GRACE_SECONDS):
            while lines.unanswered:
                await anyio.sleep(0.05)

    async def reply(message: SessionMessage) -> None:
        if ready := lines.ready(message):
            await outgoing.send(ready)
            lines.sent(ready)

    lines: Any = Lines(input, reply, finish, remainder)
    async with anyio.create_task_group() as tasks:
        ended: list[signal.Signals] = await tasks.start(until_a_signal, tasks.cancel_scope.cancel)
        async with (
            stdio_server(lines) as (incoming, outgoing),
            app.listing.watching(),
            outgoing,
        ):
            options = server.create_initialization_options(app.listing.options())
            await server.run(incoming, Replies(reply), options)
        tasks.cancel_scope.cancel()
    return ended[0] if ended else None


# Standard input and output.

Reply = Callable[[SessionMessage], Awaitable[None]]

CANCELLED = "notifications/cancelled"
AHEAD = 16
"""The number of lines that are read ahead."""

BATCHING = "2025-03-26"
"""The only revision of the protocol in which a line may hold several messages."""

_HALF = re.compile(r"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})")
"""Half of a character in JSON, in the first group; before it, what only looks like one."""

_MARK = re.compile(
    r'"id"\s*:\s*(?:"(?P<text>[^"\\]*)"|(?P<number>-?\d{1,18})(?=\s*[,}]))'
    r'|"(?:[^"\\]|\\.)*+"|[][{}]'
)
"""The id in JSON, any other text, or a bracket."""


_ITEM_MARK = re.compile(r'"(?:[^"\\]|\\.)*+"|[][{},]')
"""Any text in JSON, a bracket, or a comma."""


class Answered(RootModel[list[JSONRPCResponse | JSONRPCError]]):
    """The answers to a batch, which are one line."""


class Batch(NamedTuple):
    """The requests of a batch that are not yet answered, and the answers to the others."""

    ids: set[str]
    answers: list[JSONRPCResponse | JSONRPCError]


class Replies(ObjectSendStream[SessionMessage]):
    """The answers of the SDK, which closes this stream but not the output."""

    def __init__(self, reply: Reply) -> None:
        """Takes the function that sends an answer."""
        self._reply = reply

    async def send(self, item: SessionMessage) -> None:
        """Sends an answer."""
        await self._reply(item)

    async def aclose(self) -> None:
        """Does nothing."""


class Lines:
    """The lines of a file that are JSON-RPC messages, as an asynchronous iterator."""

    def __init__(
        self,
        descriptor: int,
        reply: Reply,
        finish: Callable[[], Awaitable[None]],
        remainder: bytes = b"",
    ) -> None:
        """Starts reading; `reply` sends the errors for lines that are not messages.

        `remainder` comes before what is read. The lines end after `finish`, since the SDK then
        cancels all requests.
        """
        self._reply, self._finish = reply, finish
        self.unanswered: set[str] = set()
        """The ids of requests that are not yet answered."""
        self._is_batching = False
        self._batches: list[Batch] = []
        self._messages: list[str] = []
        """The messages of a batch that are not yet taken."""
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = Semaphore(AHEAD)
        self._loop = asyncio.get_running_loop()
        # A daemon thread, because it may still wait for input when the program ends.
        arguments = descriptor, remainder
        Thread(target=self._read, args=arguments, name="standard input", daemon=True).start()

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> str:
        """Returns the next message."""
        while (text := await self._next()) is not None:
            if not text.strip() or await self._open_batch(text):
                continue
            message = _message_of(text)
            if isinstance(message, ErrorData):
                await self._reply(SessionMessage(_refusal(text, message)))
                continue
            await self._note(message)
            return text
        await self._finish()
        raise StopAsyncIteration

    async def _next(self) -> str | None:
        """Returns the next line, or message of a batch; None at the end."""
        if self._messages:
            return self._messages.pop(0)
        line = await self._queue.get()
        self._room.release()
        return None if line is None else _repaired(line)

    def ready(self, reply: SessionMessage) -> Any:
        """Returns what to send now: a message, or all answers to a batch after the last of them."""
        if isinstance(message := reply.message, JSONRPCResponse | JSONRPCError):
            if message.id == OPENING:
                self.unanswered.discard(OPENING)
                return None
            for batch in self._batches:
                if str(message.id) in batch.ids:
                    batch.answers.append(message)
                    return self._answered(batch, str(message.id))
        return reply

    def sent(self, reply: Any) -> None:
        """Notes that answers are sent."""
        message = reply.message
        for answer in message.root if isinstance(message, Answered) else [message]:
            if isinstance(answer, JSONRPCResponse | JSONRPCError):
                self.unanswered.discard(str(answer.id))

    async def _open_batch(self, text: str) -> bool:
        """Returns whether a line is a batch, whose messages then follow; refuses the others."""
        if not self._is_batching or not (items := _items(text)):
            return False
        batch = Batch(set(), [])
        for item in items:
            message = _message_of(item)
            if isinstance(message, ErrorData):
                batch.answers.append(_refusal(item, message))
                continue
            self._messages.append(item)
            if isinstance(message, JSONRPCRequest):
                batch.ids.add(str(message.id))
        self._batches.append(batch)
        if not batch.ids and (answers := self._answered(batch, "")):
            await self._reply(answers)
        return True

    def _answered(self, batch: Batch, id: str) -> Any:
        """Returns the answers to a batch if the request with this id was the last one."""
        batch.ids.discard(id)
        if batch.ids:
            return None
        self._batches.remove(batch)
        return SessionMessage(Answered(batch.answers)) if batch.answers else None  # type: ignore[arg-type]

    async def _note(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self.unanswered.add(str(message.id))
            if message.method == "initialize":
                self._is_batching = (message.params or {}).get("protocolVersion") == BATCHING
        elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            # The SDK answers no cancelled request.
            id = str((message.params or {}).get("requestId"))
            self.unanswered.discard(id)
            for batch in [batch for batch in self._batches if id in batch.ids]:
                if answers := self._answered(batch, id):
                    await self._reply(answers)

    def _read(self, descriptor: int, remainder: bytes) -> None:
        with suppress(RuntimeError):  # The event loop is closed, because the program ends.
            self._read_lines(descriptor, remainder)

    def _read_lines(self, descriptor: int, remainder: bytes) -> None:
        tail = b""
        parts: list[bytes] = []
        while chunk := remainder or chunk_of(descriptor):
            remainder = b""
            head, newline, chunk = chunk.partition(b"\n")
            parts.append(head)
            if not newline:
                continue
            *lines, tail = [b"".join(parts), *chunk.split(b"\n")]
            parts = [tail]
            for line in lines:
                self._put(line)
        self._put(b"".join(parts))
        self._put(None)

    def _put(self, line: bytes | None) -> None:
        """Queues a line as soon as there is room. Raises `RuntimeError` if the program ends."""
        self._room.acquire()
        self._loop.call_soon_threadsafe(self._queue.put_nowait, line)


def _repaired(line: bytes) -> str:
    """Returns a line without a byte order mark and halves of characters, as of a cut emoji."""
    text = line.decode("utf-8", "replace").removeprefix("\ufeff")
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _HALF.sub(lambda match: "\\ufffd" if match[1] else match[0], text)


_INVALID_ID = ErrorData(
    code=INVALID_REQUEST, message="the id of a request must be a string or an integer"
)


def _problem(error: ValidationError) -> ErrorData:
    for problem in error.errors(include_url=False):
        if problem["type"] == "json_invalid":
            return ErrorData(code=PARSE_ERROR, message=f"not valid JSON: {problem['ctx']['error']}")
    return ErrorData(code=INVALID_REQUEST, message="not a JSON-RPC message")


def _message_of(text: str) -> JSONRPCMessage | ErrorData:
    """Returns the message that a text is, or the reason why it is none."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        # The SDK takes a request with an invalid id for a notification.
        is_request = isinstance(message, JSONRPCNotification) and "id" in loads(text)
    except ValidationError as error:
        return _problem(error)
    except DataError as error:
        return ErrorData(code=PARSE_ERROR, message=f"not valid JSON: {error}")
    return _INVALID_ID if is_request else message


def _refusal(text: str, problem: ErrorData) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=_id_of(text), error=problem)


def _items(text: str) -> list[str]:
    """Returns the texts of the items of a JSON list, however deeply they are nested.

    Returns an empty list for other text.
    """
    if not (text := text.strip()).startswith("["):
        return []
    try:
        loads(text)
    except DataError as error:
        if not error.is_well_formed:
            return []
    commas, level = [0], 0
    for mark in _ITEM_MARK.finditer(text):
        level += (mark[0] in "[{") - (mark[0] in "]}")
        if level == 1 and mark[0] == ",":
            commas.append(mark.start())
    ends = [*commas[1:], len(text) - 1]
    items = [text[start + 1 : end].strip() for start, end in zip(commas, ends, strict=True)]
    return items if items[0] else []


def _id_of(line: str) -> Any:
    """Returns the id of an invalid request; None if it has none, or the line is not JSON."""
    try:
        message = loads(line)
    except DataError as error:
        message = {"id": _outer_id(line) if error.is_well_formed else None}
    number = message.get("id") if isinstance(message, dict) else None
    is_id = isinstance(number, str | int) and not isinstance(number, bool)
    return number if is_id and str(number).isprintable() else None


def _outer_id(line: str) -> str | int | None:
    """Returns the id of a message that is nested too deeply to be parsed."""
    level = 0
    for mark in _MARK.finditer(line):
        level += (mark[0] in "[{") - (mark[0] in "]}")
        if level == 1 and mark["number"]:
            return int(mark["number"])
        if level == 1 and mark["text"] is not None:
            return mark["text"]
    return None
