"""The names by which texts are approved."""

from datetime import UTC, datetime
from hashlib import blake2b

import pytest

from mimo.frozen import replace
from mimo.memory.approval import approval_of, approval_of_entry
from mimo.memory.model import Kind, Link, Memory
from mimo.project.memories import approvals_of

TEXT = b"allowed_namespaces: []\n"


@pytest.mark.attack("policy bypass")
def test_a_file_that_decides_by_its_path_has_a_name_of_its_own():
    paths = (
        ".mind/policy.yaml",
        ".mind/config.toml",
        ".mind/POLICY.yaml",
        ".mind/policy.yaml.md",
        ".mind/policy.yaml/x.md",
        ".mind/policy.yamls/x.md",
        ".mind/facts/policy.yaml",
        "policy.yaml",
        ".mind/procedures/a@1.md",
        ".mind/procedures/b/c.md",
        ".mind/values/agent/a.md",
        ".mind/values/agent/b.md",
        ".mind/decisions/a.md",
    )
    assert len({approval_of(path, TEXT) for path in paths}) == len(paths)


def test_a_memory_keeps_its_name_when_its_file_gets_another_name_or_becomes_private():
    for paths in (
        (".mind/facts/a.md", ".mind/facts/deep/b.md", ".mind/private/facts/a.md"),
        (".mind/a.md", ".mind/b.md"),
        ("docs/a.md", "docs/guides/b.md", "README.md"),
    ):
        assert len({approval_of(path, TEXT) for path in paths}) == 1, paths
    assert approval_of(".mind/facts/a.md", TEXT) != approval_of(".mind/facts/a.md", TEXT[1:])


@pytest.mark.attack("policy bypass")
@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        ("# A\n\nUse it.\n", False),
        ("---\nstatus: rejected\ndate: 2021-04-03\n---\n# A\n\n## Status\n\nAccepted\n", False),
        ("---\nstatus: rejected\ndate: 2021-04-03\n---\n# A\n", False),
        ("---\ntype: fact\n---\n# A\n\n## Status\n\nAccepted\n", False),
        ("# A\n\n## Status\n\nRejected\n", True),
        ("---\nstatus: rejected\n---\n# A\n\nDate: 2099-01-01\n", True),
        ("---\nstate: accepted\n---\n# A\n", True),
    ],
)
def test_the_name_of_a_record_covers_what_its_text_states(text, is_other):
    path, data = "docs/adr/0001-a.md", text.encode()
    # By this name, versions approved it that read its header only.
    earlier = blake2b(b"document decision\0" + data, digest_size=32).hexdigest()
    assert (approval_of(path, data) != earlier) is is_other
    assert approval_of("docs/adr/0002-b.md", data) == approval_of(path, data)
    assert approvals_of(path, data) == (approval_of(path, data),)


LOG = "## Gotchas\n- old -> one\n- new -> two\n"


def test_each_entry_of_a_log_and_of_code_has_a_name_that_others_leave():
    for path, text in (
        (".mind/MEMORY.md", LOG),
        ("src/a.py", "# MEMORY: decided: use queues\n# MEMORY: learned: they fill up\n"),
    ):
        names, moved = (approvals_of(path, each.encode()) for each in (text, f"\n{text}"))
        assert len(set(names)) == 2
        assert names == moved
        assert approvals_of(path, text.replace("two", "2").encode())[0] == names[0]
    quoted = approvals_of(".mind/facts/a.md", LOG.encode())
    assert not set(quoted) & set(approvals_of(".mind/MEMORY.md", LOG.encode()))


MEMORY = Memory(
    id="a",
    type=Kind.FACT,
    content="Tea",
    created=datetime(2026, 11, 1, tzinfo=UTC),
    extra={"chunk_index": 1, "total_chunks": 2, "lines": [1, 2], "origin": "x"},
)


@pytest.mark.parametrize(
    "changes",
    [
        {"type": Kind.DECISION},
        {"content": "Tea "},
        {"title": "Tea"},
        {"topic": "tea"},
        {"category": "stack"},
        {"confidence": 0.9},
        {"tags": ("tea",)},
        {"by": "Ann"},
        {"importance": 0.9},
        {"links": (Link(to="b", type="supersedes"),)},
        {"extra": {"origin": "y"}},
    ],
)
def test_what_an_entry_states_is_part_of_its_name(changes):
    name = approval_of_entry("source", MEMORY)
    assert approval_of_entry("source", replace(MEMORY, **changes)) != name
    assert approval_of_entry("comment a.py", MEMORY) != name


def test_the_place_and_the_date_of_an_entry_are_not_part_of_its_name():
    moved = replace(
        MEMORY,
        id="b",
        created=datetime(2026, 11, 2, tzinfo=UTC),
        extra={"chunk_index": 7, "total_chunks": 9, "lines": [5, 9], "origin": "x"},
    )
    assert approval_of_entry("source", moved) == approval_of_entry("source", MEMORY)
