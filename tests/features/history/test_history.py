"""`mind log`, `blame`, `restore` and `diff`, in real repositories."""

import os
import re
from datetime import UTC, datetime

import pytest

from mimo.errors import Invalid, NotFound
from mimo.features.decisions.loading import context
from mimo.features.history.commands import blame, diff, log, restore, sync
from mimo.features.ingest.commands import ingest
from mimo.features.notes.reading import list_, show
from mimo.features.search.browse import recent
from mimo.memory.chunking import Strategy
from mimo.memory.ids import handle_of
from mimo.memory.model import LOG, Kind, Link, Outcome
from mimo.operations import lookup, removing, saving
from mimo.project import git as git_of
from mimo.project import revisions
from mimo.project.memories import messages
from tests.conftest import NOW, git
from tests.kit import acting_as, memory, put

pytestmark = pytest.mark.usefixtures("ann")


@pytest.fixture
def story(project, call):
    """A decision that an agent made and Bob changed, and a fact that was removed."""
    git(project, "init", "-q", "-b", "main")
    draft = saving.draft(Kind.DECISION, "Use JWT\n\nIt is stateless", extra={"session": "s-12"})
    decision = saving.store(acting_as(call, "claude-code"), draft)
    fact = saving.store(call, saving.draft(Kind.FACT, "Staging is reset"))
    sync(call)
    git(project, "tag", "v1")
    now = lookup.one(call, decision.memory.id)
    saving.edit(call, now, content="Use JWT\n\nIt is simple", outcome=Outcome.FAILED)
    removing.remove(call, fact.memory.id)
    newer = saving.draft(
        Kind.DECISION, "Use @sessions <b>",
        links=(Link(to=decision.memory.id, type="supersedes"), Link(to="x", type="contradicts")),
    )  # fmt: skip
    newest = saving.store(call, newer)
    git(project, "add", "-A")
    git(project, "-c", "user.name=Bob", "commit", "-qm", "Bob knows better", "--author=Bob <b@x>")
    return decision.memory.id, fact.memory.id, newest.memory.id


def test_a_commit_whose_time_is_in_no_calendar_is_shown(story, project, call):
    made = re.sub(r"> \d+ ", f"> {10**14} ", git(project, "cat-file", "commit", "HEAD"))
    name = git(project, "hash-object", "-t", "commit", "-w", "--stdin", input=f"{made}\n")
    git(project, "reset", "-q", name)

    assert len(log(call).commits) == 2
    assert blame(call, story[2]).lines
    assert list(messages(project, 5))


@pytest.mark.parametrize("date", [f"{10**20} +0000", "-5 +0000", "", "x"])
def test_a_memory_of_a_commit_without_a_date_is_shown(story, project, call, date):
    made = re.sub(r"(author .*>).*", rf"\1 {date}", git(project, "cat-file", "commit", "HEAD"))
    words = ("hash-object", "-t", "commit", "--literally", "-w", "--stdin")
    git(project, "reset", "-q", git(project, *words, input=f"{made}\n"))

    assert show(call, story[2]).updated_at


@pytest.mark.req("004-19")
def test_an_update_is_dated_by_git_and_a_later_one_by_the_file(project, call):
    git(project, "init", "-q", "-b", "main")
    id, file = "fact_tea_20260102_abcdef", project / ".mind/facts/fact_tea_20260102_abcdef.md"
    texts = ["tea is hot\n", "tea is cold\n"]
    for day, text in enumerate(texts, 3):
        put(file, memory(id, text))
        sync(call)
        git(
            project, "commit", "-q", "--amend", "--no-edit", f"--date=2026-02-0{day}T10:00:00+09:00"
        )
    clone = datetime(2026, 8, 1, tzinfo=UTC)
    os.utime(file, (clone.timestamp(),) * 2)
    committed = datetime(2026, 2, 4, 1, tzinfo=UTC)

    assert show(call, id).updated_at == context(call, id).memory.updated_at == committed
    assert show(call, id, at="HEAD~1").updated_at == datetime(2026, 2, 3, 1, tzinfo=UTC)
    put(file, file.read_text().replace("\n", "\r\n"))
    assert show(call, id).updated_at == committed

    put(file, memory(id, "tea is cold, or iced\n"))
    os.utime(file, (clone.timestamp(),) * 2)
    assert show(call, id).updated_at == clone
    assert recent(call).results[0].updated_at is None


@pytest.mark.req("004-19")
def test_without_git_an_update_is_dated_by_the_file(project, call):
    log_lines = put(project / LOG, "**Learned:** tea is hot\n")
    os.utime(log_lines, (NOW.timestamp(),) * 2)

    assert [show(call, row.id).updated_at for row in list_(call).memories] == [NOW]


def test_a_log_has_the_titles_of_each_commit_across_renames_and_merges(project, call):
    git(project, "init", "-q", "-b", "main")
    id = "fact_tea_20260102_abcdef"
    old, new = project / f".mind/facts/{id}.md", project / ".mind/facts/tea.md"

    def commit(file, text):
        put(file, memory(id, f"{text}\n"))
        git(project, "add", "-A")
        git(project, "commit", "-qm", text)

    commit(old, "Tea is hot")
    git(project, "switch", "-qc", "side")
    commit(old, "Tea is cold")
    git(project, "switch", "-q", "main")
    old.rename(new)
    commit(new, "Tea is warm")
    git(project, "-c", "merge.mind.driver=true", "merge", "--no-commit", "side")
    commit(new, "Tea is iced")

    titles = {"Tea is iced", "Tea is warm", "Tea is cold", "Tea is hot"}
    for rows in (log(call, "abcdef").commits, log(call).commits):
        assert {row.commit.subject for row in rows if row.files} == titles
        assert titles == {file.title for row in rows for file in row.files if file.id}
        assert [file.title for file in rows[0].files] == [rows[0].commit.subject]
    new.unlink()
    git(project, "commit", "-qam", "Tea is iced")
    removed = log(call, "abcdef").commits[0].files[0]
    assert (removed.change, removed.title) == ("removed", "Tea is iced")


def test_names_that_are_not_utf8_break_no_command(story, project, call):
    try:
        (project / os.fsdecode(b".mind/caf\xe9")).mkdir()
    except OSError:
        pytest.skip("this file system refuses such names")
    for name in (b"caf\xe9.md", b"facts/caf\xe9.md", b"caf\xe9/plain.md"):
        (project / ".mind" / os.fsdecode(name)).write_text("In Latin-1", encoding="utf-8")
    assert len(sync(call).files) == 3
    assert [file.id for file in log(call).commits[0].files] == [None] * 3
    for at in (None, "HEAD"):
        listed = list_(call, at=at)
        assert (len(listed.memories), listed.unreadable) == (2, 3)
    assert [*call.mind.index_folder.glob("index*.db")] == [call.mind.index._tables.path]


def renamed(project, path, name):
    git(project, "mv", path, f".mind/facts/{name}.md")
    git(project, "commit", "-qm", f"Rename it to {name}")


def test_the_log_of_a_removed_memory_follows_its_file(project, call):
    git(project, "init", "-q", "-b", "main")
    record = saving.store(call, saving.draft(Kind.FACT, "Staging is reset"))
    sync(call, message="add")
    path = record.place.path
    for new in ("other", "third", "other"):
        renamed(project, path, new)
        path = f".mind/facts/{new}.md"
        saving.edit(call, lookup.one(call, record.memory.id), content=f"Reset by {new}")
        sync(call, message=f"edit {new}")
    before = [row.commit.subject for row in log(call, record.memory.id).commits]
    removing.remove(call, record.memory.id)
    sync(call, message="remove")
    saving.store(call, saving.draft(Kind.FACT, "Another fact"))
    sync(call, message="another")

    rows = log(call, record.memory.id).commits

    assert log(call, handle_of(record.memory.id)).commits == rows
    assert [row.commit.subject for row in rows] == ["remove", *before]
    assert before[-1] == "add"
    assert rows[0].files[0].change == "removed"
    assert not any(file.change == "removed" for row in rows[1:] for file in row.files)


def test_the_log_of_a_removed_memory_is_not_that_of_a_similar_new_one(project, call):
    git(project, "init", "-q", "-b", "main")
    text = "Staging is reset every night, and its users have to sign in again." * 9
    old = saving.store(call, saving.draft(Kind.FACT, text))
    sync(call, message="add")
    removing.remove(call, old.memory.id)
    saving.store(call, saving.draft(Kind.FACT, f"{text} Yes."))
    sync(call, message="replace")
    assert "R" in git(project, "log", "-1", "--name-status", "--format=")

    rows = log(call, old.memory.id).commits

    assert [row.files[0].change for row in rows] == ["removed", "added"]
    assert {row.files[0].file for row in rows} == {old.place.path}


def test_the_log_of_a_removed_file_without_a_header_is_found_by_its_name(project, call):
    git(project, "init", "-q", "-b", "main")
    path = put(project / ".mind/facts/tea.md", "Tea is hot, and it is served at four.\n")
    sync(call, message="add")
    path.unlink()
    sync(call, message="remove")

    assert [row.commit.subject for row in log(call, "tea").commits] == ["remove", "add"]


@pytest.mark.parametrize("name", [str, handle_of])
def test_the_log_of_a_removed_memory_finds_an_id_that_only_its_header_has(project, call, name):
    git(project, "init", "-q", "-b", "main")
    saving.store(call, saving.draft(Kind.FACT, "Another fact"))
    record = saving.store(call, saving.draft(Kind.FACT, "Staging is reset"))
    path = project / record.place.path
    path.rename(path.with_name("notes.md"))
    sync(call, message="add")
    saving.edit(call, lookup.one(call, record.memory.id), content="Staging is reset at night")
    sync(call, message="edit")
    removing.remove(call, record.memory.id)
    sync(call, message="remove")

    rows = log(call, name(record.memory.id)).commits

    assert [row.commit.subject for row in rows] == ["remove", "edit", "add"]
    for wrong in ("never_was", "abcdef", "a|.*", "(", "-x"):
        with pytest.raises(NotFound):
            log(call, wrong)


def test_control_characters_in_a_commit_are_part_of_its_fields(story, project, call):
    (project / ".mind/facts/more.md").write_text("Tea\n", encoding="utf-8")
    git(project, "add", "-A")
    odd = "a\x1fb\x1ec"
    git(project, "commit", "-qm", f"Fix {odd}", GIT_AUTHOR_NAME=odd, GIT_AUTHOR_EMAIL=f"{odd}@x")

    newest = log(call).commits[0]

    assert (newest.commit.author, newest.commit.subject) == (odd, f"Fix {odd}")
    assert [file.file for file in newest.files] == [".mind/facts/more.md"]
    assert blame(call, "more").lines[0].commit.author == odd


def test_odd_names_of_missing_files_do_not_mix_up_others(project):
    names = ["a\u2028b", "c\x85d", os.fsdecode(b"e\xff"), "f"]
    for name in names:
        (project / f".mind/{name}.md").write_text(f"{name!a}\n", encoding="utf-8")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "x")
    wanted = [("HEAD", f".mind/{name}{end}.md") for name in names for end in ("", " gone")]

    read = revisions.contents(project, wanted)

    assert read == {("HEAD", f".mind/{name}.md"): f"{name!a}\n".encode() for name in names}


def test_a_commit_after_the_year_9999_is_like_any_other(story, project, call):
    of = "Eve <eve@x> 999999999999999 +0000"
    parent, tree = git(project, "rev-parse", "HEAD", "v1^{tree}").split()
    text = f"tree {tree}\nparent {parent}\nauthor {of}\ncommitter {of}\n\nLate\n"
    late = git(project, "hash-object", "-t", "commit", "-w", "--stdin", input=text)
    git(project, "reset", "-q", "--hard", late)

    assert log(call).commits[0].commit.date.year == 9999
    assert blame(call, story[0]).lines
    assert next(messages(project, 1)).commit == late
    assert diff(call, "HEAD~1..HEAD").changed == 1
    removing.remove(call, story[1])
    assert restore(call, story[1], at="HEAD").commit.author == "Eve"


def test_files_with_the_names_of_revisions_hide_no_commit(story, project, call):
    head = git(project, "rev-parse", "HEAD")
    for name in ("HEAD", head, "HEAD...@{upstream}"):
        (project / name).write_text("x\n", encoding="utf-8")

    assert log(call).commits[0].commit.commit == head[:10]
    assert revisions.resolve(project, "HEAD", now=NOW).id == head
    assert revisions.resolve(project, "2099-01-01", now=NOW).id == head
    assert revisions.commits_before(project, [NOW.replace(year=2099)])


def test_no_setting_of_git_changes_an_answer(story, project, call):
    path = f".mind/decisions/{story[0]}.md"
    git(project, "mv", path, path.replace(".md", "-moved.md"))
    git(project, "commit", "-qm", "Move it")
    before = (blame(call, story[0]), diff(call, "v1..HEAD"), log(call))

    for key, value in {
        "log.showRoot": "false",
        "diff.renames": "false",
        "diff.orderFile": "missing",
        "color.diff": "always",
        "trailer.separators": "=",
    }.items():
        git(project, "config", key, value)
        assert before == (blame(call, story[0]), diff(call, "v1..HEAD"), log(call)), key
        git(project, "config", "--unset", key)


def test_the_branch_and_the_last_change_of_a_reftable_are_those_of_git(project, monkeypatch):
    git(project, "init", "-q", "-b", "main")
    (project / ".git/HEAD").write_text("ref: refs/heads/.invalid\n", encoding="utf-8")
    table = put(project / ".git/reftable/tables.list", "x\n")
    monkeypatch.setattr(git_of, "output", lambda *_: "main")

    assert git_of.branch(project) == "main"
    assert git_of.stamp(project) == table.lstat()


def test_a_file_over_a_megabyte_is_compared_like_any_other(project, call):
    git(project, "init", "-q", "-b", "main")
    (project / "long.txt").write_text("A line of words.\n" * 70_000)
    ingest(call, str(project / "long.txt"), strategy=Strategy.LINES, lines_per_chunk=2_000)
    sync(call)
    (project / "long.txt").write_text("Another line.\n" + "A line of words.\n" * 69_999)
    ingest(call, str(project / "long.txt"), strategy=Strategy.LINES, lines_per_chunk=2_000)

    result = diff(call)

    assert result.added == 0
    assert 0 < result.changed < 40


@pytest.fixture
def guide(project, call):
    """An ingested file with three chunks that is committed; returns its id."""
    git(project, "init", "-q", "-b", "main")
    parts = (f"## Part {n}\n\n{'Hot tea. ' * 60}\n" for n in range(3))
    (project / "guide.md").write_text("# Guide\n\n" + "\n".join(parts), "utf-8")
    done = ingest(call, str(project / "guide.md"), strategy=Strategy.MARKDOWN)
    sync(call)
    return done.source_id


def test_a_changed_file_is_restored_byte_for_byte(guide, project, call):
    path = project / lookup.source(call, guide)[0].place.path
    before = path.read_bytes()
    (project / "guide.md").write_text("# Guide\n\nCold.\n", "utf-8")
    ingest(call, str(project / "guide.md"), strategy=Strategy.MARKDOWN)
    assert path.read_bytes() != before

    restore(call, guide)

    assert path.read_bytes() == before
    assert len(lookup.source(call, guide)) == 3


def test_the_hint_for_a_chunk_restores_its_file(guide, call):
    chunk = lookup.source(call, guide)[1].memory.id
    removing.remove_source(call, lookup.source(call, guide))

    with pytest.raises(Invalid, match="is a part of an ingested file") as raised:
        restore(call, chunk)

    name, revision = re.findall("`mind restore (.+) --at (.+)`", raised.value.hint)[0]
    assert name == handle_of(guide)
    assert restore(call, name, at=revision).id == guide


def test_a_short_topic_comes_before_the_beginning_of_the_id_of_a_file(guide, call):
    topic = handle_of(guide)[:2]
    decision = saving.store(call, saving.draft(Kind.DECISION, "Use JWT", topic=topic))
    sync(call)

    (row,) = log(call, topic).commits
    assert [file.id for file in row.files] == [decision.memory.id]
    assert blame(call, topic).id == decision.memory.id
    assert show(call, topic).id == decision.memory.id
    assert show(call, handle_of(guide)).id == guide
