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

from mimo.data import files, sqlite
from mimo.data.disk import blake2b
from mimo.errors import StorageFailed
from mimo.memory.approval import approval_of
from mimo.project import approvals
from mimo.project.approvals import APPROVED, ApprovalDatabase, Approvals
from mimo.project.location import GitAnswers
from mimo.project.memories import approvals_of
from mimo.project.trust import Trust
from tests.conftest import git
from tests.kit import repository


def digest(number):
    return hashlib.sha256(str(number).encode()).hexdigest()


MANY = [digest(number) for number in range(60)]
TEXTS = {f".mind/facts/{number}.md": str(number).encode() for number in range(60)}
"""The files with these digests."""
NAMES = [approval_of(*text) for text in TEXTS.items()]
"""The names that approve them."""


@pytest.fixture
def queries(monkeypatch):
    """The queries of approvals."""
    queries, ask = list[str](), ApprovalDatabase.ask

    def asking(self, query, *values):
        queries.append(query)
        return ask(self, query, *values)

    monkeypatch.setattr(ApprovalDatabase, "ask", asking)
    return queries


@pytest.fixture
def root(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home" / ".mind"


def trusted(trust, texts=MANY):
    return [text for text in texts if trust.trusted(text)]


def texts_of(placed):
    return {text for text, _ in placed}


class Two(RuleBasedStateMachine):
    """Two processes change the approvals of two projects, as sets in memory are changed.

    The sets have texts with their files, if these are known.
    """

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(self.folder.name, ".mind")
        self.roots = [Path(self.folder.name, name) for name in ("a", "b")]
        for path in self.roots:
            path.mkdir()
        self.open = {(who, where): self.new(where) for who in range(2) for where in range(2)}
        self.expected: list[set[tuple[str, str]]] = [set(), set()]
        self.reviewed: list[set[tuple[str, str]]] = [set(), set()]
        self.retired: list[set[str]] = [set(), set()]
        self.follow = [False, False]
        self.places: list[set[str]] = [set(), set()]

    def new(self, where):
        return Trust(self.home, self.roots[where])

    who, where = st.integers(0, 1), st.integers(0, 1)
    some = st.sets(st.sampled_from(MANY), max_size=12)
    file = st.sampled_from(["", "log", "policy"])

    def end(self, where, ended):
        """Takes texts from files; those that no file has any more are retired."""
        old_texts = texts_of(self.expected[where])
        self.expected[where] -= ended
        self.reviewed[where] -= ended
        self.retired[where] |= old_texts - texts_of(self.expected[where])

    @rule(who=who, where=where, some=some, reviewed=some, file=file)
    def approve(self, who, where, some, reviewed, file):
        paths = dict.fromkeys(some, file) if file else {}
        new = self.open[who, where].approve(some, reviewed=some & reviewed, paths=paths)
        assert new == len(some - texts_of(self.expected[where]))
        self.expected[where] |= {(text, file) for text in some}
        self.reviewed[where] |= {(text, file) for text in some & reviewed}
        self.retired[where] -= some

    @rule(who=who, where=where, file=file.filter(bool), some=some)
    def retire(self, who, where, file, some):
        self.open[who, where].retire({file: some})
        texts = self.expected[where]
        self.end(where, {text for text in texts if text[1] == file and text[0] not in some})

    @rule(who=who, where=where, some=some)
    def revoke(self, who, where, some):
        ended = {text for text in self.expected[where] if text[0] in some}
        assert self.open[who, where].revoke(some) == len(texts_of(ended))
        self.end(where, ended)

    @rule(who=who, where=where)
    def reopen(self, who, where):
        self.open[who, where] = self.new(where)

    @rule(who=who, where=where)
    def close(self, who, where):
        self.open[who, where].close()

    @rule(who=who, where=where)
    def forget(self, who, where):
        self.open[who, where].forget()
        for values in (self.expected, self.reviewed, self.retired):
            values[where].clear()
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
            for values in (self.expected, self.reviewed, self.retired, self.places):
                values[:] = set(), set()
            self.follow = [False, False]

    @invariant()
    def all_agree_with_the_sets(self):
        for (_, where), trust in self.open.items():
            expected, follow = texts_of(self.expected[where]), self.follow[where]
            assert {text for text in MANY if trust.approved(text)} == expected
            assert set(filter(trust.checker(), MANY)) == (set(MANY) if follow else expected)
            assert trust.reviewed() == texts_of(self.reviewed[where])
            assert set(filter(trust.has_come_back, MANY)) == self.retired[where]
            assert trust.trusted_digests(60) == (None if follow else expected)
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


@pytest.mark.parametrize("number", [100, 3_000])
def test_many_lookups_read_all_texts_once_and_few_read_only_what_they_ask_for(
    home, root, queries, number
):
    texts = [digest(text) for text in range(number)]
    Trust(home, root).approve(texts)
    current = Trust(home, root)
    check = current.checker()
    queries.clear()
    assert check(texts[3])
    assert not check(digest("other"))
    assert sum("digest IN" in query for query in queries) == 2
    assert not check(digest("other"))
    assert current.checker(texts[4:50]) is check
    assert all(map(check, texts[3:50]))
    assert sum("digest IN" in query for query in queries) == 3
    assert all(map(check, texts * 2))
    assert sum(query.endswith("state)") for query in queries) == 1
    assert sum("digest IN" in query for query in queries) <= max(50, number // 40)


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
    assert trusted(trust, NAMES) == NAMES[:20]
    trust.follow(True)
    assert trust.state.follow
    assert states() == {"committed": 20, "followed": 20}
    (root / ".mind" / "facts" / "3.md").unlink()
    commit([])
    assert not trust.trusted(NAMES[3])
    assert states() == {"committed": 19, "followed": 19, "retired": 1}
    trust.follow(False)
    assert trust.trusted(NAMES[1])
    assert states() == {"committed": 19, "retired": 1}
    assert trust.revoke(NAMES[:2]) == 2
    commit(range(20, 30))
    for each in (trust, Trust(home, root)):
        assert trusted(each, NAMES) == [NAMES[2], *NAMES[4:30]]
        assert not each.approved(NAMES[5])


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


def carrying(home, root):
    """Returns approvals that are carried over to the files of all texts."""
    return Trust(home, root, texts=TEXTS.items)


def carried(home, root):
    return trusted(carrying(home, root), NAMES)


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
    assert trusted(Trust(home, root), [*MANY, *NAMES]) == []
    for trust in (carrying(home, root), Trust(home, root)):
        assert trusted(trust, [*MANY, *NAMES]) == NAMES[:20]
        assert not trust.approved(nonce + listed)
        assert trust.reviewed() == frozenset(NAMES[3:20])
        assert trust.checkpoints() == {"checkpoint_a": "main", "checkpoint_b": None}
        assert not trust.state.follow
    assert carried(home, root.parent) == NAMES[30:]
    assert not (home / "trust").exists()
    assert len(list((home / "trust-earlier").iterdir())) == 2

    Trust(home, root).revoke(NAMES[:20])
    write_earlier(home, key_of(home, root), approved=lines(MANY[40:]))
    # The earlier version was used again, and the user removed the database.
    assert carried(home, root) == NAMES[40:]


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
    trust = carrying(home, root)
    assert trusted(trust, NAMES) == NAMES[:40]
    assert [text for text in NAMES if trust.approved(text)] == NAMES[:20]
    assert trust.state.follow
    assert trust._approvals.answers == answers
    trust.follow(False)
    assert trusted(trust, NAMES) == NAMES[:30]


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
    trust = carrying(home, root)
    assert trusted(trust, NAMES) == []
    assert not trust.state.follow
    assert carried(home, root.parent) == NAMES[:20]
    trust.approve(MANY[:3])
    assert trusted(trust) == MANY[:3]


def test_ended_approvals_of_an_earlier_version_are_not_imported(home, root):
    folder = write_earlier(home, key_of(home, root), made="checkpoint_a\tmain\n")
    (folder / "state.json").unlink()
    trust = carrying(home, root)
    assert trusted(trust, NAMES) == []
    assert trust.checkpoints() == {"checkpoint_a": "main"}


class Killed(BaseException):
    """The end of the process."""


@pytest.mark.parametrize("step", [0, 1, 8, 12, 14, 15])
@pytest.mark.parametrize("is_done", [True, False])
def test_an_import_that_is_killed_is_made_again(home, root, step, is_done, monkeypatch):
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

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", killing(Path.rename))
        for name in ("set", "add", "add_earlier", "forget_earlier"):
            patched.setattr(approvals.Change, name, killing(getattr(approvals.Change, name)))
        with pytest.raises(Killed):
            carrying(home, root).trusted(NAMES[0])
    assert carried(home, root) == NAMES[:20]
    assert carried(home, root.parent) == NAMES[:20]
    assert not (home / "trust").exists()
    assert (home / "trust-earlier").exists()


IMPORTER = """
import sys
from pathlib import Path
from mimo.project.trust import Trust
from tests.project.test_approvals import NAMES, TEXTS
trust = Trust(Path(sys.argv[1]), Path(sys.argv[2]), texts=TEXTS.items)
print(trust.trusted(*NAMES))
"""


def test_processes_that_import_at_once_import_once(home, root):
    write_earlier(home, key_of(home, root), lines(digest(n) for n in range(5_000)))
    words = [sys.executable, "-c", IMPORTER, str(home), str(root)]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0] for process in running] == ["True\n"] * 4


FIRST_SCHEMA = """CREATE TABLE project (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, folder TEXT NOT NULL,
    follow TEXT, answers TEXT, version INTEGER NOT NULL
);
CREATE TABLE approval (
    project INTEGER NOT NULL, digest BLOB NOT NULL, state TEXT NOT NULL,
    path BLOB NOT NULL, kind TEXT NOT NULL, since INTEGER,
    PRIMARY KEY (project, digest, state, path, kind)
) WITHOUT ROWID;
CREATE TABLE checkpoint (
    project INTEGER NOT NULL, id TEXT NOT NULL, branch TEXT, PRIMARY KEY (project, id)
) WITHOUT ROWID"""
LOG, POLICY, PROCEDURE = ".mind/MEMORY.md", ".mind/policy.yaml", ".mind/procedures/greet@1.md"
ENTRIES = b"## Gotchas\n- old -> one\n- new -> two\n"
OTHERS = {LOG: ENTRIES, POLICY: b"p", PROCEDURE: b"q", ".mind/config.toml": b"format = 1\n"}


def write_first(home, root, digests, schema=FIRST_SCHEMA):
    """Writes a database of the first schema, with the approved digests of a project."""
    key = key_of(home, root)
    with closing(sqlite3.connect(home / "trust.db")) as database:
        database.executescript(f"{schema}; PRAGMA user_version = 1")
        database.execute("INSERT INTO project VALUES (1, ?, 'x', 'off', NULL, 1)", (key,))
        rows = ((bytes.fromhex(text), state) for text in digests for state in STATES)
        database.executemany("INSERT INTO approval VALUES (1, ?, ?, 'a.md', 'memory', 0)", rows)
        database.execute("INSERT INTO checkpoint VALUES (1, 'checkpoint_a', 'main')")
        database.commit()


STATES = "approved", "reviewed"


def test_digests_of_the_first_schema_are_carried_over_to_the_files_that_have_them(home, root):
    policy = blake2b(POLICY.encode(), b"p", size=32).hex()
    procedure = blake2b(b".mind/procedures/", b"q", size=32).hex()
    write_first(home, root, [*MANY[:20], files.digest(ENTRIES), policy, procedure, digest("gone")])
    assert trusted(Trust(home, root), [*MANY, *NAMES]) == []
    trust = Trust(home, root, texts=(TEXTS | OTHERS).items)
    others = {name: path for path, data in OTHERS.items() for name in approvals_of(path, data)}
    assert trusted(trust, [*MANY, *NAMES, *others]) == [*NAMES[:20], *others]
    assert [*others.values()] == [LOG, *OTHERS], "each entry of the log"
    settings = {approval_of(".mind/config.toml", b"format = 1\n")}
    assert trust.reviewed() == {*NAMES[:20], *others} - settings
    assert trust.checkpoints() == {"checkpoint_a": "main"}

    later = {".mind/facts/new.md": b"gone", ".mind/decisions/1.md": b"1"}
    again = Trust(home, root, texts=later.items)
    assert trusted(again, [approval_of(*text) for text in later.items()]) == []


def test_digests_approve_no_policy_and_no_procedure_with_the_bytes_of_a_memory(home, root):
    write_first(home, root, [files.digest(data) for data in OTHERS.values()])
    trust = Trust(home, root, texts=OTHERS.items)
    assert not trust.trusted(approval_of(POLICY, b"p"))
    assert not trust.trusted(approval_of(PROCEDURE, b"q"))


def test_a_database_that_is_not_of_the_first_schema_is_damaged(home, root):
    write_first(home, root, MANY, f"{FIRST_SCHEMA}; CREATE TABLE other (id)")
    trust = carrying(home, root)
    assert trusted(trust, NAMES) == []
    assert "mind did not create it" in (trust.state.problem or "")


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
    assert not Approvals("").has(MANY[0], APPROVED)
    assert not Approvals("").has("", APPROVED)
    assert not Approvals("").has("no digest", APPROVED)


def test_a_text_is_looked_up_once_with_others_also_if_none_of_them_is_approved(home, root, queries):
    Trust(home, root).approve(MANY[:1])
    current = Trust(home, root)
    check = current.checker([*MANY[:5], "no digest", ""])
    assert [name for name in [*MANY[:5], "no digest", ""] if check(name)] == MANY[:1]
    assert not current.trusted(*MANY[:5])
    assert not check("neither")
    assert [query.count("?") - 1 for query in queries if "digest IN" in query] == [5]


def test_many_texts_that_are_looked_up_at_once_are_read_with_all_others(home, root, queries):
    names = [digest(number) for number in range(600)]
    Trust(home, root).approve(names[:599])
    current = Trust(home, root)
    check = current.checker(names)
    assert [name for name in names if not check(name)] == names[599:]
    assert sum("FROM approval" in query for query in queries) == 1


def test_while_a_text_is_looked_up_another_thread_finds_it_approved_too():
    name, seen = bytes.fromhex(MANY[0]), list[bool]()

    def rows():
        if not seen:
            seen.append(False)  # Until another thread has asked.
            seen[0] = current.has(MANY[0], APPROVED)
        yield name, APPROVED

    current = Approvals("", ask=lambda *_: rows())
    assert current.has(MANY[0], APPROVED)
    assert seen == [True]
