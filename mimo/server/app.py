"""The MCP server: the answers to each kind of request, whichever transport carries it."""

import asyncio
import logging
import os
import re
import time
from asyncio import CancelledError
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from threading import Condition, Event, Lock
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequests,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    Tool,
)

from mimo import __version__
from mimo.call import Call, Caller, Console, Permissions, Surface
from mimo.call.arguments import choose
from mimo.call.spec import Effect, Spec
from mimo.call.table import CommandTable, called, listed, near
from mimo.data.disk import sha256, system_clock
from mimo.errors import Internal, MindError, RateLimited
from mimo.frozen import replace
from mimo.guard.audit import Session
from mimo.guard.guard import continued
from mimo.guard.privacy import redact_error, redacted
from mimo.operations.invoke import fault
from mimo.operations.listening import Memory
from mimo.server import completions, prompts, resources
from mimo.server.answers import answer, refused
from mimo.server.counting import Counts
from mimo.server.exposure import Context, Listing
from mimo.server.subscriptions import Subscriptions, session_id
from mimo.server.tools import ICON, INSTRUCTIONS, described
from mimo.server.wording import reworded
from mimo.surroundings import NO, Progress, Question
from mimo.text.clean import clean, one_line
from mimo.text.tool_names import underscored

log = logging.getLogger("mind")


PERMISSIONS = "mind.permissions"
"""The key of the user's rights in the scope of a request."""

MOST_SESSIONS = 256
"""The number of sessions of HTTP clients whose calls are counted."""

MOST_CALLS = 40
"""The number of calls of a project that are answered at once; others wait for one to end."""

MOST_WAITING = 16
"""The number of calls of a user that may wait for events or programs at once."""

_LINKED_SINCE = "2025-06-18"
"""The revision of the protocol since which results have links to resources."""

MOST_DECLINED = 10
"""The number of declined texts after which a server asks about no others: agents repeat calls."""

MOST_WAITING_OF_ALL = 128
"""The same for all users of a project together."""

T = TypeVar("T")

_waits_of: Counter[str | None] = Counter()
"""The number of waiting calls of each user in all projects; None is the only user of a server."""
_counting = Lock()


@contextmanager
def _waits(user: str | None) -> Iterator[None]:
    """Counts a call that waits while the block runs. Raises `RateLimited` if there are too many."""
    with _counting:
        if _waits_of[user] >= MOST_WAITING:
            raise RateLimited(
                f"{MOST_WAITING} calls wait already",
                hint="give `async`, or answer or cancel a run that waits",
                details={"retry_after": 1},
            )
        _waits_of[user] += 1
    try:
        yield
    finally:
        with _counting:
            _waits_of[user] -= 1


def listening(ctx: Context) -> Progress:
    """Returns a function that reports progress to the client of a request from its thread.

    The reported number always grows, as the protocol requires.
    """
    reported, offset = -1, 0  # `before` is the progress of earlier parts of the work.

    def report(task: str, done: int, total: int) -> None:
        nonlocal reported, offset
        offset = max(offset, reported + 1 - done)
        reported = offset + done
        # A failure to report, such as a disconnected client, must not stop the work.
        with suppress(Exception, CancelledError):
            send = ctx.session.report_progress
            anyio.from_thread.run(
                send, float(reported), float(offset + total) if total else None, task
            )

    return report


class Elicitation:
    """The questions of a call, which the client shows to its user one after the other.

    A client of the older protocol is asked during the call. In the newer one, the answer to a call
    is its first question, and the client repeats the call with the user's answer.
    """

    def __init__(
        self, ctx: Context, params: CallToolRequestParams, declined: set[str], turn: Lock
    ) -> None:
        """Takes the request, in its event loop, the texts that the user declined, and their lock.

        Of several calls at once, one asks about texts: dialogs in a heap are not read.
        """
        self._ctx, self._loop = ctx, asyncio.get_running_loop()
        self._responses = params.input_responses or {}
        self._declined, self._turn = declined, turn
        self._question: Question | None = None
        self._answer: Future[ElicitResult] = Future()
        self.required: InputRequests = {}
        """The question that the client has to answer before the call is repeated."""

    @property
    def is_offered(self) -> bool:
        """Returns whether the client shows forms to its user; without a mode, it shows forms."""
        capabilities = self._ctx.session.client_capabilities
        modes = capabilities.elicitation if capabilities else None
        return modes is not None and (modes.form is not None or modes.url is None)

    def ask(self, question: Question, seconds: float) -> str | None:
        """Returns the choice, or None if there is none in time; empty if the user declined."""
        if clean(redacted(question.text).value) != question.text:
            return ""  # The user would answer another question.
        if not question.about:
            return self._choice(question, seconds)
        if not self._turn.acquire(blocking=False):
            return ""
        declined = self._declined
        try:
            if len(declined) >= MOST_DECLINED or not declined.isdisjoint(question.about):
                return ""
            return self._choice(question, seconds)
        finally:
            self._turn.release()

    def _choice(self, question: Question, seconds: float) -> str | None:
        try:
            response = self._response(question, sha256(repr(question).encode()).hex(), seconds)
        except TimeoutError:
            return None
        except Exception:
            log.warning("the client could not ask its user", exc_info=True)
            return ""
        self._question = None  # It may be asked again.
        if response is None:
            return ""
        answer = (response.content or {}).get("answer") if response.action == "accept" else None
        choice = str(answer) if answer in question.choices else ""
        if choice in ("", NO):
            self._declined.update(question.about)
        return choice

    def _response(self, question: Question, key: str, seconds: float) -> ElicitResult | None:
        """Returns the client's answer; None if the call has to be repeated with it."""
        choices = {"type": "string", "title": "Answer", "enum": list(question.choices)}
        schema = {"type": "object", "properties": {"answer": choices}, "required": ["answer"]}
        if not self._ctx.session.can_send_request:
            if isinstance(response := self._responses.get(key), ElicitResult):
                return response
            form = ElicitRequestFormParams(message=question.text, requested_schema=schema)
            self.required = self.required or {key: ElicitRequest(params=form)}
            return None
        if question != self._question:
            shown = self._ctx.session.elicit_form(question.text, schema, self._ctx.request_id)
            self._answer = asyncio.run_coroutine_threadsafe(shown, self._loop)
            self._question = question
        return self._answer.result(seconds)

    def close(self) -> None:
        """Withdraws a question that waits."""
        self._answer.cancel()


def session_name(id: str) -> str:
    """Returns a name for a session, since its id lets a client continue it."""
    return sha256(id.encode()).hex()[:8]


def check_page(params: PaginatedRequestParams | None) -> None:
    """Raises `MCPError` if a request asks for a further page: each list has one."""
    if params and params.cursor:
        raise MCPError(INVALID_PARAMS, "unknown cursor; the list has one page: omit `cursor`")


class App:
    """The answers of the server to each kind of request."""

    def __init__(
        self,
        memory: Memory,
        commands: CommandTable,
        *,
        toolsets: Sequence[str],
        naming: str,
        listing: Listing | None = None,
        has_users: bool = False,
        counts: Counts | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Describes every tool that is listed, once. With `has_users`, every request has a user.

        `settings` are those of the user, if the server is for the user alone, on a pipe.
        """
        self._counts = counts
        self._memory = memory
        self._has_users = has_users
        self._naming = naming
        self._is_of_user = settings is not None
        self._tools = commands.tools(settings or {})
        self._names = listed(self._tools, toolsets)
        self._listed = self._described(lambda _: True)
        self._permitted: dict[frozenset[str], dict[str, Tool]] = {}
        self.listing = listing or Listing()
        self.subscriptions = Subscriptions(self._followed, self.permissions_of, self.listing)
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._working = 0
        self._idle = Condition()
        self._declined: set[str] = set()
        self._turn = Lock()
        # Not the shared default, which writes the answers and checks the health of the server.
        self._calls = anyio.CapacityLimiter(MOST_CALLS)
        self._waiting = anyio.CapacityLimiter(MOST_WAITING_OF_ALL)

    def server(self) -> Server[Any]:
        """Returns the protocol server."""
        server: Server[Any] = Server(
            "mind",
            version=__version__,
            title="mind",
            instructions=INSTRUCTIONS,
            icons=[ICON],
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            cache_hints=self.listing.lifetimes(),
            on_completion=self.complete,
            get_tool_input_schema=self.schema_of,
        )
        self.subscriptions.attach(server)
        return server

    def _described(self, is_permitted: Callable[[Spec], bool]) -> dict[str, Tool]:
        """Returns the tools of the permitted commands, as they are listed."""
        specs = {name: tuple(filter(is_permitted, self._tools[name])) for name in self._names}
        return {name: described(group, self._naming) for name, group in specs.items() if group}

    def permissions_of(self, ctx: Context) -> Permissions | None:
        """Returns the rights of a request's user; None on a server of a single user."""
        if not self._has_users:
            return None
        permissions: Permissions | None = getattr(ctx.request, "scope", {}).get(PERMISSIONS)
        if permissions is None:
            raise MCPError(INVALID_PARAMS, "the request has no user")
        return permissions

    async def memory_of(self, ctx: Context) -> Memory:
        """Returns the memory that a request works on; a transport may choose it."""
        return self._memory

    def schema_of(self, name: str) -> Mapping[str, Any] | None:
        """Returns the schema of the arguments of a listed tool; None for any other."""
        specs = called(self._tools, name)
        tool = self._listed.get(specs[0].name) if specs else None
        return tool.input_schema if tool else None

    def session_of(self, ctx: Context) -> Session | None:
        """Returns the session that a call is recorded for; None for that of the process.

        Each HTTP session of the older protocol has its own. The newer one has no sessions; there,
        each of several users has one.
        """
        id, permissions = session_id(ctx), self.permissions_of(ctx)
        if id is None and permissions is not None:
            id = f"user {permissions.name}"
        if id is None:
            return None
        if id not in self._sessions:
            self._sessions[id] = Session(os.environ, system_clock(), session_name(id))
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return self._sessions[id]

    async def list_tools(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Returns the tools in a fixed order."""
        check_page(params)
        self.listing.asked(ctx)
        permissions, tools = self.permissions_of(ctx), self._listed
        if permissions is not None:
            specs = [spec for name in self._names for spec in self._tools[name]]
            permitted = frozenset(spec.key for spec in specs if permissions.refusal(spec) is None)
            if permitted not in self._permitted:
                self._permitted[permitted] = self._described(lambda spec: spec.key in permitted)
            tools = self._permitted[permitted]
        return ListToolsResult(tools=self.listing.chosen(tools))

    async def call_tool(
        self, ctx: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Returns the result of a tool; an unknown tool is an error of the protocol.

        For a client of the newer protocol it may be a question to its user. A run that asks one is
        interrupted; its id is the state with which the client repeats the call, to resume it.
        """
        specs = called(self._tools, params.name)
        if specs is None:
            message = one_line(redacted(f"Unknown tool: {params.name}").value)
            hint = near(self._tools, params.name, self._naming)
            raise MCPError(INVALID_PARAMS, f"{message}{hint}")
        if specs[0].instead:
            log.warning(
                "`%s` is deprecated and removed in 3.0: use %s",
                specs[0].name,
                underscored(specs[0].instead),
            )
        arguments, resumed = params.arguments or {}, called(self._tools, "resume_procedure")
        if params.request_state and specs[0].waits and resumed:
            specs, arguments = resumed, {"execution_id": params.request_state}
        caller = self._caller(ctx)
        memory, cancelled = await self.memory_of(ctx), Event()
        elicitation = Elicitation(ctx, params, self._declined, self._turn)
        work = partial(
            self._answer,
            memory,
            specs,
            caller,
            arguments,
            Console(
                ask=elicitation.ask if elicitation.is_offered else None,
                progress=listening(ctx),
                halted=lambda: cancelled.is_set() or bool(elicitation.required),
            ),
        )
        started, result = time.monotonic(), "CANCELLED"
        try:
            # The SDK continues a trace that the request itself names.
            is_traced = "traceparent" in (getattr(ctx, "meta", None) or {})
            with continued({} if is_traced else getattr(ctx.request, "headers", {})):
                waits = _may_wait(specs, arguments)
                done = await self._in_thread(work, self._waiting if waits else self._calls)
            if elicitation.required:
                state = (done.structured_content or {}).get("execution_id")
                result = "INPUT_REQUIRED"
                return InputRequiredResult(input_requests=elicitation.required, request_state=state)
            link = resources.link_to(done.structured_content or {})
            if link and ctx.protocol_version >= _LINKED_SINCE:
                done.content.append(link)
            result = (done.meta or {}).get("mind/error", {}).get("error", {}).get("code", "ok")
            return done
        finally:
            if self._counts:
                self._counts.add(specs[0].name, result, time.monotonic() - started)
            cancelled.set()  # A long task checks it and stops.
            elicitation.close()

    def _caller(self, ctx: Context) -> Caller:
        return Caller(
            surface=Surface.MCP,
            name=_client(ctx),
            permissions=self.permissions_of(ctx),
            session=self.session_of(ctx),
            sees_sessions=self._is_of_user,
        )

    def _answer(
        self,
        memory: Memory,
        specs: Any,
        caller: Caller,
        arguments: Mapping[str, Any],
        console: Console,
    ) -> CallToolResult:
        try:
            call = Call(memory.mind(), caller, console)
        except MindError as error:
            redact_error(error)
            return refused(error)
        repository, author = memory.repository, None
        if caller.permissions is not None:
            author = caller.permissions.author
        notices: list[str] = []

        @contextmanager
        def committing() -> Iterator[None]:
            if repository is None:
                yield
                return
            with repository.writing(call, author) as problems:
                yield
            notices.extend(problems)

        turn: AbstractContextManager[None] = nullcontext()
        if _may_wait(specs, arguments):
            # Only what the run itself writes takes a turn: other calls write while it waits.
            turn = _waits(call.account)
            call = Call(call.mind, caller, replace(call.console, committing=committing))
        elif _writes(specs, arguments):
            turn = committing()
        try:
            with memory.encoding.pausing(), turn:
                result = answer(specs, call, arguments)
        except RateLimited as error:
            return refused(error, specs)
        if repository and arguments.get("async") and not result.is_error:
            notices.append("what this run writes is not committed; without `async` it is")
        if call.mind.source and not result.is_error:
            notices.append(call.mind.source)
        result.content += [TextContent(text=f"notice: {notice}") for notice in notices]
        return result

    async def list_resources(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """Returns the newest memories."""
        check_page(params)
        return ListResourcesResult(resources=await self._reading(ctx, resources.newest))

    async def list_templates(
        self, _: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Returns the form of a memory's URI."""
        check_page(params)
        return ListResourceTemplatesResult(resource_templates=[resources.TEMPLATE])

    async def read_resource(
        self, ctx: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """Returns the Markdown of one memory."""
        text = await self._reading(ctx, lambda call: resources.read(call, params.uri))
        return ReadResourceResult(contents=[text])

    async def list_prompts(
        self, _: Context, params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        """Returns the prompts."""
        check_page(params)
        return ListPromptsResult(prompts=list(prompts.PROMPTS))

    async def get_prompt(self, ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """Returns the text of one prompt."""
        arguments = params.arguments or {}
        return await self._reading(ctx, lambda call: prompts.prompt(call, params.name, arguments))

    async def _followed(self, ctx: Context, uris: Collection[str]) -> Memory:
        """Returns the memory of a client that may follow resources."""
        await self._reading(ctx, lambda call: resources.follow(call, uris))
        return await self.memory_of(ctx)

    async def complete(self, ctx: Context, params: CompleteRequestParams) -> CompleteResult:
        """Returns the values that an argument of a prompt or a resource may have."""
        return await self._reading(ctx, lambda call: completions.completed(call, params))

    async def _in_thread(self, work: Callable[[], T], limiter: anyio.CapacityLimiter) -> T:
        """Returns the result of work in a thread, so that the event loop can answer other requests.

        A cancelled call returns at once; its thread finishes the current write.
        """

        def counted() -> T:
            with self._idle:
                self._working += 1
            try:
                return work()
            finally:
                with self._idle:
                    self._working -= 1
                    self._idle.notify_all()

        return await anyio.to_thread.run_sync(counted, limiter=limiter, abandon_on_cancel=True)

    def finish(self) -> None:
        """Waits for the threads of cancelled calls."""
        with self._idle:
            self._idle.wait_for(lambda: self._working == 0)

    async def _reading(self, ctx: Context, read: Callable[[Call], T]) -> T:
        """Returns the answer of `read`; its errors are errors of the protocol."""
        caller = self._caller(ctx)
        memory = await self.memory_of(ctx)

        def work() -> T:
            with memory.encoding.pausing():
                return read(Call(memory.mind(), caller))

        try:
            return await self._in_thread(work, self._calls)
        except MindError as error:
            if isinstance(error, Internal):
                log.exception("a request failed", exc_info=error.__cause__ or error)
            raise _protocol_error(error) from None
        except Exception as error:
            log.exception("a request failed")
            raise _protocol_error(fault(error)) from error


def _writes(specs: Sequence[Spec], arguments: Mapping[str, Any]) -> bool:
    with suppress(MindError):
        return choose(specs, arguments)[0].effect is not Effect.READ
    return False  # The call is refused.


def _may_wait(specs: Sequence[Spec], arguments: Mapping[str, Any]) -> bool:
    """Returns whether a call may wait for long; one with `async` returns at once."""
    return any(spec.waits for spec in specs) and arguments.get("async") is not True


def _protocol_error(error: MindError) -> MCPError:
    redact_error(error)
    error = reworded(error)
    code = INTERNAL_ERROR if isinstance(error, Internal) else INVALID_PARAMS
    hint = f" ({error.hint})" if error.hint else ""
    return MCPError(code, f"{error.message}{hint}", data=error.wire())


def _client(ctx: Context) -> str:
    """Returns the client's name without secrets and characters that front matter can't have."""
    params = ctx.session.client_params
    return _cleaned(params.client_info.name[:1_000]) if params else "mcp"


@lru_cache(maxsize=MOST_SESSIONS)
def _cleaned(client: str) -> str:
    name = redacted(re.sub(r"[^\w .@/-]", "", client)).value
    return re.sub(r"[][:]", "", name)[:64].strip() or "mcp"
