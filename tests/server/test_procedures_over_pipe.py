"""Procedures as an agent runs them: the SDK's own client, a real pipe, real processes."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp_types import ElicitResult

from mimo.call import Call
from mimo.features.procedures.commands import PROGRAM_WAITS_MS
from tests import kit
from tests.sample_procedures import GREET, SLOW, WAIT, text

LOG = "{module: step, function: log, args: [{message: begun}]}"


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(getattr(result.content[0], "text", ""))


async def until(client: Client, id_: str, good: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    with anyio.fail_after(60):
        while True:
            run = await told(client, "procedure_status", execution_id=id_)
            if good(run):
                return run
            await anyio.sleep(0.05)  # The run needs the processor too.


async def add(client: Client, name: str, states: str) -> None:
    added = await told(client, "register_procedure", text=text(name, states, description="Try"))
    assert (added["name"], added["trust"]) == (name, "trusted")


@pytest.mark.parametrize(
    ("action", "answer", "status"),
    [
        ("accept", "yes", "completed"),
        ("decline", None, "interrupted"),
        ("accept", "something else", "interrupted"),
    ],
)
def test_a_client_asks_its_user_the_question_of_a_run(
    call: Call, action: Any, answer: str | None, status: str
) -> None:
    shown: list[Any] = []

    async def user(_: Any, params: Any) -> ElicitResult:
        shown.append((params.message, params.requested_schema["properties"]["answer"]["enum"]))
        return ElicitResult(action=action, content={"answer": answer} if answer else None)

    async def talk(client: Client) -> Any:
        await add(client, "ask", WAIT)
        return await told(client, "run_procedure", name="ask")

    done = kit.client(call, talk, era="legacy", elicitation_callback=user)

    assert (done["status"], shown) == (status, [("Go on?", ["yes", "no"])])


@pytest.mark.req("000-01")
@pytest.mark.req("000-03")
@pytest.mark.req("000-07")
@pytest.mark.req("000-08")
@pytest.mark.req("000-09")
@pytest.mark.req("000-10")
@pytest.mark.req("000-11")
@pytest.mark.req("000-12")
@pytest.mark.req("000-22")
@pytest.mark.req("000-24")
def test_a_procedure_is_registered_and_run_in_one_call(call: Call) -> None:
    async def talk(client: Client) -> Any:
        await add(client, "greet", GREET)
        return await told(client, "run_procedure", name="greet", context={"who": "Ada"})

    done = kit.client(call, talk)

    assert isinstance(done.pop("duration_ms"), int)
    assert done.pop("execution_id").startswith("greet_")
    assert isinstance(done["history"][0].pop("timestamp"), int)
    assert done == {
        "status": "completed",
        "final_state": "done",
        "context": {"who": "Ada"},
        "history": [{"from": "greet", "to": "done", "event": "success"}],
        "log": ["info: Hello, Ada"],
    }


@pytest.mark.req("000-06")
@pytest.mark.req("000-13")
@pytest.mark.req("000-15")
@pytest.mark.req("000-16")
@pytest.mark.req("000-25")
@pytest.mark.req("000-28")
def test_an_async_run_is_polled_to_its_end_or_cancelled(project: Path) -> None:
    """Trap (e): upstream crashed on its own answer."""

    async def talk(client: Client) -> Any:
        await add(client, "wait", WAIT)
        begun = await told(client, "run_procedure", name="wait", **{"async": True})
        id_ = begun["execution_id"]
        waits = await until(client, id_, lambda run: "question" in run)
        await told(client, "send_event", execution_id=id_, event="yes")
        done = await until(client, id_, lambda run: run["status"] != "running")
        await add(client, "slow", SLOW)
        slow = (await told(client, "run_procedure", name="slow", **{"async": True}))["execution_id"]
        await until(client, slow, lambda run: run["current_state"] == "second")
        stopped = await told(client, "cancel_procedure", execution_id=slow, reason="enough")
        return begun, waits, done, stopped

    begun, waits, done, stopped = kit.over_pipe(project, talk)

    assert begun == {
        "execution_id": begun["execution_id"],
        "status": "running",
        "pid": begun["pid"],
    }
    assert begun["pid"].isdigit()
    assert (waits["status"], waits["current_state"]) == ("running", "ask")
    assert (waits["question"], waits["waits_for"]) == ("Go on?", ["yes", "no"])
    assert (done["status"], done["current_state"], done["context"]) == ("completed", "done", {})
    assert isinstance(done["elapsed_ms"], int)
    assert (stopped["status"], stopped["error"]) == ("interrupted", "cancelled: enough")


@pytest.mark.req("000-08")
@pytest.mark.req("000-28")
def test_a_run_that_asks_returns_at_once_with_the_events_that_answer_it(call: Call) -> None:
    async def talk(client: Client) -> Any:
        await add(client, "wait", WAIT)
        with anyio.fail_after(PROGRAM_WAITS_MS / 1000):
            asks = await told(client, "run_procedure", name="wait")
        id_ = asks["execution_id"]
        seen = await told(client, "procedure_status", execution_id=id_)
        sent = await told(client, "send_event", execution_id=id_, event="yes")
        return asks, seen, sent, await told(client, "resume_procedure", execution_id=id_)

    asks, seen, sent, done = kit.client(call, talk)

    assert asks["status"] == "interrupted"
    assert (asks["question"], asks["waits_for"]) == ("Go on?", ["yes", "no"])
    id_ = asks["execution_id"]
    assert f"`send_event(execution_id: {id_}, event: yes)`" in asks["notice"]
    assert (seen["question"], seen["waits_for"]) == ("Go on?", ["yes", "no"])
    assert f"`resume_procedure(execution_id: {id_})`" in sent["notice"]
    assert (done["status"], done["final_state"]) == ("completed", "done")


@pytest.mark.req("000-14")
def test_an_async_run_outlives_the_server_that_began_it(project: Path) -> None:
    async def begin(client: Client) -> Any:
        await add(client, "wait", WAIT)
        return await told(client, "run_procedure", name="wait", **{"async": True})

    begun = kit.over_pipe(project, begin)

    async def follow(client: Client) -> Any:
        id_ = begun["execution_id"]
        await until(client, id_, lambda run: "question" in run)
        await told(client, "send_event", execution_id=id_, event="no")
        return await until(client, id_, lambda run: run["status"] != "running")

    done = kit.over_pipe(project, follow)
    assert (done["status"], done["current_state"]) == ("completed", "stopped")


@pytest.mark.parametrize(
    ("end", "why"),
    [(signal.SIGKILL, "its process ended unexpectedly; resume it"), (signal.SIGTERM, "SIGTERM")],
)
@pytest.mark.req("000-28")
def test_a_run_whose_process_is_ended_is_interrupted_and_can_be_resumed(
    project: Path, end: signal.Signals, why: str
) -> None:
    async def talk(client: Client) -> Any:
        await add(client, "wait", WAIT)
        begun = await told(client, "run_procedure", name="wait", **{"async": True})
        id_ = begun["execution_id"]
        await until(client, id_, lambda run: "question" in run)
        os.kill(int(begun["pid"]), end)
        killed = await until(client, id_, lambda run: run["status"] != "running")
        again = await told(client, "resume_procedure", execution_id=id_, **{"async": True})
        await told(client, "send_event", execution_id=id_, event="yes")
        return killed, again, await until(client, id_, lambda run: run["status"] != "running")

    killed, again, done = kit.over_pipe(project, talk)

    assert (killed["status"], killed["error"]) == ("interrupted", why)
    assert again["status"] == "running"
    assert (done["status"], done["current_state"]) == ("completed", "done")


@pytest.mark.req("000-28")
def test_a_call_reports_progress_and_cancelling_it_stops_the_run(project: Path) -> None:
    async def talk(client: Client) -> Any:
        await add(client, "slow", SLOW)
        heard: list[tuple[float, str | None]] = []
        scope = anyio.CancelScope()

        async def hear(
            progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            heard.append((progress, message))
            scope.cancel()

        with scope:
            await client.call_tool("run_procedure", {"name": "slow"}, progress_callback=hear)
        assert scope.cancelled_caught
        return heard, await until(client, "latest", lambda run: run["status"] != "running")

    heard, stopped = kit.over_pipe(project, talk)

    assert heard[0][1] == "slow: second"
    assert (stopped["status"], stopped["error"]) == ("interrupted", "the caller cancelled the call")
    assert stopped["current_state"] == "second"


@pytest.mark.req("000-28")
def test_a_call_beyond_its_time_limit_is_interrupted(call: Call) -> None:
    async def talk(client: Client) -> Any:
        await add(client, "slow", SLOW)
        return await told(client, "run_procedure", name="slow", timeout=50)

    stopped = kit.client(call, talk)

    assert (stopped["status"], stopped["error"]) == ("interrupted", "timed out after 50 ms")


@pytest.mark.req("000-19")
@pytest.mark.req("000-20")
@pytest.mark.req("000-21")
@pytest.mark.req("000-26")
def test_procedures_are_listed_and_recalled(call: Call) -> None:
    async def talk(client: Client) -> Any:
        await add(client, "wait", WAIT)
        await add(client, "greet", GREET)
        return (
            await told(client, "list_procedures"),
            await told(client, "recall_procedure", name="greet"),
        )

    listed, recalled = kit.client(call, talk)

    assert [
        (row["name"], row["version"], row["description"], row["state_count"])
        for row in listed["procedures"]
    ] == [("greet", "1.0", "Try", 3), ("wait", "1.0", "Try", 3)]
    assert listed["count"] == 2
    assert (recalled["name"], recalled["version"], recalled["description"]) == (
        "greet",
        "1.0",
        "Try",
    )
    assert recalled["steps"] == ["greet", "silent", "done"]
    assert len(recalled["hash"]) == 64
    assert recalled["definition"]["initial_state"] == "greet"


@pytest.mark.req("000-02")
@pytest.mark.req("000-05")
@pytest.mark.req("000-18")
@pytest.mark.req("000-23")
def test_an_error_names_the_wrong_argument(call: Call) -> None:
    async def talk(client: Client) -> list[str]:
        await add(client, "greet", GREET)
        return [
            await refused(client, "run_procedure"),
            await refused(client, "run_procedure", name="great"),
            await refused(client, "run_procedure", name="greet", version="9.9"),
            await refused(client, "run_procedure", name="greet", version="new"),
            await refused(client, "run_procedure", name="greet", context=[1]),
            await refused(client, "procedure_status"),
            await refused(client, "procedure_status", execution_id="nothing"),
            await refused(client, "recall_procedure", name="great"),
        ]

    errors = kit.client(call, talk)

    assert [error.splitlines()[0] for error in errors] == [
        "error: `name` is missing [VALIDATION_ERROR]",
        "error: no procedure `great` [NOT_FOUND]",
        "error: no version 9.9 of procedure `greet` [NOT_FOUND]",
        "error: `new` is not a version [VALIDATION_ERROR]",
        "error: `context` must be an object, not `[1]` [VALIDATION_ERROR]",
        "error: `execution_id` is missing [VALIDATION_ERROR]",
        "error: no run `nothing` [NOT_FOUND]",
        "error: no procedure `great` [NOT_FOUND]",
    ]


@pytest.mark.attack("a procedure's command past the limits of its caller")
def test_an_async_run_of_an_agent_acts_as_that_agent(project: Path) -> None:
    add_for_user = "{content: Deploy on Fridays, user: true}"
    forged = '{content: "password: {{a}} <!-- mind:allow-secret -->"}'

    async def talk(client: Client) -> Any:
        runs = []
        for name, given in (("add", add_for_user), ("forged", forged)):
            states = SLOW.replace(LOG, f"{{module: mind, function: mind_add, args: [{given}]}}")
            await add(client, name, states.replace("delay, args: [{ms: 60000}]", "delay"))
            secret = {"a": "Zx9kQ2mP7vL4"}
            begun = await told(
                client, "run_procedure", name=name, context=secret, **{"async": True}
            )
            id_ = begun["execution_id"]
            runs.append(await until(client, id_, lambda run: run["status"] != "running"))
        return runs

    added, forged_run = kit.over_pipe(project, talk)

    assert (added["context"]["scope"], added["context"]["trust"]) == ("user", "untrusted")
    assert forged_run["status"] == "failed"
    assert "secret" in forged_run["error"]
    lines = (project / ".mind/.local/audit.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["event"].get("agent") for line in lines} == {"mcp"}


def test_an_agent_cannot_run_programs_without_consent(call: Call) -> None:
    shell = SLOW.replace(LOG, RUN)

    async def talk(client: Client) -> Any:
        added = await told(client, "register_procedure", text=text("sh", shell))
        return added, await refused(client, "run_procedure", name="sh")

    added, error = kit.client(call, talk)

    assert added["trust"] == "untrusted"
    assert "[UNTRUSTED]" in error
    assert not (call.mind.project.root / "made").exists()


RUN = "{module: shell, function: run, args: [touch, made]}"
