"""`mind mcp --http` as a process: the SDK's own client in both eras, and plain requests."""

import asyncio
import gc
import json
import logging
import shutil
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import anyio.from_thread
import anyio.lowlevel
import httpx2
import pytest
import uvicorn
from mcp import MCPError
from mcp.client import Client
from mcp_types import ListRootsResult, Root
from pydantic import FileUrl
from starlette.responses import JSONResponse
from uvicorn.server import ServerState

from mimo.call.table import all_commands
from mimo.errors import Invalid, NoProject
from mimo.extensions.team.hosting import Hosting
from mimo.extensions.team.http import PORT, Gate, place_of, token_of
from mimo.extensions.team.logs import Brief
from mimo.operations import connections
from mimo.operations.listening import Memory
from mimo.operations.loopback import listening
from mimo.project.init import init
from mimo.project.projects import unregister
from mimo.server.app import App, session_name
from tests.conftest import NOW
from tests.extensions.team.over_http import TOKEN, Served, served

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home and the registered projects `shop`, `bank` and one that is not ASCII."""
    folder = tmp_path_factory.mktemp("http")
    for name in ("shop", "bank", "caf\xe9"):
        (folder / name).mkdir()
        init(folder / name, folder / "home", now=NOW)
    return folder


@pytest.fixture(scope="module")
def server(projects: Path) -> Iterator[Served]:
    with served(projects / "home") as running:
        yield running


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Any:
    return request.param


async def store(client: Client, content: str) -> str:
    result = await client.call_tool("memory", {"operation": "store", "content": content})
    assert not result.is_error, result.content
    identity: str = result.structured_content["id"]
    return identity


async def contents(client: Client) -> list[str]:
    result = await client.call_tool("mind_list", {})
    assert not result.is_error, result.content
    return [row["title"] for row in result.structured_content["memories"]]


def post(server: Served, at: str = "", **headers: str | None) -> httpx2.Response:
    """Sends the first request of a session; None leaves a header out."""
    given = {**JSON, **server.headers(), **{k.replace("_", "-"): v for k, v in headers.items()}}
    kept = {name: value for name, value in given.items() if value is not None}
    return httpx2.post(f"{server.url}{at}", json=INITIALIZE, headers=kept, timeout=30)


@pytest.mark.parametrize("named", ["path", "header", "path in header"])
def test_a_memory_is_stored_in_the_project_that_the_client_names(
    projects: Path, server: Served, era: Any, named: str
) -> None:
    text = f"Deploys of {era} clients by {named} need a tag"
    header = {"path": "", "header": "shop", "path in header": str(projects / "shop")}[named]
    settings = {"headers": {"x-mind-project": header}} if header else {"at": "/shop"}

    async def talk(client: Client) -> Any:
        identity = await store(client, text)
        read = await client.read_resource(f"mind://memory/{identity}")
        return str(read.contents[0]), await client.list_prompts()

    read, prompts = server.asked(era, talk, **settings)

    assert text in read
    assert prompts.prompts
    files = [path.read_text(encoding="utf-8") for path in (projects / "shop/.mind").rglob("*.md")]
    assert any(text in file for file in files)


def test_sessions_at_the_same_time_see_only_their_own_project(server: Served, era: Any) -> None:
    ready: list[str] = []

    async def work(name: str, number: int, rows: dict[tuple[str, int], list[str]]) -> None:
        async with server.client(era, f"/{name}") as client:
            await store(client, f"{name} keeps {era} secret number {number}")
            ready.append(name)
            while len(ready) < 8:
                await anyio.sleep(0.01)
            rows[name, number] = await contents(client)

    async def all_of_them() -> dict[tuple[str, int], list[str]]:
        rows: dict[tuple[str, int], list[str]] = {}
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                for name in ("shop", "bank"):
                    tasks.start_soon(work, name, number, rows)
        return rows

    rows = anyio.run(all_of_them)

    assert len(rows) == 8
    for (name, _), titles in rows.items():
        other = "bank" if name == "shop" else "shop"
        assert {f"{name} keeps {era} secret number {n}" for n in range(4)} <= set(titles)
        assert not [title for title in titles if title.startswith(other)]


def hosting_of(home: Path, **settings: Any) -> tuple[Hosting, Gate]:
    """Returns the projects of a home, and the application before them."""

    def make(memory: Memory, kind: type[App]) -> App:
        return kind(memory, all_commands(), toolsets=["core"], naming="underscore")

    hosting = Hosting(home, make, **settings)
    return hosting, Gate(hosting, place_of("8000", ()), TOKEN)


def inside(gate: Gate) -> httpx2.AsyncClient:
    """Returns a client of an application in this process."""
    headers = {**JSON, "authorization": f"Bearer {TOKEN}"}
    transport = httpx2.ASGITransport(app=gate)
    return httpx2.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:8000", headers=headers, timeout=30
    )


def test_the_first_requests_of_a_project_may_come_at_once(project: Path, home: Path) -> None:
    hosting, gate = hosting_of(home)

    async def first() -> list[int]:
        statuses: list[int] = []

        async def open_session(steps: int) -> None:
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            statuses.append((await client.post("/mcp/shop", json=INITIALIZE)).status_code)

        async with hosting.running(), inside(gate) as client, anyio.create_task_group() as tasks:
            for steps in range(20):
                tasks.start_soon(open_session, steps)
        return statuses

    assert anyio.run(first) == [200] * 20


def test_a_project_that_is_not_used_is_closed_with_its_sessions(project: Path, home: Path) -> None:
    hosting, gate = hosting_of(home, idle=0.3)

    async def wait() -> tuple[bool, bool, int, int]:
        async with hosting.running(), inside(gate) as client:
            answer = await client.post("/mcp/shop", json=INITIALIZE)
            session = {"mcp-session-id": answer.headers["mcp-session-id"]}
            before = hosting.is_open(project)
            with anyio.fail_after(20):
                while hosting.is_open(project):
                    await anyio.sleep(0.05)
            again = await client.post(
                "/mcp/shop", json={"jsonrpc": "2.0", "id": 2, "method": "ping"}, headers=session
            )
            renewed = await client.post("/mcp/shop", json=INITIALIZE)
            return before, hosting.is_open(project), again.status_code, renewed.status_code

    assert anyio.run(wait) == (True, True, 404, 200)


def unused(hosting: Hosting) -> list[Path | None]:
    """Returns the projects that may be closed."""
    return [root for root, _ in hosting._unused()]


def test_a_project_by_roots_is_not_closed_while_a_request_uses_it(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosting, _ = hosting_of(home)
    seen = []

    async def handle(_: object, scope: Any, *__: object) -> None:
        for _ in range(2):
            await hosting.memory(project, scope)
        seen.append(unused(hosting))

    monkeypatch.setattr(
        "mimo.extensions.team.hosting.StreamableHTTPSessionManager.handle_request", handle
    )

    async def ask() -> None:
        async with hosting.running():
            scope = {"method": "POST"}
            await hosting.serve(None, scope, anyio.sleep_forever, anyio.sleep)  # type: ignore[arg-type]
            seen.append(unused(hosting))
            await hosting.memory(project, scope)  # Of a call that goes on without its client.
            seen.append(unused(hosting))

    anyio.run(ask)

    assert seen == [[], [None, project], [None, project]]


def test_a_project_is_followed_until_its_sessions_have_ended(project: Path, home: Path) -> None:
    hosting, gate = hosting_of(home)
    uri = {"uri": "mind://context"}
    subscription = {"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": uri}

    async def follow() -> list[list[Path | None]]:
        async with hosting.running(), inside(gate) as client:
            answer = await client.post("/mcp/shop", json=INITIALIZE)
            client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await client.post("/mcp/shop", json=ready)
            answer = await client.post("/mcp/shop", json=subscription)
            assert '"result":{}' in answer.text
            before = unused(hosting)
            await client.delete("/mcp/shop")
            with anyio.fail_after(20):
                while not unused(hosting):
                    await anyio.sleep(0.05)
            assert not hosting._hosted[project].app.subscriptions._clients
            return [before, unused(hosting)]

    assert anyio.run(follow) == [[], [project]]


def test_a_broken_stream_is_not_resumed(server: Served) -> None:
    session = post(server, "/shop").headers["mcp-session-id"]
    headers = {**JSON, **server.headers(), "mcp-session-id": session, "last-event-id": "5"}

    with httpx2.stream("GET", f"{server.url}/shop", headers=headers, timeout=30) as stream:
        assert stream.status_code == 200


def test_an_open_project_whose_folder_is_deleted_is_refused(project: Path, home: Path) -> None:
    hosting, gate = hosting_of(home)

    async def ask() -> list[int]:
        statuses = []
        async with hosting.running(), inside(gate) as client:
            for change in (lambda: None, lambda: shutil.rmtree(project / ".mind")):
                change()
                answer = await client.post("/mcp/shop", json=INITIALIZE)
                statuses.append(answer.status_code)
        return statuses

    assert anyio.run(ask) == [200, 404]


def test_an_open_project_is_unknown_as_soon_as_it_is_forgotten(project: Path, home: Path) -> None:
    hosting, gate = hosting_of(home)

    async def ask() -> list[int]:
        statuses = []
        async with hosting.running(), inside(gate) as client:
            for change in (lambda: None, lambda: unregister(home, [project])):
                change()
                answer = await client.post("/mcp/shop", json=INITIALIZE)
                statuses.append(answer.status_code)
            assert hosting.is_open(project)
            with pytest.raises(NoProject):
                hosting.named(("shop",))
        return statuses

    assert anyio.run(ask) == [200, 404]


def test_of_many_projects_the_least_recently_used_is_closed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.extensions.team.hosting.MOST_PROJECTS", 2)
    roots = [tmp_path / name for name in ("oak", "elm", "ash")]
    for root in roots:
        root.mkdir()
        init(root, home, now=NOW)
    hosting, gate = hosting_of(home)

    async def visit() -> list[list[bool]]:
        seen = []
        async with hosting.running(), inside(gate) as client:
            for name in ("oak", "elm", "oak", "ash", "elm"):
                answer = await client.post(f"/mcp/{name}", json=INITIALIZE)
                assert answer.status_code == 200
                seen.append([hosting.is_open(root) for root in roots])
        return seen

    assert anyio.run(visit) == [
        [True, False, False],
        [True, True, False],
        [True, True, False],
        [True, False, True],
        [False, True, True],
    ]


def test_work_that_fails_for_one_project_ends_no_other(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mimo.extensions.team.hosting.SHARE_SECONDS", 0.01)
    tried = []

    def refused(mind: object) -> None:
        tried.append(mind)
        raise PermissionError

    monkeypatch.setattr("mimo.extensions.team.sharing.push_if_behind", refused)
    hosting, gate = hosting_of(home)

    async def wait() -> int:
        async with hosting.running(), inside(gate) as client:
            await client.post("/mcp/shop", json=INITIALIZE)
            with anyio.fail_after(20):
                while len(tried) < 3:
                    await anyio.sleep(0.01)
            return (await client.post("/mcp/shop", json=INITIALIZE)).status_code

    assert anyio.run(wait) == 200
    assert [record.args for record in caplog.records if record.name == "mind.http"] == [
        ("shop", "PermissionError")
    ]


@pytest.mark.parametrize("name", ["100%41", "C#", "a?b", "both%3F?"])
def test_the_name_in_a_url_is_decoded_once(home: Path, tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    init(root, home, now=NOW)
    hosting, gate = hosting_of(home)

    async def visit() -> bool:
        async with hosting.running(), inside(gate) as client:
            answer = await client.post(f"/mcp/{quote(name, safe='')}", json=INITIALIZE)
            return answer.status_code == 200 and hosting.is_open(root)

    assert anyio.run(visit)


def test_closed_projects_take_no_memory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own collections are off: a server makes them too rarely to count on."""
    monkeypatch.setattr("mimo.extensions.team.hosting.MOST_PROJECTS", 2)
    monkeypatch.setattr("mimo.extensions.team.hosting._TOGETHER", 3)
    names = [f"p{number}" for number in range(12)]
    for name in names:
        (tmp_path / name).mkdir()
        init(tmp_path / name, home, now=NOW)
    hosting, gate = hosting_of(home)

    async def visit() -> None:
        async with hosting.running(), inside(gate) as client:
            for name in names:
                answer = await client.post(f"/mcp/{name}", json=INITIALIZE)
                assert answer.status_code == 200
            with anyio.fail_after(20):
                while sum(type(each) is App for each in gc.get_objects()) > 5:
                    await anyio.sleep(0.05)

    gc.disable()
    try:
        anyio.run(visit)
    finally:
        gc.enable()


def test_a_project_may_be_opened_while_the_metrics_are_gathered(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bank").mkdir()
    init(tmp_path / "bank", home, now=NOW)
    hosting, gate = hosting_of(home)

    async def ask() -> httpx2.Response:
        async with hosting.running(), inside(gate) as client:
            await client.post("/mcp/shop", json=INITIALIZE)

            async def open_bank() -> None:
                await client.post("/mcp/bank", json=INITIALIZE)

            def is_behind(_: Any) -> bool:
                anyio.from_thread.run(open_bank)
                return False

            monkeypatch.setattr("mimo.extensions.team.sharing.is_behind", is_behind)
            return await client.get("/metrics")

    answer = anyio.run(ask)

    assert answer.status_code == 200
    assert "\nmind_projects_open 1\n" in answer.text


def test_sessions_without_end_are_refused(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.extensions.team.hosting.MOST_SESSIONS", 2)
    hosting, gate = hosting_of(home)

    async def open_sessions() -> list[int]:
        async with hosting.running(), inside(gate) as client:
            return [(await client.post("/mcp/shop", json=INITIALIZE)).status_code for _ in range(3)]

    assert anyio.run(open_sessions) == [200, 200, 503]


def test_each_session_has_its_own_history(server: Served) -> None:
    async def used(client: Client, *names: str) -> tuple[str, list[str]]:
        for name in names:
            await client.call_tool(name, {})
        answer = await client.call_tool("getContext", {"include_history": True})
        assert not answer.is_error, answer.content
        context = answer.structured_content
        return context["session_id"], [row["tool_name"] for row in context["tool_history"]]

    async def both() -> tuple[tuple[str, list[str]], tuple[str, list[str]]]:
        async with (
            server.client("legacy", "/bank") as left,
            server.client("legacy", "/bank") as right,
        ):
            return await used(left, "mind_list", "mind_status"), await used(right, "search_recent")

    (left, first), (right, second) = anyio.run(both)

    assert left != right
    assert first == ["mind_list", "mind_status"]
    assert second == ["search_recent"]


@pytest.mark.attack("http")
def test_a_session_of_one_project_is_unknown_in_another(server: Served) -> None:
    session = post(server, "/shop").headers["mcp-session-id"]
    request = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    headers = {**JSON, **server.headers(), "mcp-session-id": session}

    own = httpx2.post(f"{server.url}/shop", json=request, headers=headers)
    other = httpx2.post(f"{server.url}/bank", json=request, headers=headers)
    unnamed = httpx2.post(server.url, json=request, headers=headers)

    assert (own.status_code, other.status_code, unnamed.status_code) == (200, 404, 404)


@pytest.mark.attack("http")
def test_the_log_has_no_id_of_a_session() -> None:
    id = "53865d6a" * 4
    record = logging.LogRecord("mcp", logging.WARNING, "", 1, "Rejecting %s: why", (id,), None)

    assert Brief("mind: %(message)s").format(record) == f"mind: Rejecting {session_name(id)}: why"
    assert session_name(id) not in id


def test_roots_name_the_project_of_an_older_client(projects: Path, server: Served) -> None:
    async def roots(_: Any) -> ListRootsResult:
        inside = projects / "caf\xe9/src/deep"
        inside.mkdir(parents=True, exist_ok=True)
        uris = [(projects / "home").as_uri(), inside.as_uri()]
        return ListRootsResult(roots=[Root(uri=FileUrl(uri)) for uri in uris])

    async def talk(client: Client) -> list[str]:
        await store(client, "The menu is printed on Mondays")
        return await contents(client)

    assert server.asked("legacy", talk, list_roots_callback=roots) == [
        "The menu is printed on Mondays"
    ]
    assert list((projects / "caf\xe9/.mind/facts").glob("*.md"))


def listed(project: Path) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri=FileUrl(project.as_uri()))])


@pytest.mark.filterwarnings("ignore:The roots capability is deprecated")
def test_roots_that_change_while_they_are_listed_are_asked_for_again(
    projects: Path, server: Served
) -> None:
    clients: list[Client] = []
    asked: list[Path] = []

    async def roots(_: Any) -> ListRootsResult:
        if not asked:
            await clients[0].session.send_roots_list_changed()
        asked.append(projects / ("bank" if asked else "shop"))
        return listed(asked[-1])

    async def talk(client: Client) -> list[str]:
        clients.append(client)
        paths: list[str] = []

        async def status() -> None:
            result = await client.call_tool("mind_status", {})
            paths.append(result.structured_content["current_project"]["path"])

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(status)
        return paths

    paths = server.asked("legacy", talk, list_roots_callback=roots)

    assert paths == [str(projects / "bank")] * 4
    assert asked == [projects / "shop", projects / "bank"]


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_client_that_did_not_list_its_roots_is_asked_again_later(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr("mimo.server.roots.ROOTS_SECONDS", seconds)
    hosting, _ = hosting_of(home)
    answers = [TimeoutError(), listed(project)]

    async def send(*_: object, **__: object) -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    capabilities = SimpleNamespace(roots=True)
    context: Any = SimpleNamespace(
        request=SimpleNamespace(headers={"mcp-session-id": "a"}, scope={}),
        request_id=1,
        protocol_version="2025-06-18",
        session=SimpleNamespace(client_capabilities=capabilities, send_request=send),
    )

    async def ask() -> list[Path | None]:
        async with hosting.running():
            app = (await hosting._at(None)).app
            return [(await app.memory_of(context)).root() for _ in range(3)]

    assert anyio.run(ask) == ([None] * 3 if seconds else [None, project, project])


def test_a_session_without_a_project_hears_how_to_name_one(server: Served, era: Any) -> None:
    async def talk(client: Client) -> Any:
        listed = await client.list_tools()
        return listed, await client.call_tool("mind_list", {})

    listed, refused = server.asked(era, talk)

    assert listed.tools
    (text,) = [part.text for part in refused.content]
    assert refused.is_error
    assert "/mcp/NAME" in text
    assert "`shop`, `bank`" in text


@pytest.mark.parametrize(
    ("at", "header", "status", "message"),
    [
        ("/nowhere", None, 404, "no project named `nowhere` is registered"),
        ("", "/etc", 404, "no project named `/etc` is registered"),
        ("/../shop", None, 404, "The server answers at /mcp"),
        ("/shop", "bank", 400, "name different projects"),
        ("/shop/more", None, 404, "no project named `shop/more`"),
    ],
)
@pytest.mark.attack("http")
def test_a_project_that_is_not_registered_is_refused(
    server: Served, at: str, header: str | None, status: int, message: str
) -> None:
    answer = post(server, at, x_mind_project=header)

    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]


def test_the_path_chooses_between_projects_of_the_same_name(
    tmp_path: Path, server: Served, projects: Path
) -> None:
    twin = projects / "twin/bank"
    twin.mkdir(parents=True)
    init(twin, projects / "home", now=NOW)
    try:
        refused, chosen = post(server, "/bank"), post(server, x_mind_project=str(twin))
    finally:
        registry = projects / "home/projects.json"
        rows = [row for row in json.loads(registry.read_text()) if row["path"] != str(twin)]
        registry.write_text(json.dumps(rows))

    assert refused.status_code == 409
    assert str(twin) in refused.json()["error"]["message"]
    assert chosen.status_code == 200


def test_a_project_whose_folder_was_deleted_is_refused(projects: Path, server: Served) -> None:
    deleted = projects / "old"
    deleted.mkdir()
    init(deleted, projects / "home", now=NOW)
    for path in sorted(deleted.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()

    answer = post(server, "/old")

    assert answer.status_code == 404
    assert "has no `.mind/`" in answer.json()["error"]["message"]


@pytest.mark.attack("http")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": None}, 401),
        ({"authorization": "Bearer x"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": f"bearer {TOKEN}"}, 200),
        ({"host": "evil.example:80"}, 403),
        ({"host": "127.0.0.1"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content_type": "text/plain"}, 400),
    ],
)
def test_only_the_users_own_clients_come_in(
    server: Served, headers: dict[str, str | None], status: int
) -> None:
    assert post(server, "/shop", **headers).status_code == status


def test_a_page_of_the_server_itself_comes_in(server: Served) -> None:
    assert post(server, "/shop", origin=server.base).status_code == 200


@pytest.mark.attack("http")
def test_a_body_without_end_is_refused(server: Served) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(6):
            yield b" " * 1_000_000

    headers = {**JSON, **server.headers()}
    answer = httpx2.post(f"{server.url}/shop", content=parts(), headers=headers)

    assert answer.status_code == 413


@pytest.mark.attack("http")
@pytest.mark.parametrize("size", [1_000, 17_000, 60_000])
@pytest.mark.parametrize("place", ["one header", "many headers", "query"])
def test_a_head_of_more_than_16_kib_is_refused(server: Served, place: str, size: int) -> None:
    many = {f"x-{number}": "a" * 100 for number in range(size // 110)}
    more = {"one header": {"x-more": "a" * size}, "many headers": many}.get(place, {})
    query = f"?{'a' * size}" if place == "query" else ""

    answer = httpx2.get(f"{server.base}/healthz{query}", headers=more)

    assert answer.status_code == (200 if size == 1_000 else 431)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
def test_other_methods_are_refused(server: Served, method: str) -> None:
    assert httpx2.request(method, server.url, headers=server.headers()).status_code == 405


def test_health_is_answered_without_a_token_and_shows_nothing_else(server: Served) -> None:
    answer = httpx2.get(f"{server.base}/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert "server" not in answer.headers
    assert httpx2.get(f"{server.base}/healthz", headers={"host": "evil"}).status_code == 403


def test_a_wrong_tool_is_an_error_of_the_protocol(server: Served, era: Any) -> None:
    async def talk(client: Client) -> Any:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("mind_searchh", {})
        return raised.value.error.message

    assert "did you mean mind_search" in server.asked(era, talk, at="/shop")


def test_a_signal_ends_open_streams_and_sessions(projects: Path) -> None:
    with served(projects / "home") as server:
        answer = post(server, "/shop")
        headers = {**server.headers(), "accept": "text/event-stream"}
        headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        with httpx2.stream("GET", f"{server.url}/shop", headers=headers, timeout=30) as stream:
            assert stream.status_code == 200
            status, log = server.stop()
            assert list(stream.iter_lines()) == []

    assert (status, log.strip()) == (143, "interrupted")


@pytest.mark.attack("http")
def test_a_killed_server_leaves_memories_that_the_next_one_serves(projects: Path) -> None:
    """The next one has a project for clients that name none, and logs no text and no token."""

    async def keep(client: Client) -> str:
        return await store(client, "The launch code is swordfish")

    async def search(client: Client) -> None:
        await client.call_tool("mind_search", {"query": "swordfish"})

    with served(projects / "home") as server:
        server.asked("auto", keep, at="/bank")
        assert server.stop(signal.SIGKILL)[0] == -signal.SIGKILL
    with served(projects / "home", "--project", str(projects / "bank")) as server:
        assert "The launch code is swordfish" in server.asked("auto", contents)
        server.asked("auto", search)
        post(server, "/shop", authorization="Bearer swordfish-of-another")
        status, log = server.stop(signal.SIGINT)

    assert status == 130
    assert "swordfish" not in log
    assert TOKEN not in log


# The place and the token.


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", f"http://127.0.0.1:{PORT}/mcp"),
        ("8000", "http://127.0.0.1:8000/mcp"),
        ("localhost:8000", "http://127.0.0.1:8000/mcp"),
        ("127.0.0.2:0", "http://127.0.0.2:0/mcp"),
        ("[::1]:8000", "http://[::1]:8000/mcp"),
    ],
)
def test_the_place_is_on_loopback(text: str, url: str) -> None:
    place = place_of(text, ())

    assert place.url == url
    assert url.split("/")[2] in place.hosts


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.0.0.1:80"])
def test_clients_leave_out_the_port_80(host: str) -> None:
    assert host in place_of("80", ()).hosts
    assert host not in place_of("8000", ()).hosts


def test_answers_do_not_wait_to_fill_a_packet() -> None:
    """Asyncio sets TCP_NODELAY on connections of a listener that names its protocol."""
    with listening(0, hint="") as listener:
        assert listener.proto == socket.IPPROTO_TCP


@pytest.mark.attack("http")
@pytest.mark.parametrize("text", ["0.0.0.0:80", "[::]:80", "192.168.1.2:80"])
def test_an_address_for_other_machines_needs_a_name(text: str) -> None:
    with pytest.raises(Invalid, match="other machines") as raised:
        place_of(text, ())

    assert "TLS" in str(raised.value.hint)
    assert "mind.lan" in place_of(text, ["mind.lan"]).hosts


@pytest.mark.parametrize("text", ["x", "-1", "65536", "example.org:80", "1.2.3:80"])
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="is not an address"):
        place_of(text, ["mind.lan"])


def test_the_token_is_created_once_for_the_user_alone(home: Path) -> None:
    token, file = token_of(home, None, {})

    assert file == home / "http-token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token_of(home, None, {}) == (token, file)


def test_the_token_of_the_environment_is_not_inherited(home: Path) -> None:
    environ = {"MIND_HTTP_TOKEN": TOKEN}

    assert token_of(home, None, environ) == (TOKEN, None)
    assert environ == {}


@pytest.mark.attack("http")
@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        (TOKEN, 0o644, "other users"),
        (TOKEN, 0o620, "other users"),
        ("short", 0o600, "does not hold a token"),
        ("two words of a token", 0o600, "does not hold a token"),
        ("", 0o600, "does not hold a token"),
        ("\xe9" * 30, 0o600, "does not hold a token"),
    ],
)
def test_a_token_that_others_know_or_guess_is_refused(
    tmp_path: Path, text: str, mode: int, message: str
) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)

    with pytest.raises(Invalid, match=message):
        token_of(tmp_path, file, {})


@pytest.mark.attack("http")
def test_connections_without_a_request_keep_no_client_out(projects: Path) -> None:
    with served(projects / "home", most_files=600) as server, ExitStack() as kept:
        address = urlsplit(server.url)
        for number in range(320):
            idle = socket.create_connection((address.hostname, address.port))
            kept.enter_context(idle)
            if number % 2:
                idle.sendall(b"POST /mcp HTTP/1.1\r\nHost: x\r\n")

        assert post(server, "/shop").status_code == 200


@pytest.mark.attack("http")
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_connection_is_closed_if_no_request_comes(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "WAITING_SECONDS", 0.01)

    async def talk() -> bytes:
        config = uvicorn.Config(
            JSONResponse({}), http=connections.Connection, lifespan="off", log_config=None
        )
        config.load()
        listener = await asyncio.get_running_loop().create_server(
            lambda: connections.Connection(config, ServerState(), {}), "127.0.0.1"
        )
        async with listener, asyncio.timeout(20):
            reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
            writer.write(sent)
            try:
                return await reader.read()
            except ConnectionResetError:
                return b""
            finally:
                writer.close()

    assert b"200 OK" not in asyncio.run(talk())
