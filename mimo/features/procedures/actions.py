"""The actions of states: built-in steps, mind's own commands, and programs."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mimo.call import Call
from mimo.data import disk
from mimo.data.loads import MAX_DEPTH, levels
from mimo.errors import IndexNotReady, MindError, RateLimited, SearchFailed, StorageFailed
from mimo.features.procedures import calling, steps
from mimo.features.procedures.machine import Run
from mimo.features.procedures.model import (
    OWN,
    OWN_FACTS,
    TIME,
    Action,
    Module,
    Outcome,
    Refused,
    Step,
    as_text,
    failed,
    filled,
)
from mimo.frozen import frozen
from mimo.operations.asking import NAMED
from mimo.surroundings import Timer

if TYPE_CHECKING:
    import subprocess

T = TypeVar("T")

SLICE = 0.05
"""Seconds between two checks of whether a wait must stop."""
LARGEST_CONTEXT = 1024 * 1024
_LONGEST_LINE = 2000
"""Characters of a log step's line that are kept."""
_PASSING = (StorageFailed, IndexNotReady, SearchFailed, RateLimited)
"""Errors of commands after which a retry may succeed."""

MOST_OUTPUT = 64 * 1024
"""Bytes of each output stream that are kept; the rest is read and dropped."""
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SHELL")


class Stopped(Exception):
    """The run was asked to stop; the text is the reason."""


class Expired(Exception):
    """The time of the whole run is over."""


class TimedOut(Exception):
    """The time of one action is over."""


class Pace:
    """The time that one run takes; every wait of a run goes through it."""

    def __init__(
        self, timer: Timer, *, spent_ms: int, limit_ms: int, stopped: Callable[[], str | None]
    ) -> None:
        """Starts counting from the time that earlier processes spent."""
        self._timer = timer
        self._started = timer.monotonic() - spent_ms / 1000
        self._limit_ms = limit_ms
        self._stopped = stopped

    @property
    def at(self) -> int:
        """Returns the milliseconds that the run has taken."""
        return int((self._timer.monotonic() - self._started) * 1000)

    def check(self) -> None:
        """Raises `Stopped` or `Expired` if the run can't continue."""
        if (reason := self._stopped()) is not None:
            raise Stopped(reason)
        if self.at >= self._limit_ms:
            raise Expired

    def pause(self, seconds: float) -> None:
        """Waits. Raises the errors of `check` as soon as they apply."""
        deadline = self._timer.monotonic() + seconds
        self.check()
        while (left := deadline - self._timer.monotonic()) > 0:
            self._timer.sleep(min(left, SLICE))
            self.check()

    def limited(self, milliseconds: int | None) -> Callable[[], None]:
        """Returns a check that also raises `TimedOut`, so many milliseconds from now."""
        limit = float("inf") if milliseconds is None else milliseconds / 1000
        deadline = self._timer.monotonic() + limit

        def check() -> None:
            self.check()
            if self._timer.monotonic() >= deadline:
                raise TimedOut

        return check

    def within(self, milliseconds: int | None, work: Callable[[], T]) -> T:
        """Returns the result of `work`, which runs in a thread of its own.

        Raises its errors, `TimedOut` after so many milliseconds, and the errors of `check`. Work
        that is not finished by then continues in its thread.
        """
        check = self.limited(milliseconds)
        done = threading.Event()
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                errors.append(error)
            finally:
                done.set()

        threading.Thread(target=run, name="mind-action", daemon=True).start()
        while not done.wait(SLICE):
            check()
        if errors:
            raise errors[0]
        return results[0]


# Performing an action.


@frozen
class Scope:
    """The run of an action, and the things that the action may use."""

    call: Call
    run: Run
    pace: Pace
    id: str

    @property
    def environ(self) -> dict[str, str]:
        """Returns the environment that programs may see, with the agent that the run acts for."""
        environ = scrubbed(self.call.mind.environ, self.call.mind.config["procedures.env"])
        return {**environ, NAMED: self.call.agent} if self.call.agent else environ


def perform(action: Action, scope: Scope) -> Outcome:
    """Returns the outcome of the action of a run's current state.

    Raises `Stopped` and `Expired` if the run can't continue.
    """
    run = scope.run
    facts = (scope.id, run.procedure.name, run.state, run.error, run.started)
    now = f"{scope.call.mind.now().astimezone(UTC):{TIME}}"
    try:
        values = {"now": now, **run.context, OWN: dict(zip(OWN_FACTS, facts, strict=True))}
        if action.module is Module.SHELL:
            outcome = _run_program(action, filled(list(action.args), values), scope)
        elif action.module is Module.COMMAND:
            outcome = _call_command(action, filled(action.named, values), scope)
        else:
            outcome = _take_step(action, values, scope)
    except Refused as error:
        return failed(str(error), again=False)
    except TimedOut:
        # A command still runs in its thread and must not be started a second time beside it.
        again = action.module is not Module.COMMAND
        return failed(f"timed out after {action.limit_ms} ms", again=again)
    except MindError as error:
        message = f"{error.message} [{error.code}]"
        return failed(message, again=isinstance(error, _PASSING))
    context = {**run.context, **outcome.merge}
    if levels(context) > MAX_DEPTH:
        return failed(f"the context would be nested deeper than {MAX_DEPTH}", again=False)
    try:
        size = len(json.dumps(context, allow_nan=False))
    except ValueError:
        return failed("the context would contain an infinite number or `NaN`", again=False)
    if size > LARGEST_CONTEXT:
        return failed(f"the context would grow to {size:,} bytes", again=False)
    return outcome


def _run_program(action: Action, words: list[Any], scope: Scope) -> Outcome:
    if any(isinstance(word, dict | list) or word is None for word in words):
        raise Refused("a program's words must be text or numbers")
    status, out, err = run_program(
        [as_text(word) for word in words],
        folder=scope.call.mind.project.root,
        environ=scope.environ,
        check=scope.pace.limited(action.limit_ms),
    )
    if status != 0:
        lines = (err.strip() or out.strip()).splitlines()
        end = f"was killed by signal {-status}" if status < 0 else f"exited with {status}"
        return failed(f"`{words[0]}` {end}{f': {lines[-1][:500]}' if lines else ''}")
    result = {"exit_status": status, "stdout": out, "stderr": err}
    return Outcome(merge={action.result or "shell": result})


def _call_command(action: Action, args: Mapping[str, Any], scope: Scope) -> Outcome:
    def call() -> dict[str, Any]:
        return calling.run_command(scope.call, action.function, args)

    answer = scope.pace.within(action.limit_ms, call)
    return Outcome(merge={action.result: answer} if action.result else answer)


def _take_step(action: Action, values: Mapping[str, Any], scope: Scope) -> Outcome:
    context, pace, limit = scope.run.context, scope.pace, action.limit_ms
    step = Step(action.function)
    if step is Step.SET_CONTEXT:
        return steps.set_context(action.named, values, scope.environ)
    args = filled(action.named, values)
    match step:
        case Step.LOG:
            return _log(args, values, scope)
        case Step.VALIDATE:
            return steps.validate(args, context)
        case Step.CONDITIONAL:
            return steps.conditional(args, values)
        case Step.ASK:
            return Outcome(question=str(args["question"]))
        case Step.DELAY:
            try:
                seconds = max(0.0, float(args.get("ms", 1000))) / 1000
            except (TypeError, ValueError, OverflowError):
                raise Refused(f"`ms` must be a number, not `{args.get('ms')}`") from None
            if limit is not None and seconds > limit / 1000:
                pace.pause(limit / 1000)
                raise TimedOut
            pace.pause(seconds)
            return Outcome()


def _log(args: Mapping[str, Any], values: Mapping[str, Any], scope: Scope) -> Outcome:
    run = scope.run
    message = str(args.get("message", f"in state {run.state}"))
    level = str(args.get("level", "info"))
    fields = {str(name): steps.value_of(str(name), values) for name in args.get("fields", ())}
    scope.call.mind.tell(
        "mimo.procedure.log",
        {"count": 1},
        execution_id=scope.id,
        name=run.procedure.name,
        level=level,
        message=message[:_LONGEST_LINE],
        fields=fields,
    )
    pairs = (f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
    return Outcome(log=f"{level}: {message}{''.join(pairs)}"[:_LONGEST_LINE])


# Programs: an argument list, never a shell's line, in a scrubbed environment.


def scrubbed(environ: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """Returns the part of an environment that programs may see: no keys, no tokens."""
    names = {*_INHERITED, *allowed, *(name for name in environ if name.startswith("LC_"))}
    variables = {name: environ[name] for name in names if name in environ}
    return variables | {"PATH": disk.search_path(environ) or os.defpath}


def run_program(
    argv: list[str], *, folder: Path, environ: Mapping[str, str], check: Callable[[], None]
) -> tuple[int, str, str]:
    """Returns the exit status and both outputs of a program.

    Raises `Refused` if it can't be started, and the errors of `check`, which is called again and
    again. When the program has ended, or at an error, the rest of its process group is killed.
    """
    import subprocess

    try:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Refused(f"`{argv[0]}` can't be run: {reason}") from None
    with process:
        try:
            out, err = _outputs(process, check)
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, out, err


def _outputs(process: "subprocess.Popen[bytes]", check: Callable[[], None]) -> tuple[str, str]:
    """Returns both outputs up to the end of a program; its children may keep them open."""
    import selectors

    buffers: dict[Any, bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in buffers:
            selector.register(stream, selectors.EVENT_READ)

        def read(seconds: float) -> None:
            for key, _ in selector.select(seconds):
                if data := os.read(key.fd, MOST_OUTPUT):
                    buffers[key.fileobj] += data[: MOST_OUTPUT - len(buffers[key.fileobj])]
                else:
                    selector.unregister(key.fileobj)

        while process.poll() is None:
            read(SLICE)
            check()
        read(0)  # The rest, in a single read: a child that goes on writing has no end.
    out, err = (bytes(data).decode("utf-8", "replace") for data in buffers.values())
    return out, err
