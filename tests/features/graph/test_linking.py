"""`mind link`: which file holds a link, and the bytes around it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.errors import Invalid, NotFound
from mimo.features.graph.linking import link
from mimo.features.notes.reading import show

Write = Callable[..., Path]

HEADER = "id: {id}\r\ntype: fact   # kept\r\ncustom: [a,   b]\r\ncreated: 2026-11-{day:02}\r\n"


@pytest.fixture
def write(call: Call) -> Write:
    """Writes a memory by hand, with line ends and a layout of its own."""

    def make(id: str, day: int, text: str = "hand written") -> Path:
        path = call.mind.folder / "facts" / f"{id}.md"
        path.parent.mkdir(exist_ok=True)
        header = HEADER.format(id=id, day=day)
        path.write_bytes(f"---\r\n{header}---\r\n\r\n{text}\r\n\r\n".encode())
        return path

    return make


@pytest.fixture(autouse=True)
def files(write: Write) -> tuple[Path, Path]:
    """The files of an older and a newer memory."""
    return write("older_note", 1, "first"), write("newer_note", 2, "second")


def links(call: Call, id: str) -> list[tuple[str, str]]:
    return [(row.to, row.type) for row in show(call, id).links]


def test_a_link_is_written_into_the_newer_file_alone(call: Call, files: tuple[Path, Path]) -> None:
    older, newer = (path.read_bytes() for path in files)

    done = link(call, "newer_note", "older_note", type="builds on")

    assert links(call, "newer_note") == [("older_note", "builds_on")]
    assert (done.links[0].file, done.removed) == (".mind/facts/newer_note.md", False)
    assert files[0].read_bytes() == older
    added = b"links:\r\n  - {to: older_note, type: builds_on}\r\n"
    assert files[1].read_bytes().replace(added, b"") == newer


def test_a_relation_of_both_directions_is_written_into_the_newer_file(call: Call) -> None:
    link(call, "older_note", "newer_note", type="contradicts")

    assert links(call, "newer_note") == [("older_note", "contradicts")]
    assert links(call, "older_note") == []


@pytest.mark.parametrize("type", ["supersedes", "refines", "leads to"])
def test_a_directed_link_from_the_older_memory_is_refused(call: Call, type: str) -> None:
    with pytest.raises(Invalid, match="`older_note` is older") as caught:
        link(call, "older_note", "newer_note", type=type)

    assert "`mind link newer_note older_note --type " in caught.value.hint
    assert links(call, "older_note") == links(call, "newer_note") == []


def test_a_link_that_exists_is_not_written_again(call: Call, files: tuple[Path, Path]) -> None:
    link(call, "newer_note", "older_note")
    text = files[1].read_bytes()

    again = link(call, "older_note", "newer_note")

    assert (again.already, again.undo) == (True, None)
    assert files[1].read_bytes() == text


def test_links_are_removed_in_either_order_and_undone(call: Call, files: tuple[Path, Path]) -> None:
    before = files[1].read_bytes()
    link(call, "newer_note", "older_note", type="builds_on")
    link(call, "newer_note", "older_note", type="contradicts")
    with_links = files[1].read_bytes()

    link(call, "older_note", "newer_note", type="builds_on", remove=True)
    assert links(call, "newer_note") == [("older_note", "contradicts")]
    words = ("link", "older_note", "newer_note", "--remove")
    assert main(words, open=lambda _: call.mind) == 0
    assert files[1].read_bytes() == before
    assert main(("undo",), open=lambda _: call.mind) == 0
    assert links(call, "newer_note") == [("older_note", "contradicts")]
    assert len(with_links) > len(files[1].read_bytes()) > len(before)


def test_a_missing_link_is_not_removed(call: Call) -> None:
    with pytest.raises(NotFound, match="there is no link between"):
        link(call, "newer_note", "older_note", remove=True)
    link(call, "newer_note", "older_note")
    with pytest.raises(NotFound, match="of the type `refines`"):
        link(call, "newer_note", "older_note", type="refines", remove=True)


def test_a_link_in_the_text_is_not_removed(call: Call, write: Write) -> None:
    path = write("newest_note", 3, "see [[older_note]]")
    text = path.read_bytes()

    with pytest.raises(Invalid, match=r"is in the text of `newest_note`"):
        link(call, "newest_note", "older_note", remove=True)
    assert path.read_bytes() == text


def test_a_memory_is_not_linked_to_itself_or_to_a_missing_one(call: Call) -> None:
    with pytest.raises(Invalid, match="the same memory"):
        link(call, "newer_note", "newer_note")
    with pytest.raises(NotFound):
        link(call, "newer_note", "nowhere")


def test_links_of_both_memories_are_removed_or_none(call: Call, files: tuple[Path, Path]) -> None:
    link(call, "newer_note", "older_note")
    files[0].write_text(
        "---\n{id: older_note, type: fact, created: 2026-11-01, # by Ana\n"
        " links: [{to: newer_note, type: relates_to}]}\n---\nfirst\n",
        encoding="utf-8",
    )
    before = [path.read_bytes() for path in files]

    with pytest.raises(Invalid, match="header"):
        link(call, "newer_note", "older_note", remove=True)
    assert [path.read_bytes() for path in files] == before
