"""The SDK of a server on a pipe is loaded without its parts for HTTP, which can be loaded later."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def told(code: str) -> Any:
    """Returns what a Python process prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", f"import json, sys\nfrom mimo.server import sdk\n{code}"],
        capture_output=True,
        cwd=ROOT,
        encoding="utf-8",
        check=True,
    )
    return json.loads(done.stdout)


def test_the_parts_that_are_left_out_can_be_loaded_later() -> None:
    left_out, client, starlette = told("""
sdk.load()
left_out = sorted({"mcp.client", "starlette"} & set(sys.modules))
import mcp
client = mcp.Client("https://localhost/mcp")
from starlette.requests import Request
print(json.dumps([left_out, type(client).__module__, Request.__module__]))
""")

    assert left_out == []
    assert client == "mcp.client.client"
    assert starlette == "starlette.requests"


def test_an_sdk_that_needs_more_is_loaded_as_a_whole() -> None:
    # As if a base class of the server were among the parts for HTTP.
    modules = told("""
sdk._LEFT_OUT |= {"mcp.shared.dispatcher"}
sdk.load()
from mimo.server import stdio
print(json.dumps([callable(stdio.run), "mcp.client" in sys.modules]))
""")

    assert modules == [True, True]
