"""Reading `policy.yaml`, and its errors."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.data.disk import Stamp
from mimo.guard import policy as reading
from mimo.guard.policy import (
    ALL,
    DEFAULT,
    FILE,
    ActivePolicies,
    InvalidPolicy,
    Limit,
    Operation,
    PiiAction,
    Policy,
    PolicyFile,
    Request,
    Rule,
    judge,
    parse,
)
from tests.kit import put

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DOCUMENTED = b"""\
tool_permissions:
  listMemory:
    allowed_namespaces: ["session.*", "agent.*", "public.*"]
    operations: ["read"]
  getContext:
    allowed_context_types: ["session", "agent", "task"]
    operations: ["read"]
  putMemory:
    allowed_namespaces: ["session.*", "agent.*"]
    operations: ["write"]
    max_ttl_seconds: 3600
"""


def unplaced(rules: dict[str, Rule]) -> dict[str, Rule]:
    return {name: replace(rule, line=None) for name, rule in rules.items()}


def limits(policy: Policy, tool: str, namespace: str | None = None) -> list[Limit]:
    call = Request(tool=tool, namespace=namespace, operation=Operation.READ, at=NOW)
    return [limit for _, _, limit in policy.limits_on(call)]


@pytest.mark.req("002-29", "002-30", "002-31", "002-32")
def test_the_documented_file_equals_the_default_policy() -> None:
    policy = parse(DOCUMENTED, "policy.yaml")

    assert unplaced(dict(policy.rules)) == unplaced(dict(DEFAULT.rules))
    assert policy.tool_limits == DEFAULT.tool_limits
    assert policy.rules["putmemory"].line == 8


@pytest.mark.parametrize("text", [b"", b"# nothing yet\n", b"tool_permissions: {}\n"])
def test_an_empty_file_equals_the_default_policy(text: bytes) -> None:
    assert replace(parse(text, "default"), named=frozenset()) == DEFAULT


def test_a_file_sets_limits_and_the_treatment_of_personal_data() -> None:
    policy = parse(
        b"rate_limits:\n"
        b"  tools:\n"
        b"    mind_search: {sustained: 0.5, burst: 3}\n"
        b"  namespaces:\n"
        b"    agent.build: {burst: 2}\n"
        b"pii: {on_write: redact}\n",
        "policy.yaml",
    )

    assert limits(policy, "mind-search") == [Limit(0.5, 3)]
    assert limits(policy, "mind_list") == []
    assert limits(policy, "mind_list", "agent.build") == [Limit(10, 2)]
    assert limits(policy, "mind_list", "agent.other") == [Limit(10, 50)]
    assert policy.on_write is PiiAction.REDACT


def test_a_limit_for_memories_applies_to_their_tools_and_those_of_extensions() -> None:
    text = b'rate_limits: {tools: {"*": {burst: 40}, memories: {burst: 4}}}'
    policy = parse(text, "policy.yaml")

    assert limits(policy, "mind_list") == limits(policy, "of_an_extension") == [Limit(10, 4)]
    assert limits(policy, "mind_status") == [Limit(10, 40)]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("{sustained: 1, burst: 2}", Limit(1, 2)),
        ("{sustained: 100, burst: 200}", Limit(10, 50)),
        ("{sustained: 1, burst: 200}", Limit(1, 50)),
    ],
)
def test_the_limit_of_a_leading_tool_only_lowers_the_own_limit_of_a_member(
    limit: str, expected: Limit
) -> None:
    policy = parse(f"rate_limits:\n  tools:\n    putMemory: {limit}\n".encode(), "policy.yaml")

    assert limits(policy, "deleteMemory") == [expected]


LIMITED = """
rate_limits:
  tools:
    "*": {sustained: 5, burst: 40}
    save/*: {sustained: 1, burst: 60}
    save/insight: {sustained: 90, burst: 90}
    mind_search: {sustained: 2, burst: 30}
    search/*: {sustained: 3, burst: 20}
    getMemory: {sustained: 70, burst: 70}
"""


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("save/decision", Limit(1, 40)),  # its family and `*`
        ("search/by_topic", Limit(2, 20)),  # its family, its leader and `*`
        ("recall_memory", Limit(2, 30)),  # its leader and `*`
        ("putMemory", Limit(5, 40)),  # its default and `*`
        ("mind_list", Limit(5, 40)),  # `*`
        ("save/insight", Limit(90, 90)),  # its own only
        ("getMemory", Limit(70, 70)),
    ],
)
def test_a_tool_has_the_strictest_limit_that_it_inherits_unless_it_is_named(
    tool: str, expected: Limit
) -> None:
    assert limits(parse(LIMITED.encode(), "policy.yaml"), tool) == [expected]


CLOSED, READ_ONLY = "{operations: []}", "{operations: [read]}"


@pytest.mark.parametrize(
    ("rules", "permitted"),
    [
        (f"memories: {CLOSED}", {"value"}),
        ("memories: {operations: [write]}", {"value", "add"}),
        (f"memories: {READ_ONLY}", {"value", "search", "show", "memory"}),
        # The rule of a member is in place of that of the group, which is in place of `*`.
        (f"memories: {CLOSED}, mind_show: {{}}", {"value", "show"}),
        (f"mind_show: {CLOSED}", {"value", "search", "memory", "add", "keep"}),
        (f'"*": {CLOSED}, memories: {READ_ONLY}', {"search", "show", "memory"}),
        (f'"*": {READ_ONLY}, memories: {{}}', {"value", "search", "show", "memory", "add", "keep"}),
        # That of a smaller group only narrows.
        (f"memories: {CLOSED}, memory: {{}}", {"value", "memory"}),
        (f"memory: {CLOSED}", {"value", "search"}),
        # An operation of a tool is that of the tool which does the same.
        (f"mind_search: {CLOSED}", {"value", "show", "add", "keep"}),
        (f'"*": {CLOSED}, memory: {{}}', {"memory"}),
        (f"memory: {{}}, mind_search: {CLOSED}", {"value", "show", "add", "keep"}),
        # A tool that changes a memory shows it.
        ('"*": {operations: [write]}', {"add"}),
    ],
)
def test_the_rule_for_memories_is_between_that_of_a_tool_and_that_of_every_tool(
    rules: str, permitted: set[str]
) -> None:
    policy = parse(f"tool_permissions: {{{rules}}}".encode(), "policy.yaml")
    calls = {
        "value": Request(tool="getMemory", operation=Operation.READ, at=NOW),
        "search": Request(tool="mind_search", operation=Operation.READ, at=NOW),
        "show": Request(tool="mind_show", operation=Operation.READ, at=NOW),
        "memory": Request(tool="memory", like="mind_search", operation=Operation.READ, at=NOW),
        "add": Request(tool="mind_add", operation=Operation.WRITE, at=NOW),
        "keep": Request(tool="mind_keep", operation=Operation.WRITE, at=NOW),
    }

    active = ActivePolicies(policies=(policy,))
    assert {name for name, call in calls.items() if active.judge(call).permitted} == permitted


@pytest.mark.req("002-39")
def test_the_star_rule_applies_to_every_tool_without_a_rule() -> None:
    policy = parse(
        b'tool_permissions:\n  "*": {operations: [read]}\n  save/decision: {}\n', "policy.yaml"
    )

    def may_write(tool: str) -> bool:
        call = Request(tool=tool, operation=Operation.WRITE, at=NOW)
        return all(judge(rule, call).permitted for rule in policy.rules_of(tool))

    assert not may_write("mind_add")
    assert not may_write("putMemory")
    assert may_write("save_decision")


def test_a_request_for_all_contexts_is_not_refused_by_a_rule_that_allows_some() -> None:
    rule = Rule(contexts=("session",))

    def permitted(context: str) -> bool:
        call = Request(tool="getContext", operation=Operation.READ, at=NOW, context=context)
        return judge(rule, call).permitted

    assert permitted(ALL)
    assert permitted("session")
    assert not permitted("task")


INVALID = [
    ("tool_permission:\n  mind_list: {}\n", 1, "unknown key `tool_permission`"),
    ("tool_permissions:\n  putMemory:\n    allowed: []\n", 3, "unknown key `allowed`"),
    ("tool_permissions:\n  putMemory: {operations: [read, fly]}\n", 2, "`fly`"),
    ("tool_permissions:\n  putMemory:\n    operations: write\n", 3, "must be a list"),
    ("tool_permissions:\n  putMemory: yes\n", 2, "must be a mapping"),
    ("tool_permissions:\n  putMemory:\n", 2, "must be a mapping"),
    ("tool_permissions:\n  save/decision: {}\n  save_decision: {}\n", 3, "appears twice"),
    ("tool_permissions:\n  'put memory': {}\n", 2, "there is no tool `put memory`"),
    (
        'tool_permissions:\n  mind_list:\n    allowed_namespaces:\n      - "../x"\n',
        4,
        "not a pattern",
    ),
    ('tool_permissions:\n  mind_list: {allowed_namespaces: ["session*"]}\n', 2, "not a pattern"),
    ("tool_permissions:\n  mind_list: {allowed_context_types: [all]}\n", 2, "`all`"),
    ("tool_permissions:\n  mind_list: {max_ttl_seconds: -1}\n", 2, "`max_ttl_seconds`"),
    ("tool_permissions:\n  mind_list: {max_ttl_seconds: true}\n", 2, "`max_ttl_seconds`"),
    ("rate_limits:\n  tools:\n    mind_list: {sustained: 0}\n", 3, "`sustained`"),
    ("rate_limits:\n  tools:\n    mind_list: {burst: 0.5}\n", 3, "`burst`"),
    ("rate_limits:\n  tools:\n    mind_list: {sustained: .inf}\n", 3, "`sustained`"),
    ("rate_limits: [1]\n", 1, "must be a mapping"),
    ("pii:\n  on_write: maybe\n", 2, "`maybe`"),
    ("- a list\n", 1, "must be a mapping"),
    ("tool_permissions: {}\ntool_permissions: {}\n", 2, "appears twice"),
    ("a: &x 1\n", 1, "anchors"),
    ("a: !!python/object:os.system x\n", 1, "tags"),
    ("tool_permissions:\n  x: [unclosed\n", 3, ""),
    ("x: \x00\n", 1, "binary"),
]


@pytest.mark.parametrize(("text", "line", "reason"), INVALID)
def test_an_invalid_file_is_rejected_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse(text.encode(), "policy.yaml")

    assert caught.value.faults[0].line == line
    assert reason in caught.value.faults[0].reason


def test_all_errors_of_a_file_are_reported() -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse(b"pii: {on_write: maybe}\nlimits: 3\n", "policy.yaml")

    assert [fault.line for fault in caught.value.faults] == [1, 2]


def test_a_file_over_the_size_limit_is_rejected() -> None:
    with pytest.raises(InvalidPolicy, match="too large"):
        parse(b"#" * 70_000, "policy.yaml")


def test_a_change_while_the_file_is_read_takes_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / FILE, "# nothing yet\n")
    stamp = Stamp.of(path.stat())
    now_ns = stamp.ctime_ns

    def slowly(data: bytes, source: str) -> Policy:
        nonlocal now_ns
        now_ns += 5_000_000_000
        return parse(data, source)

    monkeypatch.setattr(reading, "parse", slowly)
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    # Two changes within one step of the file system's clock.
    monkeypatch.setattr(Stamp, "of", lambda _: stamp)
    file = PolicyFile(tmp_path, lambda _: True)
    assert not file.active().faults
    path.write_text("limits: 3\n", encoding="utf-8")

    assert file.active().faults


SEARCH = Request(tool="mind_search", operation=Operation.READ, at=NOW)
PUT = Request(tool="putMemory", operation=Operation.WRITE, namespace="public.a", at=NOW)
WIDE = 'tool_permissions:\n  putMemory: {allowed_namespaces: ["*"]}\n'
NARROW = "tool_permissions:\n  mind_search: {operations: []}\n"
BROKEN = "tool_permissions: [}\n"


@pytest.mark.attack("an earlier or missing policy widens")
@pytest.mark.parametrize(
    ("current", "latest", "searches", "puts"),
    [
        (None, None, True, False),
        (None, NARROW, False, False),
        (None, WIDE, True, True),
        (WIDE, None, True, False),
        (WIDE, NARROW, False, False),
        (NARROW, None, False, False),
        (NARROW, WIDE, False, False),
        (f"{WIDE}  mind_add: {{}}\n", WIDE, True, True),
        (WIDE, BROKEN, False, False),
        (None, BROKEN, False, False),
    ],
)
def test_an_unapproved_or_missing_file_can_only_narrow_the_last_approved_one(
    tmp_path: Path, current: str | None, latest: str | None, searches: bool, puts: bool
) -> None:
    if current is not None:
        put(tmp_path / FILE, current)
    text = None if latest is None else latest.encode()

    active = PolicyFile(tmp_path, lambda _: False, lambda: text).active()

    assert active.judge(SEARCH).permitted is searches
    assert active.judge(PUT).permitted is puts
    assert active.trusted is (current is None and latest is None)


@pytest.mark.parametrize(
    ("current", "latest", "waits"),
    [(WIDE, None, True), (WIDE, NARROW, True), (NARROW, None, False), (None, NARROW, False)],
)
def test_a_call_that_the_file_permits_waits_for_its_approval(
    tmp_path: Path, current: str | None, latest: str | None, waits: bool
) -> None:
    if current is not None:
        put(tmp_path / FILE, current)
    text = None if latest is None else latest.encode()

    verdict = PolicyFile(tmp_path, lambda _: False, lambda: text).active().judge(PUT)

    assert (verdict.permitted, verdict.waits) == (False, waits)


def test_an_unapproved_file_that_is_invalid_permits_nothing(tmp_path: Path) -> None:
    put(tmp_path / FILE, BROKEN)

    active = PolicyFile(tmp_path, lambda _: False, WIDE.encode).active()

    assert active.faults
    assert (active.policies, active.trusted) == ((), False)


def test_an_approved_file_is_active_without_its_last_approved_text(tmp_path: Path) -> None:
    put(tmp_path / FILE, WIDE)

    active = PolicyFile(tmp_path, lambda _: True, NARROW.encode).active()

    assert (len(active.policies), active.trusted, active.waiting()) == (1, True, None)


@pytest.mark.parametrize(
    ("current", "latest", "is_approved", "text"),
    [
        (None, None, False, None),
        (None, NARROW, False, NARROW),
        (WIDE, NARROW, False, NARROW),
        (WIDE, None, False, WIDE),
        (WIDE, NARROW, True, WIDE),
    ],
)
def test_the_text_of_the_policy_is_the_approved_one_if_there_is_one(
    tmp_path: Path, current: str | None, latest: str | None, is_approved: bool, text: str | None
) -> None:
    if current is not None:
        put(tmp_path / FILE, current)
    approved = None if latest is None else latest.encode()

    file = PolicyFile(tmp_path, lambda _: is_approved, lambda: approved)

    assert file.text() == (None if text is None else text.encode())


def test_a_rule_of_the_approved_text_names_its_place(tmp_path: Path) -> None:
    active = PolicyFile(tmp_path, lambda _: False, NARROW.encode).active()

    message = "its operations are none (approved .mind/policy.yaml:2)"
    assert active.judge(SEARCH).message == message
    assert active.judge(SEARCH).waits
    assert [str(part) for part in active.waiting() or ()] == [
        "the policy was removed, which is not approved here, so it is still active",
        "approve its removal with `mind trust .mind/policy.yaml`",
    ]


RULES = st.fixed_dictionaries(
    {},
    optional={
        "operations": st.lists(st.sampled_from(["read", "write"]), unique=True),
        "allowed_namespaces": st.lists(
            st.sampled_from(["*", "agent.*", "public.*", "agent.a"]), unique=True
        ),
        "max_ttl_seconds": st.sampled_from([0, 60, 100_000]),
    },
)
POLICIES = st.dictionaries(
    st.sampled_from(["*", "putMemory", "deleteMemory", "mind_search", "memory", "search/*"]), RULES
).map(lambda rules: json.dumps({"tool_permissions": rules}).encode())
REQUESTS = st.builds(
    Request,
    tool=st.sampled_from(["putMemory", "deleteMemory", "mind_search", "mind_add"]),
    operation=st.sampled_from(Operation),
    namespace=st.sampled_from([None, "agent.a", "public.a"]),
    ttl_seconds=st.sampled_from([None, 30, 5_000]),
    at=st.just(NOW),
)


@given(current=st.none() | POLICIES, latest=st.none() | POLICIES, request_=REQUESTS)
def test_no_unapproved_file_permits_what_the_approved_one_denies(
    tmp_path_factory: pytest.TempPathFactory,
    current: bytes | None,
    latest: bytes | None,
    request_: Request,
) -> None:
    root = tmp_path_factory.mktemp("policy")
    if current is not None:
        put(root / FILE, current.decode())
    base = DEFAULT if latest is None else parse(latest, FILE)
    stated = DEFAULT if current is None else parse(current, FILE)

    active = PolicyFile(root, lambda _: False, lambda: latest).active()
    verdict = active.judge(request_)

    is_approved = ActivePolicies(policies=(base,)).judge(request_).permitted
    is_stated = ActivePolicies(policies=(stated,)).judge(request_).permitted
    assert verdict.permitted <= is_approved
    assert not verdict.waits or (is_stated and not is_approved)
    assert verdict.permitted or verdict.waits or not is_stated
