"""`policy.yaml`, and all that can be wrong with it."""

from dataclasses import replace

import pytest

from mimo.guard.policies import Faulty, parse
from mimo.guard.policy import DEFAULT, Limit, Operation, PiiAction, Rule, judge

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


@pytest.mark.req("002-29", "002-30", "002-31", "002-32")
def test_the_documented_file_says_what_holds_without_one() -> None:
    policy = parse(DOCUMENTED, "policy.yaml")

    assert unplaced(dict(policy.rules)) == unplaced(dict(DEFAULT.rules))
    assert policy.tool_limits == DEFAULT.tool_limits
    assert policy.rules["putmemory"].line == 8


@pytest.mark.parametrize("text", [b"", b"# nothing yet\n", b"tool_permissions: {}\n"])
def test_a_file_that_says_nothing_changes_nothing(text: bytes) -> None:
    assert replace(parse(text, "default"), named=frozenset()) == DEFAULT


def test_a_file_may_say_limits_and_what_happens_to_personal_data() -> None:
    policy = parse(
        b"rate_limits:\n"
        b"  tools:\n"
        b"    mind_search: {sustained: 0.5, burst: 3}\n"
        b"  namespaces:\n"
        b"    agent.build: {burst: 2}\n"
        b"pii: {on_write: redact}\n",
        "policy.yaml",
    )

    assert policy.limit_of_tool("mind-search") == Limit(0.5, 3)
    assert policy.limit_of_tool("mind_list") is None
    assert policy.limit_of_namespace("agent.build") == Limit(10, 2)
    assert policy.limit_of_namespace("agent.other") == Limit(10, 50)
    assert policy.on_write is PiiAction.REDACT


@pytest.mark.req("002-39")
def test_a_star_binds_every_tool_that_the_file_does_not_name() -> None:
    policy = parse(
        b'tool_permissions:\n  "*": {operations: [read]}\n  save/decision: {}\n', "policy.yaml"
    )

    def may_write(tool: str) -> bool:
        return all(judge(rule, Operation.WRITE).permitted for rule in policy.rules_of(tool))

    assert not may_write("mind_add")
    assert not may_write("putMemory")
    assert may_write("save_decision")


FAULTY = [
    ("tool_permission:\n  x: {}\n", 1, "unknown key `tool_permission`"),
    ("tool_permissions:\n  putMemory:\n    allowed: []\n", 3, "unknown key `allowed`"),
    ("tool_permissions:\n  putMemory: {operations: [read, fly]}\n", 2, "`fly`"),
    ("tool_permissions:\n  putMemory:\n    operations: write\n", 3, "must be a list"),
    ("tool_permissions:\n  putMemory: yes\n", 2, "must be a mapping"),
    ("tool_permissions:\n  putMemory:\n", 2, "must be a mapping"),
    ("tool_permissions:\n  a/b: {}\n  a_b: {}\n", 3, "stands twice"),
    ("tool_permissions:\n  'put memory': {}\n", 2, "no name of a tool"),
    ('tool_permissions:\n  x:\n    allowed_namespaces:\n      - "../x"\n', 4, "no pattern"),
    ('tool_permissions:\n  x: {allowed_namespaces: ["session*"]}\n', 2, "no pattern"),
    ("tool_permissions:\n  x: {allowed_context_types: [all]}\n", 2, "`all`"),
    ("tool_permissions:\n  x: {max_ttl_seconds: -1}\n", 2, "`max_ttl_seconds`"),
    ("tool_permissions:\n  x: {max_ttl_seconds: true}\n", 2, "`max_ttl_seconds`"),
    ("rate_limits:\n  tools:\n    x: {sustained: 0}\n", 3, "`sustained`"),
    ("rate_limits:\n  tools:\n    x: {burst: 0.5}\n", 3, "`burst`"),
    ("rate_limits:\n  tools:\n    x: {sustained: .inf}\n", 3, "`sustained`"),
    ("rate_limits: [1]\n", 1, "must be a mapping"),
    ("pii:\n  on_write: maybe\n", 2, "`maybe`"),
    ("- a list\n", 1, "must be a mapping"),
    ("tool_permissions: {}\ntool_permissions: {}\n", 2, "stands twice"),
    ("a: &x 1\n", 1, "anchors"),
    ("a: !!python/object:os.system x\n", 1, "tags"),
    ("tool_permissions:\n  x: [unclosed\n", 3, ""),
    ("x: \x00\n", 1, "binary"),
]


@pytest.mark.parametrize(("text", "line", "told"), FAULTY)
def test_a_faulty_file_is_no_policy_and_says_where(text: str, line: int, told: str) -> None:
    with pytest.raises(Faulty) as caught:
        parse(text.encode(), "policy.yaml")

    assert caught.value.faults[0].line == line
    assert told in caught.value.faults[0].reason


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(Faulty) as caught:
        parse(b"pii: {on_write: maybe}\nlimits: 3\n", "policy.yaml")

    assert [fault.line for fault in caught.value.faults] == [1, 2]


def test_a_file_that_is_too_large_is_no_policy() -> None:
    with pytest.raises(Faulty, match="too large"):
        parse(b"#" * 70_000, "policy.yaml")
