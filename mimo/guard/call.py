"""One call, as everything that guards it sees it."""

from datetime import datetime

from mimo.domain.policy import Operation
from mimo.frozen import frozen


@frozen
class Call:
    """Who wants to do what, and to which namespace."""

    tool: str
    """The canonical name."""
    like: str | None = None
    """The tool whose rules and limits bind the call as well, as for a deprecated name."""
    operation: Operation
    governed: bool = True
    """Whether a policy binds it and it is recorded: not what a person does with the machine."""
    diagnosis: bool = False
    """Whether it shows what is wrong, and must do so while the policy is invalid."""
    agent: str | None = None
    """The program that asks; None for a person."""
    at: datetime
    namespace: str | None = None
    key: str | None = None
    context: str | None = None
    """The type of context that is asked for."""
    ttl_seconds: int | None = None
