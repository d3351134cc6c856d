"""Notifications of changed resources, and completion, in this process and over a pipe."""

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import (
    EmptyResult,
    PromptReference,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    SubscribeRequest,
    SubscribeRequestParams,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)

from mimo.call import Call
from mimo.operations.listening import Memory
from mimo.server import resources
from mimo.server.app import listening
from mimo.server.subscriptions import SKIPPED, _Compared
from tests import kit
from tests.kit import over_pipe

CONTEXT = "mind://context"
TEMPLATE = ResourceTemplateReference(uri="mind://memory/{id}")
DECIDE = PromptReference(name="record_decision")


async def decide(client: Client, topic: str, decision: str, **more: Any) -> str:
    arguments = {"topic": topic, "decision": decision, "reasoning": "It was measured", **more}
    result = await client.call_tool("save_decision", arguments)
    assert not result.is_error, result.content
    return str(result.structured_content["id"])


def named(event: object) -> str:
    assert isinstance(event, ResourceUpdated)
    return event.uri


async def subscribe(client: Client, uri: str) -> None:
    params = SubscribeRequestParams(uri=uri)
    await client.session.send_request(SubscribeRequest(params=params), EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    params = UnsubscribeRequestParams(uri=uri)
    await client.session.send_request(UnsubscribeRequest(params=params), EmptyResult)


async def change(client: Client, id: str, text: str | None = None, **fields: Any) -> None:
    given = {"id": id, **({} if text is None else {"content": text}), **fields}
    result = await client.call_tool("mind_edit", given)
    assert not result.is_error, result.content


async def follow(client: Client) -> list[str]:
    """Returns the resource that the client follows, and those that it hears of."""
    followed = await decide(client, "cache", "Use Redis")
    other = await decide(client, "queue", "Use RabbitMQ")
    uri = f"mind://memory/{followed}"
    with anyio.fail_after(20):
        async with client.listen(
            resource_subscriptions=[uri], prompts_list_changed=True
        ) as changes:
            await change(client, other, "Use Kafka")
            await change(client, followed, "Use Valkey")
            events = aiter(changes)
            reported = [named(await anext(events))]
            await change(client, followed, add_tags=["speed"])
            return [uri, *reported, named(await anext(events))]


def test_a_listening_client_hears_of_changes_to_what_it_follows(call: Call) -> None:
    assert len({*kit.client(call, follow, era="2026-07-28")}) == 1


def test_a_subscribed_client_hears_until_it_unsubscribes(call: Call) -> None:
    reported: list[str] = []
    arrived = anyio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            reported.append(str(message.params.uri))
            arrived.set()

    async def talk(client: Client) -> str:
        followed = await decide(client, "login", "Use passkeys")
        uri = f"mind://memory/{followed}"
        await subscribe(client, CONTEXT)
        await subscribe(client, uri)  # While the first one is compared.
        await unsubscribe(client, CONTEXT)
        await change(client, followed, "Use passkeys and a password")
        with anyio.fail_after(20):
            await arrived.wait()
        return uri

    uri = kit.client(call, talk, era="legacy", message_handler=hear)

    assert set(reported) == {uri}


def test_an_edited_file_changes_the_notes_over_a_pipe(project: Path) -> None:
    async def talk(client: Client) -> str:
        async with client.listen(resource_subscriptions=[CONTEXT]) as changes:
            await decide(client, "deploys", "Deploy on Fridays")
            with anyio.fail_after(20):
                return named(await anext(aiter(changes)))

    assert over_pipe(project, talk, era="2026-07-28") == CONTEXT


def test_another_resource_can_not_be_subscribed(call: Call) -> None:
    async def talk(client: Client) -> str:
        with pytest.raises(MCPError) as raised:
            await subscribe(client, "file:///etc/passwd")
        return raised.value.error.message

    assert "there is no resource `file:///etc/passwd`" in kit.client(call, talk, era="legacy")


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_capabilities_claim_what_is_sent(call: Call, era: Any) -> None:
    async def talk(client: Client) -> Any:
        return client.server_capabilities

    capabilities = kit.client(call, talk, era=era)

    assert not capabilities.prompts.list_changed
    assert not capabilities.tools.list_changed
    assert not capabilities.resources.list_changed
    assert capabilities.resources.subscribe is True
    assert capabilities.completions is not None
    assert capabilities.logging is None


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_topics_tags_and_ids_are_completed(call: Call, era: Any) -> None:
    async def talk(client: Client) -> dict[str, Any]:
        id = await decide(client, "release train", "Ship on Tuesdays", tags=["release", "ci"])
        questions: dict[str, tuple[Any, str, str]] = {
            "topic": (DECIDE, "topic", "rel"),
            "tags": (DECIDE, "tags", "ci, rel"),
            "id": (TEMPLATE, "id", id[:16]),
            "handle": (TEMPLATE, "id", id[-6:]),
            "text": (DECIDE, "decision", "S"),
            "none": (DECIDE, "topic", "zzz"),
        }
        answers = {
            name: (await client.complete(ref, {"name": argument, "value": value})).completion.values
            for name, (ref, argument, value) in questions.items()
        }
        return answers | {"own": id}

    answers = kit.client(call, talk, era=era)

    assert answers["topic"] == ["release train"]
    assert answers["tags"] == ["ci,release"]
    assert answers["own"] in answers["id"]
    assert answers["handle"] == [answers["own"]]
    assert (answers["text"], answers["none"]) == ([], [])


def test_completion_of_an_unknown_prompt_is_refused(call: Call) -> None:
    async def talk(client: Client) -> str:
        with pytest.raises(MCPError) as raised:
            await client.complete(PromptReference(name="other"), {"name": "x", "value": ""})
        return raised.value.error.message

    assert "there is no prompt `other`" in kit.client(call, talk, era="auto")


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_ingest_reports_its_progress(call: Call, project: Path, era: Any) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    notes = project / f"notes-{era}"
    notes.mkdir()

    async def talk(client: Client) -> Any:
        for number in range(5):
            (notes / f"{number}.md").write_text(f"# Note {number} {era}\n\nText of it.\n")
        return await client.call_tool("ingest", {"path": str(notes)}, progress_callback=hear)

    answer = kit.client(call, talk, era=era)

    assert not answer.is_error, answer.content
    ingesting = [step for step in steps if step[2] == "Ingesting"]
    assert len(ingesting) == 5
    assert len({total for _, total, _ in ingesting}) == 1


def test_progress_grows_through_all_parts_of_the_work() -> None:
    steps: list[tuple[float, float | None, str]] = []

    async def send(progress: float, total: float | None, message: str) -> None:
        steps.append((progress, total, message))

    context: Any = SimpleNamespace(session=SimpleNamespace(report_progress=send))
    report = listening(context)

    def work() -> None:
        for task, done, total in [
            ("Reading", 0, 2),
            ("Reading", 2, 2),
            ("Waiting", 0, 0),
            ("Waiting", 0, 0),
            ("Indexing", 1, 3),
            ("Indexing", 3, 3),
        ]:
            report(task, done, total)

    async def run() -> None:
        await anyio.to_thread.run_sync(work)

    anyio.run(run)

    assert steps == [
        (0, 2, "Reading"),
        (2, 2, "Reading"),
        (3, None, "Waiting"),
        (4, None, "Waiting"),
        (5, 7, "Indexing"),
        (7, 7, "Indexing"),
    ]


def test_a_subscription_does_not_read_what_others_follow(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(resources, "state", lambda _, uri: read.append(uri))
    compared = _Compared(Memory(lambda: call.mind), None)
    uris = [f"mind://memory/{number}" for number in range(2 * SKIPPED)]
    changed: list[str] = []

    async def report(uri: str) -> None:
        changed.append(uri)

    async def follow() -> None:
        for count in range(1, len(uris) + 1):
            await compared.compare(uris[:count], report)

    anyio.run(follow)

    assert sorted(read) == sorted(uris)
    assert changed == []


def test_a_change_is_reported_though_the_request_that_found_it_was_cancelled(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {"mind://memory/tea": "before"}
    looking, go_on = Event(), Event()

    def state(_: Call, uri: str) -> str | None:
        if states["mind://memory/tea"] == "after":
            looking.set()
            go_on.wait(10)
        return states.get(uri)

    monkeypatch.setattr(resources, "state", state)
    compared = _Compared(Memory(lambda: call.mind), None)
    changed: list[str] = []

    async def report(uri: str) -> None:
        changed.append(uri)

    async def cancelled() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compared.compare, [*states, "mind://context"], report)
            await anyio.to_thread.run_sync(looking.wait)
            tasks.cancel_scope.cancel()

    async def follow() -> None:
        await compared.compare(states, report)
        states["mind://memory/tea"] = "after"
        await cancelled()
        go_on.set()
        for _ in range(SKIPPED + 1):
            await compared.compare(states, report)

    anyio.run(follow)
    assert changed == ["mind://memory/tea"]
