"""Private files never reach git; `staging.transcript` and `pulls.transcript` have the commands."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.data.disk import shared
from mimo.data.files import is_private, is_shared
from mimo.errors import Invalid, StorageFailed
from mimo.features.history.commands import sync
from mimo.features.upkeep.checks import Check, doctor
from mimo.features.upkeep.status import status
from mimo.memory.model import Kind, Section
from mimo.operations import committing, overview, refresh, saving
from mimo.project import commit
from tests import kit
from tests.conftest import git
from tests.kit import put

pytestmark = pytest.mark.usefixtures("ann")

KIND = "private file staged by sync"
RULES = ".mind/.gitignore"


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


LINKED = "private memory named in a shared file"


def shared_text(call: Call) -> str:
    every = (call.mind.project.root / ".mind").glob("[a-oq-z]*/*.md")
    return "".join(path.read_text(encoding="utf-8") for path in every)


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


def test_tracked_private_files_are_a_fault_with_a_way_to_untrack_them(
    repository: Path, call: Call
) -> None:
    for path in (*PLANTED, ".mind/facts/private/nested.md"):
        write(repository, path)
        git(repository, "add", "-f", path)

        (fault,) = faults(call)

        assert fault.file == path
        assert path in fault.message
        folder = path.rpartition("/")[0].replace("/PRIVATE/facts", "/PRIVATE")
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


def unfinished(call: Call) -> str:
    """Returns the messages of the doctor about all that is not in order."""
    return "\n".join(check.message for check in doctor(call).checks if check.verdict != "ok")


def staged_by_hand(root: Path) -> set[str]:
    git(root, "add", "-A")
    return set(git(root, "diff", "--cached", "--name-only").split("\n")) - {""}


@pytest.mark.attack(OWN_ADD)
@pytest.mark.parametrize("lose", [_emptied, _missing, _negated, _by_attributes])
def test_git_add_stages_nothing_private_without_the_rules_of_the_project(
    repository: Path, call: Call, lose: Callable[[Path], None]
) -> None:
    write(repository, ".mind/facts/private/nested.md", "The safe opens with walrus\n")
    assert ".mind/facts/private/.gitignore" in unfinished(call)
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

    assert all(f".mind/{folder}/.gitignore" in unfinished(call) for folder in folders)

    doctor(call, fix=True)
    assert ".gitignore" not in unfinished(call)
    _missing(repository)
    assert all(is_shared(path) for path in staged_by_hand(repository))


def test_the_rules_of_a_private_folder_are_no_memory(repository: Path, call: Call) -> None:
    paths = {record.place.path for record in overview.everything(call)}
    assert not [path for path in paths if path.endswith(".gitignore")]
    assert not [problem for problem in refresh.problems(call) if ".gitignore" in problem.path]


def test_a_commit_under_way_is_not_disturbed(
    repository: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.data.disk.WAIT_SECONDS", 1.0)
    (repository / ".git" / "index.lock").write_text("", encoding="utf-8")
    with shared(), pytest.raises(StorageFailed, match=r"index\.lock"):  # One wait, as a command.
        sync(call)
    (repository / ".git" / "index.lock").unlink()
    assert sync(call).commit
