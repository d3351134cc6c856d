"""The routes of the viewer and its report by the rules of `mimo/operations/disclosure.py`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.call.spec import to_json
from mimo.extensions.web.answers import contents
from tests.extensions.web.requests import Client
from tests.extensions.web.sample import write_memory
from tests.extensions.web.test_report import written
from tests.operations.test_disclosure import LABELS, STATES, ids, labels

__all__ = ["ids"]

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)

WORDS = {"walrus": (False, True), "zebra": (True, False), "quagga": (True, True)}
"""A word that only one memory has, in each of its texts; whether it is private, and unapproved."""

ROUTES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("overview", {}),
    ("list", {}),
    ("list", {"trust": "untrusted"}),
    *(("search", {"query": word}) for word in (*WORDS, "tea")),
    *(("page", {"id": f"decision_{word}"}) for word in (*WORDS, "tea", "pot")),
    ("chains", {}),
    ("graph", {}),
    ("graph", {"id": "decision_tea", "depth": 2}),
    ("pitfalls", {}),
    ("review", {"limit": 100}),
)


@pytest.fixture
def mixed(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A project where memories of each state claim to supersede an approved one."""
    monkeypatch.chdir(project)
    call.mind.trust.follow(False)
    write(call, "tea", {})
    write(call, "pot", {"links": [f"{{to: decision_{word}, type: builds_on}}" for word in WORDS]})
    for word, (is_private, is_unapproved) in WORDS.items():
        header: dict[str, object] = {
            **{name: f"{word}-{name}" for name in ("by", "category", "source", "odd", "status")},
            "tags": [f"{word}-tag"],
            "outcome": "FAILED",
            "links": [f"{{to: decision_tea, type: supersedes, as: {word}-words}}"],
        }
        write(call, word, header, is_private=is_private, is_unapproved=is_unapproved)
    return call


def write(
    call: Call,
    word: str,
    header: dict[str, object],
    *,
    is_private: bool = False,
    is_unapproved: bool = False,
) -> None:
    root = call.mind.project.root
    named = {"title": f"Drink {word}", "topic": "tea", **header}
    text = f"About {word}.\n\n## Reasoning\n\nBecause of {word}."
    path = write_memory(root, f"decision_{word}", "decision", named, text, created=NOON)
    if is_private:
        (root / ".mind" / "private").mkdir(exist_ok=True)
        path = path.rename(root / ".mind" / "private" / path.name)
    if not is_unapproved:
        call.mind.trust.approve(call.mind.store.approvals(str(path.relative_to(root))))


def rows(answer: Any) -> Iterator[dict[str, Any]]:
    """Yields the objects in an answer that describe a memory by its title."""
    if isinstance(answer, list):
        for part in answer:
            yield from rows(part)
    elif isinstance(answer, dict):
        if "title" in answer:
            yield answer
        for part in answer.values():
            yield from rows(part)


@pytest.mark.attack("web")
@pytest.mark.parametrize(("route", "arguments"), ROUTES)
def test_each_memory_has_its_labels_on_each_route(
    mixed: Call, route: str, arguments: dict[str, Any]
) -> None:
    client = Client(mixed)
    titled = [row for row in rows(client.ask(route, **arguments)) if row["title"]]

    for word, (is_private, is_unapproved) in WORDS.items():
        for row in titled:
            if word in row["title"] and route != "review":
                assert row.get("private", False) is is_private, row
                assert (row.get("trust") == "untrusted") is is_unapproved, row
            elif word in row["title"] and "kind" in row:
                # An item names the file, whose folder is a label. Its trust is the least of all.
                assert ("/private/" in row["file"]) is is_private, row
                assert (row.get("trust") == "untrusted") >= is_unapproved, row
    successors = {row["superseded_by"] for row in titled if "superseded_by" in row}
    assert successors <= {"decision_zebra"}  # Unapproved memories supersede no approved one.


@pytest.mark.attack("web")
@pytest.mark.parametrize("untrusted", [False, True])
@pytest.mark.parametrize("private", [False, True])
def test_a_report_is_as_if_the_memories_that_it_leaves_out_did_not_exist(
    mixed: Call, project: Path, private: bool, untrusted: bool
) -> None:
    left_out = {
        word
        for word, (is_private, is_unapproved) in WORDS.items()
        if is_private > private or is_unapproved > untrusted
    }
    options = {"private": private, "untrusted": untrusted}
    written(mixed, "r.html", **options)
    report = (project / "r.html").read_text("utf-8")
    named = {word for word in WORDS if word in report}
    assert named == WORDS.keys() - left_out

    (project / ".mind" / "decisions" / "decision_pot.md").unlink()  # It links to all of them.
    written(mixed, "r.html", **options)
    report = (project / "r.html").read_text("utf-8")
    for word in left_out:
        (path,) = (project / ".mind").glob(f"*/decision_{word}.md")
        path.unlink()
    written(mixed, "r.html", **options)
    assert (project / "r.html").read_text("utf-8") == report


@pytest.mark.parametrize("state", STATES)
def test_a_report_leaves_private_and_unapproved_memories_out(
    call: Call, ids: dict[str, str], state: str
) -> None:
    report = to_json(contents(call))
    pages = [page["memory"] for page in report["pages"]]
    expected = None if state in ("private", "unapproved") else LABELS[state]

    assert labels(pages, ids[state]) == expected
    assert (ids[state] in str(report)) == (expected is not None)
