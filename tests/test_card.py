"""Each library of the card (docs/decisions/0019-the-card.md) does its work for ordinary users."""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from mimo.index.embedding.wordpiece import FOLDER

ROOT = Path(__file__).parent.parent
DECLARED = {
    re.split(r"[><=;\[ ]", line)[0].lower()
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "dependencies"
    ]
}

REPORT = """
import json, sys
sys.argv = ["mind", *sys.argv[1:]]
from mimo.__main__ import main
status, modules = main(), sorted(name.partition(".")[0] for name in sys.modules)
print(json.dumps([status, modules]), file=sys.stderr)
"""
NOTE = "---\ntitle: Tea\naliases:\n  - green tea\n  - {name: sencha}\n---\nSteep it for a minute.\n"
"""The header of another program, with YAML that mind's own reader of simple headers leaves."""
GUIDE = "# Deploying\n\nRun make deploy.\n\n## Rollback\n\nRun make rollback and wait.\n"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}}
PAGE = "# Worker {0}\n\n" + "".join(
    f"Worker {{0}} takes job {n} from its queue. " for n in range(50)
)
OWN_MODEL = f'[embedding]\nencoder = "off"\nmodel = {json.dumps(str(FOLDER))}\n'
QUESTIONS = ("how long does it brew", "which drink is hot")


def requests() -> list[str]:
    """Returns the requests of a client that asks two questions in other words than the note's."""
    name = {"clientInfo": {"name": "test", "version": "1"}}
    asked = [("initialize", HELLO | name)]
    for question in QUESTIONS:
        arguments = {"operation": "search", "query": question}
        asked.append(("tools/call", {"name": "memory", "arguments": arguments}))
    return [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(asked)
    ]


class Use(NamedTuple):
    """A command of an ordinary user that needs a library."""

    library: str
    """The name of the distribution."""
    module: str
    command: str
    requests: Sequence[str] = ()
    on_terminal: bool = False
    settings: str = ""
    """The user's own settings."""
    documents: int = 0
    """The number of pages that are memories, too."""


USES = (
    Use("click", "click", "list"),
    Use("rich", "rich", "show tea", on_terminal=True),
    Use("mcp", "mcp", "mcp", requests()[:2]),
    Use("usearch", "usearch", "mcp", requests()),
    Use("model2vec", "model2vec", "mcp", requests(), documents=60),
    Use("model2vec", "model2vec", "index", settings=OWN_MODEL),
    Use("python-frontmatter", "frontmatter", "show tea"),
    Use("markdown-it-py", "markdown_it", "ingest guide.md"),
    Use("parsedatetime", "parsedatetime", "search tea --when '3 days before yesterday'"),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a note of another program and a document."""
    monkeypatch.setenv("MIND_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    (root / ".mind" / "facts").mkdir(parents=True)
    (root / ".mind" / "config.toml").write_text("format = 1\n", "utf-8")
    (root / ".mind" / "facts" / "tea.md").write_text(NOTE, "utf-8")
    (root / "guide.md").write_text(GUIDE, "utf-8")
    return root


def imported(folder: Path, use: Use) -> set[str]:
    """Returns the packages that a process has imported when it ends."""
    terminal, output = pty.openpty() if use.on_terminal else (None, subprocess.PIPE)
    environ = {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE")}
    process = subprocess.Popen(
        [sys.executable, "-c", REPORT, *shlex.split(use.command)],
        cwd=folder,
        env=environ | {"PYTHONPATH": str(ROOT), "MIND_BACKGROUND": "off", "TERM": "xterm-256color"},
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        for request in use.requests:
            assert process.stdin
            assert process.stdout
            process.stdin.write(f"{request}\n")
            process.stdin.flush()
            assert "result" in json.loads(process.stdout.readline())
        _, errors = process.communicate()
    if terminal is not None:
        os.close(terminal)
        os.close(output)
    status, modules = json.loads(errors.splitlines()[-1])
    assert status == 0
    return set(modules)


@pytest.mark.parametrize("use", USES, ids=lambda use: use.library)
def test_a_library_of_the_card_is_loaded_for_ordinary_users(project: Path, use: Use) -> None:
    (project.parent / "home").mkdir()
    (project.parent / "home" / "config.toml").write_text(use.settings, "utf-8")
    for number in range(use.documents):
        (project / ".mind" / "facts" / f"{number}.md").write_text(PAGE.format(number), "utf-8")
    assert use.library in DECLARED
    assert use.module in imported(project, use)


def test_the_record_names_each_library_of_the_card() -> None:
    record = (ROOT / "docs" / "decisions" / "0019-the-card.md").read_text("utf-8")
    for use in USES:
        assert f"| {use.library} |" in record
