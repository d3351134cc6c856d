"""Manifests of modules."""

import json
from typing import Any

import pytest

from mimo.errors import Invalid
from mimo.features.modules import parse

OBJECT = {"type": "object"}


def data(**changes: Any) -> dict[str, Any]:
    command = {"name": "ask", "description": "Ask", "parameters": OBJECT, "response": OBJECT}
    known = {
        "id": "com.acme.memory",
        "version": "2.0",
        "name": "Acme",
        "entrypoint": "acme.memory:invoke",
        "schema_version": "1.0",
        "commands": [command],
    }
    return known | changes


def command(**changes: Any) -> dict[str, Any]:
    return data(commands=[data()["commands"][0] | changes])


def test_a_manifest_says_what_its_file_says():
    found = parse(json.dumps(data()))

    assert (found.id, found.version, found.name) == ("com.acme.memory", "2.0", "Acme")
    assert (found.entrypoint, found.schema_version) == ("acme.memory:invoke", "1.0")
    assert [one.name for one in found.commands] == ["ask"]
    assert found.command("ask") is found.commands[0]
    assert found.command("other") is None


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
def test_an_entry_point_is_pythons_or_not(entrypoint, is_python):
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
def test_what_is_no_manifest_is_refused(wrong):
    with pytest.raises(Invalid):
        parse(json.dumps(wrong))


@pytest.mark.parametrize("text", ["", "{", "null", "[" * 100_000])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(Invalid):
        parse(text)
