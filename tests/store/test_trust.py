"""Trust: by content, by repository, outside of both, and never by default."""

import hashlib
import json
import subprocess

import pytest

from mimo.errors import StorageFailed
from mimo.store.names import ALONE
from mimo.store.trust import Trust, place


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


def kept(home):
    (folder,) = (home / "trust").iterdir()
    return folder


def test_nothing_is_trusted_until_somebody_approves_it(home, root):
    trust = Trust(home, root)
    assert not trust.trusted(ONE)
    assert trust.approve([ONE, ONE]) == 1
    assert trust.approve([ONE, TWO]) == 1
    assert trust.trusted(ONE)
    assert not trust.trusted(digest(3))
    assert (trust.state.approved, trust.state.follow, trust.state.path) == (2, False, root)
    assert Trust(home, root).trusted(TWO)


def test_followed_memory_is_trusted_but_not_approved(home, root):
    trust = Trust(home, root)
    trust.follow(True)
    assert trust.trusted(ONE)
    assert not trust.approved(ONE)
    trust.follow(False)
    assert not trust.trusted(ONE)


def test_what_a_commit_says_is_not_followed_but_can_be_approved(home, root):
    trust = Trust(home, root)
    trust.follow(True)
    assert not trust.trusted(f"{ALONE}{ONE}")
    assert trust.approve([f"{ALONE}{ONE}"]) == 1
    assert trust.trusted(f"{ALONE}{ONE}")
    assert trust.approved(f"{ALONE}{ONE}")


def test_what_another_process_approves_or_forgets_counts_at_once(home, root):
    here, there = Trust(home, root), Trust(home, root)
    assert not here.trusted(ONE)
    there.approve([ONE])
    assert here.trusted(ONE)
    there.follow(True)
    assert here.trusted(TWO)
    there.forget()
    assert not here.trusted(ONE)
    assert here.state.approved == 0


def test_forgetting_what_was_never_approved_is_fine(home, root):
    Trust(home, root).forget()
    assert not home.exists()


def test_the_place_is_kept_in_clear(home, root):
    Trust(home, root).approve([ONE])
    folder = kept(home)
    assert folder.name == hashlib.sha256(str(root).encode()).hexdigest()
    assert json.loads((folder / "state.json").read_text()) == {"path": str(root), "follow": False}
    assert (folder / "approved").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("approved", f"{ONE}\nnonsense\n"),
        ("approved", f"{ONE}\n{TWO[:30]}\n"),
        ("approved", f"{ONE.upper()}\n"),
        ("state.json", "{"),
        ("state.json", '{"follow": 1, "path": "x"}'),
        ("state.json", '{"follow": true, "path": "/another"}'),
        ("state.json", "[]"),
    ],
)
def test_a_damaged_file_is_told_and_nothing_is_trusted(home, root, name, content):
    Trust(home, root).approve([ONE])
    Trust(home, root).follow(True)
    (kept(home) / name).write_text(content)
    trust = Trust(home, root)
    assert not trust.trusted(ONE)
    assert name in (trust.state.problem or "")
    with pytest.raises(StorageFailed, match="is damaged"):
        trust.approve([TWO])
    assert (kept(home) / name).read_text() == content
    assert ".damaged" in (trust.repair() or "")
    assert trust.repair() is None
    trust.approve([TWO])
    assert trust.state.problem is None
    assert trust.trusted(TWO)
    assert not trust.trusted(ONE)
    assert (kept(home) / f"{name}.damaged").read_text() == content


@pytest.mark.attack("trust lost with a torn line")
def test_a_torn_last_line_voids_no_other_approval(home, root):
    Trust(home, root).approve([ONE])
    whole = (kept(home) / "approved").read_bytes()
    for cut in (1, 30, 63, 64):
        (kept(home) / "approved").write_bytes(whole + TWO[:cut].encode())
        trust = Trust(home, root)
        assert (trust.trusted(ONE), trust.trusted(TWO), trust.state.problem) == (True, False, None)
        assert "torn" in (trust.state.notice or "")
    Trust(home, root).approve([TWO])
    assert Trust(home, root).trusted(TWO)
    assert (kept(home) / "approved").read_bytes() == whole + f"{TWO}\n".encode()


def test_a_link_in_the_place_of_a_list_is_not_trusted(home, root, tmp_path):
    Trust(home, root).approve([ONE])
    listed = kept(home) / "approved"
    moved = listed.rename(tmp_path / "moved")
    listed.symlink_to(moved)
    trust = Trust(home, root)
    assert not trust.trusted(ONE)
    assert trust.state.problem
    with pytest.raises(StorageFailed):
        trust.approve([TWO])


def test_only_a_digest_can_be_approved(home, root):
    with pytest.raises(ValueError, match="x"):
        Trust(home, root).approve(["x\n"])


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def test_the_worktrees_of_a_repository_share_their_trust(home, root, tmp_path):
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", "-q", str(tmp_path / "other"))
    assert place(root) == place(tmp_path / "other") == root / ".git"
    Trust(home, root).approve([ONE])
    assert Trust(home, tmp_path / "other").trusted(ONE)


def test_projects_within_one_repository_do_not(home, root):
    git(root, "init", "-q")
    (root / "a").mkdir()
    Trust(home, root).follow(True)
    assert place(root / "a") == root / ".git" / "a"
    assert not Trust(home, root / "a").trusted(ONE)


def test_an_unpacked_archive_cant_borrow_the_trust_of_a_repository(home, root, tmp_path):
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", "-q", str(tmp_path / "other"))
    Trust(home, root).follow(True)
    evil = tmp_path / "evil"
    evil.mkdir()
    for pointer in (root / ".git", root / ".git" / "worktrees" / "other"):
        (evil / ".git").write_text(f"gitdir: {pointer}\n")
        assert place(evil) == evil
        assert not Trust(home, evil).trusted(ONE)


@pytest.mark.parametrize("text", ["", "gitdir:", "gitdir: /nowhere", "x" * 9000, "\xff"])
def test_a_git_file_that_says_nothing_is_no_repository(root, text):
    (root / ".git").write_bytes(text.encode("latin-1"))
    assert place(root) == root


@pytest.fixture
def shop(root):
    """A project outside git."""
    (root / ".mind").mkdir()
    return root


def repository(folder):
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def test_trust_stays_where_a_project_becomes_a_repository(home, shop):
    open_ = Trust(home, shop)
    open_.approve([ONE])
    open_.follow(True)
    repository(shop)

    for trust in (Trust(home, shop), open_):
        assert trust.approved(ONE)
        assert not trust.approved(TWO)
        assert trust.trusted(TWO)
        assert trust.state.path == shop / ".git"
    assert not Trust(home, shop.parent).state.follow


def test_so_it_does_where_a_folder_above_becomes_one(home, shop):
    Trust(home, shop).approve([ONE])
    repository(shop.parent)
    assert Trust(home, shop).trusted(ONE)
    assert Trust(home, shop).state.path == shop.parent / ".git" / shop.name


@pytest.mark.parametrize("approved_first", [True, False])
def test_what_is_taken_back_afterwards_stays_so(home, shop, approved_first):
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


def test_a_clone_in_the_place_of_a_project_inherits_nothing(home, shop, tmp_path):
    other = tmp_path / "other"
    (other / ".mind" / ".local").mkdir(parents=True)
    repository(other)
    (other / ".mind" / ".local" / "trust-mark").write_text("0" * 32 + "\n", encoding="utf-8")
    Trust(home, shop).follow(True)
    shop.rename(tmp_path / "old")
    other.rename(shop)

    assert not Trust(home, shop).trusted(ONE)
    assert Trust(home, shop).state.path == shop / ".git"


def test_a_folder_that_moved_and_one_on_another_machine_inherit_nothing(home, shop, tmp_path):
    Trust(home, shop).follow(True)
    repository(shop)
    assert not Trust(tmp_path / "theirs", shop).trusted(ONE)
    moved = shop.rename(tmp_path / "moved")
    assert not Trust(home, moved).trusted(ONE)


def test_a_mark_behind_a_link_is_not_believed(home, shop, tmp_path):
    Trust(home, shop).follow(True)
    local = shop / ".mind" / ".local"
    local.rename(tmp_path / "local")
    local.symlink_to(tmp_path / "local")
    repository(shop)
    assert not Trust(home, shop).trusted(ONE)


def test_a_project_that_can_t_be_marked_is_trusted_all_the_same(home, shop):
    (shop / ".mind" / ".local").write_text("in the way", encoding="utf-8")
    Trust(home, shop).follow(True)
    assert Trust(home, shop).trusted(ONE)
    repository(shop)
    assert not Trust(home, shop).trusted(ONE)


def test_ten_thousand_approvals_are_all_known(home, root):
    many = [digest(number) for number in range(10_000)]
    Trust(home, root).approve(many)
    trust = Trust(home, root)
    assert all(map(trust.trusted, many))
    assert trust.state.approved == 10_000
