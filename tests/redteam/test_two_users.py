"""Two users of a machine who share a group: with real users, which needs root."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import git

GROUP, ANN, BOB = 65_100, 65_101, 65_102

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
    bare = users.shared / "team.git"
    init = ("git", "init", "-q", "--bare", "--shared=group", "-b", "main", str(bare))
    assert users.run(ANN, users.shared, *init).status == 0
    clones = {user: users.home(user) / "shop" for user in (ANN, BOB)}

    def run(user: int, *words: str) -> str:
        ran = users.run(user, clones[user], *words)
        assert ran.status == 0, ran.output
        return ran.output

    users.run(ANN, users.home(ANN), "git", "clone", "-q", str(bare), "shop")
    run(ANN, "init")
    run(ANN, "add", "Tea at four")
    run(ANN, "sync")
    run(ANN, "git", "push", "-q", "-u", "origin", "main")
    users.run(BOB, users.home(BOB), "git", "clone", "-q", str(bare), "shop")
    run(BOB, "add", "Milk first")
    run(BOB, "sync", "--pull", "--push")
    run(ANN, "add", "Sugar last")
    run(ANN, "sync", "--pull", "--push")
    run(BOB, "sync", "--pull", "--push")
    for user in (ANN, BOB):
        listed = run(user, "list")
        assert all(text in listed for text in ("Tea at four", "Milk first", "Sugar last"))
    assert git(clones[ANN], "-c", "safe.directory=*", "fsck") == ""
    assert not [path for path in bare.rglob("*") if not path.stat().st_mode & 0o040]
