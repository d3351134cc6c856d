"""The start of the MCP server on standard input and output.

Loading the SDK takes most of a second, for which some clients do not wait. Until it is loaded,
requests whose answers depend on no memory are answered from `opening.json`, which `make generate`
records from the SDK's own server. The SDK reads every other message; first the one that opened the
connection, so that it knows the client. A message in an unusual form is also left to the SDK.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from select import select
from typing import Any

from mimo import installation
from mimo.call import Answers
from mimo.call.extensions import extensions
from mimo.call.table import is_on, listed_names
from mimo.data.disk import home_of, working_directory
from mimo.data.loads import loads, loads_or_none
from mimo.errors import MindError, StorageFailed
from mimo.guard.logs import Redacting
from mimo.mind import Mind
from mimo.operations import running
from mimo.operations.listening import Listener, Memory
from mimo.server import OPENING, Mode, chunk_of, log_to_stderr, mode_of, sdk
from mimo.text.tool_names import respelled, spelled

LONGEST = 1 << 14
"""The length of a line that may be answered here."""

AHEAD = 1 << 20
"""The number of bytes that are read ahead for the SDK."""

QUIET_SECONDS = 0.2
"""The time without a request after which the SDK is loaded, before a request needs it."""

POLL_SECONDS = 0.02

PLACE = Path(__file__).with_suffix(".json")

META = "io.modelcontextprotocol/"
VERSION, CAPABILITIES, INFO = f"{META}protocolVersion", f"{META}clientCapabilities", "clientInfo"
ENVELOPE = frozenset({"cacheScope", "resultType", "ttlMs", "_meta"})
"""The fields that only results of the newer protocol have."""

_FREE = ("experimental", "extensions")
"""Capabilities of clients whose fields have any value."""


def main(
    *,
    answers: Answers,
    project: Path | None,
    toolsets: Sequence[str],
    naming: str | None,
    exposure: str | None = None,
) -> None:
    """Serves on standard input and output until the client disconnects.

    `answers` are those to command lines of other processes. Raises `BrokenPipeError` if the client
    reads no answers, and `StorageFailed` if they can't be written.
    """
    log_to_stderr(Redacting("mind: %(message)s"))
    installation.keep()
    logging.getLogger("mind.exposure").setLevel(logging.INFO)
    named = os.environ.get("CLAUDE_PROJECT_DIR")
    start = Path(named) if named else working_directory()
    outside = Mind(home=home_of(os.environ), project=None)
    settings = outside.config
    memory = Memory(lambda: Mind.open(start, project=project), reads_sessions=True)
    is_outside = Mind.open(start, project=project).is_outside

    def move(folders: Sequence[Path]) -> None:
        memory.move(lambda: _among(folders) or Mind.open(start))

    toolsets = toolsets or settings["mcp.toolsets"]
    naming = naming or settings["mcp.tool_names"]
    mode = Mode(exposure) if exposure else mode_of(settings["mcp.exposure"], os.environ)
    opening = Opening(Recording(toolsets, naming, settings.values), is_static=mode is Mode.STATIC)
    listener = Listener(outside.home, memory, answers)
    listener.start()
    listed = running.registered(outside.home, running.Kind.STDIO, memory.root(), outside.now())
    try:
        with listed:
            if not opening.answer():
                return
            sdk.load()
            from mimo.server import stdio

            messages = opening.input, opening.remainder
            rooted = move if is_outside else None
            ended = stdio.run(memory, *messages, rooted, toolsets, naming, mode, settings.values)
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        match error:  # Only the standard output raises an `OSError`: those of calls are answers.
            case BrokenPipeError():
                raise error from errors
            case OSError():
                raise _unwritten(error) from errors
        raise
    finally:
        listener.close()
        memory.close()
    if ended is not None:
        raise KeyboardInterrupt(ended.name)


def _among(folders: Iterable[Path]) -> Mind | None:
    """Returns the memory of the first project around some folders, or else one that is refused."""
    refused = None
    for folder in folders:
        mind = Mind.open(folder)
        try:
            _ = mind.project
        except MindError:
            refused = refused or (None if mind.is_outside else mind)
        else:
            return mind
    return refused


def _unwritten(error: OSError) -> StorageFailed:
    return StorageFailed(f"the answer could not be written: {error.strerror}")


class Recording:
    """The results of requests that depend on no memory, for some toolsets and a spelling."""

    def __init__(
        self, toolsets: Sequence[str], naming: str, settings: Mapping[str, object]
    ) -> None:
        """Reads the generated file. Raises `Invalid` for an unknown toolset."""
        self._data = loads(PLACE.read_bytes())
        self._naming = naming
        tools = self._data["tools"].items()
        toolset_of = {n: tool["toolset"] for n, tool in tools if is_on(tool["setting"], settings)}
        self._names = listed_names(toolset_of, toolsets)
        self._results: Mapping[str, Any] = self._data["results"]

    @property
    def modern(self) -> Sequence[str]:
        """The revisions of the newer protocol."""
        versions: Sequence[str] = self._results["server/discover"]["supportedVersions"]
        return versions

    def initialized(self, version: str) -> Mapping[str, Any] | None:
        """Returns the result of `initialize` for a client that offers a revision, if it is known.

        Another version of the SDK may know more of them.
        """
        if version not in self._data["versions"]:
            return None
        result = self._results["server/discover"]
        fields = {name: result[name] for name in ("capabilities", "instructions")}
        return fields | {
            "protocolVersion": version,
            "serverInfo": result["_meta"][f"{META}serverInfo"],
        }

    def result(self, method: str) -> Mapping[str, Any] | None:
        """Returns the result of a request of the newer protocol; None if it is not known."""
        if method == "tools/list":
            if sorted(extensions()) != self._data["extensions"]:
                return None
            tools = [self._tool(name) for name in self._names]
            return {**self._results[method], "tools": tools}
        return self._results.get(method)

    def _tool(self, name: str) -> Mapping[str, Any]:
        tool = self._data["tools"][name]["tool"]
        description = respelled(tool["description"], self._naming)
        return {**tool, "name": spelled(name, self._naming), "description": description}


class Opening:
    """The first messages of a client on standard input, of which some are answered."""

    def __init__(self, recording: Recording, *, is_static: bool = True) -> None:
        """Takes standard input. Unless the list of tools is static, the SDK answers everything."""
        self._recording = recording
        self._is_static = is_static
        self._is_modern: bool | None = None
        """True after a request of the newer protocol, None before any."""
        self._lines: list[bytes] = []
        self._tail = b""
        self._needs_sdk = not is_static
        self.input = _private_input()

    @property
    def remainder(self) -> bytes:
        """The input that the SDK reads first."""
        return b"".join(line + b"\n" for line in self._lines) + self._tail

    def answer(self) -> bool:
        """Answers requests until the SDK is loaded. Returns False if the client disconnects before.

        Raises `BrokenPipeError` if the client reads no answers, and `StorageFailed` if they can't
        be written.
        """
        if not self._is_static:
            return True
        with ThreadPoolExecutor(1) as loader:
            loading: Future[Any] | None = None
            while loading is None or not loading.done():
                if loading is None and self._needs_sdk:
                    loading = loader.submit(sdk.load)
                if len(self._tail) + sum(map(len, self._lines)) > AHEAD:
                    break
                is_open = self._is_modern is not None
                seconds = POLL_SECONDS if loading else QUIET_SECONDS if is_open else None
                if not select([self.input], [], [], seconds)[0]:
                    self._needs_sdk = True
                elif not self._read():
                    return self._needs_sdk
        return True

    def _read(self) -> bool:
        """Answers what arrived, or keeps it for the SDK. Returns False at the end of the input."""
        chunk = chunk_of(self.input)
        *lines, self._tail = (self._tail + (chunk or b"\n")).split(b"\n")
        for line in lines:
            answer = self._answered(line)
            if answer is not None:
                _write(answer)
            elif line.strip():
                self._lines.append(line)
                self._needs_sdk |= not _is_initialized(line)
        self._needs_sdk |= len(self._tail) > LONGEST
        return bool(chunk)

    def _answered(self, line: bytes) -> bytes | None:
        """Returns the answer to a line; None if the SDK has to read it."""
        message = _message(line)
        if (self._is_modern is None and self._needs_sdk) or not _is_request(message):
            return None
        result = self._result(message["method"], message.get("params", {}))
        if result is None:
            return None
        if self._is_modern is None:
            self._is_modern = message["method"] != "initialize"
            self._lines.append(json.dumps({**message, "id": OPENING}).encode())
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _result(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if method == "initialize":
            is_known = self._is_modern is None and _introduces(params)
            return self._recording.initialized(params["protocolVersion"]) if is_known else None
        meta = params.get("_meta", {})
        if params.keys() - {"_meta"} or not _is_meta(meta):
            return None
        if VERSION in meta:
            is_known = self._is_modern is not False and meta[VERSION] in self._recording.modern
            return self._recording.result(method) if is_known else None
        if self._is_modern is not False or method == "server/discover":
            return None
        result = {} if method == "ping" else self._recording.result(method)
        return result and {key: value for key, value in result.items() if key not in ENVELOPE}


def _message(line: bytes) -> Any:
    """Returns the value of a short line without escaped characters; None for any other."""
    if len(line) > LONGEST or b"\\u" in line:
        return None
    return loads_or_none(line)


def _is_initialized(line: bytes) -> bool:
    message = _message(line)
    return isinstance(message, dict) and message.get("method") == "notifications/initialized"


def _is_request(message: Any) -> bool:
    if not isinstance(message, dict) or message.keys() - {"jsonrpc", "id", "method", "params"}:
        return False
    return (
        message.get("jsonrpc") == "2.0"
        and (isinstance(message.get("id"), str) or type(message.get("id")) is int)
        and isinstance(message.get("method"), str)
        and isinstance(message.get("params", {}), dict)
    )


def _introduces(params: Mapping[str, Any]) -> bool:
    """Returns whether the parameters of `initialize` have the usual form."""
    return (
        params.keys() == {"protocolVersion", "capabilities", "clientInfo"}
        and isinstance(params["protocolVersion"], str)
        and _are_capabilities(params["capabilities"])
        and _is_info(params["clientInfo"])
    )


def _is_meta(meta: Any) -> bool:
    """Returns whether the metadata of a request have the usual form, in either protocol."""
    if not isinstance(meta, dict):
        return False
    own = {key: value for key, value in meta.items() if key.startswith(META)}
    token = meta.get("progressToken", "")
    if not isinstance(token, str) and type(token) is not int:
        return False
    if not own:
        return True
    return (
        {VERSION, CAPABILITIES} <= own.keys() <= {VERSION, CAPABILITIES, f"{META}{INFO}"}
        and isinstance(own[VERSION], str)
        and _are_capabilities(own[CAPABILITIES])
        and (f"{META}{INFO}" not in own or _is_info(own[f"{META}{INFO}"]))
    )


def _is_info(info: Any) -> bool:
    return (
        isinstance(info, dict)
        and {"name", "version"} <= info.keys()
        and "icons" not in info
        and all(isinstance(value, str) for value in info.values())
    )


def _are_capabilities(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(
        isinstance(fields, dict)
        and all(
            isinstance(field, dict)
            if name in _FREE
            else _is_nested(field) or (key == "listChanged" and isinstance(field, bool))
            for key, field in fields.items()
        )
        for name, fields in value.items()
    )


def _is_nested(value: Any) -> bool:
    """Returns whether a value has only objects in it."""
    return isinstance(value, dict) and all(map(_is_nested, value.values()))


# Standard input and output.


def _write(data: bytes) -> None:
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritten(error) from error


def _private_input() -> int:
    """Returns a private descriptor of standard input, which itself becomes empty.

    Otherwise a child process could read the client's messages.
    """
    private = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return private
