"""Lists of digests: what is looked up on the disk, merged and interrupted, as in a plain set."""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mimo.errors import StorageFailed
from mimo.store import append_log, files
from mimo.store import digests as lists
from mimo.store.trust import Trust
from tests.conftest import git


def digest(number):
    return hashlib.sha256(str(number).encode()).hexdigest()


MANY = [digest(number) for number in range(60)]
LONG = 8


@pytest.fixture(autouse=True)
def short_lists(monkeypatch):
    """Lists are long from `LONG` lines on, and are read whole after twice their lines."""
    monkeypatch.setattr(lists, "_LONG", LONG)
    monkeypatch.setattr(lists, "_LOOKUPS", 0.5)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home" / ".mind"


def log(home):
    return next((home / "trust").rglob("approved"))


def merged(home):
    """Returns the sorted lists beside the log."""
    return [path for path in lists.parts(log(home)) if path != log(home)]


class Approvals(RuleBasedStateMachine):
    """Two processes approve and revoke, beside the set that they should agree with."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.home, self.root = Path(self.folder.name, ".mind"), Path(self.folder.name, "project")
        self.root.mkdir()
        self.both = [Trust(self.home, self.root) for _ in range(2)]
        self.wanted = set()

    @rule(who=st.integers(0, 1), some=st.sets(st.sampled_from(MANY), max_size=12))
    def approve(self, who, some):
        assert self.both[who].approve(some) == len(some - self.wanted)
        self.wanted |= some

    @rule(who=st.integers(0, 1), some=st.sets(st.sampled_from(MANY), max_size=12))
    def revoke(self, who, some):
        assert self.both[who].revoke(some) == len(some & self.wanted)
        self.wanted -= some

    @rule(who=st.integers(0, 1))
    def reopen(self, who):
        self.both[who] = Trust(self.home, self.root)

    @rule(who=st.integers(0, 1))
    def forget(self, who):
        self.both[who].forget()
        self.wanted.clear()
        assert not list((self.home / "trust").rglob("approved*"))

    @rule(torn=st.integers(1, 64))
    def tear(self, torn):
        if self.wanted:
            with log(self.home).open("a") as file:
                file.write(digest(0)[:torn])

    @invariant()
    def both_agree_with_the_set(self):
        for trust in self.both:
            assert set(filter(trust.checker(), MANY)) == self.wanted
            assert trust.state.approved == len(self.wanted)
            assert trust.state.problem is None

    def teardown(self):
        self.folder.cleanup()


TestApprovals = Approvals.TestCase
TestApprovals.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)


def test_a_long_log_is_merged_into_a_sorted_list(home, root):
    Trust(home, root).approve(MANY[:LONG])
    assert not merged(home)
    Trust(home, root).approve(MANY[LONG:20])
    (first,) = merged(home)
    assert first.read_text().split() == sorted(MANY[:20])
    assert first.stat().st_mode & 0o077 == 0
    Trust(home, root).approve(MANY[20:40])
    (second,) = merged(home)
    assert second != first
    assert second.read_text().split() == sorted(MANY[:40])
    assert len(log(home).read_text().split()) == 1
    Trust(home, root).approve(MANY[40:42])
    assert merged(home) == [second]
    trust = Trust(home, root)
    assert all(map(trust.trusted, MANY[:42]))
    assert not any(map(trust.trusted, MANY[42:]))
    assert trust.state.approved == 42


def test_the_log_of_an_earlier_version_is_merged_by_the_next_approval(home, root):
    Trust(home, root).approve(MANY[:1])
    log(home).write_text("".join(f"{text}\n" for text in MANY[:30]))
    trust = Trust(home, root)
    assert all(map(trust.trusted, MANY[:30]))
    assert not merged(home)
    trust.approve(MANY[30:31])
    assert merged(home)
    assert all(map(trust.trusted, MANY[:31]))
    assert trust.state.approved == 31


def test_an_earlier_version_that_changes_the_log_never_adds_trust(home, root):
    Trust(home, root).approve(MANY[:20])
    listed = log(home).read_text()
    # It approves texts, the first again, and writes the log sorted when it revokes one.
    lines = sorted([*listed.split(), *MANY[19:22]])
    log(home).write_text("".join(f"{line}\n" for line in lines))
    trust = Trust(home, root)
    assert all(map(trust.trusted, MANY[:22]))
    assert not any(map(trust.trusted, MANY[22:]))
    # It ends all approvals, and begins again.
    approved = log(home)
    approved.unlink()
    assert not any(map(trust.trusted, MANY))
    approved.write_text(f"{MANY[30]}\n")
    assert [text for text in MANY if Trust(home, root).trusted(text)] == [MANY[30]]
    Trust(home, root).approve(MANY[31:50])
    assert [text for text in MANY if Trust(home, root).trusted(text)] == MANY[30:50]
    assert len(merged(home)) == 1


def test_a_project_that_becomes_a_repository_takes_its_sorted_list_along(home, root):
    trust = Trust(home, root)
    trust.approve(MANY[:20])
    git(root, "init", "-q")
    for each in (trust, Trust(home, root)):
        assert all(map(each.trusted, MANY[:20]))
        assert each.state.in_git
    trust.approve(MANY[20:40])
    assert len(merged(home)) == 1


def test_a_long_list_of_committed_texts_grows_and_shrinks(home, root):
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.email", "ann@example.com")
    Trust(home, root).begin()
    (root / ".mind" / "facts").mkdir(parents=True)

    def commit(numbers):
        for number in numbers:
            (root / ".mind" / "facts" / f"{number}.md").write_text(str(number))
        git(root, "add", "-A")
        git(root, "commit", "-qm", "more")

    commit(range(20))
    trust = Trust(home, root, globs=())
    assert all(map(trust.trusted, MANY[:20]))
    trust.follow(True)
    assert trust.state.follow
    followed = next((home / "trust").iterdir()) / "followed"
    assert len(followed.read_text().split()) == 20
    trust.follow(False)
    assert trust.trusted(MANY[1])
    assert not followed.exists()
    assert trust.revoke(MANY[:2]) == 2
    commit(range(20, 30))
    for each in (trust, Trust(home, root)):
        assert [digest for digest in MANY if each.trusted(digest)] == MANY[2:30]
        assert not each.approved(MANY[5])


def test_a_name_of_a_list_cant_be_approved(home, root):
    with pytest.raises(ValueError, match="000"):
        Trust(home, root).approve([lists.NAMES_LIST + "1" * 32])


class Killed(BaseException):
    """The end of the process."""


@pytest.mark.attack("trust lost when a merge is killed")
@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("step", range(5))
def test_a_killed_merge_loses_no_approval_and_brings_no_revoked_one_back(
    home, root, monkeypatch, step, done
):
    Trust(home, root).approve(MANY[:20])
    left = step
    steps = {"append": append_log, "replace": files, "remove": files}
    unpatched = {name: getattr(module, name) for name, module in steps.items()}

    def killed(name):
        def call(*arguments, **options):
            nonlocal left
            left -= 1
            if left < 0 and not done:
                raise Killed
            unpatched[name](*arguments, **options)
            if left < 0:
                raise Killed

        return call

    for acts, before, after in (
        (lambda trust: trust.approve(MANY[20:40]), MANY[:20], MANY[:40]),
        (lambda trust: trust.revoke(MANY[5:25]), MANY[:40], [*MANY[:5], *MANY[25:40]]),
    ):
        left = step
        with monkeypatch.context() as patched:
            for name, module in steps.items():
                patched.setattr(module, name, killed(name))
            try:
                acts(Trust(home, root))
            except Killed:
                pass
            else:
                assert step > 2
        trust = Trust(home, root)
        assert [text for text in MANY if trust.trusted(text)] in (before, after)
        assert trust.state.approved in (len(before), len(after))
        assert trust.state.problem is None
        acts(Trust(home, root))
        assert [text for text in MANY if trust.trusted(text)] == after
        assert trust.state.approved == len(after)
    Trust(home, root).approve(MANY)
    assert len(merged(home)) == 1


def test_a_merge_that_fails_keeps_the_approval(home, root, monkeypatch):
    def full(path, *_, **__):
        raise StorageFailed(f"can't write `{path}`", hint="")

    Trust(home, root).approve(MANY[:1])
    with monkeypatch.context() as patched:
        patched.setattr(files, "replace", full)
        assert Trust(home, root).approve(MANY[1:20]) == 19
    assert all(map(Trust(home, root).trusted, MANY[:20]))


WRITER = """
import itertools, sys
from pathlib import Path
from mimo.store import digests, files
from mimo.store.trust import Trust
digests._LONG = 3
trust = Trust(Path(sys.argv[1]), Path(sys.argv[2]))
for number in itertools.count():
    trust.approve([files.digest(str(number).encode())])
    print(number, flush=True)
"""


@pytest.mark.attack("trust lost when a merge is killed")
def test_readers_see_every_approval_while_another_process_merges(home, root):
    Trust(home, root).begin()
    words = [sys.executable, "-c", WRITER, str(home), str(root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        try:
            reader, last = Trust(home, root), 0
            while last < 120:
                last = int(writer.stdout.readline())
                fresh = Trust(home, root)
                assert fresh.trusted(digest(last))
                assert fresh.trusted(digest(last // 2))
                assert reader.trusted(digest(last))
        finally:
            os.kill(writer.pid, signal.SIGKILL)
        last = max(map(int, writer.stdout.read().split()), default=last)
    trust = Trust(home, root)
    assert all(trust.trusted(digest(number)) for number in range(last + 1))
    assert trust.state.approved in (last + 1, last + 2)
    assert trust.state.problem is None


@pytest.mark.attack("trust lost with a damaged list")
@pytest.mark.parametrize("damage", ["missing", "empty", "short", "line", "link", "folder"])
def test_a_damaged_sorted_list_is_reported_and_nothing_is_trusted(home, root, tmp_path, damage):
    Trust(home, root).approve(MANY[:40])
    Trust(home, root).approve([digest("newer")])
    (listed,) = merged(home)
    data = listed.read_bytes()
    if damage == "line":
        listed.write_bytes(data.replace(sorted(MANY[:40])[20].encode(), b"x" * 64))
    elif damage in ("empty", "short"):
        listed.write_bytes(data[:-1] if damage == "short" else b"")
    else:
        listed.rename(tmp_path / "moved")
        if damage == "link":
            listed.symlink_to(tmp_path / "moved")
        elif damage == "folder":
            listed.mkdir()

    trust = Trust(home, root)
    assert not trust.trusted(sorted(MANY[:40])[20])
    for text in (MANY[0], digest("newer")):
        assert not trust.trusted(text)
        assert not trust.approved(text)
    assert listed.name in (trust.state.problem or "")
    assert trust.state.approved == 0
    with pytest.raises(StorageFailed, match=listed.name):
        trust.approve([digest("newest")])
    assert ".damaged" in (Trust(home, root).repair() or "")
    assert Trust(home, root).approve(MANY[:2]) == 2
    assert [text for text in MANY if Trust(home, root).trusted(text)] == MANY[:2]


def test_a_check_finds_damage_that_no_lookup_meets(home, root):
    Trust(home, root).approve(MANY[:40])
    (listed,) = merged(home)
    place = sorted(MANY[:40])
    listed.write_bytes(listed.read_bytes().replace(place[1].encode(), b"x" * 64))
    trust = Trust(home, root)
    assert trust.trusted(place[30])
    trust.check()
    assert not trust.trusted(place[30])
    assert "damaged" in str(trust.state.problem)


@pytest.mark.parametrize("size", [0, 1, LONG, LONG + 1, 50])
def test_a_sorted_list_contains_what_was_written(tmp_path, size):
    path = tmp_path / "list"
    lists.write_sorted(path, MANY[:size])
    read = lists.read_sorted(path)
    lists.write_sorted(path, MANY[size:])  # The open list does not change.
    for _ in range(4):  # First from the disk, then from memory.
        assert [text for text in MANY if text in read] == MANY[:size]
        assert "" not in read
    assert len(read) == size
    assert set(read) == set(MANY[:size])
    assert read.with_more(MANY[:size]) is read
    more = read.with_more(MANY)
    assert len(more) == len(MANY)
    assert set(more) == set(MANY)
    assert len(lists.read_sorted(tmp_path / "none")) == 0


def test_only_a_long_list_that_is_looked_up_often_is_read_whole(tmp_path, monkeypatch):
    path = tmp_path / "list"
    lists.write_sorted(path, MANY)
    read = lists.read_sorted(path)
    sizes = list[int]()
    pread = os.pread

    def counted(descriptor: int, size: int, start: int) -> bytes:
        sizes.append(size)
        return pread(descriptor, size, start)

    monkeypatch.setattr(os, "pread", counted)
    assert MANY[3] in read
    assert max(sizes) == 65
    assert len(sizes) < 8
    assert all(text in read for text in MANY for _ in range(3))
    assert max(sizes) == path.stat().st_size
    assert sizes.count(max(sizes)) == 1
