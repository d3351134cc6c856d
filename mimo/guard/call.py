"""One call, as everything that guards it sees it."""

from datetime import datetime

from mimo.domain.policy import Operation
from mimo.frozen import frozen


@frozen
class Call:
    """Who wants to do what, and to which namespace."""

    tool: str
    """The canonical name."""
    replaced: str | None = None
    """The tool that a deprecated name stands for; both must be permitted."""
    operation: Operation
    governed: bool = True
    """Whether a policy has a say: it has none in what only people can do."""
    diagnosis: bool = False
    """Whether it tells what is wrong, and must do so while the policy is invalid."""
    agent: str | None = None
    """The program that asks; None for a person."""
    at: datetime
    namespace: str | None = None
    key: str | None = None
    context: str | None = None
    """The type of context that is asked for."""
    ttl_seconds: int | None = None
