"""`mind pitfalls` and what belongs to it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mimo import rendering
from mimo.call.schema import input_schema
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.errors import StorageFailed
from mimo.features.pitfalls import sources
from mimo.features.pitfalls.commands import (
    add,
    add_global_edge,
    starter,
)
from mimo.features.pitfalls.edge import Severity
from mimo.project.init import init
from tests.conftest import NOW

CRYPTO: dict[str, Any] = {
    "title": "Vercel Edge crypto limitation",
    "description": "There is no crypto of Node's",
    "workaround": "Use Web Crypto",
    "detection": {
        "context": ["vercel", "edge", "middleware"],
        "intent": ["crypto", "uuid", "random", "token"],
        "code": ["import.*crypto", "require.*crypto"],
    },
}

SEED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "mind_search": (
        "Semantic search across memories. Use when CLAUDE.md context isn't enough.",
        {
            "query": {"type": "string"},
            # `org` came later, for the shared index.
            "scope": {"type": "string", "enum": ["project", "all"], "default": "project"},
            "types": {"type": "array"},
            "limit": {"type": "integer", "default": 10},
        },
        ["query"],
    ),
    "mind_edges": (
        "Check for gotchas before implementing risky code.",
        {"intent": {"type": "string"}, "code": {"type": "string"}, "stack": {"type": "array"}},
        ["intent"],
    ),
    "mind_add_global_edge": (
        "Add a cross-project gotcha.",
        {
            "title": {"type": "string"},
            "description": {"type": "string"},
            "workaround": {"type": "string"},
            "detection": {"type": "object"},
            "stack_tags": {"type": "array"},
            "severity": {"type": "string", "enum": ["info", "warning", "critical"],
                         "default": "warning"},
        },
        ["title", "description", "workaround", "detection"],
    ),
    "mind_status": ("Check Mind daemon status and project stats.", {}, []),
}  # fmt: skip


def run(call, *words):
    return main([*words], open=lambda _: call.mind)


@pytest.mark.req("003-12", "003-20", "003-47")
@pytest.mark.parametrize("name", SEED)
def test_the_four_tools_are_described_as_documented(name):
    description, properties, required = SEED[name]
    specs = all_commands().tools()[name]
    schema = input_schema(specs)

    assert specs[0].description.startswith(description)
    assert schema.get("required", []) == required
    for field, expected in properties.items():
        given = schema["properties"][field]
        shape = given if "type" in given else given["anyOf"][0]
        assert expected.items() <= (shape | given).items(), field


class TestAdding:
    def test_starter_edges_are_added_beside_changed_ones(self, call):
        first = [Path(edge.file) for edge in starter(call).added]
        retitled, renamed, damaged, *removed = first
        for path in (retitled, renamed):
            text = path.read_text("utf-8")
            path.write_text(re.sub("(?m)^title: .*", "title: My own words", text), "utf-8")
        renamed.rename(renamed.with_name("mine.md"))
        damaged.write_text("---\nid: [\n---\n", "utf-8")
        for path in removed:
            path.unlink()

        second = starter(call)

        assert [Path(edge.file) for edge in second.added] == removed
        assert second.known == 3
        assert not renamed.exists()


@pytest.fixture
def risky(call):
    """A project in which two lines of a file run into an edge each."""
    add_global_edge(call, **CRYPTO, stack_tags=("vercel",), severity=Severity.CRITICAL)
    add(call, "`sleep(` blocks", "It does", "Await", project=True, severity=Severity.INFO)
    root = call.mind.project.root
    (root / "vercel.json").write_text("{}", encoding="utf-8")
    (root / "a.ts").write_text("import crypto\n\nsleep(1)\n", encoding="utf-8")
    return call


class TestChecking:
    def test_a_project_below_that_can_not_be_asked_is_named(self, call, monkeypatch, capsys):
        root = call.mind.project.root
        (root / "pk").mkdir()
        init(root / "pk", call.mind.home, now=NOW)
        (root / "pk" / ".mind" / "policy.yaml").write_text("agents: [", encoding="utf-8")
        (root / "pk" / "a.py").write_text("x\n", encoding="utf-8")
        monkeypatch.chdir(root)

        assert run(call, "edges", "check", "pk") == 0
        assert "pk was skipped: its policy is invalid" in capsys.readouterr().err

        registry = call.mind.home / "projects.json"
        entries = json.loads(registry.read_text(encoding="utf-8"))
        entries[-1]["search_all"] = False
        registry.write_text(json.dumps(entries), encoding="utf-8")
        assert run(call, "edges", "check", "pk") == 0
        assert "pk" not in capsys.readouterr().err

    @pytest.mark.parametrize("error", [StorageFailed("the disk failed"), KeyError("x")])
    def test_an_error_has_another_exit_status_than_a_finding(self, risky, monkeypatch, error):
        def failing(*_, **__):
            raise error

        monkeypatch.setattr(sources, "run_into", failing)
        monkeypatch.chdir(risky.mind.project.root)
        for words in (("edges", "check", "a.ts"), ("--json", "edges", "check", "a.ts")):
            assert run(risky, *words) == 6
        monkeypatch.setattr(rendering, "flush", failing)
        assert run(risky, "policy", "check") == 6
        assert run(risky, "list") == 1


class TestErrors:
    @pytest.mark.req("003-41")
    def test_search_without_a_usable_index_and_readable_files_fails(
        self, call, capsys, monkeypatch
    ):
        def unreadable(_):
            raise StorageFailed("`.mind` can't be read", hint="check the disk")

        monkeypatch.setattr(type(call.mind.store), "walk", unreadable)

        assert run(call, "search", "x", "--json") != 0
        error = json.loads(capsys.readouterr().err)["error"]
        assert error["code"] == "SEARCH_FAILED"
        assert "`.mind` can't be read" in error["message"]
