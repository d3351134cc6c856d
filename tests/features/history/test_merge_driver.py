"""The merge driver as git calls it: real branches in real repositories."""

import os
import sys

import pytest

from mimo.call import Call
from mimo.errors import NotFound
from mimo.features.upkeep.checks import doctor
from mimo.memory.model import Kind, Outcome
from mimo.mind import Mind
from mimo.operations import lookup, removing, saving, syncing
from mimo.project import init, projects
from mimo.project.git import DRIVER
from tests.conftest import git
from tests.kit import put, script


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A folder on the PATH in which `mind` is the program under test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script(folder / "mind", f'#!/bin/sh\nexec "{sys.executable}" -m mimo "$@"\n')
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def repository(project, path):
    git(project, "init", "-q", "-b", "main")
    syncing.install(project)
    return project


def opened(root, home, clock):
    return Call(Mind(home=home, project=projects.explicit(root, home), clock=clock, environ={}))


@pytest.fixture
def decided(repository, call):
    """The id of a decision that is committed."""
    note = saving.draft(
        Kind.DECISION, "Use JWT.\n\nIt is stateless.\n\nTokens live a day.", confidence=0.7,
        tags=("auth",), topic="auth",
    )  # fmt: skip
    record = saving.store(call, note)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "first")
    return record.memory.id


def on_branch(root, name, change):
    git(root, "checkout", "-q", "-b", name, "main")
    change()
    git(root, "add", "-A")
    git(root, "commit", "-qm", name)
    git(root, "checkout", "-q", "main")


def edit(call, id_, **changes):
    saving.edit(call, lookup.one(call, id_), **changes)


def test_a_merge_keeps_the_additions_of_both_branches(repository, call, decided):
    text = "Use JWT.\n\nIt is stateless.\n\nTokens live a day."
    on_branch(
        repository, "one",
        lambda: edit(call, decided, tags=("auth", "web"), content=text.replace("Use", "We use")),
    )  # fmt: skip
    on_branch(
        repository, "two",
        lambda: edit(call, decided, tags=("auth", "api"), content=text.replace("day", "week")),
    )  # fmt: skip
    git(repository, "merge", "-q", "one")

    output = git(repository, "merge", "-q", "two", errors=True)

    memory = lookup.one(call, decided).memory
    assert set(memory.tags) == {"auth", "web", "api"}
    assert memory.content == "We use JWT.\n\nIt is stateless.\n\nTokens live a week."
    assert memory.competing == ()
    assert "mind:" not in output


def test_a_contradiction_keeps_both_versions_and_reports_it(repository, call, decided):
    on_branch(repository, "one", lambda: edit(call, decided, outcome=Outcome.SUCCESS))
    on_branch(repository, "two", lambda: edit(call, decided, outcome=Outcome.FAILED))
    git(repository, "merge", "-q", "one")

    output = git(repository, "merge", "-q", "two", errors=True)

    memory = lookup.one(call, decided).memory
    assert memory.outcome is Outcome.FAILED
    assert [(one.field, one.text) for one in memory.competing] == [("outcome", "SUCCESS")]
    assert "conflict of outcome" in output
    assert git(repository, "status", "--short") == ""


def test_a_memory_that_one_branch_moved_gets_the_change_of_the_other(repository, call, decided):
    old = repository / lookup.one(call, decided).place.path
    (repository / ".mind" / "archive").mkdir()
    on_branch(
        repository, "one",
        lambda: (
            (repository / ".mind" / "archive").mkdir(exist_ok=True),
            old.rename(repository / ".mind" / "archive" / old.name),
        ),
    )  # fmt: skip
    on_branch(repository, "two", lambda: edit(call, decided, tags=("auth", "api")))
    git(repository, "merge", "-q", "one")
    git(repository, "merge", "-q", "two")

    record = lookup.one(call, decided)
    assert record.place.path == f".mind/archive/{old.name}"
    assert record.memory.tags == ("auth", "api")


def test_a_deletion_against_an_edit_is_left_to_people(repository, call, decided):
    """Git asks no driver then: it stops, and the edited file stays."""
    on_branch(repository, "one", lambda: removing.remove(call, decided))
    on_branch(repository, "two", lambda: edit(call, decided, tags=("api",)))
    git(repository, "merge", "-q", "one")
    with pytest.raises(NotFound):
        lookup.one(call, decided)

    output = git(repository, "merge", "-q", "two", check=False, errors=True)

    assert "modify/delete" in output
    assert lookup.one(call, decided).memory.tags == ("api",)


@pytest.mark.parametrize("ending", [".md", ".markdown", ".mdc", ".mdx", ".mkd", ".MD", ".Markdown"])
@pytest.mark.parametrize("is_old", [False, True])
def test_two_branches_that_write_one_new_file_keep_both(repository, decided, call, ending, is_old):
    attributes = repository / ".mind" / ".gitattributes"
    if is_old:  # `mind doctor --fix` adds the lines below the others.
        attributes.write_text("*.md merge=mind\nMEMORY.md merge=union\n")
        assert init.lacking(repository) == (".mind/.gitattributes",)
        init.complete(repository)
    assert "union" in git(repository, "check-attr", "merge", "--", ".mind/MEMORY.md")
    path = repository / ".mind" / "facts" / f"tea{ending}"
    head = "---\nid: tea\ntype: fact\ncreated: 2026-11-20T10:00:00Z\n"
    path.parent.mkdir(exist_ok=True)

    def write(text):
        put(path, text)

    on_branch(repository, "one", lambda: write(f"{head}tags: [a]\n---\nGreen tea\n"))
    on_branch(repository, "two", lambda: write(f"{head}tags: [b]\n---\nBlack tea\n"))
    git(repository, "merge", "-q", "one")
    git(repository, "merge", "-q", "two")

    memory = lookup.one(call, "tea").memory
    competing = {version.text for version in memory.competing}
    assert {memory.content, *competing} == {"Green tea", "Black tea"}
    assert memory.tags == ("a", "b")


@pytest.fixture
def calls(path):
    """The number of calls of the merge driver until now."""
    log = path / "calls"
    program = path / "mind"
    text = program.read_text(encoding="utf-8")
    program.write_text(text.replace("\n", f'\necho "$1" >> "{log}"\n', 1), encoding="utf-8")
    return lambda: log.read_text(encoding="utf-8").count("merge-driver") if log.exists() else 0


@pytest.mark.parametrize("linked", [False, True])
def test_one_call_merges_all_files_of_a_merge(repository, call, calls, tmp_path, linked):
    names = [f"it's {number} $HOME" for number in range(4)]
    ids = [saving.store(call, saving.draft(Kind.FACT, name)).memory.id for name in names]
    for id_, name in zip(ids, names, strict=True):
        record = lookup.one(call, id_)
        (repository / record.place.path).rename(repository / ".mind" / "facts" / f"{name}.md")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "first")
    on_branch(repository, "one", lambda: [edit(call, id_, topic="one") for id_ in ids])
    on_branch(repository, "two", lambda: [edit(call, id_, tags=("two",)) for id_ in ids])
    root = repository
    if linked:
        root = tmp_path / "linked"
        git(repository, "worktree", "add", "-q", "--detach", str(root), "main")
    git(root, "merge", "-q", "one")

    git(root, "merge", "-q", "two")

    assert calls() == 1
    for name in names:
        text = (root / ".mind" / "facts" / f"{name}.md").read_text(encoding="utf-8")
        assert "topic: one\n" in text
        assert "tags: [two]\n" in text
        assert call.mind.trust.approved(*call.mind.store.approvals(f".mind/facts/{name}.md"))


def test_a_result_of_other_texts_is_not_taken(repository, call, calls):
    ids = [saving.store(call, saving.draft(Kind.FACT, name)).memory.id for name in ("a", "b")]
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "first")
    on_branch(repository, "one", lambda: [edit(call, id_, topic="one") for id_ in ids])

    def rename():
        for id_ in ids:
            edit(call, id_, tags=("two",))
        old = repository / lookup.one(call, ids[1]).place.path
        old.rename(old.with_name("elsewhere.md"))

    on_branch(repository, "two", rename)
    git(repository, "merge", "-q", "one")
    git(repository, "merge", "-q", "two")

    assert calls() == 2
    for id_ in ids:
        memory = lookup.one(call, id_).memory
        assert (memory.topic, memory.tags) == ("one", ("two",))


def test_without_mind_on_the_path_git_merges_the_text(repository, call, decided, path):
    on_branch(repository, "one", lambda: edit(call, decided, topic="login"))
    content = "Use JWT.\n\nIt is stateless.\n\nTokens live a week."
    on_branch(repository, "two", lambda: edit(call, decided, content=content))
    (path / "mind").write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    git(repository, "merge", "-q", "one")
    git(repository, "merge", "-q", "two")

    memory = lookup.one(call, decided).memory
    assert (memory.topic, memory.content) == ("login", content)


def test_the_log_of_two_branches_is_united(repository, decided):
    log = repository / ".mind" / "MEMORY.md"

    def note(text):
        log.write_text(f"{log.read_text(encoding='utf-8')}{text}\n", encoding="utf-8")

    on_branch(repository, "one", lambda: note("- one"))
    on_branch(repository, "two", lambda: note("- two"))
    git(repository, "merge", "-q", "one")
    git(repository, "merge", "-q", "two")

    assert log.read_text(encoding="utf-8").endswith("- one\n- two\n")


def test_procedures_and_values_are_no_memory_to_git(repository):
    paths = ["facts/a.md", "procedures/a.md", "procedures/deep/a.md", "values/a/b.md"]
    output = git(repository, "check-attr", "merge", "--", *(f".mind/{path}" for path in paths))
    merged = [line.rpartition(" ")[2] for line in output.splitlines()]
    assert merged == ["mind", "text", "text", "text"]


def test_a_clone_lacks_the_driver_until_it_is_mended(repository, decided, tmp_path, home, clock):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    call = opened(clone, home, clock)

    assert syncing.lacking(clone)
    trusted = call.mind.trust.state
    assert syncing.install(clone)

    assert syncing.lacking(clone) is None
    assert not syncing.install(clone)
    assert call.mind.trust.state == trusted
    assert git(clone, "config", "merge.mind.driver").strip() == DRIVER


@pytest.mark.parametrize(
    ("driver", "lacks"), [("mind merge-driver %O %A %B %P", True), ("kdiff3 %O %A %B", False)]
)
def test_the_driver_of_an_older_version_is_replaced(repository, driver, lacks):
    git(repository, "config", "merge.mind.driver", driver)

    assert bool(syncing.lacking(repository)) is lacks

    syncing.install(repository)
    assert syncing.lacking(repository) is None


def test_doctor_reports_a_driver_that_it_could_not_install(repository, call):
    git(repository, "config", "--unset", "merge.mind.driver")
    (repository / ".git/config.lock").touch()

    failed = doctor(call, fix=True).checks[0]

    assert (failed.name, failed.verdict) == ("repair", "fault")
    assert "could not lock config file" in failed.message


def test_outside_git_nothing_lacks(project):
    assert syncing.lacking(project) is None
    assert not syncing.install(project)


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "a", "b")])
def test_three_branches_come_to_the_same_in_any_order(repository, call, decided, order):
    changes = {
        "a": {"confidence": 0.9, "tags": ("auth", "a"), "outcome": Outcome.SUCCESS},
        "b": {"confidence": 0.2, "tags": ("b",), "topic": "login"},
        "c": {"confidence": 0.4, "outcome": Outcome.FAILED, "importance": 0.9},
    }
    for name, fields in changes.items():
        on_branch(repository, name, lambda fields=fields: edit(call, decided, **fields))
    for name in order:
        git(repository, "merge", "-q", name)

    memory = lookup.one(call, decided).memory
    assert (memory.confidence, memory.outcome) == (0.2, Outcome.FAILED)
    assert (memory.tags, memory.topic, memory.importance) == (("a", "b"), "login", 0.9)
    assert [(version.field, version.text) for version in memory.competing] == [
        ("confidence", "0.4"), ("confidence", "0.9"), ("outcome", "SUCCESS"),
    ]  # fmt: skip


def test_a_rebase_and_a_cherry_pick_merge_as_well(repository, call, decided):
    on_branch(repository, "one", lambda: edit(call, decided, tags=("auth", "one")))
    on_branch(repository, "two", lambda: edit(call, decided, tags=("auth", "two")))
    git(repository, "cherry-pick", "one")
    git(repository, "checkout", "-q", "two")
    git(repository, "rebase", "-q", "main")
    assert lookup.one(call, decided).memory.tags == ("auth", "one", "two")


@pytest.mark.parametrize("approved", [True, False])
def test_a_merge_is_trusted_where_both_sides_were(repository, call, decided, approved):
    on_branch(repository, "one", lambda: edit(call, decided, tags=("auth", "web")))
    on_branch(repository, "two", lambda: edit(call, decided, tags=("auth", "api")))
    git(repository, "merge", "-q", "one")
    if not approved:
        git(repository, "checkout", "-q", "two")
        call.mind.trust.revoke([lookup.one(call, decided).place.approval])
        git(repository, "checkout", "-q", "main")

    git(repository, "merge", "-q", "two")

    record = lookup.one(call, decided)
    assert set(record.memory.tags) == {"auth", "web", "api"}
    assert call.mind.trust.approved(record.place.approval) is approved


@pytest.mark.parametrize(("command", "top"), [("merge", "."), ("rebase", "..")])
def test_a_branch_of_a_later_format_is_left_to_git(project, path, call, command, top):
    git(project, "init", "-q", "-b", "main", top)
    syncing.install(project)
    id_ = saving.store(call, saving.draft(Kind.FACT, "Tea", confidence=0.5)).memory.id
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    settings = project / ".mind" / "config.toml"

    def upgrade():
        edit(call, id_, confidence=0.9)
        settings.write_text("# By a later mind.\nformat = 2\n", encoding="utf-8")

    on_branch(project, "one", lambda: edit(call, id_, confidence=0.4))
    on_branch(project, "two", upgrade)
    git(project, "checkout", "-q", "one")

    git(project, command, "two", check=False)

    (file,) = project.glob(".mind/facts/*.md")
    assert git(project, "status", "--short", "--", str(file)).startswith("UU")
    assert "<<<<<<<" in file.read_text(encoding="utf-8")
