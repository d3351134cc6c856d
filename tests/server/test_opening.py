"""The first answers over a pipe, which come before the SDK is loaded."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import InitializeRequestParams
from mcp_types.methods import validate_client_request
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from mimo.server import opening
from tests import kit

META = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
LISTS = ("tools/list", "prompts/list", "resources/templates/list")


def request(id: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def initialize(version: str) -> dict[str, Any]:
    info = {"name": "raw", "version": "1"}
    return request(1, "initialize", protocolVersion=version, capabilities={}, clientInfo=info)


def sent_at_once(folder: Path, messages: list[Any], *args: str) -> list[dict[str, Any]]:
    """Returns what a server answers to a client that closes the pipe after its last message."""
    done = subprocess.run(
        [sys.executable, "-m", "mimo", "mcp", *args],
        input="".join(f"{json.dumps(message)}\n" for message in messages),
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env=kit.environment(),
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("version", "args"),
    [
        ("2024-11-05", ["--toolsets", "core,legacy", "--tool-names", "dot"]),
        ("2025-11-25", ["--toolsets", "all", "--tool-names", "slash"]),
        ("later", []),
        (LATEST_MODERN_VERSION, []),
    ],
)
def test_the_first_answers_are_those_of_the_sdk(
    tmp_path: Path, version: str, args: list[str]
) -> None:
    if version == LATEST_MODERN_VERSION:
        methods = ("server/discover", *LISTS)
        messages = [request(id, method, _meta=META) for id, method in enumerate(methods)]
    else:
        listing = [request(id, method) for id, method in enumerate(("ping", *LISTS), 2)]
        messages = [initialize(version), *listing]
    answers = sent_at_once(tmp_path, messages, *args)
    # The SDK answers everything after a line that only it can answer.
    refusal, *expected = sent_at_once(tmp_path, ["no message", *messages], *args)

    assert "error" in refusal
    assert answers == sorted(expected, key=lambda answer: int(answer["id"]))
    assert [answer["id"] for answer in answers] == [message["id"] for message in messages]


@pytest.mark.parametrize("is_modern", [False, True])
def test_lists_are_answered_while_the_sdk_loads_for_an_earlier_request(
    project: Path, is_modern: bool
) -> None:
    params = {"_meta": META} if is_modern else {}
    first = request(1, "server/discover", **params) if is_modern else initialize("2025-06-18")
    arguments = {"operation": "list"}
    answers = sent_at_once(
        project,
        [
            first,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            request(2, "tools/call", name="memory", arguments=arguments, **params),
            request(3, "tools/list", **params),
        ],
    )

    assert [answer["id"] for answer in answers] == [1, 3, 2]
    assert answers[1]["result"]["tools"]
    assert answers[2]["result"]["structuredContent"]["total"] == 0


def test_other_extensions_leave_the_list_of_tools_to_the_sdk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recording = opening.Recording((), "underscore", {})
    assert recording.result("tools/list")
    monkeypatch.setattr(opening, "extensions", lambda: {"another": None})

    assert recording.result("tools/list") is None
    assert recording.result("prompts/list")


NAMES = (
    "experimental extensions sampling roots elicitation tasks form url context tools list cancel "
    "requests createMessage create listChanged name title version icons"
).split()
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 1, "text", []]),
    lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3)


@given(OBJECTS, OBJECTS | st.just({"name": "a client", "version": "1"}), VALUES)
def test_only_what_the_sdk_accepts_is_answered_without_it(
    capabilities: dict[str, Any], info: dict[str, Any], token: Any
) -> None:
    params = {"protocolVersion": "later", "capabilities": capabilities, "clientInfo": info}
    if opening._introduces(params):
        validate_client_request("initialize", LATEST_HANDSHAKE_VERSION, params)
        InitializeRequestParams.model_validate(params, by_name=False)
    meta: dict[str, Any] = {
        **META,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": info,
        "progressToken": token,
    }
    if opening._is_meta(meta):
        validate_client_request("tools/list", LATEST_MODERN_VERSION, {"_meta": meta})
    if opening._is_meta({"progressToken": token}):
        params = {"_meta": {"progressToken": token}}
        validate_client_request("tools/list", LATEST_HANDSHAKE_VERSION, params)
