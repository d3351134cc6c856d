"""Trust: by content, by repository, outside of both, and never by default."""

import hashlib
import sqlite3
from contextlib import closing

import pytest

from mimo.data.files import POLICY, own_name
from mimo.errors import LaterFormat, StorageFailed
from mimo.memory.approval import approval_of
from mimo.project.approvals import ApprovalDatabase
from mimo.project.location import locate
from mimo.project.projects import known_owner
from mimo.project.reflogs import read as reflog_entries
from mimo.project.trust import Trust
from mimo.project.vouching import Vouching
from tests import kit
from tests.conftest import git
from tests.kit import put


def digest(number):
    return hashlib.sha256(str(number).encode()).hexdigest()


ONE, TWO = digest(1), digest(2)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home" / ".mind"


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    return root


def sql(home, *statements):
    """Runs statements as another program does; returns the rows of the last one."""
    with closing(sqlite3.connect(home / "trust.db", isolation_level=None)) as database:
        return [database.execute(statement).fetchall() for statement in statements][-1]


def marks(folder):
    return [*folder.glob("mind-trust-*"), *folder.glob("trust-mark-*")]


def test_a_text_is_untrusted_until_it_is_approved(home, root):
    trust = Trust(home, root)
    assert not trust.trusted(ONE)
    assert trust.approve([ONE, ONE]) == 1
    assert trust.approve([ONE, TWO]) == 1
    assert trust.trusted(ONE)
    assert not trust.trusted(digest(3))
    assert (trust.state.approved, trust.state.follow, trust.state.in_git) == (True, False, False)
    assert Trust(home, root).trusted(TWO)


def test_approvals_of_a_later_version_are_never_changed(home, root):
    Trust(home, root).approve([ONE], reviewed=[ONE])
    sql(home, "UPDATE project SET follow = 'on'", "PRAGMA user_version = 3")
    before = (home / "trust.db").read_bytes()
    trust = Trust(home, root)

    for change in (
        trust.repair,
        trust.forget,
        trust.begin,
        lambda: trust.approve([TWO]),
        lambda: trust.revoke([ONE]),
        lambda: trust.follow(False),
    ):
        with pytest.raises(LaterFormat, match="has format 3; this mind writes format 2"):
            change()

    assert not trust.trusted(ONE)
    assert not trust.trusted(TWO)
    assert trust.trusted_digests(100) == frozenset()
    assert (home / "trust.db").read_bytes() == before


def test_a_change_of_a_branch_in_a_reftable_is_noticed(tmp_path):
    (tmp_path / ".git" / "reftable").mkdir(parents=True)
    location = locate(tmp_path)
    tables = tmp_path / ".git" / "reftable" / "tables.list"
    tables.write_text("0x000000000001-0x000000000001-aaaaaaaa.ref\n")
    before = location.git_stamp("refs/remotes/origin/main")
    tables.write_text("0x000000000001-0x000000000002-bbbbbbbb.ref\n0x3-0x3-c.ref\n")
    assert location.git_stamp("refs/remotes/origin/main") != before


def test_followed_memory_is_trusted_but_not_approved(home, root):
    trust = Trust(home, root)
    trust.follow(True)
    assert trust.trusted(ONE)
    assert not trust.approved(ONE)
    trust.follow(False)
    assert not trust.trusted(ONE)


def test_approvals_of_another_process_apply_at_once(home, root):
    here, other = Trust(home, root), Trust(home, root)
    assert not here.trusted(ONE)
    other.approve([ONE])
    assert here.trusted(ONE)
    other.follow(True)
    assert here.trusted(TWO)
    other.forget()
    assert not here.trusted(ONE)
    assert not here.state.approved


def test_forget_without_approvals_does_nothing(home, root):
    Trust(home, root).forget()
    assert not home.exists()


def test_the_key_is_a_digest_of_the_mark_and_the_path_is_recorded(home, root):
    Trust(home, root).approve([ONE])
    mark = marks(root / ".mind" / ".local")[0].read_text().strip()
    key = hashlib.sha256(f"{mark}\0.".encode()).hexdigest()
    rows = sql(home, "SELECT key, folder, follow, answers FROM project")
    assert rows == [(key, str(root), "off", None)]
    assert (home / "trust.db").stat().st_mode & 0o077 == 0


def test_the_path_of_an_approved_text_is_recorded_if_it_is_known(home, root):
    paths = {digest(1): ".mind/facts/tea.md", digest(2): ".mind/facts/caf\udce9.md"}
    Trust(home, root).approve([*paths, digest(0)], paths=paths)
    query = "SELECT lower(hex(digest)), path, state, at, since > 1700000000 FROM approval"
    assert sorted(sql(home, query)) == sorted(
        (text, path.encode("utf-8", "surrogateescape"), "approved", "", 1)
        for text, path in {digest(0): "", **paths}.items()
    )


DAMAGES = {
    "no database": lambda path: path.write_bytes(b"nonsense" * 200),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "a missing table": lambda path: sql(path.parent, "DROP TABLE approval"),
    "a missing column": lambda path: sql(path.parent, "ALTER TABLE project DROP COLUMN follow"),
    "another format": lambda path: sql(path.parent, "PRAGMA user_version = 0"),
    "a negative format": lambda path: sql(path.parent, "PRAGMA user_version = -1"),
    "another word": lambda path: sql(path.parent, "UPDATE project SET follow = 'yes'"),
    "a text without a code": lambda path: sql(
        path.parent, "UPDATE project SET follow = CAST(x'ff' AS TEXT)"
    ),
    "answers": lambda path: sql(path.parent, "UPDATE project SET answers = '{'"),
    "answers of another kind": lambda path: sql(path.parent, "UPDATE project SET answers = '[]'"),
    "deep answers": lambda path: sql(path.parent, f"UPDATE project SET answers = '{'[' * 20_000}'"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link": lambda path: path.symlink_to(path.rename(path.with_name("moved"))),
}


@pytest.mark.attack("trust lost with a damaged list")
@pytest.mark.attack("symbolic link")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_database_is_reported_and_nothing_is_trusted(home, root, damage):
    Trust(home, root).approve([ONE])
    Trust(home, root).follow(True)
    open_ = Trust(home, root)
    assert open_.trusted(ONE)
    DAMAGES[damage](home / "trust.db")
    for trust in (Trust(home, root), open_):
        assert not trust.trusted(ONE)
        assert not trust.approved(ONE)
        assert trust.trusted_digests(9) == trust.reviewed() == frozenset()
        assert "trust.db` is damaged" in (trust.state.problem or "")
        with pytest.raises(StorageFailed, match="is damaged"):
            trust.approve([TWO])
        assert not trust.trusted(TWO)
    assert "trust.db.damaged" in (open_.repair() or "")
    assert open_.repair() is None
    open_.approve([TWO])
    for each in (open_, trust, Trust(home, root)):
        assert each.state.problem is None
        assert each.trusted(TWO)
        assert not each.trusted(ONE)
    assert (home / "trust.db.damaged").exists()


def test_an_empty_database_has_no_approvals_and_gets_new_ones(home, root):
    Trust(home, root).approve([ONE])
    (home / "trust.db").write_bytes(b"")
    trust = Trust(home, root)
    assert not trust.trusted(ONE)
    trust.approve([TWO])
    assert (trust.trusted(ONE), trust.trusted(TWO)) == (False, True)


def test_a_database_that_is_removed_ends_all_approvals(home, root):
    trust = Trust(home, root)
    trust.approve([ONE])
    (home / "trust.db").unlink()
    assert not trust.trusted(ONE)
    assert not (home / "trust.db").exists()
    trust.approve([TWO])
    assert (trust.trusted(ONE), trust.trusted(TWO)) == (False, True)


def test_only_a_digest_can_be_approved(home, root):
    with pytest.raises(ValueError, match="x"):
        Trust(home, root).approve(["x\n"])


def repository(folder):
    kit.repository(folder)
    git(folder, "config", "user.email", "ann@example.com")


def test_the_worktrees_of_a_repository_share_their_trust(home, root, tmp_path):
    repository(root)
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", "-q", str(tmp_path / "other"))
    assert locate(root).common == locate(tmp_path / "other").common == root / ".git"
    Trust(home, root).approve([ONE])
    assert Trust(home, tmp_path / "other").trusted(ONE)


def test_projects_within_one_repository_do_not(home, root):
    repository(root)
    (root / "a").mkdir()
    Trust(home, root).approve([ONE])
    assert locate(root / "a").inside == "a"
    assert not Trust(home, root / "a").trusted(ONE)


@pytest.mark.attack("trust of another repository borrowed")
def test_an_unpacked_archive_cant_borrow_the_trust_of_a_repository(home, root, tmp_path):
    repository(root)
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", "-q", str(tmp_path / "other"))
    Trust(home, root).approve([ONE])
    evil = tmp_path / "evil"
    evil.mkdir()
    for pointer in (root / ".git", root / ".git" / "worktrees" / "other"):
        (evil / ".git").write_text(f"gitdir: {pointer}\n")
        assert locate(evil).common is None
        assert not Trust(home, evil).trusted(ONE)


@pytest.mark.attack("trust of another repository borrowed")
@pytest.mark.attack("symbolic link")
def test_a_git_that_is_a_link_borrows_nothing(home, root, tmp_path):
    repository(root)
    Trust(home, root).approve([ONE])
    evil = tmp_path / "evil"
    (evil / "below").mkdir(parents=True)
    (evil / ".git").symlink_to(root / ".git")
    for folder in (evil, evil / "below"):
        assert locate(folder).common is None
        assert not Trust(home, folder).trusted(ONE)


@pytest.mark.parametrize("text", ["", "gitdir:", "gitdir: /nowhere", "x" * 9000, "\xff"])
def test_an_empty_git_file_is_not_a_repository(root, text):
    (root / ".git").write_bytes(text.encode("latin-1"))
    assert locate(root).common is None


@pytest.fixture
def shop(root):
    """A project outside git."""
    (root / ".mind").mkdir()
    return root


def test_trust_stays_where_a_project_becomes_a_repository(home, shop):
    open_ = Trust(home, shop)
    open_.approve([ONE])
    open_.follow(True)
    repository(shop)

    for trust in (Trust(home, shop), open_):
        assert trust.approved(ONE)
        assert not trust.trusted(TWO), "in git, the default branch is followed"
        assert trust.state.follow
        assert trust.state.in_git
    assert marks(shop / ".git")
    assert not marks(shop / ".mind" / ".local")
    assert not Trust(home, shop.parent).state.follow


def test_so_it_does_where_a_folder_above_becomes_one(home, shop):
    other = shop.parent / "other"
    (other / ".mind").mkdir(parents=True)
    Trust(home, shop).approve([ONE])
    Trust(home, other).approve([TWO])
    repository(shop.parent)
    assert Trust(home, shop).trusted(ONE)
    assert Trust(home, other).trusted(TWO)
    assert not Trust(home, shop).trusted(TWO)
    assert Trust(home, shop).location.inside == shop.name


@pytest.mark.parametrize("approved_first", [True, False])
def test_a_revoked_approval_stays_revoked(home, shop, approved_first):
    trust = Trust(home, shop)
    trust.approve([ONE])
    trust.follow(True)
    repository(shop)
    after = Trust(home, shop)
    if approved_first:
        after.approve([TWO])
        assert after.trusted(ONE)
    after.forget()
    for again in (after, Trust(home, shop), trust):
        assert not again.trusted(ONE)
        assert not again.state.follow


@pytest.mark.attack("trust of another repository borrowed")
def test_a_clone_in_the_place_of_a_project_inherits_nothing(home, shop, tmp_path):
    other = tmp_path / "other"
    (other / ".mind" / ".local").mkdir(parents=True)
    repository(other)
    open_ = Trust(home, shop)
    open_.follow(True)
    open_.approve([ONE])
    name = own_name("trust-mark", str(known_owner(home)))
    (other / ".mind" / ".local" / name).write_text("0" * 32 + "\n", encoding="utf-8")
    shop.rename(tmp_path / "old")
    other.rename(shop)

    for trust in (open_, Trust(home, shop)):
        assert not trust.trusted(ONE)
        assert not trust.state.follow


@pytest.mark.attack("trust of another repository borrowed")
def test_a_repository_in_the_place_of_another_inherits_nothing(home, root, tmp_path):
    repository(root)
    open_ = Trust(home, root)
    open_.approve([ONE])
    root.rename(tmp_path / "old")
    root.mkdir()
    repository(root)
    for trust in (open_, Trust(home, root)):
        assert not trust.trusted(ONE)
    assert Trust(home, tmp_path / "old").trusted(ONE)


@pytest.mark.attack("trust of another repository borrowed")
def test_a_mark_that_a_clone_brings_is_not_taken_along_from_a_repository(home, root, tmp_path):
    repository(root)
    Trust(home, root).approve([ONE])
    evil = tmp_path / "evil"
    (evil / ".mind" / ".local").mkdir(parents=True)
    repository(evil)
    stolen = marks(root / ".git")[0]
    name = own_name("trust-mark", str(known_owner(home)))
    (evil / ".mind" / ".local" / name).write_bytes(stolen.read_bytes())
    assert not Trust(home, evil).trusted(ONE)


@pytest.mark.parametrize("in_git", [True, False])
def test_a_project_that_moved_keeps_its_trust_and_another_home_has_none(
    home, shop, tmp_path, in_git
):
    if in_git:
        repository(shop)
    Trust(home, shop).approve([ONE])
    assert not Trust(tmp_path / "theirs", shop).trusted(ONE)
    moved = shop.rename(tmp_path / "moved")
    assert Trust(home, moved).trusted(ONE)


@pytest.mark.attack("symbolic link")
def test_a_mark_behind_a_link_is_not_believed(home, shop, tmp_path):
    Trust(home, shop).follow(True)
    local = shop / ".mind" / ".local"
    local.rename(tmp_path / "local")
    local.symlink_to(tmp_path / "local")
    repository(shop)
    assert not Trust(home, shop).trusted(ONE)


def test_approving_fails_if_the_project_cant_be_marked(home, shop):
    (shop / ".mind" / ".local").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageFailed, match=r"\.local"):
        Trust(home, shop).approve([ONE])
    assert not Trust(home, shop).trusted(ONE)


@pytest.mark.parametrize("content", ["", "nonsense", "0" * 31 + "\n", "0" * 33])
def test_a_damaged_mark_is_not_replaced_in_silence(home, root, content):
    repository(root)
    Trust(home, root).approve([ONE])
    marks(root / ".git")[0].write_text(content)
    assert not Trust(home, root).trusted(ONE)
    with pytest.raises(StorageFailed, match="damaged"):
        Trust(home, root).approve([ONE])


def logged(*messages):
    lines, before = [], "0" * 40
    for number, message in enumerate(messages, 1):
        lines.append(f"{before} {number:040x} A <a@b> 1700000000 +0000\t{message}\n")
        before = f"{number:040x}"
    return "".join(lines)


def test_a_reflog_lists_the_commits_made_here(tmp_path):
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "HEAD"
    log.write_text(
        logged("clone: from x", "commit: a", "pull: Fast-forward", "commit (amend): b",
               "merge x: Fast-forward", "cherry-pick: c", "checkout: moving from x to y", "am: e",
               "commit (merge): f", "commit (cherry-pick): g", "revert: h", "checkout: commit: i"),
        encoding="utf-8",
    )  # fmt: skip
    reflogs = reflog_entries(tmp_path, {})
    reverts = {f"{11:040x}": None}
    made = {f"{2:040x}": None, f"{4:040x}": f"{3:040x}", f"{9:040x}": None}
    assert reflogs.commits == made | reverts
    assert reflogs.reverts == reverts.keys()
    assert reflog_entries(tmp_path, reflogs.positions).commits == {}

    log.write_text(log.read_text() + f"{12:040x} {13:040x} A <a@b> 1 +0000\tcommit: j\n")
    assert reflog_entries(tmp_path, reflogs.positions).commits == {f"{13:040x}": None}


@pytest.mark.attack("commit forged under the user's address")
def test_a_reflog_whose_position_is_lost_counts_only_if_it_is_new(tmp_path):
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "HEAD"
    log.write_text(logged("commit (initial): a", "commit: b"), encoding="utf-8")
    position = reflog_entries(tmp_path, {}).positions
    text = logged("commit (initial): a", "commit: b", "commit: c")
    log.write_text(text.partition("\n")[2].replace("commit: b", "commit: x"), encoding="utf-8")
    assert reflog_entries(tmp_path, position).commits == {}


HEX = "a" * 40
START, FINISH = "rebase (start): checkout main", "rebase (finish): returning to refs/heads/pr"
PULL = "pull --rebase ../o.git main (start): checkout abc"
LEFT, BACK = f"checkout: moving from {HEX} to main", f"checkout: moving from main to {HEX}"


@pytest.mark.attack("commit forged under the user's address")
@pytest.mark.parametrize(
    ("messages", "own", "running"),
    [
        ("+ commit: a | START | commit: b | commit (amend): c | FINISH | + commit: d", "", False),
        ("+ commit: a | PULL | commit: b | rebase (pick): c | FINISH | + commit: d", "", False),
        ("pull (start): checkout x | commit: b | rebase (continue): c | FINISH", "", False),
        ("START | commit: x | rebase (abort): returning to refs/heads/pr | + commit: b", "", False),
        ("START | commit: b | rebase (abort): x | START | commit: c | FINISH", "", False),
        ("+ commit: a | rebase -i (start): checkout main | commit: b", "", True),
        ("+ commit: a | tool x (start): checkout main | commit: b | FINISH", "", False),
        # The first line was removed, or is that of a git before 2.26.
        ("commit: b | rebase (pick): (start): checkout x | FINISH | + commit: c", "", False),
        ("rebase: checkout main | commit: b | rebase: checkout x | rebase: y | + commit: c", "",
         False),
        ("rebase: checkout main | commit: b | rebase finished: x | + commit: c", "", False),
        ("commit: b", "", True),
        # The branch was up to date, so no rebase began.
        ("rebase: checkout main | + commit: a", "", False),
        # No last line: `git rebase --quit`, or a rebase of a detached HEAD.
        ("START | commit: b | LEFT | + commit: c", "", False),
        ("START | LEFT | commit: b | + commit: c", "", False),
        ("START | commit: b | LEFT | commit: c | BACK | commit: d | FINISH", "", False),
        ("START | commit: b | LEFT | commit: c | BACK | commit: d", "", True),
        ("START | rebase (pick): b | commit: c", "| + commit: d", False),
        # The subject is the words of another author.
        ("START | rebase (pick): x (finish): y | commit: b | FINISH", "", False),
        ("+ commit: a | cherry-pick: x (start): checkout y | + commit: b", "", False),
    ],
)  # fmt: skip
def test_a_commit_within_a_rebase_is_not_the_user_s(tmp_path, messages, own, running):
    (tmp_path / "logs").mkdir()
    if running:
        (tmp_path / "rebase-merge").mkdir()
    names = {"START": START, "FINISH": FINISH, "PULL": PULL, "LEFT": LEFT, "BACK": BACK}

    def read(text, positions, rebasing):
        lines = [names.get(line, line) for line in text.split(" | ")]
        log = logged("clone: from x", *(line.removeprefix("+ ") for line in lines))
        (tmp_path / "logs" / "HEAD").write_text(log, encoding="utf-8")
        expected = {f"{n:040x}" for n, line in enumerate(lines, 2) if line.startswith("+ ")}
        reflogs = reflog_entries(tmp_path, positions, rebasing)
        return reflogs, reflogs.commits.keys(), expected

    reflogs, made, expected = read(messages, {}, ())
    assert made == expected
    if own:
        _, made, expected = read(f"{messages} {own}", reflogs.positions, reflogs.rebasing)
        assert made == expected


@pytest.mark.attack("commit forged under the user's address")
@pytest.mark.parametrize("ends", [True, False])
def test_a_rebase_that_goes_on_after_it_was_read_is_known(tmp_path, ends):
    (tmp_path / "logs").mkdir()
    (tmp_path / "rebase-merge").mkdir()
    log = tmp_path / "logs" / "HEAD"
    log.write_text(logged("commit: a", START), encoding="utf-8")
    first = reflog_entries(tmp_path, {})
    assert first.commits == {f"{1:040x}": None}
    assert first.rebasing == ("",)

    (tmp_path / "rebase-merge").rmdir()
    log.write_text(logged("commit: a", START, "commit: b", *[FINISH] * ends, "commit: c"), "utf-8")
    second = reflog_entries(tmp_path, first.positions, first.rebasing)
    assert second.commits == ({f"{5:040x}": None} if ends else {})
    assert second.rebasing == ()
    log.write_text(log.read_text("utf-8") + f"{HEX} {'b' * 40} A <a@b> 1 +0000\tcommit: d\n")
    assert reflog_entries(tmp_path, second.positions).commits == {"b" * 40: None}


def committed(home, root):
    """Commits a text as the user, and returns its name."""
    repository(root)
    Trust(home, root).begin()
    (root / ".mind").mkdir()
    (root / ".mind" / "a.md").write_bytes(b"tea")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "tea")
    return approval_of(".mind/a.md", b"tea")


def test_answers_of_git_that_cant_be_stored_apply_in_this_process(home, root, monkeypatch):
    tea = committed(home, root)

    def full(*_, **__):
        raise StorageFailed("the disk is full")

    monkeypatch.setattr(ApprovalDatabase, "changing", full)
    trust = Trust(home, root, globs=())
    assert trust.trusted(tea)
    assert trust.trusted(tea)
    monkeypatch.undo()
    assert not Trust(home, root).trusted(tea)
    Trust(home, root.parent).approve([ONE])
    assert trust.trusted(tea)


def test_answers_of_another_process_are_not_overwritten(home, root, monkeypatch):
    tea = committed(home, root)
    look, asked = Vouching.look, []

    def looking(self, *args, **options):
        answer = look(self, *args, **options)
        asked.append(1)
        if len(asked) == 1:
            assert Trust(home, root, globs=()).trusted(tea)
        return answer

    monkeypatch.setattr(Vouching, "look", looking)
    trust = Trust(home, root, globs=())
    assert trust.trusted(tea)
    assert len(asked) == 2, "the other process asked, so this one does not ask again"
    assert trust.revoke([tea]) == 1
    assert not trust.trusted(tea)


def test_the_policy_is_kept_again_after_its_removal_was_approved(home, root):
    file = put(root / POLICY, "pii: {on_write: refuse}\n")
    trust = Trust(home, root)
    trust.approve_file(POLICY)
    file.unlink()
    Trust(home, root).approve_removal(POLICY)
    assert trust.latest()[POLICY] is None
    put(file, "pii: {on_write: refuse}\n")
    trust.approve_file(POLICY)
    assert trust.latest()[POLICY] == file.read_bytes()
