"""Every call is recorded on every surface, without its arguments."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from mimo.call import Call, Caller, Surface
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.errors import MindError
from mimo.guard.chain import line_of, sealed
from mimo.operations.invoke import invoke
from tests.kit import ask, put, write

TOOLS = all_commands().tools()
# In two halves, so that no forge takes it for a real one.
TOKEN = "ghp_" + "VH1oF7JCqH7aWY2TYGIAd1JmFEwvHMLCbokK"
CALLER = Caller(surface=Surface.MCP, name="tester")


def call_tool(call: Call, tool: str, **arguments: Any) -> Any:
    return to_json(invoke(TOOLS[tool][0], call.by(CALLER), arguments))


def tried(call: Call, tool: str, **arguments: Any) -> str | None:
    """Returns the code of the error that a call ends with, or None."""
    try:
        call_tool(call, tool, **arguments)
    except MindError as error:
        return error.code
    return None


def log_of(call: Call) -> Path:
    return call.mind.folder / ".local" / "audit.jsonl"


def events(call: Call) -> list[dict[str, Any]]:
    return [json.loads(line)["event"] for line in log_of(call).read_bytes().splitlines()]


def work(call: Call) -> None:
    """Makes calls that end in every way."""
    assert tried(call, "putMemory", namespace="agent.build", key="step", value=3) is None
    assert tried(call, "getMemory", namespace="agent.build", key="step") is None
    denied = tried(call, "putMemory", namespace="public.x", key="k", value=1)
    assert denied == "PERMISSION_DENIED"
    assert tried(call, "getMemory", namespace="agent.build", key="none") == "NOT_FOUND"
    assert tried(call, "mind_search", query="anything") is None
    assert tried(call, "mind_search") == "VALIDATION_ERROR"


@pytest.mark.req("002-38", "002-43")
def test_the_record_contains_no_arguments(call: Call) -> None:
    address = "jo.doe@corp.io"
    (call.mind.folder / "policy.yaml").write_text("pii: {on_write: allow}\n", encoding="utf-8")
    call.mind.trust.approve(call.mind.guard.approvals())
    call_tool(
        call, "putMemory", namespace="agent.a", key="call_212-234-5678", value="a plain secret"
    )
    tried(call, "putMemory", namespace="agent.a", key="k", value=f"write to {address}")
    assert tried(call, "mind_add", content=f"The token is {TOKEN}") == "SECRET_DETECTED"
    tried(call, "mind_search", query=f"what did {address} say")
    tried(call, "getMemory", namespace=f"agent.{TOKEN}", key=TOKEN)

    kept = log_of(call).read_text("utf-8")
    for word in (address, TOKEN, "plain secret", "212-234-5678", "jo.doe"):
        assert word not in kept
    assert [item.get("reason") for item in events(call)][2] == "secret"


def test_show_survives_records_with_other_types(call: Call) -> None:
    entry = {"event_type": "tool_call", "timestamp": "2026-11-20T12:00:00Z", "seconds": "x"}
    log_of(call).parent.mkdir(parents=True, exist_ok=True)
    log_of(call).write_bytes(
        line_of(sealed({"n": 1, **entry, "redactions": []}, None, b"other"))
        + line_of(sealed({"n": 2, **entry, "timestamp": "soon"}, None, b"other"))
    )
    status, answer = ask(call, "audit", "show", "--tool", "None")

    assert (status, answer["calls"]) == (0, [])
    status, answer = ask(call, "audit", "show")
    assert [(row["number"], row["seconds"]) for row in answer["calls"]] == [(1, 0.0)]
    assert ask(call, "metrics")[0] == 0


@pytest.mark.attack("local state planted by a clone")
@pytest.mark.parametrize(
    "time", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2026-11-20T12:00:00"]
)
def test_planted_times_are_listed(
    call: Call, capsys: pytest.CaptureFixture[str], time: str
) -> None:
    record = {"n": 1, "event_type": "tool_call", "timestamp": time}
    event = {"name": "x", "time": time, "measurements": {}, "metadata": {}}
    log_of(call).parent.mkdir(parents=True, exist_ok=True)
    log_of(call).write_bytes(line_of(sealed(record, None, b"other")))
    log_of(call).with_name("events.jsonl").write_text(f"{json.dumps(event)}\n", "utf-8")
    for options in ([], ["--json"]):
        for words in (["audit", "show"], ["audit", "show", "--when", "today"], ["events"]):
            assert main([*words, *options], open=lambda _: call.mind) == 0
        assert time[3:10] in capsys.readouterr().out


@pytest.mark.req("002-50", "002-51", "002-52", "002-53")
def test_prometheus_can_parse_the_metrics(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    work(call)
    put(call.mind.folder / "facts" / "leaked.md", f"# The deploy\nuses {TOKEN}\n")
    call_tool(call, "mind_search", query="deploy")

    assert main(["metrics", "--format", "prometheus"], open=lambda _: call.mind) == 0
    families = {
        family.name: family for family in text_string_to_metric_families(capsys.readouterr().out)
    }
    counted = {
        (
            sample.labels["tool_name"],
            sample.labels["namespace"],
            sample.labels["status"],
        ): sample.value
        for sample in families["memory_tool_requests"].samples
    }
    assert counted["putMemory", "public.x", "denied"] == 1
    assert counted["mind_search", "", "ok"] == 2
    denies = families["memory_tool_permission_denies"].samples
    assert [item.labels for item in denies] == [{"tool_name": "putMemory", "reason": "namespace"}]
    (redacted,) = families["memory_tool_pii_redactions"].samples
    assert (redacted.labels, redacted.value) == ({"tool_name": "mind_search"}, 1)
    latency = families["memory_tool_latency_seconds"].samples
    quantiles = {item.labels.get("quantile") for item in latency}
    assert {"0.5", "0.9", "0.99"} <= quantiles
    (memories,) = families["mind_memories"].samples
    assert (memories.labels, memories.value) == ({"type": "fact"}, 1)


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    processor = SimpleSpanProcessor(exporter)
    provider.add_span_processor(processor)
    yield exporter
    processor.shutdown()


@pytest.mark.req("002-54")
def test_spans_show_the_call_and_its_checks(call: Call, spans: InMemorySpanExporter) -> None:
    tried(call, "putMemory", namespace="agent.a", key="k", value="the value")
    tried(call, "putMemory", namespace="public.a", key="k", value="the value")
    tried(call, "getMemory", namespace="agent.a", key="a_word_of_mine")

    finished = spans.get_finished_spans()
    rows = [(span.name, (span.attributes or {}).get("namespace")) for span in finished]
    assert rows == [
        ("memory.permission_check", "agent.a"),
        ("memory.pii_filtering", "agent.a"),
        ("memory.pii_filtering", "agent.a"),
        ("memory.tool", "agent.a"),
        ("memory.permission_check", "public.a"),
        ("memory.tool", "public.a"),
        ("memory.permission_check", "agent.a"),
        ("memory.tool", "agent.a"),
    ]
    assert not finished[-1].status.is_ok
    every = "".join(span.to_json() for span in finished)
    assert "the value" not in every
    assert "a_word_of_mine" not in every


@pytest.mark.req("002-54", "002-43")
def test_a_span_masks_names_as_the_record_does(call: Call, spans: InMemorySpanExporter) -> None:
    namespace = "agent.call_212-234-5678"
    tried(call, "listMemory", namespace=namespace)
    tried(call, "putMemory", namespace=namespace, key="k", value=1)

    (recorded,) = {event["namespace"] for event in events(call)}
    shown = [(span.attributes or {}).get("namespace") for span in spans.get_finished_spans()]
    assert set(shown) == {recorded}
    assert "234-5678" not in "".join(span.to_json() for span in spans.get_finished_spans())


@pytest.mark.req("002-54", "002-63")
@pytest.mark.parametrize(
    ("tool", "arguments", "checked", "reason", "kinds"),
    [
        ("putMemory", {"value": "jo.doe@corp.io"}, "memory.pii_filtering", "pii", ("email",)),
        ("putMemory", {"value": f"x {TOKEN}"}, "memory.pii_filtering", "secret", ("github_token",)),
        ("putMemory", {"namespace": "public.a"}, "memory.permission_check", "namespace", None),
        (
            "mind_add",
            {"content": f"It is {TOKEN}"},
            "memory.pii_filtering",
            "secret",
            ("github_token",),
        ),
        ("mind_index", {}, "memory.tool", "rate_limit", None),
    ],
)
def test_a_span_of_a_refused_call_has_the_reason_and_the_kinds(
    call: Call,
    spans: InMemorySpanExporter,
    tool: str,
    arguments: dict[str, Any],
    checked: str,
    reason: str,
    kinds: tuple[str, ...] | None,
) -> None:
    write(call, "policy.yaml", "rate_limits: {tools: {mind_index: {sustained: 0.001, burst: 1}}}")
    if tool == "putMemory":
        arguments = {"namespace": "agent.a", "key": "k", "value": 1} | arguments
    if reason == "rate_limit":
        tried(call, tool)
        spans.clear()

    assert tried(call, tool, **arguments)

    refused = {
        span.name: (span.attributes["reason"], span.attributes.get("kinds"))
        for span in spans.get_finished_spans()
        if span.attributes and "reason" in span.attributes
    }
    assert refused == dict.fromkeys((checked, "memory.tool"), (reason, kinds))
    every = "".join(span.to_json() for span in spans.get_finished_spans())
    assert "jo.doe" not in every
    assert TOKEN not in every


def test_a_call_continues_the_trace_of_a_request() -> None:
    import opentelemetry.propagate  # noqa: F401 - as a server of MCP does; the guard only looks

    from mimo.guard.guard import continued

    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    with continued({"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}):
        inside = trace.get_current_span().get_span_context()
    with continued({}):
        outside = trace.get_current_span().get_span_context()

    assert f"{inside.trace_id:032x}" == trace_id
    assert not outside.is_valid
