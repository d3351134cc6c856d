"""A model on this machine that plays a script, in the formats of the services that clients speak.

It answers a request by its history alone: the first call of the script that was not made yet, then
a text. So repeated and parallel requests do no harm. Each request is kept, as evidence of
everything that a client gives to its model.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of a tool, which is named by the end of its name."""

    tool: str
    arguments: Json


@dataclass(frozen=True)
class Request:
    """A request of a client, in the terms that all formats share."""

    path: str
    body: Json
    tools: tuple[str, ...]
    called: tuple[str, ...]
    """The names of the tools that were called so far."""
    results: tuple[str, ...]
    """The results of these calls, as JSON."""

    @property
    def text(self) -> str:
        """Returns everything that the model reads, other than the tools."""
        return json.dumps({key: self.body[key] for key in self.body if key not in _TOOLS})


_TOOLS = ("tools", "toolConfig", "tool_choice")


@dataclass
class Model:
    """The script, and the requests that came."""

    calls: Sequence[Call] = ()
    search: Call | None = None
    """The call that lists the tools of servers, for clients that list them only on demand."""
    text: str = "Done."
    when_asked: Call | None = None
    """The call that answers the reminder of `hook.capture`."""
    requests: list[Request] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    address: str = ""

    def reply(self, request: Request) -> Call | str:
        """Returns the answer to a request."""
        self.requests.append(request)
        if not request.tools:
            return self.text
        asked = self.when_asked
        if asked and REMINDER in request.text and not _among(asked.tool, request.called):
            return self._call(asked, request)
        search, called = self.search, request.called
        if search and _among(search.tool, request.tools):
            times = called.count(search.tool)
            if times < _SEARCHES and not _among(self.calls[0].tool, request.tools):
                time.sleep(times)  # the server may still be starting
                return search
            called = tuple(name for name in called if name != search.tool)
        if len(called) < len(self.calls):
            return self._call(self.calls[len(called)], request)
        return self.text

    def _call(self, call: Call, request: Request) -> Call | str:
        names = _among(call.tool, request.tools)
        if not names:
            self.problems.append(f"no tool `{call.tool}` among {', '.join(request.tools)}")
            return self.text
        return Call(names[0], call.arguments)


_SEARCHES = 5
REMINDER = "a reminder that the user turned on"


def _among(tool: str, names: Sequence[str]) -> list[str]:
    """Returns the names that are a tool's own, or end with it after a server's name."""
    return [name for name in names if re.search(rf"(?:^|[^A-Za-z]){re.escape(tool)}$", name)]


@contextmanager
def serving(model: Model) -> Iterator[Model]:
    """Serves a model on a free port of this machine."""

    class Handler(_Handler):
        model_ = model

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of clients."""

    protocol_version = "HTTP/1.1"
    model_: Model

    def log_message(self, *_: Any) -> None:
        """Print nothing: the requests are kept in the model."""

    def do_GET(self) -> None:
        """Answer with a list of one model."""
        self._send({"object": "list", "data": [{"id": "mock", "object": "model"}], "models": []})

    def do_HEAD(self) -> None:
        """Answer that the service is there."""
        self._send({})

    def do_POST(self) -> None:
        """Answer as the service of the path does."""
        length = int(self.headers.get("content-length") or 0)
        try:
            body = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            self._send({"input_tokens": 100, "totalTokens": 100})
        elif path.endswith("/messages"):
            reply = self.model_.reply(_of_anthropic(path, body))
            self._events(_as_anthropic(reply), body.get("stream"), _message(reply))
        elif path.endswith("/responses"):
            reply = self.model_.reply(_of_responses(path, body))
            self._events(_as_responses(reply), True, {})
        elif path.endswith("/chat/completions"):
            reply = self.model_.reply(_of_chat(path, body))
            self._events(_as_chat(reply), body.get("stream"), _completion(reply))
        elif "generateContent" in path or "GenerateContent" in path:
            reply = self.model_.reply(_of_gemini(path, body))
            self._events([("", _as_gemini(reply))], "stream" in path, _as_gemini(reply))
        else:
            self._send({})

    def _send(self, data: Json) -> None:
        raw = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _events(self, events: list[tuple[str, Json | str]], stream: Any, whole: Json) -> None:
        if not stream:
            self._send(whole)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in events:
            line = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write((f"event: {name}\n" if name else "").encode())
            self.wfile.write(f"data: {line}\n\n".encode())
        self.close_connection = True


# Anthropic's messages.


def _of_anthropic(path: str, body: Json) -> Request:
    blocks = [
        block
        for message in body.get("messages", ())
        for block in (message["content"] if isinstance(message["content"], list) else ())
    ]
    results = [
        json.dumps(block.get("content")) for block in blocks if block["type"] == "tool_result"
    ]
    # Claude Code lists a server's tools when its own tool ToolSearch is asked for them.
    listed = (name for result in results for name in re.findall(r"\bmcp__\w+", result))
    declared = (tool.get("name", "") for tool in body.get("tools") or ())
    return Request(
        path,
        body,
        tools=tuple(dict.fromkeys((*declared, *listed))),
        called=tuple(block["name"] for block in blocks if block["type"] == "tool_use"),
        results=tuple(results),
    )


def _block(reply: Call | str) -> tuple[Json, Json, Json]:
    """Returns a block, its empty form and the difference of them."""
    if isinstance(reply, str):
        block = {"type": "text", "text": reply}
        return block, {"type": "text", "text": ""}, {"type": "text_delta", "text": reply}
    block = {"type": "tool_use", "id": _id("toolu_"), "name": reply.tool}
    raw = json.dumps(reply.arguments)
    return (
        {**block, "input": reply.arguments},
        {**block, "input": {}},
        {"type": "input_json_delta", "partial_json": raw},
    )


def _message(reply: Call | str) -> Json:
    return {
        "id": _id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": "mock",
        "content": [_block(reply)[0]],
        "stop_reason": "end_turn" if isinstance(reply, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }


def _as_anthropic(reply: Call | str) -> list[tuple[str, Json | str]]:
    message = _message(reply)
    _, empty, delta = _block(reply)
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    begun = {**message, "content": [], "stop_reason": None}
    events: list[Json] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


# OpenAI's responses.


def _of_responses(path: str, body: Json) -> Request:
    items = [item for item in body.get("input") or () if isinstance(item, dict)]
    kinds = ("function_call", "custom_tool_call", "tool_search_call")
    names: list[str] = []
    # Codex lists the tools of servers when its own tool `tool_search` is asked for them.
    searched = [tool for item in items for tool in item.get("tools") or ()]
    for tool in (*(body.get("tools") or ()), *searched):
        within = tool.get("tools") if tool.get("type") == "namespace" else None
        if within is None:
            names.append(tool.get("name", tool.get("type", "")))
        else:
            names += [f"{tool['name']}\0{part['name']}" for part in within]
    return Request(
        path,
        body,
        tools=tuple(names),
        called=tuple(
            item.get("name", "tool_search") for item in items if item.get("type") in kinds
        ),
        results=tuple(
            json.dumps(item.get("output"))
            for item in items
            if str(item.get("type", "")).endswith("_call_output")
        ),
    )


def _as_responses(reply: Call | str) -> list[tuple[str, Json | str]]:
    if isinstance(reply, str):
        part = {"type": "output_text", "text": reply, "annotations": []}
        item: Json = {"type": "message", "role": "assistant", "id": _id("msg_"), "content": [part]}
    else:
        space, _, name = reply.tool.rpartition("\0")
        item = {"id": _id("fc_"), "call_id": _id("call_"), "name": name, "status": "completed"}
        if space:
            item["namespace"] = space
        if name == "tool_search":
            item |= {"type": "tool_search_call", "execution": "client"}
            item["arguments"] = reply.arguments
        elif "raw" in reply.arguments:
            item |= {"type": "custom_tool_call", "input": reply.arguments["raw"]}
        else:
            item |= {"type": "function_call", "arguments": json.dumps(reply.arguments)}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 20,
    }
    response: Json = {
        "id": _id("resp_"),
        "object": "response",
        "status": "completed",
        "model": "mock",
    }
    response |= {"output": [item], "usage": usage}
    begun = {**response, "status": "in_progress", "output": []}
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    return [(event["type"], event) for event in events]


# OpenAI's chat completions.


def _of_chat(path: str, body: Json) -> Request:
    messages = body.get("messages") or ()
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    return Request(
        path,
        body,
        tools=tuple(tool["function"]["name"] for tool in body.get("tools") or ()),
        called=tuple(call["function"]["name"] for call in calls),
        results=tuple(
            json.dumps(message["content"]) for message in messages if message["role"] == "tool"
        ),
    )


def _completion(reply: Call | str, kind: str = "message") -> Json:
    answer: Json = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
    if not isinstance(reply, str):
        function: Json = {"name": reply.tool, "arguments": json.dumps(reply.arguments)}
        answer["tool_calls"] = [
            {"index": 0, "id": _id("call_"), "type": "function", "function": function}
        ]
    reason = "stop" if isinstance(reply, str) else "tool_calls"
    return {
        "id": _id("chatcmpl-"),
        "object": "chat.completion" + (".chunk" if kind == "delta" else ""),
        "created": int(time.time()),
        "model": "mock",
        "choices": [{"index": 0, kind: answer, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }


def _as_chat(reply: Call | str) -> list[tuple[str, Json | str]]:
    return [("", _completion(reply, "delta")), ("", "[DONE]")]


# Gemini.


def _of_gemini(path: str, body: Json) -> Request:
    parts = [part for content in body.get("contents") or () for part in content.get("parts") or ()]
    declared = [
        function
        for tool in body.get("tools") or ()
        for function in tool.get("functionDeclarations") or ()
    ]
    return Request(
        path,
        body,
        tools=tuple(function["name"] for function in declared),
        called=tuple(part["functionCall"]["name"] for part in parts if "functionCall" in part),
        results=tuple(
            json.dumps(part["functionResponse"]) for part in parts if "functionResponse" in part
        ),
    )


def _as_gemini(reply: Call | str) -> Json:
    part: Json = {"text": reply}
    if not isinstance(reply, str):
        part = {"functionCall": {"name": reply.tool, "args": reply.arguments}}
    content = {"role": "model", "parts": [part]}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 10,
            "totalTokenCount": 20,
        },
        "modelVersion": "mock",
    }


def _id(prefix: str) -> str:
    """Returns an id that no other answer has."""
    return prefix + secrets.token_hex(8)
