"""Hooks of users without a clone: `mind install --url`, and what a team's server answers."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mimo.call import Call
from mimo.extensions.team import tokens
from mimo.features.clients.table import CLIENTS
from mimo.features.hooks import remote
from mimo.features.hooks.events import Say, recognised
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import saving
from mimo.project import servers
from tests.conftest import NOW
from tests.extensions.team.over_http import Served, served, two_projects
from tests.extensions.team.test_team import USERS, bearer, token_of

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home and the projects `shop` and `bank`, of which one has memories."""
    folder = two_projects(tmp_path_factory)
    mind = Mind.open(folder / "shop", environ={"MIND_HOME": str(folder / "home")})
    call = Call(mind)
    saving.store(call, saving.draft(Kind.DECISION, "Deploys of the gateway need a signed tag"))
    extra = {"severity": "critical", "detection": {"code": ["import jwt"]}}
    saving.store(call, saving.draft(Kind.EDGE, "Old tokens", title="Old jwt", extra=extra))
    mind.close()
    tokens.write(folder / "tokens.toml", USERS)
    (folder / "home/memories").mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def server(team: Path) -> Iterator[Served]:
    with served(team / "home", "--tokens", str(team / "tokens.toml")) as running:
        yield running


class User:
    """A user with a folder of code, and without a clone of the memory."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.home = folder / "code", folder / "home/.mind"
        self.folder.mkdir()
        self.environ = {
            "HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            "MIND_BACKGROUND": "off",
            servers.TOKEN: token_of(name),
        }

    def mind(self, *words: str, input: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "mimo", *words],
            cwd=self.folder,
            env=self.environ,
            input=input,
            capture_output=True,
            text=True,
            check=False,
        )

    def hook(self, name: str, **fields: Any) -> dict[str, Any]:
        """Returns what Claude Code gets."""
        event = {"session_id": "s1", "cwd": str(self.folder), "hook_event_name": name, **fields}
        done = self.mind("hook", "claude-code", input=json.dumps(event))
        assert (done.returncode, done.stderr) == (0, "")
        answer: dict[str, Any] = json.loads(done.stdout or "{}")
        output: dict[str, Any] = answer.get("hookSpecificOutput", {})
        return output

    def start(self) -> str:
        text: str = self.hook("SessionStart", source="startup").get("additionalContext", "")
        return text

    def install(self, url: str, client: str = "claude-code", *words: str) -> str:
        done = self.mind("install", client, "--scope", "project", "--url", url, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def log(self) -> str:
        path = self.home / "logs/hook.log"
        return path.read_text("utf-8") if path.exists() else ""


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path, "rita")


def test_a_user_without_a_clone_gets_notes_and_stops(
    team: Path, server: Served, user: User
) -> None:
    user.install(f"{server.url}/shop")
    entry = json.loads((user.folder / ".mcp.json").read_text("utf-8"))["mcpServers"]["mind"]
    token = "Bearer ${MIND_TOKEN}"
    url = f"{server.url}/shop"
    assert entry == {"type": "http", "url": url, "headers": {"Authorization": token}}
    assert token_of("rita") not in "".join(
        path.read_text("utf-8") for path in user.folder.rglob("*") if path.is_file()
    )

    assert "signed tag" in user.start()
    assert user.hook("SessionStart", source="resume") == {}
    code = {"file_path": str(user.folder / "auth.py"), "content": "import jwt\n"}
    stop = user.hook("PreToolUse", tool_name="Write", tool_input=code)
    assert stop["permissionDecision"] == "ask"
    assert "Old jwt" in stop["permissionDecisionReason"]
    assert user.hook("PreToolUse", tool_name="Write", tool_input=code) == {}
    new = {"session_id": "s2"}
    prompt = "How do deploys of the gateway work with a signed tag?"
    assert "signed tag" in user.hook("UserPromptSubmit", prompt=prompt, **new)["additionalContext"]
    log = (team / "shop/.mind/.local/audit.jsonl").read_text("utf-8")
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert ("rita", "hook/start") in {(each.get("user"), each["tool"]) for each in events}
    assert not (user.folder / ".mind").exists()


def test_only_code_that_an_edit_adds_is_judged(server: Served, user: User) -> None:
    user.install(f"{server.url}/shop")
    (user.folder / "auth.py").write_text("import jwt\n", encoding="utf-8")
    code = {"file_path": str(user.folder / "auth.py"), "content": "import jwt\nimport os\n"}

    assert user.hook("PreToolUse", tool_name="Write", tool_input=code) == {}


@pytest.mark.attack("http")
def test_a_server_gets_no_secret_and_no_text_that_an_edit_does_not_add(tmp_path: Path) -> None:
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    folder = tmp_path / "code/sub"
    folder.mkdir(parents=True)
    (tmp_path / "code/.git").mkdir()
    (tmp_path / "code/.env").write_text(f"TOKEN={secret}\nA=1\n", encoding="utf-8")
    (tmp_path / "diary.txt").write_text("mine\n", encoding="utf-8")

    def data(name: str, **fields: Any) -> Any:
        common = {"hook_event_name": name, "session_id": "s", "cwd": str(folder)}
        event = recognised({**common, **fields}, "claude-code")
        assert event
        return json.loads(remote._data(event, folder))

    def edits(path: str, content: str) -> Any:
        code = {"file_path": path, "content": content}
        return data("PreToolUse", tool_name="Write", tool_input=code)["edits"]

    assert edits(str(tmp_path / "code/.env"), "A=1\nB=2\n") == [[".env", "\nB=2\n"]]
    assert edits(str(tmp_path / "diary.txt"), "more of mine") == []
    assert edits("../../diary.txt", "more of mine") == []
    assert edits("a.sh", f"export TOKEN={secret}") == [
        ["sub/a.sh", "export TOKEN=[REDACTED:github_token]"]
    ]
    prompt = data("UserPromptSubmit", prompt=f"Use {secret}")["prompt"]
    assert prompt == "Use [REDACTED:github_token]"


def test_sessions_of_two_users_are_apart(server: Served, tmp_path: Path) -> None:
    for name in ("ana", "bob"):
        (tmp_path / name).mkdir()
        person = User(tmp_path / name, name)
        person.install(f"{server.url}/shop")
        assert "signed tag" in person.start()


def test_a_project_of_ones_own_comes_before_the_server(server: Served, user: User) -> None:
    user.install(f"{server.url}/shop")
    user.mind("init")

    assert user.start() == ""


@pytest.mark.attack("http")
def test_a_repository_sends_the_token_nowhere(server: Served, user: User) -> None:
    user.install(f"{server.url}/shop")
    (user.home / servers.FILE).unlink()  # As for a user who cloned these files.

    assert user.start() == ""


def test_a_server_that_does_not_answer_is_not_asked_again(user: User) -> None:
    user.install("http://127.0.0.1:1/mcp/shop")

    assert (user.start(), user.start()) == ("", "")
    assert user.log().count("does not answer") == 1


@pytest.mark.parametrize("data", [b"<html>Sign in</html>", b"[]", b'"text"'])
def test_an_answer_of_another_program_gives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    servers.assign(tmp_path, "", "https://mind.example.org/mcp/shop")
    monkeypatch.setattr(remote, "_answer", lambda *_: (200, data))
    fields = {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}
    event = recognised({**fields, "cwd": str(tmp_path)}, "codex")
    assert event
    environ = {servers.TOKEN: "x" * 32}

    assert remote.ask(event, home=tmp_path, now=NOW, environ=environ) == Say()
    assert "not an answer of mind" in (tmp_path / "logs/hook.log").read_text("utf-8")


def test_a_refused_user_gets_nothing(server: Served, user: User) -> None:
    user.install(f"{server.url}/nowhere")
    assert user.start() == ""
    assert "the server refuses: 404" in user.log()
    user.install(f"{server.url}/shop", "claude-code", "--force")
    user.environ[servers.TOKEN] = "x" * 32
    assert user.start() == ""
    assert "the server refuses: 401" in user.log()
    del user.environ[servers.TOKEN]
    assert user.start() == ""
    assert "`MIND_TOKEN` is not set" in user.log()


def test_hooks_read_the_token_from_the_file_that_the_user_named(server: Served, user: User) -> None:
    token, file = user.environ.pop(servers.TOKEN), user.home.parent / "token"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{token}\n")
    url = f"{server.url}/shop"
    refused = user.mind("install", "claude-code", "--url", url, "--token-file", str(file))
    assert "chmod 600" in refused.stderr
    file.chmod(0o600)
    file.write_text(f"{token}\x7f\n")
    refused = user.mind("install", "claude-code", "--url", url, "--token-file", str(file))
    assert "does not contain a token" in refused.stderr
    file.write_text(f"{token}\n")

    text = user.install(url, "claude-code", "--token-file", "~/token")

    assert "which the client's entry needs; hooks read the token from its file" in text
    assert "Bearer ${MIND_TOKEN}" in (user.folder / ".mcp.json").read_text("utf-8")
    assert "signed tag" in user.start()
    written = [path for path in user.folder.parent.rglob("*") if path.is_file() and path != file]
    assert [path for path in written if token.encode() in path.read_bytes()] == []
    file.unlink()
    assert user.start() == ""
    assert "the server is not asked" in user.log()
    user.mind("uninstall", "claude-code", "--scope", "project")
    assert str(file) not in (user.home / servers.FILE).read_text("utf-8")


def test_without_a_token_the_client_signs_in(server: Served, user: User) -> None:
    del user.environ[servers.TOKEN]

    text = user.install(f"{server.url}/shop")

    assert "`MIND_TOKEN` is not set" in text
    assert "headers" not in (user.folder / ".mcp.json").read_text("utf-8")


@pytest.mark.parametrize("client", [client.name for client in CLIENTS if client.remote])
def test_each_client_takes_the_entry_and_gives_it_back(user: User, client: str) -> None:
    url, scope = "https://mind.example.org/mcp/shop", "project"
    if client == "windsurf":
        scope = "user"
    words = ("install", client, "--scope", scope, "--url", url)
    done = user.mind(*words)
    assert done.returncode == 0, done.stderr
    texts = [path for path in user.folder.parent.rglob("*") if path.is_file()]
    assert any(url in path.read_text("utf-8") and path.name != servers.FILE for path in texts)
    assert servers.of_folder(user.home, user.folder) == url
    assert "unchanged" in user.mind(*words).stdout

    assert user.mind("uninstall", client, "--scope", scope).returncode == 0

    assert servers.of_folder(user.home, user.folder) is None
    assert [path for path in user.folder.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "url",
    [
        *("http://mind.example.org/mcp", "https://mind.example.org", "mind.example.org/mcp/shop"),
        *("https://a:b@mind.example.org/mcp", "https://mind.example.org/mcp/shop?x=1", ""),
    ],
)
def test_a_server_has_an_encrypted_address(user: User, url: str) -> None:
    done = user.mind("install", "claude-code", "--url", url)

    assert done.returncode == 2
    assert "is not the address of a team's server" in done.stderr
    assert not (user.home / servers.FILE).exists()


def test_a_client_that_takes_no_token_is_named(user: User) -> None:
    done = user.mind("install", "zed", "--url", "https://mind.example.org/mcp")

    assert done.returncode == 2
    assert "docs/http.md" in done.stderr


GOOD = {
    "client": "codex",
    "name": "SessionStart",
    "moment": "start",
    "session": "s9",
    "source": "startup",
    "prompt": "",
    "edits": [],
}


@pytest.mark.attack("http")
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"moment": "ended"}, 400),
        ({"moment": ["start"]}, 400),
        ({"client": "x"}, 400),
        ({"prompt": 1}, 400),
        ({"edits": [["a"]]}, 400),
        ({"edits": [["a", 1, ""]]}, 400),
        ({"edits": "abc"}, 400),
        ({"session": "\0clone"}, 200),
        ({"moment": "tool", "edits": [["/etc/passwd", "import jwt", ""]]}, 200),
        ({"prompt": "x" * 1_100_000}, 413),
    ],
)
def test_the_server_takes_events_alone(
    server: Served, changes: dict[str, Any], status: int
) -> None:
    headers = {**bearer("rita"), "x-mind-hook": "1"}
    answer = httpx2.post(f"{server.url}/shop", json={**GOOD, **changes}, headers=headers)

    assert answer.status_code == status
    assert httpx2.post(f"{server.url}/shop", content=b"{", headers=headers).status_code == 400


@pytest.mark.attack("http")
def test_the_server_refuses_events_of_other_users(server: Served) -> None:
    def status(name: str, at: str) -> int:
        headers = {**bearer(name), "x-mind-hook": "1"}
        return httpx2.post(f"{server.url}{at}", json=GOOD, headers=headers).status_code

    assert (status("sue", "/shop"), status("sue", "/bank"), status("eve", "/shop")) == (
        200,
        404,
        401,
    )
    assert status("ana", "") == 404
