"""`mind policy …`: what tools may do here, and why."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from mimo.commands import all_commands
from mimo.commands.arguments import nearest
from mimo.commands.spec import Arg, Effect, Needs, Out, Surface, command
from mimo.errors import Invalid, NotFound
from mimo.frozen import frozen
from mimo.guard.policy import (
    EVERY,
    FAMILIES,
    FILE,
    ActivePolicies,
    Call,
    Limit,
    Operation,
    PiiAction,
    Policy,
    Rule,
    folded,
)
from mimo.memory.ids import check_namespace
from mimo.mind import Mind

REQUESTS: Mapping[str, tuple[str | None, ...]] = {
    "resources/list": ("mind_list",),
    "resources/read": ("mind_show", "mind_context"),
    "prompts/get": ("load/checkpoint", None),
}
"""What an MCP client asks beside tools, with the tools whose rules bind it too.

A policy may name a request as a tool. Which of the others binds depends on what is asked for.
"""

_FREE = "; binds agents alone, people use it freely"

DENIED = 5
"""Exit status of `mind policy explain` where a call is denied."""


@frozen
class PolicyRule:
    """What one tool may do."""

    tool: str
    operations: tuple[Operation, ...]
    namespaces: tuple[str, ...] | None
    context_types: tuple[str, ...] | None
    max_ttl_seconds: int | None
    source: Annotated[str, Out("The file and line, or `default`")]


@frozen
class PolicyLimit:
    """How often something may be done."""

    limits: Annotated[str, Out("The tool, or the pattern of namespaces")]
    sustained: Annotated[float, Out("Calls a second, over a minute")]
    burst: Annotated[int, Out("Calls at once")]


@frozen
class PolicyShown:
    """The active policy; if several rules name a tool, each must permit a call."""

    file: Annotated[str | None, Out("The file, where there is one")]
    trusted: Annotated[bool, Out("Whether it was approved here; else it can only narrow")]
    rules: tuple[PolicyRule, ...]
    tool_limits: tuple[PolicyLimit, ...]
    namespace_limits: tuple[PolicyLimit, ...]
    pii_on_write: PiiAction


@frozen
class PolicyFault:
    """One thing that is wrong with the file."""

    file: str
    line: int
    reason: str


@frozen
class PolicyChecked:
    """Whether the file says what it means to."""

    file: Annotated[str | None, Out("The file, where there is one")]
    valid: bool
    trusted: bool
    faults: tuple[PolicyFault, ...]

    @property
    def exit_status(self) -> int:
        """Returns 1 where something is wrong."""
        return 0 if self.valid else 1


@frozen
class PolicyVerdict:
    """Whether a call is permitted, and which rule says so."""

    tool: str
    namespace: str | None
    operation: Operation
    permitted: bool
    reason: str
    limits: tuple[PolicyLimit, ...]

    @property
    def exit_status(self) -> int:
        """Returns 5 where it is denied."""
        return 0 if self.permitted else DENIED


@command(
    "policy_show",
    cli="policy show",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, person=True, diagnosis=True),
    errors=(Invalid,),
    examples=("mind policy show",),
)
def policy_show(mind: Mind) -> PolicyShown:
    """Show what tools may do here

    The rules are those of `.mind/policy.yaml`; what it leaves out is as by default.
    """
    policies = _valid(mind.guard.policies())
    tools = _names()
    last = policies.policies[-1]
    # One that is not trusted is asked beside the default, and may say the same.
    rules = dict.fromkeys(
        _rule(tools.get(name, name), rule, policy)
        for policy in policies.policies
        for name, rule in policy.rules.items()
    )
    return PolicyShown(
        file=FILE if policies.digest else None,
        trusted=policies.trusted,
        rules=tuple(rules),
        tool_limits=_limits({tools.get(name, name): one for name, one in last.tool_limits.items()}),
        namespace_limits=_limits(last.namespace_limits),
        pii_on_write=mind.guard.on_write,
    )


@command(
    "policy_check",
    cli="policy check",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, person=True, diagnosis=True),
    examples=("mind policy check",),
)
def policy_check(mind: Mind) -> PolicyChecked:
    """Check the policy, and say what is wrong with it

    While it is invalid no tool may be used; the exit status is 1 then.
    """
    policies = mind.guard.policies()
    faults = [*policies.faults, *_unknown_tools(policies)]
    return PolicyChecked(
        file=FILE if policies.digest or policies.faults else None,
        valid=not faults,
        trusted=policies.trusted,
        faults=tuple(PolicyFault(file=FILE, line=line, reason=why) for line, why in faults),
    )


@command(
    "policy_explain",
    cli="policy explain",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, person=True, diagnosis=True),
    errors=(Invalid, NotFound),
    examples=(
        "mind policy explain putMemory public.docs write",
        "mind policy explain mind_search",
    ),
)
def policy_explain(
    mind: Mind,
    tool: Annotated[str, Arg("Name of a tool, in any spelling")],
    namespace: Annotated[str | None, Arg("Namespace that the call would name")] = None,
    operation: Annotated[
        Literal["read", "write"] | None, Arg("What it would do; as the tool does unless given")
    ] = None,
) -> PolicyVerdict:
    """Say whether a tool may do something, and which rule says so

    The exit status is 0 where it may, and 5 where it may not.
    """
    policies = _valid(mind.guard.policies())
    tools = {folded(spec.name): spec for spec in reversed(all_commands().all())}
    requests = {folded(name): name for name in REQUESTS}
    if folded(tool) not in tools | requests:
        names = {key: spec.name for key, spec in tools.items()} | requests
        near = nearest(folded(tool), list(names))
        hint = f"did you mean `{names[near[0]]}`?" if near else "see `mind policy show`"
        raise NotFound(f"there is no tool `{tool}`", hint=hint)
    spec = tools.get(folded(tool))
    name = spec.name if spec else requests[folded(tool)]
    usual = spec.needs.operation if spec else Operation.READ
    calls = [
        Call(
            tool=name,
            like=like,
            operation=Operation(operation) if operation else usual,
            at=mind.now(),
            namespace=check_namespace(namespace) if namespace else None,
        )
        for like in ((spec.like,) if spec else REQUESTS[name])
    ]
    # A request may ask for several things: one that is denied is what the user must know of.
    verdicts = [(policies.judge(call), call) for call in calls]
    verdict, call = min(verdicts, key=lambda one: one[0].permitted)
    binds_agents = spec is not None and spec.needs.person
    return PolicyVerdict(
        tool=name,
        namespace=namespace,
        operation=call.operation,
        permitted=verdict.permitted,
        reason=(verdict.message or _permitted(policies, call)) + (_FREE if binds_agents else ""),
        limits=tuple(_limits_on(policies, call)),
    )


def _valid(policies: ActivePolicies) -> ActivePolicies:
    if policies.faults:
        raise Invalid(
            f"the policy is invalid: {policies.first_fault}",
            hint="`mind policy check` tells all that is wrong with it",
        )
    return policies


def _names() -> dict[str, str]:
    """Returns the names that a rule or a limit may have, by their folded forms."""
    names = [*(spec.name for spec in all_commands().all()), *REQUESTS, EVERY]
    names += [family.replace("_", "/") for family in FAMILIES]
    return {folded(name): name for name in names}


def _rule(tool: str, rule: Rule, policy: Policy) -> PolicyRule:
    return PolicyRule(
        tool=tool,
        operations=rule.operations,
        namespaces=rule.namespaces,
        context_types=rule.contexts,
        max_ttl_seconds=rule.max_ttl_seconds,
        source=f"{policy.source}:{rule.line}" if rule.line else "default",
    )


def _limits(limits: Mapping[str, Limit]) -> tuple[PolicyLimit, ...]:
    return tuple(_limit(name, one) for name, one in limits.items())


def _limit(name: str, limit: Limit) -> PolicyLimit:
    return PolicyLimit(limits=name, sustained=float(limit.sustained), burst=limit.burst)


def _limits_on(policies: ActivePolicies, call: Call) -> Iterator[PolicyLimit]:
    for policy in policies.policies:
        for name in dict.fromkeys((call.tool, call.like or call.tool)):
            if limit := policy.limit_of_tool(name):
                yield _limit(name, limit)
        if call.namespace and (limit := policy.limit_of_namespace(call.namespace)):
            yield _limit(call.namespace, limit)


def _permitted(policies: ActivePolicies, call: Call) -> str:
    rules = [(policy, rule) for policy in policies.policies for rule in policy.rules_of(call.tool)]
    if not rules:
        return "no rule names it, so nothing is forbidden to it"
    places = [f"{one.source}:{rule.line}" if rule.line else "default" for one, rule in rules]
    return f"permitted by {' and '.join(dict.fromkeys(places))}"


def _unknown_tools(policies: ActivePolicies) -> Iterator[tuple[int, str]]:
    """Yields the rules for tools that there are none of: who mistypes one protects nothing."""
    known = _names()
    for policy in policies.policies[-1:]:
        for name in sorted({*policy.named, *policy.tool_limits} - known.keys()):
            near = nearest(name, list(known))
            told = f"; did you mean `{known[near[0]]}`?" if near else ""
            rule = policy.rules.get(name)
            yield rule.line or 1 if rule else 1, f"there is no tool `{name}`{told}"
