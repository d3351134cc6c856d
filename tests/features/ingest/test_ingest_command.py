"""`mind ingest` and the tool `ingest`: what they answer, and what a person sees."""

import json

import pytest

from mimo.call import Caller, Surface
from mimo.call.arguments import decode
from mimo.call.schema import input_schema, output_schema
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.errors import Invalid, SandboxViolation
from mimo.features.ingest.commands import ingest
from mimo.features.notes.commands import edit, rm
from mimo.features.notes.memory_tool import delete, list_memories
from mimo.features.notes.memory_tool import search as memory_search
from mimo.features.notes.reading import show
from mimo.features.search.commands import search
from mimo.memory.chunking import Strategy
from mimo.memory.model import Category
from mimo.operations import overview
from mimo.operations.invoke import invoke

SPEC = all_commands().at("ingest")

GUIDE = """\
# Guide

Words of introduction for all.

## Install

Run make install, then wait.
"""


@pytest.fixture(autouse=True)
def _there(project, monkeypatch):
    monkeypatch.chdir(project)
    (project / "docs").mkdir()
    (project / "docs" / "guide.md").write_text(GUIDE)
    (project / "docs" / "notes.txt").write_text("Some words to keep.\n\nSome other words.\n")


@pytest.fixture
def run(call, capsys):
    def run(*argv):
        status = main(list(argv), open=lambda _: call.mind)
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.mark.req("000-63")
@pytest.mark.req("000-64")
def test_the_tool_accepts_the_documented_arguments():
    schema = input_schema([SPEC])
    assert schema["required"] == ["path"]
    taken = {name: field for name, field in schema["properties"].items() if name != "paths"}
    assert "paths" not in schema["properties"]
    assert taken["path"]["type"] == "string"
    assert taken["strategy"]["enum"] == [
        "auto",
        "paragraphs",
        "lines",
        "sentences",
        "markdown",
        "whole",
    ]
    defaults = {name: taken[name].get("default") for name in ("strategy", "category", "importance")}
    assert defaults == {"strategy": "auto", "category": "fact", "importance": 0.5}
    assert taken["chunk_size"]["type"] == taken["overlap"]["type"] == "integer"
    assert SPEC.description == "Ingest file content into memory with automatic chunking"


@pytest.mark.req("000-77")
@pytest.mark.req("000-78")
@pytest.mark.req("000-95")
def test_the_answer_has_the_documented_fields(call):
    answer = to_json(ingest(call, "docs/guide.md"))
    source = answer["source_id"]
    assert answer == {
        "ingested": True,
        "chunks_created": 2,
        "file_size": len(GUIDE),
        "strategy_used": "markdown",
        "ids": [f"{source}.1", f"{source}.2"],
        "source_id": source,
        "file": f".mind/sources/{source}.md",
    }
    required = output_schema([SPEC])["required"]
    assert required == ["ingested", "chunks_created", "file_size", "strategy_used", "ids"]


def test_the_same_content_is_answered_with_the_ids_that_exist(call):
    first = ingest(call, "docs/guide.md")
    again = to_json(ingest(call, "docs/guide.md"))
    assert (again["ingested"], again["chunks_created"], again["already_ingested"]) == (
        True,
        0,
        True,
    )
    assert again["ids"] == list(first.ids)


def test_several_files_are_answered_together_and_one_by_one(call):
    answer = to_json(ingest(call, "docs"))
    assert (answer["ingested"], answer["chunks_created"], answer["strategy_used"]) == (
        True,
        4,
        "mixed",
    )
    assert len(answer["ids"]) == 4
    assert [(row["path"], row["chunks_created"]) for row in answer["files"]] == [
        ("docs/guide.md", 2),
        ("docs/notes.txt", 2),
    ]
    assert answer["file_size"] == sum(row["file_size"] for row in answer["files"])
    assert "already_ingested" not in answer
    assert to_json(ingest(call, "docs/*"))["already_ingested"] is True


@pytest.mark.req("000-73")
@pytest.mark.req("000-74")
@pytest.mark.req("000-75")
@pytest.mark.req("000-76")
@pytest.mark.req("000-87")
@pytest.mark.req("000-91")
def test_a_chunk_has_the_options_and_its_origin(call):
    answer = ingest(
        call,
        "docs/guide.md",
        category=Category.OBSERVATION,
        importance=0.9,
        tags=("howto", "guide"),
        metadata={"team": "platform", "depth": {"n": 1}},
    )
    shown = show(call, answer.ids[1])
    assert (shown.type, shown.importance, shown.tags) == ("observation", 0.9, ("howto", "guide"))
    assert shown.extra == {
        "team": "platform",
        "depth": {"n": 1},
        "source_file": "docs/guide.md",
        "chunk_index": 1,
        "total_chunks": 2,
        "strategy": "markdown",
        "lines": "5-7",
        "heading_path": ["Guide", "Install"],
    }
    plain = show(call, ingest(call, "docs/notes.txt").ids[0])
    assert (plain.type, plain.importance, plain.tags) == ("fact", 0.5, ())


@pytest.mark.req("000-92")
def test_a_text_is_ingested_by_paragraphs(call):
    answer = ingest(call, "docs/notes.txt")
    assert answer.strategy_used == "paragraphs"
    assert [show(call, id_).content for id_ in answer.ids] == [
        "Some words to keep.",
        "Some other words.",
    ]


def test_chunks_are_in_every_list_search_and_count_and_name_their_origin(call):
    answer = ingest(call, "docs/guide.md")
    assert list_memories(call).total == 2
    (hit, *_) = search(call, "make install").results
    assert (hit.id, hit.source) == (answer.ids[1], "docs/guide.md:5-7")
    row = memory_search(call, "make install").results[0]
    assert (row.id, row.source) == (answer.ids[1], "docs/guide.md:5-7")


def test_a_source_is_shown_as_an_outline_and_removed_with_its_chunks(call, project):
    answer = ingest(call, "docs/guide.md", tags=("howto",), metadata={"team": "platform"})
    assert answer.source_id
    shown = show(call, answer.source_id)
    assert (shown.id, shown.title, shown.tags) == (answer.source_id, "docs/guide.md", ("howto",))
    assert shown.content == (
        f"- `{answer.ids[0]}` lines 1-3: Guide\n- `{answer.ids[1]}` lines 5-7: Guide \u203a Install"
    )
    assert shown.extra["team"] == "platform"
    with pytest.raises(Invalid, match="part of an ingested file"):
        edit(call, answer.ids[0], importance=0.1)
    assert delete(call, answer.ids[0]).id == answer.ids[0]
    removed = rm(call, answer.source_id)
    assert (removed.id, removed.title, removed.chunks) == (answer.source_id, "docs/guide.md", 1)
    assert overview.everything(call) == ()
    answer = ingest(call, "docs/guide.md")
    assert answer.source_id
    assert answer.file
    assert delete(call, answer.source_id).id == answer.source_id
    assert not (project / answer.file).exists()


def test_a_huge_chunk_is_kept_whole_and_listed_by_its_beginning(call, project):
    text = json.dumps([f"the answer is {number}" for number in range(10_000)])
    (project / "big.json").write_text(text)
    (id_,) = ingest(call, "big.json").ids
    assert show(call, id_).content == text
    (row,) = list_memories(call).memories
    assert (row.content, row.excerpt) == (text[:2_000], True)
    (hit,) = memory_search(call, "what is the answer 4321").results
    assert hit.excerpt
    assert "4321" in hit.content


@pytest.mark.parametrize("metadata", ["text", 3, [1], True])
def test_metadata_must_be_an_object(metadata):
    with pytest.raises(Invalid) as error:
        decode(SPEC, {"path": "docs/guide.md", "metadata": metadata}, Surface.MCP)
    assert error.value.details["field"] == "metadata"


@pytest.mark.parametrize(
    "wrong",
    [
        {"strategy": "pages"},
        {"chunk_size": 19},
        {"overlap": -1},
        {"chunk_size": 10, "overlap": 10},
        {"category": "decision"},
        {"importance": 2},
        {},
    ],
)
@pytest.mark.req("000-64")
@pytest.mark.req("000-72")
def test_wrong_arguments_store_nothing(call, wrong):
    arguments = wrong and {"path": "docs/guide.md", **wrong}
    with pytest.raises(Invalid):
        invoke(SPEC, call.by(Caller(surface=Surface.MCP)), arguments)
    assert overview.everything(call) == ()


@pytest.mark.req("000-90")
def test_an_agent_without_a_name_is_an_agent(call):
    with pytest.raises(SandboxViolation):
        invoke(SPEC, call.by(Caller(surface=Surface.MCP)), {"path": "../x.md"})


def test_the_command_line_shows_the_result_of_a_file(run):
    status, out, err = run("ingest", "docs/guide.md")
    first, second = out.splitlines()
    handle, file = second.split()
    assert (status, err, first) == (0, "", "✓ 2 chunks by markdown")
    assert file == f".mind/sources/source_guide_md_{handle}.md"
    _, out, _ = run("ingest", "docs/guide.md")
    assert out.splitlines()[0] == "✓ already ingested, 2 chunks  (--force ingests it again)"
    _, out, _ = run("ingest", "docs/guide.md", "--force")
    assert out.splitlines()[0] == "✓ 2 chunks by markdown, 2 older replaced"
    _, out, _ = run("search", "make install", "-l")
    assert "from docs/guide.md:5-7" in out
    _, out, _ = run("rm", handle)
    assert out.splitlines()[0] == f"✓ removed {handle}  docs/guide.md with 2 chunks"


def test_the_command_line_shows_the_results_of_several_files(run, project):
    (project / "docs" / "a.bin").write_bytes(b"\0" * 20)
    status, out, _ = run("ingest", "docs", "none.md")
    assert status == 1
    binary = "`docs/a.bin` is binary; only plain text can be ingested"
    assert out.splitlines() == [
        "skipped  none.md: `none.md` does not exist",
        "  hint: name a file, a folder or a glob",
        f"skipped  docs/a.bin: {binary}",
        "docs/guide.md  2 chunks, markdown",
        "docs/notes.txt  2 chunks, paragraphs",
        "✓ 4 chunks of 2 files, 2 skipped",
    ]
    status, out, _ = run("ingest", "docs")
    assert status == 0
    assert out.splitlines()[-1] == "✓ 0 chunks of 0 files, 2 ingested before, 1 skipped"


def test_the_command_line_shows_how_to_resolve_a_missing_file(run, project):
    _, out, _ = run("ingest", "docs/guide.md")
    handle = out.split()[-2]
    (project / "docs" / "guide.md").unlink()
    _, out, _ = run("ingest", "--update")
    skipped, hint, _ = out.splitlines()
    assert skipped.startswith("skipped  docs/guide.md: ")
    assert f"`mind rm {handle}`" in hint


def test_a_person_sees_the_chunks_of_a_dry_run(run, project):
    status, out, _ = run("ingest", "docs/guide.md", "--dry-run")
    assert status == 0
    assert out.splitlines() == [
        "docs/guide.md:1-3  39 characters  Guide",
        "    # Guide",
        "",
        "    Words of introduction for all.",
        "",
        "docs/guide.md:5-7  40 characters  Guide \u203a Install",
        "    ## Install",
        "",
        "    Run make install, then wait.",
        "",
        "2 chunks; nothing was written",
    ]
    assert not (project / ".mind" / "sources").exists()
    status, out, _ = run("ingest", "docs/guide.md", "--dry-run", "--json")
    answer = json.loads(out)
    assert (answer["ingested"], answer["chunks_created"], answer["dry_run"]) == (False, 0, True)
    assert [chunk["lines"] for chunk in answer["chunks"]] == ["1-3", "5-7"]


def test_a_file_without_chunks_is_reported(run, project):
    (project / "short.txt").write_text("short\n")
    status, out, _ = run("ingest", "short.txt")
    assert (status, out) == (0, "no chunks: no part of it has ten characters\n")


def test_a_file_that_becomes_too_short_loses_its_chunks_with_a_message(run, project):
    file = project / "short.txt"
    file.write_text("The quick brown fox jumps over the lazy dog.\n")
    run("ingest", "short.txt")
    file.write_text("short\n")
    status, out, _ = run("ingest", "short.txt")
    expected = "no chunks: no part of it has ten characters; 1 older chunk removed\n"
    assert (status, out) == (0, expected)


@pytest.mark.parametrize("size", ["0", "5", "19"])
def test_a_size_too_small_is_refused_and_the_older_chunks_stay(run, project, size):
    (project / "fox.txt").write_text("The quick brown fox jumps over the lazy dog.\n")
    run("ingest", "fox.txt")
    status, _, err = run("ingest", "fox.txt", "--chunk-size", size)
    assert status == 2
    assert f"`--chunk-size` must be at least 20, not `{size}`" in err
    assert "hint: for example `mind ingest docs notes/*.txt --chunk-size 1500" in err
    status, out, _ = run("search", "quick brown fox")
    assert (status, "fox jumps" in out) == (0, True)


def test_options_are_those_of_the_schema(run, call, project):
    run(
        "ingest", "docs/notes.txt", "--strategy", "lines", "--lines-per-chunk", "1",
        "--tag", "a", "--tag", "b", "--metadata", '{"n": 1}', "--private",
    )  # fmt: skip
    (record, _) = overview.everything(call)
    assert record.memory.tags == ("a", "b")
    assert record.memory.extra["n"] == 1
    assert record.memory.extra["strategy"] == Strategy.LINES
    assert record.place.private


def test_update_without_a_path_is_for_the_folder_that_the_user_is_in(run, project, monkeypatch):
    monkeypatch.chdir(project)
    run("ingest", "docs/guide.md")
    (project / "docs" / "guide.md").write_text("# Guide\n\nAn entirely different text by now.\n")
    status, out, _ = run("ingest", "--update")
    assert (status, "docs/guide.md" in out) == (0, True), out
    assert "entirely different" in run("search", "entirely different")[1]
    assert run("ingest")[0] == 2


def test_a_list_shows_an_ingested_file_as_one_row(run, call):
    run("ingest", "docs/guide.md")
    run("add", "Use make")
    _, out, _ = run("list")
    rows = out.splitlines()
    assert rows[0].endswith("fact  Use make")
    assert rows[1].endswith("file  docs/guide.md  2 chunks")
    assert rows[2] == "2 memories with 2 chunks, which `--chunks` lists"
    assert run("list", "--chunks")[1].splitlines()[-1] == "3 memories"
    answer = json.loads(run("list", "--json")[1])
    (source,) = (row for row in answer["memories"] if "chunks" in row)
    assert (answer["total"], answer["chunks"], source["chunks"]) == (2, 2, 2)
    assert show(call, source["id"]).extra["chunks"] == 2
    assert run("show", rows[1].split()[0])[1].startswith("docs/guide.md\n")


def test_matching_chunks_of_one_file_are_listed_below_it(run):
    run("ingest", "docs/guide.md")
    _, out, _ = run("search", "guide words install", "--threshold", "0")
    first, *others = out.splitlines()
    assert first.split()[1:] == ["docs/guide.md"]
    assert [line.split()[1:3] for line in others if "Guide" in line] != []
    assert all(line.startswith("        ") for line in others[:-1])
