"""Doing what a state says: the built-in steps, mind's own commands, programs."""

import json
from collections.abc import Mapping
from typing import Any

from mimo.domain.procedures import steps
from mimo.domain.procedures.machine import Run
from mimo.domain.procedures.outcome import Outcome, Refused, failed
from mimo.domain.procedures.procedure import Action, Module, Step
from mimo.domain.procedures.templates import OWN, filled
from mimo.errors import (
    AmbiguousId,
    Denied,
    Invalid,
    MindError,
    NoProject,
    NotFound,
    Untrusted,
)
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.procedures import http, patterns, shell
from mimo.services.procedures.commands import Commands
from mimo.services.procedures.pace import Pace, TimedOut

LARGEST_CONTEXT = 1024 * 1024
_LONGEST_LINE = 2000
"""Characters of what a log step says that are kept."""
_HOPELESS = (Invalid, NotFound, AmbiguousId, NoProject, Denied, Untrusted)
"""Errors of commands that a second try would only repeat."""


@frozen
class Scope:
    """What an action may use."""

    mind: Mind
    commands: Commands
    pace: Pace
    id: str

    @property
    def environ(self) -> dict[str, str]:
        """Returns the environment that programs may see."""
        return shell.scrubbed(self.mind.environ, self.mind.config["procedures.env"])


def perform(action: Action, run: Run, scope: Scope) -> Outcome:
    """Returns what came of the action of the state that a run is in.

    Raises `Stopped` and `Expired` where the run can't go on.
    """
    own = {"id": scope.id, "name": run.procedure.name, "state": run.state, "error": run.error}
    try:
        args = filled(list(action.args), {**run.context, OWN: own})
        outcome = _DOERS[action.module](action, args, run, scope)
    except Refused as error:
        return failed(str(error), again=False)
    except TimedOut:
        # A command that goes on in its thread must not be begun a second time beside it.
        again = action.module is not Module.COMMAND
        return failed(f"timed out after {action.limit_ms} ms", again=again)
    except MindError as error:
        told = f"{error.message} [{error.code}]"
        return failed(told, again=not isinstance(error, _HOPELESS))
    return _small_enough(outcome, run)


def _small_enough(outcome: Outcome, run: Run) -> Outcome:
    size = len(json.dumps({**run.context, **outcome.merge}))
    if size > LARGEST_CONTEXT:
        return failed(f"the context would grow to {size:,} bytes", again=False)
    return outcome


def _kept(action: Action, found: Mapping[str, Any]) -> Mapping[str, Any]:
    return {action.result: dict(found)} if action.result else found


def _program(action: Action, args: list[Any], run: Run, scope: Scope) -> Outcome:
    if any(isinstance(word, dict | list) or word is None for word in args):
        raise Refused("a program's words must be text or numbers")
    argv = [word if isinstance(word, str) else json.dumps(word) for word in args]
    program = shell.Program(argv, folder=scope.mind.project.root, environ=scope.environ)
    status, out, err = scope.pace.within(action.limit_ms, program.run, program.stop)
    if status != 0:
        said = (err.strip() or out.strip()).splitlines()
        how = f"was killed by signal {-status}" if status < 0 else f"exited with {status}"
        return failed(f"`{argv[0]}` {how}{f': {said[-1][:500]}' if said else ''}")
    told = {"exit_status": status, "stdout": out, "stderr": err}
    return Outcome(merge={action.result or "shell": told})


def _command(action: Action, args: list[Any], run: Run, scope: Scope) -> Outcome:
    named = args[0] if args else {}
    answer = scope.pace.within(
        action.limit_ms,
        lambda: scope.commands.call(scope.mind, action.function, named),
        lambda: None,
    )
    return Outcome(merge=_kept(action, answer))


def _step(action: Action, args: list[Any], run: Run, scope: Scope) -> Outcome:
    named = args[0] if args else {}
    context = run.context
    match Step(action.function):
        case Step.LOG:
            return _log(named, run, scope)
        case Step.VALIDATE:
            return steps.validate(named, context, patterns.matches)
        case Step.CONDITIONAL:
            return steps.conditional(named, context)
        case Step.SET_CONTEXT:
            return steps.set_context(named, context, scope.environ)
        case Step.DELAY:
            return _delay(action, named, scope)
        case Step.HTTP_REQUEST:
            return _http(action, named, scope)
        case Step.ASK:
            return Outcome(question=str(named["question"]))
    raise AssertionError(action.function)  # checked when the file was read


def _log(args: Mapping[str, Any], run: Run, scope: Scope) -> Outcome:
    message = str(args.get("message", f"in state {run.state}"))
    level = str(args.get("level", "info"))
    fields = {str(name): steps.looked_up(str(name), run.context) for name in args.get("fields", ())}
    scope.mind.tell(
        "mimo.procedure.log",
        {"count": 1},
        execution_id=scope.id,
        name=run.procedure.name,
        level=level,
        message=message[:_LONGEST_LINE],
        fields=fields,
    )
    told = "".join(
        f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()
    )
    return Outcome(log=f"{level}: {message}{told}"[:_LONGEST_LINE])


def _delay(action: Action, args: Mapping[str, Any], scope: Scope) -> Outcome:
    try:
        milliseconds = float(args.get("ms", 1000))
    except (TypeError, ValueError, OverflowError):
        raise Refused(f"`ms` must be a number, not `{args.get('ms')}`") from None
    limit = action.limit_ms
    if limit is not None and milliseconds > limit:
        scope.pace.pause(limit / 1000)
        raise TimedOut
    scope.pace.pause(max(0.0, milliseconds) / 1000)
    return Outcome()


def _http(action: Action, args: Mapping[str, Any], scope: Scope) -> Outcome:
    limit = action.limit_ms or 1
    request = http.Request(args, scope.mind.config["procedures.http_hosts"], limit / 1000)
    return scope.pace.within(limit, request.send, request.stop)


_DOERS = {Module.STEP: _step, Module.COMMAND: _command, Module.SHELL: _program}
