"""A server on our own adapter with the tools, resources and prompts of the conformance suite.

What it does not answer itself goes to `App`, so that listing, calling, errors, subscriptions and
both transports are ours.
"""

import json
import warnings
from typing import Any

import anyio
from mcp import MCPError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
)

from mimo.server.app import App
from mimo.server.exposure import Context

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5E"
    "rkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="

ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADERS = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "query": {"type": "string"},
    },
    "required": ["region", "query"],
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}

EMBEDDED = EmbeddedResource(
    resource=TextResourceContents(
        uri="test://embedded-resource",
        mime_type="text/plain",
        text="This is an embedded resource content.",
    )
)
MIXED = EmbeddedResource(
    resource=TextResourceContents(
        uri="test://mixed-content-resource",
        mime_type="application/json",
        text='{"test":"data","value":123}',
    )
)
IMAGE = ImageContent(data=PNG, mime_type="image/png")

ANSWERS: dict[str, list[Any]] = {
    "test_simple_text": [TextContent(text="This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AudioContent(data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [EMBEDDED],
    "test_multiple_content_types": [
        TextContent(text="Multiple content types test:"),
        IMAGE,
        MIXED,
    ],
    "test_tool_with_logging": [TextContent(text="Done")],
    "test_logging_tool": [TextContent(text="Done")],
    "test_streaming_elicitation": [TextContent(text="Done")],
    "test_missing_capability": [TextContent(text="Done")],
    "test_tool_with_progress": [TextContent(text="Done")],
    "test_custom_headers": [TextContent(text="Done")],
    "json_schema_2020_12_tool": [TextContent(text="Done")],
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "json_schema_2020_12_tool": SCHEMA,
    "test_custom_headers": HEADERS,
}
TOOLS = {
    name: Tool(
        name=name, description=f"The test tool {name}", input_schema=SCHEMAS.get(name, NOTHING)
    )
    for name in (*ANSWERS, "test_error_handling")
}
PROMPTS = [
    Prompt(description="A prompt of the suite", name="test_simple_prompt"),
    Prompt(
        description="A prompt of the suite",
        name="test_prompt_with_arguments",
        arguments=[PromptArgument(name=name, required=True) for name in ("arg1", "arg2")],
    ),
    Prompt(
        description="A prompt of the suite",
        name="test_prompt_with_embedded_resource",
        arguments=[PromptArgument(name="resourceUri", required=True)],
    ),
    Prompt(description="A prompt of the suite", name="test_prompt_with_image"),
]
STATIC = "test://static-text"
BINARY = "test://static-binary"
TEMPLATE = "test://template/{id}/data"


class Fixture(App):
    """An application that answers the suite's own requests first."""

    def server(self) -> Any:
        """Returns the protocol server, which also takes levels of logging."""
        server = super().server()
        server.add_request_handler("logging/setLevel", SetLevelRequestParams, self.set_level)
        return server

    async def set_level(self, _: Context, __: SetLevelRequestParams) -> EmptyResult:
        """Takes any level."""
        return EmptyResult()

    def schema_of(self, name: str) -> Any:
        """Returns the schema of a tool's arguments."""
        return TOOLS[name].input_schema if name in TOOLS else super().schema_of(name)

    async def list_tools(self, ctx: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        """Returns our tools and the suite's."""
        own = await super().list_tools(ctx, _)
        return ListToolsResult(tools=[*own.tools, *TOOLS.values()])

    async def call_tool(
        self, ctx: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Returns the result of a tool."""
        if params.name not in TOOLS:
            return await super().call_tool(ctx, params)
        if params.name in ("test_tool_with_logging", "test_logging_tool"):
            for text in ("started", "processing data", "completed"):
                await _logged(ctx, f"Tool {text}")
                await anyio.sleep(0.05)
        capabilities = ctx.session.client_capabilities
        if params.name == "test_missing_capability" and not (
            capabilities and capabilities.sampling
        ):
            data: Any = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", data=data)
        if params.name == "test_tool_with_progress":
            for done in (0, 50, 100):
                await ctx.session.report_progress(done, 100)
                await anyio.sleep(0.05)
        if params.name == "test_error_handling":
            error = TextContent(text="This tool intentionally returns an error for testing")
            return CallToolResult(content=[error], is_error=True)
        return CallToolResult(content=ANSWERS[params.name])

    async def list_resources(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """Returns our resources and the suite's."""
        own = await super().list_resources(ctx, params)
        suite = [
            Resource(uri=STATIC, name="static text", mime_type="text/plain"),
            Resource(uri=BINARY, name="static binary", mime_type="image/png"),
        ]
        return ListResourcesResult(resources=[*own.resources, *suite])

    async def list_templates(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Returns our template and the suite's."""
        own = await super().list_templates(ctx, params)
        suite = ResourceTemplate(uri_template=TEMPLATE, name="template")
        return ListResourceTemplatesResult(resource_templates=[*own.resource_templates, suite])

    async def read_resource(
        self, ctx: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """Returns a resource."""
        uri = str(params.uri)
        content: Any
        if uri == STATIC:
            text = "This is the content of the static text resource."
            content = TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        elif uri == BINARY:
            content = BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        elif uri.startswith("test://template/"):
            id = uri.split("/")[3]
            data = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
            content = TextResourceContents(
                uri=uri, mime_type="application/json", text=json.dumps(data)
            )
        else:
            return await super().read_resource(ctx, params)
        return ReadResourceResult(contents=[content])

    async def list_prompts(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        """Returns our prompts and the suite's."""
        own = await super().list_prompts(ctx, params)
        return ListPromptsResult(prompts=[*own.prompts, *PROMPTS])

    async def get_prompt(self, ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """Returns a prompt."""
        given = params.arguments or {}
        content: list[Any]
        match params.name:
            case "test_simple_prompt":
                content = [TextContent(text="This is a simple prompt for testing.")]
            case "test_prompt_with_arguments":
                text = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
                content = [TextContent(text=text)]
            case "test_prompt_with_embedded_resource":
                embedded = TextResourceContents(
                    uri=given["resourceUri"],
                    mime_type="text/plain",
                    text="Embedded resource content for testing.",
                )
                text = "Please process the embedded resource above."
                content = [EmbeddedResource(resource=embedded), TextContent(text=text)]
            case "test_prompt_with_image":
                content = [IMAGE, TextContent(text="Please analyze the image above.")]
            case _:
                return await super().get_prompt(ctx, params)
        return GetPromptResult(
            messages=[PromptMessage(role="user", content=part) for part in content]
        )

    async def complete(self, ctx: Context, params: CompleteRequestParams) -> CompleteResult:
        """Returns completions."""
        if isinstance(params.ref, PromptReference) and params.ref.name.startswith("test_"):
            return CompleteResult(completion=Completion(values=["test one", "test two"]))
        return await super().complete(ctx, params)

    async def _followed(self, ctx: Context, uris: Any) -> Any:
        """Returns the memory; the suite subscribes to a resource of its own."""
        if all(uri.startswith("test://") for uri in uris):
            return self._memory
        return await super()._followed(ctx, uris)


async def _logged(ctx: Context, text: str) -> None:
    """Sends a line of log, unless the client's request permits none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        send = ctx.session.send_log_message
        await send(level="info", data=text, related_request_id=ctx.request_id)
