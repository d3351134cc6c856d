"""Files of another user are not used: a project, a home, a key, a list of approvals."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.data import disk, files
from mimo.errors import Untrusted
from mimo.features.hooks.command import react
from mimo.features.hooks.events import recognised
from mimo.project import projects
from mimo.project.trust import Trust
from tests.conftest import NOW, make_store
from tests.kit import put, run

pytestmark = pytest.mark.attack("file planted by another user")

Plant = Callable[[Path], None]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Lets a path belong to another user, as far as this process can tell."""
    planted: set[tuple[int, int]] = set()
    real = disk.is_foreign

    def is_foreign(status: os.stat_result) -> bool:
        return (status.st_dev, status.st_ino) in planted or real(status)

    def plant(path: Path) -> None:
        status = path.lstat()
        planted.add((status.st_dev, status.st_ino))

    monkeypatch.setattr(disk, "is_foreign", is_foreign)
    return plant


@pytest.mark.parametrize("name", [".mind", ".mind/config.toml", ".mind/.local"])
def test_a_project_of_another_user_is_refused_until_the_user_allows_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant, name: str
) -> None:
    plant(project / name)
    monkeypatch.chdir(project)

    for line in ("add x", "search x", f"--project {project} status"):
        message = run(None, *line.split(), status=5).err
        assert f"`{project / name}` belongs to another user" in message
        assert f"mind config safe.projects {project}" in message
    assert not list((project / ".mind").rglob("facts"))
    assert "belongs to another user" in run(None, "doctor").out

    run(None, "config", "safe.projects", str(project))
    run(None, "add", "The cache holds an hour")


def test_a_project_cannot_allow_itself(project: Path, home: Path, plant: Plant) -> None:
    put(project / ".mind" / "config.toml", "format = 1\nsafe.projects = ['*']\n")
    plant(project / ".mind")

    with pytest.raises(Untrusted):
        projects.find(project, home)


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_planted_in_a_parent_is_never_used(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant, kind: str
) -> None:
    shared, work = tmp_path / "tmp", tmp_path / "tmp" / "work"
    work.mkdir(parents=True)
    if kind == "folder":
        make_store(shared)
    elif kind == "file":
        (shared / ".mind").write_text("", encoding="utf-8")
    else:
        (shared / ".mind").symlink_to(make_store(tmp_path / "evil"))
    plant(shared / ".mind")
    monkeypatch.chdir(work)

    run(None, "add", "x", status=5)
    run(None, "config")  # What needs no project is not stopped.
    run(None, "init")
    run(None, "add", "x")
    assert projects.find(work, home) == projects.Project(root=work, name="work")


def test_a_project_further_up_is_used_past_a_planted_one(
    project: Path, home: Path, plant: Plant
) -> None:
    vendored, inside = project / "vendor", project / "vendor" / "lib"
    plant(make_store(vendored))
    inside.mkdir()

    nearest = projects.find(inside, home)

    assert nearest is not None
    assert nearest.root == project
    with pytest.raises(Untrusted):
        projects.explicit(vendored, home)


def test_nothing_is_saved_further_up_than_a_planted_project_in_the_working_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    vendored = project / "vendor"
    plant(make_store(vendored))
    monkeypatch.chdir(vendored)

    for line in ("add Meant-for-vendor", "search x", "--project . list"):
        error = run(None, *line.split(), status=5).err
        assert f"`{vendored / '.mind'}` belongs to another user" in error
        assert f"mind config safe.projects {vendored}" in error
    assert not list((project / ".mind").rglob("facts"))
    run(None, "--project", str(project), "add", "Meant for all")


def test_a_new_project_past_a_planted_one_is_still_inside_the_one_further_up(
    project: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    new = project / "vendor" / "lib"
    plant(make_store(project / "vendor"))
    new.mkdir()
    monkeypatch.chdir(new)

    assert f"is inside the project `{project}`" in run(None, "init", status=2).err


def test_hooks_inject_nothing_from_another_users_project(
    call: Call, project: Path, home: Path, plant: Plant
) -> None:
    event = recognised(
        {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(project)}, "claude-code"
    )
    assert event is not None
    plant(project / ".mind")

    with pytest.raises(Untrusted):  # `mind hook` logs it and prints nothing.
        react(event, home=home, now=NOW, environ={})


def test_a_home_of_another_user_is_refused(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(home)
    monkeypatch.chdir(project)
    before = sorted(home.rglob("*"))

    for line in ("add x", "config commits 1", "init ."):
        message = run(None, *line.split(), status=5).err
        assert f"`{home}` belongs to another user" in message
        assert "MIND_HOME" in message
    assert sorted(home.rglob("*")) == before
    assert f"`{home}` belongs to another user" in run(None, "doctor", status=1).out


def test_planted_approvals_approve_nothing(project: Path, home: Path, plant: Plant) -> None:
    digest = files.digest(b"Always run the installer\n")
    Trust(home, project).approve([digest])
    assert Trust(home, project).approved(digest)

    plant(home / "trust.db")

    trust = Trust(home, project)
    assert not trust.approved(digest)
    assert trust.state.problem is not None


def test_a_planted_key_is_not_used(project: Path, home: Path, plant: Plant) -> None:
    projects.index_owner(home, os.urandom)
    plant(home / "index-owner")

    assert projects.known_owner(home) is None


def test_an_index_of_another_user_is_left_alone(project: Path, home: Path, plant: Plant) -> None:
    (project / ".mind" / ".index").mkdir(exist_ok=True)
    plant(project / ".mind" / ".index")

    assert projects.index_folder(project, home).is_relative_to(home / "cache")


def test_with_sudo_the_projects_of_the_user_who_ran_it_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for value, expected in (("1000", {0, 1000}), ("", {0}), ("-1", {0}), ("x", {0})):
        monkeypatch.setenv("SUDO_UID", value)
        disk.own_users.cache_clear()
        assert disk.own_users() == expected
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    disk.own_users.cache_clear()
    assert disk.own_users() == {1001}
    monkeypatch.undo()
    disk.own_users.cache_clear()
