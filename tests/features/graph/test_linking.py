"""`mind link`: which file holds a link, and the bytes around it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Invalid
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
