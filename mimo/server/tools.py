"""Commands -> MCP tools: how they are described, and how a call is answered."""

import json
import logging
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from mimo.commands.arguments import choose
from mimo.commands.invoke import Caller, fault, invoke
from mimo.commands.schema import input_schema, output_schema, to_json
from mimo.commands.spec import Effect, Spec
from mimo.commands.tools import spelled
from mimo.errors import Internal, MindError
from mimo.mind import Mind

log = logging.getLogger("mind")


def described(specs: Sequence[Spec], naming: str) -> Tool:
    """Returns a tool as it is listed; nothing of it depends on what is remembered."""
    first = specs[0]
    description = cleandoc(first.tool.description if first.tool else first.description)
    if first.instead:
        description = f"Deprecated: use {first.instead}. {description}"
    reads = all(spec.effect is Effect.READ for spec in specs)
    return Tool(
        name=spelled(first.name, naming),
        description=description,
        input_schema=input_schema(specs),
        output_schema=output_schema(specs),
        annotations=ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=any(spec.effect is Effect.DESTROY for spec in specs),
            idempotent_hint=all(spec.idempotent for spec in specs),
            open_world_hint=False,
        ),
        _meta={"mind/command": first.name},
    )


def answer(
    specs: Sequence[Spec], mind: Mind, caller: Caller, arguments: Mapping[str, Any]
) -> CallToolResult:
    """Returns the answer of a tool: the result, or an error that the model can read."""
    try:
        spec, rest = choose(specs, arguments)
        data = to_json(invoke(spec, mind, caller, rest))
    except MindError as error:
        return refused(error)
    except Exception as error:  # noqa: BLE001 - a plain exception would reach the client raw
        unforeseen = fault()
        unforeseen.__cause__ = error
        return refused(unforeseen)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(text=text)], structured_content=data)


def refused(error: MindError) -> CallToolResult:
    """Returns an error as a tool's answer.

    Structured content stays empty: clients hold it against the output schema even then.
    """
    if isinstance(error, Internal):
        log.error("a call failed", exc_info=error.__cause__ or error)
    text = f"error: {error.message} [{error.code}]"
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return CallToolResult(
        content=[TextContent(text=text + hint)],
        is_error=True,
        _meta={"mind/error": to_json(error.wire())},
    )
