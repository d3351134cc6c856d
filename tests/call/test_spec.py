"""The declarations of commands: their contents, and the rules that all of them keep."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, Unpack

import pytest

from mimo.call import Surface
from mimo.call.arguments import decode
from mimo.call.schema import input_schema, output_schema
from mimo.call.spec import Arg, Effect, Needs, Spec, Tool, command, spec_of
from mimo.call.table import SECTIONS, UNLISTED, all_commands
from mimo.config import TOOLSETS
from mimo.errors import MindError
from mimo.guard.policy import Operation
from mimo.text.tool_names import folded

REGISTRY = all_commands()
SPECS = REGISTRY.all()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """No result to speak of."""


def declared(name: str | Tool, **settings: Any) -> Spec:
    @command(name, **({"effect": Effect.READ, "toolset": "extra"} | settings))
    def sample(call: Any) -> Nothing:
        """Do nothing

        At all.
        """
        return Nothing()

    spec = spec_of(sample)
    assert spec is not None
    return spec


@pytest.mark.parametrize(
    ("name", "settings", "path"),
    [
        ("save/decision", {}, "save decision"),
        ("mind_search", {"cli": "search"}, "search"),
        (Tool(name="memory", description=""), {"operation": "decay_check"}, "memory decay-check"),
    ],
)
def test_the_path_on_the_command_line_follows_from_the_name(
    name: str | Tool, settings: dict[str, Any], path: str
) -> None:
    assert declared(name, **settings).path == path


def test_a_short_declaration_gets_all_defaults() -> None:
    read, write = declared("a"), declared("b", effect=Effect.WRITE)

    assert (read.needs, read.surfaces) == (Needs(Operation.READ), Surface.BOTH)
    assert (write.needs, write.needs_project) == (Needs(Operation.WRITE), True)
    assert (read.summary, read.help) == ("Do nothing", "Do nothing\n\nAt all.")
    assert declared("old", instead="a").surfaces is Surface.MCP


def test_a_declared_function_stays_a_plain_function() -> None:
    @command("mind_twice", effect=Effect.READ, toolset="extra")
    def twice(call: Any, number: Annotated[int, Arg("A number")]) -> Any:
        """Double a number"""
        return 2 * number

    assert twice(None, 4) == 8
    assert spec_of(len) is None


def test_a_parameter_without_help_is_refused() -> None:
    @command("mind_bare", effect=Effect.READ, toolset="extra")
    def bare(call: Any, number: int) -> Nothing:
        """Do nothing"""
        return Nothing()

    spec = spec_of(bare)
    assert spec is not None
    with pytest.raises(TypeError, match="`number` of bare has no help"):
        _ = spec.params


def keyed(specs: Any) -> list[Any]:
    return [pytest.param(spec, id=spec.key) for spec in specs]


class Group(TypedDict, total=False):
    """Parameters that commands share."""

    tags: Annotated[tuple[str, ...], Arg("Tags")]
    is_open: Annotated[bool, Arg("Only open ones")]
    topic: Annotated[str | None, Arg("Topic")]


def test_shared_parameters_are_optional_and_follow_those_given_by_place() -> None:
    @command("shared", effect=Effect.READ, toolset="extra")
    def sample(
        call: Any,
        id: Annotated[str, Arg("Id")],
        *,
        limit: Annotated[int, Arg("Limit")] = 1,
        **group: Unpack[Group],
    ) -> Nothing:
        """Do nothing"""
        return Nothing()

    spec = spec_of(sample)
    assert spec is not None
    assert [(param.name, param.required, param.default) for param in spec.params] == [
        ("id", True, None),
        ("tags", False, ()),
        ("is_open", False, False),
        ("topic", False, None),
        ("limit", False, 1),
    ]
    assert decode(spec, {"id": "a", "topic": "b"}, Surface.MCP) == {
        "id": "a",
        "tags": (),
        "is_open": False,
        "topic": "b",
        "limit": 1,
    }


def test_the_table_names_every_declared_command_and_no_other() -> None:
    declared = {
        (spec.path, name)
        for name in dict.fromkeys(REGISTRY.modules.values())
        for spec in REGISTRY.module(name)
        if Surface.CLI in spec.surfaces
    }

    assert declared == set(REGISTRY.modules.items())
    for name in UNLISTED:
        assert {spec.surfaces for spec in REGISTRY.module(name)} == {Surface.MCP}


def test_commands_and_names_are_unique() -> None:
    paths = [path for section in SECTIONS.values() for path in section]
    names = [folded(name) for name in REGISTRY.tools()]
    keys = [spec.key for spec in SPECS]

    for listed in (paths, names, keys):
        assert len(set(listed)) == len(listed)


def test_every_group_of_commands_has_a_summary() -> None:
    leading = {path.split()[0] for path in REGISTRY.modules if " " in path} - set(REGISTRY.modules)

    assert leading == set(REGISTRY.groups)


@pytest.mark.parametrize("spec", keyed(SPECS))
def test_every_command_keeps_the_rules(spec: Spec) -> None:
    assert 0 < len(spec.summary) <= 72
    assert not spec.summary.endswith(".")
    assert spec.summary[0].isupper()
    assert spec.description.strip()
    assert spec.toolset in TOOLSETS
    assert re.fullmatch(r"[a-z][a-zA-Z0-9_]{0,39}", folded(spec.name))
    assert all(issubclass(error, MindError) for error in spec.errors)
    assert all(example.split()[0] in ("mind", "git", "cat", "eval") for example in spec.examples)
    for param in spec.params:
        assert not param.arg.help.endswith("."), param.name
    assert [param.arg.words for param in spec.params].count(True) <= 1
    input_schema([spec])
    output_schema([spec])


@pytest.mark.parametrize("name", REGISTRY.tools())
def test_every_tool_has_one_schema_for_all_its_operations(name: str) -> None:
    specs = REGISTRY.tools()[name]

    assert len({spec.toolset for spec in specs}) == 1
    assert len(specs) == 1 or all(spec.operation for spec in specs)
    assert input_schema(specs)["type"] == output_schema(specs)["type"] == "object"
