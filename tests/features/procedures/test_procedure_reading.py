"""Reading the file of a procedure, and its faults by line."""

import pytest

from mimo.features.procedures import reading
from mimo.features.procedures.model import Module, is_version, split_reference, version_key
from tests.sample_procedures import GREET, text


def faults(data: str | bytes) -> list[tuple[int | None, str]]:
    data = data.encode() if isinstance(data, str) else data
    result = reading.read(
        data, lambda name, _: None if name == "mind_search" else "no such command"
    )
    assert (result.procedure is None) == bool(result.faults)
    return [(fault.line, fault.reason) for fault in result.faults]


def states(block: str) -> list[tuple[int | None, str]]:
    """Returns the faults of a block whose first line is line 8 of its file."""
    return faults(text("ship", block))


@pytest.mark.req("000-22")
def test_a_valid_file_is_read_as_a_procedure() -> None:
    result = reading.read(
        text("ship", GREET, "1.10", description="Ship it", timeout_ms=5, max_retries=0).encode()
    ).procedure

    assert result is not None
    assert (result.key, result.description, result.initial_state) == (
        "ship@1.10",
        "Ship it",
        "greet",
    )
    assert (result.timeout_ms, result.max_retries, result.active) == (
        5,
        0,
        True,
    )
    assert list(result.states) == ["greet", "silent", "done"]
    assert result.states["greet"].transitions == {"success": "done", "error": "silent"}
    assert result.states["done"].terminal
    assert result.definition["states"]["done"] == {}


def test_missing_keys_have_the_documented_defaults() -> None:
    result = reading.read(text("ship", GREET).encode()).procedure

    assert result is not None
    assert (result.timeout_ms, result.max_retries) == (300_000, 3)
    action = result.states["greet"].action
    assert action is not None
    assert action.limit_ms == 30_000


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("initial_state: a\n", (8, "`states` is missing")),
        ("states: {a: {}}\n", (8, "`initial_state` is missing")),
        ("initial_state: a\nstates: {}\n", (9, "`states` is empty")),
        ("initial_state: 1\nstates: {a: {}}\n", (8, "must be the name of a state, not `1`")),
        ("initial_state: a\nstates: [a]\n", (9, "must be a mapping of names to states")),
        ("initial_state: a\nstates: {a: {}, a: {}}\n", (9, "`a` appears twice")),
        ("- a\n", (8, "it must be a mapping")),
        ("initial_state: &x a\nstates: {a: {}}\n", (8, "anchors (`&name`) are not allowed")),
        ("initial_state: !!python/object:os.system a\nstates: {}\n", (8, "tags")),
        ("initial_state: [a\n", (9, "")),
        (
            (
                "initial_state: a\nstates: {a: {transitions: "
                "[{event: x, target: a}, {event: x, target: a}]}}\n"
            ),
            (9, "event `x` appears twice"),
        ),
    ],
)
def test_an_invalid_block_is_a_fault(block: str, expected: tuple[int, str]) -> None:
    line, reason = states(block)[0]
    assert line == expected[0]
    assert expected[1] in reason


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", (1, "no header")),
        (b"# Title\n", (1, "no header")),
        (b"---\nname: x\nversion: 1.0\n---\nProse alone.\n", (5, "no states")),
        (b"---\nname: x\nversion: 1.0\n---\n```yaml\nstates: {}\n", (5, "never closed")),
        (
            (
                b"---\nname: x\nversion: 1.0\n---\n"
                b"```yaml\nstates: {}\n```\n```yaml\nstates: {}\n```\n"
            ),
            (8, "states a second time"),
        ),
        (b"\xff\xfe", (None, "")),
    ],
)
def test_a_file_that_is_not_a_procedure_is_a_fault(
    data: bytes, expected: tuple[int | None, str]
) -> None:
    line, reason = faults(data)[0]
    assert expected[0] in (line, None)
    assert expected[1] in reason


def test_other_fenced_blocks_are_prose() -> None:
    file = text("ship", GREET) + "```yaml\nport: 80\n```\n~~~python\nstates: 1\n~~~\n"

    assert faults(file) == []


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("{module: step, function: fly}", "there is no step `fly`"),
        ("{module: step, function: log, args: [1]}", "takes one mapping of arguments"),
        (
            "{module: step, function: log, args: [{text: a}]}",
            "`text` is not an argument; it takes message, level, fields",
        ),
        ("{module: step, function: log, args: [{level: loud}]}", "`level` must be one of"),
        ("{module: step, function: log, args: [{fields: a}]}", "`fields` must be a list"),
        ("{module: step, function: log, result: x}", "only for commands and programs"),
        ("{module: step, function: delay, args: [{ms: -1}]}", "`ms` must be a number"),
        ("{module: step, function: validate}", "needs the argument `rules`"),
        ("{module: step, function: validate, args: [{rules: 1}]}", "must be a mapping or a list"),
        ("{module: step, function: validate, args: [{rules: {a: 1}}]}", "must be a mapping"),
        ("{module: step, function: validate, args: [{rules: {a: {odd: 1}}}]}", "is not a rule"),
        ("{module: step, function: validate, args: [{rules: {a: {type: x}}}]}", "must be one of"),
        ("{module: step, function: validate, args: [{rules: {a: {min: x}}}]}", "be a number"),
        (
            "{module: step, function: validate, args: [{rules: {a: {regex: '['}}}]}",
            "must be a usable regular",
        ),
        ("{module: step, function: conditional, args: [{field: a, operator: is}]}", "`operator`"),
        ("{module: step, function: conditional, args: [{field: a, true_event: true}]}", "quotes"),
        ("{module: step, function: set_context, args: [{values: a}]}", "must be a mapping"),
        (
            "{module: step, function: set_context, args: [{values: {a: {env: '{{b}}'}}}]}",
            "`{env: {{b}}}`: the variable can't come from the context",
        ),
        ("{module: step, function: http_request}", "run a program instead"),
        (
            "{module: Mimo.ProceduralStore.Steps.HttpRequest, function: execute}",
            "run a program instead",
        ),
        ("{module: step, function: ask}", "needs the argument `question`"),
        ("{module: mind, function: mind_trust}", "no such command"),
        ("{module: mind, function: mind_search, args: [tea]}", "takes one mapping"),
        ("{module: shell, function: sh, args: [ls]}", "`shell` has one function, `run`"),
        ("{module: shell, function: run}", "a list of the program and its words"),
        ("{module: shell, function: run, args: {cmd: ls}}", "a list of the program and its words"),
        ("{module: shell, function: run, args: ['{{tool}}']}", "can't come from the context"),
        ("{module: os, function: system}", "nothing else is ever loaded"),
        ("{module: mimo.cli.main, function: main}", "nothing else is ever loaded"),
        ("{module: Mimo.ProceduralStore.Steps.Fly, function: execute}", "there is no step"),
    ],
)
def test_an_invalid_action_is_a_fault_of_the_file(action: str, expected: str) -> None:
    ((line, reason),) = states(f"initial_state: a\nstates:\n  a:\n    action: {action}\n")

    assert line == 11
    assert expected in reason


def test_steps_have_the_names_of_mimo_too() -> None:
    block = """\
initial_state: a
states:
  a:
    action:
      module: Mimo.ProceduralStore.Steps.SetContext
      function: execute
      args: [{values: {x: 1}}]
"""
    result = reading.read(text("ship", block).encode()).procedure

    assert result is not None
    action = result.states["a"].action
    assert action is not None
    assert (action.module, action.function) == (Module.STEP, "set_context")


def test_an_event_without_a_transition_is_a_warning() -> None:
    block = """\
initial_state: a
states:
  a:
    action: {module: step, function: conditional, args: [{field: x, value: 1}]}
    transitions: [{event: "true", target: b}]
  b: {}
"""
    (warning,) = reading.read(text("ship", block).encode()).warnings

    assert warning.line == 10
    assert "ends with `false`, which has no transition" in warning.reason


@pytest.mark.req("000-04")
def test_versions_are_ordered_as_semantic_versions() -> None:
    ordered = (
        "0.99 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11"
        " 1.0.0-rc.1 1.0.0 1.0.1 1.2 1.9.9 1.10 1.10.1"
    ).split()
    backwards = list(reversed(ordered))
    assert sorted(backwards, key=version_key) == ordered
    assert version_key("1.0") == version_key("1.0.0") == version_key("1.0.0+build.7")


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "1.",
        "1.2.3.4",
        "01.2",
        "1.2.03",
        "1.2-",
        "1.2-a..b",
        "1.2-01",
        "1.2+",
        "v1.2",
        "1.2 ",
        "1.2/3",
        "1.2-" + "a" * 64,
    ],
)
def test_anything_else_is_not_a_version(text: str) -> None:
    assert not is_version(text)
    assert version_key(text) < version_key("0.0.0-0")


@pytest.mark.parametrize(
    ("reference", "meant"),
    [
        ("ship", ("ship", "latest")),
        ("ship@1.0", ("ship", "1.0")),
        ("ship@latest", ("ship", "latest")),
        ("ship@1", None),
        ("../ship", None),
        ("", None),
    ],
)
def test_a_reference_has_an_optional_version(reference: str, meant: tuple[str, str] | None) -> None:
    assert split_reference(reference) == meant
