"""Many registered projects, on a system that permits few open files."""

import json
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from mimo import installation
from mimo.call import Call
from mimo.features.upkeep.commands import config
from mimo.project.init import init
from tests.kit import put

COUNT, FILES = 40, 200


@pytest.fixture
def folder(call: Call, tmp_path: Path) -> Path:
    """Returns a folder outside of all projects, each of which has one memory."""
    for number in range(COUNT):
        root = tmp_path / f"p{number}"
        root.mkdir()
        init(root, call.mind.home, now=call.mind.now())
        put(
            root / ".mind" / "facts" / "note.md",
            f"---\nid: note_{number}\ntype: fact\n---\nLantern {number} is lit.\n",
        )
    return tmp_path


def test_every_project_is_asked(call: Call, folder: Path) -> None:
    for words in (
        "search lantern --scope all -n 60",
        "search lamtern --scope all -n 60",
        "list --all-projects",
    ):
        done = subprocess.run(
            [sys.executable, "-m", "mimo", *words.split(), "--json"],
            cwd=folder / "p0",
            env=os.environ | {"MIND_HOME": str(call.mind.home), "MIND_BACKGROUND": "off"},
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (FILES, FILES)),
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        if "lamtern" in words:
            continue  # That needs more open files than one project after the other.
        ids = {row["id"] for row in answer.get("results") or answer["memories"]}
        assert len(ids) == COUNT
        assert "skipped" not in (answer.get("notice") or "")


def test_the_zone_of_the_user_is_that_of_other_projects(call: Call) -> None:
    config(call, "time.zone", "Asia/Seoul")
    assert str(call.mind.reopened().outside().zone) == "Asia/Seoul"


def test_a_process_for_many_projects_raises_its_limit_of_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        installation.permit_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(65_536, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
