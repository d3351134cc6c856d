"""What tools may do, and how often.

A rule says what one tool may do, a limit how often. Several policies may bind at once, of which
each must permit a call: one that nobody here has approved can thus only narrow.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from mimo.domain.names import covers
from mimo.frozen import frozen

EVERY = "*"
"""In the place of a tool's name: each tool that is not named."""

ALL = "all"
"""As a type of context: every one that is allowed."""

WINDOW_SECONDS = 60
"""How long a sustained rate is counted over."""


class Operation(StrEnum):
    """What a call does to what is stored."""

    READ = "read"
    WRITE = "write"


class PiiAction(StrEnum):
    """What happens to a value that holds personal data; the strictest comes first."""

    REFUSE = "refuse"
    REDACT = "redact"
    ALLOW = "allow"


class Limit(NamedTuple):
    """How often something may be done."""

    sustained: float
    """Calls a second, over a minute."""
    burst: int
    """Calls at once."""


@frozen
class Rule:
    """What one tool may do; None where nothing is said, which restricts nothing."""

    operations: tuple[Operation, ...] = tuple(Operation)
    namespaces: tuple[str, ...] | None = None
    contexts: tuple[str, ...] | None = None
    max_ttl_seconds: int | None = None
    line: int | None = None
    """Where it stands in the file."""


@frozen
class Policy:
    """Everything that one file says, or that holds where there is none."""

    rules: Mapping[str, Rule]
    """By the folded names of the tools."""
    named: frozenset[str] = frozenset()
    """Which of them, and `*`, the file itself names."""
    tool_limits: Mapping[str, Limit]
    namespace_limits: Mapping[str, Limit]
    """By pattern, in order: the first that admits a namespace counts."""
    on_write: PiiAction = PiiAction.REFUSE
    source: str
    """The file, or `default`."""

    def rules_of(self, tool: str) -> tuple[Rule, ...]:
        """Returns the rules that bind a tool, each of which must permit what it does."""
        name = folded(tool)
        found = [self.rules[name]] if name in self.rules else []
        if EVERY in self.rules and name not in self.named:
            found.append(self.rules[EVERY])
        return tuple(found)

    def limit_of_tool(self, tool: str) -> Limit | None:
        """Returns how often a tool may be called, or None for any number of times."""
        return self.tool_limits.get(folded(tool), self.tool_limits.get(EVERY))

    def limit_of_namespace(self, namespace: str) -> Limit | None:
        """Returns how often calls may name a namespace, or None for any number of times."""
        found = (
            limit for pattern, limit in self.namespace_limits.items() if covers(pattern, namespace)
        )
        return next(found, None)


class Verdict(NamedTuple):
    """Whether something is permitted, and which words of which rule say so."""

    permitted: bool
    reason: str
    """Such as `namespace`, for counting; empty where it is permitted."""
    told: str = ""


PERMITTED = Verdict(permitted=True, reason="")


def judge(
    rule: Rule,
    operation: Operation,
    *,
    namespace: str | None = None,
    context: str | None = None,
    ttl_seconds: int | None = None,
) -> Verdict:
    """Returns what a rule says of one call."""
    if operation not in rule.operations:
        allowed = ", ".join(rule.operations) or "none"
        return Verdict(False, "operation", f"its operations are {allowed}")
    patterns = ("*",) if rule.namespaces is None else rule.namespaces
    if namespace is not None and not any(covers(pattern, namespace) for pattern in patterns):
        return Verdict(False, "namespace", f"its namespaces are {', '.join(patterns) or 'none'}")
    contexts = None if context in (None, ALL) else rule.contexts
    if contexts is not None and context not in contexts:
        return Verdict(False, "context_type", f"its contexts are {', '.join(contexts) or 'none'}")
    most = rule.max_ttl_seconds
    if ttl_seconds is not None and most is not None and ttl_seconds > most:
        return Verdict(False, "ttl", f"its values live {most:,} seconds at most")
    return PERMITTED


def strictest(actions: Iterable[PiiAction]) -> PiiAction:
    """Returns the action that gives away least."""
    return min(actions, key=list(PiiAction).index)


def folded(tool: str) -> str:
    """Returns what all spellings of a tool's name have in common."""
    return re.sub(r"[/.\-]", "_", tool).lower()


_KEPT = ("session.*", "agent.*")
_READ = Rule(operations=(Operation.READ,), namespaces=(*_KEPT, "public.*"))
_WRITE = Rule(operations=(Operation.WRITE,), namespaces=_KEPT)

LIMIT = Limit(sustained=10, burst=50)

VALUE_TOOLS = ("listmemory", "getmemory", "putmemory", "deletememory", "getcontext")
"""The tools that are restricted and limited where no file says anything."""

DEFAULT = Policy(
    rules={
        "listmemory": _READ,
        "getmemory": _READ,
        "getcontext": Rule(operations=(Operation.READ,), contexts=("session", "agent", "task")),
        "putmemory": Rule(operations=(Operation.WRITE,), namespaces=_KEPT, max_ttl_seconds=3600),
        "deletememory": _WRITE,
    },
    tool_limits=dict.fromkeys(VALUE_TOOLS, LIMIT),
    namespace_limits={EVERY: LIMIT},
    source="default",
)
"""What holds where a project has no `policy.yaml`."""
