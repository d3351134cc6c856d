"""The merge of a memory, case by case."""

from datetime import UTC, datetime
from itertools import permutations

import pytest

from mimo.memory.codec.file import Parsed, parse
from mimo.memory.merge import merge
from mimo.memory.model import Version

PATH = ".mind/decisions/x.md"
HEAD = "---\nid: x\ntype: decision\n"
NOW = datetime(2026, 11, 20, tzinfo=UTC)


def file(header="", body="Use JWT.", head=HEAD):
    return f"{head}{header}---\n{body}\n".encode()


def merged(base, ours, theirs, path=PATH):
    result = merge(base, ours, theirs, path=path)
    assert result is not None
    assert result == merge(base, theirs, ours, path=path)
    parsed = parse(result.data, path=path, modified=NOW)
    assert isinstance(parsed, Parsed)
    return parsed.memory, result.data.decode()


def in_all_orders(base, *sides):
    """Returns the different results of merging branches one after the other."""
    results = set()
    for order in permutations(sides):
        data = base
        for side in order:
            result = merge(base, data, side, path=PATH)
            assert result is not None
            data = result.data
        results.add(data)
    return results


def test_a_scalar_is_taken_from_the_side_that_changed_it():
    memory, _ = merged(
        file("confidence: 0.5\n"), file("confidence: 0.9\n"), file("topic: auth\nconfidence: 0.5\n")
    )
    assert (memory.confidence, memory.topic, memory.competing) == (0.9, "auth", ())


@pytest.mark.parametrize(
    ("key", "values", "current"),
    [
        ("confidence", ("0.9", "0.4"), "0.4"),
        ("importance", ("0.9", "0.4"), "0.9"),
        ("outcome", ("SUCCESS", "FAILED"), "FAILED"),
        ("protected", ("false", "true"), "true"),
        ("status", ("open", "closed"), "closed"),
    ],
)
def test_careful_value_is_current_and_the_other_competes(key, values, current):
    memory, text = merged(file(), *(file(f"{key}: {value}\n") for value in values))
    other = next(value for value in values if value != current)
    assert f"{key}: {current}\n" in text
    assert memory.competing == (Version(field=key, text=other),)
    assert text.endswith(f"\n## Competing: {key}\n{other}\n")


def test_a_value_that_one_side_removed_and_the_other_changed_stays():
    memory, _ = merged(file("confidence: 0.5\n"), file(), file("confidence: 0.9\n"))
    assert memory.confidence == 0.9
    assert memory.competing == (Version(field="confidence", text="null"),)


def test_lists_are_united_without_the_removals_of_either_side():
    memory, _ = merged(file("tags: [a, b]\n"), file("tags: [b, z]\n"), file("tags: [a, b, c]\n"))
    assert memory.tags == ("b", "c", "z")


def test_links_are_united():
    base, ours, theirs = (
        "".join(f"  - {{to: {to}, type: refines}}\n" for to in names)
        for names in (("a",), ("a", "b"), ("a", "c"))
    )
    memory, _ = merged(*(file(f"links:\n{links}") for links in (base, ours, theirs)))
    assert [link.to for link in memory.links] == ["a", "b", "c"]


def test_comments_order_and_foreign_keys_are_kept():
    head = "---\n# mine\nzeta: 1 # why\nid: x\ntype: decision\n"
    _, text = merged(
        file(head=head), file("alpha: [1]\n", head=head), file("topic: auth\n", head=head)
    )
    assert text.startswith("---\n# mine\nzeta: 1 # why\nid: x\ntype: decision\ntopic: auth\n")


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("topic: a\n", "# why\ntopic: a\n", "topic: b\n", "# why\ntopic: b\n"),
        ("topic: a\n", "topic: a  # why\n", "topic: b\n", "# why\ntopic: b\n"),
        ("topic: a\n", "topic: a  # why\n", "", "# why\n"),
        ("topic: a\n", "# b\ntopic: a\n", "# a\ntopic: a\n", "# a\n# b\ntopic: a\n"),
        ("", "tags:  # why\n- x\n", "tags:\n- x\n", "# why\ntags: [x]\n"),
        ("topic: a\n", "topic: a\n# b\n", "topic: a\n# a\n", "topic: a\n# a\n# b\n"),
        ("# old\ntopic: a\n", "topic: b\n", "# old\ntopic: a # new\n", "# new\ntopic: b\n"),
        ("note: 'x'\n", "note: 'x # y'\n", "note: 'x' # z\n", "# z\nnote: 'x # y'\n"),
    ],
)
def test_a_comment_of_one_side_is_kept(base, ours, theirs, expected):
    _, text = merged(file(base), file(ours), file(theirs))
    assert text == file(expected).decode()


def test_a_list_that_one_side_emptied_gets_the_additions_of_the_other():
    memory, text = merged(file("tags: [a]\n"), file(), file("tags: [a, b]\n"))
    assert (memory.tags, memory.competing) == (("b",), ())
    assert "tags: [b]\n" in text


def test_each_section_is_merged_separately():
    body = "Use JWT.\n\n## Reasoning\nStateless.\n\n## Outcome\n- so far"
    memory, _ = merged(
        file(body=body), file(body=body.replace("Stateless", "It is stateless")),
        file(body=body.replace("so far", "so far so good")),
    )  # fmt: skip
    assert memory.sections == {"Reasoning": "It is stateless.", "Outcome": "- so far so good"}


def test_two_versions_of_a_text_share_the_changes_without_conflict():
    old, ours, theirs = (
        "one\n\ntwo\n\nthree",
        "ONE\n\ntwo\n\nour three",
        "one\n\ntwo\n\ntheir three!",
    )
    memory, text = merged(file(body=old), file(body=ours), file(body=theirs))
    assert memory.content == "ONE\n\ntwo\n\ntheir three!"
    assert memory.competing == (Version(field="the text", text="ONE\n\ntwo\n\nour three"),)
    assert "\n## Competing: the text\nONE\n" in text


def test_a_version_with_a_part_of_the_changes_of_another_branch_is_not_kept():
    """The third branch conflicts with the second one only."""
    base, first, second, third = (
        file(body=body) for body in ("a\nb\nc\nd\ne", "A\nb\nc\nd\ne", "x", "a\nb\nc\nd\nE")
    )
    assert in_all_orders(base, first, second, third) == {
        file(body="A\nb\nc\nd\nE\n\n## Competing: the text\nx")
    }


@pytest.mark.parametrize("base", ["Short.", "Between both."])
def test_a_side_without_a_change_of_the_text_leaves_the_current_version_of_the_other(base):
    """Not the longest one, as between two sides that changed it."""
    chosen = file(body="Short.\n\n## Competing: the text\nLonger than that.")
    memory, _ = merged(file(body=base), chosen, file("topic: auth\n", body=base))
    assert (memory.content, memory.topic) == ("Short.", "auth")
    assert memory.competing == (Version(field="the text", text="Longer than that."),)


def test_a_competing_version_that_equals_the_base_is_kept():
    """It competes with a change of it, so it is not contained in a text with that change."""
    ours = file(body="a\n\nb\nnew\n\n## Competing: the text\na\n\nb")
    memory, _ = merged(file(body="a\n\nb"), ours, file(body="A\n\nb"))
    assert {memory.content, *(version.text for version in memory.competing)} == {
        "A\n\nb\nnew", "A\n\nb",
    }  # fmt: skip


def test_a_side_that_is_merged_again_adds_no_second_copy_of_a_version():
    base, ours, theirs, third = (
        file(body=body)
        for body in (
            "a\n\n## Reasoning\nx",
            "new\n\na b\n\n## Reasoning\nx",
            "a\nc\n\n## Reasoning\nx",
            "a\n\n## Reasoning\nx\ny",
        )
    )
    data = before = base
    for side in (ours, theirs, third):
        result = merge(base, data, side, path=PATH)
        assert result is not None
        before, data = data, result.data
    again = merge(base, data, before, path=PATH)
    assert again is not None
    assert again.data.count(b"## Competing: the text") == 1


def test_a_removed_paragraph_is_matched_the_same_beside_every_other_change():
    """A difference that begins with the longest common part takes either blank line."""
    base = "a\nb\n\nc\n\nd\ne\nf\n\ng"
    sides = ("a\nb\n\nd\ne\nf\n\ng", "a\nb\n\nc\n\nd\ne\nF\n\ng", base.replace("b", "B"))
    results = in_all_orders(*(file(body=body) for body in (base, *sides)))
    assert results == {file(body="a\nB\n\nd\ne\nF\n\ng")}


def test_a_version_with_headings_of_sections_is_restored():
    ours, theirs = "a\n## Outcome of it\n\\## Outcome", "b\n## Competing: x"
    memory, _ = merged(b"", file(body=ours), file(body=theirs.replace("## C", "\\## C")))
    assert {memory.content, *(version.text for version in memory.competing)} == {
        "a\n## Outcome of it\n## Outcome", theirs,
    }  # fmt: skip


def test_conflict_resolved_on_one_branch_stays_resolved():
    open_ = file("confidence: 0.4\n", "Use JWT.\n\n## Competing: confidence\n0.9")
    settled = file("confidence: 0.9\n")
    memory, _ = merged(
        open_,
        settled,
        file("topic: auth\nconfidence: 0.4\n", "Use JWT.\n\n## Competing: confidence\n0.9"),
    )
    assert (memory.confidence, memory.competing, memory.topic) == (0.9, (), "auth")


def test_conflict_resolved_in_two_ways_is_open_again():
    open_ = file("confidence: 0.4\n", "Use JWT.\n\n## Competing: confidence\n0.9")
    memory, _ = merged(open_, file("confidence: 0.9\n"), file("confidence: 0.4\n"))
    assert memory.confidence == 0.9
    assert memory.competing == (Version(field="confidence", text="0.4"),)


def test_line_ends_are_kept():
    ours = file("topic: auth\n").replace(b"\n", b"\r\n")
    result = merge(
        file().replace(b"\n", b"\r\n"),
        ours,
        file(body="Use sessions.").replace(b"\n", b"\r\n"),
        path=PATH,
    )
    assert result is not None
    assert result.data == file("topic: auth\n", "Use sessions.").replace(b"\n", b"\r\n")


def test_handwritten_note_keeps_both_versions():
    base, ours, theirs = (f"# Tea\n\n{text}\n".encode() for text in ("?", "Green.", "Black."))
    memory, text = merged(base, ours, theirs, path=".mind/notes/tea.md")
    assert {memory.content, memory.competing[0].text} == {"# Tea\n\nGreen.", "# Tea\n\nBlack."}
    assert text.count("## Competing: the text") == 1


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (b"---\nid: [\n---\nx\n", file()),
        (b"\xff\xfe", file()),
        (b"+++\na = 1\n+++\nx\n", b"+++\na = 2\n+++\nx\n"),
        (b"---\n{a: 1}\n---\nx\n", b"---\n{a: 2}\n---\nx\n"),
    ],
)
def test_a_file_that_cannot_be_merged_safely_is_left_to_git(ours, theirs):
    assert merge(file(), ours, theirs, path=PATH) is None
    assert merge(file(), theirs, ours, path=PATH) is None


def test_an_ingested_file_is_taken_from_the_branch_that_replaced_it():
    base, replaced = (
        f"---\nid: s\ncreated: 2026-11-{day}\n---\n<!-- chunk 1 lines 1-1 -->\nx\n".encode()
        for day in ("02", "01")
    )
    for ours, theirs in ((base, replaced), (replaced, base)):
        result = merge(base, ours, theirs, path=".mind/sources/s.md")
        assert result is not None
        assert (result.data, result.dropped) == (replaced, False)


def test_of_two_copies_of_an_ingested_file_the_newer_is_kept():
    old, new = (
        f"---\nid: s\ncreated: 2026-11-{day}\n---\n<!-- chunk 1 lines 1-1 -->\nx\n".encode()
        for day in ("01", "02")
    )
    result = merge(b"", new, old, path=".mind/sources/s.md")
    assert result is not None
    assert (result.data, result.dropped) == (new, True)
    assert result == merge(b"", old, new, path=".mind/sources/s.md")


@pytest.mark.attack("repeated text takes quadratic time")
def test_texts_of_repeated_lines_are_merged():
    base, ours, theirs = ("\n".join(lines * 1_950) for lines in ("aa", "ab", "ac"))
    memory, _ = merged(file(body=base), file(body=ours), file(body=theirs))
    assert {memory.content, *(version.text for version in memory.competing)} == {ours, theirs}


@pytest.mark.attack("repeated text takes quadratic time")
def test_a_key_with_too_many_hashes_is_merged_as_text_by_git():
    sides = (file(f'note: "{name}{" #" * 20_000}"\n') for name in "abc")
    assert merge(*sides, path=PATH) is None
