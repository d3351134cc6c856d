"""The actions of states: built-in steps, mind's own commands, HTTP requests and programs."""

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mimo.call import Call
from mimo.data.loads import MAX_DEPTH, DataError, levels, loads
from mimo.errors import IndexNotReady, MindError, RateLimited, SearchFailed, StorageFailed
from mimo.features.procedures import calling, steps
from mimo.features.procedures.machine import Run
from mimo.features.procedures.model import (
    OWN,
    Action,
    Module,
    Outcome,
    Refused,
    Step,
    as_text,
    failed,
    filled,
)
from mimo.frozen import NamedTuple, frozen
from mimo.operations.asking import NAMED
from mimo.surroundings import Timer

if TYPE_CHECKING:
    import subprocess
    from http.client import HTTPConnection

T = TypeVar("T")

SLICE = 0.05
"""Seconds between two checks of whether a wait must stop."""
LARGEST_CONTEXT = 1024 * 1024
_LONGEST_LINE = 2000
"""Characters of a log step's line that are kept."""
_PASSING = (StorageFailed, IndexNotReady, SearchFailed, RateLimited)
"""Errors of commands after which a retry may succeed."""

MOST_BYTES = 1024 * 1024
"""Bytes of the largest HTTP response."""
_PATH = re.compile(r"[!-~]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t -~\xa0-\xff]*")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

MOST_OUTPUT = 64 * 1024
"""Bytes of each output stream that are kept; the rest is read and dropped."""
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SHELL")


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

    def within(
        self, milliseconds: int | None, work: Callable[[], T], stop: Callable[[], None]
    ) -> T:
        """Returns the result of `work`, which runs in a thread of its own.

        Raises its errors, `TimedOut` after so many milliseconds, and the errors of `check`; `stop`
        is called before these two. Work that does not stop goes on in its thread.
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
        try:
            while not done.wait(SLICE):
                check()
        except BaseException:
            stop()
            raise
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
    own = {"id": scope.id, "name": run.procedure.name, "state": run.state, "error": run.error}
    try:
        values = {**run.context, OWN: own}
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

    answer = scope.pace.within(action.limit_ms, call, lambda: None)
    return Outcome(merge={action.result: answer} if action.result else answer)


def _take_step(action: Action, values: Mapping[str, Any], scope: Scope) -> Outcome:
    context, pace, limit = scope.run.context, scope.pace, action.limit_ms
    step = Step(action.function)
    if step is Step.SET_CONTEXT:
        return steps.set_context(action.named, values, scope.environ)
    args = filled(action.named, values)
    match step:
        case Step.LOG:
            return _log(args, scope)
        case Step.VALIDATE:
            return steps.validate(args, context)
        case Step.CONDITIONAL:
            return steps.conditional(args, context)
        case Step.ASK:
            return Outcome(question=str(args["question"]))
        case Step.HTTP_REQUEST:
            hosts = scope.call.mind.config["procedures.http_hosts"]
            request = Request(args, hosts, (limit or 1) / 1000)
            return pace.within(limit, request.send, request.stop)
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


def _log(args: Mapping[str, Any], scope: Scope) -> Outcome:
    run = scope.run
    message = str(args.get("message", f"in state {run.state}"))
    level = str(args.get("level", "info"))
    fields = {str(name): steps.value_of(str(name), run.context) for name in args.get("fields", ())}
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


# HTTP requests: only to hosts that the user's own settings name.


class Target(NamedTuple):
    """The destination of a request."""

    secure: bool
    host: str
    port: int
    path: str


def target(url: str, hosts: Collection[str]) -> Target:
    """Returns the destination of a URL.

    Raises `Refused` for a URL that is not HTTP, that can't be sent, or whose host the user has not
    allowed.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise Refused(f"`{url}` is not a URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Refused(f"`{url}` is not an http or https URL")
    if parts.username is not None:
        raise Refused("a URL must not contain a user or a password")
    allowed = {name.lower() for name in hosts}
    if host not in allowed and f"{host}:{port}" not in allowed:
        raise Refused(
            f"requests to `{host}` are not allowed; "
            f"allow them with `mind config --user procedures.http_hosts {host}`"
        )
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not _PATH.fullmatch(path):
        raise Refused(
            f"`{url}` contains a blank or a character that is not ASCII; "
            f"percent-encode it, such as a blank as `%20`"
        )
    return Target(secure=secure, host=host, port=port or (443 if secure else 80), path=path)


def address_of(host: str, port: int) -> str:
    """Returns the current address of a host.

    Raises `Refused` for a private address, unless the host is itself an address or `localhost`:
    a host name that the user allowed must not open the local network.
    """
    import socket
    from ipaddress import ip_address

    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectionError(f"`{host}` is not known: {error.strerror}") from None
    address = str(infos[0][4][0])
    if host == "localhost" or is_public(address):
        return address
    with suppress(ValueError):
        ip_address(host)
        return address
    raise Refused(
        f"`{host}` leads to `{address}`, which is not a public address; "
        f"allow the address itself if you intend that"
    )


_EMBEDDING = (0, 0x64FF9B << 64)
"""The prefixes of IPv6 addresses that end with an IPv4 one: compatible addresses, and NAT64."""


def is_public(address: str) -> bool:
    """Returns whether an address is on the Internet, not on this machine or a local network."""
    from ipaddress import IPv4Address, IPv6Address, ip_address

    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and int(ip) >> 32 in _EMBEDDING:
        ip = IPv4Address(int(ip) & 0xFFFFFFFF)
    elif isinstance(ip, IPv6Address):
        ip = ip.ipv4_mapped or ip.sixtofour or ip
    return ip.is_global and not ip.is_multicast


class Request:
    """One request, which can be stopped."""

    def __init__(self, args: Mapping[str, Any], hosts: Collection[str], seconds: float) -> None:
        """Takes the arguments of the step; nothing is sent yet. Raises `Refused`."""
        self._url = str(args["url"])
        self._target = target(self._url, hosts)
        self._seconds = seconds
        self._method = str(args.get("method", "GET")).upper()
        if self._method not in _METHODS:
            raise Refused(f"`{self._method}` is not an HTTP method")
        headers, body = args.get("headers") or {}, args.get("body")
        if not isinstance(headers, dict):
            raise Refused("`headers` must be a mapping")
        self._headers = {str(name): str(value) for name, value in headers.items()}
        for name, value in self._headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise Refused(f"`{name}` is not a name of a header")
            if not _HEADER_VALUE.fullmatch(value):
                raise Refused(f"the header `{name}` must be one line of Latin-1 text")
        self._body = None if body is None else as_text(body).encode("utf-8", "replace")
        if body is not None and not isinstance(body, str):
            self._headers.setdefault("Content-Type", "application/json")
        self._key = str(args.get("result_key", "http_response"))
        self._connection: HTTPConnection | None = None

    def send(self) -> Outcome:
        """Returns the response under `result_key`; a status other than 2xx is an error.

        That includes redirections, which may lead to any host. Raises `Refused`.
        """
        from http.client import HTTPException

        request = f"{self._method} {self._url}"
        try:
            connection = self._connected()
            connection.request(
                self._method, self._target.path, body=self._body, headers=self._headers
            )
            answer = connection.getresponse()
            body = answer.read(MOST_BYTES + 1)
        except (OSError, HTTPException, ValueError) as error:
            # A `ValueError` is about the request itself, unless it is also one of the connection.
            again = isinstance(error, OSError | HTTPException)
            return failed(f"{request}: {str(error) or type(error).__name__}", again=again)
        finally:
            self.stop()
        if not 200 <= answer.status < 300:
            return failed(f"{request}: {answer.status} {answer.reason}")
        if len(body) > MOST_BYTES:
            reason = f"the response is larger than {MOST_BYTES:,} bytes"
            return failed(f"{request}: {reason}", again=False)
        content: Any = body.decode("utf-8", "replace")
        with suppress(DataError):
            content = loads(content)
        return Outcome(merge={self._key: content, "http_status": answer.status})

    def _connected(self) -> "HTTPConnection":
        """Returns a connection to the checked address; the name may have another address next."""
        import socket
        from http.client import HTTPConnection, HTTPSConnection

        to = self._target
        address = address_of(to.host, to.port)
        kind = HTTPSConnection if to.secure else HTTPConnection
        self._connection = kind(to.host, to.port, timeout=self._seconds)
        self._connection.sock = socket.create_connection((address, to.port), timeout=self._seconds)
        if to.secure:
            from ssl import create_default_context

            self._connection.sock = create_default_context().wrap_socket(
                self._connection.sock, server_hostname=to.host
            )
        return self._connection

    def stop(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()


# Programs: an argument list, never a shell's line, in a scrubbed environment.


def scrubbed(environ: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """Returns the part of an environment that programs may see: no keys, no tokens.

    Relative folders are dropped from PATH: a clone could put a program of its own there.
    """
    names = {*_KEPT, *allowed, *(name for name in environ if name.startswith("LC_"))}
    kept = {name: environ[name] for name in names if name in environ}
    folders = [f for f in kept.get("PATH", "").split(os.pathsep) if Path(f).is_absolute()]
    kept["PATH"] = os.pathsep.join(folders) or os.defpath
    return kept


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

    kept: dict[Any, bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in kept:
            selector.register(stream, selectors.EVENT_READ)

        def read(seconds: float) -> None:
            for key, _ in selector.select(seconds):
                if data := os.read(key.fd, MOST_OUTPUT):
                    kept[key.fileobj] += data[: MOST_OUTPUT - len(kept[key.fileobj])]
                else:
                    selector.unregister(key.fileobj)

        while process.poll() is None:
            read(SLICE)
            check()
        read(0)  # The rest, in a single read: a child that goes on writing has no end.
    out, err = (bytes(data).decode("utf-8", "replace") for data in kept.values())
    return out, err
