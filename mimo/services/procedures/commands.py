"""What running a procedure needs of the command set, which lies above the services."""

from collections.abc import Mapping
from typing import Any, Protocol

from mimo.mind import Mind


class Commands(Protocol):
    """Mind's own commands, by name."""

    def fault(self, name: str) -> str | None:
        """Returns why a procedure can't call the command of that name, or None."""

    def call(self, mind: Mind, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what a command answers, as JSON. Raises `MindError`."""
