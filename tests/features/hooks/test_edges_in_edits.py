"""Edges that apply to a text that is about to be written."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mimo.features.hooks.events import Edit
from mimo.features.hooks.moments import Known, matches
from mimo.memory.note import Note

NOW = datetime(2025, 12, 10, tzinfo=UTC)


def edge(title: str, *code: str, **extra: Any) -> Note:
    detection = {"detection": {"code": list(code)}} if code else {}
    return Note(id=title, kind="edge", title=title, text="", created=NOW, extra=detection | extra)


@pytest.mark.req("003-17")
@pytest.mark.parametrize(
    ("known", "text", "line"),
    [
        (edge("Edge crypto", "import.*crypto"), "x\nimport { a } from 'crypto'", 2),
        (edge("Edge crypto", "require.*crypto"), "const c = require('Crypto')", 1),
        (edge("Random", r"\bMath\.random\("), "a\nb\nMath.random()", 3),
        (edge("Never `Math.random()`"), "return Math.random()", 1),
        (edge("Strict mode effects"), "// effects run in strict mode", 1),
        (edge("Edge crypto", "import.*crypto"), "crypto of import", None),
        (edge("Edge crypto", "(a+)+$"), "aaaa", 1),
        (edge("Edge crypto", "(?=a)"), "aaaa", None),
        (edge("Never `Math.random()`", "other"), "Math.random()", None),
        (edge("Effects"), "effects", None),
    ],
)
def test_an_edge_applies_at_the_line_of_its_code(known: Note, text: str, line: int | None) -> None:
    hits = matches([Known(known)], [Edit("a.js", text)])
    assert [hit.line for hit in hits] == ([] if line is None else [line])


def test_each_edge_is_reported_once_the_worst_first() -> None:
    mild, bad = edge("Mild", "x y"), edge("Bad", "x y", severity="critical")
    hits = matches([Known(mild), Known(bad)], [Edit("a", "x y\nx y"), Edit("b", "x y")])
    assert [(hit.note.title, hit.path, hit.line) for hit in hits] == [
        ("Bad", "a", 1),
        ("Mild", "a", 1),
    ]


@pytest.mark.parametrize(
    "extra",
    [{"detection": 7}, {"detection": {"code": "text"}}, {"detection": {"code": [7, None]}}],
)
def test_a_malformed_header_is_ignored(extra: dict[str, Any]) -> None:
    assert matches([Known(edge("x", **extra))], [Edit("a", "x")]) == []


def test_a_global_edge_applies_on_its_stack() -> None:
    theirs = edge("Edge has no crypto", "import.*crypto", stack_tags=["vercel"])
    ours = edge("`api.get` allows 100 calls")
    known = [Known(theirs, of_project=False), Known(ours)]
    code = "import os\nimport crypto\nimport node_crypto\nx = api.get(y)"

    def lines(path: str, *stack: str) -> list[tuple[str, int]]:
        return [(hit.note.title, hit.line) for hit in matches(known, [Edit(path, code)], stack)]

    mine = ("`api.get` allows 100 calls", 4)
    assert lines("a.ts") == [mine]
    assert lines("a.ts", "vercel") == [("Edge has no crypto", 2), mine]
    assert lines("vercel/a.ts") == [("Edge has no crypto", 2), mine]


def test_no_edge_applies_to_an_empty_edit() -> None:
    assert matches([Known(edge("x", "y"))], []) == []
    assert matches([Known(edge("x", "y"))], [Edit("a", "")]) == []
