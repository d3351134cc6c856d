"""Calls of tools: the result for an agent, in two forms and below a ceiling."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult, TextContent

from mimo.call.arguments import choose
from mimo.call.leniency import understood
from mimo.call.schema import TRUNCATED, output_schema
from mimo.call.spec import BUDGET, CURSOR, Spec, declared, fields_of, to_json
from mimo.errors import Internal, MindError
from mimo.guard.privacy import redact_error
from mimo.operations.invoke import fault, invoke
from mimo.server import fitting, parts
from mimo.server.fitting import BYTES_PER_TOKEN, FORM, LEAST_BUDGET
from mimo.server.reading import Reader
from mimo.server.rows import DAY, QUESTIONS, brief, drop_titles, is_of_titles, shorten_values
from mimo.server.wording import for_agents, reworded

if TYPE_CHECKING:
    from datetime import datetime

    from mimo.call import Call

log = logging.getLogger("mind")

_MESSAGE, _HINT, _DETAILS = 3_000, 1_000, 4_000
"""The most characters of an error's message and hint, and bytes of its details."""


def answer(specs: Sequence[Spec], call: Call, arguments: Mapping[str, Any]) -> CallToolResult:
    """Returns the result of a tool, or an error that the model can read."""
    try:
        spec, remainder = choose(specs, arguments)
        inputs = understood(spec, remainder)
        result = invoke(spec, call, inputs)
        data, text = _forms(result, specs, spec, inputs, call.mind.now)
    except MindError as error:
        redact_error(error)
        return refused(error, specs)
    except Exception as error:  # noqa: BLE001 - a plain exception would reach the client raw
        unexpected = fault(error)
        unexpected.__cause__ = error
        return refused(unexpected)
    return CallToolResult(content=[TextContent(text=text)], structured_content=data)


def refused(error: MindError, specs: Sequence[Spec] = ()) -> CallToolResult:
    """Returns an error as the result of a tool.

    Structured content stays empty, because clients validate it against the output schema.
    """
    if isinstance(error, Internal):
        log.error("a call failed", exc_info=error.__cause__ or error)
    error = reworded(error, specs)
    text = f"error: {_cut(error.message, _MESSAGE)} [{error.code}]"
    hint = f"\nhint: {_cut(error.hint, _HINT)}" if error.hint else ""
    wire, _ = fitting.fitted(to_json(error.wire()), {}, _DETAILS)
    return CallToolResult(
        content=[TextContent(text=text + hint)], is_error=True, _meta={"mind/error": wire}
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _forms(
    result: object,
    specs: Sequence[Spec],
    spec: Spec,
    inputs: Mapping[str, Any],
    now: Callable[[], datetime],
) -> tuple[dict[str, Any], str]:
    """Returns the structured content and the text of a result."""
    cls: Any = type(result)
    data: dict[str, Any] = to_json(result, guide=partial(for_agents, specs=specs))
    pages = {field.name: field.page for field in fields_of(cls) if field.page}
    schema = _schema(tuple(each.function for each in specs))
    return formed(data, schema, spec, inputs, Reader(now), pages)


def formed(
    data: Mapping[str, Any],
    schema: Mapping[str, Any],
    spec: Spec,
    inputs: Mapping[str, Any],
    reader: Reader,
    pages: Mapping[str, int] = MappingProxyType({}),
) -> tuple[dict[str, Any], str]:
    """Returns the data of a result and their text, neither of which is too long.

    An agent's budget is for one of them. What is left out is named in the field `truncated`. Lists
    named in `pages` have that many items, unless a cursor reads on in them.
    """
    budget = inputs.get(BUDGET.name) if spec.has_budget else None
    limit = max(budget, LEAST_BUDGET) * BYTES_PER_TOKEN if isinstance(budget, int) else FORM
    query, cursor = str(inputs.get("query") or ""), inputs.get(CURSOR.name)
    data = brief(data, schema, unasked(spec, inputs))
    part, start = data, parts.BEGINNING
    if cursor and any(param is CURSOR for param in spec.params):
        part, start = parts.resumed(data, str(cursor))
        pages = {name: page for name, page in pages.items() if name not in start.path}
    short, cuts = fitting.fitted(
        part, schema, limit, query=query, pages=pages, is_brief=budget is None
    )
    drop_titles(short, schema)
    if cuts or start.path:
        short[TRUNCATED] = fitting.continued(cuts, spec, inputs, data, start)
    text = reader.read(short, schema)
    shorten_values(short, schema)
    return short, text


def unasked(spec: Spec, inputs: Mapping[str, Any]) -> set[str]:
    """Returns the fields of memories in rows that only the memory itself shows in this answer."""
    fields = {"by"} if inputs.get("scope") not in (None, "project") else {"by", "project"}
    return fields if inputs.get("tags") or spec.toolset == "memory" else fields | {"tags"}


@cache
def _schema(functions: tuple[Callable[..., object], ...]) -> dict[str, Any]:
    return answer_schema([declared(function) for function in functions])


def answer_schema(specs: Sequence[Spec]) -> dict[str, Any]:
    """Returns the schema of a tool's answers: a row may be without any of its fields."""
    schema = _relaxed(output_schema(specs))
    required = [name for name in schema.get("required", ()) if name not in QUESTIONS]
    properties = {**schema["properties"], TRUNCATED: {"type": "string"}}
    if any(is_of_titles(field.get("items", {})) for field in properties.values()):
        properties.setdefault(DAY, {"type": "string"})
    return schema | {"properties": properties, "required": required}


def _relaxed(schema: Mapping[str, Any], *, in_row: bool = False) -> dict[str, Any]:
    relaxed = {
        n: part for n, part in schema.items() if n not in ("required", "format") or not in_row
    }
    if "items" in schema:
        relaxed["items"] = _relaxed(schema["items"], in_row=True)
    if fields := schema.get("properties"):
        relaxed["properties"] = {n: _relaxed(field, in_row=in_row) for n, field in fields.items()}
        if in_row and is_of_titles(schema):
            relaxed["properties"].setdefault(DAY, {"type": "string"})
    return relaxed
