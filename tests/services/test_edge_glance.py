"""Edges at a glance, for hooks."""

import json
import subprocess
import sys

import pytest

from mimo.domain.edges import Detection, Severity
from mimo.services import edge_glance, edges


def told(found):
    return [(one.edge.title, one.of_project, one.line) for one in found]


@pytest.fixture
def everybody(mind):
    edges.add(
        mind,
        "Edge has no crypto",
        description="There is none",
        workaround="Use Web Crypto",
        detection=Detection(context=("vercel",), intent=("token",), code=(r"import.*crypto",)),
        severity=Severity.CRITICAL,
    )
    return edge_glance.of_everybody(mind.home)


@pytest.fixture
def own(mind):
    log = mind.project.root / ".mind" / "MEMORY.md"
    log.write_text("## Gotchas\n- `api.get` allows 100 calls → cache\n", encoding="utf-8")
    return [one.record.memory for one in edges.of_project(mind)]


def test_code_is_met_line_by_line_and_each_edge_once(own, everybody):
    code = "import os\nimport crypto\nimport node_crypto\nx = api.get(y)"

    found = edge_glance.met(own, everybody, code=code, path="a.ts", stack=("vercel",))

    assert told(found) == [
        ("Edge has no crypto", False, 2),
        ("`api.get` allows 100 calls", True, 4),
    ]


def test_an_intent_is_only_told_where_more_than_one_thing_speaks_for_it(own, everybody):
    assert edge_glance.met(own, everybody, intent="a token") == []
    found = edge_glance.met(own, everybody, intent="a token", stack=("vercel",))
    assert told(found) == [("Edge has no crypto", False, None)]
    found = edge_glance.met(own, everybody, intent="get 100 calls from the api")
    assert told(found) == [("`api.get` allows 100 calls", True, None)]


def test_what_code_and_intent_both_run_into_is_told_with_its_line(everybody):
    found = edge_glance.met(
        [], everybody, intent="a token", code="import crypto", path="a.ts", stack=("vercel",)
    )

    assert told(found) == [("Edge has no crypto", False, 1)]


def test_nothing_that_is_said_meets_nothing(own, everybody):
    assert edge_glance.met(own, everybody) == []


def test_a_glance_loads_nothing_heavy():
    code = (
        "import sys, json; from mimo.services import edge_glance;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    modules = set(json.loads(done.stdout))
    assert modules.isdisjoint(
        {"numpy", "yaml", "frontmatter", "markdown_it", "sqlite3", "mimo.mind", "re2", "hashlib"}
    )
