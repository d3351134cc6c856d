"""Reading named files, folders and globs within a sandbox."""

import os
import socket
import subprocess

import pytest

from mimo.errors import FileTooLarge, Invalid, NotFound, SandboxViolation
from mimo.project import git as store_git
from mimo.project.sandbox import Entry, Sandbox, Sort, fits, targets
from tests.kit import repository


@pytest.fixture
def box(tmp_path):
    box = tmp_path / "box"
    (box / "docs").mkdir(parents=True)
    (box / "docs" / "a.md").write_text("words")
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "box-evil").mkdir()
    (tmp_path / "box-evil" / "b.md").write_text("evil")
    return box


@pytest.mark.req("000-90")
@pytest.mark.req("000-94")
@pytest.mark.parametrize(
    "name",
    [
        "../secret.md",
        "docs/../../secret.md",
        "../box-evil/b.md",
        "..",
        "/etc/passwd",
        "/",
        "../missing.md",
        "docs/../../box-evil/*.md",
    ],
)
def test_a_name_outside_is_refused_whether_it_exists_or_not(box, name):
    with pytest.raises(SandboxViolation) as error:
        Sandbox(box, box).locate(name)
    assert error.value.exit_status == 5
    assert error.value.details["sandbox"] == str(box)


@pytest.mark.parametrize(
    "name", ["docs/a.md", "./docs/a.md", "docs/../docs/a.md", "../box/docs/a.md"]
)
def test_a_name_inside_is_read(box, name):
    sandbox = Sandbox(box, box)
    assert sandbox.read(sandbox.locate(name), 100) == b"words"
    assert sandbox.locate(str(box / name)) == box / "docs" / "a.md"


@pytest.mark.req("000-90")
@pytest.mark.attack("symbolic link")
def test_links_are_not_followed(box, tmp_path):
    (box / "out.md").symlink_to(tmp_path / "secret.md")
    (box / "in.md").symlink_to(box / "docs" / "a.md")
    (box / "folder").symlink_to(tmp_path)
    (box / "dangling.md").symlink_to(tmp_path / "nothing")
    sandbox = Sandbox(box, box)
    for name in ("out.md", "in.md", "folder/secret.md", "dangling.md", "folder/x/y.md"):
        with pytest.raises(SandboxViolation, match="symbolic link"):
            sandbox.read(sandbox.locate(name), 100)
    with pytest.raises(SandboxViolation, match="symbolic link"):
        sandbox.listed(sandbox.locate("folder"))


@pytest.mark.req("000-90")
@pytest.mark.attack("symbolic link")
def test_a_link_that_replaces_a_folder_after_the_check_is_not_followed(box, tmp_path):
    sandbox = Sandbox(box, box)
    path = sandbox.locate("docs/a.md")
    assert sandbox.sort(path) is Sort.FILE
    (box / "docs").rename(box / "old")
    (tmp_path / "a.md").write_text("secret")
    (box / "docs").symlink_to(tmp_path)
    with pytest.raises(SandboxViolation):
        sandbox.read(path, 100)


def test_the_sandbox_itself_may_be_a_link(box, tmp_path):
    (tmp_path / "link").symlink_to(box)
    sandbox = Sandbox(tmp_path / "link", tmp_path / "link")
    for name in ("docs/a.md", str(tmp_path / "link" / "docs/a.md"), str(box / "docs/a.md")):
        assert sandbox.read(sandbox.locate(name), 100) == b"words"


@pytest.mark.attack("symbolic link")
def test_without_a_sandbox_any_file_is_read_except_links(box, tmp_path):
    (tmp_path / "linked").symlink_to(box)
    (tmp_path / "one.md").symlink_to(tmp_path / "secret.md")
    sandbox = Sandbox(None, box)
    assert sandbox.read(sandbox.locate("../secret.md"), 100) == b"secret"
    assert sandbox.locate("../linked/docs/a.md") == box / "docs" / "a.md"
    assert sandbox.locate("..") == tmp_path
    assert sandbox.locate("docs/..") == box
    with pytest.raises(Invalid, match="symbolic link"):
        sandbox.read(sandbox.locate("../one.md"), 100)


@pytest.mark.req("000-88")
def test_a_file_that_is_too_large_is_not_read(box):
    sandbox = Sandbox(box, box)
    path = sandbox.locate("docs/a.md")
    assert sandbox.read(path, 5) == b"words"
    with pytest.raises(FileTooLarge) as error:
        sandbox.read(path, 4)
    assert error.value.message == "File too large: 5 bytes (max: 4 bytes)"


def test_special_files_are_refused_without_waiting(box):
    os.mkfifo(box / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(box / "s"))
        sandbox = Sandbox(box, box)
        for name in ("pipe", "docs"):
            with pytest.raises(Invalid, match="not a regular file"):
                sandbox.read(sandbox.locate(name), 100)
        assert [entry for entry in sandbox.listed(box) if entry.sort is Sort.OTHER] == [
            Entry("pipe", Sort.OTHER),
            Entry("s", Sort.OTHER),
        ]


def test_a_missing_file_is_not_found(box):
    sandbox = Sandbox(box, box)
    assert sandbox.sort(sandbox.locate("docs/none.md")) is None
    assert sandbox.sort(sandbox.locate("docs/a.md/none.md")) is None
    with pytest.raises(NotFound):
        sandbox.read(sandbox.locate("docs/none.md"), 100)
    for name in ("", "a\0b"):
        with pytest.raises(Invalid):
            sandbox.locate(name)


# Folders and globs.


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    return root


def put(root, *paths, text="text\n"):
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def paths(root, name, sandbox=None):
    box = Sandbox(sandbox, root)
    return [target.path.relative_to(root).as_posix() for target in targets(box, name)]


def test_a_folder_gives_its_files_without_hidden_files_and_links(root):
    put(root, "a.md", "sub/b.txt", "sub/deep/c", ".hidden.md", ".venv/d.md", ".mind/facts/e.md")
    (root / "link.md").symlink_to(root / "a.md")
    (root / "loop").symlink_to(root)
    assert paths(root, ".") == ["a.md", "sub/b.txt", "sub/deep/c"]
    assert paths(root, "sub/") == ["sub/b.txt", "sub/deep/c"]


def test_ignored_files_are_left_out(root):
    put(root, "a.md", "a.log", "keep.log", "build/x.md", "sub/build/y.md", "sub/tmp/z.md")
    put(root, "sub/only.txt", "sub/deep/only.txt", "other/only.txt", "out/x.md", "out/keep.md")
    repository(root)
    put(root, ".gitignore", text="*.log\n!keep.log\n/build/\nout/*\n!out/keep.md\n[\n!\n")
    put(root, "sub/.gitignore", text="tmp\n/only.txt\n")
    put(root, ".git/info/exclude", text="other\n")
    expected = ["a.md", "keep.log", "out/keep.md", "sub/build/y.md", "sub/deep/only.txt"]
    assert paths(root, ".") == expected
    assert paths(root, "sub") == ["sub/build/y.md", "sub/deep/only.txt"]
    assert paths(root, "**/*.md") == ["a.md", "out/keep.md", "sub/build/y.md"]


def test_a_named_file_or_folder_is_read_although_git_ignores_it(root):
    put(root, "build/x.md", "build/deep/y.md", "build/z.log")
    repository(root)
    put(root, ".gitignore", text="build/\n*.log\n")
    assert paths(root, "build/x.md") == ["build/x.md"]
    assert paths(root, "build") == ["build/deep/y.md", "build/x.md", "build/z.log"]
    (target,) = targets(Sandbox(None, root), "build/x.md")
    assert target.is_named


@pytest.mark.attack("path out of the sandbox")
def test_ignore_files_above_the_sandbox_are_not_read(root):
    put(root, "docs/a.md")
    repository(root)
    put(root, ".gitignore", text="a.md\n")
    assert paths(root, "docs", sandbox=None) == []
    assert paths(root, str(root / "docs"), sandbox=root / "docs") == ["docs/a.md"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.md", ["a.md"]),
        ("**/*.md", ["a.md", "docs/b.md", "docs/deep/c.md"]),
        ("docs/*", ["docs/b.md", "docs/n.txt"]),
        ("docs/**", ["docs/b.md", "docs/deep/c.md", "docs/n.txt"]),
        ("docs/**/c.md", ["docs/deep/c.md"]),
        ("d*s/[bn].*", ["docs/b.md", "docs/n.txt"]),
        ("./docs/?.md", ["docs/b.md"]),
        ("*.none", []),
    ],
)
def test_globs_match_as_in_shells(root, glob, expected):
    put(root, "a.md", "docs/b.md", "docs/deep/c.md", "docs/n.txt")
    assert paths(root, glob) == expected
    assert paths(root, str(root / glob)) == expected


def test_a_file_with_stars_in_its_name_is_not_a_glob(root):
    put(root, "a*.md", "ab.md")
    assert paths(root, "a*.md") == ["a*.md"]


def test_names_without_files_are_errors(root):
    (root / "link").symlink_to(root)
    with pytest.raises(NotFound, match=r"`none.* does not exist"):
        paths(root, "none.md")
    with pytest.raises(NotFound, match=r"the folder .* does not exist"):
        paths(root, "none/*.md")
    with pytest.raises(Invalid, match="symbolic link"):
        paths(root, "link")
    with pytest.raises(Invalid, match="is not a glob"):
        paths(root, "**/**/**/**/x/**/*.md")
    with pytest.raises(Invalid, match="is not a glob"):
        paths(root, "*/../x")
    with pytest.raises(SandboxViolation):
        paths(root, "../*.md", sandbox=root)


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, check=True)


@pytest.mark.req("000-90")
def test_names_are_literal_and_tracked_files_are_not_ignored(root):
    names = ["-x", ":(top)y", "a*b", "new\nline", "ü", "[a]", "build/kept.md", "build/new.md"]
    put(root, *names, ".gitignore", text="*.log\nbuild/\nü\n")
    repository(root)
    git(root, "add", "-f", "build/kept.md")
    left = {*names} - {"ü", "build/new.md"}
    assert paths(root, ".") == sorted(left, key=lambda name: name.split("/"))


def test_a_repository_in_a_repository_has_its_own_rules(root, tmp_path):
    source = tmp_path / "source"
    put(source, "a.md", "b.log", ".gitignore", text="*.log\n")
    repository(source)
    git(source, "add", "a.md", ".gitignore")
    git(source, "commit", "-q", "-m", "a")
    repository(root)
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "module")
    put(root, "module/c.log", "c.log", "d.md", "inner/d.md", "inner/e.log")
    repository(root / "inner")
    put(root, ".gitignore", text="d.md\n")
    expected = ["c.log", "inner/d.md", "inner/e.log", "module/a.md"]
    assert paths(root, ".") == expected
    assert paths(root, "module") == ["module/a.md"]


def test_a_worktree_has_the_excluded_files_of_its_repository(root, tmp_path):
    put(root, "a.md")
    repository(root)
    git(root, "commit", "-q", "--allow-empty", "-m", "a")
    git(root, "worktree", "add", "-q", "../other")
    put(root, ".git/info/exclude", text="drafts\n")
    other = tmp_path / "other"
    put(other, "a.md", "drafts/b.md")
    assert paths(other, ".") == paths(other, ".", sandbox=other) == ["a.md"]


def test_git_is_asked_once_for_each_level_of_folders(root, monkeypatch):
    put(root, *(f"{a}/{b}/{c}.md" for a in "xyz" for b in "xyz" for c in "xyz"))
    repository(root)
    asked = []
    run = store_git.run

    def counted(top, *words, **options):
        asked.append(words[0])
        return run(top, *words, **options)

    monkeypatch.setattr(store_git, "run", counted)
    assert len(paths(root, ".")) == 27
    assert asked == ["check-ignore"] * 3


def test_the_files_of_a_repository_are_skipped_if_git_cannot_tell_which_it_ignores(root):
    put(root, "docs/a.md", "docs/secret.md", "docs/.gitignore", text="secret.md\n")
    repository(root)
    (root / ".git" / "HEAD").write_text("nonsense")
    for name in (".", "docs", "docs/*"):
        (target,) = targets(Sandbox(None, root), name)
        assert target.problem
        assert "not a git repository" in target.problem.message
    assert paths(root, "docs/a.md") == ["docs/a.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_folder_whose_ignore_rules_cannot_be_read_is_refused(root):
    put(root, "docs/a.md", "docs/.gitignore")
    repository(root)
    (root / "docs" / ".gitignore").chmod(0)
    (target,) = targets(Sandbox(None, root), "docs")
    assert target.problem


def test_without_git_the_usual_folders_of_generated_files_are_left_out(root, monkeypatch):
    put(root, "a.md", "a.log", "node_modules/b.md", "docs/build/c.md", ".gitignore", text="*.log\n")
    assert len(paths(root, ".")) == 4
    repository(root)
    monkeypatch.setenv("PATH", "")
    assert paths(root, ".") == ["a.log", "a.md"]
    assert paths(root, "docs/build") == ["docs/build/c.md"]


@pytest.mark.attack("pattern that takes very long")
@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("**/d/" * 8 + "x.md", False),
        ("**/d/" * 8 + "*.txt", True),
        ("**/" * 40 + "f.txt", True),
        ("**", True),
        ("d/**", True),
        ("d/" * 30 + "**", True),
        ("d/" * 30 + "f.txt/**", False),
        ("d/" * 30, False),
    ],
)
def test_a_glob_with_many_stars_takes_no_long_time(pattern, matches):
    assert fits([*["d"] * 30, "f.txt"], pattern.removesuffix("/").split("/")) is matches


def test_deep_folders_are_walked_once(root, monkeypatch):
    """Each is opened by way of all folders above it, so every further look costs the depth."""
    paths = ["/".join([*["d"] * depth, "a.md"]) for depth in range(1, 41)]
    put(root, *paths)
    reached = []
    folder = Sandbox._folder

    def counted(self, path):
        reached.append(path)
        return folder(self, path)

    monkeypatch.setattr(Sandbox, "_folder", counted)
    box = Sandbox(root, root)
    for target in targets(box, "."):
        box.read(target.path, 100)
    inside = [path for path in reached if path != root]
    assert len(inside) == 2 * len(paths)
