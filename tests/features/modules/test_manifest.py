"""Manifests of modules."""

import json
from typing import Any

import pytest

from mimo.errors import Invalid
from mimo.features.modules import parse

OBJECT = {"type": "object"}


def data(**changes: Any) -> dict[str, Any]:
    command = {"name": "ask", "description": "Ask", "parameters": OBJECT, "response": OBJECT}
    fields = {
        "id": "com.acme.memory",
        "version": "2.0",
        "name": "Acme",
        "entrypoint": "acme.memory:invoke",
        "schema_version": "1.0",
        "commands": [command],
    }
    return fields | changes


def command(**changes: Any) -> dict[str, Any]:
    return data(commands=[data()["commands"][0] | changes])


def test_a_manifest_has_the_contents_of_its_file():
    manifest = parse(json.dumps(data()))

    assert (manifest.id, manifest.version, manifest.name) == ("com.acme.memory", "2.0", "Acme")
    assert (manifest.entrypoint, manifest.schema_version) == ("acme.memory:invoke", "1.0")
    assert [command.name for command in manifest.commands] == ["ask"]
    assert manifest.command("ask") is manifest.commands[0]
    assert manifest.command("other") is None


@pytest.mark.parametrize(
    ("entrypoint", "is_python"),
    [
        ("mimo.module:invoke", True),
        ("ModelWeave.Memory.MemoryModule, ModelWeave.Memory", False),
        ("os", False),
        ("os:system('x')", False),
        (".evil:run", False),
        ("../evil:run", False),
    ],
)
def test_the_form_of_a_python_entry_point(entrypoint, is_python):
    assert parse(json.dumps(data(entrypoint=entrypoint))).is_python is is_python


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        data(id="../x"),
        data(id=7),
        data(name=" "),
        data(version=None),
        data(entrypoint=["a"]),
        data(commands={}),
        data(commands=[]),
        data(commands=["ask"]),
        data(commands=data()["commands"] * 2),
        command(name="a b"),
        command(description="x" * 5_000),
        command(description="hidden \u202e text"),
        command(description="\x1b[31mred"),
        command(parameters=None),
        command(response={"type": "array"}),
    ],
)
def test_an_invalid_manifest_is_refused(wrong):
    with pytest.raises(Invalid):
        parse(json.dumps(wrong))


@pytest.mark.parametrize("text", ["", "{", "null", "[" * 100_000])
def test_json_that_is_not_an_object_is_refused(text):
    with pytest.raises(Invalid):
        parse(text)
