"""Requests of clients that are not calls of tools: each is declared as a command, as a tool is."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from mimo.call import Call, Surface
from mimo.call.spec import Effect, command, declared
from mimo.operations.invoke import invoke

T = TypeVar("T")

request = partial(command, effect=Effect.READ, toolset="requests", surfaces=Surface.MCP)
"""Declares a request."""


def answer_to(
    function: object,
    result: type[T],
    call: Call,
    arguments: Mapping[str, Any] = MappingProxyType({}),
) -> T:
    """Returns the result of a declared request. Raises what `invoke` raises."""
    answer = invoke(declared(function), call, arguments)
    if not isinstance(answer, result):
        raise TypeError(answer)
    return answer
