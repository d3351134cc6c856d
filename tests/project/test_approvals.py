"""The database of approvals: as a plain set, by several processes, damaged, killed, imported."""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mimo.data import sqlite
from mimo.errors import StorageFailed
from mimo.project import approvals
from mimo.project.approvals import ApprovalDatabase, Approvals
from mimo.project.location import GitAnswers
from mimo.project.trust import Trust
from tests.conftest import git
from tests.kit import repository


def digest(number):
    return hashlib.sha256(str(number).encode()).hexdigest()


MANY = [digest(number) for number in range(60)]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home" / ".mind"


def trusted(trust, texts=MANY):
    return [text for text in texts if trust.trusted(text)]


class Two(RuleBasedStateMachine):
    """Two processes change the approvals of two projects, as sets in memory are changed."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(self.folder.name, ".mind")
        self.roots = [Path(self.folder.name, name) for name in ("a", "b")]
        for path in self.roots:
            path.mkdir()
        self.open = {(who, where): self.new(where) for who in range(2) for where in range(2)}
        self.expected: list[set[str]] = [set(), set()]
        self.reviewed: list[set[str]] = [set(), set()]
        self.follow = [False, False]
        self.places: list[set[str]] = [set(), set()]

    def new(self, where):
        return Trust(self.home, self.roots[where])

    who, where = st.integers(0, 1), st.integers(0, 1)
    some = st.sets(st.sampled_from(MANY), max_size=12)

    @rule(who=who, where=where, some=some, reviewed=some)
    def approve(self, who, where, some, reviewed):
        new = self.open[who, where].approve(some, reviewed=some & reviewed)
        assert new == len(some - self.expected[where])
        self.expected[where] |= some
        self.reviewed[where] |= some & reviewed

    @rule(who=who, where=where, some=some)
    def revoke(self, who, where, some):
        assert self.open[who, where].revoke(some) == len(some & self.expected[where])
        self.expected[where] -= some
        self.reviewed[where] -= some

    @rule(who=who, where=where)
    def reopen(self, who, where):
        self.open[who, where] = self.new(where)

    @rule(who=who, where=where)
    def close(self, who, where):
        self.open[who, where].close()

    @rule(who=who, where=where)
    def forget(self, who, where):
        self.open[who, where].forget()
        self.expected[where].clear()
        self.reviewed[where].clear()
        self.follow[where] = False

    @rule(who=who, where=where, follow=st.booleans())
    def set_follow(self, who, where, follow):
        self.open[who, where].follow(follow)
        self.follow[where] = follow

    @rule(who=who, where=where, id=st.sampled_from("xyz"))
    def save_checkpoint(self, who, where, id):
        self.open[who, where].add_checkpoints([id], None)
        self.places[where].add(id)

    @rule(who=who, where=where, id=st.sampled_from("xyz"))
    def remove_checkpoint(self, who, where, id):
        self.open[who, where].forget_id(id)
        self.places[where].discard(id)

    @rule(who=who)
    def damage(self, who):
        path = self.home / "trust.db"
        if path.exists():
            path.write_bytes(b"damaged" * 100)
            assert ".damaged" in self.open[who, 0].repair()
            for values in (self.expected, self.reviewed, self.places):
                values[:] = set(), set()
            self.follow = [False, False]

    @invariant()
    def all_agree_with_the_sets(self):
        for (_, where), trust in self.open.items():
            expected, follow = self.expected[where], self.follow[where]
            assert {text for text in MANY if trust.approved(text)} == expected
            assert set(filter(trust.checker(), MANY)) == (set(MANY) if follow else expected)
            assert trust.reviewed() == self.reviewed[where]
            assert trust.trusted_digests(60) == (
                None if follow else expected | {f"alone:{text}" for text in expected}
            )
            assert trust.checkpoints().keys() == self.places[where]
            assert trust.state == trust.state._replace(
                approved=bool(expected), follow=follow, problem=None
            )

    def teardown(self):
        self.folder.cleanup()


TestTwo = Two.TestCase
TestTwo.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)


def test_the_check_is_the_same_one_until_an_approval_of_this_project_changes(home, root):
    trust, other = Trust(home, root), Trust(home, root.parent)
    trust.approve([MANY[0]])
    check = trust.checker()
    other.approve([MANY[1]])
    trust.approve([MANY[0]])
    assert trust.checker() is check
    Trust(home, root).approve([MANY[2]])
    assert trust.checker() is not check


@pytest.mark.parametrize("number", [10, 3_000])
def test_many_lookups_read_all_texts_once_and_few_read_only_what_they_ask_for(home, root, number):
    texts = [digest(text) for text in range(number)]
    Trust(home, root).approve(texts)
    current, queries = Trust(home, root), list[str]()
    ask = ApprovalDatabase.ask

    def asking(self, query, *values):
        queries.append(query)
        return ask(self, query, *values)

    with patch.object(ApprovalDatabase, "ask", asking):
        check = current.checker()
        queries.clear()
        assert check(texts[3])
        assert not check(digest("other"))
        assert sum("digest = ?" in query for query in queries) == 2
        assert all(map(check, texts * 2))
        assert not check(digest("other"))
    assert sum("DISTINCT digest, state" in query for query in queries) == 1
    (pages,) = current._database.ask("PRAGMA page_count")[0]
    assert sum("digest = ?" in query for query in queries) <= 2 * pages


def test_a_project_that_becomes_a_repository_keeps_its_place_if_its_new_one_has_approvals(
    home, tmp_path
):
    shop = tmp_path / "shop"
    (shop / ".mind").mkdir(parents=True)
    Trust(home, shop).approve(MANY[:1])
    repository(tmp_path)
    (shop / ".mind" / ".local").rename(tmp_path / "aside")
    Trust(home, shop).approve(MANY[1:2])
    (tmp_path / "aside").rename(shop / ".mind" / ".local")
    for _ in range(2):
        assert trusted(Trust(home, shop)) == MANY[1:2]
    assert not list((shop / ".mind" / ".local").glob("trust-mark-*"))


def test_committed_and_followed_texts_come_and_go(home, root):
    repository(root)
    git(root, "config", "user.email", "ann@example.com")
    Trust(home, root).begin()
    (root / ".mind" / "facts").mkdir(parents=True)

    def commit(numbers):
        for number in numbers:
            (root / ".mind" / "facts" / f"{number}.md").write_text(str(number))
        git(root, "add", "-A")
        git(root, "commit", "-qm", "more")

    def states():
        with closing(sqlite3.connect(home / "trust.db")) as database:
            query = "SELECT state, count(*) FROM approval GROUP BY state"
            return dict(database.execute(query).fetchall())

    commit(range(20))
    trust = Trust(home, root, globs=())
    assert trusted(trust) == MANY[:20]
    trust.follow(True)
    assert trust.state.follow
    assert states() == {"committed": 20, "followed": 20}
    (root / ".mind" / "facts" / "3.md").unlink()
    commit([])
    assert trust.trusted(MANY[3])
    assert states() == {"committed": 20, "followed": 19}
    trust.follow(False)
    assert trust.trusted(MANY[1])
    assert states() == {"committed": 20}
    assert trust.revoke(MANY[:2]) == 2
    commit(range(20, 30))
    for each in (trust, Trust(home, root)):
        assert trusted(each) == MANY[2:30]
        assert not each.approved(MANY[5])


# Interruptions and damage.

WRITER = """
import itertools, sys
from pathlib import Path
from mimo.data import files
from mimo.project.trust import Trust
from tests.kit import repository
trust = Trust(Path(sys.argv[1]), Path(sys.argv[2]))
for number in itertools.count():
    trust.approve([files.digest(f"{number}".encode()), files.digest(f"and {number}".encode())])
    print(number, flush=True)
"""


@pytest.mark.attack("trust lost when a merge is killed")
def test_readers_see_every_approval_of_a_process_that_is_killed(home, root):
    Trust(home, root).begin()
    words = [sys.executable, "-c", WRITER, str(home), str(root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        try:
            reader, last = Trust(home, root), 0
            while last < 50:
                last = int(writer.stdout.readline())
                for trust in (reader, Trust(home, root)):
                    assert trust.trusted(digest(last))
                    assert trust.trusted(digest(last // 2))
        finally:
            os.kill(writer.pid, signal.SIGKILL)
        last = max(map(int, writer.stdout.read().split()), default=last)
    trust = Trust(home, root)
    assert all(trust.trusted(digest(number)) for number in range(last + 1))
    assert trust.trusted(digest(last + 1)) == trust.trusted(digest(f"and {last + 1}"))
    assert not trust.trusted(digest(last + 2))
    assert trust.state.problem is None


def test_a_change_that_is_interrupted_changes_nothing(home, root):
    trust = Trust(home, root)
    trust.approve(MANY[:2])

    def interrupted(*_):
        raise KeyboardInterrupt

    for change in (lambda: trust.approve(MANY[2:]), lambda: trust.revoke(MANY[:1])):
        with patch.object(os, "urandom", interrupted), suppress(KeyboardInterrupt):
            change()
        for each in (trust, Trust(home, root)):
            assert trusted(each) == MANY[:2]


def test_a_full_disk_fails_the_approval_and_keeps_the_others(home, root):
    trust = Trust(home, root)
    trust.approve(MANY[:2])
    with trust._database.reading() as sql:
        assert sql
        (pages,) = sql.execute("PRAGMA page_count").fetchone()
        sql.execute(f"PRAGMA max_page_count = {pages}")
    many = [digest(number) for number in range(1_000, 2_000)]
    with pytest.raises(StorageFailed, match="disk is full") as caught:
        trust.approve(many)
    assert "free space" in caught.value.hint
    for each in (trust, Trust(home, root)):
        assert trusted(each, [*MANY, *many]) == MANY[:2]
        assert each.state.problem is None
    Trust(home, root).approve(many)
    assert trust.trusted(many[-1])


def test_a_home_that_cant_be_written_can_be_read(home, root):
    Trust(home, root).approve(MANY[:2])
    connect = sqlite.connect

    def read_only(path, **options):
        return connect(path, **{**options, "mode": "ro"})

    with patch("mimo.data.sqlite.connect", read_only):
        trust = Trust(home, root)
        assert trusted(trust) == MANY[:2]
        with pytest.raises(StorageFailed, match="readonly database"):
            trust.approve(MANY)
        assert trusted(trust) == MANY[:2]
        assert trust.state.problem is None
        assert trust.repair() is None


def test_another_process_that_holds_the_database_is_waited_for_and_named(home, root):
    trust = Trust(home, root)
    trust.approve(MANY[:2])
    with closing(sqlite3.connect(home / "trust.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with patch("mimo.data.disk.WAIT_SECONDS", 0.2):
            assert not trust.trusted(MANY[0])
            assert "is held by another process" in str(trust.state.problem)
            assert trust.repair() is None, "it is not damaged"
        other.execute("COMMIT")
    assert trust.trusted(MANY[0])
    assert trust.state.problem is None


@pytest.mark.attack("trust lost with a damaged list")
@given(data=st.data())
def test_no_damage_makes_a_text_trusted(data):
    """Each project trusts what was approved there, or in another project, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        home, root = Path(folder, ".mind"), Path(folder, "a")
        root.mkdir()
        Trust(home, root).approve(MANY[:30], reviewed=MANY[:5])
        Trust(home, root.parent).approve(MANY[30:40])
        Trust(home, root).revoke(MANY[20:30])
        path = home / "trust.db"
        content = bytearray(path.read_bytes())
        size = data.draw(st.sampled_from([1, 1, 8, 512]))
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(content) - size))
            content[place : place + size] = data.draw(
                st.sampled_from([bytes(size), b"\xff" * size, os.urandom(size)])
            )
        path.write_bytes(content[: data.draw(st.sampled_from([None, 4096, 4097, 100]))])

        trust = Trust(home, root)
        assert set(trusted(trust)) <= {*MANY[:20], *MANY[30:40]}
        assert not trust.state.follow
        trust.check()
        with suppress(StorageFailed):  # The damage may look like a later format.
            trust.repair()
            trust.approve([digest("new")])
            assert trust.trusted(digest("new"))
        assert set(trusted(trust)) <= {*MANY[:20], *MANY[30:40]}


def test_a_check_finds_damage_that_no_lookup_meets(home, root):
    texts = [digest(number) for number in range(2_000)]
    Trust(home, root).approve(texts)
    path = home / "trust.db"
    content, first = path.read_bytes(), bytes.fromhex(min(texts))
    page = content.index(first) // 4096 * 4096
    path.write_bytes(content[:page] + b"\xff" * 4096 + content[page + 4096 :])
    trust = Trust(home, root)
    assert trust.trusted(max(texts))
    trust.check()
    assert not trust.trusted(max(texts))
    assert "damaged" in str(trust.state.problem)


# Approvals of versions up to 1.1.


def key_of(home, root):
    """Returns the key of a project, whose database is removed."""
    trust = Trust(home, root)
    trust.begin()
    trust.close()
    (home / "trust.db").unlink()
    (home / "trust.db-journal").unlink(missing_ok=True)
    return trust._key


def lines(texts):
    return "".join(f"{text}\n" for text in texts)


TWENTY = lines(MANY[:20])


def write_earlier(home, key, approved=TWENTY, **contents):
    """Writes the files of an earlier version."""
    folder = home / "trust" / key
    folder.mkdir(parents=True)
    state = {"path": "/shop", "git": False, "follow": False}
    contents = {"approved": approved, "state.json": json.dumps(state), **contents}
    for name, content in contents.items():
        (folder / name).write_text(content)
    return folder


def test_earlier_approvals_are_imported_once_and_no_earlier_version_uses_them(home, root):
    nonce, listed = "0" * 24 + b"list".hex(), "a" * 32
    key, other = (key_of(home, place) for place in (root, root.parent))
    write_earlier(
        home,
        key,
        approved=f"{nonce}{listed}\n{lines(MANY[:5])}{MANY[50][:30]}",
        **{f"approved-{listed}": lines(sorted(MANY[5:20])), "reviewed": lines(MANY[3:30])},
        made="checkpoint_a\tmain\ncheckpoint_b\t\ntorn",
    )
    write_earlier(home, other, approved=lines(MANY[30:]), lock="1\n")
    for trust in (Trust(home, root), Trust(home, root)):
        assert trusted(trust) == MANY[:20]
        assert not trust.approved(nonce + listed)
        assert trust.reviewed() == frozenset(MANY[3:20])
        assert trust.checkpoints() == {"checkpoint_a": "main", "checkpoint_b": None}
        assert not trust.state.follow
    assert trusted(Trust(home, root.parent)) == MANY[30:]
    assert not (home / "trust").exists()
    assert len(list((home / "trust-earlier").iterdir())) == 2

    Trust(home, root).revoke(MANY[:20])
    write_earlier(home, key_of(home, root), approved=lines(MANY[40:]))
    # The earlier version was used again, and the user removed the database.
    assert trusted(Trust(home, root)) == MANY[40:]


def test_earlier_answers_of_git_and_the_choice_to_follow_are_imported(home, root):
    repository(root)
    answers = GitAnswers(positions={"": "x"}, ref="refs/heads/main", base="b")
    write_earlier(
        home,
        key_of(home, root),
        **{"state.json": '{"path": "x", "git": true, "follow": true}'},
        **{"git.json": json.dumps(answers._asdict())},
        committed=lines(MANY[20:25]),
        signed=lines(MANY[25:30]),
        followed=lines(MANY[30:40]),
    )
    trust = Trust(home, root)
    assert trusted(trust) == MANY[:40]
    assert [text for text in MANY if trust.approved(text)] == MANY[:20]
    assert trust.state.follow
    assert trust._approvals.answers == answers
    trust.follow(False)
    assert trusted(trust) == MANY[:30]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("approved", f"{MANY[0]}\nnonsense\n"),
        ("approved", f"{MANY[0].upper()}\n"),
        ("approved", f"{'0' * 24}{b'list'.hex()}{'a' * 32}\n"),
        ("approved", "format 2\n"),
        ("reviewed", "x\n"),
        ("state.json", "{"),
        ("state.json", "[]"),
        ("state.json", "[" * 100_000),
        ("state.json", '{"follow": 1, "path": "x"}'),
        ("state.json", '{"follow": "on", "path": "x", "git": false}'),
        ("state.json", '{"path": "/another"}'),
        ("state.json", '{"follow": true, "git": false, "path": "x", "format": 2}'),
        ("state.json", '{"follow": true, "git": true, "path": "x"}'),
        ("git.json", '{"onlyy": 1}'),
    ],
)
def test_damaged_earlier_lists_are_not_imported_and_others_are(home, root, name, content):
    in_git = {"state.json": '{"path": "x", "git": true, "follow": true}'}
    files = (in_git if name == "git.json" else {}) | {name: content}
    key, other = (key_of(home, place) for place in (root, root.parent))
    write_earlier(home, key, **files)
    write_earlier(home, other)
    trust = Trust(home, root)
    assert trusted(trust) == []
    assert not trust.state.follow
    assert trusted(Trust(home, root.parent)) == MANY[:20]
    trust.approve(MANY[:3])
    assert trusted(trust) == MANY[:3]


def test_ended_approvals_of_an_earlier_version_are_not_imported(home, root):
    folder = write_earlier(home, key_of(home, root), made="checkpoint_a\tmain\n")
    (folder / "state.json").unlink()
    trust = Trust(home, root)
    assert trusted(trust) == []
    assert trust.checkpoints() == {"checkpoint_a": "main"}


class Killed(BaseException):
    """The end of the process."""


@pytest.mark.parametrize("step", range(6))
@pytest.mark.parametrize("is_done", [True, False])
def test_an_import_that_is_killed_is_made_again(home, root, step, is_done):
    for key in [key_of(home, place) for place in (root, root.parent)]:
        write_earlier(home, key)
    left = step

    def killing(function):
        def call(*args, **options):
            nonlocal left
            left -= 1
            if left < 0 and not is_done:
                raise Killed
            result = function(*args, **options)
            if left < 0:
                raise Killed
            return result

        return call

    with (
        patch.object(Path, "rename", killing(Path.rename)),
        patch("mimo.project.approvals.Change.add", killing(approvals.Change.add)),
        patch("mimo.project.approvals.Change.set", killing(approvals.Change.set)),
        pytest.raises(Killed),
    ):
        Trust(home, root).trusted(MANY[0])
    assert trusted(Trust(home, root)) == MANY[:20]
    assert trusted(Trust(home, root.parent)) == MANY[:20]
    assert not (home / "trust").exists()
    assert (home / "trust-earlier").exists()


def test_processes_that_import_at_once_import_once(home, root):
    write_earlier(home, key_of(home, root), lines(digest(n) for n in range(5_000)))
    code = "import sys; from pathlib import Path; from mimo.project.trust import Trust;"
    code += "print(Trust(Path(sys.argv[1]), Path(sys.argv[2])).trusted(sys.argv[3]))"
    words = [sys.executable, "-c", code, str(home), str(root), digest(4_999)]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0] for process in running] == ["True\n"] * 4


def test_threads_approve_and_look_up_at_once(home, root):
    trust, failures = Trust(home, root), []

    def work(number):
        try:
            for text in range(number * 20, number * 20 + 20):
                trust.approve([digest(text)])
                assert trust.trusted(digest(text))
        except Exception as error:  # noqa: BLE001 - it is reported below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert all(trust.trusted(digest(text)) for text in range(120))


def test_a_row_without_a_project_has_no_approvals():
    assert not Approvals("").states(MANY[0])
    assert not Approvals("").states("")
    assert not Approvals("").states("no digest")
