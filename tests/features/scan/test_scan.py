"""`mind scan` of a file that is too long, and secrets that a person may store."""

from pathlib import Path

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.features.scan.commands import scan
from tests import privacy_fakes
from tests.kit import put
from tests.privacy_fakes import Draw

TOKEN = privacy_fakes.TOKENS["github_token"][0](Draw(9))
MASK = "[REDACTED:github_token]"


def write(call: Call, name: str, text: str) -> Path:
    return put(call.mind.project.root / name, text)


def test_an_unreadable_file_is_reported(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write(call, ".mind/facts/a.md", "x" * 100)
    monkeypatch.setattr("mimo.features.scan.commands._LONGEST", 50)

    done = scan(call)

    assert done.clean
    assert ".mind/facts/a.md" in (done.unread or ())
    assert done.exit_status == 6


def test_a_flag_lets_a_person_store_what_looks_like_a_secret(
    call: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(call.mind.project.root)

    assert main(["add", f"The key {TOKEN}"]) == 1
    out, err = capsys.readouterr()
    assert (out, TOKEN in err) == ("", False)
    assert err.startswith("error: `content` holds a secret on line 1: github_token")
    assert main(["add", "--allow-secret", f"The key {TOKEN}"]) == 0
    assert f"The key {MASK}" in capsys.readouterr().out
    assert main(["search", "--allow-secret", "key"]) == 2
