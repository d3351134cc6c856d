"""Calls of other callers, and of surfaces that can do more than print."""

from typing import Any

from mimo.call import Call, Caller, Surface
from mimo.frozen import replace


def acting_as(call: Call, name: str | None, **parts: Any) -> Call:
    """Returns a call of an agent that is connected over MCP; of a person if `name` is None."""
    surface = Surface.CLI if name is None else Surface.MCP
    return call.by(Caller(surface=surface, name=name, **parts))


def from_shell(call: Call, agent: str | None) -> Call:
    """Returns a call that an agent makes in its shell."""
    return call.by(replace(call.caller, agent=agent))


def with_console(call: Call, **parts: Any) -> Call:
    """Returns the call with other parts of its console, such as `ask`."""
    return Call(call.mind, call.caller, replace(call.console, **parts))
