"""A module's manifest: which commands it has, and what runs them."""

import re
from collections.abc import Mapping
from typing import Any

from mimo.domain.clean import clean
from mimo.errors import Invalid
from mimo.frozen import frozen

_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_COMMAND = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_LONGEST = 4_000
"""Characters of the longest text in a manifest: each costs its place in every prompt."""


@frozen
class ModuleCommand:
    """A command as its manifest describes it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    response: Mapping[str, Any]


@frozen
class Manifest:
    """What a module says of itself."""

    id: str
    version: str
    name: str
    entrypoint: str
    schema_version: str
    commands: tuple[ModuleCommand, ...]

    @property
    def is_python(self) -> bool:
        """Returns whether the entry point is one of Python's, `package.module:function`."""
        return _ENTRY_POINT.fullmatch(self.entrypoint) is not None

    def command(self, name: str) -> ModuleCommand | None:
        """Returns the command of that name, or None."""
        return next((command for command in self.commands if command.name == name), None)


def parse(text: str) -> Manifest:
    """Returns the manifest that a file holds; raises `Invalid` where it is none."""
    import json

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the manifest is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise Invalid("the manifest is no JSON object")
    commands = data.get("commands")
    if not isinstance(commands, list) or not commands:
        raise Invalid("`commands` in the manifest must be a list with a command")
    found = Manifest(
        id=_text(data, "id", _ID),
        version=_text(data, "version"),
        name=_text(data, "name"),
        entrypoint=_text(data, "entrypoint"),
        schema_version=_text(data, "schema_version"),
        commands=tuple(map(_command, commands)),
    )
    if len({command.name for command in found.commands}) < len(found.commands):
        raise Invalid("two commands in the manifest have one name")
    return found


def _command(data: Any) -> ModuleCommand:
    if not isinstance(data, dict):
        raise Invalid("a command in the manifest is no JSON object")
    return ModuleCommand(
        name=_text(data, "name", _COMMAND),
        description=_text(data, "description"),
        parameters=_schema(data, "parameters"),
        response=_schema(data, "response"),
    )


def _text(data: Mapping[str, Any], key: str, form: re.Pattern[str] | None = None) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise Invalid(f"`{key}` in the manifest must be a text of 1 to {_LONGEST:,} characters")
    if (form and not form.fullmatch(value)) or clean(value) != value:
        raise Invalid(f"`{key}` in the manifest holds characters that it may not")
    return value


def _schema(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if not isinstance(value, dict) or value.get("type") != "object":
        raise Invalid(f"`{key}` in the manifest must be the JSON Schema of an object")
    return value
