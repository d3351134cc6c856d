"""Agents may write arguments in another way, if it can mean one thing only."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.call import Surface
from mimo.call.arguments import EMPTY, choose, decode
from mimo.call.leniency import understood
from mimo.call.spec import Spec
from mimo.call.table import all_commands
from mimo.errors import Invalid

TOOLS = all_commands().tools()


def operation(key: str) -> Spec:
    name, _, word = key.partition(".")
    return next(spec for spec in TOOLS[name] if spec.operation == (word or None))


@pytest.mark.parametrize(
    ("tool", "given", "meant"),
    [
        ("mind_list", {"limit": "5"}, {"limit": 5}),
        ("mind_list", {"limit": " 5 "}, {"limit": 5}),
        ("mind_list", {"limit": "five"}, {"limit": "five"}),
        ("mind_list", {"limit": "5.0"}, {"limit": 5.0}),
        ("mind_list", {"limit": None}, {"limit": None}),
        ("mind_search", {"threshold": "0.4"}, {"threshold": 0.4}),
        ("mind_search", {"threshold": "nan"}, {"threshold": "nan"}),
        ("mind_add", {"private": "true"}, {"private": True}),
        ("mind_add", {"private": "False"}, {"private": False}),
        ("mind_add", {"private": "yes"}, {"private": "yes"}),
        ("mind_add", {"tags": "api"}, {"tags": ["api"]}),
        ("mind_add", {"tags": "[api]"}, {"tags": ["[api]"]}),
        ("mind_add", {"tags": ""}, {"tags": None}),
        ("mind_add", {"tags": []}, {"tags": None}),
        ("mind_add", {"tags": "red, blue"}, {"tags": ["red", "blue"]}),
        ("mind_add", {"tags": "['red', 'blue']"}, {"tags": ["red", "blue"]}),
        ("mind_add", {"tags": [1, 2.5]}, {"tags": ["1", "2.5"]}),
        ("mind_add", {"content": ""}, {"content": ""}),
        ("mind_search", {"query": 8443}, {"query": "8443"}),
        ("mind_search", {"query": True}, {"query": True}),
        ("mind_search", {"query": float("inf")}, {"query": float("inf")}),
        ("mind_search", {"query": "x", "topic": ""}, {"query": "x", "topic": None}),
        ("mind_search", {"types": "fact,decision"}, {"types": ["fact", "decision"]}),
        ("mind_search", {"limit": "", "at": ""}, {"limit": None, "at": None}),
        ("mind_search", {"time_filter": " ", "scope": "\n"}, {"time_filter": None, "scope": None}),
        ("mind_search", {"scope": "ALL"}, {"scope": "all"}),
        ("getMemory", {"consistency": "strong"}, {"consistency": "STRONG"}),
        ("mind_edges_check", {"files": "a, b.py,c.py"}, {"files": ["a", "b.py,c.py"]}),
        ("mind_search", {"tags": ["", "api"], "outcomes": [""]}, {"tags": ["api"], "outcomes": []}),
        ("putMemory", {"value": ""}, {"value": ""}),
        ("putMemory", {"value": []}, {"value": []}),
        ("putMemory", {"value": None}, {"value": None}),
        ("mind_add", {"tags": None}, {"tags": None}),
        ("mind_add", {"tags": '["api", "auth"]'}, {"tags": ["api", "auth"]}),
        ("mind_add", {"tag": "api"}, {"tags": ["api"]}),
        ("mind_edit", {"tags": "api"}, {"tags": ["api"]}),
        ("mind_edit", {"tags": []}, {"tags": None}),
        ("mind_edit", {"tags": ""}, {"tags": None}),
        ("mind_edit", {"tags": [""]}, {"tags": [""]}),
        ("mind_edit", {"tag": "api"}, {"tag": "api"}),
        ("mind_edit", {"add_tag": "api"}, {"add_tags": ["api"]}),
        ("mind_undo", {"count": 3}, {"count": 3}),
        ("mind_undo", {"limit": "3"}, {"limit": 3}),
        ("mind_add", {"content": "[1, 2]"}, {"content": "[1, 2]"}),
        ("mind_list", {"type": "fact"}, {"types": ["fact"]}),
        ("save/insight", {"content": "x"}, {"insight": "x"}),
        ("save/insight", {"links": {"to": "a"}}, {"links": [{"to": "a"}]}),
        ("save/insight", {"links": '{"to": "a"}'}, {"links": [{"to": "a"}]}),
        ("save/insight", {"links": '[{"to": "a"}]'}, {"links": [{"to": "a"}]}),
        ("save/insight", {"links": "builds_on:a"}, {"links": ["builds_on:a"]}),
        ("save/checkpoint", {"next_steps": '["a", "b"]'}, {"next_steps": ["a", "b"]}),
        ("save/checkpoint", {"next_steps": "a"}, {"next_steps": "a"}),
        ("search/recent", {"days": 3}, {"time_filter": "last 3 days"}),
        ("search/recent", {"days": "3"}, {"time_filter": "last 3 days"}),
        ("search/recent", {"days": -3}, {"days": -3}),
        ("search/recent", {"since": "monday"}, {"from_date": "monday"}),
        ("search/recent", {"timeFilter": "today"}, {"time_filter": "today"}),
        ("search/recent", {"from-date": "today"}, {"from_date": "today"}),
        ("run_procedure", {"context": '{"a": 1}'}, {"context": {"a": 1}}),
        ("putMemory", {"value": "5"}, {"value": "5"}),
        ("putMemory", {"value": '{"a": 1}'}, {"value": '{"a": 1}'}),
        ("memory.search", {"q": "x"}, {"query": "x"}),
        ("mind_show", {"memory_id": "x"}, {"id": "x"}),
        ("mind_show", {"zzz": "x"}, {"zzz": "x"}),
    ],
)
def test_an_argument_is_taken_as_it_is_meant(
    tool: str, given: dict[str, Any], meant: dict[str, Any]
) -> None:
    result = understood(operation(tool), given)

    assert result == meant
    assert list(map(type, result.values())) == list(map(type, meant.values()))


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("save/insight", {"insight": "a", "content": "b"}),
        ("search/recent", {"time_filter": "today", "days": 3}),
        ("search/recent", {"since": "monday", "from": "friday"}),
    ],
)
def test_two_names_of_one_argument_are_refused(tool: str, given: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        understood(operation(tool), given)

    for name in given:
        assert f"`{name}`" in caught.value.message


def test_a_name_that_is_given_twice_with_one_value_or_null_is_accepted() -> None:
    spec = operation("save/insight")

    assert understood(spec, {"insight": "a", "content": "a"}) == {"insight": "a"}
    assert understood(spec, {"insight": "a", "content": None}) == {"insight": "a"}
    assert understood(spec, {"content": None, "insight": "a"}) == {"insight": "a"}


@pytest.mark.parametrize(
    "spec", [s for specs in TOOLS.values() for s in specs], ids=lambda s: s.key
)
def test_no_other_name_is_the_name_of_an_argument_of_the_tool(spec: Spec) -> None:
    for param in spec.params:
        for name in (param.name, *param.aliases):
            if Surface.MCP in param.arg.surfaces:
                assert understood(spec, {name: None}) == {param.name: None}


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@given(data=st.data())
def test_what_the_schema_accepts_is_never_changed(data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from([s for specs in TOOLS.values() for s in specs]))
    names = [param.name for param in spec.params if Surface.MCP in param.arg.surfaces]
    arguments = data.draw(st.dictionaries(st.sampled_from(names), values)) if names else {}
    try:
        strict = decode(spec, arguments, Surface.MCP)
    except Invalid:
        return

    empty = {name: value for name, value in arguments.items() if value in EMPTY}
    optional = {p.name: p.default for p in spec.params if not p.required and p.name in empty}
    absent = decode(spec, {k: v for k, v in arguments.items() if k not in optional}, Surface.MCP)
    expected = absent if optional else strict
    assert decode(spec, understood(spec, arguments), Surface.MCP) == expected


@pytest.mark.parametrize(
    "word", ["decay_check", "decay-check", "decayCheck", "Decay_Check", " DECAY_CHECK "]
)
def test_an_operation_is_understood_in_any_spelling(word: str) -> None:
    spec, remainder = choose(TOOLS["memory"], {"operation": word, "query": "", "tags": []})

    assert (spec.operation, remainder) == ("decay_check", {})


@pytest.mark.parametrize("data", ['{"to": "a", "to": "b"}', f'{{"to": {"7" * 4301}}}'])
def test_json_in_a_text_of_which_a_part_would_be_lost_is_refused(data: str) -> None:
    with pytest.raises(Invalid):
        understood(operation("save/insight"), {"links": data})
