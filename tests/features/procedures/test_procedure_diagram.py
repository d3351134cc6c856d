"""Procedures as diagrams."""

from typing import Any

import pytest

from mimo.features.procedures import reading
from mimo.features.procedures.model import Procedure, mermaid, tree
from tests.sample_procedures import text

LOOP = """\
initial_state: build
states:
  build:
    action: {module: shell, function: run, args: [make, "two words", "it's"]}
    transitions: [{event: success, target: ship}, {event: error, target: "fix; it"}]
  "fix; it": {transitions: [{event: "go ]", target: build}]}
  ship: {action: {module: mind, function: save/decision, args: [{topic: ship}]}}
"""


def procedure(block: str) -> Procedure:
    result = reading.read(text("ship", block).encode()).procedure
    assert result is not None
    return result


def test_the_tree_describes_every_state_once() -> None:
    assert tree(procedure(LOOP).definition) == [
        "build  $ make 'two words' 'it'\\''s'",
        "├─ success → ship ■  [mind save/decision topic: ship]",
        "└─ error → fix; it",
        "   └─ go ] → build ↺",
    ]


def test_mermaid_escapes_its_own_syntax_in_names() -> None:
    assert mermaid(procedure(LOOP)).splitlines() == [
        "stateDiagram-v2",
        '    state "build" as s1',
        '    state "fix#59; it" as s2',
        '    state "ship" as s3',
        "    [*] --> s1",
        "    s1 --> s3: success",
        "    s1 --> s2: error",
        "    s2 --> s1: go #93;",
        "    s3 --> [*]",
    ]


def test_an_action_is_described_on_one_line() -> None:
    block = (
        "initial_state: a\nstates:\n"
        '  a: {action: {module: shell, function: run, args: [sh, "ls\\n  $ true\\r"]}}\n'
    )
    assert tree(procedure(block).definition) == ["a ■  $ sh $'ls\\n  $ true\\r'"]


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        (r"\e]; touch x; \a", r"\x1b]; touch x; \x07"),
        (r"\e[8m; touch x; \e[0m", r"\x1b[8m; touch x; \x1b[0m"),
        (r"\x9b; touch x", r"\x9b; touch x"),
        (r"\u202e\u200b\U000E0041", r"\u202e\u200b\U000e0041"),
        (r"\ufe0f\u200d\ufe0f\u2028\u3164", r"\ufe0f\u200d\ufe0f\u2028\u3164"),
        (r"\n\\n'", r"\n\\n\'"),
    ],
)
def test_nothing_in_an_action_is_hidden(hidden: str, shown: str) -> None:
    block = (
        "initial_state: a\nstates:\n"
        f'  a: {{action: {{module: shell, function: run, args: [sh, "ls {hidden}", true]}}}}\n'
    )
    assert tree(procedure(block).definition) == [f"a ■  $ sh $'ls {shown}' true"]


def test_an_argument_does_not_look_like_several() -> None:
    block = (
        "initial_state: a\nstates:\n"
        "  a: {action: {module: step, function: log, args: [\n"
        '    {message: "https://a.example, level: info]", fields: ["half \\u200b"]}]}}\n'
    )
    assert tree(procedure(block).definition) == [
        'a ■  [log message: "https://a.example, level: info]", fields: ["half \\u200b"]]'
    ]


def test_a_long_chain_of_states_is_drawn() -> None:
    states: dict[str, Any] = {
        f"s{n}": {"transitions": [{"event": "go", "target": f"s{n + 1}"}]} for n in range(2000)
    }
    lines = tree({"initial_state": "s0", "states": {**states, "s2000": {}}})

    assert len(lines) == 2001
    assert lines[2] == "   └─ go → s2"
    assert lines[-1].strip() == "└─ go → s2000 ■"
    assert max(map(len, lines)) < 120
