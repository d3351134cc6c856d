"""Following links over real files."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.features.notes.commands import add
from mimo.memory.relations import Graph
from mimo.operations import finding
from tests.kit import acting_as


def write(
    call: Call, name: str, *links: str, type: str = "relates_to", body: str = "A note"
) -> Path:
    """Writes a memory's file by hand."""
    path = call.mind.folder / "facts" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    rows = "".join(f"  - {{to: {link}, type: {type}}}\n" for link in links)
    held = f"links:\n{rows}" if links else ""
    path.write_text(
        f"---\nid: {name}\ntype: fact\ncreated: 2026-11-01T08:00:00Z\n{held}---\n{body}\n",
        encoding="utf-8",
    )
    return path


def ids(walk: Graph) -> list[str]:
    return [node.record.memory.id for node in walk.nodes]


@pytest.mark.req("004-51")
@pytest.mark.parametrize(("asked", "reached"), [(-1, 1), (0, 1), (3, 4), (5, 6), (6, 6), (99, 6)])
def test_a_walk_ends_after_five_links(call: Call, asked: int, reached: int) -> None:
    for number in range(8):
        write(call, f"m{number}", f"m{number + 1}")

    assert len(finding.linked(call, ["m0"], depth=asked).nodes) == reached


def test_links_in_the_text_count_by_id_and_by_title(call: Call) -> None:
    write(call, "a", body="# Tea\n\nSee [[b]]")
    write(call, "b", body="See [[Tea]]")
    write(call, "c", body="More of [[Tea]]")

    walk = finding.linked(call, ["a"], depth=1)

    assert ids(walk) == ["a", "b", "c"]
    assert {edge.type for edge in walk.edges} == {"relates_to"}


@pytest.mark.req("004-57")
def test_a_file_that_an_editor_changes_shows_at_once(call: Call) -> None:
    path = write(call, "a", "b")
    write(call, "b")
    write(call, "c")
    assert ids(finding.linked(call, ["a"], depth=1)) == ["a", "b"]

    write(call, "a", "c", "b")
    assert ids(finding.linked(call, ["a"], depth=1)) == ["a", "b", "c"]

    path.unlink()
    walk = finding.linked(call, ["a"], depth=1)
    assert (ids(walk), walk.missing) == ([], ("a",))


@pytest.mark.req("004-57")
def test_a_link_that_another_process_makes_shows_at_once(call: Call, home: Path) -> None:
    write(call, "a")
    assert ids(finding.linked(call, ["a"], depth=1)) == ["a"]

    words = [
        sys.executable,
        "-m",
        "mimo",
        "add",
        "About [[a]]",
        "--project",
        str(call.mind.project.root),
    ]
    subprocess.run(words, check=True, capture_output=True, env={"MIND_HOME": str(home)})

    assert len(finding.linked(call, ["a"], depth=1).nodes) == 2


def test_every_view_of_a_memory_shares_one_walk(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(call, "a")
    later = time.time_ns() + 3_600_000_000_000  # Of fresh files every question is a new one.
    monkeypatch.setattr(time, "time_ns", lambda: later)

    first = finding.linked(call, ["a"], depth=1)

    assert finding.linked(acting_as(call, "claude-code"), ["a"], depth=1) is first


@pytest.mark.req("004-60")
def test_links_are_never_inferred(call: Call) -> None:
    """No clustering, no links of likeness, no merging: not even among copies of one text."""
    kinds = ("decision", "insight", "decision")
    text = "Use JWT with refresh tokens"
    made = [add(call, text, type=kind, title="JWT", topic="auth", tags=("auth",)) for kind in kinds]

    for written in made:
        walk = finding.linked(call, [written.id], depth=5)
        assert ids(walk) == [written.id]
        assert (walk.edges, walk.missing) == ((), ())
        assert "links" not in (call.mind.project.root / written.file).read_text(encoding="utf-8")
