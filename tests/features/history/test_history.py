"""`mind log`, `blame`, `restore` and `diff`, in real repositories."""

import os
import re

import pytest

from mimo.errors import AmbiguousId, Conflict, Invalid, NotFound
from mimo.features.decisions.commands import outcome as evolve_outcome
from mimo.features.history.commands import Format, blame, diff, log, restore, sync
from mimo.features.ingest.commands import ingest
from mimo.features.notes.reading import list_, show
from mimo.memory.chunking import Strategy
from mimo.memory.ids import handle_of
from mimo.memory.model import Kind, Link, Outcome
from mimo.operations import finding, lookup, removing, saving
from mimo.project import git as git_of
from mimo.project import revisions
from mimo.project.memories import messages
from mimo.rendering import PlainScreen
from mimo.rendering.results import show_on
from tests.calls import acting_as
from tests.conftest import NOW, git

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


def test_log_shows_authors_agents_and_changed_files(story, call):
    newest, first = log(call).commits

    assert (newest.commit.author, newest.commit.agents) == ("Bob", None)
    assert {file.change for file in newest.files} == {"added", "changed", "removed"}
    assert (first.commit.author, first.commit.agents) == ("Ann", "claude-code")
    assert len(log(call, limit=1).commits) == 1


def test_a_commit_whose_time_is_in_no_calendar_is_shown(story, project, call):
    made = re.sub(r"> \d+ ", f"> {10**14} ", git(project, "cat-file", "commit", "HEAD"))
    name = git(project, "hash-object", "-t", "commit", "-w", "--stdin", input=f"{made}\n")
    git(project, "reset", "-q", name)

    assert len(log(call).commits) == 2
    assert blame(call, story[2]).lines
    assert list(messages(project, 5))


def test_log_names_present_memories_and_the_files_of_others(story, call):
    newest, _ = log(call).commits
    named = {file.change: (file.id, file.title) for file in newest.files}
    assert named["added"] == (story[2], lookup.one(call, story[2]).memory.heading)
    assert named["removed"] == (None, None)


def test_the_chunks_of_a_file_are_one_line_of_a_difference(story, project, call, capsys):
    """Each of them is a row in JSON."""
    text = f"# Guide\n\n## Tea\n\n{'Hot tea. ' * 40}\n\n## Milk\n\n{'Cold milk. ' * 40}\n"
    (project / "guide.md").write_text(text, "utf-8")
    ingest(call, str(project / "guide.md"), strategy=Strategy.MARKDOWN)
    result = diff(call)
    assert sum(row.id.startswith("source_") for row in result.memories) > 1

    screen = PlainScreen()
    show_on(screen, result)
    screen.finish(pager=False)

    (line,) = [line for line in capsys.readouterr().out.splitlines() if "Guide" in line]
    assert "file" in line
    assert "chunks" in line


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


def test_log_of_a_memory_omits_other_commits(story, call):
    decision, fact, newest = story
    assert len(log(call, decision).commits) == 2
    assert [row.commit.author for row in log(call, newest).commits] == ["Bob"]
    removed = log(call, fact)
    assert [row.files[0].change for row in removed.commits] == ["removed", "added"]
    with pytest.raises(NotFound):
        log(call, "never_was")


def test_log_and_blame_take_the_topic_of_a_decision(project, call):
    git(project, "init", "-q", "-b", "main")
    draft = saving.draft(Kind.DECISION, "Use JWT", topic="auth_strategy")
    decision = saving.store(call, draft)
    saving.store(call, saving.draft(Kind.FACT, "Staging is reset"))
    sync(call)

    (row,) = log(call, "auth strategy").commits
    assert [file.id for file in row.files] == [decision.memory.id]
    assert blame(call, "auth_strategy").id == decision.memory.id


def test_the_log_follows_a_memory_to_another_file(story, project, call):
    old = project / lookup.one(call, story[0]).place.path
    old.rename(old.with_name("other.md"))
    sync(call)
    assert len(log(call, story[0]).commits) == 3


def renamed(project, path, name):
    git(project, "mv", path, f".mind/facts/{name}.md")
    git(project, "commit", "-qm", f"Rename it to {name}")


@pytest.mark.parametrize("names", [["other"], ["other", "third"], ["other", "third", "other"]])
@pytest.mark.parametrize("name", [str, handle_of])
def test_the_log_of_a_removed_memory_follows_its_file(project, call, names, name):
    git(project, "init", "-q", "-b", "main")
    record = saving.store(call, saving.draft(Kind.FACT, "Staging is reset"))
    sync(call, message="add")
    path = record.place.path
    for new in names:
        renamed(project, path, new)
        path = f".mind/facts/{new}.md"
        saving.edit(call, lookup.one(call, record.memory.id), content=f"Reset by {new}")
        sync(call, message=f"edit {new}")
    before = [row.commit.subject for row in log(call, record.memory.id).commits]
    removing.remove(call, record.memory.id)
    sync(call, message="remove")
    saving.store(call, saving.draft(Kind.FACT, "Another fact"))
    sync(call, message="another")

    rows = log(call, name(record.memory.id)).commits

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
    path = project / ".mind/facts/tea.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("Tea is hot, and it is served at four.\n")
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


def test_the_log_of_a_repository_without_commits_is_empty(project, call):
    git(project, "init", "-q")
    assert log(call).commits == ()


def test_blame_shows_the_author_of_each_line(story, call):
    blamed = blame(call, story[0])

    authors = {line.text: line.commit.author for line in blamed.lines}
    assert (authors["Use JWT"], authors["It is simple"]) == ("Ann", "Bob")
    assert (blamed.by, blamed.session) == ("claude-code", "s-12")
    fresh = saving.store(call, saving.draft(Kind.FACT, "new"))
    with pytest.raises(NotFound, match="never committed"):
        blame(call, fresh.memory.id)


def test_a_changed_memory_is_restored_byte_for_byte(story, project, call):
    path = lookup.one(call, story[0]).place.path
    restored = restore(call, story[0], at="v1")

    assert restored.file == path
    assert (project / path).read_text() == f"{git(project, 'show', f'v1:{path}')}\n"
    assert show(call, story[0]).content == "Use JWT\n\nIt is stateless"


def test_a_removed_memory_is_brought_back(story, call):
    done = restore(call, story[1], at="v1")
    assert show(call, story[1]).trust == "trusted"
    assert done.title == "Staging is reset"
    with pytest.raises(NotFound):
        restore(call, story[2], at="v1")


def test_a_file_in_the_way_is_not_overwritten(story, project, call):
    path = project / ".mind" / "facts" / f"{story[1]}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("---\nid: other\ntype: fact\n---\nx\n", encoding="utf-8")
    with pytest.raises(Conflict):
        restore(call, story[1], at="v1")


def test_diff_lists_each_changed_memory(story, call):
    decision, fact, newest = story
    result = diff(call, "v1..HEAD")

    rows = {row.id: row for row in result.memories}
    assert (result.added, result.changed, result.removed) == (1, 1, 1)
    assert (result.superseded, result.contradicted, result.outcomes) == (1, 1, 1)
    assert set(rows[decision].fields) == {"text", "outcome"}
    assert (rows[decision].outcome_before, rows[decision].outcome) == (None, Outcome.FAILED)
    assert rows[newest].supersedes == (decision,)
    assert rows[newest].contradicts == ("x",)
    assert rows[fact].change == "removed"
    assert diff(call, "v1").memories == result.memories
    assert diff(call, "HEAD..HEAD").memories == ()


def test_an_outcome_with_its_report_is_one_changed_field(story, call):
    evolve_outcome(call, story[2], "PARTIAL", reason="slow on mobile networks")

    (row,) = diff(call).memories

    assert row.fields.count("outcome") == 1
    assert set(row.fields) == {"outcome", "confidence"}


def test_markdown_for_a_pull_request_takes_nothing_for_markup(story, call):
    text = diff(call, "v1..HEAD", format=Format.MARKDOWN).text or ""

    assert "**Remembered** (1)\n" in text
    assert "Use @&#8203;sessions \\<b\\>" in text
    assert f"  - **supersedes** `{story[0]}`" in text
    assert "  - outcome: **open → FAILED**" in text
    empty = diff(call, "HEAD..HEAD", format=Format.MARKDOWN).text or ""
    assert "Nothing changes" in empty


def test_a_branch_is_compared_with_where_it_left_the_main_one(story, project, call):
    git(project, "checkout", "-q", "-b", "idea", "v1")
    saving.store(call, saving.draft(Kind.FACT, "An idea"))
    sync(call)

    result = diff(call, branch=True)
    assert [row.title for row in result.memories] == ["An idea"]
    assert result.between.startswith(f"since main at {result.before}, ")
    assert len(diff(call, "main..HEAD").memories) == 4
    assert len(diff(call, "main...HEAD").memories) == 1
    with pytest.raises(Invalid, match="name two revisions"):
        diff(call, "v1", branch=True)
    with pytest.raises(NotFound):
        diff(call, "nowhere..HEAD")


def test_without_revisions_the_working_tree_is_compared_with_head(story, project, call):
    decision, _, newest = story
    assert diff(call).memories == ()
    saving.edit(call, lookup.one(call, decision), importance=0.9)
    (project / lookup.one(call, newest).place.path).unlink()
    added = saving.store(call, saving.draft(Kind.FACT, "Not committed")).memory.id
    saving.store(call, saving.draft(Kind.FACT, "Only here"), private=True)

    result = diff(call)

    rows = {row.id: (row.change, row.fields) for row in result.memories}
    assert rows == {
        decision: ("changed", ("importance",)), newest: ("removed", ()), added: ("added", ()),
    }  # fmt: skip
    assert result.after == "working tree"
    assert result.between.startswith(f"since HEAD at {result.before}, ")


def test_a_private_memory_has_no_history_and_no_hint_to_commit_it(story, call):
    private = saving.store(call, saving.draft(Kind.FACT, "Only here"), private=True).memory.id
    shared = saving.store(call, saving.draft(Kind.FACT, "Not committed")).memory.id
    for command in (log, blame):
        with pytest.raises(NotFound, match="is private, so it is never committed") as error:
            command(call, private)
        assert not error.value.hint
    with pytest.raises(NotFound, match="was never committed") as error:
        blame(call, shared)
    assert "mind sync" in error.value.hint


def test_before_the_first_commit_every_memory_is_new(project, call):
    git(project, "init", "-q")
    saving.store(call, saving.draft(Kind.FACT, "The first"))

    result = diff(call)

    assert [row.change for row in result.memories] == ["added"]
    assert (result.before, result.between) == ("", "before the first commit")


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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.showRoot", "false"),
        ("diff.renames", "false"),
        ("diff.orderFile", "missing"),
        ("color.diff", "always"),
        ("trailer.separators", "="),
    ],
)
def test_no_setting_of_git_changes_an_answer(story, project, call, key, value):
    path = f".mind/decisions/{story[0]}.md"
    git(project, "mv", path, path.replace(".md", "-moved.md"))
    git(project, "commit", "-qm", "Move it")
    before = (blame(call, story[0]), diff(call, "v1..HEAD"), log(call))

    git(project, "config", key, value)

    assert before == (blame(call, story[0]), diff(call, "v1..HEAD"), log(call))


def test_the_branch_and_the_last_change_of_a_reftable_are_those_of_git(project, monkeypatch):
    git(project, "init", "-q", "-b", "main")
    (project / ".git/HEAD").write_text("ref: refs/heads/.invalid\n", encoding="utf-8")
    table = project / ".git/reftable/tables.list"
    table.parent.mkdir()
    table.write_text("x\n", encoding="utf-8")
    monkeypatch.setattr(git_of, "output", lambda *_: "main")

    assert git_of.branch(project) == "main"
    assert git_of.stamp(project) == table.lstat()


@pytest.fixture
def logged(project, call):
    """A committed log with a statement that was changed afterwards."""
    git(project, "init", "-q", "-b", "main")
    path = project / ".mind" / "MEMORY.md"
    path.write_text("## 2026-11-01\n\n- Decided to use llamas\n- TIL goats climb\n")
    sync(call)
    old = next(record for record in finding.listing(call).records if record.place.line == 3)
    path.write_text(path.read_text().replace("llamas", "camels"))
    return old


def test_a_difference_has_the_statements_of_the_log(logged, call):
    def changed(*words):
        return {(row.title, row.change) for row in diff(call, *words).memories}

    expected = {("use camels", "added"), ("use llamas", "removed")}
    assert changed() == expected
    sync(call)
    assert changed() == set()
    assert changed("HEAD~1..HEAD") == changed("HEAD~1") == expected


def test_a_statement_of_the_log_is_not_restored(logged, project, call):
    before = (project / ".mind" / "MEMORY.md").read_bytes()

    with pytest.raises(Invalid, match=r"line 3 of `.mind/MEMORY.md`") as raised:
        restore(call, logged.memory.id)

    assert "git show" in raised.value.hint
    assert (project / ".mind" / "MEMORY.md").read_bytes() == before


def test_a_single_revision_is_compared_with_the_working_tree(story, project, call):
    decision, fact, newest = story
    assert diff(call, "HEAD").memories == ()
    added = saving.store(call, saving.draft(Kind.FACT, "Not committed")).memory.id

    result = diff(call, "HEAD")
    assert [(row.id, row.change) for row in result.memories] == [(added, "added")]
    earlier = diff(call, "v1")
    assert {row.id: row.change for row in earlier.memories} == {
        decision: "changed", fact: "removed", newest: "added", added: "added",
    }  # fmt: skip
    assert earlier.after == "working tree"
    assert earlier.between.startswith(f"since {earlier.before}, ")
    assert added not in {row.id for row in diff(call, "v1..HEAD").memories}


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


def test_an_empty_id_or_revision_is_not_an_omitted_one(story, call):
    with pytest.raises(NotFound):
        log(call, "")
    with pytest.raises(NotFound):
        diff(call, "")
    with pytest.raises(Invalid, match="name two revisions"):
        diff(call, "", branch=True)


@pytest.fixture
def guide(project, call):
    """An ingested file with three chunks that is committed; returns its id."""
    git(project, "init", "-q", "-b", "main")
    parts = (f"## Part {n}\n\n{'Hot tea. ' * 60}\n" for n in range(3))
    (project / "guide.md").write_text("# Guide\n\n" + "\n".join(parts), "utf-8")
    done = ingest(call, str(project / "guide.md"), strategy=Strategy.MARKDOWN)
    sync(call)
    return done.source_id


@pytest.mark.parametrize("name", [str, handle_of])
def test_a_removed_file_is_restored_with_all_of_its_chunks(guide, project, call, name):
    before = {record.memory.id for record in lookup.source(call, guide)}
    removing.remove_source(call, lookup.source(call, guide))
    sync(call)

    done = restore(call, name(guide), at="HEAD~1")

    assert (done.id, done.title) == (guide, "guide.md")
    assert {record.memory.id for record in lookup.source(call, guide)} == before
    assert call.mind.trust.trusted(call.mind.store.digest(done.file))


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


def test_the_log_and_blame_take_an_ingested_file(guide, call):
    for id in (guide, handle_of(guide)):
        assert len(log(call, id).commits) == 1
        blamed = blame(call, id)
        assert (blamed.id, blamed.title) == (guide, "guide.md")
        assert blamed.lines[0].text == "---"


def test_a_short_topic_comes_before_the_beginning_of_the_id_of_a_file(guide, call):
    topic = handle_of(guide)[:2]
    decision = saving.store(call, saving.draft(Kind.DECISION, "Use JWT", topic=topic))
    sync(call)

    (row,) = log(call, topic).commits
    assert [file.id for file in row.files] == [decision.memory.id]
    assert blame(call, topic).id == decision.memory.id
    assert show(call, topic).id == decision.memory.id
    assert show(call, handle_of(guide)).id == guide


def test_a_command_that_needs_a_memory_names_the_chunks_of_a_file(guide, call):
    for id in (guide, handle_of(guide)):
        with pytest.raises(AmbiguousId, match="is an ingested file") as raised:
            lookup.one(call, id)
        assert "name one of its chunks: " in raised.value.hint
        assert len(raised.value.details["candidates"]) == 3
        with pytest.raises(AmbiguousId, match="is an ingested file"):
            lookup.meant(call, id)
