"""`mind save checkpoint` and `mind load checkpoint`: the user's own work is resumed first."""

from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.errors import StorageFailed
from mimo.features.decisions import Whose
from mimo.features.decisions.commands import checkpoint
from mimo.features.decisions.loading import checkpoint as load
from mimo.mind import Mind
from mimo.project import projects
from mimo.project.trust import Trust
from tests.conftest import git


def on_another_machine(call: Call, home: Path) -> Call:
    project = projects.explicit(call.mind.project.root, home)
    own: Any = {"clock": call.mind.clock, "randomness": call.mind.randomness}
    return Call(Mind(home=home, project=project, environ={}, **own))


@pytest.mark.req("004-07")
@pytest.mark.req("004-09")
@pytest.mark.req("004-22")
@pytest.mark.parametrize(
    "steps", ["Write the expiry test", ["Write the expiry test"], ["One", "Two\nlines"], "- a\n- b"]
)
def test_a_checkpoint_is_loaded_as_it_was_saved(call, steps):
    checkpoint(call, "Login works", open_files=("src/a.py", "b c.py"), next_steps=steps)

    loaded = load(call)

    assert (loaded.summary, loaded.open_files, loaded.next_steps) == (
        "Login works",
        ("src/a.py", "b c.py"),
        steps,
    )
    assert (loaded.timestamp, loaded.made, loaded.age) == (
        call.mind.now(),
        Whose.BRANCH,
        "just now",
    )


def test_another_authors_checkpoint_is_resumed_last_with_its_author(call, project, clock, tmp_path):
    git(project, "init", "-q")
    other = on_another_machine(call, tmp_path / "elsewhere")
    checkpoint(other, "Made elsewhere")
    git(project, "add", ".")
    git(project, "commit", "-qm", "x")
    clock.forward(days=3)

    resumed = load(call)

    assert (resumed.summary, resumed.made, resumed.author) == (
        "Made elsewhere",
        Whose.ELSEWHERE,
        "Ann",
    )
    assert resumed.notice == "made elsewhere by Ann, 3 days ago"
    checkpoint(call, "Made here")
    clock.forward(days=1)
    checkpoint(other, "Newer, but made elsewhere")
    assert load(call).summary == "Made here"


def test_a_checkpoint_is_saved_even_if_the_home_is_read_only(call, monkeypatch):
    def full(*_):
        raise StorageFailed("the disk is full")

    monkeypatch.setattr(Trust, "add_checkpoints", full)
    saved = checkpoint(call, "Login works")
    assert "made elsewhere" in (saved.notice or "")
    assert load(call).summary == "Login works"
