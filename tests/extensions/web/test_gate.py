"""Only the browser of the user who started the viewer comes in."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from importlib.resources import files
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from starlette.requests import Request

from mimo.call import Call
from mimo.extensions.web import gate, static_files
from mimo.extensions.web.serving import leading_to
from mimo.operations import loopback
from mimo.server.tools import ICON
from tests.extensions.web.requests import OWN, PORT, TOKEN, Client, needs_node, run_script

FILES = ("/", "/static/main.js", "/favicon.ico")
ANSWERS = ("/api/list", "/api/review", "/api/none", "/api/events")
PAGES = (*FILES, *ANSWERS)


@pytest.fixture
def client(call: Call) -> Client:
    return Client(call)


@pytest.mark.parametrize("path", [*FILES, *ANSWERS[:2]])
def test_the_page_with_the_token_is_answered(client: Client, path: str) -> None:
    assert client.get(path).status == 200


@pytest.mark.attack("web")
@pytest.mark.parametrize("path", ANSWERS)
@pytest.mark.parametrize("token", [None, "", "x", f"{TOKEN}x", TOKEN.upper(), "\xe9"])
def test_nothing_is_answered_without_the_token(
    client: Client, path: str, token: str | None
) -> None:
    assert client.get(path, x_mind_token=token).status == 401


@pytest.mark.attack("web")
@pytest.mark.parametrize("path", ANSWERS)
def test_a_token_in_the_address_or_a_cookie_opens_nothing(client: Client, path: str) -> None:
    """Both reach other programs: an address its logs, a cookie every port of the machine."""
    given = {"x_mind_token": None, "cookie": f"mind_{PORT}={TOKEN}; x-mind-token={TOKEN}"}
    assert client.get(f"{path}?token={TOKEN}&in={TOKEN}", **given).status == 401


@pytest.mark.attack("web")
@pytest.mark.parametrize("path", PAGES)
def test_no_answer_sets_a_cookie(client: Client, path: str) -> None:
    assert "set-cookie" not in client.get(path, x_mind_token="x").headers


@pytest.mark.attack("web")
@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "host",
    [
        *(None, "", "evil.example", f"evil.example:{PORT}", "127.0.0.1", f"[::1]:{PORT}"),
        *(f"127.0.0.1.evil.example:{PORT}", f"0.0.0.0:{PORT}", f"127.0.0.1:{PORT + 1}"),
    ],
)
def test_another_host_is_refused(client: Client, path: str, host: str | None) -> None:
    assert client.get(path, host=host).status == 403


@pytest.mark.attack("web")
@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        f"https://{OWN}",
        f"http://localhost:{PORT}",
        "http://127.0.0.1",
    ],
)
def test_a_request_of_another_site_is_refused(client: Client, path: str, origin: str) -> None:
    assert client.get(path, origin=origin).status == 403


@pytest.mark.attack("web")
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_loads_nothing_even_with_the_token(client: Client, site: str) -> None:
    for path in PAGES:
        assert client.get(path, sec_fetch_site=site, sec_fetch_mode="no-cors").status == 403


@pytest.mark.parametrize("site", ["none", "cross-site"])
def test_an_address_that_is_typed_or_followed_shows_the_page_alone(
    client: Client, site: str
) -> None:
    opened = {"sec_fetch_site": site, "sec_fetch_mode": "navigate", "x_mind_token": None}
    for path in ("/", "/timeline", "/graph", "/memory/k3v7mq", "/memory/a%2Fb"):
        answer = client.get(path, **opened)
        assert (answer.status, answer.body) == (200, static_files()["index.html"])
    for path in (*FILES[1:], *ANSWERS):
        assert client.get(path, **opened).status == 403
    for path in ("/main.js", "/memories"):
        assert client.get(path).status == 404


def test_localhost_is_the_same_machine(client: Client) -> None:
    assert client.get("/", host=f"localhost:{PORT}").status == 200


def test_browsers_leave_out_the_port_80() -> None:
    async def app(*_: object) -> None: ...

    def check(port: int, host: str) -> None:
        headers = [(b"host", host.encode()), (b"origin", f"http://{host}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
        gate.Gate(app, port=port, token=TOKEN).check(Request(scope))

    check(80, "127.0.0.1")
    check(80, "localhost:80")
    with pytest.raises(loopback.Refused):
        check(PORT, "127.0.0.1")


@pytest.mark.attack("web")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": None}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "none"}, 403),
        ({"x_mind_token": None}, 401),
        ({"x_mind_token": "x"}, 401),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"content_length": None}, 413),
        ({"content_length": str(gate.MOST_BODY + 1)}, 413),
        ({"content_length": "-1"}, 413),
        ({"content_length": "9" * 5_000}, 413),
        ({"host": f"evil.example:{PORT}"}, 403),
    ],
)
def test_a_change_needs_all_proofs(
    client: Client, headers: dict[str, str | None], status: int
) -> None:
    assert client.decide({"action": "undo", "id": "x"}, **headers).status == status


@pytest.mark.attack("web")
@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    answer = client.request(method, "/api/decide", origin=f"http://{OWN}")
    assert answer.status == 405
    assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("path", ["/", "/static/x", "/api/list", "/api/none", "/x"])
@pytest.mark.parametrize("token", [None, TOKEN])
def test_every_answer_has_the_headers(client: Client, path: str, token: str | None) -> None:
    headers = client.get(path, x_mind_token=token).headers
    assert {name: headers[name] for name in gate.HEADERS} == gate.HEADERS
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.attack("web")
@pytest.mark.parametrize(
    "name", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", ".", "main.js/..", "", "__init__.py"]
)
def test_only_files_of_the_page_are_served(client: Client, name: str) -> None:
    assert client.get(f"/static/{name}").status == 404


PAGE = """
const stored = new Map(KEPT ? [["mind-token", KEPT]] : []);
globalThis.localStorage = {
  getItem: (name) => stored.get(name) ?? null,
  setItem: (name, value) => stored.set(name, value),
};
globalThis.location = { hash: `#in=${ARRIVED}` };
globalThis.history = { replaceState: (state, title, hash) => (location.hash = hash) };
globalThis.window = { addEventListener() {} };
const { Server } = await import("./server.js");
"""
"""The parts of a browser that the page uses, and the class that asks the server."""


@needs_node
@pytest.mark.parametrize(
    ("arrived", "kept", "after"),
    [("right", None, "right"), ("wrong", "right", "right"), ("right", "old", "right")],
)
def test_a_token_is_kept_if_it_is_accepted(
    tmp_path: Path, arrived: str, kept: str | None, after: str
) -> None:
    given = f"const [ARRIVED, KEPT] = {json.dumps([arrived, kept])};"
    script = """
        globalThis.fetch = async (url, { headers }) => headers["x-mind-token"] === "right"
          ? new Response("{}") : new Response("Open the URL", { status: 401 });
        const answer = await new Server().overview().then(() => 200, (error) => error.status);
        console.log(JSON.stringify([answer, stored.get("mind-token"), location.hash]));"""

    answer = run_script(given + PAGE + script, tmp_path)

    assert answer == [200 if arrived == "right" else 401, after, "/"]


@needs_node
@pytest.mark.parametrize(("status", "state"), [(503, "blind"), (500, "lost")])
def test_too_many_pages_are_not_taken_for_a_stopped_server(
    tmp_path: Path, status: int, state: str
) -> None:
    script = f"""
        globalThis.fetch = async () => new Response("", {{ status: {status} }});
        new Server().listen(() => {{}}, (state) => {{
          console.log(JSON.stringify(state));
          process.exit();
        }});"""

    given = "const [ARRIVED, KEPT] = ['right', null];"
    assert run_script(given + PAGE + script, tmp_path) == state


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)])
def test_a_signal_ends_the_viewer(project: Path, number: signal.Signals, status: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mimo", "web"],
        cwd=project,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdout
        assert "#in=" in process.stdout.readline()
        assert process.stderr
        assert "Ctrl-C stops it" in process.stderr.readline()
        process.send_signal(number)
        _, message = process.communicate(timeout=30)

    assert (process.returncode, "Traceback" in message) == (status, False)


def test_each_run_has_another_token() -> None:
    first, second = loopback.new_token(), loopback.new_token()
    assert first != second
    assert len(first) >= 32


@pytest.mark.attack("web")
def test_the_file_that_opens_the_browser_is_the_users_alone(tmp_path: Path, monkeypatch) -> None:
    """Its name is among the arguments of the browser, which other users can read."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    url = f"http://{OWN}{gate.ENTRY}{TOKEN}"
    with leading_to(url) as address:
        file = Path(unquote(urlsplit(address).path))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert TOKEN not in address
        assert f'url={url}"' in file.read_text("utf-8")
    assert not file.exists()


def test_other_folders_are_watched_after_a_change(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current, watched = [tmp_path], []

    def changes(folders: list[Path], *, stop: Event, **_: object) -> Iterator[frozenset[Path]]:
        watched.append(folders)
        if len(watched) == 2:
            stop.set()
            return
        yield frozenset()
        current.append(tmp_path / "docs")  # An include setting names them now.
        yield frozenset()

    monkeypatch.setattr("mimo.project.watch.changes", changes)
    client.changes._watch(lambda: [*current])

    assert watched == [[tmp_path], [tmp_path, tmp_path / "docs"]]


def test_a_folder_that_comes_back_is_watched_again(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, store = tmp_path / "user", tmp_path / "store"
    watched = []

    def changes(folders: list[Path], *, stop: Event, **_: object) -> Iterator[frozenset[Path]]:
        watched.append(folders)
        match len(watched):
            case 1:
                store.rename(tmp_path / "away")
                raise FileNotFoundError
            case 2:
                yield frozenset()
                (tmp_path / "away").rename(store)
                yield frozenset()
            case 3:
                yield frozenset({store})  # It was removed and made again.
            case _:
                stop.set()

    monkeypatch.setattr("mimo.project.watch.changes", changes)
    home.mkdir()
    store.mkdir()
    client.changes._watch(lambda: [path for path in (home, store) if path.is_dir()])

    assert watched == [[home, store], [home], [home, store], [home, store]]


def test_changes_are_reported_until_the_end(client: Client) -> None:
    async def events() -> list[bytes]:
        stream = client.changes.stream()
        received = [await anext(stream)]
        client.changes._announce("changed")
        received.append(await anext(stream))
        client.changes.close()
        return received + [chunk async for chunk in stream]

    ready, changed = asyncio.run(events())
    assert b"event: ready" in ready
    assert changed == b"event: changed\ndata: 1\n\n"


def test_each_stream_reports_that_nothing_is_watched(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changes(*_: object, **__: object) -> Iterator[frozenset[Path]]:
        raise OSError("no more watches")

    monkeypatch.setattr("mimo.project.watch.changes", changes)
    client.changes._watch(list)  # It ends before the first page is opened.

    async def events() -> list[bytes]:
        stream = client.changes.stream()
        received = [await anext(stream), await anext(stream)]
        await stream.aclose()
        return received

    for _ in range(2):
        assert asyncio.run(events())[1] == b"event: blind\ndata: 1\n\n"


def test_too_many_streams_are_refused(client: Client) -> None:
    client.changes._waiting.update(asyncio.Queue() for _ in range(24))
    assert client.get("/api/events").status == 503


def test_a_websocket_is_not_answered(client: Client) -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    async def connect() -> None:
        await client.app({"type": "websocket"}, receive, send)

    asyncio.run(connect())
    assert sent == []


def test_the_token_is_not_in_the_page(client: Client) -> None:
    for path in FILES:
        assert TOKEN.encode() not in client.get(path).body


def test_the_icon_of_the_server_is_that_of_the_viewer() -> None:
    drawn = files("mimo.extensions.web").joinpath("static/icon.svg").read_text("utf-8").strip()
    assert unquote(ICON.src).removeprefix("data:image/svg+xml,") == drawn
