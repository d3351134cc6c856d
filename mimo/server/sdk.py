"""The SDK without its clients and its parts for HTTP, which a server on a pipe does not need.

The SDK imports them wherever it is imported, which takes a third of the time. While it is loaded
here, other modules are in their place, with classes that load the real ones when they are called.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType
from typing import Any

from mimo.call.extensions import extensions

_LEFT_OUT = frozenset(
    "cryptography httpx httpx2 mcp.client mcp.server.auth mcp.server.mcpserver mcp.server.sse "
    "mcp.server.streamable_http mcp.server.streamable_http_manager mcp.server.transport_security "
    "sse_starlette starlette uvicorn".split()
)


def load() -> None:
    """Loads the server with the SDK. Raises any error of an import."""
    extensions()  # No package of another author gets such a module.
    modules = set(sys.modules)
    try:
        with _without_http():
            import_module("mimo.server.stdio")
    except (ImportError, AttributeError, TypeError):
        # Another version of the SDK needs more.
        for name in set(sys.modules) - modules:
            if name == "mcp" or name.startswith(("mcp.", "mimo.server.")):
                del sys.modules[name]
        import_module("mimo.server.stdio")


@contextmanager
def _without_http() -> Iterator[None]:
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, module in list(sys.modules.items()):
            if isinstance(module, _Substitute):
                del sys.modules[name]
                package, _, child = name.rpartition(".")
                vars(sys.modules.get(package, module)).pop(child, None)


class _Finder:
    """Finds a substitute for each module that is left out, in the thread that loads the SDK."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        parts = name.split(".")
        names = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        if get_ident() != self._thread or not names & _LEFT_OUT:
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Substitute(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leaves the module empty."""


class _Substitute(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _Later(name, (), {"__module__": self.__name__})
        setattr(self, name, value)
        return value


class _Later(type):
    """A class, function or value that is loaded when it is called, or an attribute is needed."""

    def _loaded(cls) -> Any:
        return getattr(import_module(cls.__module__), cls.__name__)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._loaded()(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(cls._loaded(), name)
