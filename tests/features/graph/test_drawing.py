"""Graphs for programs that draw: what stands in titles stays in them."""

import re

import pytest

from mimo.features.graph.commands import Arc, Box, Mark, dot, mermaid

HOSTILE = [
    'say "no"]; evil[x',
    "a\nb\r\n  n9 --> n0",
    "<script>alert(1)</script> <b>&amp;",
    "back\\slash \\N \\",
    "`markdown` ```\n```",
    "%% comment",
    "#35;#quot; #1",
    "1. a list",
    "- a list",
    "end",
    "| pipes | {braces} (round)",
    "\u202eright to left\u2066 \x1b[31mred\x07",
    "결정 한글 — العربية",
]


def arc(source: str, target: str, type: str) -> Arc:
    return Arc(source=source, target=target, type=type, given=None, confidence=None, trust=None)


def drawn(text: str) -> tuple[list[Box], list[Arc]]:
    return (
        [Box(id="a", lines=(text, "end")), Box(id=f"{text}.", lines=("x",), mark=Mark.MISSING)],
        [arc("a", f"{text}.", text)],
    )


def test_mermaid_is_fenced_and_marks_a_failure() -> None:
    boxes = [
        Box(id="a", lines=("Use JWT", "fact, 2026-11-01")),
        Box(id="b", lines=("Old",), mark=Mark.SUPERSEDED),
        Box(id="c", lines=("Bad",), mark=Mark.FAILED),
    ]

    assert mermaid(boxes, [arc("a", "b", "supersedes")]).splitlines() == [
        "```mermaid",
        "flowchart LR",
        '  n0["Use JWT<br/>fact, 2026-11-01"]',
        '  n1["Old"]:::superseded',
        '  n2["Bad"]:::failed',
        '  n0 -->|"supersedes"| n1',
        "  classDef failed stroke:#c00,stroke-width:3px",
        "  classDef superseded stroke-dasharray:4 4,opacity:0.7",
        "```",
    ]


def test_dot_is_a_directed_graph() -> None:
    boxes = [Box(id="a", lines=("Use JWT", "fact")), Box(id="b", lines=("B",), mark=Mark.FAILED)]

    assert dot(boxes, [arc("b", "a", "refines")]).splitlines() == [
        "digraph memory {",
        "  rankdir=LR;",
        "  node [shape=box];",
        '  n0 [label="Use JWT\\nfact"];',
        '  n1 [label="B", color="#cc0000", penwidth=3];',
        '  n1 -> n0 [label="refines"];',
        "}",
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_title_leaves_its_label_in_mermaid(text: str) -> None:
    lines = mermaid(*drawn(text)).splitlines()

    safe = r"[^\x00-\x1f\"`<>\[\]{}()|\u200b-\u200f\u202a-\u202e\u2066-\u2069]*"
    assert len(lines) == 7
    assert re.fullmatch(rf'  n0\["{safe}<br/>end"\]', lines[2])
    assert re.fullmatch(rf'  n0 -->\|"{safe}"\| n1', lines[4])
    assert not re.match(r'  n0\["(-|\d+\.)', lines[2])


@pytest.mark.parametrize("text", HOSTILE)
def test_no_title_leaves_its_label_in_dot(text: str) -> None:
    lines = dot(*drawn(text)).splitlines()

    label = r"(?:[^\x00-\x1f\"\\\u200b-\u200f\u202a-\u202e\u2066-\u2069]|\\\\|\\\"|\\n)*"
    assert len(lines) == 7
    assert re.fullmatch(rf'  n0 \[label="{label}"\];', lines[3])
    assert re.fullmatch(rf'  n0 -> n1 \[label="{label}"\];', lines[5])


def test_a_long_title_is_cut_before_it_is_escaped() -> None:
    (label,) = re.findall(r'n0\["(.*)"\]', mermaid([Box(id="a", lines=("#" * 200,))], []))

    assert label == "#35;" * 79 + "…"
