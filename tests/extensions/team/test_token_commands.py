"""The `mind token` commands."""

from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.extensions.team.tokens import Scope, digest_of, read
from tests.conftest import NOW
from tests.kit import ask


def test_a_token_is_shown_once_and_stored_as_a_digest(call: Call, home: Path) -> None:
    words = ["--email", "ana@example.org", "--project", "shop", "--project", "bank", "--days", "2"]

    status, added = ask(call, "token", "add", "ana", *words, "--scope", "read")

    assert status == 0
    file = home / "tokens.toml"
    assert added["file"] == str(file)
    assert added["token"] not in file.read_text(encoding="utf-8")
    member = read(file)["ana"]
    assert member.digest == digest_of(added["token"])
    assert (member.scope, member.projects) == (Scope.READ, ("shop", "bank"))
    assert member.expires
    assert (member.expires - NOW).days == 2
    assert added["unregistered"] == ["bank"]


def test_a_user_has_one_token_until_it_is_revoked(call: Call, tmp_path: Path) -> None:
    file = ["--file", str(tmp_path / "team.toml")]
    ana = ["add", "ana", "--email", "ana@example.org", *file]

    assert ask(call, "token", *ana)[0] == 0
    status, error = ask(call, "token", *ana)
    assert status != 0
    assert "mind token rm ana" in str(error)
    rows = ask(call, "token", "list", *file)[1]["tokens"]
    assert [(row["name"], row["scope"], row["expired"]) for row in rows] == [
        ("ana", "write", False)
    ]
    assert ask(call, "token", "rm", "ana", *file)[0] == 0
    assert ask(call, "token", "list", *file)[1]["tokens"] == []
    assert ask(call, "token", "rm", "ana", *file)[0] != 0
    assert ask(call, "token", *ana)[0] == 0


def test_an_expired_token_is_marked(
    call: Call, clock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(call, "token", "add", "ana", "--email", "ana@example.org", "--days", "1")
    assert main(["token", "list"], open=lambda _: call.mind) == 0
    assert "2026-11-21 15:30:00 UTC" in capsys.readouterr().out
    clock.forward(days=2)

    assert ask(call, "token", "list")[1]["tokens"][0]["expired"]


def test_a_token_expires_within_a_hundred_years(call: Call) -> None:
    ana = ("add", "ana", "--email", "ana@example.org", "--days")

    status, error = ask(call, "token", *ana, "36501")
    assert (status, error["error"]["code"]) == (2, "VALIDATION_ERROR")
    assert ask(call, "token", *ana, "36500")[0] == 0


def test_an_agent_in_a_shell_changes_no_token(
    call: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = ("ana", "--email", "ana@example.org")
    assert ask(call, "token", "add", *ana)[0] == 0
    before = (home / "tokens.toml").read_bytes()
    monkeypatch.setenv("CLAUDECODE", "1")

    for words in (("add", "eve", *ana[1:]), ("rm", "ana")):
        status, error = ask(call, "token", *words)
        assert (status, error["error"]["code"]) == (5, "PERMISSION_DENIED")
    assert (home / "tokens.toml").read_bytes() == before
