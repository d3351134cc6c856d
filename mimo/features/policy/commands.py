"""The `mind policy` commands: the permissions of tools, and the rules that give them."""

from collections.abc import Mapping
from typing import Annotated, Literal

from mimo.call import Call, Surface
from mimo.call.arguments import nearest
from mimo.call.spec import Arg, Effect, Needs, Out, command
from mimo.call.table import all_commands
from mimo.errors import Command, Hint, Invalid, NotFound, join_texts
from mimo.frozen import frozen, replace
from mimo.guard.policy import (
    APART,
    FILE,
    ActivePolicies,
    Limit,
    Operation,
    PiiAction,
    Policy,
    Request,
    Rule,
    folded,
    named_tools,
)
from mimo.memory.ids import check_namespace
from mimo.operations import disclosure
from mimo.rendering import Screen, bad, dim, good, strong
from mimo.rendering.results import count, render
from mimo.text.tool_names import underscored

REQUESTS: Mapping[str, tuple[str | None, ...]] = {
    "resources/list": ("mind_list",),
    "resources/read": ("mind_show", "mind_context"),
    "resources/subscribe": ("mind_show", "mind_context"),
    "completion/complete": ("mind_list",),
    "prompts/get": ("load/checkpoint", None),
}
"""MCP requests other than tool calls, with the tools whose rules apply to them too.

A policy may name a request as a tool. The requested object decides which of the others applies.
"""

HOOKS: Mapping[str, tuple[str, ...]] = {
    "hook/start": ("mind_context",),
    "hook/prompt": ("mind_search",),
    "hook/edit": ("mind_edges_check",),
    "hook/stop": ("mind_list", "mind_search"),
    "hook/summary": ("mind_add",),
}
"""The moments at which `mind hook` uses memory, with the tools whose rules apply to them too."""

_NO_RULE = "no rule names it, so everything is permitted"
_FREE = "; applies only to agents, not to people"

DENIED = 5
"""Exit status of `mind policy explain` for a denied call."""


@frozen
class PolicyRule:
    """The permissions of one tool."""

    tool: str
    operations: tuple[Operation, ...]
    namespaces: tuple[str, ...] | None
    context_types: tuple[str, ...] | None
    max_ttl_seconds: int | None
    source: Annotated[str, Out("The file and line, or `default`")]


@frozen
class PolicyLimit:
    """The rate limit of a tool or of namespaces."""

    limits: Annotated[str, Out("The tool, or the pattern of namespaces")]
    sustained: Annotated[float, Out("Calls a second, over a minute")]
    burst: Annotated[int, Out("Calls at once")]


@frozen
class MemoryAccess:
    """The tools that read memories, or those that write them."""

    operation: Operation
    permitted: tuple[str, ...]
    denied: tuple[str, ...]


@frozen
class PolicyShown:
    """The active policy; if several rules name a tool, each must permit a call."""

    file: Annotated[str | None, Out("The file, where there is one")]
    trusted: Annotated[
        bool, Out("Whether it, or its removal, was approved here; else it can only narrow")
    ]
    rules: tuple[PolicyRule, ...]
    memories: tuple[MemoryAccess, ...]
    tool_limits: tuple[PolicyLimit, ...]
    namespace_limits: tuple[PolicyLimit, ...]
    pii_on_write: PiiAction


@frozen
class PolicyFault:
    """One error in the file."""

    file: str
    line: int
    reason: str


@frozen
class PolicyChecked:
    """The result of checking the file."""

    file: Annotated[str | None, Out("The file, if there is one")]
    valid: bool
    trusted: bool
    faults: tuple[PolicyFault, ...]

    @property
    def exit_status(self) -> int:
        """Returns 1 if there are errors."""
        return 0 if self.valid else 1


@frozen
class PolicyVerdict:
    """The decision on a call, and the rule that it comes from."""

    tool: str
    namespace: str | None
    operation: Operation
    permitted: bool
    reason: str
    limits: tuple[PolicyLimit, ...]

    @property
    def exit_status(self) -> int:
        """Returns 5 if the call is denied."""
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
def policy_show(call: Call) -> PolicyShown:
    """Show the permissions of tools in this project

    The rules are those of `.mind/policy.yaml`, with defaults for everything else.
    """
    policies = _valid(call)
    tools = named_tools()
    call.note("policy", join_texts(*(policies.waiting() or ())))
    # An unapproved policy applies beside the approved one, and may have the same rules.
    rules = dict.fromkeys(
        PolicyRule(
            tool=underscored(tools.get(name, name)),
            operations=rule.operations,
            namespaces=rule.namespaces,
            context_types=rule.contexts,
            max_ttl_seconds=rule.max_ttl_seconds,
            source=_place(policy, rule),
        )
        for policy in policies.policies
        for name, rule in policy.rules.items()
    )
    tool_limits = [
        _limit(tools.get(key, key), limit)
        for policy in policies.policies
        for key, limit in policy.tool_limits.items()
    ]
    namespace_limits = [
        _limit(key, limit)
        for policy in policies.policies
        for key, limit in policy.namespace_limits.items()
    ]
    return PolicyShown(
        file=FILE if policies.digest else None,
        trusted=policies.trusted,
        rules=tuple(rules),
        memories=tuple(_access(call, policies, operation) for operation in Operation),
        tool_limits=tuple(dict.fromkeys(tool_limits)),
        namespace_limits=tuple(dict.fromkeys(namespace_limits)),
        pii_on_write=call.mind.guard.on_write,
    )


@command(
    "policy_check",
    cli="policy check",
    finds=True,
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, person=True, diagnosis=True),
    examples=("mind policy check",),
)
def policy_check(call: Call) -> PolicyChecked:
    """Check the policy file and list its errors

    While it is invalid no tool may be used; the exit status is then 1.
    """
    policies = call.mind.guard.policies()
    call.note("policy", join_texts(*(policies.waiting() or ())))
    return PolicyChecked(
        file=FILE if policies.digest or policies.faults else None,
        valid=not policies.faults,
        trusted=policies.trusted,
        faults=tuple(
            PolicyFault(file=FILE, line=line or 1, reason=disclosure.reason_for(call, FILE, why))
            for line, why in policies.faults
        ),
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
    call: Call,
    tool: Annotated[str, Arg("Name of a tool, in any spelling")],
    namespace: Annotated[str | None, Arg("Namespace that the call would name")] = None,
    operation: Annotated[
        Literal["read", "write"] | None, Arg("Operation of the call (default: the tool's own)")
    ] = None,
) -> PolicyVerdict:
    """Explain whether a call is permitted, and by which rule

    The exit status is 0 if it is permitted, and 5 if it is denied.
    """
    policies = _valid(call)
    every = _calls(call)
    names = {
        folded(request.tool): request.tool for requests in every.values() for request in requests
    }
    if folded(tool) not in names:
        near = nearest(folded(tool), list(names))
        meant = f"did you mean `{underscored(names[near[0]])}`?" if near else None
        hint = meant or Hint("see ", Command("policy show"))
        raise NotFound(f"there is no tool `{tool}`", hint=hint)
    name = names[folded(tool)]
    calls = [
        replace(
            request,
            operation=Operation(operation) if operation else request.operation,
            namespace=check_namespace(namespace) if namespace else None,
        )
        for requests in every.values()
        for request in requests
        if request.tool == name
    ]
    # A request may ask for several things: one that is denied is what the user must know of.
    verdicts = [(policies.judge(request), request) for request in calls]
    verdict, request = min(verdicts, key=lambda pair: pair[0].permitted)
    places = [
        _place(policy, rule)
        for policy in policies.policies
        for rule in policy.rules_of(request.tool)
    ]
    rules = f"permitted by {' and '.join(dict.fromkeys(places))}" if places else _NO_RULE
    if verdict.waits:
        call.note("policy", join_texts(*(policies.waiting() or ())))
    return PolicyVerdict(
        tool=underscored(name),
        namespace=namespace,
        operation=request.operation,
        permitted=verdict.permitted,
        reason=(verdict.message or rules) + ("" if request.governed else _FREE),
        limits=tuple(
            dict.fromkeys(
                _limit(name, limit)
                for policy in policies.policies
                for _, name, limit in policy.limits_on(request)
            )
        ),
    )


def _calls(call: Call) -> dict[str, list[Request]]:
    """Returns the calls to judge for each command and request: one for each tool that it is like.

    Those that no rule denies to a person are not `governed`.
    """
    tools: list[tuple[str, str, tuple[str | None, ...], Needs]] = [
        (spec.key, spec.name, (spec.like, spec.needs.also or spec.like), spec.needs)
        for spec in all_commands().all()
    ]
    reads = Needs(Operation.READ)
    tools += [
        (name, name, likes, Needs(Operation.WRITE) if name == "hook/summary" else reads)
        for name, likes in {**REQUESTS, **HOOKS}.items()
    ]
    at = call.mind.now()
    return {
        key: [
            Request(
                tool=name, like=like, operation=needs.operation, governed=not needs.person, at=at
            )
            for like in likes
        ]
        for key, name, likes, needs in tools
    }


def _access(call: Call, policies: ActivePolicies, operation: Operation) -> MemoryAccess:
    verdicts = {
        underscored(key): all(policies.judge(request).permitted for request in requests)
        for key, requests in _calls(call).items()
        if requests[0].operation is operation and folded(requests[0].tool) not in APART
    }
    return MemoryAccess(
        operation=operation,
        permitted=tuple(key for key, is_permitted in verdicts.items() if is_permitted),
        denied=tuple(key for key, is_permitted in verdicts.items() if not is_permitted),
    )


def _valid(call: Call) -> ActivePolicies:
    policies = call.mind.guard.policies()
    if policies.faults:
        line, reason = policies.faults[0]
        raise Invalid(
            f"the policy is invalid: {FILE}:{line}: {disclosure.reason_for(call, FILE, reason)}",
            hint=Hint(Command("policy check"), " lists all errors"),
        )
    return policies


def _limit(name: str, limit: Limit) -> PolicyLimit:
    return PolicyLimit(limits=name, sustained=float(limit.sustained), burst=limit.burst)


def _place(policy: Policy, rule: Rule) -> str:
    return f"{policy.source}:{rule.line}" if rule.line else "default"


@render.register
def _(result: PolicyShown, screen: Screen) -> None:
    rules = "the defaults" if result.trusted else "those of its approved text"
    screen.line(result.file or f"no policy.yaml: these are {rules}")
    screen.blank()
    rows = [
        (
            rule.tool,
            " ".join(rule.operations) or "none",
            "anywhere" if where is None else " ".join(where) or "nowhere",
            "" if rule.max_ttl_seconds is None else f"{rule.max_ttl_seconds:,} s",
            rule.source.replace(".mind/", ""),
        )
        for rule in result.rules
        for where in [rule.namespaces if rule.context_types is None else rule.context_types]
    ]
    screen.table(("TOOL", "MAY", "WHERE", "MAX TTL", "SOURCE"), rows)
    screen.blank()
    for access in result.memories:
        words, others = (good("permitted"), bad("denied")), access.denied
        if len(others) > len(access.permitted):
            words, others = words[::-1], access.permitted
        exceptions = (", but ", words[1], f" to {', '.join(others)}") if others else ()
        screen.line(f"to {access.operation} memories is ", words[0], *exceptions)
    screen.blank()
    for limit in (*result.tool_limits, *result.namespace_limits):
        screen.line(_limit_line(limit))
    screen.line(dim(f"personal data in a value that is put: {result.pii_on_write}"))


@render.register
def _(result: PolicyChecked, screen: Screen) -> None:
    for fault in result.faults:
        screen.line(bad("✗ "), f"{fault.file}:{fault.line}: {fault.reason}")
    if result.faults:
        screen.line(dim(f"{count(len(result.faults), 'fault')}"))
    elif result.file:
        screen.line(good("✓ "), f"{result.file} is valid")
    else:
        screen.line(good("✓ "), "no policy.yaml; `mind policy show` lists the active rules")


@render.register
def _(result: PolicyVerdict, screen: Screen) -> None:
    mark = good("permitted") if result.permitted else bad("denied")
    where = f" in {result.namespace}" if result.namespace else ""
    screen.line(mark, "  ", strong(result.tool), f" {result.operation}{where}")
    screen.line(dim(result.reason), indent=2)
    for limit in result.limits:
        screen.line(dim(_limit_line(limit)), indent=2)


def _limit_line(limit: PolicyLimit) -> str:
    return f"{limit.limits}: {limit.sustained:g} a second, {limit.burst:,} at once"
