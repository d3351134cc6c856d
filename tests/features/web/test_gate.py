"""Only the browser of the user who started the viewer comes in."""

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from mimo.features.web import gate
from mimo.mind import Mind
from tests.features.web.requests import KEYS, OWN, PORT, Client

PAGES = ("/", "/static/main.js", "/api/list", "/api/session", "/api/events")


@pytest.fixture
def client(mind: Mind) -> Client:
    return Client(mind)


@pytest.mark.parametrize("path", PAGES[:4])
def test_the_browser_with_the_cookie_comes_in(client: Client, path: str) -> None:
    assert client.get(path).status == 200


@pytest.mark.attack("web")
@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "cookie", [None, "", f"mind_{PORT}=", f"mind_{PORT}={KEYS.token}", f"mind_1={KEYS.cookie}"]
)
def test_nothing_is_shown_without_the_cookie(client: Client, path: str, cookie: str | None) -> None:
    assert client.get(path, cookie=cookie).status == 401


@pytest.mark.attack("web")
@pytest.mark.parametrize("path", [*PAGES, f"/in/{KEYS.token}"])
@pytest.mark.parametrize(
    "host",
    [
        *(None, "", "evil.example", f"evil.example:{PORT}", "127.0.0.1", f"[::1]:{PORT}"),
        *(f"127.0.0.1.evil.example:{PORT}", f"0.0.0.0:{PORT}", f"127.0.0.1:{PORT + 1}"),
    ],
)
def test_another_host_is_refused(client: Client, path: str, host: str | None) -> None:
    answer = client.get(path, host=host)
    assert answer.status == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.attack("web")
@pytest.mark.parametrize("path", [*PAGES, f"/in/{KEYS.token}"])
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
def test_another_site_loads_nothing_even_with_the_cookie(client: Client, site: str) -> None:
    for path in PAGES:
        assert client.get(path, sec_fetch_site=site).status == 403


def test_a_person_may_type_the_address(client: Client) -> None:
    assert client.get("/", sec_fetch_site="none").status == 200
    assert client.get("/api/list", sec_fetch_site="none").status == 403


def test_localhost_is_the_same_machine(client: Client) -> None:
    assert client.get("/", host=f"localhost:{PORT}").status == 200


def test_the_token_is_exchanged_for_a_strict_cookie(client: Client) -> None:
    answer = client.get(f"/in/{KEYS.token}", cookie=None, sec_fetch_site="none")
    cookie = answer.headers["set-cookie"]
    assert answer.status == 200
    assert f"mind_{PORT}={KEYS.cookie}" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert KEYS.token not in answer.body.decode() + cookie
    assert b"url=/" in answer.body  # The browser leaves the address with the token.


@pytest.mark.attack("web")
@pytest.mark.parametrize("token", ["", "x", KEYS.cookie, KEYS.form, f"{KEYS.token}x", "%00", "é"])
def test_a_wrong_token_gets_no_cookie(client: Client, token: str) -> None:
    answer = client.get(f"/in/{token}", cookie=None)
    assert answer.status in (401, 404)
    assert "set-cookie" not in answer.headers


@pytest.mark.attack("web")
def test_a_ticket_opens_once(client: Client) -> None:
    assert client.get(f"/in/{KEYS.ticket}", cookie=None).status == 200
    assert client.get(f"/in/{KEYS.ticket}", cookie=None).status == 401
    assert client.get(f"/in/{KEYS.token}", cookie=None).status == 200


@pytest.mark.attack("web")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"cookie": None}, 401),
        ({"origin": None}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "none"}, 403),
        ({"x_mind_token": None}, 403),
        ({"x_mind_token": KEYS.cookie}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"content_length": None}, 413),
        ({"content_length": str(gate.MOST_BODY + 1)}, 413),
        ({"content_length": "-1"}, 413),
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


@pytest.mark.parametrize(
    "path", ["/", "/static/x", "/api/list", "/api/none", f"/in/{KEYS.token}", "/x"]
)
@pytest.mark.parametrize("cookie", [None, f"mind_{PORT}={KEYS.cookie}"])
def test_every_answer_has_the_headers(client: Client, path: str, cookie: str | None) -> None:
    headers = client.get(path, cookie=cookie).headers
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


def test_each_run_has_other_secrets() -> None:
    first, second = gate.Keys.new(), gate.Keys.new()
    assert len({*first, *second}) == 8
    assert all(len(secret) >= 32 for secret in first)


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


def test_the_token_for_changes_is_not_in_the_page(client: Client) -> None:
    assert json.loads(client.get("/api/session").body)["token"] == KEYS.form
    for path in ("/", "/static/main.js", "/static/app.js", f"/in/{KEYS.token}"):
        assert KEYS.form.encode() not in client.get(path).body
