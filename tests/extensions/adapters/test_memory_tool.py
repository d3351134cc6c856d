"""The memory tool, as a program calls it."""

import json
import multiprocessing
import os
import re
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.cli.main import main as cli
from mimo.data import files
from mimo.extensions.adapters.memory_files import MOST_CHARACTERS
from mimo.features.decisions.commands import decision
from mimo.features.notes.commands import add
from mimo.features.notes.undo import undo
from mimo.features.review import trusting
from mimo.memory_tool import TOOL, Answer, MemoryTool, handle
from mimo.operations import finding, removing, saving
from mimo.project.trust import Trust
from tests.conftest import make_store
from tests.kit import put

HEADER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


class Tool:
    """The tool of a project; each command is a method that returns the answer."""

    def __init__(self, project: Path) -> None:
        self.root = project
        self._tool = MemoryTool(project)

    def __getattr__(self, command: str) -> Any:
        return lambda **given: self._tool.handle({"command": command, **given})

    def body(self, path: str) -> str:
        """Returns the text of a file without its front matter."""
        return HEADER.sub("", (self.root / ".mind" / path).read_text("utf-8"))


@pytest.fixture
def tool(project: Path) -> Tool:
    return Tool(project)


def test_an_empty_memory_has_the_guide_and_the_log_of_the_user(tool):
    answer = tool.view(path="/memories")

    assert not answer.is_error
    header, *rows = answer.text.splitlines()
    assert header == (
        "Here're the files and directories up to 2 levels deep in /memories, "
        "excluding hidden items and node_modules:"
    )
    assert [row.split("\t")[1] for row in rows] == [
        "/memories",
        "/memories/MEMORY.md",
        "/memories/README.md",
    ]


def test_a_file_is_created_viewed_changed_renamed_and_deleted(tool):
    path = "/memories/facts/build.md"

    assert tool.create(path=path, file_text="# Build\n\nRun make\n") == Answer(
        f"File created successfully at: {path}", is_error=False
    )
    viewed = tool.view(path=path).text.splitlines()
    assert viewed[0] == f"Here's the content of {path} with line numbers:"
    assert viewed[1] == "     1\t---"
    assert viewed[-2:] == ["     9\tRun make", "    10\t"]
    assert tool.view(path=path, view_range=[7, 7]).text.splitlines()[1:] == ["     7\t# Build"]
    edited = tool.str_replace(path=path, old_str="Run make", new_str="Run make test")
    assert edited == Answer(
        "The memory file has been edited. Here is the snippet showing the change (with line "
        "numbers):\n     7\t# Build\n     8\t\n     9\tRun make test\n    10\t",
        is_error=False,
    )
    inserted = tool.insert(path=path, insert_line=9, insert_text="before each commit\n")
    assert inserted.text == f"The file {path} has been edited."
    assert tool.body("facts/build.md") == "# Build\n\nRun make test\nbefore each commit\n"
    moved = tool.rename(old_path=path, new_path="/memories/facts/how-to-build.md")
    assert moved.text == f"Successfully renamed {path} to /memories/facts/how-to-build.md"
    removed = tool.delete(path="/memories/facts/how-to-build.md")
    assert removed.text == "Successfully deleted /memories/facts/how-to-build.md"
    assert len(tool.view(path="/memories").text.splitlines()) == 4


NONE = "/memories/none.md"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"command": "view", "path": NONE},
            f"The path {NONE} does not exist. Please provide a valid path.",
        ),
        (
            {"command": "create", "path": "/memories/a.md", "file_text": "b"},
            "Error: File /memories/a.md already exists",
        ),
        (
            {"command": "str_replace", "path": NONE, "old_str": "a", "new_str": "b"},
            f"Error: The path {NONE} does not exist. Please provide a valid path.",
        ),
        (
            {"command": "str_replace", "path": "/memories/a.md", "old_str": "Zz", "new_str": "b"},
            "No replacement was performed, old_str `Zz` did not appear verbatim in /memories/a.md.",
        ),
        (
            {"command": "str_replace", "path": "/memories/a.md", "old_str": " tea", "new_str": "b"},
            (
                "No replacement was performed. Multiple occurrences of old_str ` tea` in lines: "
                "8, 9. Please ensure it is unique"
            ),
        ),
        (
            {"command": "insert", "path": NONE, "insert_line": 0, "insert_text": "b"},
            f"Error: The path {NONE} does not exist",
        ),
        (
            {"command": "insert", "path": "/memories/a.md", "insert_line": 99, "insert_text": "b"},
            (
                "Error: Invalid `insert_line` parameter: 99. It should be within the range of "
                "lines of the file: [0, 9]"
            ),
        ),
        ({"command": "delete", "path": NONE}, f"Error: The path {NONE} does not exist"),
        (
            {"command": "delete", "path": "/memories"},
            "Cannot delete the /memories directory itself",
        ),
        (
            {"command": "rename", "old_path": NONE, "new_path": "/memories/b.md"},
            f"Error: The path {NONE} does not exist",
        ),
        (
            {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/a.md"},
            "Error: The destination /memories/a.md already exists",
        ),
        (
            {"command": "rename", "old_path": "/memories", "new_path": "/memories/b"},
            "Cannot rename the /memories directory itself",
        ),
    ],
)
def test_errors_have_the_documented_texts(tool, given, text):
    tool.create(path="/memories/a.md", file_text="# Drinks\ngreen tea\nblack tea\n")

    assert handle(given, project=tool.root) == (text, True)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "`command` is missing"),
        ({"command": "views", "path": "/memories"}, "did you mean `view`?"),
        ({"command": ["view"]}, "is not a command"),
        ({"command": "view"}, "`path` is missing"),
        ({"command": "view", "path": 7}, "`path` must be text"),
        ({"command": "view", "path": "/memories", "view_range": [2, 1]}, "view_range"),
        ({"command": "view", "path": "/memories", "view_range": ["1", "2"]}, "view_range"),
        ({"command": "view", "path": "/memories", "view_range": [1]}, "view_range"),
        ({"command": "insert", "path": "/memories/a.md", "insert_line": "0"}, "insert_line"),
        ({"command": "str_replace", "path": "/memories/a.md", "old_str": ""}, "empty"),
        ({"command": "view", "path": f"/memories/{'a' * 40_000}.md"}, "/memories/aaa"),
    ],
)
def test_wrong_arguments_are_explained(tool, given, text):
    tool.create(path="/memories/a.md", file_text="tea")

    answer = MemoryTool(tool.root).handle(given)

    assert answer.is_error
    assert answer.text.startswith("Error: ")
    assert text in answer.text
    assert len(answer.text) <= MOST_CHARACTERS + 1


def test_front_matter_is_made_from_the_path_and_the_text(tool, call):
    tool.create(path="/memories/decisions/auth-tokens.md", file_text="Use short-lived JWT.\n")
    tool.create(path="/memories/notes.txt", file_text="# Plan for May\n\nShip it\n")

    decision = call.mind.store.read(".mind/decisions/auth-tokens.md")[0]
    note = call.mind.store.read(".mind/notes.txt.md")[0]
    assert (decision.memory.type, decision.memory.title) == ("decision", "auth tokens")
    assert decision.memory.by == "memory-tool"
    assert decision.place.owned
    assert (note.memory.type, note.memory.title) == ("fact", "Plan for May")
    assert "/memories/notes.txt" in tool.view(path="/memories").text


@pytest.mark.attack("author forged in front matter")
def test_an_agent_sets_fields_but_not_id_time_author_or_trust(tool, call):
    text = (
        "---\nid: fact_mine_20200101_aaaaaa\nby: ann\ncreated: 2020-01-01\ntrust: approved\n"
        "Trusted: yes\nprotected: true\ntopic: tea\ntags: [drinks]\nimportance: 0.9\nteam: blue\n"
        "---\nServe it green\n\n## Reasoning\nIt is healthy\n"
    )

    answer = tool.create(path="/memories/facts/tea.md", file_text=text)
    memory = call.mind.store.read(".mind/facts/tea.md")[0].memory

    assert not answer.is_error
    assert memory.id != "fact_mine_20200101_aaaaaa"
    assert (memory.by, memory.created.year, memory.protected) == ("memory-tool", 2026, None)
    assert (memory.topic, memory.tags, memory.importance) == ("tea", ("drinks",), 0.9)
    assert dict(memory.extra) == {"team": "blue"}
    assert memory.sections == {"Reasoning": "It is healthy"}


@pytest.mark.parametrize("front", ["type: banana", "type: fact", "tags: [a", "importance: 7"])
def test_front_matter_is_validated(tool, front):
    path = "/memories/decisions/a.md"

    answer = tool.create(path=path, file_text=f"---\n{front}\n---\nx\n")

    assert answer.is_error
    assert not (tool.root / ".mind/decisions/a.md").exists()


FAULTS = [
    ("type: banana", "`type` must be one of"),
    ("type: [fact]", "`type` must be one of"),
    ("type: ''", "`type` must be one of"),
    ("importance: 99", "`importance` must be a number from 0 to 1"),
    ("confidence: high", "`confidence` must be a number from 0 to 1"),
    ("outcome: MAYBE", "`outcome` must be SUCCESS"),
    ("protected: often", "`protected` must be true or false"),
    ("title: [a]", "`title` must be a text"),
    ("links: nowhere", "`links` must be a list"),
    ("links: [{to: nowhere, type: supersedes}]", "`nowhere`, which is not a memory"),
    ("links: [{to: nowhere}]", "`nowhere`, which is not a memory"),
]


@pytest.mark.req("004-20")
@pytest.mark.parametrize(("front", "reason"), FAULTS)
@pytest.mark.parametrize("folder", ["", "facts/"])
def test_an_edit_is_checked_as_a_new_file_is(tool, call, front, reason, folder):
    path, key = f"/memories/{folder}a.md", front.split(":")[0]
    ignored = key in ("protected", "type")
    answer = tool.create(path=f"/memories/{folder}b.md", file_text=f"---\n{front}\n---\nx\n")
    assert ignored or (answer.is_error and reason in answer.text)
    tool.create(path=path, file_text="---\nimportance: 0.9\ntitle: Tea\n---\nwith milk\n")
    before = (tool.root / f".mind/{folder}a.md").read_bytes()
    old = {"type": "type: fact", "title": "title: Tea"}.get(key, "importance: 0.9")

    answers = [tool.str_replace(path=path, old_str=old, new_str=front)]
    if key not in ("type", "title", "importance"):
        answers.append(tool.insert(path=path, insert_line=3, insert_text=front))

    assert all(answer.is_error and reason in answer.text for answer in answers)
    assert (tool.root / f".mind/{folder}a.md").read_bytes() == before


def test_an_edit_does_not_give_a_file_the_type_of_another_folder(tool):
    path = "/memories/decisions/a.md"
    tool.create(path=path, file_text="Use Kafka\n")
    before = (tool.root / ".mind/decisions/a.md").read_bytes()

    answer = tool.str_replace(path=path, old_str="type: decision", new_str="type: fact")
    assert answer.is_error
    assert "the folder is that of the type decision" in answer.text
    assert (tool.root / ".mind/decisions/a.md").read_bytes() == before

    tool.create(path="/memories/c.md", file_text="---\ntype: decision\n---\nUse Kafka\n")
    answer = tool.str_replace(path="/memories/c.md", old_str="type: decision\n")
    assert answer.is_error
    assert "`type` is missing" in answer.text


@pytest.mark.parametrize("text", ["", " \n", "---\ntopic: tea\n---\n", "---\ntitle: b\n---\n"])
@pytest.mark.parametrize("name", ["to-do.md", "notes.txt", "to do", "v1.2", "漢字"])
def test_an_empty_file_and_a_name_without_an_ending_are_accepted(tool, call, name, text):
    path = f"/memories/facts/{name}"

    assert tool.create(path=path, file_text=text) == Answer(
        f"File created successfully at: {path}", is_error=False
    )
    viewed = tool.view(path=path)
    assert viewed.text.startswith(f"Here's the content of {path} with line numbers:")
    assert tool.create(path=path, file_text="x").text == f"Error: File {path} already exists"
    (record,) = finding.listing(call).records
    assert record.memory.content == ""
    assert record.memory.title
    lines = len(viewed.text.splitlines()) - 2
    assert not tool.insert(path=path, insert_line=lines, insert_text="Buy green tea").is_error
    assert "Buy green tea" in tool.view(path=path).text
    assert not tool.str_replace(path=path, old_str="Buy green tea", new_str="").is_error
    moved = "/memories/facts/other"
    assert not tool.rename(old_path=path, new_path=moved).is_error
    assert not tool.delete(path=moved).is_error
    assert finding.listing(call).total == 0


def test_an_empty_file_is_found_by_its_name(tool, call):
    tool.create(path="/memories/green_tea-suppliers", file_text="")

    (hit,) = finding.search(call, "who supplies green tea?", finding.Options(limit=5)).hits
    assert hit.record.memory.title == "green tea suppliers"


def test_a_name_without_an_ending_is_listed_with_that_of_its_file(tool):
    tool.create(path="/memories/todo", file_text="Buy tea")

    assert "\t/memories/todo.md" in tool.view(path="/memories").text
    assert tool.create(path="/memories/todo.md", file_text="x").is_error
    assert tool.create(path="/memories/Todo", file_text="x").is_error


def test_an_edit_of_valid_front_matter_is_stored(tool, call):
    id = add(call, "Tea is hot", title="Hot tea").id
    path = "/memories/a.md"
    tool.create(path=path, file_text="Use Kafka\n")

    for old, new in [
        ("type: fact", "type: decision"),
        ("type: decision", "type: decision\noutcome: pending"),
        ("outcome: pending", "outcome: failed"),
        ("outcome: failed", f"links: [{{to: {id}, type: builds_on}}, '[[Hot tea]]']"),
        ("Use Kafka", "Use Kafka, see [[nothing yet]]"),
        ("type: decision", "type: decision\nteam: blue"),
    ]:
        answer = tool.str_replace(path=path, old_str=old, new_str=new)
        assert not answer.is_error, answer.text


def test_a_file_that_was_wrong_before_can_be_edited_and_put_right(tool, call):
    put(
        tool.root / ".mind/decisions/a.md",
        "---\nid: a\ntype: banana\nimportance: 99\n---\nUse tea\n",
    )

    def edited(old, new):
        return tool.str_replace(path="/memories/decisions/a.md", old_str=old, new_str=new)

    assert not edited("Use tea", "Use mint").is_error
    assert edited("importance: 99", "importance: 98").is_error
    assert edited("importance: 99", "importance: 99\noutcome: MAYBE").is_error
    assert not edited("importance: 99", "importance: 0.9").is_error
    assert not edited("type: banana", "type: decision").is_error
    assert edited("type: decision", "type: banana").is_error


def test_an_edit_that_breaks_the_front_matter_is_refused(tool):
    path = "/memories/facts/a.md"
    tool.create(path=path, file_text="tea\n")
    before = (tool.root / ".mind/facts/a.md").read_bytes()
    id = before.decode().split("id: ")[1].split("\n")[0]

    answers = [
        tool.str_replace(path=path, old_str="type: fact", new_str="type: [fact"),
        tool.str_replace(path=path, old_str=id, new_str="fact_other"),
        tool.str_replace(path=path, old_str="by: memory-tool", new_str="by: ann"),
        tool.insert(path=path, insert_line=0, insert_text="hello"),
    ]

    assert all(answer.is_error for answer in answers)
    assert "insert after line" in answers[-1].text
    assert (tool.root / ".mind/facts/a.md").read_bytes() == before
    assert not tool.insert(path=path, insert_line=1, insert_text="topic: tea").is_error


@pytest.mark.attack("secret stored by an adapter")
def test_a_secret_is_neither_created_nor_edited_in(tool):
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    tool.create(path="/memories/facts/a.md", file_text="the key\n")

    answers = [
        tool.create(path="/memories/facts/b.md", file_text=f"key {key}\n"),
        tool.str_replace(path="/memories/facts/a.md", old_str="the key", new_str=key),
        tool.insert(path="/memories/facts/a.md", insert_line=7, insert_text=key),
    ]

    assert all(answer.is_error and key not in answer.text for answer in answers)
    assert tool.body("facts/a.md") == "the key\n"
    assert not (tool.root / ".mind/facts/b.md").exists()


def test_a_rename_keeps_the_id_and_takes_the_type_of_the_folder(tool, call):
    id = add(call, "Green tea is drunk without milk").id
    old = f"/memories/facts/{id}.md"

    tool.rename(old_path=old, new_path="/memories/insights/tea.md")
    folder = tool.rename(old_path="/memories/insights", new_path="/memories/team/drinks")
    memory = call.mind.store.read(".mind/team/drinks/tea.md")[0].memory

    assert not folder.is_error
    assert (memory.id, memory.type) == (id, "insight")
    assert not (call.mind.project.root / f".mind/facts/{id}.md").exists()


def test_a_file_without_an_id_gets_that_of_its_old_path(tool, call):
    put(call.mind.project.root / ".mind/facts/by-hand.md", "Tea is served at five\n")

    tool.rename(old_path="/memories/facts/by-hand.md", new_path="/memories/plans/tea.md")
    record = call.mind.store.read(".mind/plans/tea.md")[0]

    assert (record.memory.id, record.memory.type) == ("by-hand", "plan")
    assert record.memory.content == "Tea is served at five"


@pytest.mark.parametrize("new", ["/memories/facts/x", "/memories/facts"])
def test_a_folder_is_not_moved_into_itself(tool, new):
    tool.create(path="/memories/facts/a.md", file_text="tea")

    assert tool.rename(old_path="/memories/facts", new_path=new).is_error
    assert (tool.root / ".mind/facts/a.md").exists()


def test_private_files_stay_private(tool):
    tool.create(path="/memories/private/facts/a.md", file_text="tea")
    tool.create(path="/memories/facts/b.md", file_text="coffee")

    published = tool.rename(
        old_path="/memories/private/facts/a.md", new_path="/memories/facts/a.md"
    )
    folder = tool.rename(old_path="/memories/private", new_path="/memories/notes")
    hidden = tool.rename(old_path="/memories/facts/b.md", new_path="/memories/private/facts/b.md")

    assert published.is_error
    assert folder.is_error
    assert "private" in published.text
    assert not hidden.is_error
    assert (tool.root / ".mind/private/facts/a.md").stat().st_mode & 0o077 == 0
    assert "/memories/private/facts/" in tool.view(path="/memories").text


def test_a_memory_that_a_shared_one_links_to_is_not_made_private(tool, call):
    old, new = decided(call, "sessions", "JWT")
    path = f"/memories/decisions/{old.name}"

    refused = tool.rename(old_path=path, new_path="/memories/private/decisions/old.md")

    assert f"`{new.stem}` is shared by git and links to `{old.stem}`" in refused.text
    assert "both memories" in refused.text
    assert old.exists()


def test_memories_that_link_to_each_other_are_made_private_together(tool, call):
    old, _ = decided(call, "sessions", "JWT")
    private = "/memories/private/decisions"

    assert not tool.rename(old_path="/memories/decisions", new_path=private).is_error
    assert not old.exists()

    put(tool.root / ".mind/facts/b.md", f"---\nid: b\ntype: fact\n---\nsee [[{old.stem}]]\n")
    moved = tool.rename(old_path=f"{private}/{old.name}", new_path=f"{private}/old.md")
    assert not moved.is_error


def test_undo_restores_a_deleted_folder_at_once(tool, call):
    for name in "abc":
        tool.create(path=f"/memories/facts/{name}.md", file_text=f"tea {name}")
    before = {path: path.read_bytes() for path in (tool.root / ".mind/facts").iterdir()}

    deleted = tool.delete(path="/memories/facts")
    left = list((tool.root / ".mind/facts").iterdir())
    undo(call)

    assert not deleted.is_error
    assert left == []
    assert {path: path.read_bytes() for path in (tool.root / ".mind/facts").iterdir()} == before


def decided(call: Call, *choices: str) -> list[Path]:
    """Returns the files of decisions on one topic, each of which supersedes the one before."""
    made = [decision(call, "auth", choice, f"because of {choice}") for choice in choices]
    return [call.mind.folder / f"decisions/{each.id}.md" for each in made]


IN_BRACES = "---\n{{id: x, type: {}, # by Ana\n links: [{{to: {}, type: supersedes}}]}}\n---\nx\n"


def test_a_folder_of_decisions_that_supersede_each_other_is_deleted(tool, call):
    for path in decided(call, "sessions", "JWT", "PASETO"):
        assert path.exists()

    assert not tool.delete(path="/memories/decisions").is_error
    assert list((tool.root / ".mind/decisions").iterdir()) == []


def test_a_successor_outside_of_a_deleted_folder_supersedes_what_is_left(tool, call):
    paths = decided(call, "sessions", "JWT", "PASETO", "passkeys")
    for path in paths[1:3]:
        tool.rename(
            old_path=f"/memories/decisions/{path.name}", new_path=f"/memories/old/{path.name}"
        )

    assert not tool.delete(path="/memories/old").is_error
    newest = call.mind.store.read(f".mind/decisions/{paths[3].name}")[0].memory
    assert [link.to for link in newest.links if link.type == "supersedes"] == [paths[0].stem]


def test_nothing_is_deleted_if_a_successor_can_t_be_changed(tool, call):
    (path,) = decided(call, "sessions")
    tool.create(path="/memories/decisions/other.md", file_text="other")
    put(tool.root / ".mind/plans/newer.md", IN_BRACES.format("plan", path.stem))
    trusting.approve(call, ["x"])

    answer = tool.delete(path="/memories/decisions")

    assert answer.is_error
    assert ".mind/plans/newer.md" in answer.text
    assert len(list(path.parent.iterdir())) == 2


def test_nothing_is_moved_if_a_file_of_the_folder_can_t_be(tool):
    for name in "ac":
        tool.create(path=f"/memories/notes/{name}.md", file_text=f"tea {name}")
    braces = tool.root / ".mind/notes/b.md"
    braces.write_text(IN_BRACES.format("fact", "y"), encoding="utf-8")

    answer = tool.rename(old_path="/memories/notes", new_path="/memories/old")

    assert answer.is_error
    assert ".mind/notes/b.md" in answer.text
    assert sorted(path.name for path in braces.parent.iterdir()) == ["a.md", "b.md", "c.md"]
    assert not (tool.root / ".mind/old").exists()


def test_nothing_is_deleted_if_a_file_changes_meanwhile(tool, monkeypatch):
    for name in "abc":
        tool.create(path=f"/memories/facts/{name}.md", file_text=f"tea {name}")
    remove = removing.remove_files

    def late(*given):
        (tool.root / ".mind/facts/b.md").write_text("coffee", encoding="utf-8")
        return remove(*given)

    monkeypatch.setattr(removing, "remove_files", late)
    answer = tool.delete(path="/memories/facts")

    assert answer.text.endswith("at the same time; nothing was deleted\nview it again")
    assert len(list((tool.root / ".mind/facts").iterdir())) == 3


def test_a_large_folder_is_neither_deleted_nor_renamed(tool, call):
    for number in range(21):
        add(call, f"fact number {number}", again=True)

    deleted = tool.delete(path="/memories/facts")
    renamed = tool.rename(old_path="/memories/facts", new_path="/memories/plans")

    assert deleted.text.startswith("Error: /memories/facts has 21 files")
    assert renamed.is_error
    assert len(list((tool.root / ".mind/facts").iterdir())) == 21


@pytest.mark.parametrize("path", ["/memories/README.md", "/memories/MEMORY.md"])
def test_the_guide_and_the_log_are_only_read(tool, path):
    before = (tool.root / ".mind/MEMORY.md").read_bytes()
    answers = [
        tool.create(path=path, file_text="x"),
        tool.str_replace(path=path, old_str="a", new_str="b"),
        tool.insert(path=path, insert_line=0, insert_text="b"),
        tool.delete(path=path),
        tool.rename(old_path=path, new_path="/memories/a.md"),
    ]

    assert not tool.view(path=path).is_error
    assert all(answer.is_error for answer in answers)
    assert (tool.root / ".mind/MEMORY.md").read_bytes() == before
    assert not (tool.root / ".mind/README.md").exists()


def test_a_file_that_no_path_would_show_is_not_created(tool):
    tool.create(path="/memories/a", file_text="x")

    assert tool.create(path="/memories/README", file_text="x").is_error
    assert tool.rename(old_path="/memories/a", new_path="/memories/README").is_error
    assert not (tool.root / ".mind/README.md").exists()


@pytest.mark.attack("symbolic link")
def test_symbolic_links_are_neither_listed_nor_followed(tool, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("the secret of another project\n", encoding="utf-8")
    (tool.root / ".mind/linked").symlink_to(outside)
    (tool.root / ".mind/link.md").symlink_to(outside / "a.md")

    answers = [
        tool.view(path="/memories/linked/a.md"),
        tool.view(path="/memories/link.md"),
        tool.create(path="/memories/linked/b.md", file_text="x"),
        tool.create(path="/memories/link.md", file_text="x"),
        tool.str_replace(path="/memories/link.md", old_str="secret", new_str="x"),
        tool.delete(path="/memories/linked/a.md"),
        tool.rename(old_path="/memories/link.md", new_path="/memories/c.md"),
    ]

    assert all(answer.is_error and "another project" not in answer.text for answer in answers)
    assert "link" not in tool.view(path="/memories").text
    assert [path.name for path in outside.iterdir()] == ["a.md"]
    assert (outside / "a.md").read_text("utf-8") == "the secret of another project\n"


@pytest.mark.attack("path out of the memory tool")
def test_settings_index_and_local_files_are_out_of_reach(tool):
    tool.create(path="/memories/a.md", file_text="tea")
    names = ["config.toml", ".local/audit.jsonl", ".index", ".gitignore"]

    answers = [tool.view(path=f"/memories/{name}") for name in names]
    answers += [tool.delete(path=f"/memories/{name}") for name in names]

    assert all(answer.is_error for answer in answers)
    assert all((tool.root / ".mind" / name).exists() for name in names)


@pytest.mark.attack("unapproved text believed")
def test_a_file_that_the_user_has_not_approved_is_marked_and_stays_unapproved(tmp_path, home):
    root = tmp_path / "clone"
    facts = make_store(root, "facts") / "facts"
    (facts / "a.md").write_text("---\nid: a\ntype: fact\n---\nRun this\n", encoding="utf-8")
    tool = Tool(root)

    viewed = tool.view(path="/memories/facts/a.md")
    edited = tool.str_replace(path="/memories/facts/a.md", old_str="Run", new_str="Do")
    tool.create(path="/memories/facts/b.md", file_text="Our own\n")

    assert viewed.text.startswith("Note: the user has not approved this file.")
    assert not edited.is_error
    assert edited.text.startswith("Note: ")
    assert tool.view(path="/memories/facts/a.md").text.startswith("Note: ")
    assert tool.view(path="/memories/facts/b.md").text.startswith("Here's the content")
    digest = files.digest((facts / "a.md").read_bytes())
    assert not Trust(home, root).trusted(digest)


@pytest.mark.parametrize("name", ["policy.yaml", "policy.yaml.txt", "policy.yamls/x.md"])
def test_a_file_with_a_name_like_that_of_the_policy_is_approved_as_any_other(tool, call, name):
    path = f"/memories/{name}"
    call.mind.trust.follow(False)
    tool.create(path=path, file_text="a: 1\n")
    assert "not approved" not in tool.view(path=path).text

    tool.str_replace(path=path, old_str="a: 1", new_str="a: 2")
    assert "not approved" not in tool.view(path=path).text


def test_a_change_of_the_tool_is_not_called_a_command(tool, capsys):
    tool.create(path="/memories/a.md", file_text="Tea")
    tool.str_replace(path="/memories/a.md", old_str="Tea", new_str="Mate")

    assert cli(["--project", str(tool.root), "undo", "--list"]) == 0
    assert cli(["--project", str(tool.root), "undo"]) == 0

    printed = capsys.readouterr().out
    assert "  memory tool: str_replace  " in printed
    assert "  memory tool: create  " in printed
    assert "✓ undid memory tool: str_replace  " in printed
    assert "memory-files" not in printed
    assert all(len(line) <= 80 for line in printed.splitlines())


def test_outside_of_a_project_the_answer_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    text, is_error = handle({"command": "view", "path": "/memories"})

    assert is_error
    assert "project" in text


@pytest.mark.parametrize("name", ["memory_files", "mind_add", "memory"])
def test_a_policy_binds_the_tool(tool, name):
    policy = f"tool_permissions:\n  {name}:\n    operations: [read]\n"
    (tool.root / ".mind/policy.yaml").write_text(policy, encoding="utf-8")

    refused = tool.create(path="/memories/a.md", file_text="tea")

    assert refused.is_error
    assert not tool.view(path="/memories").is_error
    assert not (tool.root / ".mind/a.md").exists()


def test_each_call_is_in_the_audit_log(tool):
    tool.create(path="/memories/a.md", file_text="tea")
    tool.view(path="/memories/none.md")

    lines = (tool.root / ".mind/.local/audit.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert all("memory_files" in json.dumps(event) for event in events[-2:])


def test_a_conflict_with_another_process_is_tried_again(tool, call, monkeypatch):
    tool.create(path="/memories/facts/a.md", file_text="one\ntwo\n")
    place = tool.root / ".mind/facts/a.md"
    rewrite, calls = saving.rewrite, []

    def late(call, record, text):
        calls.append(text)
        if len(calls) == 1:
            place.write_bytes(place.read_bytes().replace(b"two", b"three"))
        return rewrite(call, record, text)

    monkeypatch.setattr(saving, "rewrite", late)
    answer = tool.str_replace(path="/memories/facts/a.md", old_str="one", new_str="zero")
    calls.clear()
    place.write_bytes(place.read_bytes().replace(b"three", b"two"))
    refused = tool.insert(path="/memories/facts/a.md", insert_line=6, insert_text="x")

    assert not answer.is_error
    assert refused.is_error
    assert "another process" in refused.text
    assert tool.body("facts/a.md") == "zero\nthree\n"


def _work(root: str, name: str, home: str) -> list[bool]:
    os.environ.update(MIND_HOME=home, MIND_BACKGROUND="off")
    tool = Tool(Path(root))
    errors = [tool.create(path="/memories/facts/shared.md", file_text="start\n").is_error]
    for number in range(8):
        path = f"/memories/facts/{name}-{number}.md"
        errors.append(tool.create(path=path, file_text=f"{name} {number}\n").is_error)
        errors.append(
            tool.str_replace(
                path="/memories/facts/shared.md", old_str="start", new_str=f"start {name}"
            ).is_error
        )
    return errors


def test_two_processes_at_once_lose_nothing(tool, home):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.starmap(_work, [(str(tool.root), name, str(home)) for name in ("a", "b")])

    assert sorted(result[0] for result in results) == [False, True]
    assert not any(error for result in results for error in result[1:])
    body = tool.body("facts/shared.md")
    assert body.count("a") - body.count("start") == body.count("b") == 8
    assert len(list((tool.root / ".mind/facts").iterdir())) == 17


def test_the_entry_of_the_tool_is_the_documented_one():
    assert TOOL == {"type": "memory_20250818", "name": "memory"}


def test_the_example_on_the_page_runs(project, monkeypatch):
    page = Path(__file__).parents[3] / "docs" / "memory-tool.md"
    code = page.read_text("utf-8").split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}

    exec(code.replace("path/to/project", str(project)), names)  # noqa: S102 - our own page

    assert not names["is_error"]
    assert names["text"].startswith("Here're the files")
    assert names["request"] == {"tools": [TOOL]}


def test_a_host_in_another_language_writes_lines_of_json(tool):
    lines = [
        json.dumps({"command": "create", "path": "/memories/a.md", "file_text": "é\n"}),
        json.dumps({"command": "view", "path": "/memories/b.md"}),
        "[1]",
        "{",
        json.dumps({"command": "view", "path": "/memories/a.md"}),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mimo.memory_tool", str(tool.root)],
        input=b"\xff\n" + "\n".join(lines).encode(),
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=True,
    )

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["is_error"] for answer in answers] == [True, False, True, True, True, False]
    assert answers[-1]["content"].endswith("\té\n     9\t")


@pytest.mark.attack("secret stored by an adapter")
def test_a_secret_in_a_file_is_masked(tool):
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    facts = tool.root / ".mind/facts"
    facts.mkdir(exist_ok=True)
    (facts / "a.md").write_text(f"the key is {key}\n", encoding="utf-8")

    answers = [
        tool.view(path="/memories/facts/a.md"),
        tool.str_replace(path="/memories/facts/a.md", old_str="the key", new_str="our key"),
    ]

    assert not any(answer.is_error or key in answer.text for answer in answers)
    assert (facts / "a.md").read_text("utf-8") == f"our key is {key}\n"


def test_one_tool_serves_several_threads(tool):
    def work(number: int) -> bool:
        path = f"/memories/facts/{number}.md"
        created = tool.create(path=path, file_text=f"fact {number}\n")
        edited = tool.str_replace(path=path, old_str=f"fact {number}", new_str=f"done {number}")
        return bool(created.is_error or edited.is_error)

    with ThreadPoolExecutor(4) as pool:
        errors = list(pool.map(work, range(12)))

    assert not any(errors)
    assert [tool.body(f"facts/{n}.md") for n in range(12)] == [f"done {n}\n" for n in range(12)]


def test_a_file_is_no_folder_and_a_folder_no_file(tool):
    tool.create(path="/memories/notes.txt", file_text="tea")
    tool.create(path="/memories/team.d/a.md", file_text="tea")

    inner = tool.create(path="/memories/notes.txt/a.md", file_text="tea")
    moved = tool.rename(old_path="/memories/team.d/a.md", new_path="/memories/notes.txt/a.md")
    same = tool.create(path="/memories/team.d", file_text="tea")
    edited = tool.str_replace(path="/memories/team.d", old_str="tea", new_str="coffee")

    assert "is a file, not a folder" in inner.text
    assert "is a file, not a folder" in moved.text
    assert same.text == "Error: File /memories/team.d already exists"
    assert edited.is_error
    assert not (tool.root / ".mind/notes.txt").exists()


def test_a_folder_is_found_by_each_unicode_form_of_its_name(tool):
    tool.create(path="/memories/caf\u00e9/a.md", file_text="tea")

    composed = tool.view(path="/memories/caf\u00e9")
    decomposed = tool.view(path="/memories/cafe\u0301/")

    assert composed == decomposed
    assert "/memories/caf\u00e9/a.md" in composed.text
    assert tool.create(path="/memories/cafe\u0301/a.md", file_text="x").is_error


@pytest.mark.parametrize(
    "path",
    ["memory.md", "readme.md", "Facts/x.md", "private/FACTS/x.md", "facts/A.md", "TEAM/b.md"],
)
def test_a_new_name_differs_from_an_existing_one_in_more_than_case(tool, path):
    for made in ("facts/a.md", "team/a.md", "x.md"):
        assert not tool.create(path=f"/memories/{made}", file_text="tea").is_error
    before = sorted((tool.root / ".mind").rglob("*.md"))
    created = tool.create(path=f"/memories/{path}", file_text="tea")
    renamed = tool.rename(old_path="/memories/x.md", new_path=f"/memories/{path}")
    assert "only in case" in created.text
    assert "only in case" in renamed.text
    assert sorted((tool.root / ".mind").rglob("*.md")) == before


def test_a_rename_can_change_the_case_of_its_own_name(tool):
    tool.create(path="/memories/team/a.md", file_text="tea")
    for old, new in (("team/a.md", "team/A.md"), ("team", "Team")):
        moved = tool.rename(old_path=f"/memories/{old}", new_path=f"/memories/{new}")
        if "already exists" in moved.text:
            pytest.skip("this file system does not distinguish them")
        assert not moved.is_error
    assert tool.body("Team/A.md") == "tea\n"


def test_an_edit_keeps_the_line_ends_of_a_file(tool):
    path = tool.root / ".mind/facts/a.md"
    path.parent.mkdir()
    path.write_bytes(b"---\r\ntitle: t\r\n---\r\nalpha\r\nbeta\r\ngamma\r\n")
    name = "/memories/facts/a.md"
    assert "\r" not in tool.view(path=name).text
    edited = tool.str_replace(path=name, old_str="alpha\nbeta", new_str="one\ntwo\r\nthree")
    assert "\r" not in edited.text
    assert not tool.insert(path=name, insert_line=6, insert_text="four\n").is_error
    end = b"one\r\ntwo\r\nthree\r\nfour\r\ngamma\r\n"
    assert path.read_bytes().endswith(b"---\r\n" + end)
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")


def test_blank_lines_at_the_end_of_an_insertion_stay(tool):
    tool.create(path="/memories/a.md", file_text="First.\n\nLast.\n")
    viewed = tool.view(path="/memories/a.md").text.splitlines()
    at = next(place for place, line in enumerate(viewed) if line.endswith("\tLast."))
    tool.insert(path="/memories/a.md", insert_line=at - 1, insert_text="New.\n\n")
    assert tool.body("a.md") == "First.\n\nNew.\n\nLast.\n"


def test_a_rename_reports_whether_the_old_or_the_new_file_was_in_the_way(tool, monkeypatch):
    tool.create(path="/memories/facts/a.md", file_text="tea")
    facts = tool.root / ".mind/facts"
    move = saving.move

    def after(change):
        def late(*given):
            change()
            return move(*given)

        monkeypatch.setattr(saving, "move", late)
        return tool.rename(old_path="/memories/facts/a.md", new_path="/memories/facts/b.md")

    changed = after(lambda: (facts / "a.md").write_text("coffee", encoding="utf-8"))
    taken = after(lambda: (facts / "b.md").write_text("milk", encoding="utf-8"))

    assert changed.text.startswith("Error: /memories/facts/a.md was changed by another process")
    assert taken.text.startswith("Error: The destination /memories/facts/b.md already exists")
    assert (facts / "a.md").read_text("utf-8") == "coffee"
    assert (facts / "b.md").read_text("utf-8") == "milk"


@pytest.mark.attack("policy passed by another tool of the group")
def test_an_edit_shows_no_text_to_an_agent_that_may_not_view_it(tool):
    tool.create(path="/memories/facts/tea.md", file_text="first line\nsecond line\n")
    (tool.root / ".mind/policy.yaml").write_text(
        "tool_permissions: {mind_show: {operations: []}}\n"
    )

    assert tool.view(path="/memories/facts/tea.md").is_error
    answer = tool.str_replace(path="/memories/facts/tea.md", old_str="id:", new_str="id:")

    assert answer == Answer("The memory file has been edited.", is_error=False)


@pytest.mark.skipif(sys.platform == "darwin", reason="its disks take both forms for one name")
def test_a_name_with_decomposed_letters_is_used_as_it_is_on_the_disk(tool):
    composed, decomposed = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    folder = tool.root / ".mind" / "notes" / decomposed
    folder.mkdir(parents=True)
    (folder / f"{decomposed}.md").write_text("Coffee is at eight.\n", encoding="utf-8")
    paths = [f"/memories/notes/{name}/{name}.md" for name in (composed, decomposed)]

    assert paths[0] in tool.view(path="/memories/notes").text
    for path in paths:
        assert "Coffee is at eight." in tool.view(path=path).text
        assert tool.create(path=path, file_text="x").is_error
    assert not tool.create(path=f"/memories/notes/{composed}/b.md", file_text="Tea").is_error
    assert (folder / "b.md").exists()
    assert not tool.rename(old_path=paths[0], new_path="/memories/notes/c.md").is_error
    assert not tool.delete(path=f"/memories/notes/{composed}").is_error
    assert [path.name for path in (tool.root / ".mind" / "notes").rglob("*.md")] == ["c.md"]
