"""`mind init`: what it makes, finds, trusts and leaves alone."""

import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from mimo.config import load
from mimo.data.locks import lock
from mimo.errors import Invalid, StorageFailed
from mimo.memory.approval import approval_of
from mimo.project import projects
from mimo.project.init import complete, ensure_id, init, lacking
from mimo.project.trust import Trust
from tests import kit
from tests.conftest import git

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DIGEST = "0" * 64


@pytest.fixture
def home(tmp_path):
    return tmp_path / "user" / ".mind"


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def repository(root):
    kit.repository(root)
    git(root, "config", "user.email", "ann@example.com")
    git(root, "commit", "--allow-empty", "-m", "first")
    return root


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_new_project_is_complete_and_registered(root, home):
    report = init(root, home, now=NOW)
    assert report.created
    assert sorted(report.added) == [
        ".mind/.gitattributes",
        ".mind/.gitignore",
        ".mind/MEMORY.md",
        ".mind/config.toml",
    ]
    store = root / ".mind"
    assert "format = 1" in (store / "config.toml").read_text()
    assert (store / ".gitignore").read_text() == ".index/\n.local/\nprivate/\n.mind-*.tmp\n"
    merged = (store / ".gitattributes").read_text().splitlines()
    assert [line for line in merged if "[" not in line] == [
        "*.md merge=mind", "*.Md merge=mind", "MEMORY.md merge=union",
        "sources/*.md -text", "procedures/** merge=text", "values/** merge=text",
    ]  # fmt: skip
    assert projects.find(root, home) == report.project
    assert [entry.path for entry in projects.registered(home).projects] == [root]
    assert not Trust(home, root).trusted(DIGEST), "a new memory is begun, and nothing is followed"


def test_an_init_that_had_to_wait_is_repeated_as_the_first(repository, home, monkeypatch):
    monkeypatch.setattr(projects, "lock", partial(lock, wait=0))
    with lock(home / "lock"), pytest.raises(StorageFailed, match="is held by"):
        init(repository, home, now=NOW)
    assert not (repository / ".mind").exists()

    assert init(repository, home, now=NOW).created
    assert commits_are_trusted(repository, home)


@pytest.mark.parametrize("step", ["complete", "register"])
def test_an_init_after_a_failed_one_trusts_the_users_commits(repository, home, monkeypatch, step):
    def fail(*args, **more):
        raise StorageFailed("no space left", hint="free some")

    with monkeypatch.context() as patched:
        patched.setattr(f"mimo.project.init.{step}", fail)
        with pytest.raises(StorageFailed, match="no space"):
            init(repository, home, now=NOW)

    init(repository, home, now=NOW)
    assert commits_are_trusted(repository, home)


def test_the_users_commits_to_a_store_that_came_with_the_files_are_not_trusted(repository, home):
    (repository / ".mind").mkdir()
    (repository / ".mind" / "config.toml").write_text("format = 1\n")
    init(repository, home, now=NOW)
    init(repository, home, now=NOW)
    assert not commits_are_trusted(repository, home)


def commits_are_trusted(root, home):
    """Commits a memory, and returns whether it is trusted."""
    text = b"---\ntype: fact\n---\nWritten by hand\n"
    path = root / ".mind" / "facts" / "hand.md"
    path.parent.mkdir()
    path.write_bytes(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a memory")
    return Trust(home, root, globs=()).trusted(approval_of(".mind/facts/hand.md", text))


def test_init_adds_missing_lines_to_files_of_an_older_store(root, home):
    init(root, home, now=NOW)
    attributes = root / ".mind" / ".gitattributes"
    attributes.write_text("*.md merge=mind\n# ours\n*.png binary")
    (root / ".mind" / ".gitignore").unlink()
    assert lacking(root) == (".mind/.gitignore", ".mind/.gitattributes")

    assert complete(root) == (".mind/.gitignore", ".mind/.gitattributes")
    assert lacking(root) == ()
    lines = attributes.read_text().splitlines()
    assert lines[:3] == ["*.md merge=mind", "# ours", "*.png binary"]
    assert lines[-2:] == ["procedures/** merge=text", "values/** merge=text"]
    assert complete(root) == ()


def test_the_parent_of_minds_own_folder_is_refused(home):
    home.mkdir(parents=True)
    with pytest.raises(Invalid) as raised:
        init(home.parent, home, now=NOW)
    assert raised.value.hint
    assert contents(home) == {}


def test_neither_the_whole_disk_nor_the_home_can_be_a_project(tmp_path, home, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    for folder in (Path("/"), tmp_path):
        with pytest.raises(Invalid, match="can't be a project"):
            init(folder, home, now=NOW)


@pytest.fixture
def shared(root, home):
    """A repository with a project in git."""
    kit.repository(root)
    init(root, home, now=NOW)
    (root / ".mind/.gitignore").write_text("*.bak\n")
    (root / "src").mkdir()
    (root / "src/main.py").write_text("1\n")
    git(root, "add", ".")
    git(root, "commit", "-m", "shared")
    return root


@pytest.mark.parametrize("patterns", [("src",), ("--no-cone", "/src/", "/.mind/facts/")])
def test_init_replaces_nothing_that_a_sparse_checkout_leaves_out(shared, home, patterns):
    git(shared, "sparse-checkout", "set", *patterns)
    with pytest.raises(Invalid, match="which is missing here") as caught:
        init(shared, home, now=NOW)
    assert "git sparse-checkout add .mind" in caught.value.hint
    assert not git(shared, "status", "--porcelain")
    git(shared, "sparse-checkout", "add", ".mind")
    assert init(shared, home, now=NOW).added == (".mind/.gitignore",), "lines were missing"


def test_a_deleted_file_for_git_gets_its_text_from_git(shared):
    (shared / ".mind/.gitignore").unlink()
    (shared / ".mind/.gitattributes").unlink()
    assert complete(shared) == (".mind/.gitignore", ".mind/.gitattributes")
    assert (shared / ".mind/.gitignore").read_text().startswith("*.bak\n.index/\n")
    assert git(shared, "status", "--porcelain").split() == ["M", ".mind/.gitignore"]


@pytest.mark.parametrize(
    "text",
    [
        "format = 1\n",
        "\ufeff# Settings\r\n\r\n  # more\r\nformat = 1\r\n[hook]\r\nedges = 'off'\r\n",
        "[hook]\nedges = 'off'",
        "# only a comment",
        "",
        "id = 5\n# more\nformat = 1\n",
        "\ufeff'id' = \"\"\r\nformat = 1\r\n[hook]\r\nedges = 'off'\r\n",
        "format = 1\n  id = [1]",
    ],
)
@pytest.mark.parametrize("approved", [True, False])
def test_a_project_without_an_id_gets_one_and_its_settings_keep_their_state(
    root, home, text, approved
):
    init(root, home, now=NOW)
    path, trust = root / ".mind" / "config.toml", Trust(home, root)
    path.write_bytes(text.encode())
    if approved:
        trust.approve_file(".mind/config.toml")
    expected = load(user=None, project=path).values

    ensure_id(root, home)
    once, config = path.read_bytes(), load(user=None, project=path)
    ensure_id(root, home)

    assert path.read_bytes() == once
    assert re.fullmatch("[0-9a-f]{32}", config.values["id"])
    assert {**config.values, "id": None} == {**expected, "id": None}
    assert not config.warnings
    assert Trust(home, root).trusted(approval_of(".mind/config.toml", once)) is approved


@pytest.mark.parametrize(
    "text",
    [
        "id = 'mine'\n",
        "[id]\na = 1\n",
        "id.a = 1\n",
        "id = \n",
        "id = [\n3,\n]\n",
        "[hook]\nid = 1\n[id]\na = 1\n",
        'format = 1\n"" = """\nid = 3\n"""\nid = 5\n',
    ],
)
def test_an_id_and_settings_that_cannot_be_read_are_left_alone(root, home, text):
    init(root, home, now=NOW)
    path = root / ".mind" / "config.toml"
    path.write_text(text)
    ensure_id(root, home)
    assert path.read_text() == text
