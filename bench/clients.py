"""Light clients: JSON-RPC lines on a pipe, and HTTP connections that are kept open."""

from __future__ import annotations

import http.client
import json
import subprocess
from pathlib import Path
from typing import Any

from bench.soak.process import until

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
_READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}

_LARGE = 1_000_000


def outcome(answer: Any) -> str:
    """Returns `ok`, the code of a failed tool, or the number of an error of the protocol."""
    if "error" in answer:
        return str(answer["error"]["code"])
    failed = answer["result"].get("_meta", {}).get("mind/error")
    return str(failed["error"]["code"]) if failed else "ok"


class Pipe:
    """A client of `mind mcp`; one thread uses it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Opens the session of a process that was just started."""
        self.process = process
        self._next = 0
        self.ask("initialize", HELLO)
        self.send(_READY)

    def close(self) -> None:
        """Nothing is to be closed beside the process."""

    def line(self, data: bytes) -> None:
        """Sends a line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        """Sends a message that has no answer."""
        self.line(json.dumps(message).encode())

    def answer(self, wanted: Any) -> Any:
        """Returns the answer to a request; notifications and other answers are skipped."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            if "method" not in answer and answer.get("id") == wanted:
                return answer
        raise SystemExit("the server closed its output")

    def ask(self, method: str, params: Any) -> Any:
        """Returns the answer to a request."""
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self.send(message)
        return self.answer(self._next)

    def cancelled(self, method: str, params: Any) -> str:
        """Returns the outcome of a request that is cancelled at once.

        It may be answered nevertheless. A ping after it is answered in any case.
        """
        self._next += 1
        number = self._next
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        given = {"requestId": number}
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": given})
        return outcome(self.ask("ping", {}))

    def raw(self, data: bytes) -> str:
        """Returns the outcome of a line that is not a message."""
        self.line(data)
        return outcome(self.answer(None))


class Http:
    """A client of `mind mcp --http` with a session; one thread uses it."""

    def __init__(self, port: int, token: str, project: str = "") -> None:
        """Opens the connection and the session, of the server's own project if none is named."""
        self._port = port
        self._path = f"/mcp/{project}".rstrip("/")
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        self._next = 0
        self._connection = self._connected()
        self.open()

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)

    def _exchange(
        self, body: bytes | None, method: str = "POST", **headers: str
    ) -> tuple[int, bytes]:
        given = self._headers | headers
        try:
            self._connection.request(method, self._path, body, given)
            response = self._connection.getresponse()
        except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
            if len(body or b"") > _LARGE:
                raise
            self._connection.close()  # The server closed it, because it was not used for long.
            self._connection.request(method, self._path, body, given)
            response = self._connection.getresponse()
        if session := response.getheader("mcp-session-id"):
            self._headers["mcp-session-id"] = session
        return response.status, response.read()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def open(self) -> None:
        """Opens a session."""
        self._headers.pop("mcp-session-id", None)
        self._headers.pop("mcp-protocol-version", None)
        assert outcome(self.ask("initialize", HELLO)) == "ok"
        self._headers["mcp-protocol-version"] = HELLO["protocolVersion"]  # type: ignore[assignment]
        self._exchange(json.dumps(_READY).encode())

    def end(self) -> str:
        """Ends the session; returns the status of the answer."""
        return str(self._exchange(None, "DELETE")[0])

    def ask(self, method: str, params: Any) -> Any:
        """Returns the answer to a request."""
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        _, data = self._exchange(json.dumps(message).encode())
        for line in data.splitlines():
            if line.startswith((b"data: ", b"{")):
                answer = json.loads(line.removeprefix(b"data: "))
                if answer.get("id") == self._next:
                    return answer
        raise SystemExit(f"no answer to {method}: {data[:300]!r}")

    def cancelled(self, method: str, params: Any) -> str:
        """Returns `ok` after a request that is cancelled, and whose connection is closed."""
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self._connection.request("POST", self._path, json.dumps(message).encode(), self._headers)
        self._connection.close()
        self._connection = self._connected()
        given = {"requestId": self._next}
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": given}
        return "ok" if self._exchange(json.dumps(note).encode())[0] == 202 else "not accepted"

    def raw(self, data: bytes) -> str:
        """Returns the status of the answer to any body. The connection is opened again."""
        try:
            status = self._exchange(data)[0]
        except OSError:
            status = 0  # The server closed the connection before it had all of the body.
        self._connection.close()
        self._connection = self._connected()
        return str(status)

    def foreign(self) -> str:
        """Returns the statuses for a wrong token, an unknown session and an unknown project."""
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}'
        first = self._exchange(body, Authorization="Bearer wrong-token-wrong")[0]
        kept = self._headers["mcp-session-id"]
        second = self._exchange(body, **{"mcp-session-id": "0" * 32})[0]
        third = self._exchange(body, **{"X-Mind-Project": "missing"})[0]
        self._headers["mcp-session-id"] = kept
        return f"{first} {second} {third}"


def token_of(home: Path) -> str:
    """Returns the token of a server's clients."""
    return (home / "http-token").read_text(encoding="ascii").strip()


def port_of(log: Path) -> int:
    """Returns the port of a server, as soon as its output in a file names it."""
    until(lambda: "listening on" in log.read_text(), 3600, "it listens")
    return int(log.read_text().partition("127.0.0.1:")[2].partition("/")[0])
