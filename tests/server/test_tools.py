"""The list of tools: its size, and the schemas that every client and model accepts."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from mimo.call.schema import input_schema, listed_input
from mimo.call.spec import Spec
from mimo.call.table import all_commands, called, listed
from mimo.config import TOOLSETS
from mimo.server.tools import described

TOOLS = all_commands().tools()

MOST_BYTES = 20_000
"""Of the whole list by default."""
MOST_ASKED = {(): 16_000, ("core",): 8_800}
"""Characters of names, descriptions and inputs: four for each of 4,000 and 2,200 tokens."""


def tools(*toolsets: str) -> list[Any]:
    """Returns the tools as they are sent."""
    return [
        described(TOOLS[name], "underscore").model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        for name in listed(TOOLS, toolsets)
    ]


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Yields a schema and all schemas in it."""
    yield value
    for inner in value.get("properties", {}).values():
        yield from schemas(inner)
    for name in ("items", "additionalProperties"):
        if isinstance(value.get(name), dict):
            yield from schemas(value[name])


EVERY = [pytest.param(tool, id=tool["name"]) for tool in tools("all", "legacy")]


def test_titles_are_the_words_of_the_command_line() -> None:
    titles = {tool["name"]: tool["title"] for tool in tools()}

    assert titles["save_decision"] == "Save decision"
    assert titles["memory"] == "Memory"
    assert titles["mind_add_global_edge"] == "Add global edge"


def test_the_list_is_small() -> None:
    assert size({"tools": tools()}) < MOST_BYTES


@pytest.mark.parametrize("toolsets", MOST_ASKED)
def test_names_descriptions_and_inputs_are_small(toolsets: tuple[str, ...]) -> None:
    asked = [
        {key: tool[key] for key in ("name", "description", "inputSchema")}
        for tool in tools(*toolsets)
    ]
    assert sum(map(size, asked)) < MOST_ASKED[toolsets]


@pytest.mark.parametrize("tool", EVERY)
def test_inputs_have_only_what_the_models_of_all_clients_accept(tool: Any) -> None:
    """OpenAI and Anthropic refuse combinators at the root; Gemini refuses `$ref`, types in a list,
    and arrays whose items have no type.
    """
    assert tool["inputSchema"]["type"] == "object"
    for schema in schemas(tool["inputSchema"]):
        assert schema.keys() <= {
            "type",
            "description",
            "properties",
            "required",
            "items",
            "enum",
            "default",
            "minimum",
            "maximum",
            "additionalProperties",
        }
        assert isinstance(schema.get("type", ""), str)
        assert ("items" in schema) == (schema.get("type") == "array")
        assert schema.get("items", {"type": ""}).get("type") is not None
        assert all(isinstance(word, str) for word in schema.get("enum", ()))
        assert set(schema.get("required", ())) <= schema.get("properties", {}).keys()


@pytest.mark.parametrize("tool", EVERY)
def test_only_a_value_that_may_be_any_json_has_no_type(tool: Any) -> None:
    untyped = {
        name for name, field in tool["inputSchema"]["properties"].items() if "type" not in field
    }
    assert untyped == ({"value"} if tool["name"] == "putMemory" else set())


@pytest.mark.parametrize("tool", EVERY)
def test_outputs_have_only_names_and_types(tool: Any) -> None:
    assert tool["outputSchema"].keys() == {"type", "properties"}
    for field in tool["outputSchema"]["properties"].values():
        assert field.keys() <= {"type"}


@pytest.mark.parametrize("tool", EVERY)
def test_names_fit_every_client(tool: Any) -> None:
    """Claude Code puts `mcp__plugin_mind_mind__` before a name, and allows 64 characters."""
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", tool["name"])
    assert len(tool["description"]) <= 2_048
    for schema in schemas(tool["inputSchema"]):
        assert all(
            re.fullmatch(r"[a-zA-Z0-9_]{1,64}", name) for name in schema.get("properties", {})
        )


def unlisted() -> list[Any]:
    """Returns each argument that is accepted and not listed, with its tool."""
    return [
        pytest.param(specs, name, id=f"{specs[0].name}.{name}")
        for specs in TOOLS.values()
        for name in input_schema(specs)["properties"]
        if name not in listed_input(specs)["properties"]
    ]


@pytest.mark.parametrize(("specs", "name"), unlisted())
def test_an_argument_that_is_not_listed_is_optional(specs: tuple[Spec, ...], name: str) -> None:
    assert name not in input_schema(specs).get("required", ())


@pytest.mark.parametrize("naming", ["underscore", "slash", "dot"])
def test_descriptions_name_tools_as_they_are_listed(naming: str) -> None:
    names = {described(TOOLS[name], naming).name for name in TOOLS}
    marks = {"underscore": "_", "slash": "/", "dot": "."}
    pattern = r"\b(?:save|load|search|evolve)[_/.][a-z_]+"
    for specs in TOOLS.values():
        text = described(specs, naming).description or ""
        for name in re.findall(pattern, text):
            assert name in names, (specs[0].name, name)
            assert marks[naming] in name


@pytest.mark.req("000-05", "000-76")
@pytest.mark.parametrize(("tool", "name"), [("run_procedure", "context"), ("ingest", "metadata")])
def test_what_must_be_an_object_is_declared_as_one(tool: str, name: str) -> None:
    specs = called(TOOLS, tool)
    assert specs
    assert listed_input(specs)["properties"][name]["type"] == "object"
    assert input_schema(specs)["properties"][name]["type"] == "object"


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_each_toolset_lists_tools(toolset: str) -> None:
    assert tools(toolset)
