"""`mind ingest` and the tool `ingest`: what they answer, and what a person sees."""

import json
from contextlib import closing

import pytest

from mimo.call import Call
from mimo.call.schema import input_schema
from mimo.call.table import all_commands
from mimo.errors import SandboxViolation
from mimo.features.ingest.commands import ingest
from mimo.features.notes.memory_tool import list_memories
from mimo.features.notes.memory_tool import search as memory_search
from mimo.features.notes.reading import show
from mimo.mind import Mind
from mimo.project.init import init
from tests.conftest import NOW, git
from tests.kit import do, put, repository

SPEC = all_commands().at("ingest")

GUIDE = """\
# Guide

Words of introduction for all.

## Install

Run make install, then wait.
"""


@pytest.fixture(autouse=True)
def _there(project, monkeypatch):
    monkeypatch.chdir(project)
    (project / "docs").mkdir()
    (project / "docs" / "guide.md").write_text(GUIDE)
    (project / "docs" / "notes.txt").write_text("Some words to keep.\n\nSome other words.\n")


@pytest.mark.req("000-63")
@pytest.mark.req("000-64")
def test_the_tool_accepts_the_documented_arguments():
    schema = input_schema([SPEC])
    assert schema["required"] == ["path"]
    taken = {name: field for name, field in schema["properties"].items() if name != "paths"}
    assert "paths" not in schema["properties"]
    assert taken["path"]["type"] == "string"
    assert taken["strategy"]["enum"] == [
        "auto",
        "paragraphs",
        "lines",
        "sentences",
        "markdown",
        "whole",
    ]
    defaults = {name: taken[name].get("default") for name in ("strategy", "category", "importance")}
    assert defaults == {"strategy": "auto", "category": "fact", "importance": 0.5}
    assert taken["chunk_size"]["type"] == taken["overlap"]["type"] == "integer"
    assert SPEC.description == "Ingest file content into memory with automatic chunking"


def test_a_huge_chunk_is_kept_whole_and_listed_by_its_beginning(call, project):
    text = json.dumps([f"the answer is {number}" for number in range(10_000)])
    (project / "big.json").write_text(text)
    (id_,) = ingest(call, "big.json").ids
    assert show(call, id_).content == text
    (row,) = list_memories(call).memories
    assert (row.content, row.excerpt) == (text[:2_000], True)
    (hit,) = memory_search(call, "what is the answer 4321").results
    assert hit.excerpt
    assert "4321" in hit.content


@pytest.mark.attack("privacy")
def test_an_agent_in_a_linked_worktree_reads_files_of_that_alone(tmp_path, home):
    main = repository(tmp_path / "main")
    put(main / ".gitignore", ".mind/\nprivate.md\n")
    put(main / "guide.md", GUIDE)
    git(main, "add", "-A")
    git(main, "commit", "-qm", "x")
    init(main, home, now=NOW)
    put(main / "private.md", "# Mine\n\nNot for an agent in another worktree.\n")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))

    with closing(Mind.open(tmp_path / "linked", environ={"MIND_HOME": str(home)})) as mind:
        call = Call(mind)
        for path in (str(main / "private.md"), "../main/private.md"):
            with pytest.raises(SandboxViolation):
                do(call, "ingest", "claude-code", path=path)
        assert do(call, "ingest", "claude-code", path="guide.md").chunks_created == 2
