"""The MCP server over HTTP: one process for all projects and clients of a user.

`docs/http.md` lists who could send requests to it, and the check that answers each of them.
"""

import logging
import os
import re
import signal
import stat
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import unquote

import anyio
import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp_types import INVALID_REQUEST
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mimo.api import (
    PERMISSIONS,
    Answers,
    App,
    Call,
    Caller,
    Conflict,
    Counts,
    Invalid,
    Mind,
    MindError,
    NoProject,
    Surface,
    Untrusted,
    all_commands,
    connections,
    disk,
    failure,
    files,
    frozen,
    installation,
    listening,
    log_to_stderr,
    loopback,
    projects,
    redact_error,
    refresh,
    remote,
    running,
    until_a_signal,
    without_password,
)
from mimo.extensions.team import logs, tokens
from mimo.extensions.team.hosting import INDEX, WAY, Hosting
from mimo.extensions.team.oidc import Provider, Unavailable
from mimo.extensions.team.publishing import working_copy
from mimo.extensions.team.tokens import Member, Tokens

log = logging.getLogger("mind.http")

PORT = 6463
"""The default port: MIND on the keys of a telephone."""

PATH = "/mcp"
HEALTH = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
PROJECT_HEADER = "x-mind-project"

TOKEN = "MIND_HTTP_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE = "http-token"  # noqa: S105 - the name of a file
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")

_PATIENCE_SECONDS = 2

_MOST_HOOKS = 4
"""The number of events of hooks that are answered at once."""

_OTHER_PORT = "choose another with --http PORT"

READY_SECONDS = 2.0
"""The time for which an answer on readiness is repeated without a new check."""

POLL_SECONDS = 1.0
"""The time after which an open request of a revoked token ends."""

_STATUS: Mapping[type[MindError], int] = {
    Conflict: 409,
    Invalid: 400,
    NoProject: 404,
    Untrusted: 403,
}


# The place of the server, and the token of its clients.


@frozen
class Place:
    """The place of a server, and the names by which clients reach it."""

    address: str
    port: int
    names: tuple[str, ...]
    """Names of the machine, which permit an address that is not on loopback."""

    @property
    def public_url(self) -> str:
        """Its address for clients of other machines, through a proxy that speaks TLS."""
        return f"https://{self.names[0]}{PATH}" if self.names else self.url

    @property
    def url(self) -> str:
        """Its address for clients of this machine."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}{PATH}"

    @property
    def hosts(self) -> frozenset[str]:
        """The values of the header `Host` that requests to it may have."""
        return loopback.hosts_of((*loopback.NAMES, "::1", self.address, *self.names), self.port) | {
            *self.names
        }


def place_of(text: str, names: Sequence[str]) -> Place:
    """Returns the place that `[HOST:]PORT` names. Raises `Invalid`.

    Without a name of the machine, only this machine may reach it.
    """
    host, _, port = text.rpartition(":") if ":" in text else ("", "", text)
    host = host.removeprefix("[").removesuffix("]")
    try:
        address = loopback.ADDRESS if host in ("", "localhost") else str(ip_address(host))
        number = range(65536).index(int(port)) if port else PORT
    except ValueError as error:
        raise Invalid(
            f"`{text}` is not an address", hint="give a port, or HOST:PORT with an IP address"
        ) from error
    if not ip_address(address).is_loopback and not names:
        raise Invalid(
            f"`{address}` can be reached from other machines",
            hint="leave it out, or name the host that they use with --allow-host HOST; "
            "the server speaks no TLS, so put a proxy that does before it",
        )
    if not ip_address(address).is_loopback:
        log.warning("other machines can connect, and nothing is encrypted: use a TLS proxy")
    return Place(address=address, port=number, names=tuple(name.lower() for name in names))


def token_of(
    home: Path, file: Path | None, environ: MutableMapping[str, str]
) -> tuple[str, Path | None]:
    """Returns the token of clients, and its file unless the environment has it.

    Without both, it is in the file `http-token` in the user's home of mind, which is created. The
    variable is removed, so that programs that the server starts do not inherit it. Raises
    `Invalid`, and `StorageFailed` if the file can't be read.
    """
    token = environ.pop(TOKEN, "").strip()
    if file is None and token:
        return _checked(token, f"`{TOKEN}`"), None
    path = file or home / TOKEN_FILE
    if file is None and not path.exists():
        try:
            files.write_new(path, f"{loopback.new_token()}\n".encode(), mode=0o600)
        except Conflict:
            log.info("another process created the token")
    try:
        status = path.stat()
        text = disk.read(path, limit=4096).decode("ascii").strip()
    except OSError as error:
        raise failure("read", path, error) from error
    except ValueError as error:
        raise Invalid(f"`{path}` does not hold a token") from error
    if disk.is_foreign(status) or stat.S_IMODE(status.st_mode) & 0o077:
        raise Invalid(f"other users can read or change `{path}`", hint=f"chmod 600 {path}")
    return _checked(text, f"`{path}`"), path


def _checked(token: str, source: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise Invalid(
            f"{source} does not hold a token",
            hint="16 to 512 letters, digits or any of . _ ~ + / = -, such as those of "
            "`openssl rand -base64 32`",
        )
    return token


# Requests.


class Gate:
    """The application: lets in the user's clients, and passes them to the project they name."""

    def __init__(
        self,
        hosting: Hosting,
        place: Place,
        token: str | Tokens,
        *,
        counts: Counts | None = None,
        metrics_open: bool = False,
        oidc: Mapping[str, Any] | None = None,
    ) -> None:
        """Takes the projects behind the gate, and the token of its user or those of a team.

        With `metrics_open`, the metrics are answered without a token. `oidc` has the fields of an
        OpenID provider that signs in users of the team, too. Raises `Invalid`.
        """
        self._provider = Provider(resource=place.public_url, **oidc) if oidc else None
        self._counts, self._metrics_open = counts or Counts(), metrics_open
        self._ready: tuple[float, list[str]] | None = None
        self._asking = anyio.Lock()
        self._hooks = anyio.CapacityLimiter(_MOST_HOOKS)
        self._hosting, self._token, self._hosts = hosting, token, place.hosts
        self._schemes = ("http", "https") if place.names else ("http",)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        # The server has decoded this path, while `request.url` encodes some characters again.
        path = scope["path"]
        try:
            hosts = [host.lower() for host in request.headers.getlist("host")]
            loopback.check_source(hosts, self._hosts, request.headers.get("origin"), self._schemes)
            if request.method in ("GET", "HEAD") and (answer := await self._state(request)):
                await answer(scope, receive, send)
                return
            _check_path(path)
            members = await self._holders(request)
            fields = scope.get(logs.FIELDS, {})
            fields["user"] = members[0].name if members else None
            member, root = self._admitted(request, members)
            fields["project"] = root and root.name
        except loopback.Refused as refusal:
            answer = _refusal(refusal.status, str(refusal))
            if refusal.status == 401 and self._provider:
                challenge = self._provider.challenge(path, has_token=_token_in(request) != "")
                answer.headers["WWW-Authenticate"] = challenge
            await answer(scope, receive, send)
        except MindError as error:
            redact_error(error)
            status = next((code for cls, code in _STATUS.items() if isinstance(error, cls)), 500)
            hint = f" ({error.hint})" if error.hint else ""
            answer = _refusal(status, f"{error.message}{hint}", error.wire())
            await answer(scope, receive, send)
        else:
            if remote.HEADER in request.headers and request.method == "POST":
                answer = await self._to_hook(request, member, root)
                await answer(scope, receive, send)
            elif member is None:
                await self._hosting.serve(root, scope, receive, send)
            else:
                await self._serve(member, root, scope, receive, send)

    async def _to_hook(
        self, request: Request, member: Member | None, root: Path | None
    ) -> Response:
        """Returns the answer to an event of a client whose user has no clone of the project."""
        if root is None:
            return _refusal(404, WAY)
        data = b""
        async for part in request.stream():
            data += part
            if len(data) > remote.MOST_BYTES:
                return _refusal(413, "An event has at most 1 MiB")
        memory = await self._hosting.memory(root, {})

        def answer() -> dict[str, str]:
            refresh.refresh_roughly(Call(memory.mind(), Caller(surface=Surface.MCP)))
            return remote.answered(
                data,
                home=self._hosting.home,
                root=root,
                now=disk.system_clock(),
                user=member.name if member else "",
                environ=os.environ,
            )

        try:
            return JSONResponse(await anyio.to_thread.run_sync(answer, limiter=self._hooks))
        except MindError as error:
            redact_error(error)
            return _refusal(400 if isinstance(error, Invalid) else 503, error.message)

    async def _state(self, request: Request) -> Response | None:
        """Returns the answer on the state of the server; None for any other path.

        Raises `Refused` for the metrics, unless the token is that of an administrator.
        """
        if request.url.path == HEALTH:
            return JSONResponse({"status": "ok"})
        if request.url.path == READY:
            failed = await self._unready()
            # A search of a project needs no shared index.
            is_ready = not failed or failed == [INDEX]
            body = {"status": "ready" if is_ready else "not ready", "failed": failed}
            return JSONResponse(body, 200 if is_ready else 503)
        if self._provider and (metadata := self._provider.metadata(request.scope["path"])):
            return metadata
        if request.url.path != METRICS:
            return None
        if not self._metrics_open:
            members = await self._holders(request)
            if members and members[0].scope is not tokens.Scope.ADMIN:
                raise loopback.Refused(403, "The metrics need a token with the scope admin")
        gauges = await anyio.to_thread.run_sync(self._hosting.gauges)
        text = self._counts.text(gauges)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def _unready(self) -> list[str]:
        """Returns the parts of the server that can't be used, asked once in some seconds."""
        async with self._asking:
            now = anyio.current_time()
            if self._ready is None or now - self._ready[0] > READY_SECONDS:
                failed = await anyio.to_thread.run_sync(self._hosting.unready)
                if not isinstance(self._token, str):
                    try:
                        self._token.members()
                    except MindError:
                        failed.append("tokens")
                if self._provider:
                    await self._provider.refresh()
                    failed += [] if self._provider.is_known else ["issuer"]
                self._ready = now, failed
            return self._ready[1]

    async def _serve(
        self, member: Member, root: Path | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answers a request of a user, until the token is revoked or expires.

        The SDK compares the user with the one that opened the session.
        """
        digest = member.digest
        access = AccessToken(token=digest, client_id=member.name, scopes=[], subject=digest)
        scope = {**scope, PERMISSIONS: member, "user": AuthenticatedUser(access)}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_if_revoked, member, tasks.cancel_scope)
            await self._hosting.serve(root, scope, receive, send)
            tasks.cancel_scope.cancel()

    async def _end_if_revoked(self, member: Member, request: anyio.CancelScope) -> None:
        while self._is_current(member):
            await anyio.sleep(POLL_SECONDS)
        request.cancel()

    def _is_current(self, member: Member) -> bool:
        try:
            return not isinstance(self._token, str) and self._token.is_current(
                member, disk.system_clock()
            )
        except MindError:
            return False

    async def _holders(self, request: Request) -> tuple[Member, ...]:
        """Returns the rights of a request's user, the widest first; none on a server of one user.

        A user whom the provider signs in has those of each group. Raises `Refused`.
        """
        token = _token_in(request)
        if isinstance(self._token, str):
            if not loopback.same(token, self._token):
                raise loopback.Refused(
                    401, f"The request needs the token of this server, {_STATIC}"
                )
            return ()
        now = disk.system_clock()
        try:
            if member := self._token.holder(token, now):
                return (member,)
            identity = None
            if self._provider:
                identity = await self._provider.identity(token, request.scope["path"])
            members = self._token.granted(identity, now) if identity else ()
        except MindError as error:
            reason = "; ".join(filter(None, (error.message, error.hint)))
            log.warning("the tokens can't be read: %s", reason)
            raise loopback.Refused(503, "The tokens of this server can't be read") from None
        except Unavailable:
            raise loopback.Refused(503, "The keys of the issuer can't be read") from None
        if identity is None:
            kind = "of its issuer" if self._provider else f"of this server, {_STATIC}"
            raise loopback.Refused(401, f"The request needs a valid token {kind}")
        if not members:
            raise loopback.Refused(403, "None of your groups has rights on this server")
        return members

    def _admitted(
        self, request: Request, members: tuple[Member, ...]
    ) -> tuple[Member | None, Path | None]:
        """Returns the rights that apply to a request, and the project that it names.

        Of several groups, the first one that may open the project. Raises `Refused` or `MindError`.
        """
        name = request.scope["path"].strip("/").partition("/")[2]
        if request.method not in ("GET", "POST", "DELETE"):
            raise loopback.Refused(405, "The server has no such method")
        if self._hosting.is_ending:
            raise loopback.Refused(503, "The server is ending")
        header = (
            request.headers.get(PROJECT_HEADER, "").encode("latin-1").decode("utf-8", "replace")
        )
        names = tuple(filter(None, (name, unquote(header.strip()))))
        for each in members[:-1]:
            with suppress(NoProject):
                return each, self._hosting.named(names, each)
        member = members[-1] if members else None
        return member, self._hosting.named(names, member)


_STATIC = "a static token in `Authorization: Bearer TOKEN`; there is no OAuth sign-in"


def _check_path(path: str) -> None:
    """Raises `Refused` for a path that does not exist, also without a token: clients look there."""
    if path.strip("/").partition("/")[0] != PATH.strip("/"):
        raise loopback.Refused(404, f"The server answers at {PATH}")


def _token_in(request: Request) -> str:
    """Returns the token that a request carries; empty if it has none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _refusal(status: int, reason: str, data: Any = None) -> Response:
    error: dict[str, Any] = {"code": INVALID_REQUEST, "message": reason}
    if data is not None:
        error["data"] = data
    headers = {401: {"WWW-Authenticate": "Bearer"}, 405: {"Allow": "GET, POST, DELETE"}}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return JSONResponse(body, status, headers=headers.get(status))


# The process.


class _Server(uvicorn.Server):
    """A server that leaves signals to `serve`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def main(
    *,
    at: str,
    answers: Answers,
    project: Path | None,
    toolsets: Sequence[str],
    naming: str | None,
    token_file: Path | None = None,
    tokens_file: Path | None = None,
    allowed_hosts: Sequence[str] = (),
    commits: bool = False,
    repositories: Sequence[Path] = (),
    metrics_open: bool = False,
    log_json: bool = False,
    index_url: str | None = None,
    oidc: Mapping[str, Any] | None = None,
    announce: Callable[[str], None],
) -> None:
    """Serves on HTTP until a signal; `announce` gets the URL, and the token's file if it has one.

    Raises `Invalid`, and `StorageFailed` if the port is in use or the token can't be read.
    """
    log_to_stderr(logs.Json() if log_json else logs.Brief("mind: %(message)s"))
    installation.keep()
    home = disk.home_of(os.environ)
    projects.check_home(home)
    if index_url:
        os.environ["MIND_INDEX_URL"] = without_password(index_url)
    place = place_of(at, allowed_hosts)
    token, file = _credentials(home, token_file, tokens_file, is_team=oidc is not None)
    is_team = not isinstance(token, str)
    settings = Mind(home=home, project=None).config
    commands, counts = all_commands(), Counts()

    def make(memory: listening.Memory, kind: type[App]) -> App:
        return kind(
            memory,
            commands,
            toolsets=toolsets or settings["mcp.toolsets"],
            naming=naming or settings["mcp.tool_names"],
            has_users=is_team,
            counts=counts,
        )

    default = projects.explicit(project, home).root if project else None
    copies = [working_copy(home, bare, now=disk.system_clock()) for bare in repositories]
    if default is None and len(copies) == 1:
        default = copies[0]
    hosting = Hosting(
        home, make, answers, default=default, is_team=is_team, commits=commits, copies=copies
    )
    with loopback.listening(place.port, place.address, hint=_OTHER_PORT) as listener:
        place = replace(place, port=listener.getsockname()[1])
        announce(f"listening on {place.url} (token{'s' if is_team else ''} in {file or TOKEN})")
        gate = Gate(hosting, place, token, counts=counts, metrics_open=metrics_open, oidc=oidc)
        app = logs.Requests(gate, (HEALTH, READY)) if log_json else gate
        with running.registered(home, running.Kind.HTTP, None, disk.system_clock()):
            ended = anyio.run(serve, hosting, app, listener)
    raise KeyboardInterrupt(ended.name)


def _credentials(
    home: Path, token_file: Path | None, tokens_file: Path | None, *, is_team: bool
) -> tuple[str | Tokens, Path | None]:
    if is_team and tokens_file is None:
        tokens_file = home / tokens.FILE
    if tokens_file is None:
        return token_of(home, token_file, os.environ)
    os.environ.pop(TOKEN, None)
    users = Tokens(tokens_file.absolute())
    if not users.members():
        log.warning("no user has a token yet: `mind token add` creates one, in %s", tokens_file)
    return users, tokens_file


async def serve(hosting: Hosting, app: ASGIApp, listener: socket) -> signal.Signals:
    """Serves on a socket, and returns the signal that ended it.

    Running calls are answered first.
    """
    server = _Server(connections.config(app, _PATIENCE_SECONDS))
    stopping = anyio.Event()
    async with anyio.create_task_group() as tasks:
        ended: list[signal.Signals] = await tasks.start(until_a_signal, stopping.set)
        async with anyio.create_task_group() as serving:
            serving.start_soon(server.serve, [listener])
            async with hosting.running():
                await stopping.wait()
                await hosting.finish_calls()
            server.should_exit = True
        tasks.cancel_scope.cancel()
    return ended[0]
