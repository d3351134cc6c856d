"""Tools with arguments that follow their JSON Schemas, mutated in structure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from mcp_types import TextContent

from fuzz.choices import Choices
from fuzz.grammar import hostile
from fuzz.project import IDS, RUN, a_project, contents, is_changed
from mimo.call import Caller, Surface
from mimo.call.arguments import LARGEST, decode
from mimo.call.leniency import understood
from mimo.call.schema import input_schema
from mimo.call.spec import Effect, Spec
from mimo.call.table import all_commands
from mimo.errors import Internal, Invalid
from mimo.frozen import replace
from mimo.server.answers import answer, answer_schema
from mimo.server.fitting import FORM
from mimo.text.clean import HIDDEN
from tests.sample_procedures import BOOM, text

CALLER = Caller(surface=Surface.MCP, name="an agent")
TOOLS = tuple(all_commands().tools().values())
_SYNC, _UNDO = (
    next(specs for specs in TOOLS if specs[0].path == path) for path in ("sync", "undo")
)
_HARMFUL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{HIDDEN}]")
_WORDS = (
    *IDS, "aaaaaa", "auth", "tea", "api", "agent.build", "session.a", "k", "guide.md", "odd.md",
    ".", "fact", "decision", "last week", "yesterday", "2026-11-20", "builds_on", "v1", "HEAD",
    '["a"]', "5", "true", "",
)  # fmt: skip
"""Texts that mean something in the project."""


_DECISION_FIRST = (IDS[1], IDS[0], IDS[2])
_USUAL: Mapping[str, Sequence[str]] = {
    "id": _DECISION_FIRST, "other": IDS, "decisionId": _DECISION_FIRST, "execution_id": (RUN,),
    "topic": ("auth",), "type": ("fact", "decision", "builds_on"), "types": ("fact", "decision"),
    "outcome": ("SUCCESS", "failed"), "outcomes": ("failed",), "tags": ("api",), "query": ("tea",),
    "intent": ("install a package",), "code": ("pip x",), "event": ("yes", "no", "success"),
    "path": ("guide.md", "odd.md"), "files": ("guide.md",), "paths": ("guide.md", "."),
    "at": ("HEAD", "HEAD~1", "yesterday"), "revisions": ("HEAD~1", "HEAD~1..HEAD"),
    "namespace": ("agent.build",), "key": ("k",), "name": ("greet", "wait"), "version": ("1.0",),
    "time_filter": ("last week",), "from_date": ("2026-11-19",), "to_date": ("2026-11-21",),
    "kinds": ("untrusted",), "text": (text("boom", BOOM),),
}  # fmt: skip
"""Values that mean something in the project, by the names of parameters."""


def _text(choices: Choices, name: str) -> str:
    if name in _USUAL and not choices.seldom(4):
        return choices.one_of(_USUAL[name])
    match choices.number(4):
        case 0:
            return choices.one_of(_WORDS)
        case 1:
            return choices.raw()
        case 2:
            return hostile(choices)
        case _:
            return f"{choices.one_of(_WORDS)} {hostile(choices)}"


def _value(choices: Choices, schema: Mapping[str, Any], name: str = "") -> Any:
    """Returns a value that a schema accepts, and seldom one that it does not."""
    if choices.seldom() or not schema.get("type"):
        return choices.json()
    if "enum" in schema:
        return choices.one_of(schema["enum"])
    match schema["type"]:
        case "boolean":
            return bool(choices.number(2))
        case "array":
            return [_value(choices, schema["items"], name) for _ in range(choices.number(4))]
        case "integer" | "number" as kind:
            low, high = schema.get("minimum", -5), schema.get("maximum", 1000)
            middle = low + choices.number(256) * (high - low) / 256
            number = choices.one_of([middle, low, high, low - 1, high + 1])
            return int(number) if kind == "integer" else number
        case "object":
            return {_text(choices, ""): choices.json() for _ in range(choices.number(4))}
        case _:
            return _text(choices, name)


def given(choices: Choices, specs: Sequence[Spec]) -> dict[str, Any]:
    """Returns arguments for a tool; seldom one is missing, or is one that it does not have."""
    spec = choices.one_of(specs)
    schema = _alone(spec)[0]
    arguments = {
        name: _value(choices, part, name)
        for name, part in schema["properties"].items()
        if (choices.seldom() if name not in schema.get("required", ()) else not choices.seldom())
        or choices.seldom()
    }
    arguments |= {"operation": spec.operation} if len(specs) > 1 else {}
    return arguments | ({choices.raw(): choices.json()} if choices.seldom(32) else {})


@cache
def _alone(spec: Spec) -> tuple[Mapping[str, Any], Draft202012Validator]:
    """Returns the schema of one operation, as if it were a tool of its own."""
    schema = input_schema((replace(spec, operation=None),))
    return schema, Draft202012Validator(schema)


_SPECS = tuple(spec for specs in TOOLS for spec in specs)


def schemas(data: bytes) -> None:
    """A command accepts exactly the arguments that its schema does, besides null and aliases."""
    choices = Choices(data)
    spec = choices.one_of(_SPECS)
    schema, validator = _alone(spec)
    arguments = given(choices, (spec,))
    with suppress(Invalid):
        decode(spec, understood(spec, arguments), Surface.MCP)
    arguments = {name: value for name, value in arguments.items() if value is not None}
    aliases = {alias for param in spec.params for alias in param.aliases}
    if aliases & arguments.keys() or not _is_utf8(arguments) or _is_large(arguments):
        return
    refusal = None
    try:
        decode(spec, arguments, Surface.MCP)
    except Invalid as error:
        refusal = error
    if refusal:
        assert refusal.details["field"] in (*schema["properties"], *arguments)
    spelled = {param.name for param in spec.params if param.arg.spellings}
    if refusal or not spelled & arguments.keys():
        assert validator.is_valid(arguments) == (refusal is None), refusal


def _is_large(data: Any) -> bool:
    """Returns whether JSON has a number of more than 64 bits, which no schema excludes."""
    if isinstance(data, list | dict):
        return any(map(_is_large, data.values() if isinstance(data, dict) else data))
    return isinstance(data, int | float) and abs(data) >= LARGEST


def _is_utf8(data: Any) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(json.dumps(data, ensure_ascii=False).encode())
    return False


@cache
def _validator(specs: Sequence[Spec]) -> Draft202012Validator:
    return Draft202012Validator(answer_schema(specs))


def calls(data: bytes) -> None:
    """Calls in a project answer in the form of their schemas, briefly and harmlessly, or fail.

    Those that read, and those that fail, change no file, and the last change can be undone.
    """
    choices = Choices(data)
    with a_project() as mind:
        reads_only = True
        for left in range(choices.number(3), -1, -1):
            specs = choices.one_of(TOOLS)
            reads_only &= all(spec.effect is Effect.READ for spec in specs)
            arguments, before = given(choices, specs), contents()
            result = answer(specs, mind.by(CALLER), arguments)
            (shown,) = result.content
            assert isinstance(shown, TextContent)
            assert not _HARMFUL.search(shown.text), _HARMFUL.search(shown.text)
            error = (result.meta or {}).get("mind/error", {}).get("error", {})
            assert error.get("code") != Internal.code, shown.text
            assert len(shown.text.encode("utf-8", "replace")) <= FORM
            if result.is_error:
                assert contents() == before, shown.text
            else:
                _validator(specs).validate(result.structured_content)
            if not left and contents() != before and specs not in (_SYNC, _UNDO):
                answer(_UNDO, mind.by(CALLER), {})
                assert contents() == before
    assert not (reads_only and is_changed())
