"""Files become memories: whole or not at all, once, and replaced when they change."""

import errno
import json
import os
import subprocess
from contextlib import suppress
from dataclasses import replace

import pytest

from mimo.data import files
from mimo.errors import (
    AmbiguousId,
    Invalid,
    NotFound,
    SecretDetected,
    StorageFailed,
)
from mimo.features import ingest
from mimo.features.ingest import Options, ingest_files, update_files
from mimo.memory.chunking import Chunking, Strategy
from mimo.memory.model import Kind
from mimo.operations import finding, freshness, lookup, overview, refresh, removing, searching
from mimo.project.sandbox import Sandbox
from tests import privacy_fakes
from tests.kit import acting_as, with_console

GUIDE = """\
# Guide

Words of introduction for all.

## Install

Run make install, then wait.

## Uninstall

Run make uninstall, then regret.
"""


@pytest.fixture(autouse=True)
def _there(project, monkeypatch):
    monkeypatch.chdir(project)


def put(project, path, text=GUIDE):
    target = project / path
    target.parent.mkdir(parents=True, exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    target.write_bytes(data)
    return target


def take(call, *names, **wished):
    return ingest_files(call, names, Options(**wished))


def one(call, name, **wished):
    report = take(call, name, **wished)
    assert report.is_single
    return report.files[0]


def contents(call):
    return sorted(record.memory.content for record in overview.everything(call))


@pytest.mark.req("000-64")
@pytest.mark.req("000-86")
def test_chunks_are_memories_of_their_own(call, project):
    put(project, "docs/guide.md")
    taken = one(call, "docs/guide.md", tags=("howto",), importance=0.8, type=Kind.PLAN)

    assert taken.strategy is Strategy.MARKDOWN
    assert [id_.rpartition(".")[2] for id_ in taken.ids] == ["1", "2", "3"]
    assert finding.listing(call).total == 3
    assert call.mind.index.stats().units == 3
    record = lookup.one(call, taken.ids[1])
    assert (record.memory.type, record.memory.tags, record.memory.importance) == (
        Kind.PLAN,
        ("howto",),
        0.8,
    )
    assert (record.memory.source, record.parent, record.position) == (
        "docs/guide.md:5-7",
        taken.source_id,
        1,
    )
    file = (project / taken.file).read_text().split("\n")
    assert file[record.place.line - 1] == "## Install"


def test_a_rebuilt_index_of_chunks_is_the_same(call, project):
    put(project, "guide.md")
    one(call, "guide.md")
    before = overview.everything(call)
    refresh.rebuild(call)
    assert overview.everything(call) == before


def test_a_chunk_is_ranked_with_its_neighbours(call, project):
    """The text before and after a chunk shows its subject."""
    put(project, "a.txt", "The zeppelin hangar of Tegel.\n\nIts door is forty metres wide.\n")
    put(project, "b.txt", "A garden shed in Spandau.\n\nIts door is forty metres wide.\n")
    chunk_of_a, chunk_of_b = (one(call, name).ids[1] for name in ("a.txt", "b.txt"))
    matches = searching.search(call, "zeppelin door metres", finding.Options(limit=4, threshold=0))
    order = [hit.record.memory.id for hit in matches.hits]
    assert order.index(chunk_of_a) < order.index(chunk_of_b)


JSON_FILE = '{\r\n "a": "x",\n\n<!-- chunk 9 lines 1-1 -->\n---\nid: y\n---\n\\<!-- chunk -->}\n\n'


@pytest.mark.req("000-81")
@pytest.mark.req("000-82")
@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_json_and_yaml_are_kept_as_they_are(call, project, name):
    put(project, name, JSON_FILE)
    (id_,) = one(call, name).ids
    assert lookup.one(call, id_).memory.content == JSON_FILE
    assert lookup.one(call, id_).memory.title == name
    put(project, "big.json", text := json.dumps([{"n": n} for n in range(2_000)]))
    (id_,) = one(call, "big.json").ids
    assert lookup.one(call, id_).memory.content == text


def test_short_chunks_do_not_count(call, project):
    put(project, "many.txt", "\n\n".join(["a"] * 2000 + ["words that are long enough"] * 1000))
    assert len(one(call, "many.txt").ids) == 1000


@pytest.mark.attack("secret in the name of a folder")
def test_a_file_with_a_secret_in_its_path_is_refused(call, project):
    token = privacy_fakes.TOKENS["github_token"][0](privacy_fakes.Draw(9))
    put(project, "words.md")
    put(project, f"backup-{token}/words.md")
    files_ = {report.path: report.refusal for report in take(call, ".").files}
    assert files_["words.md"] is None
    refused = files_[f"backup-{token}/words.md"]
    assert isinstance(refused, SecretDetected)
    assert token not in str(refused)
    assert not any(token in file.read_text("utf-8") for file in (project / ".mind").rglob("*.md"))
    assert not any(token in (record.memory.source or "") for record in overview.everything(call))


@pytest.mark.attack("git's own files as memory")
@pytest.mark.parametrize(
    "name",
    [".git", ".git/", ".git/config", ".git/*", "./.GIT/hooks", "vendor/lib/.git", "**/.git/*", "."],
)
def test_files_of_git_are_never_ingested(call, project, name):
    for folder in (".git", ".GIT", "vendor/lib/.git"):
        put(project, f"{folder}/config", "[remote]\nurl = https://ann:secret@example.com/x\n")
        put(project, f"{folder}/hooks/notes.md")
    put(project, "words.md")
    with suppress(Invalid, NotFound):
        take(call, name)
    ingested = {
        (record.memory.source or "").partition(":")[0] for record in overview.everything(call)
    }
    assert ingested == ({"words.md"} if name == "." else set())


def test_a_pulled_source_of_a_file_of_git_is_not_refreshed(call, project):
    put(project, ".git.md", GUIDE)
    taken = one(call, ".git.md")
    put(project, ".git/config", "url = https://ann:secret@example.com/x\n")
    planted = project / taken.file
    planted.write_text(planted.read_text("utf-8").replace(".git.md", ".git/config"), "utf-8")
    report = update_files(call, ["."], Options())
    assert "belongs to git" in str(report.files[0].refusal)
    assert "secret" not in planted.read_text("utf-8")


def test_the_progress_of_a_folder_counts_its_files(call, project):
    put(project, "docs/a.md")
    put(project, "docs/b.txt", "Words of a text file.")
    seen = []
    report = take(with_console(call, progress=lambda *step: seen.append(step)), "docs")
    assert not report.is_single
    assert [step for step in seen if step[0] == "Ingesting"] == [
        ("Ingesting", 1, 2), ("Ingesting", 2, 2)
    ]  # fmt: skip


def test_an_unreadable_file_does_not_prevent_the_others(call, project, monkeypatch):
    for path in ("docs/a.txt", "docs/closed/b.txt", "docs/c.txt", "docs/d.txt"):
        put(project, path, f"Words of the file {path}.")
    system = os.open

    def closed(path, flags, *args, **kwargs):
        if path in ("closed", "c.txt"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return system(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", closed)
    files = take(call, "docs").files
    assert [(file.path, file.refusal and file.refusal.code) for file in files] == [
        ("docs/a.txt", None),
        ("docs/c.txt", "STORAGE_ERROR"),
        ("docs/closed", "STORAGE_ERROR"),
        ("docs/d.txt", None),
    ]


def test_a_full_disk_stops_it_and_leaves_whole_files(call, project, monkeypatch):
    for number in range(4):
        put(project, f"docs/{number}.txt", f"Words of the file {number}.")
    monkeypatch.setattr(ingest, "_MOST_WAITING", 2)
    written = call.mind.store.create_all

    def full(new):
        if "docs/3.txt" in str(new):
            raise StorageFailed("no space left on the disk")
        return written(new)

    monkeypatch.setattr(call.mind.store, "create_all", full)
    with pytest.raises(StorageFailed):
        take(call, "docs")
    assert contents(call) == ["Words of the file 0.", "Words of the file 1."]


def test_new_files_are_flushed_together(call, project, monkeypatch):
    for number in range(9):
        put(project, f"docs/{number}.txt", f"Words of the file {number}.")
    batches, written = [], files.write_all_new

    def write_all_new(contents):
        batches.append(len(contents))
        return written(contents)

    monkeypatch.setattr(ingest, "_MOST_WAITING", 4)
    monkeypatch.setattr(files, "write_all_new", write_all_new)
    assert all(file.digest and file.ids for file in take(call, "docs").files)
    assert batches == [4, 4, 1]
    assert sorted(contents(call)) == [f"Words of the file {number}." for number in range(9)]


def test_a_file_that_another_process_wrote_before_the_batch_is_recognised(
    call, project, monkeypatch
):
    put(project, "docs/a.txt", "Words of the first file.")
    put(project, "docs/b.txt", "Words of the second file.")
    written = call.mind.store.create_all

    def late(new):
        for file in new[:1]:
            files.write_new(project / file.path, file.data)
        return written(new)

    monkeypatch.setattr(call.mind.store, "create_all", late)
    assert [file.is_known for file in take(call, "docs").files] == [True, False]
    assert finding.listing(call).total == 2


def test_an_interruption_leaves_whole_files_that_are_approved(call, project, monkeypatch):
    for number in range(3):
        put(project, f"docs/{number}.txt", f"Words of the file {number}.")
    call.mind.trust.follow(False)

    def stop(what, done, total):
        if done == 2:
            raise KeyboardInterrupt

    call = with_console(call, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        take(call, "docs")
    call = with_console(call, progress=None)
    assert contents(call) == ["Words of the file 0.", "Words of the file 1."]
    assert all(call.mind.trust.trusted(r.place.approval) for r in overview.everything(call))


def test_a_file_that_another_process_ingested_meanwhile_is_recognised(call, project, monkeypatch):
    put(project, "guide.md")
    with monkeypatch.context() as context:
        context.setattr(refresh, "note_change", lambda *_: None)
        first = one(call, "guide.md")
        context.setattr(refresh, "refresh", lambda _: None)
        assert one(call, "guide.md").ids == first.ids
        assert one(call, "guide.md", force=True).replaced == 3
    assert finding.listing(call).total == 3


def test_names_that_are_not_utf8_are_refused(call, project):
    put(project, ".gitignore", "*.log\n")
    for name in (b"docs/\xfe.txt", b"docs/\xff/a.txt", b"docs/plain.txt"):
        put(project, os.fsdecode(name), "Words of an odd file.")
    reports = {file.path: file.refusal for file in take(call, "docs").files}
    assert reports.pop("docs/plain.txt") is None
    assert sorted(reports) == ["docs/\\udcfe.txt", "docs/\\udcff/a.txt"]
    assert all("is not UTF-8" in str(refusal) for refusal in reports.values())
    assert finding.listing(call).total == 1


def test_without_git_a_notice_states_that_ignored_files_are_ingested(call, project, monkeypatch):
    put(project, "docs/a.log")
    put(project, ".gitignore", "*.log\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    assert take(call, "docs/a.log").files
    assert call.notice is None
    monkeypatch.setenv("PATH", "")
    assert take(call, "docs").files
    assert call.notice == "without git, folders are read with the files that it ignores"


def test_a_dry_run_writes_nothing(call, project):
    put(project, "guide.md")
    taken = one(call, "guide.md", dry_run=True)
    assert [chunk.first_line for chunk in taken.chunks] == [1, 5, 9]
    assert not (project / ".mind/sources").exists()
    done = one(call, "guide.md")
    assert len(taken.chunks) == len(done.ids)
    known = one(call, "guide.md", dry_run=True)
    assert known.is_known
    assert known.chunks == taken.chunks


@pytest.mark.attack("private text in git")
def test_a_source_whose_shared_file_stays_does_not_become_private(call, project, monkeypatch):
    put(project, "guide.md")
    public = one(call, "guide.md")
    remove = files.remove

    def refusing(path, **arguments):
        if "private" not in path.parts:
            raise StorageFailed(f"can't remove `{path}`: operation not permitted")
        remove(path, **arguments)

    with monkeypatch.context() as patched:
        patched.setattr(files, "remove", refusing)
        with pytest.raises(StorageFailed):
            one(call, "guide.md", private=True)
    assert not list((project / ".mind").rglob("private/sources/*"))

    assert "private" in one(call, "guide.md", private=True).file
    assert not (project / public.file).exists()


def test_chunks_go_one_by_one_and_all_at_once(call, project):
    put(project, "guide.md")
    taken = one(call, "guide.md")
    call.mind.trust.follow(False)
    removing.remove(call, taken.ids[0])
    left = lookup.source(call, taken.source_id)
    assert tuple(record.memory.id for record in left) == taken.ids[1:]
    assert [record.memory.extra["total_chunks"] for record in left] == [3, 3]
    assert all(call.mind.trust.trusted(record.place.approval) for record in left)
    removing.remove_source(call, left)
    assert finding.listing(call).total == 0
    assert not (project / taken.file).exists()
    one(call, "guide.md")
    for id_ in taken.ids:
        removing.remove(call, id_)
    assert not (project / taken.file).exists()


def test_a_source_is_named_by_a_start_or_an_end_of_its_id(call, project):
    put(project, "guide.md")
    put(project, "guile.md", GUIDE.replace("Guide", "Guile"))
    taken = one(call, "guide.md")
    other = one(call, "guile.md")
    assert lookup.source(call, "source_guide")[0].parent == taken.source_id
    assert lookup.source(call, taken.source_id[-6:], surely=True)[0].parent == taken.source_id
    assert lookup.source(call, taken.ids[0]) == ()
    assert lookup.source(call, "fact") == ()
    with pytest.raises(AmbiguousId) as error:
        lookup.source(call, "source_gui")
    assert error.value.details["candidates"] == sorted([taken.source_id, other.source_id])
    removing.remove_source(call, lookup.source(call, other.source_id))
    with pytest.raises(AmbiguousId, match="too short"):
        lookup.source(call, "sou", surely=True)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (Options(chunking=Chunking(chunk_size=10, overlap=10)), "overlap"),
        (Options(importance=1.5), "importance"),
        (Options(tags=("a,b",)), None),
        (Options(metadata={"deep": [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}), None),
    ],
)
def test_invalid_options_are_refused_before_anything_is_written(call, project, wish, field):
    put(project, "guide.md")
    with pytest.raises(Invalid) as error:
        ingest_files(call, ["guide.md"], replace(wish, type=Kind.FACT))
    assert error.value.details.get("field") == field
    assert not (project / ".mind/sources").exists()


def test_an_unchanged_file_of_a_folder_is_not_read_again(call, project, monkeypatch):
    guide = put(project, "docs/guide.md")
    os.utime(guide, (1, 1))
    first = take(call, "docs").files[0]
    monkeypatch.setattr(Sandbox, "read", lambda *_: pytest.fail("it was read"))

    (report,) = take(call, "docs").files

    assert report.is_known
    assert (report.ids, report.file, report.size) == (first.ids, first.file, len(GUIDE))
    assert (report.source_id, report.strategy) == (first.source_id, first.strategy)


def test_a_file_that_changed_right_before_it_was_ingested_is_compared(call, project):
    guide = put(project, "docs/guide.md")
    take(call, "docs")
    status = guide.stat()
    put(project, "docs/guide.md", GUIDE.replace("Words", "Texts"))
    os.utime(guide, ns=(status.st_atime_ns, status.st_mtime_ns))

    (report,) = take(call, "docs").files

    assert not report.is_known
    assert report.replaced == 3


def test_an_unchanged_file_is_compared_if_its_chunks_were_edited(call, project):
    guide = put(project, "docs/guide.md")
    os.utime(guide, (1, 1))
    first = take(call, "docs").files[0]
    source = project / first.file
    source.write_bytes(source.read_bytes().replace(b"Words", b"Texts"))

    (report,) = take(call, "docs").files

    assert report.is_known
    assert report.file == first.file


@pytest.mark.parametrize("agent", [None, "mind daemon"])
@pytest.mark.parametrize("approved", [True, False])
def test_keys_in_a_header_stay_unless_that_would_approve_them(call, project, approved, agent):
    call.mind.trust.follow(False)
    guide = put(project, "docs/guide.md")
    file = take(call, "docs").files[0].file
    source = project / file
    added = b"---\ntopic: tea\nreviewed: {by: [ana]}\n"
    source.write_bytes(source.read_bytes().replace(b"---\n", added, 1))
    if approved:
        call.mind.trust.approve(call.mind.store.approvals(file))
    guide.write_text(GUIDE + "\nOne more line of the guide.\n", encoding="utf-8")

    update_files(acting_as(call, agent), ["docs"], Options())

    stays = approved or agent is not None
    assert {each.memory.topic for each in overview.everything(call)} == {"tea" if stays else None}
    assert ("reviewed:" in source.read_text(encoding="utf-8")) is stays


@pytest.mark.parametrize("agent", [None, "codex"])
@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("updates", [True, False])
def test_options_that_are_left_out_stay_unless_that_would_approve_them(
    call, project, updates, approved, agent
):
    call.mind.trust.follow(False)
    by_size = Chunking(strategy=Strategy.PARAGRAPHS, chunk_size=50)
    options = {"tags": ("tea",), "importance": 0.9, "type": Kind.PLAN, "metadata": {"n": 1}}
    guide = put(project, "docs/guide.md")
    file = project / take(call, "docs/guide.md", chunking=by_size, **options).files[0].file
    file.write_bytes(file.read_bytes().replace(b"tea", b"mint"))
    if approved:
        call.mind.trust.approve(call.mind.store.approvals(file.relative_to(project).as_posix()))
    guide.write_text(GUIDE + "\nOne more line of the guide.\n", encoding="utf-8")

    again = update_files if updates else ingest_files
    again(acting_as(call, agent), ["docs"], Options())

    (first, *_) = overview.everything(call)
    source, is_kept = call.mind.store.source(first.place), approved or agent is not None
    assert source.tags == (("mint",) if is_kept else ())
    assert source.chunking.strategy is (Strategy.PARAGRAPHS if is_kept else Strategy.MARKDOWN)
    kept = (source.chunking, source.importance, source.type, source.metadata)
    assert (kept == (by_size, 0.9, Kind.PLAN, {"n": 1})) is is_kept


def test_the_texts_of_written_files_are_not_kept_in_memory(call, project):
    put(project, "docs/guide.md")

    (report,) = take(call, "docs").files

    assert report.ids
    assert report.chunks == ()


def test_an_update_of_nothing_names_a_folder_with_ingested_files(call, project):
    put(project, "docs/one.txt", "Words of a file.")
    take(call, "docs")

    with pytest.raises(NotFound) as caught:
        update_files(call, ["other"], Options())

    assert caught.value.hint == "name a file, or a folder such as `docs`"


def test_a_file_that_is_removed_during_an_update_is_reported_as_missing(call, project, monkeypatch):
    guide = put(project, "docs/guide.md")
    take(call, "docs")
    checked = freshness.checked

    def removing(*arguments):
        states = checked(*arguments)
        guide.unlink()
        return states

    monkeypatch.setattr(freshness, "checked", removing)

    (report,) = update_files(call, ["docs"], Options()).files

    assert "is not here" in str(report.refusal)
