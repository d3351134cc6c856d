"""The lines that a change adds: from git, from a unified diff, or from whole files."""

import difflib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.errors import Invalid
from mimo.features.pitfalls import changes
from tests.conftest import git
from tests.kit import put


def write(root, name, text):
    put(root / name, text)


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init")
    write(root, "a.py", "one\ntwo\n")
    git(root, "add", ".")
    git(root, "commit", "-m", "begin")
    return root


def hunks(added):
    return {file.path: [(h.start, h.lines) for h in file.hunks] for file in added}


def test_changed_lines_have_their_numbers(root):
    write(root, "a.py", "one\nnew\ntwo\n")

    assert hunks(changes.of_git(root, staged=False, rev=None)) == {"a.py": [(2, ("new",))]}
    assert hunks(changes.of_git(root, staged=True, rev=None)) == {}
    git(root, "add", ".")
    assert hunks(changes.of_git(root, staged=True, rev=None)) == {"a.py": [(2, ("new",))]}


def test_invalid_utf_8_is_replaced(root):
    git(root, "config", "core.quotePath", "false")
    (root / "café.py").write_bytes(b"caf\xe9 = 1\n")
    git(root, "add", ".")

    assert hunks(changes.of_git(root, staged=True, rev=None)) == {
        "café.py": [(1, ("caf\ufffd = 1",))]
    }


def test_two_revisions_compare_commits_only(root):
    write(root, "a.py", "one\nnew\ntwo\n")
    git(root, "commit", "-am", "new")
    write(root, "a.py", "one\nnew\ntwo\nlater\n")

    assert hunks(changes.of_git(root, staged=False, rev="HEAD~1..HEAD")) == {
        "a.py": [(2, ("new",))]
    }
    assert len(hunks(changes.of_git(root, staged=False, rev="HEAD~1"))["a.py"]) == 2


def test_lines_of_a_moved_file_are_not_added(root):
    write(root, "a.py", "".join(f"line {number}\n" for number in range(20)))
    git(root, "commit", "-am", "long")
    git(root, "mv", "a.py", "b.py")
    assert hunks(changes.of_git(root, staged=True, rev=None)) == {}

    write(root, "b.py", f"{(root / 'b.py').read_text()}new\n")

    assert hunks(changes.of_git(root, staged=False, rev=None)) == {"b.py": [(21, ("new",))]}


def test_paths_are_relative_to_the_top_of_the_repository(root):
    write(root, "sub/b.py", "x\n")
    write(root, "sub/.mind/edges/e.md", "crypto\n")
    write(root, "sub/deep/.mind/edges/e.md", "crypto\n")
    write(root, "c.py", "y\n")
    git(root, "add", ".")

    assert list(hunks(changes.of_git(root / "sub", staged=True, rev=None))) == ["sub/b.py"]
    added = changes.of_files(root / "sub", ["."], near=root / "sub")
    assert list(hunks(added)) == ["sub/b.py"]


def test_programs_named_by_a_repository_are_not_run(root, tmp_path):
    """A clone's settings stay behind, but those of a copied folder do not."""
    mark = tmp_path / "ran"
    write(root, ".gitattributes", "*.py filter=evil diff=evil\n")
    for key in ("filter.evil.clean", "diff.evil.textconv", "diff.external", "core.fsmonitor"):
        git(root, "config", key, f"touch {mark};cat")
    write(root, "a.py", "one\nnew\ntwo\n")
    os.utime(root / "a.py", (1, 1))

    list(changes.of_git(root, staged=False, rev=None))

    assert not mark.exists()


def test_an_unknown_revision_is_refused(root):
    with pytest.raises(Invalid, match="nowhere"):
        list(changes.of_git(root, staged=False, rev="nowhere"))
    with pytest.raises(Invalid, match="--output"):
        list(changes.of_git(root, staged=False, rev="--output=x"))


def test_outside_git_files_must_be_named(tmp_path):
    write(tmp_path, "a.py", "x\n")

    with pytest.raises(Invalid) as caught:
        list(changes.of_git(tmp_path, staged=False, rev=None))

    assert "name the files" in (caught.value.hint or "")
    assert hunks(changes.of_files(tmp_path, ["a.py"], near=tmp_path)) == {"a.py": [(1, ("x", ""))]}


def test_generated_files_in_folders_are_skipped(tmp_path):
    for name in ("src/a.py", "node_modules/x.js", ".venv/y.py", "src/.hidden"):
        write(tmp_path, name, "x")
    (tmp_path / "src/data.bin").write_bytes(b"\0x")
    (tmp_path / "src/link.py").symlink_to("a.py")

    assert list(hunks(changes.of_files(tmp_path, ["."], near=tmp_path))) == ["src/a.py"]


def test_a_name_outside_the_project_is_refused_before_reading(tmp_path):
    project = tmp_path / "p"
    project.mkdir()
    write(tmp_path, "outside.py", "x")
    (project / "link.py").symlink_to(tmp_path / "outside.py")

    for name in ("../outside.py", "link.py", str(tmp_path / "outside.py")):
        with pytest.raises(Invalid, match="outside the project"):
            list(changes.of_files(project, [name], near=project))
    with pytest.raises(Invalid, match="no file `nope`"):
        list(changes.of_files(project, ["nope"], near=project))


def test_piped_text_is_a_diff_or_code():
    assert hunks(changes.of_text("x = 1")) == {"<stdin>": [(1, ("x = 1",))]}
    assert hunks(changes.of_text("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")) == {"f": [(1, ("b",))]}


LINES = st.lists(st.sampled_from(["a", "b", "", "--- x", "+++ y", "@@ -1 +1 @@", "\\ no"]))


@given(LINES, LINES, st.integers(0, 3))
def test_added_lines_have_the_numbers_of_the_diff(before, after, context):
    diff = difflib.unified_diff(before, after, "a/f", "b/f", n=context, lineterm="")
    text = "\n".join(["diff --git a/f b/f", *diff])
    added = {
        hunk.start + n: line
        for file in (changes.of_text(text) if before != after else ())
        for hunk in file.hunks
        for n, line in enumerate(hunk.lines)
    }

    assert all(after[number - 1] == line for number, line in added.items())
    kept = [line for number, line in enumerate(after, 1) if number not in added]
    assert all(kept.count(line) <= before.count(line) for line in kept)


def test_removed_files_add_nothing_and_names_are_unquoted():
    text = (
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        '--- /dev/null\n+++ "b/caf\\303\\251 \\"x\\".py"\n@@ -0,0 +1,2 @@\n+one\r\n+two\n'
        "\\ No newline at end of file\n"
    )

    assert hunks(changes.of_text(text)) == {'café "x".py': [(1, ("one", "two"))]}


def test_a_truncated_diff_gives_its_complete_part():
    text = "--- /dev/null\n+++ b/f\n@@ -0,0 +7,3 @@\n+one"

    assert hunks(changes.of_text(text)) == {"f": [(7, ("one",))]}


def test_a_hunk_with_an_absurd_number_is_ignored():
    text = f"--- a/f\n+++ b/f\n@@ -1 +{'9' * 5_000} @@\n+one\n@@ -1 +1 @@\n-a\n+b\n"

    assert hunks(changes.of_text(text)) == {"f": [(1, ("b",))]}


def test_a_diff_is_distinguished_from_code():
    assert list(hunks(changes.of_text("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b"))) == ["f"]
    assert list(hunks(changes.of_text("--- a comment\n+++ another\nx = 1"))) == ["<stdin>"]
