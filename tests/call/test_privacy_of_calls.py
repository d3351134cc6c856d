"""No command stores a secret or shows one."""

import json
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.spec import Effect, Spec, to_json
from mimo.call.table import all_commands
from mimo.cli.completing import candidates
from mimo.errors import Denied, MindError, NotFound, PiiDetected, SecretDetected
from mimo.features import audit
from mimo.frozen import replace
from mimo.operations.invoke import invoke
from mimo.server import resources
from tests import mama_databases, privacy_fakes
from tests.kit import fact
from tests.privacy_fakes import Draw

SPECS = {spec.key: spec for spec in all_commands().all()}
TOKEN = privacy_fakes.TOKENS["github_token"][0](Draw(9))
MASK = "[REDACTED:github_token]"
AGENT = Caller(surface=Surface.MCP, name="an agent")
PERSON = Caller(surface=Surface.CLI)
KNOWN = "fact_known_20261101_aaaaaa"


@pytest.fixture(autouse=True)
def known(call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A memory that is there, in the project that is the working directory."""
    monkeypatch.chdir(call.mind.project.root)
    return fact(call, KNOWN, "Tea is served at four.")


def on_disk(call: Call) -> str:
    """Returns all that is kept, in the project and in the user's folder."""
    folders = (call.mind.project.root, call.mind.home)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return "\n".join(path.read_bytes().decode("latin-1") for path in files)


def ask(call: Call, key: str, caller: Caller = AGENT, /, **arguments: Any) -> Any:
    return to_json(invoke(SPECS[key], call.by(caller), arguments))


def writing() -> list[Any]:
    """Returns each free text that a tool which writes takes."""
    return [
        pytest.param(spec, param.name, id=f"{spec.key} {param.name}")
        for spec in SPECS.values()
        if spec.effect is Effect.WRITE and Surface.MCP in spec.surfaces
        for param in spec.params
        if Surface.MCP in param.arg.surfaces
        and not param.shape.choices
        and (param.shape.kind in ("string", "json") or param.shape.items)
    ]


FILLED = {
    "namespace": "agent.x",
    "type": "fact",
    "topic": "tea",
    "id": KNOWN,
    "memory_id": KNOWN,
    "outcome": "SUCCESS",
    "category": "fact",
    "operation": "teach",
}
"""Arguments that must be something in particular."""


@pytest.mark.parametrize(("spec", "name"), writing())
@pytest.mark.req("002-57", "002-63")
def test_a_secret_in_any_argument_of_a_writing_tool_is_refused(
    spec: Spec, name: str, call: Call
) -> None:
    given: dict[str, Any] = {}
    for param in spec.params:
        if param.required and not param.shape.choices:
            text = FILLED.get(param.name, "words")
            given[param.name] = [text] if param.shape.items else text
    param = next(param for param in spec.params if param.name == name)
    secret: Any = f"see {TOKEN}"
    if param.shape.kind == "json":
        secret = {"deep": [{"er": secret}]}
    given[name] = [secret] if param.shape.items else secret
    if spec.name == "mind_edit" and name == "file_text":
        given[name] = f"---\nid: {KNOWN}\ntype: fact\n---\n{secret}\n"

    with pytest.raises(MindError) as refused:
        invoke(spec, call.by(AGENT), given)

    answer = json.dumps(refused.value.wire())
    assert TOKEN not in answer
    assert TOKEN not in on_disk(call)
    if isinstance(refused.value, SecretDetected):
        details = refused.value.details
        assert (details["field"].split(".")[0], details["kind"]) == (name, "github_token")
        assert details["line"] >= 1
    else:
        # It was wrong for another reason first.
        assert refused.value.code in ("VALIDATION_ERROR", "NOT_FOUND")


def test_the_error_names_the_kind_line_and_field_of_a_secret_but_not_its_text(call: Call) -> None:
    with pytest.raises(SecretDetected) as refused:
        ask(call, "mind_add", content=f"one\ntwo {TOKEN}", title="x", topic="t")

    assert refused.value.wire()["error"] == {
        "code": "SECRET_DETECTED",
        "message": "`content` holds a secret on line 2: github_token; nothing was stored",
        "details": {
            "field": "content",
            "kind": "github_token",
            "line": 2,
            "found": [{"field": "content", "kind": "github_token", "line": 2}],
            "hint": refused.value.hint,
        },
    }
    assert "--allow-secret" in refused.value.hint
    assert "mind:allow-secret" in refused.value.hint


def test_a_person_may_mark_a_line_or_allow_a_call_and_an_agent_may_not(call: Call) -> None:
    marked = f"not one: {TOKEN} (mind:allow-secret)"
    shell = Caller(surface=Surface.CLI, agent="claude-code")
    for agent in (AGENT, shell):
        with pytest.raises(SecretDetected):
            ask(call, "mind_add", agent, content=marked)
    with pytest.raises(Denied):
        ask(call, "mind_add", replace(shell, allows_secrets=True), content=TOKEN)

    ask(call, "mind_add", PERSON, content=marked)
    allowing = Caller(surface=Surface.CLI, allows_secrets=True)
    done = ask(call, "mind_add", allowing, content=f"{TOKEN} is allowed")

    assert ask(call, "mind_search", query="not one")["results"][0]["content"] == marked
    assert ask(call, "mind_show", id=done["id"])["content"] == f"{MASK} is allowed"
    assert TOKEN[4:] not in done["id"]
    assert TOKEN in (call.mind.project.root / done["file"]).read_text(encoding="utf-8")


def test_a_file_with_an_old_secret_can_still_be_changed(call: Call) -> None:
    path = fact(call, "fact_old_20261101_bbbbbb", f"Old {TOKEN}.")

    ask(call, "mind_edit", id="fact_old", importance=0.9)
    ask(call, "mind_edit", PERSON, id="fact_old", content=f"Still {TOKEN}, and more.")
    with pytest.raises(SecretDetected):
        ask(call, "mind_edit", id="fact_old", content=f"Still {TOKEN[:-1]}Z.")

    assert f"Still {TOKEN}, and more." in path.read_text(encoding="utf-8")


@pytest.mark.req("002-37")
@pytest.mark.parametrize(
    ("key", "arguments"),
    [
        ("mind_show", {"id": "fact_leak"}),
        ("mind_search", {"query": "deploy token"}),
        ("mind_list", {}),
        ("memory.search", {"query": "deploy token", "threshold": 0.0}),
        ("memory.list", {}),
        ("recall_memory", {"query": "deploy token"}),
        ("search/recent", {}),
        ("search/by_context", {"query": "deploy token", "threshold": 0.0}),
        ("search/by_topic", {"topic": "deploy"}),
        ("load/context", {"id": "fact_leak"}),
        ("mind_graph", {"id": "fact_leak"}),
        ("mind_keep", {"id": "fact_leak"}),
        ("mind_scan", {}),
        ("search_vibes", {"query": "deploy token"}),
    ],
)
def test_a_secret_written_by_hand_is_masked_in_answers(
    key: str, arguments: dict[str, Any], call: Call
) -> None:
    header = f"title: deploy token {TOKEN}\ntopic: deploy\nmail: x {TOKEN}\ntags: [deploy]\n"
    fact(call, "fact_leak_20261101_cccccc", f"The deploy token is {TOKEN}.", header)

    answer = json.dumps(ask(call, key, **arguments))

    assert TOKEN not in answer
    assert MASK in answer


def test_a_long_title_shows_nothing_of_a_secret(call: Call) -> None:
    fact(call, "fact_cut_20261101_dddddd", f"{'word ' * 12}{TOKEN} and so on")

    title = ask(call, "mind_show", id="fact_cut")["title"]

    assert title == f"{'word ' * 12}{MASK} and so on"


def test_resources_are_masked(call: Call) -> None:
    fact(call, "fact_leak_20261101_cccccc", f"{TOKEN} deploys.", f"key: {TOKEN}\n")

    (title,) = [
        resource.title for resource in resources.newest(call.by(AGENT)) if "leak" in resource.name
    ]
    text = resources.read(call.by(AGENT), "mind://memory/fact_leak_20261101_cccccc").text

    assert title == f"{MASK} deploys."
    assert TOKEN not in text
    assert text.count(MASK) == 2


@pytest.mark.req("002-43")
def test_an_error_does_not_repeat_a_secret(call: Call) -> None:
    with pytest.raises(NotFound) as error:
        ask(call, "mind_show", id=TOKEN)

    assert TOKEN not in json.dumps(error.value.wire()) + str(error.value)
    assert MASK in error.value.message


@pytest.mark.req("002-57")
def test_a_file_with_a_secret_is_not_ingested_and_the_error_names_the_line(call: Call) -> None:
    (call.mind.project.root / "good.md").write_text("Tea is served at four.", encoding="utf-8")
    (call.mind.project.root / "bad.md").write_text(f"fine\n\nkey {TOKEN}\n", encoding="utf-8")

    with pytest.raises(SecretDetected) as refused:
        ask(call, "ingest", path="bad.md")
    done = ask(call, "ingest", path="*.md")

    assert "`bad.md` holds a secret on line 3: github_token" in refused.value.message
    assert refused.value.details["file"] == "bad.md"
    rows = {row["path"]: row.get("code") for row in done["files"]}
    assert rows == {"bad.md": "SECRET_DETECTED", "good.md": None}


def test_a_row_with_a_secret_is_not_imported_and_the_reason_is_reported(
    call: Call, tmp_path: Path
) -> None:
    rows = [mama_databases.decision("a"), mama_databases.decision("b", reasoning=f"use {TOKEN}")]
    source = mama_databases.make(tmp_path / "old" / "mama.db", {"decisions": rows})

    answer = json.dumps(ask(call, "mind_import_mama", PERSON, db=str(source)))

    assert "`reasoning` holds a secret on line 1: github_token" in answer
    assert TOKEN not in answer
    assert not list((call.mind.project.root / ".mind" / "decisions").glob("b*"))


@pytest.mark.parametrize("action", ["refuse", "redact"])
@pytest.mark.parametrize("value", [5, "call 212-234-5678"])
@pytest.mark.parametrize(
    "place", [("agent.pii", "phone-415-555-2671"), ("agent.phone-415-555-2671", "k")]
)
def test_a_refused_key_is_not_to_be_redacted(call: Call, action: str, value: Any, place) -> None:
    policy(call, action)

    with pytest.raises(PiiDetected) as refused:
        ask(call, "putMemory", namespace=place[0], key=place[1], value=value)

    assert "choose a namespace and a key without personal data" in (refused.value.hint or "")
    assert "on_write" not in (refused.value.hint or "")
    ask(call, "putMemory", namespace="agent.x", key="k", value=5)


def test_a_refused_value_may_be_redacted(call: Call) -> None:
    with pytest.raises(PiiDetected) as refused:
        ask(call, "putMemory", namespace="agent.x", key="k", value="call 212-234-5678")

    assert "`pii.on_write: redact`" in (refused.value.hint or "")


@pytest.mark.parametrize("action", ["redact", "allow"])
def test_a_refusal_shows_how_to_approve_a_policy_that_permits_the_value(
    call: Call, action: str
) -> None:
    policy(call, action)
    ask(call, "mind_untrust", PERSON)

    with pytest.raises(PiiDetected) as refused:
        ask(call, "putMemory", namespace="agent.x", key="k", value="call 212-234-5678")

    assert "`mind trust .mind/policy.yaml`, or commit it" in (refused.value.hint or "")
    assert "on_write" not in (refused.value.hint or "")


@pytest.mark.req("002-42")
def test_a_value_with_personal_data_is_refused_exactly_as_documented(call: Call) -> None:
    value = {"a": {"mail": "jo@corp.io"}, "b": ["call 212-234-5678"], "c": "jo@corp.io"}

    with pytest.raises(PiiDetected) as refused:
        ask(call, "putMemory", namespace="agent.x", key="k", value=value)

    assert refused.value.wire() == {
        "type": "error",
        "error": {
            "code": "PII_DETECTED",
            "message": "PII detected in memory operation",
            "details": {"redacted_fields": ["email", "phone"]},
        },
    }
    assert "jo@corp.io" not in on_disk(call)


def policy(call: Call, action: str) -> None:
    path = call.mind.project.root / ".mind" / "policy.yaml"
    path.write_text(f"pii:\n  on_write: {action}\n", encoding="utf-8")
    ask(call, "mind_trust", PERSON, all=True)


def test_a_policy_can_redact_values(call: Call) -> None:
    policy(call, "redact")

    ask(call, "putMemory", namespace="agent.x", key="k", value={"mail": "jo@corp.io", "n": 1})

    assert ask(call, "getMemory", namespace="agent.x", key="k")["value"] == {
        "mail": "[REDACTED:email]",
        "n": 1,
    }
    assert "jo@corp.io" not in on_disk(call)
    with pytest.raises(PiiDetected):
        ask(call, "putMemory", namespace="agent.x", key="call_212-234-5678", value=1)


@pytest.mark.req("002-10", "002-37", "002-43", "002-53")
def test_a_masked_key_still_leads_to_its_value(call: Call) -> None:
    policy(call, "allow")
    key = "call_212-234-5678"
    ask(call, "putMemory", namespace="agent.x", key=key, value="to jo@corp.io")

    (shown,) = ask(call, "listMemory", namespace="agent.x")["keys"]
    kept = ask(call, "getMemory", namespace="agent.x", key=shown)

    assert shown.startswith("REDACTED-phone-")
    assert (kept["key"], kept["value"]) == (shown, "to [REDACTED:email]")
    assert ask(call, "getMemory", namespace="agent.x", key=key)["value"] == kept["value"]
    assert "5678" not in json.dumps(kept)
    redactions = audit.log_of(call).totals().redactions
    assert redactions["listMemory",] == 1
    assert redactions["getMemory",] >= 3
    ask(call, "deleteMemory", namespace="agent.x", key=shown)
    with pytest.raises(NotFound) as missing:
        ask(call, "getMemory", namespace="agent.x", key=key)
    assert "5678" not in json.dumps(missing.value.wire())


@pytest.mark.parametrize("action", ["allow", "redact", "refuse"])
def test_no_policy_lets_a_secret_into_a_value(action: str, call: Call) -> None:
    policy(call, action)

    with pytest.raises(SecretDetected):
        ask(call, "putMemory", namespace="agent.x", key="k", value={"a": [TOKEN]})


def test_memories_of_people_keep_personal_data(call: Call) -> None:
    done = ask(call, "mind_add", content="Ask jo@corp.io about tea")

    assert ask(call, "mind_show", id=done["id"])["content"] == "Ask jo@corp.io about tea"


def test_completions_show_no_secret(call: Call) -> None:
    fact(call, "fact_leak_20261101_cccccc", "Tea.", f"title: token {TOKEN}\n")
    ask(call, "mind_list")

    assert ("fact_leak_20261101_cccccc", f"token {MASK}") in candidates("id", "fact_", None)
