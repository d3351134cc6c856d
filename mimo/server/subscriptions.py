"""Notifications of changed resources, and of the list of tools, to clients that ask for them.

Clients of the older protocol subscribe to a URI, those of the newer one listen to a stream. Files
also change by hand and by git, so the memory is compared while a client is subscribed.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio.to_thread
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler, ResourceUpdated
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    RequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mimo.call import Call, Caller, Permissions, Surface
from mimo.errors import MindError
from mimo.index import schema
from mimo.operations import refresh
from mimo.operations.listening import Memory
from mimo.server import resources
from mimo.server.exposure import Context, Listing

log = logging.getLogger("mind")

POLL_SECONDS = 1.0
_SEND_SECONDS = 5.0
SKIPPED = 15
"""The number of comparisons that are left out while the index does not change.

Approvals and the age of notes change without it.
"""

MOST_URIS = 50
"""The number of resources that a client may subscribe to."""

MOST_CLIENTS = 256
"""The number of clients that may be subscribed at once; the oldest is dropped."""


_SESSION_HEADER = "mcp-session-id"

SUBSCRIBED = "mind.subscribed"
"""The key by which the state of a connection shows that its end is awaited."""


class Subscriptions:
    """The clients of one server that are subscribed, and the resources that they follow."""

    def __init__(
        self,
        allow: Callable[[Context, Collection[str]], Awaitable[Memory]],
        permissions_of: Callable[[Context], Permissions | None],
        listing: Listing,
    ) -> None:
        """`allow` returns the memory of a client, or raises if it may not follow resources."""
        self._allow, self._permissions_of = allow, permissions_of
        self._listing = listing
        self._listen = ListenHandler(listing.bus, max_subscriptions=MOST_CLIENTS)
        self._clients: OrderedDict[str, tuple[ServerSession, Memory, set[str]]] = OrderedDict()
        self._streams: list[tuple[Memory, frozenset[str]]] = []
        self._following: dict[Memory, asyncio.Task[None]] = {}
        self._compared: dict[Memory, _Compared] = {}

    def attach(self, server: Server[Any]) -> None:
        """Answers the requests of both protocols, and lets `server/discover` claim no more."""
        add = server.add_request_handler
        add("resources/subscribe", SubscribeRequestParams, self.subscribe)
        add("resources/unsubscribe", UnsubscribeRequestParams, self.unsubscribe)
        add("subscriptions/listen", SubscriptionsListenRequestParams, self.listen)
        discover = server.get_request_handler("server/discover")
        if discover is None:
            return

        async def honest(ctx: Context, params: RequestParams | None) -> Any:
            """Returns the capabilities with the notifications that are sent."""
            result: Any = await discover.handler(ctx, params)
            capabilities = result.capabilities
            if capabilities.prompts:
                capabilities.prompts.list_changed = False
            if capabilities.resources:
                capabilities.resources.list_changed = False
            if capabilities.tools:
                capabilities.tools.list_changed = self._listing.changes
            return result

        add("server/discover", RequestParams, honest)

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        """Follows a resource for a client of the older protocol."""
        uri = str(params.uri)
        memory, name = await self._allow(ctx, [uri]), _name(ctx)
        _, _, uris = self._clients.setdefault(name, (ctx.session, memory, set()))
        if len(uris) >= MOST_URIS and uri not in uris:
            raise MCPError(INVALID_PARAMS, f"more than {MOST_URIS} resources are subscribed")
        self._clients[name] = ctx.session, memory, uris | {uri}
        self._clients.move_to_end(name)
        connection = ctx.session._connection  # noqa: SLF001 - the SDK reports no end otherwise
        if not connection.state.get(SUBSCRIBED):
            connection.state[SUBSCRIBED] = True
            connection.exit_stack.callback(self._clients.pop, name, None)
        if len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)
        await self._follow(ctx, memory)
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """Stops following a resource."""
        if client := self._clients.get(_name(ctx)):
            client[2].discard(str(params.uri))
            if not client[2]:
                del self._clients[_name(ctx)]
        return EmptyResult()

    async def listen(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serves a stream of the newer protocol until the client or the server ends it."""
        asked = params.notifications
        uris = frozenset(map(str, (asked.resource_subscriptions or ())[:MOST_URIS]))
        tools = True if asked.tools_list_changed and self._listing.changes else None
        served = asked.model_copy(
            update={
                "tools_list_changed": tools,
                "prompts_list_changed": None,
                "resources_list_changed": None,
                "resource_subscriptions": sorted(uris) or None,
            }
        )
        stream = await self._allow(ctx, uris), uris
        self._streams.append(stream)
        try:
            if uris:
                await self._follow(ctx, stream[0])
            with self._listing.followed(counts=bool(tools)):
                return await self._listen(ctx, params.model_copy(update={"notifications": served}))
        finally:
            self._streams.remove(stream)

    def close(self) -> None:
        """Ends all streams, and the comparing."""
        self._listen.close()
        for task in self._following.values():
            task.cancel()

    def follows(self, memory: Memory) -> bool:
        """Returns whether a client follows a resource of a memory."""
        return memory in self._following

    def _uris(self, memory: Memory) -> set[str]:
        """Returns the resources of a memory that are followed."""
        uris: set[str] = set()
        for _, subject, client_uris in self._clients.values():
            uris |= client_uris if subject is memory else set()
        for subject, streamed in self._streams:
            uris |= streamed if subject is memory else set()
        return uris

    async def _follow(self, ctx: Context, memory: Memory) -> None:
        """Returns after the present state of the followed resources of a memory is known.

        A change that comes right after the subscription is compared with that state.
        """
        compared = self._compared.setdefault(memory, _Compared(memory, self._permissions_of(ctx)))
        await self._compare(memory, compared)
        if memory not in self._following:
            task = asyncio.get_running_loop().create_task(self._poll_for(memory, compared))
            self._following[memory] = task

    async def _poll_for(self, memory: Memory, compared: "_Compared") -> None:
        """Compares the resources of a memory until no client follows any."""
        try:
            while self._uris(memory):
                await asyncio.sleep(POLL_SECONDS)
                await self._compare(memory, compared)
        finally:
            del self._following[memory]
            self._compared.pop(memory, None)

    async def _compare(self, memory: Memory, compared: "_Compared") -> None:
        await compared.compare(self._uris(memory), partial(self._report, memory))

    async def _report(self, memory: Memory, uri: str) -> None:
        for session, subject, uris in list(self._clients.values()):
            if subject is memory and uri in uris:
                with anyio.move_on_after(_SEND_SECONDS):  # A client that does not read.
                    await session.send_resource_updated(uri)
        if any(subject is memory and uri in uris for subject, uris in self._streams):
            await self._listing.bus.publish(ResourceUpdated(uri=uri))


class _Compared:
    """The states of a memory's resources when they were last compared."""

    def __init__(self, memory: Memory, permissions: Permissions | None) -> None:
        self._memory = memory
        self._permissions = permissions
        """Those of one of several users of a server: what all of them may see is the same."""
        self._states: dict[str, str | None] = {}
        self._revision: object = None
        self._skipped = 0
        self._turn, self._free = anyio.Lock(), anyio.CapacityLimiter(1)

    async def compare(self, uris: Iterable[str], report: Callable[[str], Awaitable[None]]) -> None:
        """Reports the resources that changed since the last comparison; a new one has not.

        What is not reported, because the caller is cancelled, the next comparison reports.
        """
        targets = frozenset(uris)
        async with self._turn:
            looked = await anyio.to_thread.run_sync(
                self._look, targets, limiter=self._free, abandon_on_cancel=True
            )
            if looked is None:
                return
            states, revision, skipped = looked
            for uri in sorted(states):
                if self._states.get(uri, states[uri]) != states[uri]:
                    await report(uri)
            old_states = {uri: state for uri, state in self._states.items() if uri in targets}
            self._states, self._revision, self._skipped = old_states | states, revision, skipped

    def _look(self, uris: frozenset[str]) -> tuple[dict[str, str | None], object, int] | None:
        """Returns the present states of the resources that must be compared; None if that fails."""
        try:
            caller = Caller(surface=Surface.CLI, permissions=self._permissions)
            call = Call(self._memory.mind(), caller)
            revision = _revision(call)
        except (MindError, OSError) as error:
            log.info("resources were not compared: %s", type(error).__name__)
            return None
        new = uris - self._states.keys()
        skipped = self._skipped + (not new)
        targets = uris
        if revision == self._revision and skipped < SKIPPED:
            targets = new  # Otherwise each of many subscriptions would read the resources of all.
        else:
            skipped = 0
        return {uri: resources.state(call, uri) for uri in targets}, revision, skipped


def _revision(call: Call) -> list[int]:
    """Returns numbers that change whenever the memory or the user's memory does."""
    minds = [call if call.mind.has_project else None, call.user()]
    revisions = []
    for each in filter(None, minds):
        with suppress(MindError):
            revisions.append(refresh.up_to_date(each).ask(schema.totals).revision)
    return revisions


def session_id(ctx: Context) -> str | None:
    """Returns the id of the HTTP session of a request; None on a pipe, and without a session.

    The newer protocol has no sessions: there the SDK does not check the header.
    """
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return None
    id: str | None = getattr(ctx.request, "headers", {}).get(_SESSION_HEADER)
    return id


def _name(ctx: Context) -> str:
    """Returns the id of an HTTP session; on a pipe there is one client."""
    return session_id(ctx) or ""
