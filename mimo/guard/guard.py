"""The checks around every call: policies, rate limits and the audit log."""

from __future__ import annotations

import sys
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from mimo.errors import Denied, Hint, PiiDetected, SecretDetected, StorageFailed
from mimo.frozen import replace
from mimo.guard.audit import (
    AuditLog,
    Ending,
    Session,
    Status,
    ended_by,
    event_of,
    masked_name,
    must_be_recorded,
)
from mimo.guard.policy import (
    FILE,
    ActivePolicies,
    Limit,
    Operation,
    PiiAction,
    PolicyFile,
    Request,
    Verdict,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mimo.guard.limits import Limits

    _Verdicts = dict[tuple[object, ...], tuple[datetime, Verdict]]

_CACHED = timedelta(minutes=5)
_MOST_CACHED = 1_000


class Guard:
    """The checks for one opened memory; may be used by several threads."""

    def __init__(
        self,
        *,
        root: Path | None,
        trusted: Callable[[str], bool],
        latest: Callable[[], bytes | None] = lambda: None,
        owner: Callable[[], str],
        session: Session,
        log: AuditLog | None = None,
    ) -> None:
        """Takes a project's root, or None outside of a project; nothing is read yet.

        `trusted` and `latest` are as `PolicyFile` takes them. `owner` returns the user's secret.
        """
        self.session = session
        self._policy_file = PolicyFile(root, trusted, latest)
        self.policy_text = self._policy_file.text
        self._root, self._owner = root, owner
        self._limits: Limits | None = None
        self._opening = allocate_lock()
        self._log = log
        self._judged: tuple[ActivePolicies, _Verdicts] | None = None

    def policies(self) -> ActivePolicies:
        """Returns the active policies."""
        return self._with_verdicts()[0]

    def _with_verdicts(self) -> tuple[ActivePolicies, _Verdicts]:
        """Returns the active policies, and the cached verdicts of these."""
        policies, judged = self._policy_file.active(), self._judged
        if judged is None or policies != judged[0]:
            judged = self._judged = policies, {}
        return judged

    def authorise(self, request: Request) -> None:
        """Raises `Denied` unless every policy permits a call."""
        if not request.governed:
            return
        policies, verdicts = self._with_verdicts()
        if policies.faults:
            if request.diagnosis:
                return
            raise policies.refusal(request.agent)
        parts = (request.operation, request.namespace, request.context, request.ttl_seconds)
        key = (request.tool, request.like, *parts)
        cached = verdicts.get(key)
        if cached and timedelta() <= request.at - cached[0] < _CACHED:
            verdict = cached[1]
        else:
            verdict = policies.judge(request)
            if len(verdicts) >= _MOST_CACHED:
                verdicts.clear()
            verdicts[key] = (request.at, verdict)
        if not verdict.permitted:
            raise _denied(request, verdict, policies.waiting() if verdict.waits else None)

    def permits(self, tool: str) -> bool:
        """Returns whether the valid policies permit a tool that reads.

        Nothing is counted or recorded. While the policy is invalid, only diagnoses get this far.
        """
        request = Request(tool=tool, operation=Operation.READ, at=self.session.started)
        return self.policies().judge(request).permitted

    def limit(self, request: Request) -> None:
        """Counts a call. Raises `RateLimited` if there were too many."""
        limits: dict[str, list[Limit]] = {}
        for policy in self.policies().policies if request.governed else ():
            for kind, name, limit in policy.limits_on(request):
                limits.setdefault(f"{kind} {name}", []).append(limit)
        if not limits:
            return
        with self._opening:
            if self._limits is None:
                from mimo.guard.limits import Limits

                self._limits = Limits(self._root, self._owner)
        lasting = request.operation is Operation.WRITE
        self._limits.take(limits, request.at.timestamp(), lasting=lasting)

    def check_record(self, request: Request) -> None:
        """Raises `StorageFailed` if a call must be recorded and can't be.

        No call may write if a later version of mind writes the log: it goes on without a record
        only if the log can't be written.
        """
        if self._log and request.governed and request.operation is Operation.WRITE:
            self._log.check_format()
        if self._log and must_be_recorded(request):
            self._log.check_writable()

    def record(self, request: Request, ending: Ending, session: Session | None = None) -> None:
        """Adds a call to a session (default: that of the process) and to the audit log.

        Raises `StorageFailed` if a required record can't be added.
        """
        session = session or self.session
        session.note(request.tool, request.at, success=ending.status is Status.OK)
        if not self._log or not request.governed:
            return
        event = event_of(request, ending, session)
        try:
            self._log.append(event)
        except (StorageFailed, OSError):
            if must_be_recorded(request) and ending.error is None:
                raise

    @contextmanager
    def passing(self, request: Request, monotonic: Callable[[], float]) -> Iterator[None]:
        """Runs the block as a call: authorised, counted, and recorded however it ends.

        Raises `Denied`, `RateLimited` and `StorageFailed` before the block is entered.
        """
        ending, started = Ending(), monotonic()
        try:
            self.authorise(request)
            self.limit(request)
            self.check_record(request)
            yield
        except BaseException as error:
            ending = ended_by(error)
            raise
        finally:
            self.record(request, replace(ending, seconds=monotonic() - started))

    def contexts(self, candidates: tuple[str, ...], tool: str) -> tuple[str, ...]:
        """Returns those of the context types that every policy permits a tool."""
        rules = [rule for policy in self.policies().policies for rule in policy.rules_of(tool)]
        return tuple(
            context
            for context in candidates
            if all(rule.contexts is None or context in rule.contexts for rule in rules)
        )

    @property
    def on_write(self) -> PiiAction:
        """Returns the treatment of values with personal data: the strictest of all policies."""
        actions = [policy.on_write for policy in self.policies().policies] or list(PiiAction)
        return min(actions, key=list(PiiAction).index)

    def approvals(self) -> tuple[str, ...]:
        """Returns the name that approves the policy file, if there is one."""
        name = self.policies().digest
        return (name,) if name else ()

    def close(self) -> None:
        """Closes the database of the limits."""
        if self._limits:
            self._limits.close()


def _denied(request: Request, verdict: Verdict, waiting: tuple[str, Hint] | None) -> Denied:
    """Returns the error for a denied call: it names the request, and no stored data."""
    from mimo.text.tool_names import underscored

    details: dict[str, object]
    tool = underscored(request.tool)
    if verdict.reason == "ttl":
        subject, details = (
            f"a TTL of {request.ttl_seconds} seconds",
            {"ttl_seconds": request.ttl_seconds},
        )
    elif request.namespace is not None:
        subject, details = f"namespace '{request.namespace}'", {"namespace": request.namespace}
    elif verdict.reason == "context_type":
        subject, details = f"context '{request.context}'", {"context_type": request.context}
    else:
        subject, details = f"tool '{tool}'", {"tool": tool}
    details["operation"] = request.operation.value
    message = f"Access denied to {subject}"
    hint = f"`{tool}`: {verdict.message}"
    if waiting:
        hint = Hint(hint, f"; {FILE}, as it is, permits it: ", waiting[1])
    error = Denied(message, hint=hint, details=details)
    error.reason = verdict.reason
    return error


@contextmanager
def span(name: str, request: Request) -> Iterator[Any]:
    """Runs the block in an OpenTelemetry span, which it gets; None if the process has no tracing.

    A program that traces has imported OpenTelemetry's API already, for example
    `opentelemetry-instrument mind mcp`. mind itself never imports it.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield None
        return
    # The text of an error may contain a memory, so the span gets only the type of the error.
    quiet = {"record_exception": False, "set_status_on_exception": False}
    attributes = traced(request)
    with trace.get_tracer("mimo").start_as_current_span(name, attributes=attributes, **quiet) as it:
        try:
            yield it
        except BaseException as error:
            it.set_status(trace.StatusCode.ERROR, type(error).__name__)
            it.set_attributes(_refused(error))
            raise


def traced(request: Request) -> dict[str, str]:
    """Returns the attributes of a call's spans."""
    attributes = {"tool_name": request.tool, "operation": request.operation.value}
    if request.namespace is not None:
        attributes["namespace"] = masked_name(request.namespace)
    return attributes


def _refused(error: BaseException) -> dict[str, Any]:
    """Returns the attributes of the span of a refused call: the reason, and the detected kinds."""
    attributes: dict[str, Any] = {}
    if reason := ended_by(error).reason:
        attributes["reason"] = reason
    if isinstance(error, PiiDetected):
        attributes["kinds"] = error.details["redacted_fields"]
    elif isinstance(error, SecretDetected):
        secrets = error.details.get("found", [error.details])
        attributes["kinds"] = sorted({secret["kind"] for secret in secrets})
    return attributes


@contextmanager
def continued(headers: Mapping[str, str]) -> Iterator[None]:
    """Runs the block in the trace that the headers of a request name, if the process traces."""
    names = ("context", "propagate", "trace")
    context, propagate, trace = (sys.modules.get(f"opentelemetry.{name}") for name in names)
    if context is None or propagate is None or trace is None or "traceparent" not in headers:
        yield
        return
    token = context.attach(propagate.extract({key: headers[key] for key in headers}))
    try:
        yield
    finally:
        context.detach(token)
