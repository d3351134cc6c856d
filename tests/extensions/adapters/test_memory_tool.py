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

from mimo.extensions.adapters.memory_files import MOST_CHARACTERS
from mimo.memory_tool import TOOL, MemoryTool, handle
from mimo.operations import removing, saving

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


@pytest.mark.parametrize("name", ["policy.yaml", "policy.yaml.txt", "policy.yamls/x.md"])
def test_a_file_with_a_name_like_that_of_the_policy_is_approved_as_any_other(tool, call, name):
    path = f"/memories/{name}"
    call.mind.trust.follow(False)
    tool.create(path=path, file_text="a: 1\n")
    assert "not approved" not in tool.view(path=path).text

    tool.str_replace(path=path, old_str="a: 1", new_str="a: 2")
    assert "not approved" not in tool.view(path=path).text


def test_outside_of_a_project_the_answer_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    text, is_error = handle({"command": "view", "path": "/memories"})

    assert is_error
    assert "project" in text


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


def test_a_folder_is_found_by_each_unicode_form_of_its_name(tool):
    tool.create(path="/memories/caf\u00e9/a.md", file_text="tea")

    composed = tool.view(path="/memories/caf\u00e9")
    decomposed = tool.view(path="/memories/cafe\u0301/")

    assert composed == decomposed
    assert "/memories/caf\u00e9/a.md" in composed.text
    assert tool.create(path="/memories/cafe\u0301/a.md", file_text="x").is_error


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
