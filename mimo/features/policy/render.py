"""How the policy looks."""

from mimo.features.policy.commands import PolicyChecked, PolicyLimit, PolicyShown, PolicyVerdict
from mimo.rendering.results import count, render
from mimo.rendering.screen import Screen, bad, dim, good, strong, warn


@render.register
def _(result: PolicyShown, screen: Screen) -> None:
    screen.line(result.file or "no policy.yaml: what follows holds by default")
    if not result.trusted:
        screen.line(warn("untrusted"), dim("  it can only narrow what holds by default"))
    screen.blank()
    rows = [
        (
            rule.tool,
            " ".join(rule.operations) or "none",
            _listed(rule.namespaces if rule.context_types is None else rule.context_types),
            "" if rule.max_ttl_seconds is None else f"{rule.max_ttl_seconds:,} s",
            rule.source.rpartition("/")[2],
        )
        for rule in result.rules
    ]
    screen.table(("TOOL", "MAY", "WHERE", "LONGEST TTL", "SAID IN"), rows)
    screen.blank()
    for limit in (*result.tool_limits, *result.namespace_limits):
        screen.line(_limit(limit))
    screen.line(dim(f"personal data in a value that is put: {result.pii_on_write}"))


@render.register
def _(result: PolicyChecked, screen: Screen) -> None:
    for fault in result.faults:
        screen.line(bad("✗ "), f"{fault.file}:{fault.line}: {fault.reason}")
    if result.faults:
        screen.line(dim(f"{count(len(result.faults), 'fault')}"))
    elif result.file:
        screen.line(good("✓ "), f"{result.file} says what it means to")
    else:
        screen.line(good("✓ "), "no policy.yaml; what holds by default is shown by `policy show`")
    if not result.trusted:
        screen.note("it is not approved here, so it can only narrow; see `mind trust`")


@render.register
def _(result: PolicyVerdict, screen: Screen) -> None:
    mark = good("permitted") if result.permitted else bad("denied")
    where = f" in {result.namespace}" if result.namespace else ""
    screen.line(mark, "  ", strong(result.tool), f" {result.operation}{where}")
    screen.line(dim(result.reason), indent=2)
    for limit in result.limits:
        screen.line(dim(_limit(limit)), indent=2)


def _listed(names: tuple[str, ...] | None) -> str:
    return "anywhere" if names is None else " ".join(names) or "nowhere"


def _limit(limit: PolicyLimit) -> str:
    return f"{limit.limits}: {limit.sustained:g} a second, {limit.burst:,} at once"
