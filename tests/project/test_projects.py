"""Which project a folder belongs to, and the list of all on this machine."""

import json
import os
from datetime import UTC, datetime

import pytest

from mimo.call import Call
from mimo.errors import NoProject, StorageFailed
from mimo.mind import Mind
from mimo.project import projects
from mimo.project.projects import Project
from tests.conftest import git, make_store
from tests.kit import put, repository

NOW = datetime(2026, 11, 20, 17, 40, tzinfo=UTC)


@pytest.fixture
def home(tmp_path):
    return tmp_path / ".mind"


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work" / "project"
    make_store(root)
    return root


def test_the_nearest_folder_with_a_store_is_the_project(root, home):
    deep = root / "src" / "deep"
    deep.mkdir(parents=True)
    assert projects.find(deep, home) == Project(root=root, name="project")
    make_store(deep)
    nearest = projects.find(deep, home)
    assert nearest is not None
    assert nearest.store == deep / ".mind"


def test_minds_own_folder_makes_no_project_of_the_home(tmp_path, home):
    home.mkdir()
    assert projects.find(tmp_path / "anywhere", home) is None
    (tmp_path / "alias").symlink_to(home, target_is_directory=True)
    assert projects.find(tmp_path, tmp_path / "alias") is None


@pytest.mark.parametrize("mark", ["index-owner", "projects.json"])
def test_a_home_of_another_configuration_is_not_a_project(root, home, mark):
    (root / ".mind" / mark).write_text("", encoding="utf-8")

    assert projects.find(root, home) is None
    with pytest.raises(NoProject, match=r"a home of mind") as raised:
        projects.explicit(root, home)
    assert "mind init" in raised.value.hint


@pytest.mark.attack("local state planted by a clone")
def test_a_project_with_a_planted_mark_of_a_home_is_not_passed_by(root, home):
    inner = root / "clone"
    (inner / ".mind").mkdir(parents=True)
    for name in ("config.toml", "MEMORY.md", "index-owner"):
        (inner / ".mind" / name).touch()

    with pytest.raises(NoProject, match="files of a home"):
        projects.find(inner, home)


@pytest.mark.parametrize("place", ["MEMORY.md", "facts/a.md", "private/facts/a.md"])
def test_memories_without_settings_are_an_error(root, home, place):
    inner = root / "inner"
    put(inner / ".mind" / place, "The cache holds an hour\n")

    for look in (projects.find, projects.explicit):
        with pytest.raises(NoProject, match=r"has memories but no `config.toml`") as raised:
            look(inner, home)
        assert f"mind init {inner}" in raised.value.hint


def test_a_folder_without_settings_and_memories_is_passed_by(root, home):
    (root / "inner" / ".mind" / ".local").mkdir(parents=True)

    nearest = projects.find(root / "inner", home)
    assert nearest is not None
    assert nearest.root == root


@pytest.mark.attack("symbolic link")
def test_a_store_that_is_a_link_cannot_be_named(root, home):
    (root / "b").mkdir()
    (root / "b" / ".mind").symlink_to(root / ".mind", target_is_directory=True)
    with pytest.raises(NoProject, match="symbolic link"):
        projects.explicit(root / "b", home)


def test_a_named_folder_must_be_a_project_itself(root, home):
    assert projects.explicit(root, home).root == root
    (root / "src").mkdir()
    with pytest.raises(NoProject) as raised:
        projects.explicit(root / "src", home)
    assert str(root) in raised.value.message
    assert "mind init" in raised.value.hint
    with pytest.raises(NoProject):
        projects.explicit(root / "nowhere", home)


def test_a_project_is_registered_once(root, home):
    project = Project(root=root, name="project")
    assert projects.registered(home) == projects.Registry()
    assert projects.register(home, project, now=NOW) is None
    assert projects.register(home, project, now=NOW) is None
    (entry,) = projects.registered(home).projects
    assert (entry.path, entry.name, entry.added) == (root, "project", NOW)


@pytest.mark.parametrize(
    "damage",
    [b"{", b"[1]", b'[{"path": 1, "name": "x"}]', b"\xff", b"[" * 100_000, b'{"a": 1}'],
)
def test_a_damaged_registry_is_reported_and_renamed(root, home, damage):
    home.mkdir()
    path = home / projects.REGISTRY
    path.write_bytes(damage)
    registry = projects.registered(home)
    assert registry.projects == ()
    assert "damaged" in str(registry.problem)
    notice = projects.register(home, Project(root=root, name="project"), now=NOW)
    assert notice is not None
    (aside,) = home.glob("projects.json.damaged-*")
    assert aside.read_bytes() == damage
    assert str(aside) in notice
    assert len(json.loads(path.read_text())) == 1


def test_a_project_whose_path_is_not_utf8_is_registered_like_others(home, tmp_path):
    roots = [tmp_path / os.fsdecode(name) for name in (b"one", b"caf\xe9", b"two")]
    for root in roots:
        assert projects.register(home, Project(root=root, name=root.name), now=NOW) is None
    registry = projects.registered(home)
    assert registry.problem is None
    assert [entry.path for entry in registry.projects] == roots
    projects.unregister(home, {roots[1]})
    assert [entry.path for entry in projects.registered(home).projects] == [roots[0], roots[2]]


@pytest.mark.parametrize("entry", [1, {"name": "x"}, {"path": "/x", "name": "x", "added": "soon"}])
def test_a_damaged_entry_of_the_registry_leaves_the_others(root, home, entry):
    project = Project(root=root, name="project")
    projects.register(home, project, now=NOW)
    path = home / projects.REGISTRY
    path.write_text(json.dumps([entry, *json.loads(path.read_text())]))
    registry = projects.registered(home)
    assert [kept.path for kept in registry.projects] == [root]
    assert "damaged" in str(registry.problem)
    assert "keeps 1 of its projects" in (projects.register(home, project, now=NOW) or "")
    assert projects.registered(home) == projects.Registry(registry.projects)
    assert len(list(home.glob("projects.json.damaged-*"))) == 1


def test_a_registry_that_cant_be_read_is_left_alone(root, home):
    (home / projects.REGISTRY).mkdir(parents=True)
    assert projects.registered(home).problem
    with pytest.raises(StorageFailed):
        projects.register(home, Project(root=root, name="project"), now=NOW)


def test_a_store_that_cant_be_entered_is_an_error(tmp_path, home, monkeypatch):
    """Otherwise what is remembered would end up in a project further up."""
    outer, inner, lstat = tmp_path / "outer", tmp_path / "outer" / "inner", os.lstat
    make_store(outer)
    make_store(inner)

    def refused(path, **options):
        if str(path).startswith(f"{inner}/.mind/"):
            raise PermissionError(13, "Permission denied", str(path))
        return lstat(path, **options)

    monkeypatch.setattr(os, "lstat", refused)
    opened = Call(Mind.open(inner, environ={"MIND_HOME": str(home), "HOME": str(tmp_path)}))
    assert not opened.mind.is_outside
    with pytest.raises(StorageFailed, match=r"inner/.mind"):
        assert opened.mind.project
    with pytest.raises(StorageFailed, match=r"inner/.mind"):
        projects.find(inner, home)


def test_a_link_to_itself_is_no_project(tmp_path, home):
    link = tmp_path / "loop"
    link.symlink_to(link)
    assert projects.find(link, home) is None
    with pytest.raises(NoProject, match="loop"):
        projects.explicit(link, home)
    assert projects.find(tmp_path, link) is None


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_store_that_is_not_a_folder_is_an_error(tmp_path, home, kind):
    """Otherwise what is remembered would end up in a project further up."""
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    make_store(outer)
    inner.mkdir()
    if kind == "file":
        (inner / ".mind").write_text("", encoding="utf-8")
    else:
        (inner / ".mind").symlink_to(outer / ".mind")

    with pytest.raises(NoProject, match="inner"):
        projects.find(inner, home)


@pytest.fixture
def repository_with_worktree(tmp_path):
    """A repository, and its linked worktree."""
    main = repository(tmp_path / "main")
    put(main / "src" / "code.py", "pass\n")
    git(main, "add", "-A")
    git(main, "commit", "-qm", "x")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    return main, tmp_path / "linked"


def test_a_linked_worktree_without_a_project_has_that_of_the_main_one(
    repository_with_worktree, home
):
    main, linked = repository_with_worktree
    assert projects.find(linked / "src", home) is None
    make_store(main)

    for folder in (linked, linked / "src"):
        assert projects.find(folder, home) == Project(root=main, name="main", worktree=linked)
    assert projects.explicit(linked, home).root == main
    make_store(main / "src")
    inner = projects.find(linked / "src", home)
    assert inner is not None
    assert inner.root == main / "src"


def test_a_linked_worktree_with_a_project_keeps_it(repository_with_worktree, home):
    main, linked = repository_with_worktree
    make_store(main)
    make_store(linked)

    assert projects.find(linked / "src", home) == Project(root=linked, name="linked")


def test_a_folder_that_claims_to_be_a_worktree_gets_no_project(
    repository_with_worktree, home, tmp_path
):
    main, linked = repository_with_worktree
    make_store(main)
    archive = tmp_path / "archive"
    put(archive / ".git", (linked / ".git").read_text())
    assert projects.find(archive, home) is None

    # All of these could be in an archive.
    put(archive / ".git", "gitdir: git\n")
    put(archive / "git/gitdir", "../.git\n")
    put(archive / "git/commondir", "../../main/.git\n")
    assert projects.find(archive, home) is None
