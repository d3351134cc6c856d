"""Documents that are memories where they stand: found, counted, shown and edited, never copied."""

import json
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.call.spec import to_json
from mimo.cli.main import main
from mimo.errors import Invalid
from mimo.features.ingest import Options, ingest_files
from mimo.features.notes.commands import edit
from mimo.features.notes.reading import list_, show
from mimo.features.search.commands import search
from mimo.features.upkeep.status import status
from mimo.memory.chunking import Chunking, Strategy
from mimo.memory.model import Kind
from mimo.operations import removing, saving

ADR = "# Use Postgres\n\n## Status\n\nAccepted\n\nReports need joins.\n"
NOTE = (
    "---\r\ntitle: Cache pages  # short\r\ndate: 2024-03-05\r\ntags:\r\n  - perf\r\n"
    "aliases: [cachy]\r\n---\r\n# Cache\r\n\r\nThe page cache lacks the locale.\r\n"
)
PLAIN = "Wombats sleep in burrows.\n"
POST = '+++\ntitle = "A post"\ndate = 2023-01-02T03:04:05Z\ndraft = true\n+++\nHugo says hello.\n'
RECORD = "docs.decisions.0001-use-postgres"


@pytest.fixture
def documents(call: Call, project: Path) -> dict[str, str]:
    """Documents in the project and under `.mind/`, none of them written by mind."""
    every = {
        "docs/decisions/0001-use-postgres.md": ADR,
        "docs/decisions/0002-post.md": POST,
        ".mind/notes/cache.md": NOTE,
        ".mind/notes/deep/wombat.md": PLAIN,
    }
    for name, text in every.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    with (call.mind.folder / "config.toml").open("a", encoding="utf-8") as file:
        file.write('include = ["docs/decisions/*.md"]\n')
    (project / "docs" / "other.md").write_text("Not named by any glob.\n", encoding="utf-8")
    return every


def test_included_memories_are_listed_with_their_headers_and_places(
    call: Call, documents: dict[str, str]
) -> None:
    rows = {row.file: row for row in list_(call).memories}
    assert set(rows) == set(documents)
    note = rows[".mind/notes/cache.md"]
    assert (note.id, note.title, note.tags) == ("notes.cache", "Cache pages", ("perf",))
    assert note.created_at.isoformat() == "2024-03-05T00:00:00+00:00"
    adr = rows["docs/decisions/0001-use-postgres.md"]
    assert (adr.id, adr.type, adr.title) == (RECORD, Kind.DECISION, "Use Postgres")
    post = rows["docs/decisions/0002-post.md"]
    assert (post.title, post.created_at.year) == ("A post", 2023)
    assert rows[".mind/notes/deep/wombat.md"].id == "notes.deep.wombat"


@pytest.mark.parametrize(
    ("query", "file", "line"),
    [
        ("why postgres for reports", "docs/decisions/0001-use-postgres.md", 1),
        ("locale of the page cache", ".mind/notes/cache.md", 8),
        ("wombats", ".mind/notes/deep/wombat.md", 1),
    ],
)
def test_they_are_found_where_they_stand(
    call: Call, documents: dict[str, str], query: str, file: str, line: int
) -> None:
    best = search(call, query).results[0]
    assert best.source_file == file
    assert best.source_line == line
    assert not list(call.mind.folder.rglob("fact_*"))


def test_nothing_is_copied_or_changed_by_looking(call: Call, documents: dict[str, str]) -> None:
    search(call, "cache")
    show(call, RECORD)
    status(call)
    root = call.mind.project.root
    assert {name: (root / name).read_bytes().decode() for name in documents} == documents
    assert sorted(p.name for p in call.mind.folder.iterdir() if p.name[0] != ".") == [
        "MEMORY.md", "config.toml", "notes",
    ]  # fmt: skip


def test_show_prints_the_text_and_unknown_keys_of_an_included_memory(
    call: Call, documents: dict[str, str]
) -> None:
    shown = show(call, "notes.cache")
    assert "The page cache lacks the locale." in shown.content
    assert shown.extra["aliases"] == ["cachy"]
    assert shown.file == ".mind/notes/cache.md"


def test_an_edit_changes_one_key_and_no_other_byte(call: Call, documents: dict[str, str]) -> None:
    edit(call, "notes.cache", importance=0.9)
    changed = (call.mind.folder / "notes" / "cache.md").read_bytes().decode()
    assert changed.replace("importance: 0.9\r\n", "") == NOTE
    assert show(call, "notes.cache").importance == 0.9


def test_rm_refuses_memories_outside_the_store(call: Call, documents: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="does not remove"):
        removing.remove(call, RECORD)
    removing.remove(call, "notes.cache")
    assert not (call.mind.folder / "notes" / "cache.md").exists()


def test_status_counts_included_and_ingested_memories_separately(
    call: Call, documents: dict[str, str], project: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(project)
    (project / "log.txt").write_text("first line of it\nsecond line of it\n", encoding="utf-8")
    by_lines = Chunking(strategy=Strategy.LINES, lines_per_chunk=1)
    ingest_files(call, ["log.txt"], Options(chunking=by_lines))
    saving.store(call, saving.draft(Kind.FACT, "Tea is hot"))

    shown = to_json(status(call))["current_project"]
    assert shown["memories"] == 7
    assert shown["origins"] == {"in_place": 4, "included": 2, "ingested_files": 1, "chunks": 2}
    assert main(["status"], open=lambda _: call.mind) == 0
    out = capsys.readouterr().out
    assert "in place:      4 memories read where they are, 2 of them by `include`" in out
    assert "ingested:      1 file, 2 chunks" in out


def test_status_omits_included_memories_if_there_are_none(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    saving.store(call, saving.draft(Kind.FACT, "Tea is hot"))
    assert main(["status"], open=lambda _: call.mind) == 0
    assert "in place" not in capsys.readouterr().out
    assert main(["status", "--json"], open=lambda _: call.mind) == 0
    shown = json.loads(capsys.readouterr().out)["current_project"]
    assert set(shown["origins"].values()) == {0}
