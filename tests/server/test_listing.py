"""Which tools are listed: narrowed only for a client that shows that it follows."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import Tool

from mimo.call.table import all_commands
from mimo.features.hooks import exposure as store
from mimo.features.hooks.exposure import Exposure, Intent, classify
from mimo.server import Mode, mode_of
from mimo.server.exposure import Listing
from tests.kit import environment

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
RESUME = ["load_checkpoint", "load_context", "save_decision"]
DECIDE = ["save_decision", "save_insight", "search_by_context", "load_checkpoint"]
LEGACY, MODERN = "2025-06-18", "2026-07-28"

TOOLS = {
    name: Tool(name=name, input_schema={"type": "object"})
    for name in ("memory", "save/decision", "load/checkpoint", "load/context", "search/recent")
}


def prompt(text: str, session: str = "one") -> Exposure:
    """Returns what the hook writes for a prompt."""
    return classify(text)._replace(session=session, at=NOW)


class Session:
    """A client of the older protocol, that may or may not ask for the list again."""

    def __init__(self, listing: Listing, *, follows: bool = True, fails: bool = False) -> None:
        self.listing, self.follows, self.fails = listing, follows, fails
        self.told = 0
        self.seen: list[list[str]] = []

    async def send_tool_list_changed(self) -> None:
        if self.fails:
            raise OSError("the pipe is gone")
        self.told += 1
        if self.follows:
            self.ask()

    def ask(self) -> None:
        self.listing.asked(SimpleNamespace(protocol_version=LEGACY, session=self))  # type: ignore[arg-type]
        self.seen.append(names(self.listing))


def names(listing: Listing) -> list[str]:
    return [tool.name for tool in listing.chosen(TOOLS)]


def run(
    talk: Callable[[Listing, Session], Awaitable[Any]], mode: Mode = Mode.DYNAMIC, **client: bool
) -> tuple[Listing, Session]:
    listing = Listing(mode, patience=0.1)
    session = Session(listing, **client)

    async def whole() -> None:
        session.ask()
        await talk(listing, session)

    anyio.run(whole)
    return listing, session


RESUMING = ["load/checkpoint", "load/context", "save/decision"]


@pytest.mark.req("004-33", "004-37", "004-38", "004-39", "004-48")
def test_a_following_client_gets_a_narrowed_list_and_later_all_tools() -> None:
    async def talk(listing: Listing, _: Session) -> None:
        await listing.changed(prompt("어제 작업 이어서 하자"))
        await listing.changed(prompt("fix the typo"))

    _, session = run(talk)
    assert session.seen == [list(TOOLS), RESUMING, list(TOOLS)]


def test_an_unchanged_list_is_not_announced() -> None:
    async def talk(listing: Listing, _: Session) -> None:
        for text in ("fix it", "continue", "resume", "please continue"):
            await listing.changed(prompt(text))

    _, session = run(talk)
    assert session.told == 1


@pytest.mark.req("004-40", "004-41", "004-42")
def test_a_client_that_does_not_ask_again_in_time_keeps_every_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def talk(listing: Listing, session: Session) -> None:
        await listing.changed(prompt("continue"))
        session.ask()
        await listing.changed(prompt("resume"))

    listing, session = run(talk, follows=False)
    assert (listing.mode, session.told) == (Mode.STATIC, 1)
    assert session.seen == [list(TOOLS), list(TOOLS)]
    assert "does not ask for a list that has changed: every tool" in caplog.text


@pytest.mark.req("004-42", "004-43")
def test_a_client_that_cannot_be_notified_keeps_every_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def talk(listing: Listing, _: Session) -> None:
        await listing.changed(prompt("continue"))

    listing, _ = run(talk, fails=True)
    assert (listing.mode, names(listing)) == (Mode.STATIC, list(TOOLS))
    assert "could not be notified of a change" in caplog.text


def test_a_client_that_stops_following_is_notified_of_the_whole_list() -> None:
    async def talk(listing: Listing, session: Session) -> None:
        await listing.changed(prompt("continue"))
        session.follows = False
        await listing.changed(prompt("decide"))

    listing, session = run(talk)
    assert (listing.mode, session.told) == (Mode.STATIC, 3)


@pytest.mark.req("004-44")
def test_without_a_sure_intent_every_tool_is_listed() -> None:
    doubtful = prompt("continue")._replace(confidence=0.69)

    async def talk(listing: Listing, _: Session) -> None:
        await listing.changed(prompt("continue"))
        await listing.changed(doubtful)

    _, session = run(talk)
    assert session.seen[-1] == list(TOOLS)


def test_two_sessions_that_take_turns_are_shown_every_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def talk(listing: Listing, _: Session) -> None:
        await listing.changed(prompt("continue", "one"))
        await listing.changed(prompt("continue", "two"))
        await listing.changed(prompt("continue", "one"))

    listing, session = run(talk)
    assert (listing.mode, session.seen[-1]) == (Mode.STATIC, list(TOOLS))
    assert "two sessions" in caplog.text


@pytest.mark.req("004-45")
def test_the_intent_of_a_prompt_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def talk(listing: Listing, _: Session) -> None:
        await listing.changed(prompt("continue"))
        await listing.changed(prompt("the deploy failed"))
        await listing.changed(None)

    with caplog.at_level(logging.INFO, "mind.exposure"):
        run(talk)
    assert caplog.messages == [
        (
            "the newest prompt is resuming (95 %): "
            "lists load_checkpoint, load_context, save_decision"
        ),
        "the newest prompt is tracking (95 %): lists every tool",
        "the tools for the newest prompt can't be read: lists every tool",
    ]


def test_a_client_that_asks_before_the_next_poll_gets_the_tools_for_the_newest_prompt(
    tmp_path: Path,
) -> None:
    """The list is never one prompt behind for a client that follows."""
    (tmp_path / ".mind" / ".local").mkdir(parents=True)

    async def talk() -> list[list[str]]:
        listing = Listing(Mode.DYNAMIC, lambda: tmp_path, patience=0.1, poll=3600)
        session = Session(listing)
        session.ask()
        await listing.changed(prompt("continue"))
        for text in ("fix the typo", "let's decide", "the build continues to fail", "resume"):
            store.write(tmp_path, prompt(text))
            session.ask()
        return session.seen

    deciding = ["save/decision", "load/checkpoint"]
    everything = list(TOOLS)
    assert anyio.run(talk) == [everything, RESUMING, everything, deciding, everything, RESUMING]


@pytest.mark.req("004-37", "004-38")
@pytest.mark.parametrize(("text", "names"), [("continue", RESUME), ("let's decide", DECIDE)])
def test_exactly_the_tools_of_the_intent_are_listed(text: str, names: list[str]) -> None:
    tools = {
        name: Tool(name=name, input_schema={"type": "object"}) for name in all_commands().tools()
    }

    async def talk(listing: Listing, _: Session) -> None:
        await listing.changed(prompt(text))

    listing, _ = run(talk)
    assert [tool.name.replace("/", "_") for tool in listing.chosen(tools)] == names


@pytest.mark.req("004-47")
def test_static_mode_never_narrows_the_list() -> None:
    async def talk(listing: Listing, session: Session) -> None:
        await listing.changed(prompt("continue"))
        session.ask()

    listing, session = run(talk, Mode.STATIC)
    assert session.seen[-1] == list(TOOLS)
    assert listing.options().tools_changed is False


def test_tools_that_are_not_listed_at_all_do_not_leave_an_empty_list() -> None:
    strange = prompt("continue")._replace(tools=("no/such", "other"))

    async def talk(listing: Listing, _: Session) -> None:
        await listing.changed(strange)

    _, session = run(talk)
    assert session.seen[-1] == list(TOOLS)


@pytest.mark.req("004-46", "004-47")
@pytest.mark.parametrize(
    ("setting", "environ", "mode"),
    [
        ("dynamic", {}, Mode.DYNAMIC),
        ("static", {}, Mode.STATIC),
        ("dynamic", {"MIND_EXPOSURE": "static"}, Mode.STATIC),
        ("static", {"MIND_EXPOSURE": "dynamic"}, Mode.DYNAMIC),
        ("static", {"MIND_EXPOSURE": ""}, Mode.STATIC),
        ("dynamic", {"MIND_EXPOSURE": "nonsense"}, Mode.STATIC),
        ("auto", {}, Mode.STATIC),
    ],
)
def test_the_environment_decides_over_the_setting(
    setting: str, environ: dict[str, str], mode: Mode
) -> None:
    assert mode_of(setting, environ) is mode


@pytest.mark.req("004-43")
def test_a_failure_of_watching_lists_every_tool(caplog: pytest.LogCaptureFixture) -> None:
    looked: list[int] = []

    def root() -> Path:
        looked.append(1)
        raise ZeroDivisionError

    async def talk() -> Mode:
        listing = Listing(Mode.DYNAMIC, root, poll=0)
        async with listing.watching():
            while listing.mode is not Mode.STATIC:
                await anyio.sleep(0)
        return listing.mode

    assert anyio.run(talk) is Mode.STATIC
    assert "every tool is listed from now on" in caplog.text


PATIENT = """
from mimo.__main__ import main
from mimo.server.exposure import Listing
Listing.__init__.__kwdefaults__["patience"] = 60
main()
"""
"""`mind mcp --exposure dynamic` that waits for a client on a machine however busy."""


def connected(folder: Path, **more: Any) -> Client:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", PATIENT, "mcp", "--exposure", "dynamic"],
        env=environment(),
        cwd=folder,
    )
    return Client(server, **more)


async def listed(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def follow(client: Client, project: Path, hear: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Returns the lists that a client is shown after each prompt of its user."""
    shown = [await listed(client)]
    for text in ("어제 작업 이어서 하자", "결정하자", "fix the typo"):
        store.write(project, prompt(text))
        with anyio.fail_after(30):
            await hear()
        shown.append(await listed(client))
    hidden = await client.call_tool("memory", {"operation": "list"})
    return [*shown, hidden.is_error]


@pytest.mark.req("004-37", "004-38", "004-39", "004-41", "004-48")
def test_a_client_of_the_older_protocol_follows_over_a_pipe(project: Path) -> None:
    async def talk() -> tuple[list[Any], Any]:
        send, heard = anyio.create_memory_object_stream[str](9)

        async def told(message: Any) -> None:
            if type(message).__name__ == "ToolListChangedNotification":
                await send.send("changed")

        async with connected(project, mode="legacy", message_handler=told) as client, heard, send:
            tools: Any = client.server_capabilities.tools
            return await follow(client, project, heard.receive), tools.list_changed

    (everything, resuming, deciding, again, hidden), declared = anyio.run(talk)

    assert declared is True
    assert (resuming, deciding) == (RESUME, DECIDE)
    assert again == everything
    assert len(everything) > 10
    assert hidden is False


@pytest.mark.req("004-37", "004-38", "004-39", "004-41", "004-48")
def test_a_client_of_the_newer_protocol_follows_over_a_pipe(project: Path) -> None:
    async def talk() -> tuple[list[Any], Any]:
        async with (
            connected(project) as client,
            client.listen(tools_list_changed=True) as changes,
        ):
            events = aiter(changes)
            capabilities = client.server_capabilities
            return await follow(client, project, lambda: anext(events)), capabilities

    (everything, resuming, deciding, again, hidden), capabilities = anyio.run(talk)

    assert capabilities.tools.list_changed is True
    assert (capabilities.resources.list_changed, capabilities.resources.subscribe) == (False, True)
    assert capabilities.prompts.list_changed is False
    assert (resuming, deciding, again) == (RESUME, DECIDE, everything)
    assert hidden is False


def request(number: int, method: str, params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


INITIALIZE = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


@pytest.mark.req("004-40", "004-42", "004-45")
def test_a_client_that_does_not_follow_is_shown_every_tool(project: Path) -> None:
    """It is notified once, does not ask again in time, and gets the whole list whenever it asks."""
    with subprocess.Popen(
        [sys.executable, "-m", "mimo", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project,
        env=environment(MIND_EXPOSURE="dynamic"),
    ) as server:
        assert server.stdin
        assert server.stdout
        assert server.stderr

        def ask(number: int, method: str, params: Any) -> Any:
            assert server.stdin
            assert server.stdout
            server.stdin.write(request(number, method, params))
            server.stdin.flush()
            while "id" not in (answer := json.loads(server.stdout.readline())):
                pass
            return answer["result"]

        declared = ask(1, "initialize", INITIALIZE)["capabilities"]["tools"]["listChanged"]
        everything = ask(2, "tools/list", {})
        store.write(project, prompt("어제 작업 이어서 하자"))
        output = server.stderr.readline() + server.stderr.readline()
        again = ask(3, "tools/list", {})
        rest, _ = server.communicate(timeout=30)

    assert declared is True
    assert again == everything
    assert rest == b""
    assert b"the newest prompt is resuming (95 %)" in output
    assert re.search(rb"does not ask .* every tool is listed from now on", output)


def test_the_exposure_file_has_the_intent_of_the_classifier(project: Path) -> None:
    for text in ("continue", "decide", "search", "nothing"):
        store.write(project, prompt(text))
        assert store.read(project) == prompt(text)
    assert prompt("continue").intent is Intent.RESUMING
