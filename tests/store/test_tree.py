"""Folders and globs stand for their files, without what git would ignore."""

import pytest

from mimo.errors import Invalid, NotFound, SandboxViolation
from mimo.store import sandbox as tree
from mimo.store.sandbox import Sandbox


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


def found(root, name, sandbox=None):
    box = Sandbox(sandbox, root)
    return [target.path.relative_to(root).as_posix() for target in tree.targets(box, name)]


def test_a_folder_is_all_its_files_but_hidden_ones_and_links(root):
    put(root, "a.md", "sub/b.txt", "sub/deep/c", ".hidden.md", ".venv/d.md", ".mind/facts/e.md")
    (root / "link.md").symlink_to(root / "a.md")
    (root / "loop").symlink_to(root)
    assert found(root, ".") == ["a.md", "sub/b.txt", "sub/deep/c"]
    assert found(root, "sub/") == ["sub/b.txt", "sub/deep/c"]


def test_what_gitignore_names_is_passed_over(root):
    put(root, "a.md", "a.log", "keep.log", "build/x.md", "sub/build/y.md", "sub/tmp/z.md")
    put(root, "sub/only.txt", "sub/deep/only.txt", "other/only.txt", "out/x.md", "out/keep.md")
    (root / ".git").mkdir()
    put(root, ".gitignore", text="*.log\n!keep.log\n/build/\nout/*\n!out/keep.md\n[\n!\n")
    put(root, "sub/.gitignore", text="tmp\n/only.txt\n")
    put(root, ".git/info/exclude", text="other\n")
    expected = ["a.md", "keep.log", "out/keep.md", "sub/build/y.md", "sub/deep/only.txt"]
    assert found(root, ".") == expected
    assert found(root, "sub") == ["sub/build/y.md", "sub/deep/only.txt"]
    assert found(root, "**/*.md") == ["a.md", "out/keep.md", "sub/build/y.md"]


def test_a_file_or_folder_that_somebody_names_is_taken_though_git_ignores_it(root):
    put(root, "build/x.md", "build/deep/y.md", "build/z.log")
    (root / ".git").mkdir()
    put(root, ".gitignore", text="build/\n*.log\n")
    assert found(root, "build/x.md") == ["build/x.md"]
    assert found(root, "build") == ["build/deep/y.md", "build/x.md", "build/z.log"]
    (target,) = tree.targets(Sandbox(None, root), "build/x.md")
    assert target.is_named


@pytest.mark.attack("path out of the sandbox")
def test_nothing_above_a_sandbox_is_asked(root):
    put(root, "docs/a.md")
    (root / ".git").mkdir()
    put(root, ".gitignore", text="a.md\n")
    assert found(root, "docs", sandbox=None) == []
    assert found(root, str(root / "docs"), sandbox=root / "docs") == ["docs/a.md"]


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
def test_a_glob_is_what_shells_make_of_it(root, glob, expected):
    put(root, "a.md", "docs/b.md", "docs/deep/c.md", "docs/n.txt")
    assert found(root, glob) == expected
    assert found(root, str(root / glob)) == expected


def test_a_file_with_stars_in_its_name_is_itself(root):
    put(root, "a*.md", "ab.md")
    assert found(root, "a*.md") == ["a*.md"]


def test_names_that_stand_for_nothing_are_errors(root):
    (root / "link").symlink_to(root)
    with pytest.raises(NotFound, match=r"`none.* does not exist"):
        found(root, "none.md")
    with pytest.raises(NotFound, match=r"the folder .* does not exist"):
        found(root, "none/*.md")
    with pytest.raises(Invalid, match="symbolic link"):
        found(root, "link")
    with pytest.raises(Invalid, match="is not a glob"):
        found(root, "**/**/**/**/x/**/*.md")
    with pytest.raises(Invalid, match="is not a glob"):
        found(root, "*/../x")
    with pytest.raises(SandboxViolation):
        found(root, "../*.md", sandbox=root)


def test_patterns_that_would_take_for_ever_are_passed_over(root):
    put(root, "a" * 200)
    put(root, ".gitignore", text="*a*a*a*a*a*a*a*a*a*a*a*a*b\n" + "**/a" * 30 + "\n")
    assert found(root, ".") == ["a" * 200]


def test_a_folder_and_a_file_are_each_reached_once_however_deep(root, monkeypatch):
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
    for target in tree.targets(box, "."):
        box.read(target.path, 100)
    inside = [path for path in reached if path != root]
    assert len(inside) == 2 * len(paths)
