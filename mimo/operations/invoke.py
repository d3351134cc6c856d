"""The call of a command: every surface goes through `invoke`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mimo import installation
from mimo.call import Surface
from mimo.call.arguments import decode
from mimo.call.extensions import extension_of
from mimo.call.spec import BUDGET, CURSOR, EVERYWHERE, Effect, Spec
from mimo.data import disk
from mimo.errors import (
    Command,
    Denied,
    Hint,
    Internal,
    Invalid,
    MindError,
    NoProject,
    NotFound,
    Updated,
)
from mimo.frozen import replace
from mimo.guard import privacy
from mimo.guard.audit import Ending, ended_by
from mimo.guard.guard import span, traced
from mimo.guard.policy import Request
from mimo.memory.ids import check_key, check_namespace
from mimo.project.projects import check_reach

if TYPE_CHECKING:
    from mimo.call import Call
    from mimo.guard.privacy import Redacted

_FILTERING = "memory.pii_filtering"
_NAMING = ("namespace", "key", "context", "ttl_seconds")


def invoke(spec: Spec, call: Call, arguments: Mapping[str, Any]) -> object:
    """Returns the result of a command, whose arguments are as the surface received them.

    Raises `MindError`s only: those that the command documents, `Invalid` for wrong arguments,
    `NoProject` if it needs a project, and for any unexpected error `Internal` (with the original
    error as its cause), or `Updated` if the code on disk was replaced. Every rule for all calls on
    all surfaces is a step of this function.
    """
    if call.caller.surface not in spec.surfaces:
        raise Denied(f"`{spec.key}` is not offered here")
    if not spec.needs.diagnosis:
        call.mind.check()
    caller, call = call.caller, call.started(reads_only=spec.effect is Effect.READ)
    with _as_mind_error(spec, arguments, caller.surface), disk.shared():
        request, guard = _request(spec, call), call.mind.guard
        ending, started = Ending(), call.mind.timer.monotonic()
        try:
            with span("memory.tool", request) as tracing:
                refusal = caller.permissions.refusal(spec) if caller.permissions else None
                if refusal is not None:
                    raise refusal  # noqa: TRY301 - it is recorded below
                values = decode(spec, arguments, caller.surface)
                if spec.has_budget:
                    # The server applies these to the result.
                    values.pop(BUDGET.attribute, None)
                    values.pop(CURSOR.attribute, None)
                owner = _owner(spec, call, values)
                request = _named(request, spec, values)
                if tracing is not None:
                    tracing.set_attributes(traced(request))
                with span("memory.permission_check", request):
                    guard.authorise(request)
                    if spec.needs.also:
                        guard.authorise(replace(request, like=spec.needs.also))
                guard.limit(request)
                guard.check_record(request)
                if spec.effect is not Effect.READ:
                    installation.check_installed()
                    _check_format(spec, owner, values)
                stores = spec.effect is Effect.WRITE
                with span(_FILTERING, request) if stores else nullcontext():
                    values = _admitted(spec, call, values)
                try:
                    with _recorded(spec, owner, request):
                        result = spec.function(owner, **values)
                except NotFound as error:
                    result = _of_user(spec, owner, request, values, error)
                output = _redacted(spec, request, result)
            ending = Ending(redactions=len(output.kinds))
            return output.value
        except BaseException as error:
            ending = ended_by(error)
            raise
        finally:
            call.release()
            # A run that another process continues has a user, too.
            request = replace(request, user=call.recorded.name if call.recorded else None)
            ending = replace(ending, seconds=call.mind.timer.monotonic() - started)
            guard.record(request, ending, caller.session)


def notes_beside(call: Call, result: object) -> tuple[str, ...]:
    """Returns the lines that a command prints beside its result.

    These are warnings about settings, and the notice unless the result has it.
    """
    warnings = call.mind.config.warnings
    if warnings and call.agent:
        from mimo.operations import disclosure

        warnings = disclosure.of_settings(call)
    notice = None if getattr(result, "notice", None) else call.notice
    return (*warnings, notice) if notice else warnings


@contextmanager
def _as_mind_error(spec: Spec, arguments: Mapping[str, Any], surface: Surface) -> Iterator[None]:
    """Raises any error as a `MindError` without secrets and personal data."""
    key = arguments.get(spec.needs.key) if spec.needs.key else None
    named = key if isinstance(key, str) else None
    try:
        yield
    except MindError as error:
        privacy.redact_error(error, personal=spec.is_of_values, key=named)
        if isinstance(error, Invalid) and surface is Surface.CLI:
            error.typed = error.typed or (
                _typed(spec, error.message, arguments),
                _typed(spec, error.hint, arguments),
            )
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and not extension_of(error):
            raise
        failed = fault(error)
        privacy.redact_error(failed, personal=spec.is_of_values, key=named)
        raise failed from error


def _typed(spec: Spec, text: str, arguments: Mapping[str, Any]) -> str:
    """Returns a text that names parameters as the command line does: `--depth` for `depth`.

    A name that is also the value of an argument stays: the text may show that value.
    """
    values: list[object] = []
    for value in arguments.values():
        values += value if isinstance(value, (list, tuple)) else (value,)
    for param in spec.params:
        if Surface.CLI in param.arg.surfaces and param.name not in values:
            text = text.replace(f"`{param.name}`", f"`{param.typed}`")
    return text


def _owner(spec: Spec, call: Call, values: Mapping[str, Any]) -> Call:
    """Returns the memory that a call works on: the open one, or the user's for all projects.

    A command that only adds to the user's memory, and is not `of_user`, makes a missing one.
    Raises `NoProject` if the command needs one, and there is none.
    """
    owner = call
    if values.get(EVERYWHERE) and not call.owns_home:
        raise Denied(
            "Access denied to the memory for all projects",
            hint="a server of several users has none: store it in the project",
        )
    if values.get(EVERYWHERE):
        user = call.user(make=not spec.of_user)
        if user is None:
            raise NoProject(
                "you have no memory for all projects yet",
                hint=Hint(Command("add", "TEXT", user=True), " makes one"),
            )
        owner = user
    elif spec.of_user and call.mind.is_outside:
        owner = call.user() or call
    elif spec.owner is not None:
        owner = spec.owner(call, values)
    if owner is call:
        if spec.needs_project:
            _ = call.mind.project
    elif spec.of_user:
        _check_person(spec, owner)
    if spec.needs_project and spec.effect is not Effect.READ and owner.mind.project.inner:
        check_reach(owner.mind.project)
    return owner


def _check_person(spec: Spec, call: Call) -> None:
    """Raises `Denied` if an agent would change the user's memory for all projects.

    It reaches the agents of all other projects, so an agent may only add to it, for the user to
    approve.
    """
    if call.agent is not None and spec.effect is not Effect.READ:
        raise Denied(
            "an agent can't change the user's memory for all projects",
            hint="only a person can, on the command line",
        )


def _of_user(
    spec: Spec, call: Call, request: Request, values: Mapping[str, Any], error: NotFound
) -> object:
    """Returns the result of a command on the user's memory, if that has the id that is missing.

    Raises `error` if it does not, unless only the user's memory has ids that may be meant. A change
    is made there only if the memory to change is missing, not if the target of a link is, for
    example.
    """
    missing_id = error.details.get("id")
    has_id = isinstance(missing_id, str)
    is_meant = spec.of_user or has_id
    if spec.of_user and spec.effect is not Effect.READ:
        is_meant = has_id and missing_id in (values.get("id"), *(values.get("ids") or ()))
    user = call.user() if is_meant and values.get("at") is None else None
    if user is None:
        raise error
    if not spec.of_user:
        raise _missing(spec, user, str(missing_id)) or error
    _check_person(spec, user)
    if spec.effect is not Effect.READ:
        _check_format(spec, user, values)
    try:
        with _recorded(spec, user, request):
            return spec.function(user, **values)
    except NotFound as other:
        has_nearest = other.details.get("nearest") and not error.details.get("nearest")
        raise (other if has_nearest else error) from None


def _missing(spec: Spec, user: Call, reference: str) -> NotFound | None:
    """Returns the error for an id or topic of the user's memory, in a command of a project's."""
    from mimo.operations import disclosure, refresh

    index = refresh.up_to_date(user)
    ids = index.matching(reference) or [record.memory.id for record in index.current(reference)]
    if not ids:
        return None
    (name,) = disclosure.names_of(user, ids[:1])
    return NotFound(
        f"`{name}` is in your memory for all projects, not in this project",
        hint=Hint(Command(spec.path), " works on the memory of a project only"),
    )


def _recorded(spec: Spec, call: Call, request: Request) -> AbstractContextManager[object]:
    """Moves the texts that a command removes or replaces to the trash first."""
    if spec.effect is Effect.READ or not (spec.needs_project or _has_project(call)):
        return nullcontext()
    from mimo.operations.undoing import recorded

    return recorded(
        call,
        request,
        command=spec.path,
        is_tool=Surface.MCP in spec.surfaces,
        memory_only=not spec.needs_project,
    )


def _check_format(spec: Spec, call: Call, values: Mapping[str, Any]) -> None:
    """Raises `StorageFailed` if a call may change a store that a later version of mind wrote."""
    allowed = spec.any_format
    is_allowed = allowed if isinstance(allowed, bool) else allowed(values)
    if not is_allowed and (spec.needs_project or _has_project(call)):
        call.mind.check_format()


def _has_project(call: Call) -> bool:
    try:
        return call.mind.has_project
    except NoProject:
        return False


def _redacted(spec: Spec, request: Request, result: object) -> Redacted[object]:
    """Returns a result with secrets and personal data masked, and their kinds."""
    with span(_FILTERING, request) as tracing:
        output = privacy.redacted(result, personal=spec.is_of_values)
        if tracing is not None:
            tracing.set_attribute("redactions", len(output.kinds))
    return output


def _admitted(spec: Spec, call: Call, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments as they may be stored; raises `SecretDetected` and `PiiDetected`.

    Skips arguments that the command itself compares with the stored text.
    """
    if spec.effect is not Effect.WRITE:
        return values
    fields = {
        param.name: values[param.attribute]
        for param in spec.params
        if param.attribute in values and not param.arg.compared
    }
    pair = (spec.needs.key, "value") if spec.needs.key and "value" in fields else None
    if pair:
        fields["value"] = privacy.named(values[pair[0]], fields["value"])
    if call.caller.allows_secrets and call.agent is not None:
        raise Denied(
            "only a person can store a text that looks like a secret",
            hint="omit `--allow-secret`, and refer to the place where the secret is kept",
        )
    if not call.caller.allows_secrets:
        secret = privacy.check_secrets(fields, by_person=call.agent is None)
        if secret and not values.get("private"):
            call.note("secret", privacy.warning(secret))
    if not spec.is_of_values:
        return values
    guard, names = call.mind.guard, (spec.needs.namespace, spec.needs.key)
    proposed = guard.policies().proposed
    return privacy.admitted(values, guard.on_write, names=names, pair=pair, proposed=proposed)


def _request(spec: Spec, call: Call) -> Request:
    """Returns a call before its arguments are decoded."""
    return Request(
        tool=spec.name,
        like=spec.like,
        operation=spec.needs.operation,
        diagnosis=spec.needs.diagnosis,
        governed=not spec.needs.person or call.agent is not None,
        agent=call.agent,
        user=call.account,
        at=call.mind.now(),
    )


def _named(request: Request, spec: Spec, values: Mapping[str, Any]) -> Request:
    """Returns the call with the names in its arguments; raises `Invalid` for an invalid name."""
    needs = spec.needs
    if needs.namespace is None and needs.context is None:
        return request
    names = {
        part: values[parameter]
        for part, parameter in needs._asdict().items()
        if part in _NAMING and parameter is not None
    }
    if "namespace" in names:
        check_namespace(names["namespace"])
    if "key" in names:
        check_key(names["key"])
    return replace(request, **names)


def _storage_failed(error: OSError) -> MindError:
    from mimo.data.disk import working_directory
    from mimo.data.failures import failure
    from mimo.mind import no_working_directory

    if error.filename is None and working_directory() is None:
        return no_working_directory()
    return failure("use", Path(str(error.filename or "a file")), error)


def fault(error: BaseException) -> MindError:
    """Returns the error for an unexpected one, whose own text may contain a memory.

    It names the extension of another package in whose code the error arose.
    """
    if extension := extension_of(error):
        return Internal(
            f"unexpected error in the extension `{extension}` ({type(error).__name__})",
            hint="set MIND_DEBUG=1 to see the traceback, and report it to the extension's author",
        )
    if isinstance(error, OSError):
        return _storage_failed(error)
    if installation.is_changed():
        return Updated()
    return Internal(
        "unexpected error in mind; nothing was lost",
        hint="set MIND_DEBUG=1 to see the traceback, and report it",
    )
