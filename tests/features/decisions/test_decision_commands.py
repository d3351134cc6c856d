"""The commands for decisions, checkpoints and outcomes, with their output in a pipe."""

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.cli.main import main

Say = Callable[..., str]


@pytest.fixture
def say(call: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs a command and returns what it prints, with the letters that end ids left out.

    Handles are numbered in the order of their memories.
    """
    handles: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return handles.setdefault(match[0], f"memory{len(handles) + 1}")

    def run(*words: str, stdin: str | None = None, status: int = 0) -> str:
        stream = io.TextIOWrapper(io.BytesIO((stdin or "").encode()))
        if stdin is None:
            stream.isatty = lambda: True  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", stream)
        assert main(words, open=lambda _: call.mind) == status
        out, err = capsys.readouterr()
        printed = re.sub(r"(_2026\d{4})_[a-z2-7]{6}", r"\1", out + err)
        return re.sub(r"\b[a-z2-7]{3}aaa\b", number, printed)

    return run


@pytest.mark.req("004-03")
def test_save_decision_prints_the_new_memory(say: Say) -> None:
    output = say(
        "save", "decision", "auth_strategy", "Use JWT", "--because", "No session store is needed"
    )
    assert output == "✓ memory1  Use JWT\n"
    assert "save insight" in say("save", "--help").replace("  insight ", "save insight ")


def test_load_checkpoint_prints_the_saved_state(say: Say, clock: Any) -> None:
    say(
        "save",
        "checkpoint",
        *("Login works,", "refresh is half done", "--open-file", "src/a.py"),
        *("--next", "Write the expiry test", "--next", "Ask Bob"),
    )
    clock.forward(days=1)
    assert say("load", "checkpoint") == (
        "Checkpoint, 1 day ago\n"
        "\n"
        "Login works, refresh is half done\n"
        "\n"
        "Next steps\n"
        "  - Write the expiry test\n"
        "  - Ask Bob\n"
        "\n"
        "Open files\n"
        "  - src/a.py\n"
        "\n"
        "memory1  .mind/checkpoints/checkpoint_login_works_refresh_is_half_done_20261120.md\n"
    )


@pytest.mark.req("004-13")
@pytest.mark.req("004-18")
@pytest.mark.req("004-75")
def test_one_search_finds_all_types(say: Say) -> None:
    stored = (
        say("save", "decision", "auth", "Use JWT tokens", "--because", "Stateless"),
        say("save", "insight", "JWT tokens must be short-lived"),
        say("save", "checkpoint", "JWT tokens are issued; refresh is missing"),
    )
    for search in (("search",), ("search", "by-context"), ("search", "recent")):
        words = () if search[-1] == "recent" else ("JWT", "tokens")
        lines = say(*search, *words).splitlines()
        for line in stored:
            handle, title = line.removeprefix("✓ ").strip().split("  ")
            assert [shown for shown in lines if shown.startswith(handle) and title in shown]


@pytest.mark.req("004-14")
def test_a_failed_decision_is_marked_in_each_output(say: Say, clock: Any) -> None:
    say("save", "decision", "auth", "Use JWT", "--because", "Stateless")
    assert say("evolve", "outcome", "auth", "failed", "--reason", "Could not be revoked") == (
        "✓ memory1  Use JWT  FAILED\n"
        "  FAILED, do not repeat it: Could not be revoked\n"
        "  confidence 0.7 → 0.4\n"
    )
    clock.forward(days=1)
    say("evolve", "supersede", "auth", "Use sessions", "--because", "They can be revoked")
    assert say("search", "by-topic", "auth") == (
        "● memory2  2026-11-21  Use sessions\n"
        "│  because They can be revoked\n"
        "│\n"
        "○ memory1  2026-11-20  Use JWT  FAILED  superseded by memory2\n"
        "   FAILED, do not repeat it: Could not be revoked\n"
        "   because Stateless\n"
    )
    assert "do not repeat it" in say("search", "JWT")
    assert say("load", "context", "auth") == (
        "memory2  Use sessions\n"
        "        decision  auth  2026-11-21\n"
        "\n"
        "Reasoning\n"
        "They can be revoked\n"
        "\n"
        "Linked\n"
        "  supersedes → memory1  Use JWT  1d  FAILED  superseded\n"
        "    FAILED, do not repeat it: Could not be revoked\n"
    )


@pytest.mark.req("004-81")
def test_texts_are_read_from_a_pipe(say: Say) -> None:
    saved = say("save", "decision", "auth", "--because", "Stateless", stdin="Use JWT")
    assert saved == "✓ memory1  Use JWT\n"
    saved = say("save", "decision", "mfa", "-", "Safer", stdin="Use TOTP\n")
    assert saved == "✓ memory2  Use TOTP\n"
    assert say("save", "insight", stdin="Lesson") == "✓ memory3  Lesson\n"


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["save", "decision", "auth", "Use JWT"], "`mind save decision` needs `REASONING`"),
        (["save", "decision", "auth", "x", "y", "--because", "z"], "`reasoning` is given twice"),
        (["save", "decision", "a", "x", "y", "--link", "builds_on:nope"], "Memory not found"),
        (["evolve", "outcome", "nope", "success"], "Memory not found"),
        (["evolve", "outcome", "nope", "great"], "must be one of SUCCESS"),
        (["load", "context", "nope"], "Memory not found"),
        (["search", "by-topic"], "`mind search by-topic` needs `TOPIC`"),
    ],
)
def test_an_invalid_command_has_a_hint(say: Say, words: list[str], output: str) -> None:
    status = 1 if "not found" in output else 2
    answer = say(*words, status=status)
    assert output in answer
    assert "hint: " in answer or "twice" in answer


def test_search_recent_with_more_words_is_a_search(say: Say) -> None:
    say("save", "insight", "Recent changes broke Safari")
    assert "1 of 1 memory, newest first" in say("search", "recent")
    assert "1 of 1 memory, newest first" in say("search", "recent", "-n", "3")
    assert "1 result" in say("search", "recent", "changes")
    assert "1 result" in say("search", "--", "recent")


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Lets the editor write a text, in place of the user."""
    monkeypatch.setenv("TERM", "dumb")

    def writes(line: str) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        script = tmp_path / "editor.py"
        script.write_text(
            "import pathlib, sys\n"
            "path = pathlib.Path(sys.argv[1])\n"
            "text = path.read_text(encoding='utf-8')\n"
            f"{line}\n"
            "path.write_text(text, encoding='utf-8')\n",
            encoding="utf-8",
        )
        monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")

    return writes


def test_missing_texts_are_written_in_the_editor(
    say: Say, on_a_terminal: Callable[[str], None], call: Call
) -> None:
    on_a_terminal(
        "assert text.splitlines()[3] == '## Reasoning', text\n"
        "text = 'Use JWT\\n\\nand refresh' + text + 'Stateless\\n'"
    )
    say("save", "decision", "auth")
    (path,) = (call.mind.folder / "decisions").glob("*.md")
    assert path.read_text(encoding="utf-8").endswith(
        "---\nUse JWT\n\nand refresh\n\n## Reasoning\nStateless\n"
    )


def test_an_empty_text_saves_nothing(
    say: Say, on_a_terminal: Callable[[str], None], call: Call, tmp_path: Path
) -> None:
    on_a_terminal("pass")
    assert "nothing changed" in say("save", "decision", "auth")
    assert not (call.mind.folder / "decisions").exists()
    assert not list(tmp_path.glob("mind-*/draft.md"))


def test_a_refused_text_is_kept_in_a_file(
    say: Say, on_a_terminal: Callable[[str], None], tmp_path: Path
) -> None:
    on_a_terminal("text = 'Use JWT' + text")
    output = say("save", "decision", "auth", status=2)
    (draft,) = tmp_path.glob("mind-*/draft.md")
    assert f"your text is in {draft}" in output
    assert draft.read_text(encoding="utf-8").startswith("Use JWT")


def test_a_failure_without_a_reason_is_printed_once(say: Say, call: Call) -> None:
    say("save", "decision", "auth", "Use JWT", "--because", "Stateless")
    (file,) = (call.mind.folder / "decisions").iterdir()
    text = file.read_text("utf-8").replace("topic: auth\n", "topic: auth\noutcome: FAILED\n")
    file.write_text(text, encoding="utf-8")

    for words in (("search", "JWT"), ("search", "by-topic", "auth"), ("show", "auth")):
        assert say(*words).count("FAILED") == 1


@pytest.mark.parametrize(("option", "meant"), [("--since", "--from"), ("--until", "--to")])
def test_options_of_git_that_limit_the_time_suggest_ours(say: Say, option: str, meant: str) -> None:
    assert f"did you mean `{meant}`?" in say("list", option, "monday", status=2)


@pytest.mark.parametrize("words", [("list",), ("search", "recent")])
def test_an_empty_list_suggests_to_add_only_without_filters(
    say: Say, words: tuple[str, ...]
) -> None:
    assert "`mind add TEXT` stores one" in say(*words)

    filtered = say(*words, "--when", "2020")
    assert "no memory passes the filters" in filtered
    assert "mind add" not in filtered
