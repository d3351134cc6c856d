"""Two users of a machine who share a group: with real users, which needs root."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import git
from tests.kit import put

GROUP, ANN, BOB = 65_100, 65_101, 65_102
ROUNDS = 2
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
        self.bare = self.shared / "team.git"
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
        safe = "".join(f"\tdirectory = {each}\n" for each in (users.shared, users.bare))
        for user in (ANN, BOB):
            name = users.home(user).name
            who = f"[user]\n\tname = {name}\n\temail = {name}@example.org\n"
            put(users.home(user) / ".gitconfig", f"{who}[safe]\n{safe}")
        yield users
    finally:
        shutil.rmtree(top)


def team(users: Users) -> dict[int, Path]:
    """Makes a bare repository of the group, and returns the clone of each user."""
    clone = ("git", "clone", "-q", str(users.bare), "shop")
    init = ("git", "init", "-q", "--bare", "--shared=group", "-b", "main", str(users.bare))
    clones = {user: users.home(user) / "shop" for user in (ANN, BOB)}
    for user, folder, words in (
        (ANN, users.shared, init),
        (ANN, users.home(ANN), clone),
        (ANN, clones[ANN], ("init",)),
        (ANN, clones[ANN], ("add", "Tea at four")),
        (ANN, clones[ANN], ("sync",)),
        (ANN, clones[ANN], ("git", "push", "-q", "-u", "origin", "main")),
        (BOB, users.home(BOB), clone),
    ):
        ran = users.run(user, folder, *words)
        assert ran.status == 0, ran.output
    return clones


def test_a_working_tree_serves_one_user_and_others_can_read_it(
    users: Users, record_property: Callable[[str, object], None]
) -> None:
    """They can also read it while its user writes."""
    tree, acknowledged = users.shared, list[str]()
    for words in (("git", "init", "-q", "--shared=group"), ("init",), ("add", "Tea at four")):
        assert users.run(ANN, tree, *words).status == 0

    refused = users.run(BOB, tree, "list")
    assert refused.status == 5
    assert "belongs to another user" in refused.output
    assert users.run(BOB, tree, "config", "safe.projects", str(tree)).status == 0

    def write() -> None:
        for number in range(ROUNDS):
            added = users.run(ANN, tree, "add", f"The kettle {number} is new", "--json")
            assert added.status == 0, added.output
            text = f"The kettle {number} is old"
            edited = users.run(ANN, tree, "edit", json.loads(added.output)["id"], "--content", text)
            assert edited.status == 0, edited.output
            acknowledged.append(text)

    def read() -> None:
        while True:
            is_last, before = writing.done(), list(acknowledged)
            listed = users.run(BOB, tree, "list", "--json")
            searched = users.run(BOB, tree, "search", "tea", "--json")
            assert (listed.status, searched.status) == (0, 0), listed.output + searched.output
            assert [text for text in before if text not in listed.output] == []
            assert "Tea at four" in searched.output
            for line in ("add Milk", "value put agent.a k 1", "undo"):
                written = users.run(BOB, tree, *line.split())
                assert written.status == 1, written.output
                assert "work in a clone of your own" in written.output
            if is_last:
                return

    with ThreadPoolExecutor() as both:
        writing = both.submit(write)
        both.submit(read).result()
        writing.result()
    health = users.run(BOB, tree, "doctor")
    assert health.status == 0, health.output
    assert "you can only read" in health.output
    assert users.run(ANN, tree, "doctor").output.endswith("healthy\n")
    assert (tree / ".mind" / "facts").stat().st_gid == GROUP
    record_property("tried", 2)


def test_two_users_at_once_lose_nothing_in_clones_of_one_repository(
    users: Users, record_property: Callable[[str, object], None]
) -> None:
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
    assert not [path for path in users.bare.rglob("*") if not path.stat().st_mode & 0o040]
    record_property("tried", 2)
