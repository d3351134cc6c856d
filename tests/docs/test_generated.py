"""Generated pages are up to date, and the completion scripts work."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*argv: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        argv,
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        check=False,
    )


def test_manual_pages_reference_and_signatures_follow_the_declarations() -> None:
    done = run(sys.executable, "scripts/generate.py", "--check")

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_what_the_program_says(tmp_path: Path, project: Path) -> None:
    """The program's own answer reaches the shell, files where a file is meant."""
    program = tmp_path / "mind"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mimo "$@"\n', encoding="utf-8")
    program.chmod(0o755)

    def completed(*words: str) -> list[str]:
        typed = " ".join(f"'{word}'" for word in words)
        script = (
            f"source completions/mind.bash; COMP_WORDS=({typed}); "
            f'COMP_CWORD={len(words) - 1}; _mind mind; printf "%s\\n" "${{COMPREPLY[@]}}"'
        )
        path = f"{tmp_path}:{os.environ['PATH']}"
        return run("bash", "-c", script, PATH=path).stdout.split("\n")[:-1]

    assert completed("mind", "mem") == ["memory"]
    assert completed("mind", "memory", "s") == ["store", "search", "stats"]
    assert completed("mind", "memory", "list", "--sort", "") == [
        "recent",
        "importance",
        "decay_score",
    ]
    assert completed("mind", "add", "--ty") == ["--type"]
    assert completed("mind", "show", "no_such") == [""]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.attack("command in a completed word")
def test_bash_runs_nothing_of_a_completed_word(tmp_path: Path) -> None:
    """A topic of another author is inserted into a command line, which the user then runs."""
    words = ["$(touch x)", "`touch x`", "a;touch x", "a b", "'", "-rf", "é>x"]
    program = tmp_path / "mind"
    program.write_text(f"#!/bin/sh\nprintf '%s\\t\\n' {' '.join(map(shlex.quote, words))}\n")
    program.chmod(0o755)
    script = (
        "source completions/mind.bash; COMP_WORDS=(mind list); COMP_CWORD=1; _mind mind; "
        'for word in "${COMPREPLY[@]}"; do eval "set -- $word"; printf "%s\\n" "$@"; done'
    )
    done = run("bash", "-c", script, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.stdout.split("\n")[:-1] == words
    assert not (ROOT / "x").exists()
