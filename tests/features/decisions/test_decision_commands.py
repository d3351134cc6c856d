"""The commands for decisions, checkpoints and outcomes, with their output in a pipe."""

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

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
