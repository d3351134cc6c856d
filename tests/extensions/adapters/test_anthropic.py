"""The memory tool with the real package `anthropic`: its own tool on files, and its tool runner."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("anthropic")

import anthropic
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from mimo.adapters.anthropic import AsyncMindMemoryTool, MindMemoryTool

HEADER = 6
"""Lines of the front matter of a file whose text has a heading."""
OWN = ("/memories/README.md", "/memories/MEMORY.md")


@pytest.fixture
def tools(project: Path, tmp_path: Path) -> tuple[Any, Any]:
    """Our tool, and that of the package."""
    return MindMemoryTool(project), BetaLocalFilesystemMemoryTool(str(tmp_path / "oracle"))


def answer(tool: Any, command: dict[str, Any]) -> tuple[str, bool]:
    try:
        return tool.call(command), False
    except ToolError as error:
        return str(error), True


def alike(text: str, *, shifted: bool) -> str:
    """Returns an answer without the documented differences: prefixes, and the front matter."""
    text = text.removeprefix("Error: ").replace(" and node_modules:", ":")
    text = text.replace("within the range of lines of the file: ", "within the range ")
    if shifted and (" in lines: " in text or "range [0, " in text):
        text = re.sub(r"\b[1-9]\d*\b", lambda number: str(int(number[0]) - HEADER), text)
    text = text.replace(" Please provide a valid path.", "").removesuffix(".")
    rows = []
    for line in text.split("\n"):
        number, tab, rest = line.partition("\t")
        if not tab:
            rows.append(line)
        elif not number.strip().isdigit():
            rows.append(rest)  # Without the size of a file, which has front matter here.
        elif not shifted:
            rows.append(line)
        elif int(number) > HEADER:
            rows.append(f"{int(number) - HEADER:>6}\t{rest}")
    return "\n".join(row for row in rows if not row.startswith(OWN))


A, B = "/memories/facts/a.md", "/memories/team/b.md"
STEPS: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories"},
    # Empty folders are not listed here, so one file of the folder stays.
    {"command": "create", "path": "/memories/facts/kept.md", "file_text": "# Kept\nx\n"},
    {"command": "create", "path": A, "file_text": "# Drinks\ngreen tea\nblack tea\ncoffee\n"},
    {"command": "create", "path": A, "file_text": "again"},
    {"command": "view", "path": A},
    {"command": "view", "path": f"{A}x"},
    {"command": "create", "path": B, "file_text": "# Café\n漢字\n\nend\n"},
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/team"},
    {"command": "str_replace", "path": A, "old_str": "coffee", "new_str": "cocoa\nmilk"},
    {"command": "str_replace", "path": A, "old_str": "tea", "new_str": "x"},
    {"command": "str_replace", "path": A, "old_str": "wine", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/c.md", "old_str": "x", "new_str": "y"},
    {"command": "str_replace", "path": B, "old_str": "end", "new_str": ""},
    {"command": "insert", "path": A, "insert_line": 2, "insert_text": "white tea\n"},
    {"command": "insert", "path": A, "insert_line": 0, "insert_text": "first"},
    {"command": "insert", "path": A, "insert_line": 99, "insert_text": "x"},
    {"command": "view", "path": A},
    {"command": "view", "path": A, "view_range": [2, 3]},
    {"command": "view", "path": A, "view_range": [4, -1]},
    {"command": "rename", "old_path": A, "new_path": B},
    {"command": "rename", "old_path": A, "new_path": "/memories/team/sub/a.md"},
    {"command": "rename", "old_path": A, "new_path": "/memories/d.md"},
    {"command": "rename", "old_path": "/memories/team", "new_path": "/memories/crew"},
    {"command": "view", "path": "/memories/crew"},
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/todo", "file_text": ""},
    {"command": "create", "path": "/memories/todo", "file_text": "x"},
    {"command": "rename", "old_path": "/memories/todo", "new_path": "/memories/done"},
    {"command": "view", "path": "/memories/todo"},
    {"command": "delete", "path": "/memories/done"},
    {"command": "delete", "path": "/memories/crew/b.md"},
    {"command": "delete", "path": "/memories/crew/b.md"},
    {"command": "delete", "path": "/memories/crew"},
    {"command": "delete", "path": "/memories"},
    {"command": "view", "path": "/memories"},
]


def test_the_answers_are_those_of_the_packages_own_tool(tools: tuple[Any, Any]) -> None:
    ours, theirs = tools
    for step in STEPS:
        path = step.get("path", "")
        shifted = dict(step)
        if "insert_line" in step:
            shifted["insert_line"] += HEADER
        if "view_range" in step:
            first, last = step["view_range"]
            shifted["view_range"] = [first + HEADER, last if last == -1 else last + HEADER]
        own, expected = answer(ours, shifted), answer(theirs, step)
        is_file = path.endswith(".md")
        assert own[1] == expected[1], step
        assert alike(own[0], shifted=is_file) == alike(expected[0], shifted=False), step


def test_typed_commands_and_both_kinds_of_tool_give_the_same(project: Path) -> None:
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818ViewCommand,
    )

    tool, asynchronous = MindMemoryTool(project), AsyncMindMemoryTool(project)
    create = BetaMemoryTool20250818CreateCommand(command="create", path=A, file_text="# Tea\n")
    view = BetaMemoryTool20250818ViewCommand(command="view", path=A)

    assert tool.execute(create) == tool.create(
        BetaMemoryTool20250818CreateCommand(command="create", path=B, file_text="# Tea\n")
    ).replace(B, A)
    assert tool.view(view) == asyncio.run(asynchronous.view(view))
    assert asyncio.run(asynchronous.call({"command": "view", "path": A})) == tool.execute(view)
    with pytest.raises(ToolError):
        asyncio.run(asynchronous.call({"command": "view", "path": "/etc/passwd"}))
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


class Messages(BaseHTTPRequestHandler):
    """A Messages API that has the model use the tool, and keeps the requests."""

    uses: ClassVar[tuple[dict[str, Any], ...]]
    requests: ClassVar[list[dict[str, Any]]]

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        self.requests.append(json.loads(self.rfile.read(length)))
        step = len(self.requests) - 1
        use = self.uses[step] if step < len(self.uses) else None
        block: dict[str, Any] = {"type": "text", "text": "Done."}
        if use:
            block = {"type": "tool_use", "id": f"toolu_{step}", "name": "memory", "input": use}
        message = {
            "id": f"msg_{step}",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": [block],
            "stop_reason": "tool_use" if use else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        data = json.dumps(message).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Messages]]:
    """The API on the loopback, for a client that is made without arguments."""

    class Here(Messages):
        uses: ClassVar[tuple[dict[str, Any], ...]] = (
            {"command": "view", "path": "/memories"},
            {"command": "create", "path": A, "file_text": "# Tea\nThe user likes it green\n"},
            {"command": "view", "path": "/memories/../../etc/passwd"},
        )

    Here.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Here)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    yield Here
    server.shutdown()
    server.server_close()
    thread.join()


def results(messages: type[Messages]) -> list[dict[str, Any]]:
    """Returns the tool results that the API was sent, by request or all in the last one."""
    blocks = {
        block["tool_use_id"]: block
        for request in messages.requests
        for message in request["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    }
    return list(blocks.values())


def check(messages: type[Messages], project: Path, text: str) -> None:
    assert text == "Done."
    assert messages.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    listed, created, refused = results(messages)
    assert "/memories/README.md" in str(listed["content"])
    assert f"File created successfully at: {A}" in str(created["content"])
    assert refused["is_error"]
    assert "The user likes it green" in (project / ".mind/facts/a.md").read_text("utf-8")


def test_the_tool_runner_calls_the_tool(project: Path, messages: type[Messages]) -> None:
    with anthropic.Anthropic() as client:
        runner = client.beta.messages.tool_runner(
            model="claude-test",
            max_tokens=100,
            messages=[{"role": "user", "content": "I like green tea"}],
            tools=[MindMemoryTool(project)],
        )
        final = runner.until_done()

    check(messages, project, final.content[0].text)


def test_the_asynchronous_runner_calls_the_tool(project: Path, messages: type[Messages]) -> None:
    async def run() -> str:
        async with anthropic.AsyncAnthropic() as client:
            runner = client.beta.messages.tool_runner(
                model="claude-test",
                max_tokens=100,
                messages=[{"role": "user", "content": "I like green tea"}],
                tools=[AsyncMindMemoryTool(project)],
            )
            final = await runner.until_done()
            return str(final.content[0].text)

    check(messages, project, asyncio.run(run()))


def test_the_example_on_the_page_runs(
    project: Path, messages: type[Messages], capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[3] / "docs" / "memory-tool.md"
    code = page.read_text("utf-8").split("```python\n")[2].split("```")[0]

    exec(code.replace("path/to/project", str(project)), {})  # noqa: S102 - our own page

    assert "Done." in capsys.readouterr().out
    assert len(results(messages)) == 3
