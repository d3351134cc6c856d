"""The built-in steps that read only the context, and the placeholders in their arguments."""

from typing import Any

import pytest

from mimo.features.procedures import steps
from mimo.features.procedures.model import Refused, filled

CONTEXT = {"n": 3, "name": "Ada", "list": [{"x": 1}], "a.b": "dotted", "nothing": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{n}}", 3),
        (" {{ n }} ", 3),
        ("n={{n}}, {{name}}", "n=3, Ada"),
        ("{{list}}", [{"x": 1}]),
        ("{{list.0.x}}", 1),
        ("at {{list.0}}", 'at {"x": 1}'),
        ("{{a.b}}", "dotted"),
        ("{{nothing}}", None),
        ("{ {n} }", "{ {n} }"),
        ({"k": ["{{n}}", {"{{n}}": "{{name}}"}]}, {"k": [3, {"{{n}}": "Ada"}]}),
        (True, True),
    ],
)
def test_placeholders_are_replaced_by_values_of_the_context(text: Any, value: Any) -> None:
    assert filled(text, CONTEXT) == value


def test_replaced_values_are_not_replaced_again() -> None:
    assert filled("{{a}}", {"a": "{{b}}", "b": "secret"}) == "{{b}}"


@pytest.mark.parametrize(
    "text",
    [
        *("{{missing}}", "{{n.x}}", "{{list.7}}", "{{name.__class__}}"),
        *("{{list.²}}", f"{{{{list.{'9' * 5_000}}}}}"),
    ],
)
def test_a_placeholder_without_a_value_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="is not in the context"):
        filled(text, CONTEXT)


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ({"name": {"required": True, "type": "string", "regex": "^A"}}, None),
        ([{"field": "n", "type": "min", "value": 3}, {"field": "n", "type": "required"}], None),
        ({"n": {"type": "integer", "min": 1, "max": 3}}, None),
        ({"nothing": {"required": True}}, "`nothing` is missing"),
        ({"gone": {"required": False}}, None),
        ({"n": {"type": "string"}}, "`n` must be of type string"),
        ({"n": {"min": 4}}, "`n` must be at least 4"),
        ({"n": {"max": 2}, "name": {"regex": "^B"}}, "`n` must be at most 2; `name` must match"),
        ({"name": {"min": 1}}, "`name` must be at least 1"),
        ({"list.0.x": {"type": "integer"}}, None),
    ],
)
def test_validate_names_every_broken_rule(rules: Any, error: str | None) -> None:
    outcome = steps.validate({"rules": rules}, CONTEXT)

    if error is None:
        assert (outcome.error, outcome.merge) == (None, {"validation_passed": True})
    else:
        assert outcome.error is not None
        assert outcome.error.startswith(error)
        assert not outcome.again


@pytest.mark.parametrize(
    ("field", "operator", "value", "holds"),
    [
        ("n", "eq", 3, True),
        ("n", "ne", 3, False),
        ("n", "gt", 2, True),
        ("n", "gte", 3, True),
        ("n", "lt", 3, False),
        ("n", "lte", 3, True),
        ("name", "contains", "d", True),
        ("list", "contains", {"x": 1}, True),
        ("gone", "contains", "x", False),
        ("n", "in", [1, 2, 3], True),
        ("gone", "eq", None, True),
    ],
)
def test_conditional_compares(field: str, operator: str, value: Any, holds: bool) -> None:
    args = {"field": field, "operator": operator, "value": value}

    assert steps.conditional(args, CONTEXT).event == ("true" if holds else "false")
    named = {**args, "true_event": "up", "false_event": "down"}
    assert steps.conditional(named, CONTEXT).event == ("up" if holds else "down")


@pytest.mark.parametrize(("operator", "value"), [("gt", "x"), ("in", 3), ("lt", None)])
def test_values_that_cannot_be_compared_are_refused(operator: str, value: Any) -> None:
    with pytest.raises(Refused, match="can't be compared"):
        steps.conditional({"field": "n", "operator": operator, "value": value}, CONTEXT)


@pytest.mark.parametrize("field", [[1, 2], 5, None])
def test_a_field_that_is_filled_with_other_data_than_text_is_refused(field: Any) -> None:
    with pytest.raises(Refused, match="must be text"):
        steps.conditional({"field": field}, CONTEXT)


def test_a_place_in_a_list_that_is_not_a_number_is_not_in_the_context() -> None:
    for place in ("\u00b2", "9" * 5000):
        assert steps.value_of(f"list.{place}", CONTEXT) is None


def test_set_context_accepts_values_references_and_allowed_variables() -> None:
    values = {"a": 1, "b": {"ref": "list.0.x"}, "c": {"env": "CI"}, "d": {"ref": "n", "x": 1}}
    outcome = steps.set_context({"values": values}, CONTEXT, {"CI": "yes"})

    assert outcome.merge == {"a": 1, "b": 1, "c": "yes", "d": {"ref": "n", "x": 1}}
    with pytest.raises(Refused, match="not set, or not allowed"):
        steps.set_context({"values": {"t": {"env": "TOKEN"}}}, CONTEXT, {"CI": "yes"})


@pytest.mark.attack("data that is executed")
@pytest.mark.parametrize("data", [{"env": "CI"}, {"ref": "n"}, {"ref": "gone"}, "{{n}}", ["{{n}}"]])
def test_set_context_does_not_interpret_data(data: Any) -> None:
    values = {"a": "{{data}}", "b": {"ref": "data"}, "c": ["{{data}}"], "d": {"k": "{{data}}"}}
    outcome = steps.set_context({"values": values}, {**CONTEXT, "data": data}, {"CI": "yes"})

    assert outcome.merge == {"a": data, "b": data, "c": [data], "d": {"k": data}}


@pytest.mark.attack("data that is executed")
def test_set_context_does_not_complete_a_directive_with_data() -> None:
    context = {"env": "env", "name": "CI"}
    values = {"a": {"{{env}}": "CI"}, "b": {"x": {"env": "CI"}}}
    outcome = steps.set_context({"values": values}, context, {"CI": "yes"})

    assert outcome.merge == values
    with pytest.raises(Refused, match="not set, or not allowed"):
        steps.set_context({"values": {"t": {"env": "{{name}}"}}}, context, {"CI": "yes"})


def test_a_reference_may_be_named_by_the_context() -> None:
    values = {"a": {"ref": "list.{{which}}.x"}}
    context = {**CONTEXT, "which": 0, "odd": [1]}

    assert steps.set_context({"values": values}, context, {}).merge == {"a": 1}
    with pytest.raises(Refused, match="is not in the context"):
        steps.set_context({"values": {"a": {"ref": "{{odd}}"}}}, context, {})
