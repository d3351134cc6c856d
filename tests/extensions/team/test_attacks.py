"""Attacks on a team: runs past the limits of a user, and planted state of the shared index."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.spec import OPERATION, Spec, to_json
from mimo.data import files
from mimo.data.files import LOCAL
from mimo.errors import Denied, MindError
from mimo.extensions.team import sharing, tokens
from mimo.extensions.team.tokens import Member, Scope, digest_of
from mimo.features import audit
from mimo.features.procedures import calling, executing
from mimo.features.procedures.machine import Status
from mimo.operations.invoke import invoke
from tests.kit import acting_as
from tests.redteam.test_planted import PLANTED
from tests.redteam.test_procedure_callers import (
    ADD,
    KIND,
    PERSON,
    SECRET,
    TOOLS,
    call,
    call_tool,
    continued,
    started,
)
from tests.sample_procedures import WAIT, begun, put, text

__all__ = ["call"]


def member(name: str = "sam", scope: Scope = Scope.WRITE, **fields: Any) -> Member:
    digest = digest_of(f"the-secret-token-of-{name}")
    return Member(name=name, email=f"{name}@example.org", scope=scope, digest=digest, **fields)


def user(call: Call, file: Path, name: str = "sam") -> Caller:
    """The caller of a user, whose token is in the file."""
    members = {each.name: each for each in tokens.Tokens(file).members()}
    return Caller(surface=Surface.MCP, name="cursor", permissions=members[name])


@pytest.fixture
def file(tmp_path: Path, call: Call) -> Path:
    """The tokens of two users, who may open this project only."""
    path, name = tmp_path / "tokens.toml", call.mind.project.root
    tokens.write(path, [member(each, projects=(str(name),)) for each in ("sam", "sue")])
    return path


def given(spec: Spec) -> dict[str, Any]:
    """Arguments for a command: any value for those that it needs, and all that reach further."""
    arguments: dict[str, Any] = {OPERATION: spec.operation} if spec.operation else {}
    for param in spec.params:
        if Surface.MCP not in param.arg.surfaces:
            continue
        if param.required:
            arguments[param.name] = "x"
        elif param.name in ("user", "scope"):
            arguments[param.name] = True if param.name == "user" else "all"
    return arguments


def outcome(act: Any) -> str:
    try:
        shown = json.dumps(act())
    except MindError as error:
        return f"{error.code} {getattr(error, 'reason', '')} {error.message}"
    assert SECRET not in shown
    return "done"


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE])
def test_a_procedure_permits_a_user_no_more_than_a_direct_call(call: Call, scope: Scope) -> None:
    caller = Caller(
        surface=Surface.MCP, name="cursor", permissions=member(scope=scope, projects=("shop",))
    )
    run = call.by(caller)
    specs = [each for group in TOOLS.values() for each in group if each.toolset != "procedures"]
    compared: dict[str, tuple[str, str]] = {}
    for spec in specs:
        arguments = given(spec)
        direct = {key: value for key, value in arguments.items() if key != OPERATION}
        compared[spec.key] = (
            outcome(lambda s=spec, a=direct: to_json(invoke(s, call.by(caller), a))),
            outcome(lambda s=spec, a=arguments: calling.run_command(run, s.name, a)),
        )

    denied = {key for key, both in compared.items() if both[0].startswith(Denied.code)}
    assert len(compared) > 50
    assert len(denied) > (20 if scope is Scope.READ else 5)
    for key in denied:
        direct_, within = compared[key]
        # An argument of another type is refused before the token is checked.
        assert within == direct_ or within.startswith("VALIDATION_ERROR"), key
    assert {key for key, both in compared.items() if both[1] == "done"} <= {
        key for key, both in compared.items() if both[0] == "done"
    }


@pytest.mark.attack(KIND)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mind_search", {"query": "launch code", "scope": "all"}),
        ("mind_list", {"user": True}),
        ("mind_add", {"content": "Deploy on Fridays", "user": True}),
        ("mind_sync", {}),
        ("mind_status", {}),
    ],
)
def test_a_run_of_a_user_reaches_no_other_project_and_no_account(
    call: Call, file: Path, tool: str, arguments: Mapping[str, Any]
) -> None:
    states = f"""\
initial_state: act
states:
  act:
    action: {{module: mind, function: {tool}, args: [{json.dumps(arguments)}]}}
    transitions: [{{event: success, target: done}}, {{event: error, target: done}}]
  done: {{}}
"""
    caller = user(call, file)
    call_tool(call, "register_procedure", caller, text=text("act", states))

    shown = json.dumps(call_tool(call, "run_procedure", caller, name="act"))

    assert SECRET not in shown
    assert "diary" not in shown
    assert len(call_tool(call, "mind_list", PERSON, user=True)["memories"]) == 1
    events = [link.event for link in audit.recorded(call, None, None)]
    assert {event.get("user") for event in events if event["tool"] == tool} >= {"sam"}


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("begun_by", ["sam", None])
def test_a_run_of_a_user_is_answered_stopped_and_continued_by_that_user_only(
    call: Call, file: Path, begun_by: str | None
) -> None:
    put(call, "add", ADD)
    owner = user(call, file, begun_by) if begun_by else PERSON
    execution, sue = started(call, "add", owner), user(call, file, "sue")

    with pytest.raises(Denied, match="another user"):
        call_tool(call, "send_event", sue, execution_id=execution.id, event="yes")
    with pytest.raises(Denied, match="another user"):
        call_tool(call, "cancel_procedure", sue, execution_id=execution.id)
    if begun_by:
        with pytest.raises(Denied, match="another user"):
            call_tool(call, "resume_procedure", sue, execution_id=execution.id)

    assert continued(call, execution, owner)["status"] == "completed"


@pytest.mark.attack(KIND)
def test_another_process_continues_a_run_of_a_user_with_the_rights_of_the_token(
    call: Call, file: Path
) -> None:
    put(call, "add", ADD.replace("{content:", "{user: true, content:"))
    execution = started(call, "add", user(call, file))
    done = continued(call, execution, PERSON)
    assert done["status"] == "failed"
    assert "memory for all projects" in done["error"]

    tokens.write(file, [member(projects=("diary",))])
    narrowed = started(call, "add", user(call, file))
    with pytest.raises(Denied):
        continued(call, narrowed, PERSON)
    tokens.write(file, [])
    with pytest.raises(Denied):
        call_tool(call, "resume_procedure", PERSON, execution_id=narrowed.id)


@pytest.mark.attack(KIND)
def test_a_run_ends_with_the_token_of_its_user(call: Call, file: Path) -> None:
    put(call, "wait", WAIT)
    execution = started(call, "wait", user(call, file))
    call.mind.timer = call.mind.timer._replace(sleep=lambda _: tokens.write(file, []))

    stopped = executing.carry_out(call, execution)

    assert stopped.status is Status.INTERRUPTED
    assert "the token of its user is no longer valid" in str(stopped.run.error)


def test_a_run_of_a_user_that_is_continued_in_the_background_names_the_user(
    call: Call, file: Path
) -> None:
    put(call, "wait", WAIT)
    agent = call.by(user(call, file))
    execution = begun(agent, "wait")

    executing.start(call, execution)
    executing.cancel(call, execution, "enough")

    assert call.recorded
    assert call.recorded.name == "sam"


@pytest.mark.attack(PLANTED)
def test_planted_files_do_not_start_sharing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(call.mind.environ, "MIND_INDEX_URL", "postgresql://ana@127.0.0.1:1/mind")
    state = {
        "place": "127.0.0.1:1/mind", "pushed": "2026-11-01T00:00:00+00:00", "memories": 1,
        "commit": "", "root": "/nowhere", "identity": "x", "view": "y", "file": "f",
        "revision": 1, "of": 1, "fingerprint": 1,
    }  # fmt: skip
    for name in ("shared.json", "shared", f"shared-{'0' * 12}"):
        files.replace(call.mind.project.root / LOCAL / name, json.dumps(state).encode())

    assert sharing.pushed_here(call) is None
    assert not sharing.is_behind(call)
    with pytest.raises(Denied, match="only a person may start sharing"):
        sharing.push(acting_as(call, "claude-code"))
