"""Two users of a machine who share a group: with real users, which needs root."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import git

GROUP, ANN, BOB = 65_100, 65_101, 65_102
ROUNDS = 3
"""The changes of each user, while the other one works too."""

pytestmark = [
    pytest.mark.attack("other user of a shared group"),
    pytest.mark.skipif(
        os.name != "posix" or os.geteuid() != 0 or not shutil.which("setpriv"),
        reason="only root can act as two users, with setpriv",
    ),
]


class Ran(NamedTuple):
    """The end of a command."""

    status: int
    output: str


class Users:
    """Two users with a home each, and a folder that both may change."""

    def __init__(self, top: Path) -> None:
        self.top, self.shared = top, top / "shared"
        for name, user in (("ann", ANN), ("bob", BOB), ("shared", ANN)):
            (top / name).mkdir()
            os.chown(top / name, user, GROUP)
        self.shared.chmod(0o2775)
        top.chmod(0o755)

    def home(self, user: int) -> Path:
        return self.top / ("ann" if user == ANN else "bob")

    def run(self, user: int, folder: Path, *words: str) -> Ran:
        """Runs `mind` or `git` as a user."""
        program = words if words[0] == "git" else (sys.executable, "-m", "mimo", *words)
        become = ("setpriv", f"--reuid={user}", f"--regid={GROUP}", "--clear-groups")
        kept = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MIND_BACKGROUND": "off"}
        done = subprocess.run(
            [*become, *program],
            check=False,
            cwd=folder,
            env=kept | {"HOME": str(self.home(user)), "PYTHONPATH": os.pathsep.join(sys.path)},
            umask=0o002,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return Ran(done.returncode, done.stdout)


@pytest.fixture
def users() -> Iterator[Users]:
    top = Path(tempfile.mkdtemp(prefix="mind-users-", dir="/tmp"))
    try:
        users = Users(top)
        if users.run(ANN, top, "config").status:
            pytest.skip("other users can't run this program")
        for user, name in ((ANN, "ann"), (BOB, "bob")):
            for setting in (("user.name", name), ("user.email", f"{name}@example.org")):
                users.run(user, top, "git", "config", "--global", *setting)
            for path in (users.shared, users.shared / "team.git", users.shared / "team.git" / "."):
                place = ("--add", "safe.directory", str(path))
                users.run(user, top, "git", "config", "--global", *place)
        yield users
    finally:
        shutil.rmtree(top)


def team(users: Users) -> dict[int, Path]:
    """Makes a bare repository of the group, and returns the clone of each user."""
    bare = users.shared / "team.git"
    init = ("git", "init", "-q", "--bare", "--shared=group", "-b", "main", str(bare))
    first = [
        (users.shared, init),
        (users.home(ANN), ("git", "clone", "-q", str(bare), "shop")),
        *((users.home(ANN) / "shop", words) for words in FIRST),
    ]
    for folder, words in first:
        ran = users.run(ANN, folder, *words)
        assert ran.status == 0, ran.output
    assert users.run(BOB, users.home(BOB), "git", "clone", "-q", str(bare), "shop").status == 0
    return {user: users.home(user) / "shop" for user in (ANN, BOB)}


FIRST = (
    ("init",),
    ("add", "Tea at four"),
    ("sync",),
    ("git", "push", "-q", "-u", "origin", "main"),
)


def test_a_working_tree_serves_one_user_and_others_can_read_it(users: Users) -> None:
    tree = users.shared
    assert users.run(ANN, tree, "git", "init", "-q", "--shared=group").status == 0
    assert users.run(ANN, tree, "init").status == 0
    assert users.run(ANN, tree, "add", "Tea at four").status == 0

    refused = users.run(BOB, tree, "list")
    assert refused.status == 5
    assert "belongs to another user" in refused.output
    assert users.run(BOB, tree, "config", "safe.projects", str(tree)).status == 0
    for line in ("list", "search tea"):
        read = users.run(BOB, tree, *line.split())
        assert (read.status, "Tea at four" in read.output) == (0, True), read.output
    for line in ("add Milk", "value put agent.a k 1", "undo"):
        written = users.run(BOB, tree, *line.split())
        assert written.status == 1, written.output
        assert "work in a clone of your own" in written.output
    health = users.run(BOB, tree, "doctor")
    assert health.status == 0, health.output
    assert "you can only read" in health.output

    assert users.run(ANN, tree, "add", "Sugar last").status == 0
    assert users.run(ANN, tree, "doctor").output.endswith("healthy\n")
    assert (tree / ".mind" / "facts").stat().st_gid == GROUP


def test_two_users_share_a_bare_repository_of_their_group(users: Users) -> None:
    clones = team(users)

    def run(user: int, *words: str) -> str:
        ran = users.run(user, clones[user], *words)
        assert ran.status == 0, ran.output
        return ran.output

    run(BOB, "add", "Milk first")
    run(BOB, "sync", "--pull", "--push")
    run(ANN, "add", "Sugar last")
    run(ANN, "sync", "--pull", "--push")
    run(BOB, "sync", "--pull", "--push")
    for user in (ANN, BOB):
        listed = run(user, "list")
        assert all(text in listed for text in ("Tea at four", "Milk first", "Sugar last"))
    bare = users.shared / "team.git"
    assert git(clones[ANN], "-c", "safe.directory=*", "fsck", "--no-dangling") == ""
    assert not [path for path in bare.rglob("*") if not path.stat().st_mode & 0o040]


def test_two_users_at_once_lose_nothing_in_clones_of_one_repository(users: Users) -> None:
    clones = team(users)

    def work(user: int) -> list[str]:
        """Adds, edits, lists, searches and shares in a loop, and returns the final texts."""
        name, texts = users.home(user).name, list[str]()

        def run(*words: str) -> str:
            ran = users.run(user, clones[user], *words)
            assert ran.status == 0, f"{name}: {words}: {ran.output}"
            return ran.output

        for number in range(ROUNDS):
            added = json.loads(run("add", f"The {name} kettle {number} is new", "--json"))
            texts.append(f"The {name} kettle {number} is old")
            run("edit", added["id"], "--content", texts[-1])
            listed, searched = run("list", "--json"), run("search", texts[-1], "--json")
            assert [text for text in texts if text not in listed] == []
            assert texts[-1] in searched
            share(user)
        return texts

    def share(user: int) -> None:
        """Pulls and pushes; the other user may have pushed in between."""
        for _ in range(20):
            ran = users.run(user, clones[user], "sync", "--pull", "--push")
            if ran.status == 0:
                return
            assert ran.status == 1, ran.output
            assert "internal" not in ran.output.lower()
        pytest.fail(f"{users.home(user).name} could not push")

    with ThreadPoolExecutor() as both:
        texts = [text for some in both.map(work, (ANN, BOB)) for text in some]
    assert len(texts) == 2 * ROUNDS
    for user in (ANN, BOB, ANN):
        share(user)
    for user in (ANN, BOB):
        listed = users.run(user, clones[user], "list", "--json").output
        assert [text for text in (*texts, "Tea at four") if text not in listed] == []
        assert "is new" not in listed
        health = users.run(user, clones[user], "doctor")
        assert health.status == 0, health.output
    assert git(clones[ANN], "-c", "safe.directory=*", "fsck", "--no-dangling") == ""


def test_a_user_reads_a_working_tree_while_another_one_writes_it(users: Users) -> None:
    tree, acknowledged = users.shared, list[str]()
    for words in (("git", "init", "-q", "--shared=group"), ("init",), ("add", "Tea at four")):
        assert users.run(ANN, tree, *words).status == 0
    assert users.run(BOB, tree, "config", "safe.projects", str(tree)).status == 0

    def write() -> None:
        for number in range(2 * ROUNDS):
            added = users.run(ANN, tree, "add", f"The kettle {number} is new", "--json")
            assert added.status == 0, added.output
            text = f"The kettle {number} is old"
            edited = users.run(ANN, tree, "edit", json.loads(added.output)["id"], "--content", text)
            assert edited.status == 0, edited.output
            acknowledged.append(text)

    def read() -> int:
        times = 0
        while not writing.done() or not times:
            before = list(acknowledged)
            listed = users.run(BOB, tree, "list", "--json")
            searched = users.run(BOB, tree, "search", "tea", "--json")
            refused = users.run(BOB, tree, "add", "Milk")
            assert (listed.status, searched.status) == (0, 0), listed.output + searched.output
            assert [text for text in before if text not in listed.output] == []
            assert "Tea at four" in searched.output
            assert refused.status == 1
            assert "work in a clone of your own" in refused.output
            times += 1
        return times

    with ThreadPoolExecutor() as both:
        writing = both.submit(write)
        reading = both.submit(read)
        assert reading.result() > 1
        writing.result()
    assert users.run(ANN, tree, "doctor").status == 0
