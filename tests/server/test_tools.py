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

ON = {"sessions.enabled": "on"}
TOOLS = all_commands().tools(ON)

MOST_BYTES = 14_000
"""Of the whole list by default."""
MOST_ASKED = {(): 11_400, ("core",): 5_500}
"""Characters of names, descriptions and inputs."""


def tools(*toolsets: str, **settings: str) -> list[Any]:
    """Returns the tools as they are sent to a client of a user with settings."""
    return [
        described(TOOLS[name], "underscore").model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        for name in listed(all_commands().tools(settings), toolsets)
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


EACH = tools("all", "legacy", **ON)
EVERY = [pytest.param(tool, id=tool["name"]) for tool in EACH]


def test_titles_say_what_a_tool_does() -> None:
    titles = {tool["name"]: tool["title"] for tool in tools("all", "legacy")}

    assert titles["save_decision"] == "Save a decision"
    assert titles["putMemory"] == "Store a value"
    assert all(title[0].isupper() and not title.endswith(".") for title in titles.values())


def test_hints_tell_reading_writing_and_running_apart() -> None:
    hints = {tool["name"]: tool["annotations"] for tool in tools("all")}

    runs = {"destructiveHint": True, "openWorldHint": True}
    assert {name for name, each in hints.items() if each == runs} == {
        "run_procedure",
        "resume_procedure",
        "send_event",
    }
    assert hints["mind_search"] == {"readOnlyHint": True, "openWorldHint": False}
    assert hints["save_decision"] == {"destructiveHint": False, "openWorldHint": False}
    assert hints["memory"] == {"destructiveHint": True, "openWorldHint": False}


def test_inputs_state_what_binds() -> None:
    fields = {tool["name"]: tool["inputSchema"] for tool in tools()}
    put = fields["putMemory"]["properties"]

    assert put["namespace"]["description"] == "Only session.NAME or agent.NAME"
    assert "no spaces" in put["key"]["description"]
    assert "3600" in put["ttl_seconds"]["description"]
    assert fields["register_procedure"]["required"] == ["text"]
    assert "0.3" in fields["memory"]["properties"]["threshold"]["description"]


def test_a_tool_with_operations_lists_the_arguments_of_each() -> None:
    memory = next(tool for tool in tools() if tool["name"] == "memory")

    assert "store(content, category=fact, importance?, tags?, private?)" in memory["description"]
    assert "decay_check(threshold=0.1, limit=50)" in memory["description"]
    named = set(re.findall(r"\w+", memory["description"]))
    assert memory["inputSchema"]["properties"].keys() - named == {"operation"}


LOOKUPS = {
    "mind_search": "Semantic search",
    "load_checkpoint": "Use when: work resumes",
    "load_context": "Use when: you have an id or topic",
    "search_by_topic": "Use when: you know the exact topic",
    "search_by_context": "Use when: about to decide",
    "search_recent": "Use when: catching up",
    "recall_memory": "Retrieves past interactions",
}


def test_the_first_words_say_when_to_look_up_in_which_way() -> None:
    texts = {tool["name"]: tool["description"] for tool in tools()}

    for name, start in LOOKUPS.items():
        assert texts[name].startswith(start), name
        assert "Use when" in texts[name][:110], name


def test_the_list_is_small() -> None:
    assert size({"tools": tools()}) < MOST_BYTES


@pytest.mark.parametrize("toolsets", MOST_ASKED)
def test_names_descriptions_and_inputs_are_small(toolsets: tuple[str, ...]) -> None:
    asked = [
        {key: tool[key] for key in ("name", "description", "inputSchema")}
        for tool in tools(*toolsets)
    ]
    assert sum(map(size, asked)) < MOST_ASKED[toolsets]


def test_a_tool_of_a_setting_is_listed_only_while_it_is_on() -> None:
    (tool,) = [tool for tool in tools(**ON) if tool not in tools()]

    assert tool["name"] == "mind_sessions"
    assert size(tool) < 800


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


def test_listed_outputs_name_every_field() -> None:
    outputs = {tool["name"]: tool["outputSchema"] for tool in EACH if "outputSchema" in tool}

    assert outputs.keys() == {"listMemory", "getMemory", "recall_memory"}
    assert "value" in outputs["getMemory"]["properties"]
    assert "cursor" in outputs["listMemory"]["properties"]
    assert "confidence" in outputs["recall_memory"]["properties"]


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
