"""`mind mcp` through a real pipe: the SDK's own client in both eras, and raw lines."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.client import Client

from mimo.call import Call
from mimo.memory.ids import handle_of
from mimo.mind import Mind
from tests import kit

INVALID_PARAMS = -32602


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Any:
    return request.param


async def stored(client: Client, content: str) -> str:
    """Returns the id of a memory that was stored."""
    arguments = {"operation": "store", "content": content, "tags": ["api"]}
    result = await client.call_tool("memory", arguments)
    assert not result.is_error, result.content
    identity: str = result.structured_content["id"]
    return identity


@pytest.mark.req("000-31")
@pytest.mark.req("000-40")
@pytest.mark.req("003-46")
def test_a_memory_stored_over_the_pipe_is_found_and_read_as_a_resource(
    project: Path, era: Any
) -> None:
    async def talk(client: Client) -> Any:
        identity = await stored(client, "The staging database is reset every night")
        matches = await client.call_tool(
            "memory", {"operation": "search", "query": "staging database reset"}
        )
        listed = await client.list_resources()
        templates = await client.list_resource_templates()
        read = await client.read_resource(f"mind://memory/{identity}")
        return identity, matches, listed, templates, read

    identity, matches, listed, templates, read = kit.over_pipe(project, talk, era=era)

    assert [row["id"] for row in matches.structured_content["results"]] == [handle_of(identity)]
    assert "The staging database is reset every night" in matches.content[0].text
    uris = [resource.uri for resource in listed.resources]
    assert uris == ["mind://context", f"mind://memory/{identity}"]
    assert [template.uri_template for template in templates.resource_templates] == [
        "mind://memory/{id}"
    ]
    (content,) = read.contents
    assert (content.uri, content.mime_type) == (f"mind://memory/{identity}", "text/markdown")
    assert content.text == next((project / ".mind/facts").glob("*.md")).read_text(encoding="utf-8")


def test_arguments_that_can_mean_one_thing_are_accepted(call: Call) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("save_insight", {"content": "Vercel strips cookies", "tags": "api", "private": "false"}),
        ("save_checkpoint", {"text": "Half done", "next_steps": '["write the test"]'}),
        ("mind_list", {"limit": "5", "tag": '["api"]', "type": "insight"}),
        ("search_recent", {"days": "3", "limit": "1"}),
        ("search_recent", {"since": "yesterday", "type": "checkpoint"}),
        ("mind_list", {"limit": "many"}),
        ("mind_list", {"limits": 5}),
        ("save_insight", {"content": "a", "insight": "b"}),
    ]

    async def talk(client: Client) -> list[Any]:
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    *answers, wrong, unknown, twice = kit.client(call, talk)

    assert [answer.is_error for answer in answers] == [False] * 5
    rows = answers[2].structured_content["memories"]
    assert [(row["title"], row["tags"]) for row in rows] == [("Vercel strips cookies", ["api"])]
    newest, checkpoints = (answer.structured_content["results"] for answer in answers[3:])
    assert [row["type"] for row in (*newest, *checkpoints)] == ["checkpoint", "checkpoint"]
    for refused, message in (
        (wrong, "`limit` must be a whole number, not `many`"),
        (unknown, "did you mean `limit`?"),
        (twice, "`content` and `insight` are names of the same argument"),
    ):
        assert refused.is_error
        assert message in refused.content[0].text


def test_a_missing_resource_is_an_error_of_the_protocol(call: Call, era: Any) -> None:
    async def talk(client: Client) -> list[MCPError]:
        errors = []
        for uri in ("mind://memory/nothing_here", "mind://other/thing", "file:///etc"):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            errors.append(caught.value)
        return errors

    for error in kit.client(call, talk, era=era):
        assert error.code == INVALID_PARAMS
        assert error.data["error"]["code"] == "NOT_FOUND"


def test_a_memory_that_changes_outside_is_seen_by_the_next_call(call: Call) -> None:
    async def talk(client: Client) -> tuple[Any, Any]:
        before = await client.call_tool("memory", {"operation": "list"})
        (call.mind.project.root / ".mind/facts").mkdir(exist_ok=True)
        (call.mind.project.root / ".mind/facts/by-hand.md").write_text(
            "Written by hand\n", encoding="utf-8"
        )
        return before, await client.call_tool("memory", {"operation": "list"})

    before, after = kit.client(call, talk)

    assert (before.structured_content["total"], after.structured_content["total"]) == (0, 1)


@pytest.mark.req("003-46")
def test_outside_a_project_tools_are_listed_and_a_call_explains_how_to_name_one(
    tmp_path: Path,
) -> None:
    async def talk(client: Client) -> Any:
        return await client.list_tools(), await client.call_tool("memory", {"operation": "list"})

    listed, result = kit.over_pipe(tmp_path, talk)

    assert "memory" in [tool.name for tool in listed.tools]
    assert result.is_error
    assert result.meta["mind/error"]["error"]["code"] == "PROJECT_NOT_REGISTERED"
    for way in ("mind init", "--project", "MIND_PROJECT"):
        assert way in result.content[0].text


@pytest.mark.parametrize("way", ["option", "CLAUDE_PROJECT_DIR"])
def test_the_project_can_be_named(project: Path, tmp_path: Path, way: str) -> None:
    args = ["--project", str(project)] if way == "option" else []
    env = {} if way == "option" else {way: str(project)}

    async def talk(client: Client) -> Any:
        return await client.call_tool("memory", {"operation": "list"})

    assert not kit.over_pipe(tmp_path, talk, *args, **env).is_error


def test_a_variable_names_the_project(project: Path, tmp_path: Path, home: Path) -> None:
    named = Mind.open(tmp_path, environ={"MIND_HOME": str(home), "MIND_PROJECT": str(project)})
    assert named.project.root == project


@pytest.mark.req("000-60")
@pytest.mark.attack("secret in the name of a client")
def test_a_deprecated_name_is_logged_on_standard_error_and_a_secret_in_a_clients_name_not_stored(
    project: Path,
) -> None:
    key = "AKIA" + "QW7RT2PL5ZX6NB4K"
    named = {**LEGACY, "clientInfo": {"name": f"a client {'x' * 40} {key}", "version": "1"}}
    calls = [call("store_fact", {}), call("store_fact", {}), call("mind_add", {"content": "Tea"})]
    lines = [request(number, "tools/call", each) for number, each in enumerate(calls, 2)]
    done = piped(project, [request(1, "initialize", named), *lines])

    assert [answer["id"] for answer in done.answers] == [1, 2, 3, 4]
    assert done.errors.count("`store_fact` is deprecated") == 2
    (fact,) = (project / ".mind" / "facts").glob("*.md")
    assert f"by: a client {'x' * 40} REDACTED" in fact.read_text("utf-8")


LEGACY = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


def call(name: str, arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def request(number: int, method: str, params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


class Done:
    """The output of a server that was sent raw lines."""

    def __init__(self, ended: "subprocess.CompletedProcess[bytes]") -> None:
        self.status = ended.returncode
        self.answers = [json.loads(line) for line in ended.stdout.decode().splitlines()]
        self.errors = ended.stderr.decode()


def piped(folder: Path, lines: list[str]) -> Done:
    """Feeds raw lines to a server, waits for an answer to each request, and closes the pipe."""
    with subprocess.Popen(
        [sys.executable, "-m", "mimo", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=kit.environment(),
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        written = b""
        for line in lines:
            server.stdin.write(line.encode() + b"\n")
            server.stdin.flush()
            if '"id"' in line or not line.startswith("{"):
                written += server.stdout.readline()
        rest, errors = server.communicate(timeout=30)
    return Done(subprocess.CompletedProcess([], server.returncode, written + rest, errors))


def test_malformed_input_leaves_the_server_working_and_stdout_clean(project: Path) -> None:
    invalid = ("null", "1.5", "2.0", "true", "[1]", "{}")
    done = piped(
        project,
        [
            *(f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}' for id in invalid),
            request(1, "initialize", LEGACY),
            '{"jsonrpc":"2.0","method":"notifications/initialized"}',
            "not json",
            "[]",
            request(2, "no/such/method", {}),
            request(3, "tools/call", {"name": "memory", "arguments": "text"}),
            request(4, "tools/call", call("memory", {"operation": "list", "limit": 1e400})),
            request(5, "tools/call", call("memory", {"operation": "list"})),
        ],
    )
    refused, by_id = done.answers[: len(invalid)], {each.get("id"): each for each in done.answers}

    assert done.status == 0
    assert {answer.get("id") for answer in refused} == {None}
    for answer in refused:
        assert answer["error"] == {
            "code": -32600,
            "message": "the id of a request must be a string or an integer",
        }
    assert by_id[2]["error"]["code"] == -32601
    assert by_id[3]["error"]["code"] == INVALID_PARAMS
    assert by_id[4].get("error") or by_id[4]["result"]["isError"]
    assert by_id[5]["result"]["structuredContent"]["total"] == 0


def test_a_request_that_is_nested_too_deeply_is_answered_by_its_id(project: Path) -> None:
    def nested(levels: int, before: str, after: str) -> str:
        value = "[" * levels + '{"id":7},"\\"id\\":8"' + "]" * levels
        arguments = f'{{"namespace":"session.a","key":"k","value":{value}}}'
        params = f'"params":{{"name":"putMemory","arguments":{arguments}}}'
        return f'{{"jsonrpc":"2.0",{before}"method":"tools/call",{params}{after}}}'

    lines = [nested(200, '"id":2,', ""), nested(2_000, "", ', "id" : "last" ')]
    lines += [nested(200, '"id":2.5,', ""), "[" * 200 + '"id":4' + "]" * 200]
    done = piped(project, [request(1, "initialize", LEGACY), *lines])

    assert [each["id"] for each in done.answers] == [1, 2, "last", None, None]
    assert {each["error"]["code"] for each in done.answers[1:]} == {-32700}


def test_a_mark_before_the_first_message_and_half_a_character_are_read(project: Path) -> None:
    contents = ("Cut \\ud83d tea", "Whole \\ud83c\\udf75 tea", "C:\\\\\\\\udd tea")
    calls = [
        request(number, "tools/call", call("mind_add", {"content": "TEXT"})).replace("TEXT", text)
        for number, text in enumerate(contents, 2)
    ]
    done = piped(project, ["\ufeff" + request(1, "initialize", LEGACY), *calls])

    titles = [each["result"]["structuredContent"]["title"] for each in done.answers[1:]]
    assert titles == ["Cut \ufffd tea", "Whole \U0001f375 tea", r"C:\\udd tea"]


def test_a_batch_is_answered_by_one_line_in_the_revision_that_has_batches(project: Path) -> None:
    pings = [json.loads(request(number, "ping", {})) for number in (2, 3)]
    notified = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    batch = json.dumps([notified, *pings, {"jsonrpc": "2.0", "id": 4}])
    later = piped(project, [request(1, "initialize", LEGACY), batch]).answers[1]
    older = LEGACY | {"protocolVersion": "2025-03-26"}
    done = piped(project, [request(1, "initialize", older), batch, request(5, "ping", {})])

    assert later["error"]["code"] == -32600
    assert [each.get("id", "") for each in done.answers if isinstance(each, dict)] == [1, 5]
    (answers,) = (each for each in done.answers if isinstance(each, list))
    assert {each["id"]: "result" in each for each in answers} == {2: True, 3: True, 4: False}


def test_invalid_items_of_a_batch_are_refused_and_the_others_answered(project: Path) -> None:
    deep = f'{{"jsonrpc":"2.0","id":2,"method":"ping","params":{{"a":{"[" * 200}{"]" * 200}}}}}'
    text = '{"jsonrpc":"2.0","id":4,"method":"ping","params":{"_meta":{"a":"],[\\",{"}}}'
    older = request(1, "initialize", LEGACY | {"protocolVersion": "2025-03-26"})
    batches = [f"[1, {deep} ,{text}, null, []]", f"[{deep}]", "[1]", "[]", "[1,]"]
    done = piped(project, [older, *batches, request(9, "ping", {})])

    codes = [
        sorted((str(each["id"]), each.get("error", {}).get("code", 0)) for each in answers)
        for answers in (each if isinstance(each, list) else [each] for each in done.answers)
    ]
    invalid = ("None", -32600)
    assert sorted(codes) == sorted(
        [
            [("1", 0)],
            [("2", -32700), ("4", 0), *[invalid] * 3],
            [("2", -32700)],
            [invalid],  # Of the list with one number.
            [invalid],  # Of the empty list.
            [("None", -32700)],
            [("9", 0)],
        ]
    )
    assert sum(isinstance(each, list) for each in done.answers) == 3


def test_calls_before_the_end_of_the_input_are_answered(project: Path) -> None:
    stored = [
        call("mind_add", {"content": f"{word} is stored"}) for word in ("One", "Two", "Three")
    ]
    lines = [
        request(1, "initialize", LEGACY),
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        request(2, "resources/subscribe", {"uri": "mind://context"}),
        request(3, "tools/call", call("no_such_tool", {})),
        *(request(number, "tools/call", each) for number, each in enumerate(stored, 4)),
    ]
    ended = subprocess.run(
        [sys.executable, "-m", "mimo", "mcp"],
        input="\n".join(lines).encode(),
        capture_output=True,
        cwd=project,
        env=kit.environment(),
        check=True,
    )
    by_id = {answer["id"]: answer for answer in Done(ended).answers}

    assert sorted(by_id) == [1, 2, 3, 4, 5, 6]
    assert [by_id[number]["result"].get("isError") for number in (4, 5, 6)] == [False] * 3
    assert len(list((project / ".mind/facts").glob("*.md"))) == 3


def test_a_wrong_setting_of_the_server_ends_it_with_an_error(call: Call) -> None:
    for option in (["--toolsets", "core,nope"], ["--tool-names", "camel"]):
        ended = kit.run(call, "-v", "mcp", *option, status=2)
        assert ended.out == ""
        assert "[VALIDATION_ERROR]" in ended.err


def test_many_calls_at_once_are_all_answered_from_the_first_one_on(call: Call) -> None:
    async def talk(client: Client) -> tuple[list[Any], Any]:
        results: list[Any] = []

        async def store(number: int) -> None:
            content = f"Fact number {number}"
            call = {"operation": "store", "content": content}
            results.append(await client.call_tool("memory", call))

        async def search(number: int) -> None:
            call = {"operation": "search", "query": f"number {number}"}
            results.append(await client.call_tool("memory", call))

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(store if number % 2 else search, number)
        return results, await client.call_tool("memory", {"operation": "list"})

    results, listed = kit.client(call, talk)

    assert [result.content[0].text for result in results if result.is_error] == []
    assert listed.structured_content["total"] == 10
