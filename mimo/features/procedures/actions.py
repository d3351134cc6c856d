"""Doing what a state says: the built-in steps, mind's own commands, programs."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from mimo.errors import AmbiguousId, Denied, Invalid, MindError, NoProject, NotFound, Untrusted
from mimo.features.procedures import steps
from mimo.features.procedures.machine import Run
from mimo.features.procedures.model import (
    OWN,
    Action,
    Commands,
    Module,
    Outcome,
    Refused,
    Step,
    failed,
    filled,
)
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.surroundings import Timer

if TYPE_CHECKING:
    import subprocess
    from http.client import HTTPConnection


# How long a run may go on, and what stops it: every wait of a run is one of these.


T = TypeVar("T")

SLICE = 0.05
"""Seconds after which anything that waits looks whether it shall stop."""


class Stopped(Exception):
    """Somebody wants the run to stop; the text says why."""


class Expired(Exception):
    """The time of the whole run is over."""


class TimedOut(Exception):
    """The time of one action is over."""


class Pace:
    """The time that one run takes."""

    def __init__(
        self, timer: Timer, *, spent_ms: int, limit_ms: int, stopped: Callable[[], str | None]
    ) -> None:
        """Start counting from what earlier processes have spent; no change of state starts anew."""
        self._timer = timer
        self._begun = timer.monotonic() - spent_ms / 1000
        self._limit_ms = limit_ms
        self._stopped = stopped

    @property
    def at(self) -> int:
        """Returns the milliseconds that the run has taken."""
        return int((self._timer.monotonic() - self._begun) * 1000)

    def check(self) -> None:
        """Raises `Stopped` or `Expired` where the run can't go on."""
        if (reason := self._stopped()) is not None:
            raise Stopped(reason)
        if self.at >= self._limit_ms:
            raise Expired

    def pause(self, seconds: float) -> None:
        """Waits. Raises as `check` does, as soon as it is so."""
        until = self._timer.monotonic() + seconds
        self.check()
        while (left := until - self._timer.monotonic()) > 0:
            self._timer.sleep(min(left, SLICE))
            self.check()

    def deadline(self, milliseconds: int | None) -> Callable[[], bool]:
        """Returns what tells whether so many milliseconds from now are over."""
        if milliseconds is None:
            return lambda: False
        until = self._timer.monotonic() + milliseconds / 1000
        return lambda: self._timer.monotonic() >= until

    def within(
        self, milliseconds: int | None, work: Callable[[], T], stop: Callable[[], None]
    ) -> T:
        """Returns what `work` does in a thread of its own.

        Raises what it raises, `TimedOut` after so many milliseconds, and as `check` does; `stop`
        is called then, and what can't be stopped is left to itself.
        """
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

        over = self.deadline(milliseconds)
        threading.Thread(target=run, name="mind-action", daemon=True).start()
        try:
            while not done.wait(SLICE):
                self.check()
                _refuse_late(over)
        except BaseException:
            stop()
            raise
        if errors:
            raise errors[0]
        return results[0]


def _refuse_late(over: Callable[[], bool]) -> None:
    if over():
        raise TimedOut


# Regular expressions that somebody else wrote: matched in a process that can be killed.


_SECONDS = 2
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-/:@,^$")
_MATCH = """\
import re, sys
pattern, text = sys.stdin.buffer.read().decode().split("\\0", 1)
sys.exit(0 if re.search(pattern, text) else 1)
"""


def matches(pattern: str, text: str) -> bool:
    """Returns whether a pattern is found in a text; raises `Refused` where that takes too long."""
    if _PLAIN.issuperset(pattern):
        import re

        return re.search(pattern, text) is not None
    import subprocess

    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MATCH],
            input=f"{pattern}\0{text}".encode("utf-8", "replace"),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"the pattern `{pattern}` takes too long to match") from None
    return done.returncode == 0


# HTTP requests of procedures: only to hosts that the user's own settings name.


MOST_BYTES = 1024 * 1024
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@frozen
class Target:
    """Where a request goes."""

    secure: bool
    host: str
    port: int
    path: str


def target(url: str, hosts: Collection[str]) -> Target:
    """Returns where a URL leads.

    Raises `Refused` for one that is not HTTP, or whose host the user has not named.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise Refused(f"`{url}` is no URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Refused(f"`{url}` is no http or https URL")
    if parts.username is not None:
        raise Refused("a URL must hold no user and no password")
    named = {known.lower() for known in hosts}
    if host not in named and f"{host}:{port}" not in named:
        raise Refused(
            f"requests to `{host}` are not allowed; "
            f"allow them with `mind config --user procedures.http_hosts {host}`"
        )
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(secure=secure, host=host, port=port or (443 if secure else 80), path=path)


def address_of(host: str, port: int) -> str:
    """Returns the address that a host has now.

    Raises `Refused` where that is not a public one, unless the host is itself an address or
    `localhost`: a name that the user allowed must not become a door to what is near.
    """
    import socket

    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectionError(f"`{host}` is not known: {error.strerror}") from None
    address = str(found[0][4][0])
    if not (is_public(address) or host == "localhost" or _is_address(host)):
        raise Refused(
            f"`{host}` leads to `{address}`, which is no public address; "
            f"allow the address itself if that is meant"
        )
    return address


def _is_address(host: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_public(address: str) -> bool:
    """Returns whether an address is one of the Internet, not of this machine or what is near."""
    from ipaddress import IPv6Address, ip_address

    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found.sixtofour or found
    return found.is_global and not found.is_multicast


class Request:
    """One request, which can be given up."""

    def __init__(self, args: Mapping[str, Any], hosts: Collection[str], seconds: float) -> None:
        """Take the arguments of the step; nothing is sent yet. Raises `Refused`."""
        self._url = str(args["url"])
        self._target = target(self._url, hosts)
        self._seconds = seconds
        self._method = str(args.get("method", "GET")).upper()
        if self._method not in _METHODS:
            raise Refused(f"`{self._method}` is no HTTP method")
        self._headers, self._body = _body(args)
        self._key = str(args.get("result_key", "http_response"))
        self._connection: HTTPConnection | None = None

    def send(self) -> Outcome:
        """Returns what the server answers, under `result_key`; other than 2xx is an error.

        A redirection is such an error too: it may lead to any host. Raises `Refused`.
        """
        from http.client import HTTPException

        what = f"{self._method} {self._url}"
        try:
            self._connection = _connection(self._target, self._seconds)
            self._connection.request(
                self._method, self._target.path, body=self._body, headers=self._headers
            )
            answer = self._connection.getresponse()
            body = answer.read(MOST_BYTES + 1)
        except (OSError, HTTPException, ValueError) as error:
            return failed(f"{what}: {str(error) or type(error).__name__}")
        finally:
            self.stop()
        if not 200 <= answer.status < 300:
            return failed(f"{what}: {answer.status} {answer.reason}")
        if len(body) > MOST_BYTES:
            return failed(f"{what}: the answer is larger than {MOST_BYTES:,} bytes", again=False)
        return Outcome(merge={self._key: _parsed(body), "http_status": answer.status})

    def stop(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()


def _connection(target: Target, seconds: float) -> "HTTPConnection":
    """Returns a connection to the address that was looked at, not to what the name means next."""
    import socket
    from http.client import HTTPConnection, HTTPSConnection

    address = address_of(target.host, target.port)
    made = (HTTPSConnection if target.secure else HTTPConnection)(
        target.host, target.port, timeout=seconds
    )
    made.sock = socket.create_connection((address, target.port), timeout=seconds)
    if target.secure:
        from ssl import create_default_context

        made.sock = create_default_context().wrap_socket(made.sock, server_hostname=target.host)
    return made


def _body(args: Mapping[str, Any]) -> tuple[dict[str, str], bytes | None]:
    given = args.get("headers") or {}
    if not isinstance(given, dict):
        raise Refused("`headers` must be a mapping")
    headers = {str(name): str(value) for name, value in given.items()}
    body = args.get("body")
    if body is None or isinstance(body, str):
        return headers, None if body is None else body.encode()
    headers.setdefault("Content-Type", "application/json")
    return headers, json.dumps(body).encode()


def _parsed(body: bytes) -> Any:
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# Running a program: an argument list, never a shell's line, in a scrubbed environment.


MOST_OUTPUT = 64 * 1024
"""Bytes of each stream that are kept; what comes after is read and dropped."""
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SHELL")
_WAIT = 0.05


def scrubbed(environ: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """Returns the part of an environment that programs may see: no keys, no tokens.

    Relative folders are dropped from PATH, where a clone could put a program of its own.
    """
    names = {*_KEPT, *allowed, *(name for name in environ if name.startswith("LC_"))}
    kept = {name: environ[name] for name in names if name in environ}
    folders = [f for f in kept.get("PATH", "").split(os.pathsep) if Path(f).is_absolute()]
    kept["PATH"] = os.pathsep.join(folders) or os.defpath
    return kept


class Program:
    """One program that is run to its end, or stopped."""

    def __init__(self, argv: list[str], *, folder: Path, environ: Mapping[str, str]) -> None:
        """Take what to run and where; nothing is started yet."""
        self._argv = argv
        self._folder = folder
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self) -> tuple[int, str, str]:
        """Returns the exit status and both outputs. Raises `Refused` where it can't be started."""
        import subprocess

        try:
            process = subprocess.Popen(
                self._argv,
                cwd=self._folder,
                env=dict(self._environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise Refused(f"`{self._argv[0]}` can't be run: {reason}") from None
        self._process = process
        if self._stopped:
            self.stop()
        with process:
            out, err = self._read(process)
            status = process.wait()
            _kill_group(process.pid)  # What it left running must not outlive its step.
            return status, out, err

    def stop(self) -> None:
        """Kills the program and whatever it started."""
        self._stopped = True
        if self._process is not None and self._process.returncode is None:
            _kill_group(self._process.pid)

    def _read(self, process: "subprocess.Popen[bytes]") -> tuple[str, str]:
        """Returns both outputs; a child that keeps them open is not waited for."""
        import selectors

        kept: dict[IO[bytes], bytearray] = {}
        with selectors.DefaultSelector() as selector:
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    kept[stream] = bytearray()
                    selector.register(stream, selectors.EVENT_READ, stream)
            while selector.get_map():
                ready = selector.select(_WAIT)
                if not ready and process.poll() is not None:
                    break
                for key, _ in ready:
                    stream = key.data
                    if data := os.read(stream.fileno(), 65536):
                        kept[stream] += data[: MOST_OUTPUT - len(kept[stream])]
                    else:
                        selector.unregister(stream)
        out, err = (bytes(data).decode("utf-8", "replace") for data in kept.values())
        return out, err


def _kill_group(leader: int) -> None:
    with suppress(OSError):
        os.killpg(leader, signal.SIGKILL)


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
        return scrubbed(self.mind.environ, self.mind.config["procedures.env"])


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
    program = Program(argv, folder=scope.mind.project.root, environ=scope.environ)
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
            return steps.validate(named, context, matches)
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
    request = Request(args, scope.mind.config["procedures.http_hosts"], limit / 1000)
    return scope.pace.within(limit, request.send, request.stop)


_DOERS = {Module.STEP: _step, Module.COMMAND: _command, Module.SHELL: _program}
