"""The server made from sample commands, asked by the SDK's own client in both eras."""

import asyncio
import gc
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from mcp import MCPError
from mcp.client import Client

from mimo.call.spec import Arg, Effect, Out, Tool, command, spec_of
from mimo.call.table import CommandTable
from mimo.errors import NoProject, NotFound
from mimo.operations.listening import Memory
from mimo.project.projects import Project
from mimo.server import Mode
from mimo.server.app import MOST_WAITING, App
from mimo.server.exposure import Listing
from mimo.server.stdio import Lines
from mimo.server.tools import INSTRUCTIONS
from tests.conftest import Unguarded

INVALID_PARAMS = -32602


class FakeMind(Unguarded):
    """As much of a Mind as the server hands on."""

    has_project = True
    project = Project(root=Path("/"), name="x")
    store = trust = index = None
    author: str | None = None
    is_outdated = False

    def watch(self) -> None:
        """A real one would be notified of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The result of a sample command."""

    text: Annotated[str, Out("What was said")]
    by: str | None = None


started = threading.Event()
released = threading.Event()
waiting = threading.Semaphore(0)


@command("save/decision", effect=Effect.WRITE, toolset="save")
def decide(call: Any, decision: Annotated[str, Arg("What was decided")]) -> Said:
    """Record a decision

    Use when one was made.
    """
    return Said(text=decision, by=call.author)


@command("listMemory", effect=Effect.READ, toolset="values")
def keys(call: Any, *, prefix: Annotated[str | None, Arg("Start of the keys")] = None) -> Said:
    """List the keys"""
    return Said(text=str(prefix))


@command("mind_rm", cli="rm", effect=Effect.DESTROY, toolset="extra", errors=(NotFound,))
def rm(call: Any, id: Annotated[str, Arg("Id")]) -> Said:
    """Remove a memory"""
    if id == "broken":
        raise RuntimeError("the secret text of a memory")
    raise NotFound(f"no memory `{id}`", hint="look again", details={"id": id})


@command("old_decide", effect=Effect.WRITE, toolset="legacy", instead="save/decision")
def old(call: Any, text: Annotated[str, Arg("Text")]) -> Said:
    """Record a decision as before"""
    return Said(text=text)


@command("mind_wait", effect=Effect.READ, toolset="edges", waits=True)
def wait(call: Any, *, async_: Annotated[bool, Arg("Do not wait", wire="async")] = False) -> Said:
    """Wait for the test"""
    if not async_:
        started.set()
        waiting.release()
        released.wait(10)
    return Said(text="done")


BOX = Tool(name="box", description="Boxes: open and close them")


@command(BOX, operation="open", effect=Effect.READ, toolset="memory")
def open_box(call: Any, *, width: Annotated[int, Arg("Width", ge=1)] = 1) -> Said:
    """Open a box"""
    return Said(text=f"open {width}")


@command(BOX, operation="shut", effect=Effect.WRITE, toolset="memory")
def shut_box(call: Any, lock: Annotated[str, Arg("Lock")]) -> Said:
    """Shut a box"""
    return Said(text=f"shut with {lock}")


SAMPLES = (decide, keys, rm, old, wait, open_box, shut_box)


def app(open: Callable[[], Any] = FakeMind, **settings: Any) -> App:
    specs = [spec for function in SAMPLES if (spec := spec_of(function))]
    commands = CommandTable({}, unlisted=["samples"], load=lambda _: specs)
    chosen = {"toolsets": (), "naming": "underscore"} | settings
    return App(Memory(open), commands, **chosen)


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Any:
    return request.param


def asked(served: App, era: Any, ask: Callable[[Client], Awaitable[Any]]) -> Any:
    """Returns what a client gets that talks to the application in memory."""

    async def talk() -> Any:
        async with Client(served.server(), mode=era) as client:
            return await ask(client)

    return anyio.run(talk)


def called(name: str, arguments: dict[str, Any], era: Any = "auto", **settings: Any) -> Any:
    return asked(app(**settings), era, lambda client: client.call_tool(name, arguments))


def names(**settings: Any) -> list[str]:
    listed = asked(app(**settings), "auto", lambda client: client.list_tools())
    return [tool.name for tool in listed.tools]


@pytest.mark.req("004-02")
def test_tools_are_listed_in_the_order_and_spelling_that_was_chosen() -> None:
    assert names() == ["save_decision", "box", "listMemory", "mind_wait"]
    assert names(naming="slash")[0] == "save/decision"
    assert names(naming="dot")[0] == "save.decision"
    assert names(toolsets=["extra", "legacy"]) == ["save_decision", "mind_rm", "old_decide"]
    assert names(toolsets=["core"]) == ["save_decision"]
    assert names(toolsets=["all"]) == ["save_decision", "box", "listMemory", "mind_wait", "mind_rm"]


@pytest.mark.parametrize(
    "method", ["list_tools", "list_resources", "list_resource_templates", "list_prompts"]
)
def test_an_unknown_cursor_is_refused(era: Any, method: str) -> None:
    async def ask(client: Client) -> Any:
        with pytest.raises(MCPError, match="unknown cursor") as refused:
            await getattr(client, method)(cursor="2")
        return refused.value.error.code

    assert asked(app(), era, ask) == -32602


def test_a_tool_is_described_with_schemas_and_the_annotations_that_are_not_the_default(
    era: Any,
) -> None:
    listed = asked(app(), era, lambda client: client.list_tools())
    tools = {tool.name: tool for tool in listed.tools}
    decide, box = tools["save_decision"], tools["box"]

    assert decide.description == "Record a decision\n\nUse when one was made."
    assert decide.input_schema == {
        "type": "object",
        "properties": {"decision": {"type": "string", "description": "What was decided"}},
        "required": ["decision"],
    }
    assert decide.output_schema is None
    assert (decide.title, box.title) == ("Record a decision", "Boxes: open and close them")
    hints = decide.annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint) == (None, False)
    assert (hints.idempotent_hint, hints.open_world_hint) == (None, False)
    assert box.description == "Boxes: open and close them\nopen(width?), shut(lock)"
    assert box.annotations is not None
    assert (box.annotations.read_only_hint, box.annotations.idempotent_hint) == (None, None)
    assert tools["listMemory"].annotations is not None
    assert tools["listMemory"].annotations.read_only_hint is True


def test_destructive_and_deprecated_tools_are_marked() -> None:
    listed = asked(app(toolsets=["extra", "legacy"]), "auto", lambda client: client.list_tools())
    rm, old = listed.tools[1:]

    assert rm.annotations.destructive_hint is True
    assert old.description == "Deprecated: use save_decision. Record a decision as before"


@pytest.mark.parametrize(
    "name", ["save/decision", "save.decision", "save_decision", "save-decision"]
)
@pytest.mark.req("004-02")
def test_a_call_accepts_every_spelling_of_a_name(era: Any, name: str) -> None:
    result = called(name, {"decision": "tea"}, era)

    assert result.structured_content == {"text": "tea", "by": "mcp"}


def test_the_answer_is_the_same_as_structured_content_and_as_text(era: Any) -> None:
    result = called("listMemory", {"prefix": "é"}, era)

    assert not result.is_error
    assert result.structured_content == {"text": "é", "by": None}
    assert [block.text for block in result.content] == ["text: é\nby: null"]


def test_an_optional_argument_that_is_null_counts_as_absent() -> None:
    assert called("listMemory", {"prefix": None}).structured_content["text"] == "None"


@pytest.mark.req("000-115")
def test_an_unlisted_tool_can_be_called(era: Any) -> None:
    assert not called("listMemory", {}, era, toolsets=["save"]).is_error


def test_an_error_is_text_with_its_wire_form_in_meta(era: Any) -> None:
    result = called("mind_rm", {"id": "x"}, era)

    assert result.is_error
    assert result.structured_content is None
    assert [block.text for block in result.content] == [
        "error: no memory `x` [NOT_FOUND]\nhint: look again"
    ]
    assert result.meta["mind/error"] == {
        "type": "error",
        "error": {
            "code": "NOT_FOUND",
            "message": "no memory `x`",
            "details": {"id": "x", "hint": "look again"},
        },
    }


def test_an_internal_error_never_shows_its_own_text(
    era: Any, caplog: pytest.LogCaptureFixture
) -> None:
    result = called("mind_rm", {"id": "broken"}, era)

    assert result.is_error
    assert "INTERNAL_ERROR" in result.content[0].text
    assert "secret" not in str(result)
    assert "RuntimeError: the secret text" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`operation` is missing"),
        ({"operation": "burn"}, "`operation` must be one of open, shut; not `burn`"),
        ({"operation": "shut"}, "`lock` is missing"),
        ({"operation": "shut", "lock": "a", "width": 1}, "`width` is not an argument of `shut`"),
        ({"operation": "open", "width": 0}, "`width` must be at least 1, not `0`"),
        ({"operation": "open", "wide": 0}, "`wide` is not an argument of `open`"),
    ],
)
def test_wrong_arguments_are_named(era: Any, arguments: dict[str, Any], message: str) -> None:
    result = called("box", arguments, era)

    assert result.is_error
    assert result.content[0].text.startswith(f"error: {message} [VALIDATION_ERROR]\nhint: ")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("save_decison", "; did you mean save_decision?"),
        ("mind_trust", "; did you mean the user's command `trust`?"),
        ("mind/config", "; did you mean the user's command `config`?"),
        ("mind_sessions", ""),  # It is a tool of the user's own clients, and no command.
    ],
)
def test_an_unknown_tool_is_an_error_of_the_protocol_with_what_it_may_mean(
    era: Any, name: str, meant: str
) -> None:
    async def refused(client: Client) -> MCPError:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(name, {})
        return caught.value

    error = asked(app(), era, refused)

    assert error.code == INVALID_PARAMS
    assert error.message == f"Unknown tool: {name}{meant}"


@pytest.mark.req("000-60")
def test_each_call_of_a_deprecated_name_is_logged_and_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = app()

    async def twice(client: Client) -> None:
        for _ in range(2):
            assert not (await client.call_tool("old_decide", {"text": "tea"})).is_error

    asked(served, "auto", twice)

    lines = [record.message for record in caplog.records if record.name == "mind"]
    assert lines == 2 * ["`old_decide` is deprecated and removed in 3.0: use save_decision"]


def test_outside_a_project_tools_are_listed_and_calls_explain_how_to_name_one(era: Any) -> None:
    class Nowhere(FakeMind):
        has_project = False

        @property
        def project(self) -> None:  # type: ignore[override]
            raise NoProject("there is no project here", hint="name one with --project DIR")

    assert names(open=Nowhere) == names()
    result = called("listMemory", {}, era, open=Nowhere)
    assert result.content[0].text == (
        "error: there is no project here [PROJECT_NOT_REGISTERED]\n"
        "hint: name one with --project DIR"
    )


def test_a_project_made_while_the_server_runs_is_found_and_then_kept() -> None:
    opened = 0

    class Late(FakeMind):
        def __init__(self) -> None:
            nonlocal opened
            super().__init__()
            opened += 1
            self.has_project = opened > 2

        def close(self) -> None:
            closed.append(self.has_project)

    closed: list[bool] = []
    memory = Memory(Late)  # type: ignore[arg-type]
    answers = [memory.mind().has_project for _ in range(4)]

    assert answers == [False, False, True, True]
    assert opened == 3
    assert closed == [False, False]


def test_other_requests_are_answered_while_a_command_works(era: Any) -> None:
    started.clear()
    released.clear()

    async def both(client: Client) -> Any:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "mind_wait", {})
            await anyio.to_thread.run_sync(started.wait, 10)
            answer = await client.call_tool("listMemory", {})
            released.set()
        return answer

    assert not asked(app(), era, both).is_error


@pytest.mark.attack("calls that wait")
def test_waiting_calls_are_limited_and_hold_up_no_others(
    era: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.server.app.MOST_CALLS", 1)
    released.clear()

    while waiting.acquire(blocking=False):
        pass

    def all_wait() -> None:
        for _ in range(MOST_WAITING):
            waiting.acquire(timeout=10)

    async def talk(client: Client) -> Any:
        async with anyio.create_task_group() as tasks:
            for _ in range(MOST_WAITING):
                tasks.start_soon(client.call_tool, "mind_wait", {})
            await anyio.to_thread.run_sync(all_wait)
            answers = [
                await client.call_tool(name, given)
                for name, given in (
                    ("listMemory", {}),
                    ("mind_wait", {}),
                    ("mind_wait", {"async": False}),
                    ("mind_wait", {"async": True}),
                )
            ]
            released.set()
        return [*answers, await client.call_tool("mind_wait", {})]

    listed, refused, again, at_once, after = asked(app(), era, talk)

    assert [answer.is_error for answer in (listed, at_once, after)] == [False] * 3
    for answer in (refused, again):
        assert "16 calls wait already [RATE_LIMITED]" in answer.content[0].text
        assert "`async`" in answer.content[0].text


def test_the_instructions_are_short_and_the_same_for_everybody(era: Any) -> None:
    assert len(INSTRUCTIONS.encode()) < 2_048

    async def told(client: Client) -> Any:
        return client.instructions

    assert asked(app(), era, told) == INSTRUCTIONS


def test_input_after_the_end_is_dropped_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()

    async def start() -> None:
        Lines(reading, _no_reply, anyio.lowlevel.checkpoint)

    asyncio.run(start())
    os.write(writing, b"{}\n")
    os.close(writing)
    for thread in threading.enumerate():
        if thread.name == "standard input":
            thread.join(10)
    os.close(reading)

    gc.collect()
    assert capfd.readouterr().err == ""


async def _no_reply(_: object) -> None:
    raise AssertionError


def test_lists_that_do_not_change_have_a_lifetime_for_clients_of_the_newer_protocol() -> None:
    async def lifetimes(client: Client) -> list[tuple[int, str]]:
        lists: list[Any] = [
            await client.list_tools(),
            await client.list_prompts(),
            await client.list_resource_templates(),
        ]
        return [(each.ttl_ms, each.cache_scope) for each in lists]

    hour = (3_600_000, "private")
    served = app(listing=Listing(Mode.DYNAMIC))
    assert asked(app(), "auto", lifetimes) == [hour, hour, hour]
    assert asked(served, "auto", lifetimes)[0] == (0, "private")
