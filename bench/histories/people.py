"""Two people, their clones, and the git and the mind that they run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mimo.call import Call
from mimo.mind import Mind
from mimo.operations import syncing
from mimo.project import projects
from mimo.project.init import init

START = datetime(2090, 11, 20, 9, tzinfo=UTC)
"""Later than the time of this machine: commits count from the first approval on."""


class GitFailed(Exception):
    """A git command that must succeed failed."""


class Clock:
    """The time of a history: each commit is a minute later."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self) -> None:
        self.now += timedelta(minutes=1)


class Person:
    """A user with a home, settings of git, and a clone."""

    def __init__(self, name: str, top: Path, clock: Clock, chance: random.Random) -> None:
        """Makes the home. `top` is the folder of the history."""
        self.name, self.clock, self._chance = name, clock, chance
        home = top / name
        home.mkdir()
        self.settings = home / "gitconfig"
        self.settings.write_text(
            f"[user]\n\tname = {name}\n\temail = {name}@example.com\n"
            "[init]\n\tdefaultBranch = main\n[core]\n\teditor = true\n\tfsync = none\n"
            "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[advice]\n\tdetachedHead = false\n"
            '[pull]\n\trebase = false\n[protocol "file"]\n\tallow = always\n'
        )
        self.home = home / "mind"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environ = {
            "HOME": str(home), "MIND_HOME": str(self.home), "MIND_BACKGROUND": "off",
            "GIT_CONFIG_GLOBAL": str(self.settings), "GIT_CONFIG_NOSYSTEM": "1", "PATH": path,
            "GIT_TERMINAL_PROMPT": "0", "PYTHONUTF8": "1",
        }  # fmt: skip
        self.commands: Counter[str] = Counter()
        """The number of git commands, by name."""
        self._minds: dict[Path, Call] = {}

    def act(self) -> None:
        """Makes this process, in which mind runs, one of this user."""
        os.environ.update(self._environ)

    def git(self, at: Path, *words: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        """Returns the result of a git command. Raises `GitFailed` unless it may fail."""
        self.act()
        self.commands[words[0]] += 1
        self.clock.forward()
        date = self.clock.now.isoformat()
        result = subprocess.run(
            ["git", *words], cwd=at, check=False, stdin=subprocess.DEVNULL, capture_output=True,
            env={**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
            encoding="utf-8", errors="replace",
        )  # fmt: skip
        if result.returncode and not fails:
            raise GitFailed(f"git {' '.join(words)}: {result.stdout}{result.stderr}")
        return result

    def ask(self, at: Path, *words: str) -> str:
        """Returns the output of a git command."""
        return self.git(at, *words).stdout.strip()

    def call(self, root: Path, *, fresh: bool = False) -> Call:
        """Returns the opened memory of a project; `fresh` for another one in this process."""
        self.act()
        if fresh or root not in self._minds:
            opened = Call(
                Mind(
                    home=self.home,
                    project=projects.explicit(root, self.home),
                    clock=self.clock,
                    randomness=self._chance.randbytes,
                    environ=dict(os.environ),
                )
            )
            if fresh:
                return opened
            self._minds[root] = opened
        return self._minds[root]

    def init(self, root: Path) -> None:
        """Runs `mind init`, or joins a project that came with a clone."""
        self.act()
        init(root, self.home, now=self.clock.now)

    def install(self, root: Path) -> None:
        """Installs the merge driver."""
        self.act()
        syncing.install(root)

    def close(self) -> None:
        """Closes the memories."""
        for call in self._minds.values():
            call.mind.close()


def lines(output: str) -> Sequence[str]:
    """Returns the lines that are not empty."""
    return [line for line in output.splitlines() if line]
