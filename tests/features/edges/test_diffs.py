"""What a unified diff adds."""

import difflib

from hypothesis import given
from hypothesis import strategies as st

from mimo.features.edges import diffs
from mimo.features.edges.diffs import Added, Hunk

LINES = st.lists(st.sampled_from(["a", "b", "", "--- x", "+++ y", "@@ -1 +1 @@", "\\ no"]))


@given(LINES, LINES, st.integers(0, 3))
def test_added_lines_have_the_numbers_of_the_diff(before, after, context):
    told = "\n".join(
        ["diff --git a/f b/f",
         *difflib.unified_diff(before, after, "a/f", "b/f", n=context, lineterm="")]
    )  # fmt: skip
    added = {
        hunk.start + n: line
        for file in diffs.parse(told)
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

    assert list(diffs.parse(text)) == [
        Added(path='café "x".py', hunks=(Hunk(start=1, lines=("one", "two")),))
    ]


def test_a_truncated_diff_gives_its_complete_part():
    (added,) = diffs.parse("+++ b/f\n@@ -0,0 +7,3 @@\n+one")

    assert added.hunks == (Hunk(start=7, lines=("one",)),)


def test_a_diff_is_distinguished_from_code():
    assert diffs.is_diff("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b")
    assert not diffs.is_diff("--- a comment\n+++ another\nx = 1")
