"""`mind mcp --http --tokens` as a process: users of a team, and what their tokens permit."""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp_types import ListRootsResult, ResourceUpdatedNotification, Root
from prometheus_client.parser import text_string_to_metric_families
from pydantic import FileUrl

from mimo.call import Call, Caller, Surface
from mimo.call.spec import Effect
from mimo.call.table import all_commands
from mimo.extensions.team import tokens
from mimo.extensions.team.tokens import Member, Scope, digest_of
from mimo.features.notes.commands import add
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.project.init import init
from tests.conftest import NOW
from tests.extensions.team.over_http import TOKEN, Served, served, two_projects
from tests.extensions.team.test_http import INITIALIZE, JSON
from tests.sample_procedures import text as procedure
from tests.server.test_subscriptions import subscribe

WRITERS = {"ana": Scope.WRITE, "bob": Scope.WRITE, "rita": Scope.READ, "adam": Scope.ADMIN}


def token_of(name: str) -> str:
    return f"the-secret-token-of-{name}"


def member(name: str, scope: Scope = Scope.WRITE, **fields: Any) -> Member:
    digest = digest_of(token_of(name))
    return Member(name=name, email=f"{name}@example.org", scope=scope, digest=digest, **fields)


def bearer(name: str, **more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token_of(name)}", **more}


USERS = [
    *(member(name, scope) for name, scope in WRITERS.items()),
    member("sam", projects=("shop",)),
    member("sue", Scope.READ, projects=("shop",)),
    member("eve", expires=datetime(2020, 1, 1, tzinfo=UTC)),
]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home, the projects `shop` and `bank`, and a file of tokens."""
    folder = two_projects(tmp_path_factory)
    tokens.write(folder / "tokens.toml", USERS)
    return folder


@pytest.fixture(scope="module")
def server(team: Path) -> Iterator[Served]:
    with served(team / "home", "--tokens", str(team / "tokens.toml")) as running:
        yield running


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Any:
    return request.param


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    return await client.call_tool(tool, arguments)


def text_of(result: Any) -> str:
    return "\n".join(getattr(block, "text", "") for block in result.content)


def post(server: Served, name: str, at: str = "", body: Any = INITIALIZE, **more: str) -> Any:
    headers = {**JSON, **bearer(name), **{k.replace("_", "-"): v for k, v in more.items()}}
    return httpx2.post(f"{server.url}{at}", json=body, headers=headers, timeout=30)


def test_one_user_finds_what_another_stored_and_the_log_names_both(
    team: Path, server: Served, era: Any
) -> None:
    text = f"Deploys of {era} clients need a tag"

    async def store(client: Client) -> Any:
        return await called(client, "memory", operation="store", content=text)

    async def search(client: Client) -> Any:
        return await called(client, "mind_search", query="deploys tag")

    assert not server.asked(era, store, "/shop", headers=bearer("ana")).is_error
    assert text in text_of(server.asked(era, search, "/shop", headers=bearer("rita")))
    log = (team / "shop/.mind/.local/audit.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line)["event"] for line in log.splitlines()]
    users = {(event["user"], event["tool"]) for event in events}
    assert {("ana", "memory"), ("rita", "mind_search")} <= users
    assert "example.org" not in log
    assert token_of("ana") not in log
    assert digest_of(token_of("ana")) not in log


@pytest.mark.attack("http")
def test_a_reading_token_lists_and_calls_no_tool_that_writes(
    team: Path, server: Served, era: Any
) -> None:
    commands = all_commands().tools()
    writing = [spec for specs in commands.values() for spec in specs if spec.effect != Effect.READ]

    async def talk(client: Client) -> Any:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        outcomes = {}
        for spec in writing:
            given = {"operation": spec.operation} if spec.operation else {}
            result = await called(client, spec.name, **given)
            outcomes[spec.key] = (result.is_error, text_of(result))
        return listed, outcomes

    def files() -> list[tuple[str, bytes]]:
        shared = (team / "bank/.mind").rglob("*.md")
        return sorted((str(path), path.read_bytes()) for path in shared)

    before = files()
    listed, outcomes = server.asked(era, talk, "/bank", headers=bearer("rita"))

    assert files() == before
    assert {"mind_search", "memory"} <= listed.keys()
    assert "save_decision" not in listed
    assert "ingest" not in listed
    assert "store" not in json.dumps(listed["memory"].input_schema)
    assert len(outcomes) > 20
    for key, (is_error, text) in outcomes.items():
        assert is_error, key
        assert "Access denied to tool" in text, (key, text)


def test_a_writing_token_lists_the_tools_that_write(server: Served, era: Any) -> None:
    async def names(client: Client) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    listed = server.asked(era, names, "/bank", headers=bearer("ana"))

    assert {"save_decision", "memory", "ingest", "mind_search"} <= listed
    assert server.asked(era, names, "/bank", headers=bearer("adam")) == listed


@pytest.mark.attack("http")
def test_no_user_reaches_the_memory_of_the_servers_account(
    team: Path, server: Served, era: Any
) -> None:
    async def talk(client: Client) -> list[Any]:
        return [
            await called(client, "mind_add", text="For all projects", user=True),
            await called(client, "mind_list", user=True),
            await called(client, "mind_sync"),
        ]

    for result in server.asked(era, talk, "/shop", headers=bearer("adam")):
        assert result.is_error
        assert "Access denied" in text_of(result)
    assert not (team / "home/memories").exists()


@pytest.mark.attack("http")
def test_a_token_of_one_project_reaches_no_other(team: Path, server: Served, era: Any) -> None:
    secret = f"The vault of {era} opens at nine"

    async def store(client: Client) -> Any:
        return await called(client, "memory", operation="store", content=secret)

    async def everywhere(client: Client) -> str:
        matches = await called(client, "mind_search", query="vault opens nine", scope="all")
        listed = await called(client, "mind_list", all_projects=True)
        return text_of(matches) + text_of(listed)

    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl((team / "bank").as_uri()))])

    async def unnamed(client: Client) -> str:
        return text_of(await called(client, "mind_list", limit=100))

    assert not server.asked(era, store, "/bank", headers=bearer("ana")).is_error
    assert secret in server.asked(era, everywhere, "/shop", headers=bearer("bob"))
    for name in ("sam", "sue"):
        assert secret not in server.asked(era, everywhere, "/shop", headers=bearer(name))
        answer = server.asked(era, unnamed, headers=bearer(name), list_roots_callback=roots)
        assert secret not in answer


@pytest.mark.attack("http")
def test_a_change_is_checked_against_no_project_below_that_the_token_is_not_for(
    tmp_path: Path,
) -> None:
    for folder in (tmp_path / "shop", tmp_path / "shop/vault"):
        folder.mkdir()
        init(folder, tmp_path / "home", now=NOW)
    pitfalls = tmp_path / "shop/vault/.mind/MEMORY.md"
    pitfalls.write_text("## Gotchas\n- `unlock` rings the bell → wait\n", encoding="utf-8")
    tokens.write(tmp_path / "tokens.toml", USERS)
    diff = "--- a/x\n+++ b/vault/a.py\n@@ -0,0 +1 @@\n+unlock()\n"

    async def check(client: Client) -> str:
        return text_of(await called(client, "mind_edges_check", code=diff))

    with served(tmp_path / "home", "--tokens", str(tmp_path / "tokens.toml")) as running:
        for name, is_permitted in (("rita", True), ("sam", False), ("sue", False)):
            answer = running.asked("auto", check, "/shop", headers=bearer(name))
            assert ("rings the bell" in answer) == is_permitted, answer
            assert ("vault" in answer) == is_permitted, answer


@pytest.mark.attack("http")
@pytest.mark.parametrize(
    ("at", "header"),
    [("/bank", ""), ("", "bank"), ("", "PATH"), ("/shop", "bank"), ("/nowhere", "")],
)
def test_another_project_is_unknown_to_a_token(
    team: Path, server: Served, at: str, header: str
) -> None:
    more = {"x_mind_project": header.replace("PATH", str(team / "bank"))} if header else {}

    answer = post(server, "sam", at, **more)

    assert answer.status_code == 404
    assert "no project named" in answer.text
    assert str(team / "bank") not in answer.text or "PATH" in header
    assert "`shop`" in answer.text
    assert "`bank`" not in answer.text.replace("no project named `bank`", "")


@pytest.mark.attack("http")
def test_a_token_of_one_project_without_a_role_may_not_search_the_organisation(
    server: Served, era: Any
) -> None:
    async def talk(client: Client) -> Any:
        return await called(client, "mind_search_org", query="vault opens")

    refused = server.asked(era, talk, "/shop", headers=bearer("sam"))

    assert refused.is_error
    assert "has no role" in text_of(refused)
    assert "no shared index" in text_of(server.asked(era, talk, "/shop", headers=bearer("ana")))


@pytest.mark.attack("http")
def test_a_user_learns_nothing_of_other_projects_or_the_home_of_the_account(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("shop", "vault"):
        (tmp_path / name).mkdir()
        init(tmp_path / name, home, now=NOW)
    shutil.rmtree(tmp_path / "vault")
    edge = {
        "title": "Swordfish are sharp",
        "description": "They cut",
        "workaround": "Wear gloves",
        "detection": {"intent": ["swordfish"], "code": []},
    }
    spec = all_commands().tools()["mind_add_global_edge"][0]
    account = Call(Mind.open(tmp_path / "shop", environ={"MIND_HOME": str(home)}))
    invoke(spec, account.by(Caller(surface=Surface.MCP)), edge)
    account.mind.close()
    before = sorted((home / "edges").iterdir())
    tokens.write(tmp_path / "tokens.toml", USERS)

    async def talk(client: Client) -> tuple[str, bool]:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        answers = [
            await called(client, "mind_doctor"),
            await called(client, "mind_status"),
            await called(client, "mind_edges_list"),
            await called(client, "mind_edges", intent="feed the swordfish"),
        ]
        more = await called(client, "mind_add_global_edge", **(edge | {"title": "Another"}))
        return "\n".join(map(text_of, answers)), more.is_error and spec.name not in tools

    with served(home, "--tokens", str(tmp_path / "tokens.toml")) as running:
        for name, registered in (("sam", 1), ("bob", 2)):
            seen, is_refused = running.asked("auto", talk, "/shop", headers=bearer(name))
            assert "Swordfish are sharp" not in seen
            assert "global_edges: 0" in seen
            assert is_refused
            assert f"projects_registered: {registered}" in seen
            assert ("vault" in seen) == (name == "bob")
    assert sorted((home / "edges").iterdir()) == before


@pytest.mark.attack("http")
def test_a_user_is_not_notified_of_the_memory_of_the_account(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "shop").mkdir()
    init(tmp_path / "shop", home, now=NOW)
    tokens.write(tmp_path / "tokens.toml", USERS)
    account = Call(Mind.open(tmp_path / "shop", environ={"MIND_HOME": str(home)}))
    users = account.user(make=True)
    assert users
    add(users, "Always use pnpm")
    account.mind.close()
    (theirs,) = (home / "memories").rglob("fact_*.md")
    followed = f"mind://memory/{theirs.stem}"
    reported: list[str] = []
    arrived = anyio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            reported.append(str(message.params.uri))
            arrived.set()

    async def talk(client: Client) -> str:
        stored = await called(client, "memory", operation="store", content="Tea is at four")
        own = f"mind://memory/{stored.structured_content['id']}"
        await subscribe(client, followed)
        await subscribe(client, own)
        theirs.write_text(theirs.read_text().replace("pnpm", "yarn"))
        await called(client, "mind_edit", id=own.rpartition("/")[2], content="Tea is at five")
        with anyio.fail_after(20):
            await arrived.wait()
        await anyio.sleep(0.1)
        return own

    with served(home, "--tokens", str(tmp_path / "tokens.toml")) as running:
        own = running.asked("legacy", talk, "/shop", headers=bearer("bob"), message_handler=hear)
    assert reported == [own]


@pytest.mark.attack("http")
def test_a_run_in_the_background_has_the_rights_of_its_token(
    team: Path, server: Served, era: Any
) -> None:
    states = """\
initial_state: list
states:
  list:
    action: {module: mind, function: mind_list, args: [{user: true}]}
    transitions: [{event: error, target: add}]
  add:
    action: {module: mind, function: mind_add, args: [{content: "Tea is at {{at}}"}]}
    transitions: [{event: success, target: done}]
  done: {}
"""

    async def talk(client: Client) -> Any:
        await called(client, "register_procedure", text=procedure(f"tea{era}", states))
        given = {"name": f"tea{era}", "context": {"at": era}, "async": True}
        begun = await called(client, "run_procedure", **given)
        while True:
            id_ = begun.structured_content["execution_id"]
            run = (await called(client, "procedure_status", execution_id=id_)).structured_content
            if run["status"] != "running":
                return run
            await anyio.sleep(0.05)

    run = server.asked(era, talk, "/bank", headers=bearer("ana"))

    assert run["status"] == "completed", run
    assert [move["event"] for move in run["history"]] == ["error", "success"]
    log = (team / "bank/.mind/.local/audit.jsonl").read_text(encoding="utf-8")
    calls = [json.loads(line)["event"] for line in log.splitlines()]
    assert all(call["user"] for call in calls)
    assert ("mind_list", "denied") in {(call["tool"], call["status"]) for call in calls}


def test_a_token_of_one_project_needs_no_name_for_it(server: Served, era: Any) -> None:
    async def talk(client: Client) -> Any:
        return await called(client, "memory", operation="store", content=f"Sam was here: {era}")

    assert not server.asked(era, talk, headers=bearer("sam")).is_error


@pytest.mark.attack("http")
def test_a_session_belongs_to_the_user_who_opened_it(server: Served) -> None:
    session = post(server, "ana", "/shop").headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}

    def status(name: str) -> int:
        code: int = post(server, name, "/shop", listing, mcp_session_id=session).status_code
        return code

    assert (status("ana"), status("bob"), status("adam"), status("rita")) == (200, 404, 404, 404)
    headers = {**bearer("bob"), "mcp-session-id": session}
    assert httpx2.delete(f"{server.url}/shop", headers=headers).status_code == 404
    streamed = httpx2.get(f"{server.url}/shop", headers={**JSON, **headers})
    assert streamed.status_code == 404
    assert status("ana") == 200


@pytest.mark.attack("http")
def test_users_without_sessions_do_not_see_the_calls_of_each_other(server: Served) -> None:
    async def history(client: Client) -> list[str]:
        await called(client, "mind_status")
        answer = await called(client, "getContext", include_history=True)
        return [row["tool_name"] for row in answer.structured_content["tool_history"]]

    assert server.asked("auto", history, "/bank", headers=bearer("bob"))[-1] == "mind_status"
    again = server.asked("auto", history, "/bank", headers=bearer("bob"))
    assert again.count("mind_status") == 2
    other = server.asked("auto", history, "/bank", headers=bearer("sam", x="y") | bearer("adam"))
    assert other == ["mind_status"]


@pytest.mark.attack("http")
@pytest.mark.parametrize("session", ["user rita", "0" * 32])
def test_a_header_names_no_session_without_sessions(server: Served, session: str) -> None:
    async def history(client: Client) -> list[str]:
        answer = await called(client, "getContext", include_history=True)
        return [row["tool_name"] for row in answer.structured_content["tool_history"]]

    async def status(client: Client) -> Any:
        return await called(client, "mind_status")

    given = bearer("ana", **{"mcp-session-id": session})
    server.asked("auto", status, "/bank", headers=bearer("rita"))
    before = server.asked("auto", history, "/bank", headers=bearer("ana"))
    assert server.asked("auto", history, "/bank", headers=given) == [*before, "getContext"]


@pytest.mark.attack("http")
@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        f"Bearer {TOKEN}",
        f"Bearer {token_of('eve')}",
        f"Bearer {digest_of(token_of('ana'))}",
        f"Basic {token_of('ana')}",
        f"Bearer {token_of('ana')},{token_of('bob')}",
    ],
)
def test_a_request_needs_a_valid_token(server: Served, authorization: str) -> None:
    headers = {**JSON, "authorization": authorization}

    answer = httpx2.post(f"{server.url}/shop", json=INITIALIZE, headers=headers)

    assert answer.status_code == 401
    assert token_of("eve") not in answer.text


@pytest.mark.attack("http")
def test_a_batch_with_a_writing_call_is_refused(server: Served) -> None:
    session = post(server, "rita", "/bank").headers["mcp-session-id"]
    params = {"name": "memory", "arguments": {"operation": "store", "content": "In a batch"}}
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}

    batch = post(server, "rita", "/bank", [call, call], mcp_session_id=session)
    alone = post(server, "rita", "/bank", call, mcp_session_id=session)

    assert batch.status_code == 400
    assert "Access denied to tool" in alone.text


@pytest.mark.attack("http")
def test_a_revoked_token_ends_open_sessions_and_streams(team: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    with served(team / "home", "--tokens", str(file)) as server:
        assert post(server, "ana", "/shop").status_code == 401
        tokens.write(file, USERS)  # The first token is added while the server runs.
        session = post(server, "ana", "/shop").headers["mcp-session-id"]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert post(server, "ana", "/shop", ping, mcp_session_id=session).status_code == 200
        headers = bearer("ana") | {"accept": "text/event-stream", "mcp-session-id": session}
        with httpx2.stream("GET", f"{server.url}/shop", headers=headers, timeout=30) as stream:
            assert stream.status_code == 200
            tokens.write(file, [user for user in USERS if user.name != "ana"])
            assert post(server, "ana", "/shop", ping, mcp_session_id=session).status_code == 401
            with suppress(httpx2.RemoteProtocolError):  # The stream was cut.
                assert list(stream.iter_lines()) == []
        assert post(server, "bob", "/shop").status_code == 200

        file.chmod(0o644)
        assert post(server, "bob", "/shop").status_code == 503
        file.chmod(0o600)
        assert post(server, "bob", "/shop").status_code == 200
        tokens.write(file, [member("bob", expires=datetime(2026, 1, 1, tzinfo=UTC))])
        assert post(server, "bob", "/shop").status_code == 401
        _, log = server.stop()
    assert "secret-token" not in log
    assert f"the tokens can't be read: other users can read or change `{file}`; chmod 600" in log


@pytest.mark.attack("http")
def test_a_narrowed_token_loses_its_rights_within_a_session(team: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    tokens.write(file, USERS)

    async def talk(running: Served) -> list[Any]:
        async with running.client("legacy", "/shop", headers=bearer("ana")) as client:
            before = await called(client, "memory", operation="store", content="Ana may write")
            tokens.write(file, [member("ana", Scope.READ)])
            return [before, await called(client, "memory", operation="store", content="Not now")]

    with served(team / "home", "--tokens", str(file)) as running:
        before, after = anyio.run(talk, running)

    assert not before.is_error
    assert "Access denied to tool" in text_of(after)


def test_the_two_kinds_of_tokens_exclude_each_other(team: Path) -> None:
    with (
        pytest.raises(AssertionError, match="use one"),
        served(team / "home", "--tokens", "a.toml", "--token-file", "b"),
    ):
        pass


# The state of the server.


def test_the_server_is_ready_and_shows_open_metrics_without_a_token(
    team: Path, tmp_path: Path
) -> None:
    file = tmp_path / "tokens.toml"
    tokens.write(file, USERS)
    options = ["--index-url", "postgresql://nobody@127.0.0.1:9/none", "--metrics-open"]
    with served(team / "home", "--tokens", str(file), *options) as running:
        answer = httpx2.get(f"{running.base}/readyz", timeout=30)
        assert httpx2.get(f"{running.base}/metrics").status_code == 200
        assert httpx2.get(f"{running.base}/healthz").json() == {"status": "ok"}

    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "failed": ["index"]})


def test_a_server_without_a_shared_index_is_ready(server: Served) -> None:
    answer = httpx2.get(f"{server.base}/readyz", timeout=30)

    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "failed": []})
    assert httpx2.get(f"{server.base}/readyz", headers={"host": "evil"}).status_code == 403


@pytest.mark.attack("http")
def test_the_metrics_are_for_administrators_and_name_no_one(server: Served) -> None:
    async def talk(client: Client) -> None:
        await called(client, "memory", operation="store", content="The swordfish is counted")

    server.asked("auto", talk, "/bank", headers=bearer("ana"))
    server.asked("auto", talk, "/bank", headers=bearer("rita"))

    def metrics(name: str) -> Any:
        return httpx2.get(f"{server.base}/metrics", headers=bearer(name), timeout=30)

    assert httpx2.get(f"{server.base}/metrics").status_code == 401
    assert [metrics(name).status_code for name in ("rita", "ana", "eve")] == [403, 403, 401]
    text = metrics("adam").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    calls = {
        (sample.labels["tool"], sample.labels["result"]): sample.value
        for sample in families["mind_calls"].samples
    }
    assert calls["memory", "ok"] >= 1
    assert calls["memory", "PERMISSION_DENIED"] >= 1
    samples = families["mind_call_seconds"].samples
    counts = {sample.name: sample.value for sample in samples if sample.labels["tool"] == "memory"}
    assert counts["mind_call_seconds_count"] == calls["memory", "ok"] + sum(
        value for (tool, result), value in calls.items() if tool == "memory" and result != "ok"
    )
    assert families["mind_projects_open"].samples[0].value >= 1
    for word in ("ana", "rita", "example.org", "swordfish", "bank", "shop"):
        assert word not in text


def test_a_password_on_the_command_line_is_refused(team: Path) -> None:
    options = ["--index-url", "postgresql://ana:hunter2@127.0.0.1:9/none"]
    with pytest.raises(AssertionError) as raised, served(team / "home", *options):
        pass
    assert "password" in str(raised.value)
    assert "hunter2" not in str(raised.value)
