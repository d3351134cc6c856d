"""Every command answers alike on the command line and over MCP, and matches its schema."""

import io
import itertools
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp.client import Client

from mimo.call import Call, Surface
from mimo.call.schema import input_schema, listed_output, output_schema
from mimo.call.spec import Param, Spec, singular
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.features.daemon import Running, process
from mimo.memory.changes import unreviewed
from mimo.mind import Mind
from mimo.project import projects
from mimo.project.init import init
from mimo.project.trust import Trust
from mimo.rendering import Screen
from mimo.rendering.results import show_on
from mimo.rendering.terminal import TerminalScreen
from mimo.server.answers import answer_schema, unasked
from mimo.server.rows import brief
from mimo.surroundings import Timer
from tests import kit, mama_databases, sample_procedures
from tests.conftest import git
from tests.kit import do, put, repository

REGISTRY = all_commands()
SPECS = [
    # Without an extension, there is no format that `mind import` could read.
    spec
    for spec in REGISTRY.all()
    if kit.is_of_core(spec) and spec.key != "mind_import"
]
TOOLS = REGISTRY.tools()

AUTH = "decision_auth_20261101_aaaaaa"
CACHE = "fact_cache_20261102_bbbbbb"

EXAMPLES: dict[str, dict[str, Any]] = {
    "memory.store": {"content": "The API limit is 50 a second", "tags": ["api"], "importance": 0.8},
    "memory.search": {"query": "tokens for auth", "limit": 5, "threshold": 0.1},
    "memory.list": {"limit": 1, "sort": "importance"},
    "memory.delete": {"id": CACHE},
    "memory.stats": {},
    "memory.decay_check": {"threshold": 0.9},
    "mind_search": {"query": "JWT tokens", "types": ["decision"]},
    "ingest": {"path": "docs/api.md", "tags": ["api"], "chunk_size": 60, "metadata": {"team": "x"}},
    "mind_add": {"content": "Never deploy on a Friday", "type": "insight", "private": True},
    "save/decision": {
        "topic": "auth",
        "decision": "Use sessions",
        "reasoning": "They can be revoked",
        "confidence": 0.9,
        "tags": ["auth"],
        "links": [f"builds_on:{AUTH}"],
    },
    "save/checkpoint": {
        "summary": "Login works",
        "open_files": ["src/a.py"],
        "next_steps": "Write the expiry test",
    },
    "save/insight": {"insight": "Safari drops cookies", "category": "web", "source": "docs/x.md"},
    "evolve/outcome": {"id": "auth", "outcome": "FAILED", "reason": "Tokens leaked"},
    "evolve/supersede": {"id": AUTH, "decision": "Use sessions", "reasoning": "Revocable"},
    "load/checkpoint": {},
    "load/context": {"id": "auth"},
    "search/by_topic": {"topic": "auth"},
    "search/by_context": {"query": "tokens for auth", "limit": 3},
    "search/recent": {"type": "decision", "limit": 2},
    "mind_show": {"id": AUTH},
    "mind_edit": {"id": CACHE, "importance": 0.25, "tags": ["speed"]},
    "mind_keep": {"id": CACHE},
    "mind_fading": {"threshold": 0.9, "limit": 3},
    "mind_rm": {"id": CACHE},
    "mind_undo": {"list": True, "limit": 3},
    "mind_redo": {"dry_run": True},
    "mind_tags": {"limit": 3},
    "mind_tags_rename": {"old": "auth", "new": "security"},
    "mind_list": {"tags": ["auth"]},
    "mind_graph": {"id": AUTH, "depth": 1, "types": ["refines"], "format": "mermaid"},
    "mind_edges": {"intent": "generating tokens with crypto", "stack": ["vercel"]},
    "mind_add_global_edge": {
        "title": "Vercel Edge crypto limitation",
        "description": "There is no crypto of Node's",
        "workaround": "Use Web Crypto",
        "detection": {"context": ["vercel"], "code": ["import.*crypto"]},
        "stack_tags": ["vercel"],
    },
    "mind_edges_add": {
        "title": "Staging allows 100 calls a minute",
        "description": "It answers 429",
        "workaround": "Wait",
        "intent": ["api"],
        "project": True,
    },
    "mind_edges_check": {"files": [".mind/facts"]},
    "mind_edges_list": {},
    "mind_edges_starter": {},
    "listMemory": {"namespace": "agent.build", "prefix": "l", "limit": 5},
    "getMemory": {"namespace": "agent.build", "key": "last_run"},
    "putMemory": {
        "namespace": "session.work",
        "key": "step",
        "value": {"number": 3, "of": [1, 2.0, None]},
        "ttl_seconds": 600,
    },
    "deleteMemory": {"namespace": "agent.build", "key": "last_run"},
    "getContext": {"context_type": "session", "include_history": True},
    "policy_show": {},
    "policy_check": {},
    "policy_explain": {"tool": "putMemory", "namespace": "agent.build", "operation": "write"},
    "run_procedure": {"name": "greet", "context": {"who": "Ada"}},
    "procedure_status": {"execution_id": "halted"},
    "send_event": {"execution_id": "waiting", "event": "yes"},
    "cancel_procedure": {"execution_id": "halted", "reason": "not now"},
    "resume_procedure": {"execution_id": "halted"},
    "list_procedures": {},
    "recall_procedure": {"name": "greet"},
    "register_procedure": {"text": sample_procedures.text("more", sample_procedures.GREET)},
    "new_procedure": {"name": "hello"},
    "check_procedure": {},
    "mind_status": {},
    "mind_index": {},
    "mind_projects": {},
    "mind_projects_forget": {},
    "mind_link": {"id": CACHE, "other": AUTH, "type": "implements"},
    "procedure_runs": {"limit": 3},
    "mind_doctor": {},
    "mind_events": {"name": "mimo.", "limit": 5},
    "mind_scan": {},
    "mind_audit": {"status": "ok", "limit": 3},
    "mind_audit_verify": {},
    "mind_audit_export": {"from_date": "2020-01-01"},
    "mind_metrics": {"format": "prometheus"},
    "mind_sync": {"message": "memory: what we know"},
    "mind_log": {"id": AUTH, "limit": 3},
    "mind_blame": {"id": AUTH},
    "mind_restore": {"id": CACHE, "at": "HEAD"},
    "mind_diff": {"revisions": "HEAD..HEAD", "format": "markdown"},
    "mind_init": {},
    "mind_review": {"kinds": ["fading", "stale"]},
    "mind_review_settle": {"id": "brew", "take": "2"},
    "mind_review_keep": {"id": CACHE, "kind": "fading"},
    "mind_trust": {"all": True},
    "mind_untrust": {},
    "mind_config": {},
    "mind_context": {"budget": 500},
    "mind_context_write": {"file": ["AGENTS.md"], "force": True},
    "recall_memory": {"query": "JWT tokens"},
    "mind_install": {},
    "mind_uninstall": {"client": "codex"},
    "mind_module_install": {},
    "mind_module_list": {},
    "mind_import_mama": {"db": "../old/mama.db", "dry_run": True},
    "mind_demo": {},
    "mind_completion": {"shell": "bash"},
    "daemon_start": {},
    "daemon_stop": {},
    "daemon_restart": {},
    "daemon_status": {},
    "daemon_logs": {"lines": 5},
    "daemon_run": {},
    "store_fact": {"content": "The API limit is 50 a second", "category": "fact"},
    "search_vibes": {"query": "auth"},
    "recall_decision": {"topic": "auth"},
    "suggest_decision": {"userQuestion": "what about auth", "recencyWeight": 0.3},
    "list_decisions": {"limit": 10},
    "update_outcome": {"decisionId": AUTH, "outcome": "success"},
    "ask_mimo": {"query": "what about auth"},
    "knowledge": {"operation": "query", "query": "auth"},
}
"""One call of each command; a command without one fails."""

MEMORIES = {
    f"decisions/{AUTH}.md": f"""---
id: {AUTH}
type: decision
title: Use JWT with refresh tokens
topic: auth
tags: [auth, security]
created: 2026-11-01T08:00:00Z
---
Use JWT with refresh tokens, 15 minutes and 30 days.

## Reasoning
No session store is needed.
""",
    f"facts/{CACHE}.md": f"""---
id: {CACHE}
type: fact
tags: [cache]
importance: 0.05
created: 2026-11-02T08:00:00Z
---
The cache holds ten minutes.
""",
    "values/agent.build/last_run.md": "---\nvalue: {ok: true, seconds: 41}\n---\n",
}

DOCUMENT = "# API\n\nAsk politely, with a token.\n\n## Limits\n\nA hundred calls a minute.\n"

Fresh = Callable[[], Call]
Example = dict[str, Any]


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for the `.git` of the first memory, which is the same in all others."""
    return tmp_path_factory.mktemp("committed") / ".git"


@pytest.fixture
def fresh(
    tmp_path: Path, home: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, committed: Path
) -> Fresh:
    """Returns the same memory again and again, as if no command had run on it yet."""
    monkeypatch.chdir(tmp_path)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.com")
        monkeypatch.setenv(f"GIT_{who}_DATE", "2026-11-03T08:00:00Z")
    stdin = io.TextIOWrapper(io.BytesIO(b""))
    stdin.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", stdin)
    # A real daemon has tests of its own.
    running = Running(pid=1, started=clock(), watching=())
    monkeypatch.setattr(process, "start", lambda _: (running, False))
    monkeypatch.setattr(process, "stop", lambda _: running)
    monkeypatch.setattr(process, "run", lambda _: None)
    monkeypatch.setattr("mimo.features.daemon.running", lambda _: running)
    later = time.time_ns() + 3_600_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    monkeypatch.setattr("mimo.project.trash.suffix", lambda _: "same")
    mama_databases.make(tmp_path / "old" / "mama.db", decisions=[mama_databases.decision("a")])
    root = tmp_path / "shop"

    def make() -> Call:
        for folder in (root, home):
            shutil.rmtree(folder, ignore_errors=True)
        root.mkdir()
        if committed.is_dir():  # `init` refuses a checkout that lacks files of git's index.
            shutil.copytree(committed, root / ".git", ignore=shutil.ignore_patterns("index"))
        else:
            repository(root)
        init(root, home, now=clock())
        if committed.is_dir():
            shutil.copy2(committed / "index", root / ".git")
        for name, text in MEMORIES.items():
            put(root / ".mind" / name, text)
        (root / "docs").mkdir()
        (root / "docs" / "api.md").write_text(DOCUMENT, encoding="utf-8")
        if not committed.is_dir():
            git(root, "add", ".")
            git(root, "commit", "-q", "-m", "first")
            shutil.copytree(root / ".git", committed)
        Trust(home, root).follow(True)
        new = (
            "---\nid: brew\ntype: fact\ncreated: 2026-11-03T08:00:00Z\n---\nCold brew\n\n"
            "## Competing: the text\nHot brew\n"
        )
        (root / ".mind" / "facts" / "new.md").write_text(new, encoding="utf-8")
        monkeypatch.chdir(root)
        return _with_procedures(
            Call(
                Mind(
                    home=home,
                    project=projects.explicit(root, home),
                    clock=clock,
                    randomness=lambda size: bytes(range(size)),
                    environ={},
                    timer=Timer(monotonic=lambda: 0.0, sleep=lambda _: None),
                )
            )
        )

    return make


def _with_procedures(call: Call) -> Call:
    """Returns the memory with procedures, one of which was halted and one waits for an event."""
    for name in ("greet", "halted"):
        sample_procedures.put(call, name, sample_procedures.GREET)
    sample_procedures.put(call, "waiting", sample_procedures.WAIT)
    sample_procedures.begun(call, "halted", who="Bob")
    while _held:
        os.close(_held.pop())
    waiting = sample_procedures.begun(call, "waiting")
    waiting.append({"kind": "stay", "state": "ask", "at": 0, "question": "Go on?"})
    _held.append(waiting.hold())
    do(call, "value put", namespace="agent.build", key="undone", value=1)
    do(call, "undo")  # For `redo`.
    return call


_held: list[int] = []
"""The lock of the run that waits, as its process would hold it."""


def argv(spec: Spec, arguments: dict[str, Any]) -> list[str]:
    """Returns the command line for the arguments."""
    params = {param.name: param for param in spec.params}
    words: list[str] = []
    for name, param in params.items():
        if name in arguments and param.positional:
            words += _texts(arguments[name])
    for name, value in arguments.items():
        if not params[name].positional:
            words += _option(params[name], value)
    return [*spec.path.split(), *words]


def _option(param: Param, value: Any) -> list[str]:
    name = singular(param.name) if param.shape.items else param.name
    flag = f"--{name.replace('_', '-')}"
    if param.shape.kind == "boolean":
        return [flag if value else flag.replace("--", "--no-", 1)]
    if param.shape.kind == "json":
        return [flag, json.dumps(value)]
    return [word for text in _texts(value) for word in (flag, text)]


def _texts(value: Any) -> list[str]:
    return (
        [word for item in value for word in _texts(item)]
        if isinstance(value, list)
        else [str(value)]
    )


def on_command_line(call: Call, words: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    """Returns exit status, the JSON on stdout and the JSON on stderr."""
    status = main([*words, "--json"], open=lambda _: call.mind)
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else None, json.loads(err) if err else None


def over_mcp(call: Call, spec: Spec, arguments: dict[str, Any]) -> Any:
    """Returns what the SDK's client gets, which holds it against the published schema."""
    chosen = {"operation": spec.operation} if spec.operation else {}

    async def talk(client: Client) -> Any:
        await client.list_tools()
        return await client.call_tool(spec.name, chosen | arguments)

    return kit.client(call, talk)


def keyed(specs: Any, examples: Any = EXAMPLES) -> list[Any]:
    return [pytest.param(spec, examples[spec.key], id=spec.key) for spec in specs]


BOTH = [spec for spec in SPECS if spec.surfaces is Surface.BOTH]
FOR_PEOPLE = [spec for spec in SPECS if Surface.CLI in spec.surfaces]


def test_every_command_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(spec.key for spec in SPECS)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_input_schema_of_a_tool_names_no_option_of_the_command_line(tool: str) -> None:
    assert not re.search("--[a-z]", json.dumps(input_schema(TOOLS[tool])))


@pytest.mark.parametrize(("spec", "example"), keyed(SPECS))
def test_every_example_fits_the_published_input_schema(spec: Spec, example: Example) -> None:
    Draft202012Validator(input_schema([spec])).validate(
        example | ({"operation": spec.operation} if spec.operation else {})
    )


USUAL = {
    "trust": "trusted",
    "tags": [],
    "related_to": [],
    "importance": 0.5,
    "confidence": 1.0,
    "protected": False,
}
"""The fields that answers to agents leave out if they have these values."""


def _agrees(answer: Any, whole: Any) -> bool:
    """Returns whether an answer to an agent is the whole one without usual values and decimals."""
    if isinstance(answer, dict):
        # The content shows these.
        missing = whole.keys() - answer.keys() - {"passage", "title"}
        return all(USUAL[name] == whole[name] for name in missing) and all(
            _agrees(item, whole[name]) for name, item in answer.items()
        )
    if isinstance(answer, list):
        return all(itertools.starmap(_agrees, zip(answer, whole, strict=True)))
    if isinstance(answer, float) and isinstance(whole, float):
        return answer in (whole, round(whole, 2))
    return bool(
        answer == whole or answer in (re.sub(r"\.\d+Z$", "Z", str(whole)), str(whole)[:10])
    ) or (isinstance(answer, str) and _without_commands(answer) == _without_commands(whole))


def _without_commands(text: str) -> str:
    """Returns a text without the names of commands and tools, which differ between surfaces."""
    quoted = re.sub(r"^mind .*", "``", text)
    return re.sub(r"(?:the user's command )?`[^`]*`", "``", quoted)


def check_names(spec: Spec, answer: dict[str, Any]) -> None:
    """Checks that the schemas name every field of an answer."""
    listed = listed_output(TOOLS[spec.name])
    for schema in (answer_schema(TOOLS[spec.name]), *([listed] if listed else ())):
        assert answer.keys() <= schema["properties"].keys()


@pytest.mark.parametrize(("spec", "example"), keyed(BOTH))
@pytest.mark.req("002-40")
def test_both_surfaces_give_the_same_answer_and_it_matches_the_schema(
    spec: Spec, example: Example, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer, error = on_command_line(fresh(), argv(spec, example), capsys)
    result = over_mcp(fresh(), spec, example)

    assert (status, error) == (0, None)
    assert not result.is_error, result.content
    if spec.key == "mind_sync":  # The commit of an agent has a trailer: it approves nothing.
        message = unreviewed(answer["message"])
        answer |= {"message": message, "commit": result.structured_content["commit"]}
    if spec.key == "mind_context":  # An agent reads no path that another author chose.
        answer["notice"] = re.sub(r" of `[^`]*`", "", answer["notice"], count=1)
    rows = brief(answer, output_schema([spec]), unasked(spec, example))
    assert _agrees(result.structured_content, rows)
    lines = result.content[0].text.splitlines()
    assert {line.partition(":")[0] for line in lines if line[:1].isalpha()} == set(
        result.structured_content
    )
    Draft202012Validator(answer_schema(TOOLS[spec.name])).validate(result.structured_content)
    Draft202012Validator(output_schema(TOOLS[spec.name])).validate(answer)
    Draft202012Validator(output_schema([spec])).validate(answer)
    check_names(spec, result.structured_content)


@pytest.mark.parametrize(
    ("spec", "example"), keyed(s for s in FOR_PEOPLE if s.surfaces is Surface.CLI)
)
def test_answers_of_commands_for_people_match_their_schema(
    spec: Spec, example: Example, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer, error = on_command_line(fresh(), argv(spec, example), capsys)

    assert (status, error) == (0, None)
    Draft202012Validator(output_schema([spec])).validate(answer)


@pytest.mark.parametrize(("spec", "example"), keyed(s for s in SPECS if s.surfaces is Surface.MCP))
@pytest.mark.req("000-59")
def test_answers_of_commands_for_agents_match_their_schema(
    spec: Spec, example: Example, fresh: Fresh
) -> None:
    result = over_mcp(fresh(), spec, example)

    assert not result.is_error, result.content
    Draft202012Validator(answer_schema([spec])).validate(result.structured_content)
    check_names(spec, result.structured_content)


@pytest.mark.parametrize(("spec", "example"), keyed(FOR_PEOPLE))
def test_every_answer_can_be_shown_to_people(
    spec: Spec,
    example: Example,
    fresh: Fresh,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coloured = ""

    def show_on_both(plain: Screen, result: object) -> None:
        nonlocal coloured
        terminal = TerminalScreen(colour=True, width=80, height=500)
        terminal.setting = plain.setting
        show_on(terminal, result)
        terminal.finish(pager=False)
        coloured += capsys.readouterr().out
        show_on(plain, result)

    monkeypatch.setattr("mimo.rendering.results.show_on", show_on_both)
    status = main(argv(spec, example), open=lambda _: fresh().mind)
    out, err = capsys.readouterr()

    assert (status, "error" in err) == (0, False)
    # JSON lines, of which there are none yet.
    assert (out.strip() and coloured.strip()) or spec.path == "audit export"
    assert "\x1b" not in out


def wrong_calls() -> list[Any]:
    """Returns calls that must be refused alike: what is required left out, limits overstepped."""
    calls = []
    for spec in BOTH:
        # Without arguments, some command lines are another command.
        if any(param.required for param in spec.params) and spec.path not in REGISTRY.alone:
            calls.append(pytest.param(spec, {}, id=f"{spec.key} without its argument"))
        for param in spec.params:
            beyond = None if param.arg.le is None else param.arg.le + 1
            if beyond is not None and param.arg.surfaces == Surface.CLI | Surface.MCP:
                number = int(beyond) if param.shape.kind == "integer" else beyond
                call = EXAMPLES[spec.key] | {param.name: number}
                calls.append(pytest.param(spec, call, id=f"{spec.key} with {param.name} {number}"))
    return calls


@pytest.mark.parametrize(("spec", "call"), wrong_calls())
@pytest.mark.req("002-40")
def test_both_surfaces_refuse_the_same_calls(
    spec: Spec, call: dict[str, Any], fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer, error = on_command_line(fresh(), argv(spec, call), capsys)
    result = over_mcp(fresh(), spec, call)

    assert (status, answer) == (2, None)
    assert error["error"]["code"] == "VALIDATION_ERROR"
    assert error["error"]["details"]["field"] in [param.name for param in spec.params]
    assert result.is_error
    assert result.structured_content is None
    assert result.meta["mind/error"] == error


def test_a_command_that_needs_an_argument_may_lead_to_a_list(
    fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    (spec,) = TOOLS["procedure_status"]
    status, answer, _ = on_command_line(fresh(), ["procedure", "status"], capsys)

    assert status == 0
    assert [run["status"] for run in answer["runs"]] == ["running", "interrupted"]
    assert over_mcp(fresh(), spec, {}).is_error


@pytest.mark.parametrize(("spec", "example"), keyed(spec for spec in BOTH if spec.needs_project))
def test_both_surfaces_report_a_missing_project_alike(
    spec: Spec, example: Example, home: Path, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh()
    nowhere = Call(Mind(home=home, project=None, environ={}))
    status, answer, error = on_command_line(nowhere, argv(spec, example), capsys)
    result = over_mcp(nowhere, spec, example)

    assert (status, answer) == (3, None)
    assert error["error"]["code"] == "PROJECT_NOT_REGISTERED"
    assert result.meta["mind/error"] == error
