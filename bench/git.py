"""Measure memory in git: sync, merges, searches at a revision, and how often merges conflict.

One repository with many memories and branches is made in a temporary folder. Times are wall time
in seconds of whole commands, each beside `python -c pass` of the same environment.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from mimo.data.disk import system_clock
from mimo.memory.codec.file import Parsed, parse, render
from mimo.memory.codec.splice import splice
from mimo.memory.model import Kind, Link, Memory, Outcome, Section
from mimo.project.git import DRIVER

MIND = [sys.executable, "-m", "mimo"]
_WORDS = (
    "token gateway upload proxy nightly index lock postgres order report retry payment cache page "
    "locale price flag checkout release test fixture queue worker deploy rollback schema session"
).split()


def main() -> None:
    """Makes the repository, measures, and prints a table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--memories", type=int, default=10_000)
    arguments.add_argument("--branches", type=int, default=200)
    arguments.add_argument("--changes", type=int, default=500)
    asked = arguments.parse_args()
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder), asked.memories, asked.branches, asked.changes)
        bench.make()
        bench.measure()


class Bench:
    """A repository, and what is done with it."""

    def __init__(self, folder: Path, memories: int, branches: int, changes: int) -> None:
        """Take an empty folder and the sizes."""
        self.root = folder / "project"
        self.memories, self.branches, self.changes = memories, branches, changes
        self.chance = random.Random(7)
        identity = {
            f"GIT_{who}_{what}": "ann@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        program = folder / "bin" / "mind"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mimo "$@"\n')
        program.chmod(0o755)
        path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        home = {"MIND_HOME": str(folder / "home"), "HOME": str(folder), "PATH": path}
        self.environ = {**os.environ, **identity, **home}

    def make(self) -> None:
        """Write the memories, commit them, and make branches that change a few each."""
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.mind("init")
        for number in range(self.memories):
            self.path(number).parent.mkdir(exist_ok=True)
            self.path(number).write_bytes(render(self.memory(number)))
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        self.git("tag", "v1")
        for branch in range(self.branches):
            self.git("checkout", "-q", "-b", f"b{branch}", "v1")
            for number in self.chance.sample(range(self.memories), 5):
                self.change(number)
            self.git("commit", "-qam", f"branch {branch}")
        self.git("checkout", "-q", "main")

    def measure(self) -> None:
        """Print one line for each thing that is measured."""
        self.row("python -c pass", lambda: self.run(sys.executable, "-c", "pass"))
        self.row("mind index, all new", lambda: self.mind("index"))
        self.mind("add", "Something that was just remembered")
        self.row("mind sync, one new memory", lambda: self.mind("sync"))
        self.concurrent()
        self.git("tag", "v2")
        self.row(
            "mind search --at v1, first look", lambda: self.mind("search", "--at", "v1", "token")
        )
        self.row("mind search --at v1, again", lambda: self.mind("search", "--at", "v1", "token"))
        self.row("mind search, the present", lambda: self.mind("search", "token"))
        self.row("mind search, again", lambda: self.mind("search", "token"))
        self.row("mind diff v1..v2", lambda: self.mind("diff", "v1..v2"))
        self.row("mind log", lambda: self.mind("log"))

    def concurrent(self) -> None:
        """Measure the merge of two branches that both changed the same memories."""
        chosen = self.chance.sample(range(self.memories), self.changes)
        for side in ("left", "right"):
            self.git("checkout", "-q", "-b", side, "main")
            for number in chosen:
                self.change(number)
            self.git("commit", "-qam", side)
        self.git("checkout", "-q", "-b", "as-text", "left")
        self.git("config", "merge.mind.driver", "git merge-file %A %O %B")
        self.row("git merge as text", lambda: self.git("merge", "-q", "right", fine=False))
        stuck = len(set(self.git("diff", "--name-only", "--diff-filter=U").split()))
        print(f"| of {self.changes} memories changed on both, conflicts as text | {stuck} |")
        self.git("merge", "--abort")
        self.git("config", "merge.mind.driver", DRIVER)
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "left")
        self.row("git merge with the driver", lambda: self.git("merge", "-q", "right"))
        both = self.git("grep", "-l", "## Competing", "--", ".mind", fine=False).split()
        print(f"| conflicts with the driver | 0 |\n| files with competing versions | {len(both)} |")

    def memory(self, number: int) -> Memory:
        """Returns a memory of a few lines."""
        lines = [" ".join(self.chance.choices(_WORDS, k=12)) for _ in range(3)]
        return Memory(
            id=f"decision_{number:06}", type=Kind.DECISION, content="\n\n".join(lines),
            created=system_clock().replace(microsecond=0), topic=self.chance.choice(_WORDS),
            tags=tuple(sorted(set(self.chance.choices(_WORDS, k=2)))), confidence=0.5,
            sections={Section.REASONING: " ".join(self.chance.choices(_WORDS, k=10))},
        )  # fmt: skip

    def change(self, number: int) -> None:
        """Do to a memory one of the things that people and agents do."""
        path = self.path(number)
        data = path.read_bytes()
        parsed = parse(data, path=f".mind/decisions/{path.name}", modified=system_clock())
        assert isinstance(parsed, Parsed)
        before, word = parsed.memory, self.chance.choice(_WORDS)
        fields: dict[str, object] = self.chance.choice([
            {"tags": (*before.tags, f"{word}-{number}-{self.chance.randrange(99)}")},
            {"confidence": self.chance.choice((0.1, 0.3, 0.8, 0.9))},
            {"outcome": self.chance.choice(list(Outcome))},
            {"importance": self.chance.choice((0.2, 0.9))},
            {"links": (*before.links, Link(to=f"decision_{self.chance.randrange(9999):06}"))},
            {"content": before.content.replace("\n\n", f" {word}\n\n", 1)},
            {"content": f"{before.content} {word}"},
            {"sections": {**before.sections, Section.OUTCOME: f"- {word}"}},
        ])  # fmt: skip
        after = Memory(**{**{n: getattr(before, n) for n in before.__dataclass_fields__}, **fields})
        path.write_bytes(splice(data, before, after, path=f".mind/decisions/{path.name}"))

    def path(self, number: int) -> Path:
        """Returns the file of a memory."""
        return self.root / ".mind" / "decisions" / f"decision_{number:06}.md"

    def row(self, name: str, do: Callable[[], object]) -> None:
        """Print how long something took."""
        start = time.perf_counter()
        do()
        print(f"| {name} | {time.perf_counter() - start:.2f} s |", flush=True)

    def mind(self, *words: str) -> str:
        """Run mind as people do."""
        return self.run(*MIND, *words)

    def git(self, *words: str, fine: bool = True) -> str:
        """Run git as people do."""
        return self.run("git", *words, fine=fine)

    def run(self, *words: str, fine: bool = True) -> str:
        """Returns what a program prints; ends the run where it fails."""
        done = subprocess.run(
            words,
            cwd=self.root,
            env=self.environ,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if fine and done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout


if __name__ == "__main__":
    main()
