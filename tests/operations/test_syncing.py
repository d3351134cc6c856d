"""Committing the memory in real repositories, in every state that they may be in."""

import re
import sys
import threading
from contextlib import nullcontext

import pytest

from mimo.call import Call
from mimo.data import disk
from mimo.errors import Conflict, Invalid, SecretDetected, StorageFailed
from mimo.features.history.commands import sync
from mimo.features.scan.commands import scan
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import committing, saving, syncing
from mimo.project import commit, projects
from mimo.project.git import complaint
from mimo.project.init import init
from tests import kit
from tests.conftest import NOW, git
from tests.kit import acting_as, put

pytestmark = pytest.mark.usefixtures("ann")


@pytest.fixture
def repository(project):
    kit.repository(project)
    (project / "app.py").write_text("x = 1\n", encoding="utf-8")
    git(project, "add", "app.py")
    git(project, "commit", "-qm", "app")
    return project


def remember(call, text="Use JWT", by=None):
    return saving.store(acting_as(call, by), saving.draft(Kind.DECISION, text))


def opened(root, home):
    return Call(
        Mind(home=home, project=projects.explicit(root, home), clock=lambda: NOW, environ={})
    )


def refuse(repository):
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ngit diff --cached --name-only > seen\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    (repository / ".git" / "info" / "exclude").write_text("seen\n", encoding="utf-8")
    return hook


def staged(repository):
    """Returns git's index as it is: entries, differences to HEAD and to the disk."""
    words = ("ls-files", "--stage"), ("diff", "--cached", "--raw"), ("status", "--short", "-uall")
    return [git(repository, *line) for line in words]


def test_a_memory_that_git_ignores_as_a_whole_is_no_problem_also_without_settings(repository, call):
    remember(call)
    (repository / ".mind" / "config.toml").unlink()
    (repository / ".gitignore").write_text(".mind/\n", encoding="utf-8")
    assert syncing.ignored(repository) is None


@pytest.mark.parametrize("is_dry", [True, False])
def test_without_a_commit_none_is_shown(repository, call, is_dry):
    if is_dry:
        remember(call)
    else:
        sync(call)
    shown = []
    sync(kit.with_console(call, progress=lambda *line: shown.append(line)), dry_run=is_dry)
    assert "Committing" not in {task for task, *_ in shown}


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_commit_shows_its_progress_until_it_ends(repository, call, is_refused):
    remember(call)
    if is_refused:
        refuse(repository)
    shown = []
    with nullcontext() if not is_refused else pytest.raises(StorageFailed):
        sync(kit.with_console(call, progress=lambda *line: shown.append(line)))
    total = shown[0][-1]
    assert total > 1
    assert shown == [
        ("Committing", 0, total),
        *(("Checking", done, total) for done in range(1, total + 1)),
        *(("Committing", done, total) for done in (0, total)),
    ]


@pytest.mark.parametrize("is_first", [False, True])
def test_a_failed_commit_leaves_the_index_as_it_was(repository, call, is_first):
    changed, removed = remember(call, "Changed"), remember(call, "Removed")
    unstaged, back = remember(call, "Removed from the index"), remember(call, "Staged removal")
    sync(call)
    if is_first:
        git(repository, "switch", "-q", "--orphan", "new")
        git(repository, "checkout", "main", "--", ".")
    git(repository, "rm", "-q", "--cached", unstaged.place.path)
    git(repository, "rm", "-q", "-f", back.place.path)
    with (repository / changed.place.path).open("a", encoding="utf-8") as file:
        file.write("staged\n")
        file.flush()
        git(repository, "add", changed.place.path)
        file.write("and more\n")
    (repository / removed.place.path).unlink()
    new, partly, intended = (remember(call, text) for text in ("New", "Partly", "Intended"))
    git(repository, "add", partly.place.path)
    (repository / partly.place.path).write_text("Other words\n", encoding="utf-8")
    git(repository, "add", "--intent-to-add", intended.place.path)
    (repository / "app.py").write_text("x = 2\n", encoding="utf-8")
    git(repository, "add", "app.py")
    before = staged(repository)
    refuse(repository)

    with pytest.raises(StorageFailed):
        sync(call)

    assert staged(repository) == before
    seen = (repository / "seen").read_text(encoding="utf-8").splitlines()
    assert {new.place.path, partly.place.path, intended.place.path} <= set(seen)
    assert "app.py" not in seen


def test_a_killed_commit_leaves_no_text_in_the_index(repository, call, monkeypatch):
    record = remember(call)
    monkeypatch.setattr(commit, "_take_back", lambda *_: None)
    refuse(repository)
    with pytest.raises(StorageFailed):
        sync(call)
    assert git(repository, "diff", "--cached", "--name-only") == ""
    refuse(repository).unlink()
    assert sync(call).commit
    assert record.place.path in git(repository, "ls-tree", "-r", "--name-only", "HEAD")


def test_an_interrupted_commit_leaves_the_index_as_it_was(repository, call, monkeypatch):
    remember(call)
    before, do = staged(repository), commit._do

    def interrupted(root, *words, **rest):
        if words[0] == "commit":
            raise KeyboardInterrupt
        return do(root, *words, **rest)

    monkeypatch.setattr(commit, "_do", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sync(call)
    assert staged(repository) == before


def test_a_commit_below_the_top_of_the_repository_that_fails_changes_no_index(repository, home):
    inner = repository / "services" / "api"
    inner.mkdir(parents=True)
    init(inner, home, now=NOW)
    call = opened(inner, home)
    sync(call)
    remember(call)
    before = staged(repository)
    refuse(repository)
    with pytest.raises(StorageFailed):
        sync(call)
    assert staged(repository) == before


def test_it_refuses_during_a_bisect(repository, call, home):
    sync(call)
    git(repository, "bisect", "start", "HEAD", "HEAD~1")
    remember(call)
    with pytest.raises(Conflict, match="a `git bisect` is in progress") as raised:
        sync(call)
    assert raised.value.hint == "end it with `git bisect reset`; then sync again"
    committing.commit_scheduled(repository, home)
    assert "`git bisect` is in progress" in (syncing.failure_of_commit(call) or "")
    git(repository, "bisect", "reset")
    assert sync(call).commit


KEY = "AKIA" + "QW7RT2PL5ZX6NB4K"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("values/agent.x/password.md", b"---\nnamespace: agent.x\nvalue: hunter2\n---\n"),
        (f"facts/{KEY}.md", b"tea\n"),
        ("facts/a.md", f"tea\0\nThe key is {KEY}\n".encode()),
        ("facts/a.md", f"The key is {KEY}\n".encode("utf-16")),
    ],
)
def test_what_a_scan_reports_is_not_committed(repository, call, monkeypatch, name, data):
    monkeypatch.chdir(repository)
    path = repository / ".mind" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for by in (None, "agent"):
        with pytest.raises(SecretDetected):
            sync(acting_as(call, by))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "by hand")
    for history in (False, True):
        (row,) = scan(call, history=history).found
        assert row.kind in ("password", "aws_access_key")


@pytest.mark.parametrize(
    ("hook", "options"),
    [("post-commit", ()), ("post-rewrite", ("--amend",))],
)
@pytest.mark.parametrize("has_settings", [False, True])
def test_a_sync_of_a_hook_takes_no_author_and_date_of_the_users_commit(
    repository, call, monkeypatch, hook, options, has_settings
):
    remember(call)
    if has_settings:
        for role in ("AUTHOR", "COMMITTER"):
            for name in ("NAME", "EMAIL"):
                monkeypatch.delenv(f"GIT_{role}_{name}")
        git(repository, "config", "user.name", "Ann")
        git(repository, "config", "user.email", "ann@example.com")
    script = repository / ".git" / "hooks" / hook
    script.parent.mkdir(exist_ok=True)
    command = f"'{sys.executable}' -m mimo sync"
    script.write_text(f"#!/bin/sh\nrm $0\n{command}\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("MIND_HOME", str(call.mind.home))
    others = ("--author=Eve <eve@example.com>", "--date=2020-01-01T00:00:00Z", "--allow-empty")

    git(repository, "commit", "-qm", "x", *others, *options, GIT_COMMITTER_DATE="@1 +0000")

    form = "--format=%an %ae %cn %as %cs %s"
    ours, users = git(repository, "log", "-2", form).splitlines()
    assert re.match(r"Ann ann@example\.com Ann (?!2020|1970)\S+ (?!2020|1970)\S+ memory: ", ours)
    assert users == "Eve eve@example.com Ann 2020-01-01 1970-01-01 x"


@pytest.fixture
def bob(repository, call, home, tmp_path):
    """Another user's clone; both pull from, and push to, the same repository."""
    sync(call)
    hub = tmp_path / "hub.git"
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(hub))
    git(repository, "remote", "add", "origin", str(hub))
    git(repository, "fetch", "-q")
    git(repository, "branch", "-q", "--set-upstream-to=origin/main")
    git(tmp_path, "clone", "-q", str(hub), str(tmp_path / "bob"))
    return opened(tmp_path / "bob", home)


def conflicting(bob, call, repository, names):
    """Ann and Bob commit different texts of the same files; Bob has pushed his."""
    for user, root in (("Bob", bob.mind.project.root), ("Ann", repository)):
        for name in names:
            (root / name).write_text(f"{user}'s\n", encoding="utf-8")
        git(root, "add", *names)
        git(root, "commit", "-qm", user)
    git(bob.mind.project.root, "push", "-q")


def test_a_merge_of_the_program_that_conflicts_names_the_files(bob, call, repository):
    conflicting(bob, call, repository, ["a b.txt", "c.txt"])
    commit.fetch(repository)
    expected = "can't be merged: they conflict in `a b.txt`, `c.txt`"
    with pytest.raises(Conflict, match=re.escape(expected)):
        commit.merge_upstream(repository)
    assert not git(repository, "status", "--porcelain", "--untracked-files=no")


def test_the_advice_of_git_is_whole(bob, repository, call):
    remember(call)
    git(repository, "checkout", "-q", "-b", "idea")
    with pytest.raises(StorageFailed) as raised:
        sync(call, push=True)
    assert "use `git push --set-upstream origin idea`" in raised.value.hint

    git(repository, "remote", "remove", "origin")
    with pytest.raises(StorageFailed) as raised:
        sync(call, push=True)
    assert "using `git remote add <name> <url>` and then push using" in raised.value.hint
    assert raised.value.hint.endswith("the remote name `git push <name>`")


@pytest.mark.parametrize("empty", ["hint:", "hint: "])
def test_empty_lines_in_the_advice_of_git_are_left_out(repository, call, empty):
    # As git 2.41 and later print it for a pull with `pull.ff` set to `only`.
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    advice = f"hint: you need to either:\n{empty}\nhint:   git merge --no-ff\n{empty}\nhint: or:"
    hook.write_text(f"#!/bin/sh\necho '{advice}\nfatal: not possible' >&2\nexit 1\n", "utf-8")
    hook.chmod(0o755)
    remember(call)

    with pytest.raises(StorageFailed, match="git commit: not possible") as raised:
        sync(call)

    assert raised.value.hint == "you need to either: `git merge --no-ff` or:"


def test_long_lines_of_a_hook_are_read_without_backtracking():
    # A pattern of quadratic time would take minutes.
    lines = ["." * 100_000, "...(" * 25_000, "a..." * 25_000, "error: no commit today"]
    assert complaint("\n".join(lines).encode()) == "no commit today"


@pytest.mark.parametrize("path", ["", None])
def test_without_a_repository_or_git_sync_is_refused_with_the_reason(call, monkeypatch, path):
    if path is not None:
        monkeypatch.setenv("PATH", path)
    with pytest.raises(Invalid, match=r"not in a git repository|git is not installed"):
        sync(call)


@pytest.mark.parametrize("others", [["Use JWT"], []])
def test_a_memory_that_is_removed_meanwhile_is_left_out(repository, call, monkeypatch, others):
    sync(call)
    head = git(repository, "rev-parse", "HEAD")
    paths = [remember(call, text).place.path for text in others]
    lost, do = remember(call, "Use sessions"), commit._do

    def overtaken(root, *words, **rest):
        (repository / lost.place.path).unlink(missing_ok=True)
        return do(root, *words, **rest)

    monkeypatch.setattr(commit, "_do", overtaken)
    assert bool(sync(call).commit) == bool(paths)
    assert git(repository, "diff", "--name-only", head, "HEAD").splitlines() == paths
    assert paths or git(repository, "rev-parse", "HEAD") == head


def test_a_sync_waits_for_another_process_that_uses_git(repository, call):
    remember(call)
    lock = repository / ".git" / "index.lock"
    lock.write_bytes(b"")
    timer = threading.Timer(0.3, lock.unlink)
    timer.start()
    assert sync(call).commit
    timer.join()


def test_a_sync_names_a_lock_of_git_that_stays(repository, call, monkeypatch):
    remember(call)
    monkeypatch.setattr(disk, "WAIT_SECONDS", 0.2)
    lock = repository / ".git" / "index.lock"
    lock.write_bytes(b"")
    with pytest.raises(StorageFailed, match=r"index\.lock` is held") as caught:
        sync(call)
    assert caught.value.details["path"] == str(lock)
    assert "remove the file" in (caught.value.hint or "")


def test_a_file_that_another_process_takes_out_of_the_index_is_left_out(
    repository, call, monkeypatch
):
    sync(call)
    kept, lost = remember(call, "Use JWT"), remember(call, "Use sessions")
    do = commit._do

    def overtaken(root, *words, **rest):
        path = repository / lost.place.path
        if words[0] == "commit" and path.exists():
            path.unlink()
            git(repository, "rm", "--quiet", "--cached", lost.place.path)
        return do(root, *words, **rest)

    monkeypatch.setattr(commit, "_do", overtaken)
    assert sync(call).commit
    committed = git(repository, "show", "--name-only", "--format=", "HEAD").splitlines()
    assert committed == [kept.place.path]


@pytest.fixture
def pulled(repository, call):
    """A memory that came with a file of another author, and is not approved."""
    git(repository, "config", "user.email", "ann@example.com")
    call.mind.trust.follow(False)
    put(repository / ".mind" / "facts" / "theirs.md", "---\nid: theirs\n---\nTheirs\n")
    return ".mind/facts/theirs.md"


def is_approved(root, home, path):
    call = opened(root, home)
    return call.mind.trust.trusted(*call.mind.store.approvals(path))


def test_what_a_person_commits_is_approved_which_is_reported(repository, call, home, pulled):
    assert not is_approved(repository, home, pulled)
    notice = sync(call).notice
    assert notice == "this commit approves 1 memory; `mind untrust ID` ends that"
    assert is_approved(repository, home, pulled)


def test_the_statements_of_a_log_count_as_approved_memories(repository, call, pulled):
    log = repository / ".mind" / "MEMORY.md"
    log.write_text("- Decided to use llamas\n- TIL goats climb\n", encoding="utf-8")
    assert "this commit approves 3 memories;" in (sync(call).notice or "")


def test_a_log_without_a_statement_counts_as_none(repository, call, pulled):
    (repository / ".mind" / "MEMORY.md").write_text("# Memory\n\nPlain words.\n")
    assert "this commit approves 1 memory;" in (sync(call).notice or "")


def test_only_a_commit_that_was_made_approves(repository, call, monkeypatch, pulled):
    assert sync(call, dry_run=True).notice is None
    monkeypatch.setattr(commit, "commit", lambda *_: None)
    assert sync(call).notice is None


def test_what_a_pull_changes_is_not_counted_as_approved(bob, call, repository):
    git(repository, "config", "user.email", "ann@example.com")
    git(repository, "config", "pull.rebase", "true")
    call.mind.trust.follow(False)
    path = repository / ".mind" / "facts" / "long.md"
    path.parent.mkdir(exist_ok=True)
    lines = ["---", "id: long", "type: fact", "---", *(f"Line {n}" for n in range(30))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sync(call, push=True)
    git(bob.mind.project.root, "pull", "-q")
    theirs = bob.mind.project.root / ".mind" / "facts" / "long.md"
    theirs.write_text(theirs.read_text("utf-8").replace("Line 2\n", "Theirs\n"), encoding="utf-8")
    sync(bob, push=True)
    path.write_text(path.read_text("utf-8").replace("Line 25\n", "Ours\n"), encoding="utf-8")

    notice = sync(call, pull=True).notice

    assert notice == "this commit approves 1 memory; `mind untrust ID` ends that"


@pytest.mark.parametrize("words", [{"pull": True}, {"push": True}])
def test_a_failed_pull_or_push_names_the_commit_and_what_it_approves(
    bob, call, repository, pulled, words
):
    names = ["a.txt"]
    conflicting(bob, call, repository, names)

    with pytest.raises((Conflict, StorageFailed)) as raised:
        sync(call, **words)

    last = git(repository, "log", "-1", "--format=%h", "--", ".mind")
    assert raised.value.hint.startswith(
        f"1 file was committed as `{last}`; this commit approves 1 memory; `mind untrust ID` ends "
        "that; "
    )
    assert raised.value.details["commit"] == last
    assert raised.value.details["approved"] == 1


@pytest.mark.parametrize("stages", [False, True])
def test_a_file_that_a_hook_changes_is_approved_only_as_it_was_committed(
    repository, call, home, pulled, stages
):
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho more >> {pulled}\n{f'git add {pulled}' * stages}\n", "utf-8")
    hook.chmod(0o755)

    notice = sync(call).notice or ""

    approves = "this commit approves 1 memory; `mind untrust ID` ends that"
    changed = f"a git hook changed `{pulled}` without staging the change, which is not committed"
    assert notice.startswith(approves)
    assert (changed in notice) is not stages
    assert is_approved(repository, home, pulled) is stages


@pytest.mark.parametrize("message", [None, "A message\n\nMind-Reviewed: yes"])
def test_what_an_agent_commits_is_not_approved(repository, call, home, pulled, message):
    remember(call, "Ours", by="claude-code")
    done = sync(acting_as(call, "claude-code"), message=message)

    assert done.notice is None
    assert not is_approved(repository, home, pulled)
    trailers = git(repository, "log", "-1", "--format=%(trailers)")
    assert trailers.splitlines()[-1] == "Mind-Reviewed: no"
    assert ("Remembered-by" in trailers) == (message is None)


def test_what_is_committed_automatically_is_not_approved(repository, call, home, pulled):
    committing.commit_scheduled(repository, home)
    assert git(repository, "ls-files", pulled) == pulled
    assert not is_approved(repository, home, pulled)


def test_a_person_who_amends_an_automatic_commit_approves_the_changes(
    repository, call, home, pulled
):
    committing.commit_scheduled(repository, home)
    path = repository / ".mind" / "facts" / "own.md"
    path.write_text("---\nid: own\n---\nOwn\n", encoding="utf-8")
    git(repository, "add", ".mind")
    git(repository, "commit", "--amend", "--no-edit", "-q")

    assert is_approved(repository, home, ".mind/facts/own.md")
    assert not is_approved(repository, home, pulled)
