"""The block of notes: it changes nothing outside its markers, and no text of the user."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.errors import Conflict, Invalid
from mimo.features import context
from mimo.features.context import END, find, replaced, whole, without

NOTES = "## Recent Decisions\n- Use JWT for auth (Dec 10)"

FILES = [
    b"",
    b"# Mine\n",
    b"# Mine",
    b"\xef\xbb\xbf# Mine\r\n\r\ntext\r\n",
    b"\xfc not UTF-8 \x80\n",
    b"---\npaths: [a]\n---\n# Mine\n",
    b"---\npaths: [a]\n---",
    b"```\n<!-- MIND:CONTEXT -->\nan example\n<!-- MIND:END -->\n```\n",
]


@pytest.mark.req("003-35")
def test_a_new_block_is_at_the_top() -> None:
    text = replaced(b"# Mine\n", NOTES).decode()
    assert text.startswith("<!-- MIND:CONTEXT sha=")
    assert text.endswith(f"\n{NOTES}\n{END}\n\n# Mine\n")


def test_a_heading_goes_with_the_last_of_its_lines() -> None:
    lines = "_Label_", "", "## Gotchas", "- a key leaks", "", "## Facts", "- a key", "- tea"
    data = replaced(b"# Mine\n", "\n".join(lines))
    without_key = without(data, lambda line: "key" in line)
    assert without_key == replaced(b"# Mine\n", "_Label_\n\n## Facts\n- tea")
    assert without(data, lambda line: "- " in line) == replaced(b"# Mine\n", "_Label_")


@pytest.mark.parametrize("data", FILES)
def test_everything_around_it_stays_byte_for_byte(data: bytes) -> None:
    once = replaced(data, NOTES)
    block = find(once)
    assert block is not None
    before, after = data[: block.start], data[block.start :]
    assert once.startswith(before)
    assert once.endswith(after)
    assert not once[block.end : len(once) - len(after)].strip()
    newer = replaced(once, "- other\n- notes")
    moved = find(newer)
    assert moved is not None
    assert newer[: moved.start] == once[: block.start]
    assert newer[moved.end :] == once[block.end :]


@pytest.mark.parametrize("data", FILES)
def test_writing_the_same_block_changes_nothing(data: bytes) -> None:
    once = replaced(data, NOTES)
    assert replaced(once, NOTES) == once


def test_a_block_has_the_newlines_of_the_file_and_follows_its_byte_order_mark() -> None:
    data = replaced(b"\xef\xbb\xbf# Mine\r\n", NOTES)
    assert data.startswith(b"\xef\xbb\xbf<!-- MIND:CONTEXT")
    assert data.count(b"\n") == data.count(b"\r\n")
    block = find(data)
    assert block is not None
    assert (block.body, block.edited) == (NOTES, False)


def test_front_matter_stays_at_the_top() -> None:
    assert replaced(b"---\na: 1\n---\nText\n", NOTES).startswith(b"---\na: 1\n---\n<!-- MIND:")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_front_matter_that_ends_the_file_stays_at_the_top(newline: str) -> None:
    data = f"---{newline}a: 1{newline}---".encode()
    assert replaced(data, NOTES).startswith(data + f"{newline}<!-- MIND:".encode())


def test_a_hand_edited_block_is_replaced_only_by_force() -> None:
    data = replaced(b"# Mine\n", NOTES).replace(b"JWT", b"PASETO")
    with pytest.raises(Conflict, match="line 1 was changed by hand"):
        replaced(data, "- new")
    assert b"- new\n" in replaced(data, "- new", force=True)


def test_a_block_without_a_hash_counts_as_edited() -> None:
    data = f"<!-- MIND:CONTEXT -->\n{NOTES}\n{END}\n".encode()
    with pytest.raises(Conflict):
        replaced(data, "- new")
    assert replaced(data, "- new", force=True).count(b"MIND:CONTEXT") == 1


@pytest.mark.parametrize(
    "data",
    [
        b"<!-- MIND:CONTEXT -->\nno end\n",
        f"{whole('a')}\n{whole('b')}\n".encode(),
        f"<!-- MIND:CONTEXT -->\n{whole('b')}\n".encode(),
    ],
)
def test_an_ambiguous_block_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        replaced(data, NOTES, force=True)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_refused(encoding: str) -> None:
    data = "# Mine\n".encode(encoding)
    for change in (find, lambda data: replaced(data, NOTES)):
        with pytest.raises(Invalid, match="not UTF-8"):
            change(data)


@given(st.text(st.characters(codec="utf-8")), st.binary(max_size=300))
def test_a_written_block_is_found_in_any_file(text: str, data: bytes) -> None:
    body = "- " + " ".join(text.replace("\x00", "").split())
    if re.search(rb"MIND:|---|```|~~~|\0|\A(?:\xff\xfe|\xfe\xff)", data):
        return
    block = find(replaced(data, body))
    assert block is not None
    assert (block.body, block.edited) == (body, False)


def test_markers_must_fill_a_line() -> None:
    assert find(b"see <!-- MIND:CONTEXT --> and <!-- MIND:END -->\n") is None
    assert context.find(b"    <!-- MIND:CONTEXT -->\n") is None


@pytest.mark.parametrize(
    "above",
    [
        "```mind status``` shows the state",
        "````\n```\n````",
        "```\n```python\n```",
        "~~~\n```\n~~~",
    ],
)
def test_a_block_below_code_is_found(above: str) -> None:
    data = f"{above}\n{whole(NOTES)}\n".encode()

    assert context.find(data) is not None
    assert replaced(data, "- new").count(b"MIND:CONTEXT") == 1


@pytest.mark.parametrize("above", ["```", "````\n```", "~~~ text\n```", "```\n```python"])
def test_a_block_within_code_is_text(above: str) -> None:
    assert context.find(f"{above}\n{whole(NOTES)}\n".encode()) is None
