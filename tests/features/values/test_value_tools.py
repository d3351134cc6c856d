"""The four documented tools, as clients call them."""

import json
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from mimo.call import Call, Caller, Surface
from mimo.call.schema import input_schema, output_schema
from mimo.call.spec import Effect, command, spec_of, to_json
from mimo.call.table import all_commands
from mimo.errors import (
    Denied,
    Invalid,
    MindError,
    NotFound,
    PiiDetected,
    RateLimited,
    SecretDetected,
    StorageFailed,
)
from mimo.features import values
from mimo.features.daemon.process import Loop
from mimo.features.scan.commands import scan
from mimo.guard.policy import FILE
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.operations.listening import Memory
from mimo.text.tool_names import spelled
from tests import kit, privacy_fakes
from tests.conftest import NOW, Clock

REGISTRY = all_commands()
TOOLS = REGISTRY.tools()
CALLER = Caller(surface=Surface.MCP, name="tester")

ODD: list[Any] = [
    None,
    True,
    0,
    -0.0,
    1.0,
    10**40,
    1e300,
    "",
    "null",
    "é 漢字 🙂\n\u2028",
    [],
    {},
    [[[[[[[[1]]]]]]]],
    {"a": {"b": [None, {"": 1.5}]}, "Ä": "no"},
]


def call_tool(call: Call, tool: str, **arguments: Any) -> Any:
    return to_json(invoke(TOOLS[tool][0], call.by(CALLER), arguments))


def fill(call: Call, namespace: str, *keys: str) -> None:
    for key in keys:
        call_tool(call, "putMemory", namespace=namespace, key=key, value=key)


def test_the_names_are_advertised_as_documented() -> None:
    for name in ("listMemory", "getContext", "putMemory", "getMemory"):
        assert spelled(TOOLS[name][0].name, "underscore") == name


@pytest.mark.req("002-01", "002-02", "002-03", "002-04", "002-12", "002-13", "002-19", "002-21")
def test_the_input_schemas_are_the_documented_ones() -> None:
    listing = input_schema(TOOLS["listMemory"])
    assert listing["required"] == ["namespace"]
    limit = listing["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 100, 50)
    assert {"prefix", "cursor"} <= listing["properties"].keys()

    context = input_schema(TOOLS["getContext"])
    kind = context["properties"]["context_type"]
    assert (kind["enum"], kind["default"]) == (["session", "agent", "task", "all"], "all")
    assert context["properties"]["include_history"]["default"] is False
    assert "required" not in context

    put = input_schema(TOOLS["putMemory"])
    assert put["required"] == ["namespace", "key", "value"]
    assert "type" not in put["properties"]["value"]
    ttl = put["properties"]["ttl_seconds"]
    assert (ttl["type"], ttl["minimum"]) == ("integer", 0)


@pytest.mark.parametrize("namespace", ["agent.a", "session.a"])
@pytest.mark.req("002-20", "002-22", "002-25", "002-60", "002-62")
def test_any_value_round_trips_over_mcp(call: Call, namespace: str) -> None:
    place = {"namespace": namespace, "key": "k"}

    async def talk(client: Client) -> None:
        for value in ODD:
            put = await client.call_tool("putMemory", {**place, "value": value})
            got = await client.call_tool("getMemory", place)
            assert (put.structured_content or {})["success"] is True
            assert json.dumps((got.structured_content or {})["value"]) == json.dumps(value)

    kit.client(call, talk, ["values"])


@pytest.mark.req("002-23")
def test_an_unstorable_value_is_refused_before_writing(call: Call) -> None:
    fill(call, "agent.a", "k")
    deep, deeper = (json.loads("[" * levels + "]" * levels) for levels in (101, 400))
    for value in (deep, deeper, ["\ud800"], [float("inf")]):
        with pytest.raises(Invalid):
            call_tool(call, "putMemory", namespace="agent.a", key="k", value=value)
    with pytest.raises(Invalid, match="missing"):
        call_tool(call, "putMemory", namespace="agent.a", key="k")
    assert call_tool(call, "getMemory", namespace="agent.a", key="k")["value"] == "k"


@pytest.mark.req("002-09")
@pytest.mark.parametrize("keys", [(), ("a",), ("a", "b", "c")])
def test_the_total_is_never_missing_and_equals_the_number_of_keys_of_a_whole_listing(
    call: Call, keys: tuple[str, ...]
) -> None:
    fill(call, "agent.a", *keys)

    answer = call_tool(call, "listMemory", namespace="agent.a")

    assert (answer["keys"], answer["total"]) == (list(keys), len(keys))
    schema = output_schema(TOOLS["listMemory"])
    assert "total" in schema["required"]
    assert schema["properties"]["total"]["type"] == "integer"


@pytest.mark.req("002-06", "002-08")
def test_pages_show_each_key_once_while_others_write(call: Call) -> None:
    fill(call, "agent.a", *(f"k{number:02}" for number in range(20)))
    seen: list[str] = []
    cursor, page = None, 0
    while True:
        answer = call_tool(call, "listMemory", namespace="agent.a", limit=6, cursor=cursor)
        seen += answer["keys"]
        page += 1
        # Before, at and behind where the listing is.
        fill(call, "agent.a", f"a{page}")
        if page == 1:
            call_tool(call, "deleteMemory", namespace="agent.a", key=seen[-1])
            call_tool(call, "deleteMemory", namespace="agent.a", key="k00")
        cursor = answer["cursor"]
        if cursor is None:
            break
    assert seen == [f"k{number:02}" for number in range(20)]


@pytest.mark.req("002-06")
def test_a_cursor_is_refused_in_another_listing_and_never_holds_a_redacted_key(call: Call) -> None:
    secret = next(fake.secret for fake in privacy_fakes.secrets(1) if fake.kind == "github_token")
    for key in (secret, "zz"):
        values.put(call, "agent.a", key, 1, None)
    first = call_tool(call, "listMemory", namespace="agent.a", limit=1)
    cursor = first["cursor"]
    assert first["keys"] != [secret]
    assert secret.encode() not in urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    second = call_tool(call, "listMemory", namespace="agent.a", limit=1, cursor=cursor)
    assert second["keys"] == ["zz"]
    for more in ({"namespace": "agent.b"}, {"namespace": "agent.a", "prefix": "z"}):
        with pytest.raises(Invalid, match="not from this namespace"):
            call_tool(call, "listMemory", cursor=cursor, **more)

    values.remove(call, "agent.a", secret)
    with pytest.raises(Invalid, match="was removed"):
        call_tool(call, "listMemory", namespace="agent.a", limit=1, cursor=cursor)


@pytest.mark.req("002-34")
def test_permission_is_asked_before_any_data_is_touched(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mind, "values", property(lambda _: pytest.fail("data was touched")))

    for tool, more in (
        ("listMemory", {}),
        ("getMemory", {"key": "k"}),
        ("putMemory", {"key": "k", "value": 1}),
        ("deleteMemory", {"key": "k"}),
    ):
        with pytest.raises(Denied) as caught:
            call_tool(call, tool, namespace="vault.a", **more)
        assert caught.value.details["namespace"] == "vault.a"


@pytest.mark.req("002-40", "002-41", "002-43")
def test_a_client_gets_the_documented_error_and_nothing_of_the_data(call: Call) -> None:
    (call.mind.project.root / FILE).write_text(
        'tool_permissions: {putMemory: {allowed_namespaces: ["*"]}}\n', encoding="utf-8"
    )
    call_tool(call, "putMemory", namespace="sensitive", key="code", value="4711")

    async def talk(client: Client) -> Any:
        return await client.call_tool("getMemory", {"namespace": "sensitive", "key": "code"})

    result = kit.client(call, talk, ["values"])
    assert result.is_error
    assert result.structured_content is None
    assert result.meta["mind/error"] == {
        "type": "error",
        "error": {
            "code": "PERMISSION_DENIED",
            "message": "Access denied to namespace 'sensitive'",
            "details": {"namespace": "sensitive", "operation": "read"},
        },
    }
    assert "4711" not in result.model_dump_json()


@pytest.mark.req("002-47", "002-48", "002-49", "002-63")
def test_fifty_calls_at_once_and_then_ten_a_second(call: Call, clock: Clock) -> None:
    def calls() -> int:
        done = 0
        for _ in range(100):
            try:
                call_tool(call, "listMemory", namespace="agent.a")
                done += 1
            except RateLimited as error:
                waits.append(error.details["retry_after"])
                return done
        return done

    waits: list[float] = []
    assert calls() == 50
    clock.forward(seconds=1)
    assert calls() == 10
    assert waits == [0.1, 0.1]
    # Another tool has its own limit, but the namespace is worn out for all.
    with pytest.raises(RateLimited):
        call_tool(call, "getMemory", namespace="agent.a", key="k")
    with pytest.raises(NotFound):
        call_tool(call, "getMemory", namespace="agent.b", key="k")


@pytest.mark.req("002-39")
def test_a_resource_is_no_way_around_the_policy(call: Call) -> None:
    from mimo.server import resources

    written = call_tool(call, "mind_add", content="Tea is served at four")
    uri = f"mind://memory/{written['id']}"
    assert "four" in resources.read(call.by(CALLER), uri).text
    (call.mind.project.root / FILE).write_text(
        "tool_permissions: {mind_show: {operations: []}, mind_list: {operations: []}}\n",
        encoding="utf-8",
    )
    for attempt in (
        lambda: resources.read(call.by(CALLER), uri),
        lambda: resources.newest(call.by(CALLER)),
    ):
        with pytest.raises(Denied):
            attempt()


@pytest.mark.req("002-59")
def test_a_strong_answer_waits_for_a_writer(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(call, "agent.a", "k")
    monkeypatch.setattr("mimo.project.values.lock", lambda *_: pytest.fail("waited"))

    assert call_tool(call, "getMemory", namespace="agent.a", key="k")["value"] == "k"
    with pytest.raises(pytest.fail.Exception):
        values.get(call, "agent.a", "k", values.Consistency.STRONG)


def test_a_redacted_key_is_found_by_its_digest(call: Call) -> None:
    from hashlib import sha256

    fill(call, "agent.a", "call-555-0100", "other")
    mark = f"REDACTED-phone-{sha256(b'call-555-0100').hexdigest()[:8]}"

    assert call_tool(call, "getMemory", namespace="agent.a", key=mark)["value"] == "call-555-0100"
    with pytest.raises(NotFound):
        call_tool(call, "getMemory", namespace="agent.b", key=mark)
    fill(call, "agent.a", mark)
    assert call_tool(call, "getMemory", namespace="agent.a", key=mark)["value"] == mark
    call_tool(call, "deleteMemory", namespace="agent.a", key=mark)
    call_tool(call, "deleteMemory", namespace="agent.a", key=mark)
    assert call_tool(call, "listMemory", namespace="agent.a")["keys"] == ["other"]


def test_the_daemon_removes_expired_values(call: Call, clock: Clock) -> None:
    call_tool(call, "putMemory", namespace="agent.a", key="k", value=1, ttl_seconds=60)
    loop = Loop(call.mind)
    loop.update_projects()
    clock.forward(seconds=61)
    loop.check()

    (database,) = (call.mind.folder / ".local").glob("values-*.db")
    import sqlite3

    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT COUNT(*) FROM entries").fetchone() == (0,)
    connection.close()
    loop.end()


def test_a_read_only_memory_is_read(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are counted in the process if they can't be stored; a failed write is reported."""
    fill(call, "agent.a", "k")
    call.mind.close()

    def refuse(*_: object, **__: object) -> None:
        raise StorageFailed("the file system is read-only")

    monkeypatch.setattr("mimo.project.values.lock", refuse)
    monkeypatch.setattr("mimo.data.sqlite.Database.writing", refuse)
    fresh = Call(
        Mind(home=call.mind.home, project=call.mind.project, clock=call.mind.clock, environ={})
    )
    assert call_tool(fresh, "getMemory", namespace="agent.a", key="k")["value"] == "k"
    with pytest.raises(MindError) as caught:
        call_tool(fresh, "putMemory", namespace="agent.a", key="k", value=2)
    assert caught.value.code == "STORAGE_ERROR"


TELLING: list[tuple[str, Any, str]] = [
    ("password", "hunter2xyz", "password"),
    ("login.password", "hunter2xyz", "login_password"),
    ("db_password", "hunter2xyz", "db_password"),
    ("api_key", "kjh3498sdKJH34kjhs98", ""),
    ("api_key", "short", "api_key"),
    ("stripe_secret_key", "hunter2xyz", "stripe_secret_key"),
    ("pin", 4711, "pin"),
    ("date_of_birth", "1980-02-03", "birth_date"),
    ("order", {"card": 4111111111111111.0}, "credit_card"),
    ("a", {"password": "hunter2xyz"}, "password"),
    ("a", {"DBPassword": "hunter2xyz"}, "db_password"),
    ("a", {"passwords": ["hunter2xyz"]}, "passwords"),
    ("a", {"userpassword": "hunter2xyz"}, "userpassword"),
    ("a", {"\uff50assword": "hunter2xyz"}, "password"),
    ("a", {"access_tokens": ["x"]}, "access_tokens"),
    ("reset-password", "hunter2X!yz", ""),
    ("feature.csrf_token", "kjh3498sdKJH34kjhs98", ""),
]
"""Keys, values, and the name in the error; none if the value itself looks like a secret."""


@pytest.mark.attack("values under a telling key")
@pytest.mark.req("002-37", "002-42", "002-57")
@pytest.mark.parametrize(("key", "value", "name"), TELLING)
def test_a_value_is_checked_together_with_its_key(
    call: Call, key: str, value: Any, name: str
) -> None:
    place = {"namespace": "agent.a", "key": key}
    with pytest.raises(PiiDetected if name else SecretDetected) as caught:
        call_tool(call, "putMemory", **place, value=value)
    assert f"`{name}`" in str(caught.value.hint) or not name

    values.put(call, "agent.a", key, value, None)
    assert str(value) not in str(call_tool(call, "getMemory", **place))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("reset-password", "done"),
        ("resetpassword", "done"),
        ("login-password", "bcrypt"),
        ("todo.rotate-token", "friday"),
        ("todo.renew-credentials", "friday"),
        ("feature.csrf_token", "enabled"),
        ("pad_token", "[PAD]"),
        ("num_secrets", 3),
        ("api_keys", 2),
        ("access_tokens", 2.5),
        ("password", True),
        ("required_secrets", ["NPM_TOKEN"]),
        ("token_count", "hunter2xyz"),
    ],
)
def test_a_harmless_value_under_a_name_about_secrets_is_stored_and_shown(
    call: Call, key: str, value: Any
) -> None:
    for name, item in ((key, value), ("a", {key: value})):
        call_tool(call, "putMemory", namespace="agent.a", key=name, value=item)
        assert call_tool(call, "getMemory", namespace="agent.a", key=name)["value"] == item
    assert scan(call).clean


# The context of the work


def environ(call: Call, **variables: str) -> Call:
    return Call(
        Mind(
            home=call.mind.home, project=call.mind.project, clock=call.mind.clock, environ=variables
        )
    )


@pytest.mark.req("002-13", "002-17", "002-67")
def test_the_history_has_every_call_with_its_success(call: Call) -> None:
    fill(call, "agent.a", "k")
    for attempt in ({"namespace": "vault.a"}, {"namespace": "../x"}, {"nonsense": 1}):
        with pytest.raises(MindError):
            call_tool(call, "listMemory", **attempt)
    call_tool(call, "mind_list")

    assert "tool_history" not in call_tool(call, "getContext")
    history = call_tool(call, "getContext", include_history=True)["tool_history"]
    assert [(used["tool_name"], used["success"]) for used in history] == [
        ("putMemory", True),
        ("listMemory", False),
        ("listMemory", False),
        ("listMemory", False),
        ("mind_list", True),
        ("getContext", True),
    ]
    assert history[0]["timestamp"] == "2026-11-20T15:30:00Z"


@pytest.mark.req("002-67")
def test_a_server_that_reopens_its_memory_keeps_the_session(call: Call, clock: Clock) -> None:
    def opened() -> Mind:
        mind = call.mind
        return Mind(home=mind.home, project=mind.project, clock=mind.clock, environ={})

    memory = Memory(opened)
    call_tool(Call(memory.mind()), "mind_list")
    before = call_tool(Call(memory.mind()), "getContext", context_type="session")
    clock.forward(minutes=5)
    (call.mind.folder / "config.toml").write_text("format = 1\ninclude = []\n", encoding="utf-8")
    after = call_tool(
        Call(memory.mind()), "getContext", context_type="session", include_history=True
    )

    assert after["session_id"] == before["session_id"]
    assert [used["tool_name"] for used in after["tool_history"]] == ["mind_list", "getContext"]


@pytest.mark.req("002-44", "002-64")
def test_a_context_is_cached_for_30_seconds_and_a_history_until_the_next_call(
    call: Call, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(_: Path) -> str:
        made.append("looked")
        return f"b{len(made)}"

    monkeypatch.setattr("mimo.features.context.commands.branch", counted)

    def task(**more: Any) -> str:
        return str(call_tool(call, "getContext", context_type="task", **more)["task_id"])

    assert [task(), task(), task()] == ["b1", "b1", "b1"]
    clock.forward(seconds=29)
    assert task() == "b1"
    clock.forward(seconds=1)
    assert task() == "b2"
    assert task(include_history=True) == "b3"
    call_tool(call, "mind_list")
    assert task(include_history=True) == "b4"
    assert task() == "b2"


@pytest.mark.req("002-66")
def test_a_command_knows_the_context_while_it_runs(call: Call) -> None:
    @command("mind_try", effect=Effect.READ, toolset="extra")
    def look(call: Call) -> Any:
        """Look"""
        session = call.mind.guard.session
        return session.id, call.author, session.started, len(session.history)

    spec = spec_of(look)
    assert spec is not None
    call_tool(call, "mind_list")

    assert invoke(spec, environ(call, MIND_SESSION_ID="s1").by(CALLER), {}) == (
        "s1",
        "tester",
        NOW,
        0,
    )
    seen: Any = invoke(spec, call.by(CALLER), {})
    assert seen[3] == 1


@pytest.mark.parametrize("text", ["x", "-1", "1e9", "NaN", "١٢", "9" * 30])
def test_invalid_usage_in_the_environment_is_ignored(call: Call, text: str) -> None:
    usage = call_tool(environ(call, MIND_TOKENS_USED=text), "getContext")["memory_usage"]

    assert usage == {"tokens_used": 0, "usd_spent": 0.0, "estimated": True}
