"""Private files must never reach git, even if a pull request changes the repository."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.data.disk import shared
from mimo.data.files import is_private, is_shared
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.features import decisions
from mimo.features.history.commands import sync
from mimo.features.notes.reading import list_
from mimo.features.upkeep.checks import Check, doctor
from mimo.features.upkeep.status import status
from mimo.memory.model import Kind, Link, Section
from mimo.mind import Mind
from mimo.operations import committing, lookup, overview, refresh, removing, saving
from mimo.project import commit, projects
from mimo.project.init import init
from tests import kit
from tests.conftest import NOW, git
from tests.kit import put, script

KIND = "private file staged by sync"
RULES = ".mind/.gitignore"


@pytest.fixture(autouse=True)
def _ann(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.com")


def write(root: Path, path: str, text: str = "mine\n") -> None:
    put(root / path, text)


@pytest.fixture
def repository(call: Call) -> Path:
    """A project in git with private memories, an index and local files."""
    root = call.mind.project.root
    kit.repository(root)
    git(root, "add", ".")
    git(root, "commit", "-qm", "begin")
    saving.store(call, saving.draft(Kind.FACT, "The safe opens with marmot"), private=True)
    saving.store(call, saving.draft(Kind.FACT, "Tea is hot"))
    write(root, ".mind/.local/audit.jsonl")
    write(root, ".mind/.index/old.db")
    return root


def faults(call: Call) -> list[Check]:
    """Returns what the doctor finds about private files in git."""
    return [check for check in doctor(call).checks if check.name == "private"]


@pytest.mark.attack(KIND)
def test_a_home_in_a_repository_is_not_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, home = tmp_path / "settings", tmp_path / "settings/home"
    home.mkdir(parents=True)
    kit.repository(root)
    monkeypatch.chdir(root)
    monkeypatch.setenv("MIND_HOME", str(home))
    assert main(["init"]) == main(["add", "Tea is hot"]) == 0
    assert list(home.rglob("key"))
    git(root, "add", "-A")
    assert not [path for path in git(root, "ls-files").splitlines() if path.startswith("home/")]
    (home / ".gitignore").unlink()
    assert main(["add", "Milk goes in first"]) == 0
    assert not (home / ".gitignore").exists(), "the user has removed it"


def committed(root: Path) -> set[str]:
    """Returns the files that commits after the first one changed."""
    first = git(root, "rev-list", "--max-parents=0", "HEAD")
    return set(git(root, "log", "--name-only", "--format=", f"{first}..HEAD").split("\n")) - {""}


def _emptied(root: Path) -> None:
    write(root, RULES, "")


def _missing(root: Path) -> None:
    (root / RULES).unlink()


def _negated(root: Path) -> None:
    with (root / RULES).open("a", encoding="utf-8") as rules:
        rules.write("!private/\n!.local/\n!.index/\n!.mind-*.tmp\n!*\n")


def _linked(root: Path) -> None:
    (root / RULES).rename(root / "rules")
    (root / RULES).symlink_to("../rules")


def _from_inside(root: Path) -> None:
    _emptied(root)
    for folder in ("private", ".local", ".index"):
        write(root, f".mind/{folder}/.gitignore", "!*\n!**\n")


def _by_attributes(root: Path) -> None:
    _emptied(root)
    write(root, ".gitattributes", "* -text !ignore\n")
    write(root, ".git/info/exclude", "!.mind/private/\n")


RULES_LOST: list[Callable[[Path], None]] = [
    _emptied, _missing, _negated, _linked, _from_inside, _by_attributes,
]  # fmt: skip


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("lose", RULES_LOST)
@pytest.mark.parametrize("by_itself", [False, True])
def test_what_is_private_is_not_committed_without_ignore_rules(
    repository: Path, call: Call, lose: Callable[[Path], None], by_itself: bool
) -> None:
    lose(repository)
    write(repository, ".mind/facts/.mind-1-ab.tmp")

    assert all(is_shared(file.file) for file in sync(call, dry_run=True).files)
    if by_itself:
        committing.commit_scheduled(repository, call.mind.home)
    else:
        notice = sync(call).notice or ""
        assert "lacks rules" in notice

    assert any(path.startswith(".mind/facts/") for path in committed(repository))
    assert all(is_shared(path) and "tmp" not in path for path in committed(repository))


PLANTED = (
    ".mind/private/x.md", ".mind/.local/audit.jsonl", ".mind/.index/old.db",
    ".mind/Private/x.md", ".mind/PRIVATE/facts/x.md", ".mind/.LOCAL/x", ".mind/.Index/x",
)  # fmt: skip


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("remove", [False, True])
def test_changes_of_tracked_private_files_are_not_committed(
    repository: Path, call: Call, remove: bool, record_property: Callable[[str, object], None]
) -> None:
    for path in PLANTED:
        write(repository, path, "planted\n")
    git(repository, "add", "-f", *PLANTED)
    git(repository, "commit", "-qm", "begin")
    before = git(repository, "rev-parse", "HEAD")
    for path in PLANTED:
        write(repository, path, "secret\n")
        if remove:
            (repository / path).unlink()

    done = sync(call)

    changed = git(repository, "diff", "--name-only", before, "HEAD").splitlines()
    assert changed
    assert all(is_shared(path) for path in changed)
    assert git(repository, "diff", "--cached", "--name-only") == ""
    assert "git tracks files that must stay on this machine" in (done.notice or "")
    record_property("tried", len(PLANTED))


@pytest.mark.attack(KIND)
def test_another_name_of_a_private_folder_is_known_by_its_identity(
    repository: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repository, ".mind/PRIVAT~1/x.md")
    identity = commit._identity
    alias, real = repository / ".mind" / "PRIVAT~1", repository / ".mind" / "private"
    monkeypatch.setattr(commit, "_identity", lambda path: identity(real if path == alias else path))
    sync(call)
    assert not [path for path in committed(repository) if "PRIVAT~1" in path]


@pytest.mark.attack("private text in shared output")
def test_past_states_and_their_differences_do_not_show_planted_private_files(
    repository: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [".mind/private/facts/x.md", ".mind/Private/facts/y.md"]
    for path in paths:
        write(repository, path, "The safe opens with walrus\n")
    git(repository, "add", "-f", *paths)
    git(repository, "commit", "-qm", "planted")
    lines = ("log", "diff HEAD~1", "diff HEAD~1 --format markdown", "list --at HEAD")
    for line in (*lines, "search safe --at HEAD", "context show"):
        main(line.split(), open=lambda _: call.mind.reopened())
        shown = capsys.readouterr().out
        assert "walrus" not in shown, line
        assert not any(path in shown for path in paths), line


REFERENCES = "@ann", "@acme/owners", "#12", "!12", "~bug", "acme/shop#12", "&9", "a@b.example"


@pytest.mark.attack("mention in a review that notifies others")
def test_a_difference_for_a_forge_mentions_and_refers_to_nothing(
    repository: Path,
    call: Call,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    for number, words in enumerate(REFERENCES):
        title = f"Ask {words} and [{words}](/x) <b>{words}</b>"
        write(repository, f".mind/facts/{number} `{words.replace('/', '')}.md", f"# {title}\n")
    git(repository, "add", ".mind")
    git(repository, "commit", "-qm", "titles")
    main(["diff", "HEAD~1", "--format", "markdown"], open=lambda _: call.mind.reopened())
    shown = capsys.readouterr().out
    outside_code = re.sub(r"`[^`\n]*`", "", shown)
    assert shown.count("Ask ") == len(REFERENCES)
    assert not re.search(r"[@#!~&](?!&#8203;|#8203;|8203;)\w", outside_code)
    assert "`" not in outside_code.replace("\\`", "")
    record_property("tried", len(REFERENCES))


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("is_first", [False, True])
def test_a_commit_to_which_a_hook_adds_private_files_is_taken_back(
    repository: Path, call: Call, *, is_first: bool
) -> None:
    _negated(repository)
    if is_first:
        git(repository, "symbolic-ref", "HEAD", "refs/heads/new")
    fact = saving.store(call, saving.draft(Kind.FACT, "Coffee is hot")).place.path
    intended = saving.store(call, saving.draft(Kind.FACT, "Milk is cold")).place.path
    write(repository, fact, "staged\n")
    git(repository, "add", fact)
    write(repository, fact, "more\n")
    git(repository, "add", "--intent-to-add", intended)
    before = git(repository, "rev-list", "--all", "--not", "main")
    index = git(repository, "ls-files", "--stage"), git(repository, "status", "--short")
    hook = repository / ".git" / "hooks" / "pre-commit"
    write(repository, ".git/hooks/pre-commit", "#!/bin/sh\ngit add -A -f\n")
    hook.chmod(0o755)
    with pytest.raises(StorageFailed, match="a git hook added the private file"):
        commit.commit(repository, "memory", [RULES, ".mind/config.toml", fact, intended])
    assert (git(repository, "ls-files", "--stage"), git(repository, "status", "--short")) == index
    assert git(repository, "rev-list", "--all", "--not", "main") == before
    hook.unlink()
    assert commit.commit(repository, "memory", [RULES])


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("is_first", [False, True])
def test_a_private_file_of_a_hook_is_found_below_the_commit_of_another_hook(
    repository: Path, call: Call, *, is_first: bool
) -> None:
    clone_of_bob(repository)
    if is_first:
        git(repository, "symbolic-ref", "HEAD", "refs/heads/new")
    hooks = repository / ".git" / "hooks"
    on_top = "rm $0; echo x > log.txt; git add log.txt; git commit -qm log -- log.txt"
    write(repository, ".git/hooks/pre-commit", "#!/bin/sh\ngit add -f .mind/private; rm $0\n")
    write(repository, ".git/hooks/post-commit", f"#!/bin/sh\n{on_top}\n")
    for name in ("pre-commit", "post-commit"):
        (hooks / name).chmod(0o755)
    published = git(repository, "rev-parse", "origin/main")

    with pytest.raises(StorageFailed, match="can't be undone because another commit followed") as e:
        sync(call, push=True)

    first, last = git(repository, "log", "--format=%s", "-2").splitlines()
    assert (first, last.startswith("memory: ")) == ("log", True)
    # What the commits have is still on the disk, and a later push does not publish it either.
    for _ in range(2):
        saving.store(call, saving.draft(Kind.FACT, "Milk"))
        with pytest.raises(Invalid, match="the commits to push contain the private file"):
            sync(call, push=True)
    git(repository, "fetch", "-q")
    assert git(repository, "rev-parse", "origin/main") == published
    undo = re.findall("`git (.*?)`", e.value.hint or "")[0]
    git(repository, *undo.split())
    assert "log" not in git(repository, "log", "--format=%s", "--all").splitlines()


@pytest.mark.attack(KIND)
def test_a_private_file_in_a_commit_that_no_remote_has_is_not_pushed(
    repository: Path, call: Call
) -> None:
    clone_of_bob(repository)
    git(repository, "add", "-f", ".mind/private")
    git(repository, "commit", "-qm", "by hand")
    git(repository, "rm", "-qr", "--cached", ".mind/private")
    git(repository, "commit", "-qm", "the text is still in the commit before")
    with pytest.raises(Invalid, match="the commits to push contain the private file"):
        sync(call, push=True)
    git(repository, "push", "-q")
    assert sync(call, push=True).pushed


LINKED = "private memory named in a shared file"


def shared_text(call: Call) -> str:
    every = (call.mind.project.root / ".mind").glob("[a-oq-z]*/*.md")
    return "".join(path.read_text(encoding="utf-8") for path in every)


@pytest.mark.attack(LINKED)
def test_a_shared_decision_does_not_name_a_private_one_on_its_topic(call: Call) -> None:
    draft = saving.draft(Kind.DECISION, "Buy them", topic="shop")
    two = saving.draft(Kind.DECISION, "Stay friends", topic="shop")
    hidden = decisions.save(call, draft, private=True).record.memory.id
    saved = decisions.save(call, two)
    assert saved.supersedes == ()
    assert f"`{hidden}` is not superseded: it is private" in (saved.notice or "")
    assert hidden not in shared_text(call)
    three = saving.draft(Kind.DECISION, "Wait", topic="shop")
    last = decisions.save(call, three, private=True)
    assert set(last.supersedes) == {hidden, saved.record.memory.id}


@pytest.mark.attack(LINKED)
def test_no_link_of_a_shared_memory_leads_to_a_private_one(call: Call) -> None:
    hidden = saving.store(call, saving.draft(Kind.FACT, "A party at four"), private=True)
    links = (Link(to=hidden.memory.id, type="relates_to"),)
    with pytest.raises(Invalid, match="is private"):
        saving.store(call, saving.draft(Kind.FACT, "Tea", links=links))
    tea = saving.store(call, saving.draft(Kind.FACT, "Tea"))
    with pytest.raises(Invalid, match="is private"):
        saving.edit(call, tea, links=links)
    assert hidden.memory.id not in shared_text(call)
    saving.store(call, saving.draft(Kind.FACT, "Tea for two", links=links), private=True)


@pytest.mark.attack(LINKED)
@pytest.mark.parametrize("indexed", [True, False])
def test_no_text_of_a_shared_memory_names_a_private_one(
    call: Call, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    hidden = saving.store(call, saving.draft(Kind.FACT, "A party"), private=True).memory.id
    tea = saving.store(call, saving.draft(Kind.FACT, "Tea"))
    if not indexed:
        monkeypatch.setattr(type(call.mind.index), "get", lambda *_: None)
    text, more = saving.file_text(call, tea), f"more [[{hidden}|here]]"
    with pytest.raises(Invalid, match="is private"):
        saving.store(call, saving.draft(Kind.FACT, more))
    for changes in ({"content": more}, {"sections": {Section.REASONING: more}}):
        with pytest.raises(Invalid, match="is private"):
            saving.edit(call, tea, **changes)
    for new in (f"{text}{more}\n", text.replace("\n", f"\nlinks: [{{to: {hidden}}}]\n", 1)):
        with pytest.raises(Invalid, match="is private"):
            saving.rewrite(call, tea, new)
    assert hidden not in shared_text(call)
    saving.store(call, saving.draft(Kind.FACT, more), private=True)


@pytest.mark.attack(LINKED)
def test_an_earlier_link_to_a_private_memory_does_not_prevent_a_change(call: Call) -> None:
    hidden = saving.store(call, saving.draft(Kind.FACT, "A party"), private=True).memory.id
    write(
        call.mind.project.root, ".mind/facts/a.md", f"---\nid: a\ntype: fact\n---\n[[{hidden}]]\n"
    )
    record = lookup.one(call, "a")
    changed = saving.edit(call, record, title="Tea")
    saving.rewrite(call, changed, saving.file_text(call, changed) + "and cake\n")
    assert "and cake" in shared_text(call)


@pytest.mark.attack(LINKED)
def test_a_removal_leaves_no_link_to_a_private_memory(call: Call) -> None:
    """Links of a merge or an earlier version are not passed on to a shared file."""
    first = saving.store(call, saving.draft(Kind.FACT, "One"), private=True)
    links = (Link(to=first.memory.id, type="supersedes"),)
    second = saving.store(call, saving.draft(Kind.FACT, "Two", links=links), private=True)
    path = call.mind.project.root / ".mind" / "facts" / "three.md"
    path.parent.mkdir(exist_ok=True)
    link = f"links: [{{to: {second.memory.id}, type: supersedes}}]"
    path.write_text(f"---\nid: three\ntype: fact\n{link}\n---\nThree\n", encoding="utf-8")
    removing.remove(call, second.memory.id)
    assert first.memory.id not in shared_text(call)


@pytest.mark.parametrize("lose", RULES_LOST)
def test_missing_ignore_rules_are_a_fault_that_the_doctor_mends(
    repository: Path, call: Call, lose: Callable[[Path], None]
) -> None:
    sync(call)
    doctor(call, fix=True)
    assert not faults(call)
    assert not [warning for warning in status(call).warnings if "private" in warning]

    lose(repository)

    assert any("lacks rules" in warning for warning in status(call).warnings)
    (fault,) = faults(call)
    assert (fault.verdict, fault.file) == ("fault", RULES)
    if lose is _linked:  # Another program put a link there, through which nothing is written.
        assert "repair" in {check.name for check in doctor(call, fix=True).checks}
        return
    doctor(call, fix=True)
    assert not faults(call)
    for folder in ("private/x", ".local/x", ".index/x"):
        assert git(repository, "check-ignore", "--no-index", f".mind/{folder}")


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("path", PLANTED)
def test_tracked_private_files_are_a_fault_with_a_way_to_untrack_them(
    repository: Path, call: Call, path: str, version: str
) -> None:
    assert commit.unshared(repository) == ()
    write(repository, path)
    git(repository, "add", "-f", path)
    git(repository, "update-index", "--index-version", version)

    (fault,) = faults(call)

    assert fault.file == path
    assert path in fault.message
    folder = "/".join(path.split("/")[:2])
    assert f"`git rm -rf --cached -- {folder}`" in (fault.hint or "")
    assert any(path in warning for warning in status(call).warnings)
    git(repository, "rm", "-rfq", "--cached", "--", folder)
    assert not faults(call)


@pytest.mark.parametrize(
    ("path", "private", "shared"),
    [
        (".mind/private/a.md", True, False),
        (".mind/PRIVATE/facts/a.md", True, False),
        (".mind/.Local/x", False, False),
        (".mind/facts/private/a.md", True, False),
        (".mind/facts/a/Private/b/c.md", True, False),
        (".mind/facts/.index/a.md", False, False),
        (".mind/facts/private.md", False, True),
        (".mind/privateer/a.md", False, True),
        (".mind/config.toml", False, True),
    ],
)
def test_paths_are_told_apart_whatever_their_letter_case(
    path: str, private: bool, shared: bool
) -> None:
    assert (is_private(path), is_shared(path)) == (private, shared)


OWN_ADD = "private file staged by the user's own git add"


def staged_by_hand(root: Path) -> set[str]:
    git(root, "add", "-A")
    return set(git(root, "diff", "--cached", "--name-only").split("\n")) - {""}


@pytest.mark.attack(OWN_ADD)
@pytest.mark.parametrize("lose", [_emptied, _missing, _negated, _by_attributes])
def test_git_add_stages_nothing_private_without_the_rules_of_the_project(
    repository: Path, call: Call, lose: Callable[[Path], None]
) -> None:
    write(repository, ".mind/facts/private/nested.md", "The safe opens with walrus\n")
    assert ".mind/facts/private/.gitignore" in {check.file for check in doctor(call).checks}
    doctor(call, fix=True)
    lose(repository)

    staged = staged_by_hand(repository)

    assert any(path.startswith(".mind/facts/") for path in staged)
    assert {path for path in staged - {".gitattributes"} if not is_shared(path)} == set()


def test_the_doctor_restores_the_rules_of_private_folders(repository: Path, call: Call) -> None:
    doctor(call, fix=True)
    folders = ("private", ".local", ".index")
    for folder in folders:
        rules = repository / ".mind" / folder / ".gitignore"
        assert (rules.read_text("utf-8"), rules.stat().st_mode & 0o777) == ("*\n", 0o600)
        rules.write_text("*\n!*.md\n", encoding="utf-8")

    named = {check.file for check in doctor(call).checks if check.verdict == "warning"}
    assert {f".mind/{folder}/.gitignore" for folder in folders} <= named

    doctor(call, fix=True)
    assert not {check.file for check in doctor(call).checks if check.verdict != "ok"} & named
    _missing(repository)
    assert all(is_shared(path) for path in staged_by_hand(repository))


def test_the_rules_of_a_private_folder_are_no_memory(repository: Path, call: Call) -> None:
    paths = {record.place.path for record in overview.everything(call)}
    assert not [path for path in paths if path.endswith(".gitignore")]
    assert not [problem for problem in refresh.problems(call) if ".gitignore" in problem.path]


def test_a_folder_called_private_below_a_type_is_private_everywhere(
    repository: Path, call: Call
) -> None:
    path = ".mind/facts/private/nested.md"
    write(repository, path, "The safe opens with walrus\n")
    record = next(
        candidate for candidate in overview.everything(call) if candidate.place.path == path
    )
    assert record.place.private
    assert [row.private for row in list_(call).memories if row.id == record.memory.id] == [True]
    assert path not in {file.file for file in sync(call, dry_run=True).files}
    git(repository, "add", "-f", path)
    (fault,) = faults(call)
    assert "`git rm -rf --cached -- .mind/facts/private`" in (fault.hint or "")
    doctor(call, fix=True)
    assert (repository / path).stat().st_mode & 0o077 == 0


def test_a_commit_under_way_is_not_disturbed(
    repository: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.data.disk.WAIT_SECONDS", 1.0)
    (repository / ".git" / "index.lock").write_text("", encoding="utf-8")
    with shared(), pytest.raises(StorageFailed, match=r"index\.lock"):  # One wait, as a command.
        sync(call)
    (repository / ".git" / "index.lock").unlink()
    assert sync(call).commit


def test_files_that_the_users_filter_makes_equal_are_not_a_commit(
    repository: Path, call: Call
) -> None:
    git(repository, "config", "filter.upper.clean", "tr a-z A-Z")
    write(repository, ".git/info/attributes", "*.md filter=upper\n")
    sync(call)
    path = next((repository / ".mind" / "facts").glob("*.md"))
    path.write_text(path.read_text("utf-8").upper(), encoding="utf-8")

    done = sync(call)

    assert (done.commit, done.message, done.files) == (None, None, ())


REPLACED = "private file replaced by a pull"


def clone_of_bob(repository: Path) -> Path:
    """Returns the clone of another author; both push to, and pull from, the same repository."""
    hub, bob = repository.parent / "hub.git", repository.parent / "bob"
    git(repository.parent, "clone", "-q", "--bare", str(repository), str(hub))
    git(repository, "remote", "add", "origin", str(hub))
    git(repository, "fetch", "-q")
    git(repository, "branch", "-q", "--set-upstream-to=origin/main")
    git(repository.parent, "clone", "-q", str(hub), str(bob))
    return bob


@pytest.mark.attack(REPLACED)
@pytest.mark.parametrize("folder", ["private/facts", ".local", ".index"])
def test_a_pull_does_not_overwrite_a_private_file(
    repository: Path, call: Call, folder: str
) -> None:
    bob, path = clone_of_bob(repository), f".mind/{folder}/x.md"
    write(bob, path, "theirs\n")
    git(bob, "add", "-f", path)
    git(bob, "commit", "-qm", "planted")
    git(bob, "push", "-q")
    write(repository, path, "mine\n")

    with pytest.raises(Conflict, match="would overwrite the private file"):
        sync(call, pull=True)

    assert (repository / path).read_text("utf-8") == "mine\n"
    (repository / path).unlink()
    assert "git tracks files" in (sync(call, pull=True).notice or "")


@pytest.mark.attack(REPLACED)
@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize("folder", [".mind", ".mind/private", ".mind/.local", ".mind/facts"])
def test_a_pull_does_not_replace_a_folder_with_private_files(
    repository: Path, call: Call, folder: str, is_link: bool
) -> None:
    private = ".mind/facts/private/x.md" if folder == ".mind/facts" else ".mind/private/facts/x.md"
    write(repository, ".mind/facts/x.md", "shared\n")
    write(repository, private, "mine\n")
    sync(call)
    bob = clone_of_bob(repository)
    if (bob / folder).exists():
        git(bob, "mv", folder, "old")
    if is_link:
        (bob / folder).symlink_to("docs")
    else:
        write(bob, folder, "theirs\n")
    git(bob, "add", "-A", "-f")
    git(bob, "commit", "-qm", "replaced")
    git(bob, "push", "-q")

    with pytest.raises(Conflict, match=rf"would overwrite the private file `{folder}/") as raised:
        sync(call, pull=True)

    assert raised.value.hint.startswith(f"the upstream has a file at `{folder}`; remove it")
    assert (repository / private).read_text("utf-8") == "mine\n"
    git(bob, "revert", "--no-edit", "HEAD")
    git(bob, "push", "-q")
    assert sync(call, pull=True).pulled


@pytest.mark.attack(REPLACED)
@pytest.mark.parametrize("folder", ["services", "services/api", "services/api/.mind"])
def test_a_pull_does_not_replace_a_folder_above_the_memory(
    repository: Path, home: Path, folder: str
) -> None:
    inner = repository / "services" / "api"
    inner.mkdir(parents=True)
    init(inner, home, now=NOW)
    write(inner, ".mind/private/facts/x.md", "mine\n")
    call = Call(Mind(home=home, project=projects.explicit(inner, home), environ={}))
    sync(call)
    bob = clone_of_bob(repository)
    git(bob, "mv", folder, "old")
    write(bob, folder, "theirs\n")
    git(bob, "add", "-A")
    git(bob, "commit", "-qm", "replaced")
    git(bob, "push", "-q")

    with pytest.raises(Conflict, match="would overwrite the private file"):
        sync(call, pull=True)

    assert (inner / ".mind/private/facts/x.md").read_text("utf-8") == "mine\n"


@pytest.mark.attack(REPLACED)
def test_a_pull_does_not_put_a_folder_in_place_of_a_private_file(
    repository: Path, call: Call
) -> None:
    bob = clone_of_bob(repository)
    write(bob, ".mind/private/x/y.md", "theirs\n")
    git(bob, "add", "-f", ".mind/private/x/y.md")
    git(bob, "commit", "-qm", "planted")
    git(bob, "push", "-q")
    write(repository, ".mind/private/x", "mine\n")

    with pytest.raises(Conflict, match=r"the private file `\.mind/private/x`"):
        sync(call, pull=True)

    assert (repository / ".mind/private/x").read_text("utf-8") == "mine\n"


@pytest.mark.attack(REPLACED)
@pytest.mark.parametrize("settings", [(), ("config", "pull.rebase", "true")])
def test_a_pull_takes_only_commits_that_were_checked(
    repository: Path, call: Call, settings: tuple[str, ...]
) -> None:
    bob, path = clone_of_bob(repository), ".mind/private/facts/x.md"
    write(bob, "theirs.txt", "theirs\n")
    git(bob, "add", "-A")
    git(bob, "commit", "-qm", "harmless")
    git(bob, "push", "-q")
    write(bob, path, "theirs\n")
    git(bob, "add", "-f", path)
    git(bob, "commit", "-qm", "planted")
    git(bob, "push", "-q", "origin", "HEAD:refs/heads/planted")
    # The planted commit reaches the branch just after the first fetch.
    program, hub = repository.parent / "serve", repository.parent / "hub.git"
    moved = f"git -C {hub} update-ref refs/heads/main refs/heads/planted"
    script(program, f'#!/bin/sh\ngit-upload-pack "$@"\n{moved}\n')
    git(repository, "config", "remote.origin.uploadpack", str(program))
    if settings:
        git(repository, *settings)
    write(repository, path, "mine\n")

    assert sync(call, pull=True).pulled

    assert (repository / "theirs.txt").exists()
    assert (repository / path).read_text("utf-8") == "mine\n"
    with pytest.raises(Conflict, match="would overwrite the private file"):
        sync(call, pull=True)


@pytest.mark.attack(REPLACED)
def test_a_pull_is_refused_if_its_commits_can_t_be_checked(repository: Path, call: Call) -> None:
    bob, path = clone_of_bob(repository), ".mind/private/facts/x.md"
    write(bob, path, "theirs\n")
    git(bob, "add", "-f", path)
    git(bob, "commit", "-qm", "planted")
    git(bob, "push", "-q")
    write(repository, path, "mine\n")
    git(repository, "config", "--unset-all", "remote.origin.fetch")
    git(repository, "update-ref", "-d", "refs/remotes/origin/main")

    with pytest.raises(Invalid, match="so its files can't be checked") as raised:
        sync(call, pull=True)

    assert (repository / path).read_text("utf-8") == "mine\n"
    assert "set-branches --add" in (raised.value.hint or "")
    git(repository, "remote", "set-branches", "--add", "origin", "main")
    with pytest.raises(Conflict, match="would overwrite the private file"):
        sync(call, pull=True)


def test_a_pull_that_removes_the_memory_keeps_private_files(repository: Path, call: Call) -> None:
    sync(call)
    bob = clone_of_bob(repository)
    git(bob, "rm", "-rq", ".mind")
    git(bob, "commit", "-qm", "removed")
    git(bob, "push", "-q")
    write(repository, ".mind/private/facts/x.md", "mine\n")

    commit.pull(repository)

    assert (repository / ".mind/private/facts/x.md").read_text("utf-8") == "mine\n"
