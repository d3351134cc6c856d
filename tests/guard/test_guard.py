"""The checks before every call."""

from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Denied, RateLimited
from mimo.guard.audit import Ending, Session, Status
from mimo.guard.guard import Guard
from mimo.guard.policy import FILE, ActivePolicies, Operation, PiiAction, Request, Verdict
from mimo.project.trust import Trust
from tests.conftest import NOW, Clock

READ, WRITE = Operation.READ, Operation.WRITE


@pytest.fixture
def guard(call: Call) -> Guard:
    return call.mind.guard


def request_of(
    tool: str,
    operation: Operation,
    namespace: str | None = None,
    clock: Clock | None = None,
    **more,
) -> Request:
    return Request(
        tool=tool, operation=operation, namespace=namespace, at=(clock or Clock())(), **more
    )


def write_policy(call: Call, text: str, *, trusted: bool = True) -> None:
    (call.mind.project.root / FILE).write_text(text, encoding="utf-8")
    Trust(call.mind.home, call.mind.project.root).follow(trusted)


def permits(guard: Guard, request: Request) -> bool:
    try:
        guard.authorise(request)
    except Denied:
        return False
    return True


@pytest.mark.parametrize(
    ("tool", "operation", "namespace", "permitted"),
    [
        ("listMemory", READ, "session.a", True),
        ("listMemory", READ, "public.a", True),
        ("listMemory", WRITE, "session.a", False),
        ("listMemory", READ, "private.a", False),
        ("getMemory", READ, "public.a", True),
        ("putMemory", WRITE, "agent.a", True),
        ("putMemory", WRITE, "public.a", False),
        ("putMemory", READ, "agent.a", False),
        ("deleteMemory", WRITE, "public.a", False),
        ("deleteMemory", WRITE, "agent.a", True),
        ("mind_search", READ, None, True),
        ("mind_add", WRITE, None, True),
    ],
)
@pytest.mark.req("002-24", "002-27", "002-28", "002-30", "002-32", "002-61")
def test_the_default_policy(
    guard: Guard, tool: str, operation: Operation, namespace: str | None, permitted: bool
) -> None:
    assert permits(guard, request_of(tool, operation, namespace)) is permitted


@pytest.mark.req("002-40", "002-41")
def test_a_refusal_has_the_documented_form(guard: Guard) -> None:
    with pytest.raises(Denied) as caught:
        guard.authorise(request_of("listMemory", READ, "sensitive"))

    assert caught.value.wire() == {
        "type": "error",
        "error": {
            "code": "PERMISSION_DENIED",
            "message": "Access denied to namespace 'sensitive'",
            "details": {"namespace": "sensitive", "operation": "read"},
        },
    }
    assert caught.value.reason == "namespace"


@pytest.mark.req("002-33")
def test_a_ttl_above_the_maximum_is_refused_and_not_shortened(guard: Guard) -> None:
    guard.authorise(request_of("putMemory", WRITE, "agent.a", ttl_seconds=3600))

    with pytest.raises(Denied) as caught:
        guard.authorise(request_of("putMemory", WRITE, "agent.a", ttl_seconds=3601))
    assert caught.value.details == {"ttl_seconds": 3601, "operation": "write"}


@pytest.mark.req("002-39")
def test_a_rule_applies_to_every_alias_of_a_tool(call: Call, guard: Guard) -> None:
    write_policy(call, "tool_permissions:\n  memory: {operations: [read]}\n")

    assert permits(guard, request_of("memory", READ))
    assert not permits(guard, request_of("memory", WRITE))
    assert not permits(guard, request_of("store_fact", WRITE, like="memory"))
    assert permits(guard, request_of("search_vibes", READ, like="memory"))


def test_a_policy_does_not_apply_to_commands_for_people_alone(call: Call, guard: Guard) -> None:
    write_policy(call, 'tool_permissions:\n  "*": {operations: []}\n')

    assert permits(guard, request_of("policy_check", READ, governed=False))
    assert not permits(guard, request_of("mind_status", READ))


@pytest.mark.req("002-45")
def test_a_verdict_is_cached_for_five_minutes_or_until_the_file_changes(
    call: Call, guard: Guard, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    judge = ActivePolicies.judge

    def counted(policies: ActivePolicies, request: Request) -> Verdict:
        asked.append(request.tool)
        return judge(policies, request)

    monkeypatch.setattr(ActivePolicies, "judge", counted)

    def ask() -> bool:
        return permits(guard, request_of("listMemory", READ, "private.a", clock))

    assert not ask()
    clock.forward(minutes=4, seconds=59)
    assert not ask()
    assert len(asked) == 1
    clock.forward(seconds=1)
    assert not ask()
    assert len(asked) == 2
    write_policy(call, 'tool_permissions:\n  listMemory: {allowed_namespaces: ["private.*"]}\n')
    assert ask()
    assert len(asked) == 3


def test_a_changed_policy_applies_at_once(call: Call, guard: Guard) -> None:
    for word, permitted in (("read", True), ("write", False), ("read", True)):
        write_policy(call, f"tool_permissions:\n  mind_search: {{operations: [{word}]}}\n")
        assert permits(guard, request_of("mind_search", READ)) is permitted
    (call.mind.project.root / FILE).unlink()
    assert permits(guard, request_of("mind_search", READ))


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.req("002-36")
def test_an_unapproved_policy_can_only_restrict(call: Call, guard: Guard, trusted: bool) -> None:
    write_policy(
        call,
        "tool_permissions:\n"
        '  putMemory: {allowed_namespaces: ["*"], max_ttl_seconds: 99999}\n'
        "  mind_search: {operations: []}\n"
        "rate_limits:\n"
        "  tools: {putMemory: {sustained: 1000, burst: 1000}}\n"
        "  namespaces: {'*': {sustained: 1000, burst: 1000}}\n"
        "pii: {on_write: allow}\n",
        trusted=trusted,
    )
    request = request_of("putMemory", WRITE, "agent.a")

    assert permits(guard, request_of("putMemory", WRITE, "public.a")) is trusted
    assert permits(guard, request_of("putMemory", WRITE, "agent.a", ttl_seconds=9999)) is trusted
    assert not permits(guard, request_of("mind_search", READ))
    assert guard.on_write is (PiiAction.ALLOW if trusted else PiiAction.REFUSE)
    for _ in range(50):
        guard.limit(request)
    if trusted:
        guard.limit(request)
    else:
        with pytest.raises(RateLimited):
            guard.limit(request)


def test_mind_trust_approves_the_current_policy_only(call: Call, guard: Guard) -> None:
    from mimo.features.review import trusting

    text = "tool_permissions:\n  putMemory: {allowed_namespaces: [public.*]}\n"
    write_policy(call, text, trusted=False)
    assert not permits(guard, request_of("putMemory", WRITE, "public.a"))
    trusting.approve_all(call, follow=False)
    assert permits(guard, request_of("putMemory", WRITE, "public.a"))

    # Changed by a pull.
    write_policy(call, text.replace("public.*", "public.*, team.*"), trusted=False)
    assert permits(guard, request_of("putMemory", WRITE, "public.a"))
    assert not permits(guard, request_of("putMemory", WRITE, "team.a"))


@pytest.mark.parametrize("text", ["tool_permissions: [}", "x: 1", "\xff", "pii: {on_write: off}"])
def test_an_invalid_policy_permits_no_tool_and_reports_the_line(
    call: Call, guard: Guard, text: str
) -> None:
    (call.mind.project.root / FILE).write_bytes(text.encode("latin-1"))

    with pytest.raises(Denied) as caught:
        guard.authorise(request_of("mind_search", READ))
    assert ".mind/policy.yaml:1: " in caught.value.message
    assert caught.value.details["line"] == 1
    assert caught.value.reason == "policy"


@pytest.mark.parametrize("kind", ["link", "folder", "large", "dangling"])
def test_an_unreadable_policy_permits_no_tool(
    call: Call, guard: Guard, kind: str, tmp_path: Path
) -> None:
    path = call.mind.project.root / FILE
    if kind == "link":
        (tmp_path / "open.yaml").write_text('tool_permissions: {"*": {}}\n', encoding="utf-8")
        path.symlink_to(tmp_path / "open.yaml")
    elif kind == "dangling":
        path.symlink_to(tmp_path / "nothing.yaml")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"#" * 1_000_000)

    assert not permits(guard, request_of("listMemory", READ, "session.a"))
    assert not permits(guard, request_of("mind_search", READ))


@pytest.mark.req("002-67")
def test_the_session_keeps_the_last_hundred_calls_and_their_success() -> None:
    session = Session({}, started=NOW)
    guard = Guard(root=None, trusted=lambda _: False, owner=str, session=session)
    guard.record(request_of("mind_search", READ), Ending())
    guard.record(request_of("putMemory", WRITE, "public.a"), Ending(status=Status.FAILED))

    assert [(used.tool, used.success) for used in session.history] == [
        ("mind_search", True),
        ("putMemory", False),
    ]
    for _ in range(500):
        guard.record(request_of("mind_list", READ), Ending())
    assert len(session.history) == 100
    assert session.calls == 502


@pytest.mark.parametrize(
    ("variable", "id"),
    [
        ("s-1:2", "s-1:2"),
        ("", "session_1795188600"),
        ("x" * 129, "session_1795188600"),
        ("a\nb", "session_1795188600"),
        ("\x1b[31mred", "session_1795188600"),
    ],
)
@pytest.mark.req("002-14")
def test_a_session_id_from_the_environment_must_be_a_harmless_name(variable: str, id: str) -> None:
    assert Session({"MIND_SESSION_ID": variable}, started=NOW).id == id


@pytest.mark.req("002-18")
def test_a_context_must_be_permitted_by_every_policy(call: Call, guard: Guard) -> None:
    text = "tool_permissions: {getContext: {allowed_context_types: [task]}}\n"
    write_policy(call, text, trusted=False)

    assert guard.contexts(("session", "agent", "task"), "getContext") == ("task",)
