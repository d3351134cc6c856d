"""Everything of mind that an extension may import.

The names are listed in `api.pyi`, the only list: type checkers read it, and here a name is loaded
when it is first asked for, so that an extension's manifest loads nothing else.
"""

from __future__ import annotations

import ast
from importlib import import_module
from typing import Any

_stub = ast.parse(__loader__.get_data(f"{__file__}i"))  # type: ignore[name-defined]
_HOMES: dict[str, str] = {
    alias.asname or alias.name: statement.module or ""
    for statement in _stub.body
    if isinstance(statement, ast.ImportFrom)
    for alias in statement.names
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Returns a listed name, or module of the core. Raises `AttributeError` for others."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(home)
    value = getattr(module, name) if hasattr(module, name) else import_module(f"{home}.{name}")
    globals()[name] = value
    return value
