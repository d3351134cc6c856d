"""Standard input as the SDK's transport reads it, one JSON-RPC message a line.

The SDK's own reader drops a line that is not a message, so that its client waits for an answer for
ever, and it can't be stopped while it waits for one. This one answers such a line with an error,
and ends with the program.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from threading import Thread
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

Reply = Callable[[SessionMessage], Awaitable[None]]

CHUNK = 1 << 16
_WAITING = 16
"""So many lines are read ahead."""


class Lines:
    """The lines of a file that are JSON-RPC messages, as an asynchronous iterator."""

    def __init__(self, descriptor: int, reply: Reply) -> None:
        """Starts reading; `reply` sends the errors for lines that are not messages."""
        self._reply = reply
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)
        self._loop = asyncio.get_running_loop()
        # A daemon: it may wait for input that never comes when the program ends.
        Thread(target=self._read, args=(descriptor,), name="standard input", daemon=True).start()

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> str:
        """Returns the next message."""
        while (line := await self._queue.get()) is not None:
            text = line.decode("utf-8", "replace")
            if not text.strip():
                continue
            try:
                jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValidationError as error:
                await self._reply(SessionMessage(_refusal(text, error)))
            else:
                return text
        raise StopAsyncIteration

    def _read(self, descriptor: int) -> None:
        rest = b""
        parts: list[bytes] = []
        while chunk := _chunk(descriptor):
            head, newline, chunk = chunk.partition(b"\n")
            parts.append(head)
            if not newline:
                continue
            *lines, rest = [b"".join(parts), *chunk.split(b"\n")]
            parts = [rest]
            for line in lines:
                self._put(line)
        self._put(b"".join(parts))
        self._put(None)

    def _put(self, line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop).result()


def _chunk(descriptor: int) -> bytes:
    """Returns some bytes, or none at the end of the input or if it can't be read."""
    try:
        return os.read(descriptor, CHUNK)
    except OSError:
        return b""


def diverted() -> int:
    """Returns a private descriptor of standard input, which itself becomes empty.

    A program that is started in between would read the client's messages otherwise.
    """
    private = os.dup(sys.stdin.fileno())
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, sys.stdin.fileno())
    os.close(empty)
    return private


def _refusal(line: str, error: ValidationError) -> JSONRPCError:
    is_json = all(one["type"] != "json_invalid" for one in error.errors(include_url=False))
    code, message = (
        (INVALID_REQUEST, "not a JSON-RPC message") if is_json else (PARSE_ERROR, "not valid JSON")
    )
    return JSONRPCError(jsonrpc="2.0", id=_id_of(line), error=ErrorData(code=code, message=message))


_EARLY = re.compile(r'\s*\{[^{}\[\]]*?"id"\s*:\s*(-?\d{1,15}|"[^"\\]{0,200}")\s*[,}]')
_LATE = re.compile(r'[,{]\s*"id"\s*:\s*(-?\d{1,15}|"[^"\\]{0,200}")\s*\}\s*\Z')
_END = 300


def _id_of(line: str) -> Any:
    """Returns the id of the request that a line was to be, or None if it can't be known."""
    try:
        message = json.loads(line)
        found = message.get("id") if isinstance(message, dict) else None
    except RecursionError:
        # Whole but too deep: the last brace closes the message.
        late = _LATE.search(line[-_END:])
        found = json.loads(late[1]) if late else _early(line)
    except ValueError:
        found = _early(line)
    is_id = isinstance(found, str | int) and not isinstance(found, bool)
    return found if is_id and str(found).isprintable() else None


def _early(line: str) -> Any:
    match = _EARLY.match(line)
    return json.loads(match[1]) if match else None
