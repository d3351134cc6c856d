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
from mimo.rendering import PlainScreen
from mimo.rendering.results import show_on
from mimo.store import git as git_of
from mimo.store import revisions
from mimo.store.memories import messages
from tests.conftest import NOW, git

pytestmark = pytest.mark.usefixtures("ann")


@pytest.fixture
def story(project, mind):
    """A decision that an agent made and Bob changed, and a fact that was removed."""
    git(project, "init", "-q", "-b", "main")
    draft = saving.draft(Kind.DECISION, "Use JWT\n\nIt is stateless", extra={"session": "s-12"})
    decision = saving.store(mind.acting_as("claude-code"), draft)
    fact = saving.store(mind, saving.draft(Kind.FACT, "Staging is reset"))
    sync(mind)
    git(project, "tag", "v1")
    now = lookup.one(mind, decision.memory.id)
    saving.edit(mind, now, content="Use JWT\n\nIt is simple", outcome=Outcome.FAILED)
    removing.remove(mind, fact.memory.id)
    newer = saving.draft(
        Kind.DECISION, "Use @sessions <b>",
        links=(Link(to=decision.memory.id, type="supersedes"), Link(to="x", type="contradicts")),
    )  # fmt: skip
    newest = saving.store(mind, newer)
    git(project, "add", "-A")
    git(project, "-c", "user.name=Bob", "commit", "-qm", "Bob knows better", "--author=Bob <b@x>")
    return decision.memory.id, fact.memory.id, newest.memory.id


def test_log_shows_authors_agents_and_changed_files(story, mind):
    newest, first = log(mind).commits

    assert (newest.commit.author, newest.commit.agents) == ("Bob", None)
    assert {file.change for file in newest.files} == {"added", "changed", "removed"}
    assert (first.commit.author, first.commit.agents) == ("Ann", "claude-code")
    assert len(log(mind, limit=1).commits) == 1


def test_a_commit_whose_time_is_in_no_calendar_is_shown(story, project, mind):
    made = re.sub(r"> \d+ ", f"> {10**14} ", git(project, "cat-file", "commit", "HEAD"))
    name = git(project, "hash-object", "-t", "commit", "-w", "--stdin", input=f"{made}\n")
    git(project, "reset", "-q", name)

    assert len(log(mind).commits) == 2
    assert blame(mind, story[2]).lines
    assert list(messages(project, 5))


def test_log_names_present_memories_and_the_files_of_others(story, mind):
    newest, _ = log(mind).commits
    named = {file.change: (file.id, file.title) for file in newest.files}
    assert named["added"] == (story[2], lookup.one(mind, story[2]).memory.heading)
    assert named["removed"] == (None, None)


def test_the_chunks_of_a_file_are_one_line_of_a_difference(story, project, mind, capsys):
    """Each of them is a row in JSON."""
    text = f"# Guide\n\n## Tea\n\n{'Hot tea. ' * 40}\n\n## Milk\n\n{'Cold milk. ' * 40}\n"
    (project / "guide.md").write_text(text, "utf-8")
    ingest(mind, str(project / "guide.md"), strategy=Strategy.MARKDOWN)
    result = diff(mind)
    assert sum(row.id.startswith("source_") for row in result.memories) > 1

    screen = PlainScreen()
    show_on(screen, result)
    screen.finish(pager=False)

    (line,) = [line for line in capsys.readouterr().out.splitlines() if "Guide" in line]
    assert "file" in line
    assert "chunks" in line


def test_names_that_are_not_utf8_break_no_command(story, project, mind):
    try:
        (project / os.fsdecode(b".mind/caf\xe9")).mkdir()
    except OSError:
        pytest.skip("this file system refuses such names")
    for name in (b"caf\xe9.md", b"facts/caf\xe9.md", b"caf\xe9/plain.md"):
        (project / ".mind" / os.fsdecode(name)).write_text("In Latin-1", encoding="utf-8")
    assert len(sync(mind).files) == 3
    assert [file.id for file in log(mind).commits[0].files] == [None] * 3
    for at in (None, "HEAD"):
        listed = list_(mind, at=at)
        assert (len(listed.memories), listed.unreadable) == (2, 3)
    assert [*mind.index_folder.glob("index*.db")] == [mind.index._tables.path]


def test_log_of_a_memory_omits_other_commits(story, mind):
    decision, fact, newest = story
    assert len(log(mind, decision).commits) == 2
    assert [row.commit.author for row in log(mind, newest).commits] == ["Bob"]
    removed = log(mind, fact)
    assert [row.files[0].change for row in removed.commits] == ["removed", "added"]
    with pytest.raises(NotFound):
        log(mind, "never_was")


def test_log_and_blame_take_the_topic_of_a_decision(project, mind):
    git(project, "init", "-q", "-b", "main")
    draft = saving.draft(Kind.DECISION, "Use JWT", topic="auth_strategy")
    decision = saving.store(mind, draft)
    saving.store(mind, saving.draft(Kind.FACT, "Staging is reset"))
    sync(mind)

    (row,) = log(mind, "auth strategy").commits
    assert [file.id for file in row.files] == [decision.memory.id]
    assert blame(mind, "auth_strategy").id == decision.memory.id


def test_the_log_follows_a_memory_to_another_file(story, project, mind):
    old = project / lookup.one(mind, story[0]).place.path
    old.rename(old.with_name("other.md"))
    sync(mind)
    assert len(log(mind, story[0]).commits) == 3


def renamed(project, path, name):
    git(project, "mv", path, f".mind/facts/{name}.md")
    git(project, "commit", "-qm", f"Rename it to {name}")


@pytest.mark.parametrize("names", [["other"], ["other", "third"], ["other", "third", "other"]])
@pytest.mark.parametrize("name", [str, handle_of])
def test_the_log_of_a_removed_memory_follows_its_file(project, mind, names, name):
    git(project, "init", "-q", "-b", "main")
    record = saving.store(mind, saving.draft(Kind.FACT, "Staging is reset"))
    sync(mind, message="add")
    path = record.place.path
    for new in names:
        renamed(project, path, new)
        path = f".mind/facts/{new}.md"
        saving.edit(mind, lookup.one(mind, record.memory.id), content=f"Reset by {new}")
        sync(mind, message=f"edit {new}")
    before = [row.commit.subject for row in log(mind, record.memory.id).commits]
    removing.remove(mind, record.memory.id)
    sync(mind, message="remove")
    saving.store(mind, saving.draft(Kind.FACT, "Another fact"))
    sync(mind, message="another")

    rows = log(mind, name(record.memory.id)).commits

    assert [row.commit.subject for row in rows] == ["remove", *before]
    assert before[-1] == "add"
    assert rows[0].files[0].change == "removed"
    assert not any(file.change == "removed" for row in rows[1:] for file in row.files)


def test_the_log_of_a_removed_memory_is_not_that_of_a_similar_new_one(project, mind):
    git(project, "init", "-q", "-b", "main")
    text = "Staging is reset every night, and its users have to sign in again." * 9
    old = saving.store(mind, saving.draft(Kind.FACT, text))
    sync(mind, message="add")
    removing.remove(mind, old.memory.id)
    saving.store(mind, saving.draft(Kind.FACT, f"{text} Yes."))
    sync(mind, message="replace")
    assert "R" in git(project, "log", "-1", "--name-status", "--format=")

    rows = log(mind, old.memory.id).commits

    assert [row.files[0].change for row in rows] == ["removed", "added"]
    assert {row.files[0].file for row in rows} == {old.place.path}


def test_the_log_of_a_removed_file_without_a_header_is_found_by_its_name(project, mind):
    git(project, "init", "-q", "-b", "main")
    path = project / ".mind/facts/tea.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("Tea is hot, and it is served at four.\n")
    sync(mind, message="add")
    path.unlink()
    sync(mind, message="remove")

    assert [row.commit.subject for row in log(mind, "tea").commits] == ["remove", "add"]


@pytest.mark.parametrize("name", [str, handle_of])
def test_the_log_of_a_removed_memory_finds_an_id_that_only_its_header_has(project, mind, name):
    git(project, "init", "-q", "-b", "main")
    saving.store(mind, saving.draft(Kind.FACT, "Another fact"))
    record = saving.store(mind, saving.draft(Kind.FACT, "Staging is reset"))
    path = project / record.place.path
    path.rename(path.with_name("notes.md"))
    sync(mind, message="add")
    saving.edit(mind, lookup.one(mind, record.memory.id), content="Staging is reset at night")
    sync(mind, message="edit")
    removing.remove(mind, record.memory.id)
    sync(mind, message="remove")

    rows = log(mind, name(record.memory.id)).commits

    assert [row.commit.subject for row in rows] == ["remove", "edit", "add"]
    for wrong in ("never_was", "abcdef", "a|.*", "(", "-x"):
        with pytest.raises(NotFound):
            log(mind, wrong)


def test_the_log_of_a_repository_without_commits_is_empty(project, mind):
    git(project, "init", "-q")
    assert log(mind).commits == ()


def test_blame_shows_the_author_of_each_line(story, mind):
    blamed = blame(mind, story[0])

    authors = {line.text: line.commit.author for line in blamed.lines}
    assert (authors["Use JWT"], authors["It is simple"]) == ("Ann", "Bob")
    assert (blamed.by, blamed.session) == ("claude-code", "s-12")
    fresh = saving.store(mind, saving.draft(Kind.FACT, "new"))
    with pytest.raises(NotFound, match="never committed"):
        blame(mind, fresh.memory.id)


def test_a_changed_memory_is_restored_byte_for_byte(story, project, mind):
    path = lookup.one(mind, story[0]).place.path
    restored = restore(mind, story[0], at="v1")

    assert restored.file == path
    assert (project / path).read_text() == f"{git(project, 'show', f'v1:{path}')}\n"
    assert show(mind, story[0]).content == "Use JWT\n\nIt is stateless"


def test_a_removed_memory_is_brought_back(story, mind):
    done = restore(mind, story[1], at="v1")
    assert show(mind, story[1]).trust == "trusted"
    assert done.title == "Staging is reset"
    with pytest.raises(NotFound):
        restore(mind, story[2], at="v1")


def test_a_file_in_the_way_is_not_overwritten(story, project, mind):
    path = project / ".mind" / "facts" / f"{story[1]}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("---\nid: other\ntype: fact\n---\nx\n", encoding="utf-8")
    with pytest.raises(Conflict):
        restore(mind, story[1], at="v1")


def test_diff_lists_each_changed_memory(story, mind):
    decision, fact, newest = story
    result = diff(mind, "v1..HEAD")

    rows = {row.id: row for row in result.memories}
    assert (result.added, result.changed, result.removed) == (1, 1, 1)
    assert (result.superseded, result.contradicted, result.outcomes) == (1, 1, 1)
    assert set(rows[decision].fields) == {"text", "outcome"}
    assert (rows[decision].outcome_before, rows[decision].outcome) == (None, Outcome.FAILED)
    assert rows[newest].supersedes == (decision,)
    assert rows[newest].contradicts == ("x",)
    assert rows[fact].change == "removed"
    assert diff(mind, "v1").memories == result.memories
    assert diff(mind, "HEAD..HEAD").memories == ()


def test_an_outcome_with_its_report_is_one_changed_field(story, mind):
    evolve_outcome(mind, story[2], "PARTIAL", reason="slow on mobile networks")

    (row,) = diff(mind).memories

    assert row.fields.count("outcome") == 1
    assert set(row.fields) == {"outcome", "confidence"}


def test_markdown_for_a_pull_request_takes_nothing_for_markup(story, mind):
    text = diff(mind, "v1..HEAD", format=Format.MARKDOWN).text or ""

    assert "**Remembered** (1)\n" in text
    assert "Use @&#8203;sessions \\<b\\>" in text
    assert f"  - **supersedes** `{story[0]}`" in text
    assert "  - outcome: **open → FAILED**" in text
    empty = diff(mind, "HEAD..HEAD", format=Format.MARKDOWN).text or ""
    assert "Nothing changes" in empty


def test_a_branch_is_compared_with_where_it_left_the_main_one(story, project, mind):
    git(project, "checkout", "-q", "-b", "idea", "v1")
    saving.store(mind, saving.draft(Kind.FACT, "An idea"))
    sync(mind)

    result = diff(mind, branch=True)
    assert [row.title for row in result.memories] == ["An idea"]
    assert result.between.startswith(f"since main at {result.before}, ")
    assert len(diff(mind, "main..HEAD").memories) == 4
    assert len(diff(mind, "main...HEAD").memories) == 1
    with pytest.raises(Invalid, match="name two revisions"):
        diff(mind, "v1", branch=True)
    with pytest.raises(NotFound):
        diff(mind, "nowhere..HEAD")


def test_without_revisions_the_working_tree_is_compared_with_head(story, project, mind):
    decision, _, newest = story
    assert diff(mind).memories == ()
    saving.edit(mind, lookup.one(mind, decision), importance=0.9)
    (project / lookup.one(mind, newest).place.path).unlink()
    added = saving.store(mind, saving.draft(Kind.FACT, "Not committed")).memory.id
    saving.store(mind, saving.draft(Kind.FACT, "Only here"), private=True)

    result = diff(mind)

    rows = {row.id: (row.change, row.fields) for row in result.memories}
    assert rows == {
        decision: ("changed", ("importance",)), newest: ("removed", ()), added: ("added", ()),
    }  # fmt: skip
    assert result.after == "working tree"
    assert result.between.startswith(f"since HEAD at {result.before}, ")


def test_a_private_memory_has_no_history_and_no_hint_to_commit_it(story, mind):
    private = saving.store(mind, saving.draft(Kind.FACT, "Only here"), private=True).memory.id
    shared = saving.store(mind, saving.draft(Kind.FACT, "Not committed")).memory.id
    for command in (log, blame):
        with pytest.raises(NotFound, match="is private, so it is never committed") as error:
            command(mind, private)
        assert not error.value.hint
    with pytest.raises(NotFound, match="was never committed") as error:
        blame(mind, shared)
    assert "mind sync" in error.value.hint


def test_before_the_first_commit_every_memory_is_new(project, mind):
    git(project, "init", "-q")
    saving.store(mind, saving.draft(Kind.FACT, "The first"))

    result = diff(mind)

    assert [row.change for row in result.memories] == ["added"]
    assert (result.before, result.between) == ("", "before the first commit")


def test_control_characters_in_a_commit_are_part_of_its_fields(story, project, mind):
    (project / ".mind/facts/more.md").write_text("Tea\n", encoding="utf-8")
    git(project, "add", "-A")
    odd = "a\x1fb\x1ec"
    git(project, "commit", "-qm", f"Fix {odd}", GIT_AUTHOR_NAME=odd, GIT_AUTHOR_EMAIL=f"{odd}@x")

    newest = log(mind).commits[0]

    assert (newest.commit.author, newest.commit.subject) == (odd, f"Fix {odd}")
    assert [file.file for file in newest.files] == [".mind/facts/more.md"]
    assert blame(mind, "more").lines[0].commit.author == odd


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


def test_a_commit_after_the_year_9999_is_like_any_other(story, project, mind):
    of = "Eve <eve@x> 999999999999999 +0000"
    parent, tree = git(project, "rev-parse", "HEAD", "v1^{tree}").split()
    text = f"tree {tree}\nparent {parent}\nauthor {of}\ncommitter {of}\n\nLate\n"
    late = git(project, "hash-object", "-t", "commit", "-w", "--stdin", input=text)
    git(project, "reset", "-q", "--hard", late)

    assert log(mind).commits[0].commit.date.year == 9999
    assert blame(mind, story[0]).lines
    assert next(messages(project, 1)).commit == late
    assert diff(mind, "HEAD~1..HEAD").changed == 1
    removing.remove(mind, story[1])
    assert restore(mind, story[1], at="HEAD").commit.author == "Eve"


def test_files_with_the_names_of_revisions_hide_no_commit(story, project, mind):
    head = git(project, "rev-parse", "HEAD")
    for name in ("HEAD", head, "HEAD...@{upstream}"):
        (project / name).write_text("x\n", encoding="utf-8")

    assert log(mind).commits[0].commit.commit == head[:10]
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
def test_no_setting_of_git_changes_an_answer(story, project, mind, key, value):
    path = f".mind/decisions/{story[0]}.md"
    git(project, "mv", path, path.replace(".md", "-moved.md"))
    git(project, "commit", "-qm", "Move it")
    before = (blame(mind, story[0]), diff(mind, "v1..HEAD"), log(mind))

    git(project, "config", key, value)

    assert before == (blame(mind, story[0]), diff(mind, "v1..HEAD"), log(mind))


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
def logged(project, mind):
    """A committed log with a statement that was changed afterwards."""
    git(project, "init", "-q", "-b", "main")
    path = project / ".mind" / "MEMORY.md"
    path.write_text("## 2026-11-01\n\n- Decided to use llamas\n- TIL goats climb\n")
    sync(mind)
    old = next(record for record in finding.listing(mind).records if record.place.line == 3)
    path.write_text(path.read_text().replace("llamas", "camels"))
    return old


def test_a_difference_has_the_statements_of_the_log(logged, mind):
    def changed(*words):
        return {(row.title, row.change) for row in diff(mind, *words).memories}

    expected = {("use camels", "added"), ("use llamas", "removed")}
    assert changed() == expected
    sync(mind)
    assert changed() == set()
    assert changed("HEAD~1..HEAD") == changed("HEAD~1") == expected


def test_a_statement_of_the_log_is_not_restored(logged, project, mind):
    before = (project / ".mind" / "MEMORY.md").read_bytes()

    with pytest.raises(Invalid, match=r"line 3 of `.mind/MEMORY.md`") as raised:
        restore(mind, logged.memory.id)

    assert "git show" in raised.value.hint
    assert (project / ".mind" / "MEMORY.md").read_bytes() == before


def test_a_single_revision_is_compared_with_the_working_tree(story, project, mind):
    decision, fact, newest = story
    assert diff(mind, "HEAD").memories == ()
    added = saving.store(mind, saving.draft(Kind.FACT, "Not committed")).memory.id

    result = diff(mind, "HEAD")
    assert [(row.id, row.change) for row in result.memories] == [(added, "added")]
    earlier = diff(mind, "v1")
    assert {row.id: row.change for row in earlier.memories} == {
        decision: "changed", fact: "removed", newest: "added", added: "added",
    }  # fmt: skip
    assert earlier.after == "working tree"
    assert earlier.between.startswith(f"since {earlier.before}, ")
    assert added not in {row.id for row in diff(mind, "v1..HEAD").memories}


def test_a_file_over_a_megabyte_is_compared_like_any_other(project, mind):
    git(project, "init", "-q", "-b", "main")
    (project / "long.txt").write_text("A line of words.\n" * 70_000)
    ingest(mind, str(project / "long.txt"), strategy=Strategy.LINES, lines_per_chunk=2_000)
    sync(mind)
    (project / "long.txt").write_text("Another line.\n" + "A line of words.\n" * 69_999)
    ingest(mind, str(project / "long.txt"), strategy=Strategy.LINES, lines_per_chunk=2_000)

    result = diff(mind)

    assert result.added == 0
    assert 0 < result.changed < 40


def test_an_empty_id_or_revision_is_not_an_omitted_one(story, mind):
    with pytest.raises(NotFound):
        log(mind, "")
    with pytest.raises(NotFound):
        diff(mind, "")
    with pytest.raises(Invalid, match="name two revisions"):
        diff(mind, "", branch=True)


@pytest.fixture
def guide(project, mind):
    """An ingested file with three chunks that is committed; returns its id."""
    git(project, "init", "-q", "-b", "main")
    parts = (f"## Part {n}\n\n{'Hot tea. ' * 60}\n" for n in range(3))
    (project / "guide.md").write_text("# Guide\n\n" + "\n".join(parts), "utf-8")
    done = ingest(mind, str(project / "guide.md"), strategy=Strategy.MARKDOWN)
    sync(mind)
    return done.source_id


@pytest.mark.parametrize("name", [str, handle_of])
def test_a_removed_file_is_restored_with_all_of_its_chunks(guide, project, mind, name):
    before = {record.memory.id for record in lookup.source(mind, guide)}
    removing.remove_source(mind, lookup.source(mind, guide))
    sync(mind)

    done = restore(mind, name(guide), at="HEAD~1")

    assert (done.id, done.title) == (guide, "guide.md")
    assert {record.memory.id for record in lookup.source(mind, guide)} == before
    assert mind.trust.trusted(mind.store.digest(done.file))


def test_a_changed_file_is_restored_byte_for_byte(guide, project, mind):
    path = project / lookup.source(mind, guide)[0].place.path
    before = path.read_bytes()
    (project / "guide.md").write_text("# Guide\n\nCold.\n", "utf-8")
    ingest(mind, str(project / "guide.md"), strategy=Strategy.MARKDOWN)
    assert path.read_bytes() != before

    restore(mind, guide)

    assert path.read_bytes() == before
    assert len(lookup.source(mind, guide)) == 3


def test_the_hint_for_a_chunk_restores_its_file(guide, mind):
    chunk = lookup.source(mind, guide)[1].memory.id
    removing.remove_source(mind, lookup.source(mind, guide))

    with pytest.raises(Invalid, match="is a part of an ingested file") as raised:
        restore(mind, chunk)

    name, revision = re.findall("`mind restore (.+) --at (.+)`", raised.value.hint)[0]
    assert name == handle_of(guide)
    assert restore(mind, name, at=revision).id == guide


def test_the_log_and_blame_take_an_ingested_file(guide, mind):
    for id in (guide, handle_of(guide)):
        assert len(log(mind, id).commits) == 1
        blamed = blame(mind, id)
        assert (blamed.id, blamed.title) == (guide, "guide.md")
        assert blamed.lines[0].text == "---"


def test_a_short_topic_comes_before_the_beginning_of_the_id_of_a_file(guide, mind):
    topic = handle_of(guide)[:2]
    decision = saving.store(mind, saving.draft(Kind.DECISION, "Use JWT", topic=topic))
    sync(mind)

    (row,) = log(mind, topic).commits
    assert [file.id for file in row.files] == [decision.memory.id]
    assert blame(mind, topic).id == decision.memory.id
    assert show(mind, topic).id == decision.memory.id
    assert show(mind, handle_of(guide)).id == guide


def test_a_command_that_needs_a_memory_names_the_chunks_of_a_file(guide, mind):
    for id in (guide, handle_of(guide)):
        with pytest.raises(AmbiguousId, match="is an ingested file") as raised:
            lookup.one(mind, id)
        assert "name one of its chunks: " in raised.value.hint
        assert len(raised.value.details["candidates"]) == 3
        with pytest.raises(AmbiguousId, match="is an ingested file"):
            lookup.meant(mind, id)
