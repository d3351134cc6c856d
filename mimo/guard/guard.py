"""What stands before every command: its policies, its limits, its record."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from mimo.errors import Denied
from mimo.guard.audit import Audit, AuditLog
from mimo.guard.call import Call, Ending, Session, Status, ended_by
from mimo.guard.limits import Limits
from mimo.guard.policies import Found, Policies, invalid
from mimo.guard.policy import PERMITTED, Limit, Operation, PiiAction, Verdict, judge, strictest

_CACHED = timedelta(minutes=5)
_MOST_CACHED = 1_000

_Decided = tuple[datetime, Verdict]


class Guard:
    """Made once for a memory and asked before each call; may be used by several threads."""

    def __init__(
        self,
        *,
        root: Path | None,
        trusted: Callable[[str], bool],
        session: Session,
        log: AuditLog | None = None,
    ) -> None:
        """Take a project's root, or None outside one; nothing is read yet."""
        self.session = session
        self._policies = Policies(root, trusted)
        self._limits = Limits(root)
        self._audit = Audit(log, session) if log else None
        self._found: Found | None = None
        self._decided: dict[tuple[object, ...], _Decided] = {}

    def found(self) -> Found:
        """Returns the policies in force; what was decided under others is forgotten."""
        found = self._policies.found()
        if found != self._found:
            self._found, self._decided = found, {}
        return found

    def authorise(self, call: Call) -> None:
        """Raises `Denied` unless every policy permits a call. No data was touched before."""
        if not call.governed:
            return
        found = self.found()
        if found.faults:
            if call.diagnosis:
                return
            raise invalid(found)
        verdict = self._verdict(found, call)
        if not verdict.permitted:
            raise denied(call, verdict)

    def limit(self, call: Call) -> None:
        """Counts a call; raises `RateLimited` where there were too many."""
        found = self.found()
        limits: dict[str, list[Limit]] = {}
        for policy in found.policies if call.governed else ():
            for name in dict.fromkeys((call.tool, call.like or call.tool)):
                if (tool := policy.limit_of_tool(name)) is not None:
                    limits.setdefault(f"tool {name}", []).append(tool)
            namespace = policy.limit_of_namespace(call.namespace) if call.namespace else None
            if namespace is not None:
                limits.setdefault(f"namespace {call.namespace}", []).append(namespace)
        if limits:
            lasting = call.operation is Operation.WRITE
            self._limits.take(limits, call.at.timestamp(), lasting=lasting)

    def check_record(self, call: Call) -> None:
        """Raises `StorageFailed` where a call that must be recorded could not be."""
        if self._audit:
            self._audit.check(call)

    def record(self, call: Call, ending: Ending) -> None:
        """Remembers that a call was made, and how it ended."""
        self.session.note(call.tool, call.at, success=ending.status is Status.OK)
        if self._audit:
            self._audit.record(call, ending)

    @contextmanager
    def passing(self, call: Call, monotonic: Callable[[], float]) -> Iterator[None]:
        """Runs a block as a call: permitted, counted, and recorded however it ends.

        Raises `Denied`, `RateLimited` and `StorageFailed` before the block is entered.
        """
        ending, started = Ending(), monotonic()
        try:
            self.authorise(call)
            self.limit(call)
            self.check_record(call)
            yield
        except BaseException as error:
            ending = ended_by(error)
            raise
        finally:
            self.record(call, replace(ending, seconds=monotonic() - started))

    def contexts(self, wanted: tuple[str, ...], tool: str) -> tuple[str, ...]:
        """Returns those of the types of context that every policy allows a tool."""
        rules = [rule for policy in self.found().policies for rule in policy.rules_of(tool)]
        return tuple(
            one
            for one in wanted
            if all(rule.contexts is None or one in rule.contexts for rule in rules)
        )

    @property
    def on_write(self) -> PiiAction:
        """Returns what happens to a value with personal data: the strictest that is said."""
        found = self.found()
        return strictest([policy.on_write for policy in found.policies] or list(PiiAction))

    def digests(self) -> tuple[str, ...]:
        """Returns the digest of the policy's file, where there is one."""
        digest = self.found().digest
        return (digest,) if digest else ()

    def close(self) -> None:
        """Closes what is open."""
        self._limits.close()

    def _verdict(self, found: Found, call: Call) -> Verdict:
        """Returns what the policies say of a call; remembered for a while, as long as they hold."""
        key = (
            call.tool,
            call.like,
            call.operation,
            call.namespace,
            call.context,
            call.ttl_seconds,
        )
        known = self._decided.get(key)
        if known and timedelta() <= call.at - known[0] < _CACHED:
            return known[1]
        verdict = judged(found, call)
        if len(self._decided) >= _MOST_CACHED:
            self._decided.clear()
        self._decided[key] = (call.at, verdict)
        return verdict


def judged(found: Found, call: Call) -> Verdict:
    """Returns the first refusal of any policy, or that all permit a call."""
    for policy in found.policies:
        for tool in (call.tool, call.like or call.tool):
            for rule in policy.rules_of(tool):
                verdict = judge(
                    rule,
                    call.operation,
                    namespace=call.namespace,
                    context=call.context,
                    ttl_seconds=call.ttl_seconds,
                )
                if not verdict.permitted:
                    place = f"{policy.source}:{rule.line}" if rule.line else policy.source
                    return verdict._replace(told=f"{verdict.told} ({place})")
    return PERMITTED


def denied(call: Call, verdict: Verdict) -> Denied:
    """Returns the refusal of a call: what was asked for, and nothing of what is there."""
    operation = call.operation.value
    details: dict[str, object] = {"operation": operation}
    if verdict.reason == "ttl":
        message = f"Access denied to a TTL of {call.ttl_seconds} seconds"
        details = {"ttl_seconds": call.ttl_seconds, **details}
    elif call.namespace is not None:
        message = f"Access denied to namespace '{call.namespace}'"
        details = {"namespace": call.namespace, **details}
    elif verdict.reason == "context_type":
        message = f"Access denied to context '{call.context}'"
        details = {"context_type": call.context, **details}
    else:
        message = f"Access denied to tool '{call.tool}'"
        details = {"tool": call.tool, **details}
    error = Denied(message, hint=f"`{call.tool}`: {verdict.told}", details=details)
    error.reason = verdict.reason
    return error
