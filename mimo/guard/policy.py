"""What tools may do, and how often.

A rule says what one tool may do, a limit how often. Several policies may bind at once, of which
each must permit a call: one that nobody here has approved can thus only narrow.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from mimo.frozen import frozen
from mimo.memory.ids import covers

EVERY = "*"
"""In the place of a tool's name: each tool that is not named."""

FAMILIES = ("save_*", "load_*", "search_*", "evolve_*")
"""Folded names of rules for each tool of a family, such as `save/*`."""

LEADERS: Mapping[str, str] = {
    member: leader
    for leader, members in {
        "putmemory": ("deletememory",),
        "listmemory": ("getmemory",),
        "memory": (
            *("mind_add", "mind_show", "mind_list", "mind_edit", "mind_rm", "mind_keep"),
            *("mind_fading", "mind_restore", "mind_undo"),
        ),
        "mind_search": ("search_by_topic", "search_by_context", "search_recent", "recall_memory"),
        "mind_edges": ("mind_edges_list", "mind_edges_check"),
        "mind_add_global_edge": ("mind_edges_add", "mind_edges_starter"),
        "ingest": ("mind_import_mama",),
        "mind_review": ("mind_review_settle", "mind_review_keep"),
        "mind_context": ("mind_context_write",),
        "run_procedure": ("resume_procedure", "send_event", "cancel_procedure"),
        "list_procedures": ("recall_procedure", "procedure_status", "check_procedure"),
        "register_procedure": ("new_procedure",),
    }.items()
    for member in members
}
"""Folded names of tools that reach the same as another one, whose rules bind them as well."""

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
        """Returns the rules that bind a tool, each of which must permit what it does.

        A tool that the file names has only its own rule. Any other is bound by its default rule,
        by that of its family, by the file's rule for its leader, and by that for every tool.
        """
        name = folded(tool)
        names = [name]
        if name not in self.named:
            names += [family for family in FAMILIES if name.startswith(family[:-1])]
            names += [leader] if (leader := LEADERS.get(name)) in self.named else []
            names.append(EVERY)
        return tuple(self.rules[one] for one in names if one in self.rules)

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


def stricter(first: Limit, second: Limit) -> Limit:
    """Returns the limit that permits neither more calls at once nor more over time than either."""
    return Limit(min(first.sustained, second.sustained), min(first.burst, second.burst))


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
