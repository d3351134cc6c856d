"""What running a procedure needs of the command set, which lies above the services."""

from collections.abc import Mapping
from typing import Any, Protocol

from mimo.mind import Mind


class Commands(Protocol):
    """Mind's own commands, by name."""

    def fault(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Returns why a procedure can't call that command with arguments of these names."""

    def call(self, mind: Mind, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what a command answers, as JSON. Raises `MindError`."""
