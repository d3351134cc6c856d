"""`mind mcp --http --log-json`: requests and errors as lines of JSON."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client

from mimo.extensions.team import tokens
from mimo.project.init import init
from tests.conftest import NOW
from tests.extensions.team.over_http import Served, served
from tests.extensions.team.test_team import USERS, bearer, called, post

BROKEN = """
import sys
from mimo.__main__ import main
from mimo.features.search import commands

def fails(*_, **__):
    raise RuntimeError("The swordfish is secret")

commands.searching.search = fails
sys.exit(main())
"""
"""The program `mind`, whose searches fail."""


@pytest.fixture
def server(tmp_path: Path) -> Any:
    (tmp_path / "shop").mkdir()
    init(tmp_path / "shop", tmp_path / "home", now=NOW)
    file = tmp_path / "tokens.toml"
    tokens.write(file, USERS)
    options = ["--tokens", str(file), "--log-json"]
    with served(tmp_path / "home", *options, program=("-c", BROKEN)) as running:
        yield running


def lines(server: Served) -> list[dict[str, Any]]:
    *records, end = server.stop()[1].splitlines()
    assert end == "interrupted"  # By the command line, after the server.
    return [json.loads(line) for line in records]


def test_requests_have_ids_and_name_user_project_and_status(server: Served) -> None:
    answer = post(server, "ana", "/shop", x_request_id="proxy-7")
    made = post(server, "ana", "/bank", x_request_id="not an id")
    refused = httpx2.post(f"{server.url}/shop", headers={"x-request-id": "proxy-8"}, json={})
    assert httpx2.get(f"{server.base}/healthz").status_code == 200
    assert answer.headers["x-request-id"] == "proxy-7"
    assert refused.headers["x-request-id"] == "proxy-8"
    assert re.fullmatch(r"[\w-]{16}", made.headers["x-request-id"])

    records = lines(server)

    assert all({"time", "level", "ms"} <= {*record} for record in records)
    keys = ("message", "request", "method", "user", "project", "status")
    assert [tuple(map(record.get, keys)) for record in records] == [
        ("request", "proxy-7", "POST", "ana", "shop", 200),
        ("request", made.headers["x-request-id"], "POST", "ana", None, 404),
        ("request", "proxy-8", "POST", None, None, 401),
    ]


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_an_error_has_the_id_of_its_request_and_no_text(server: Served, era: Any) -> None:
    async def talk(client: Client) -> Any:
        return await called(client, "mind_search", query="swordfish")

    assert server.asked(era, talk, "/shop", headers=bearer("ana")).is_error

    records = lines(server)
    (error,) = [record for record in records if record["level"] == "error"]
    assert error["message"].splitlines()[0] == "a call failed"
    assert "RuntimeError in fails" in error["message"]
    assert "swordfish" not in str(records)
    (request,) = [
        record
        for record in records
        if record["message"] == "request" and record["request"] == error["request"]
    ]
    assert (request["user"], request["project"], request["status"]) == ("ana", "shop", 200)
