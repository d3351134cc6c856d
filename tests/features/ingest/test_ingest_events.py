"""Every ingested file leaves an event."""

import pytest

from mimo.errors import Invalid
from mimo.features.ingest import Options, ingest_files
from mimo.memory.chunking import Chunking, Strategy
from mimo.surroundings import Timer


@pytest.fixture
def timed(call):
    ticks = iter(range(0, 1_000, 2))
    call.mind.timer = Timer(monotonic=lambda: next(ticks), sleep=lambda _: None)
    return call


def events(call):
    return [(one.name, one.measurements, one.metadata) for one in call.mind.events.read()[0]]


def test_an_event_has_the_file_and_its_cost(timed, project, monkeypatch):
    monkeypatch.chdir(project)
    text = "A first paragraph.\n\nAnd a second one.\n"
    (project / "notes.txt").write_text(text, encoding="utf-8")

    taken = ingest_files(timed, ["notes.txt"], Options()).files[0]
    ingest_files(timed, ["notes.txt"], Options())
    ingest_files(timed, ["notes.txt"], Options(chunking=Chunking(strategy=Strategy.WHOLE)))

    numbers = {"duration_ms": 2000.0, "bytes": len(text)}
    about = {"path": "notes.txt", "source": taken.source_id}
    name = "mimo.ingest.file"
    assert events(timed) == [
        (
            name,
            numbers | {"chunks": 2, "replaced": 0},
            about | {"strategy": "paragraphs", "known": False},
        ),
        (
            name,
            numbers | {"chunks": 2, "replaced": 0},
            about | {"strategy": "paragraphs", "known": True},
        ),
        (
            name,
            numbers | {"chunks": 1, "replaced": 2},
            about | {"strategy": "whole", "known": False},
        ),
    ]


def test_every_ingested_file_of_a_folder_leaves_an_event(timed, project, monkeypatch):
    monkeypatch.chdir(project)
    (project / "docs").mkdir()
    for name, data in (
        ("a.md", b"# A\n\nlong enough\n"),
        ("b.md", b"\x00\x01"),
        ("c.md", b"yes, long"),
    ):
        (project / "docs" / name).write_bytes(data + b" and so on")

    ingest_files(timed, ["docs"], Options())

    assert [metadata["path"] for _, _, metadata in events(timed)] == ["docs/a.md", "docs/c.md"]


def test_a_dry_run_and_a_refusal_leave_no_event(timed, project, monkeypatch):
    monkeypatch.chdir(project)
    (project / "a.md").write_text("# A\n\nlong enough\n", encoding="utf-8")
    (project / "b.pdf").write_bytes(b"%PDF-1.7\n")

    ingest_files(timed, ["a.md"], Options(dry_run=True))
    with pytest.raises(Invalid):
        ingest_files(timed, ["b.pdf"], Options())

    assert events(timed) == []
