"""The output of project commands on the first day in a project."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mimo.cli.main import main


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `mind` in a new git repository that `mind init` has just been in."""
    root = tmp_path / "shop"
    root.mkdir()
    monkeypatch.chdir(root)
    if shutil.which("git"):
        subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)

    def ran(*words: str) -> str:
        capsys.readouterr()
        assert main(words) == 0
        return capsys.readouterr().out

    ran("init")
    return ran


def test_doctor_reports_no_problem_in_a_new_project(say: Any) -> None:
    checks = json.loads(say("doctor", "--json"))["checks"]

    assert {check["verdict"] for check in checks} == {"ok"}
    assert [check["message"] for check in checks if check["name"] == "pitfalls"] == ["none yet"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_doctor_reports_the_merge_driver_before_and_after_the_fix(say: Any) -> None:
    assert "git merges memories field by field" in say("doctor")

    subprocess.run(["git", "config", "--unset", "merge.mind.driver"], check=True)
    assert "as plain text" in say("doctor")
    assert "git merges memories field by field" in say("doctor", "--fix")


def test_status_counts_other_projects_only_if_there_are_some(
    say: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "registered" not in say("status")

    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert "1 registered project, 0 memories in all" in say("status")
    say("init")
    assert "2 registered projects, 0 memories in all" in say("status")


def test_one_page_of_a_list_shows_its_range(say: Any) -> None:
    for word in ("one", "two", "three"):
        say("add", word)

    assert say("list", "-n", "2").splitlines()[-1] == "1 to 2 of 3 memories"
    assert say("list", "-n", "2", "--offset", "2").splitlines()[-1] == "memory 3 of 3"
    assert say("list").splitlines()[-1] == "3 memories"


def test_competing_versions_are_shown_with_the_memory(say: Any) -> None:
    id = json.loads(say("add", "The limit is 60", "--json"))["id"]
    [file] = Path(".mind/facts").glob("*.md")
    both = "\n## Competing: the text\nThe limit is 70\n\n## Competing: the text\nThe limit is 80\n"
    file.write_text(file.read_text("utf-8") + both, encoding="utf-8")

    sections = json.loads(say("show", id, "--json"))["sections"]
    assert sections == {"Competing: the text": "The limit is 70\n\nThe limit is 80"}
    assert "The limit is 70" in say("show", id)


def test_the_severities_of_edges_are_aligned(say: Any) -> None:
    say("edges", "starter")
    rows = [line for line in say("edges", "list").splitlines() if not line.startswith(" ")]

    assert {re.match(r"\w+  (\w+ +)", row)[1] for row in rows} == {  # type: ignore[index]
        "critical  ",
        "warning   ",
        "info      ",
    }


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_an_approved_clone_is_not_reported_as_foreign_again(
    say: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("add", "The limit is 60")
    tracked = shutil.ignore_patterns(".git", ".local", ".index", "private")
    shutil.copytree(tmp_path / "shop", tmp_path / "clone", ignore=tracked)
    monkeypatch.chdir(tmp_path / "clone")

    assert "untrusted 1  (`mind review`)" in say("status")
    assert "approve all of them with `mind trust`" in say("init")
    say("trust")
    assert "mind trust" not in say("init")
    assert "to review" not in say("status")
