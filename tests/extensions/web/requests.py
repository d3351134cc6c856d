"""Requests to the viewer without a network: the application is called as a server calls it."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from mimo.call import Call, Caller, Surface
from mimo.extensions.web import static_files
from mimo.extensions.web.app import Changes, Viewer

PORT = 8123
TOKEN = "the-token"
OWN = f"127.0.0.1:{PORT}"

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


def run_script(script: str, folder: Path) -> Any:
    """Returns the JSON that a script prints, which may import the modules of the page."""
    (folder / "package.json").write_text('{"type": "module"}')
    for name, content in static_files().items():
        (folder / name).write_bytes(content)
    line = ["node", "--input-type=module", "-e", script]
    return json.loads(subprocess.run(line, cwd=folder, check=True, capture_output=True).stdout)


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Returns its JSON."""
        return json.loads(self.body)


class Client:
    """A browser of the user, unless a request is given other headers; None leaves one out."""

    def __init__(self, call: Call) -> None:
        caller = Caller(surface=Surface.CLI)
        self.changes = Changes()
        self.app = Viewer(lambda: call.mind, caller, TOKEN, self.changes).application(PORT)

    def request(
        self, method: str, path: str, *, body: bytes = b"", **headers: str | None
    ) -> Answer:
        given = {
            "host": OWN,
            "x-mind-token": TOKEN,
            "content-length": str(len(body)),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        parts = urlsplit(path)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "headers": [
                (name.encode(), value.encode("latin-1"))
                for name, value in given.items()
                if value is not None
            ],
            "client": ("127.0.0.1", 40000),
            "server": ("127.0.0.1", PORT),
            "scheme": "http",
            "root_path": "",
        }
        return asyncio.run(self._called(scope, body))

    async def _called(self, scope: MutableMapping[str, Any], body: bytes) -> Answer:
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start = next(message for message in sent if message["type"] == "http.response.start")
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(
            start["status"], headers, b"".join(message.get("body", b"") for message in sent)
        )

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.request("GET", path, **headers)  # type: ignore[arg-type]

    def ask(self, name: str, **arguments: object) -> Any:
        """Returns the answer to a query, which must succeed."""
        answer = self.get(f"/api/{name}?args={quote(json.dumps(arguments))}")
        assert answer.status == 200, answer.body
        return answer.json

    def decide(self, decision: object, **headers: str | None) -> Answer:
        """Sends a decision as the page sends it."""
        own: dict[str, str | None] = {
            "origin": f"http://{OWN}",
            "content_type": "application/json",
        }
        body = json.dumps(decision).encode()
        given = {**own, **headers}
        return self.request("POST", "/api/decide", body=body, **given)
