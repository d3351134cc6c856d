"""Writes docs/lab/ten-tasks.md: ten tasks in mind and in other tools, in keystrokes and lines.

mind's lines are run, in the project of `scripts/screens.py`, and what they print is counted. The
lines of basic-memory are run with the same notes if `BASIC_MEMORY` names its program. The lines of
the other tools come from their documentation and were not run; their letters are counted.
"""

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from scripts.screens import ROOT, STORY, on_terminal, surroundings, write_story

PAGE = ROOT / "docs" / "lab" / "ten-tasks.md"

TEXT = "Send mails through a queue"

TASKS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "write down a decision",
        f"mind add -t mail --type decision '{TEXT}'",
        f"zk new --title '{TEXT}' decisions",
        f"bm tool write-note --title '{TEXT}' --folder decisions --tags mail --content '{TEXT}'",
        f"gh issue create -l decision -t '{TEXT}' -b ''",
    ),
    (
        "ask a question",
        "mind search 'how do people stay logged in'",
        "zk list --match 'stay logged in'",
        "bm tool search-notes 'how do people stay logged in'",
        "gh search issues --repo o/shop 'stay logged in'",
    ),
    (
        "list the newest",
        "mind list",
        "zk list --sort created-",
        "bm tool recent-activity",
        "jj log",
    ),
    (
        "read one",
        "mind show {jwt}",
        "zk list --format full 3k2a.md",
        "bm tool read-note decisions/use-jwt",
        "gh issue view 12",
    ),
    (
        "list those of last month",
        "mind list --when 'last month'",
        "zk list --created-after 'last month'",
        "bm tool recent-activity --timeframe 30d",
        "gh issue list -S 'created:>2026-10-01'",
    ),
    ("add a tag", "mind edit {jwt} --add-tag login", "", "", "gh issue edit 12 --add-label login"),
    ("take it back", "mind undo", "", "", "jj undo"),
    (
        "note that a decision failed",
        "mind evolve outcome uploads failed --reason 'Slow on mobile'",
        "",
        "",
        "gh issue close 12 -r 'not planned' -c 'Slow on mobile'",
    ),
    ("commit the notes alone", "mind sync", "", "", "jj commit notes -m 'Notes'"),
    ("compare two revisions", "mind diff HEAD~1..HEAD", "", "", "jj diff -f @-- -t @-"),
)
"""Each task with the line for mind, zk, basic-memory, and the nearest idiom of jj or gh.

An empty one has no command for it: the task is done in an editor, or with git.
"""

HEAD = """# Ten tasks

The same tasks in mind, [zk](https://github.com/zk-org/zk),
[basic-memory](https://github.com/basicmachines-co/basic-memory), and the nearest idiom of
[jj](https://github.com/jj-vcs/jj) or [gh](https://cli.github.com), which manage commits and issues
rather than notes. mind's lines were run at 80 columns, and *read* is the number of lines that they
printed. BASIC_MEMORY_RUN
The lines of zk, jj and gh were written by hand, not run, and compared with their documentation in
part: only their letters are counted, and their output is not known. A dash is a task without a
command: it is done in an editor, or with git. `make tasks` writes this page.

| task | mind: keys | read | basic-memory: keys | read | zk: keys | jj or gh: keys |
|---|---:|---:|---:|---:|---:|---:|
"""

RUN = """basic-memory {version} was run with the same notes, its search by words only, as
its model for meaning has to be downloaded: *read* counts the lines of its JSON."""
NOT_RUN = "The lines of basic-memory were not run."


class BasicMemory:
    """basic-memory with the notes of the story, in a home folder of its own."""

    def __init__(self, program: str, home: Path) -> None:
        """Writes the notes."""
        self._program = program
        self._surroundings = {"HOME": str(home), "PATH": os.environ["PATH"], "COLUMNS": "80"}
        self.version = self._run("--version").split()[-1]
        self._run("project", "add", "shop", str(home / "shop"))
        self._run("project", "default", "shop")
        settings = home / ".basic-memory" / "config.json"
        words_only = json.loads(settings.read_text("utf-8")) | {"semantic_search_enabled": False}
        settings.write_text(json.dumps(words_only), encoding="utf-8")
        for _, command, values in STORY:
            text = [str(value) for value in values.values() if isinstance(value, str)]
            if command != "evolve outcome":
                title = max(text[:2], key=len)
                note = ("--title", title[:60], "--folder", "notes", "--content", "\n\n".join(text))
                self._run("tool", "write-note", *note)
        self._run(
            "tool", "write-note", "--title", "Use JWT", "--folder", "decisions", "--content", "x"
        )

    def printed(self, line: str) -> str:
        """Returns the output of a line. Raises `CalledProcessError` if it fails."""
        return self._run(*shlex.split(line)[1:])

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            (self._program, *words),
            env=self._surroundings,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.rstrip("\n")


def page(root: Path, jwt: str, other: BasicMemory | None) -> str:
    """Returns the page; runs mind's commands, and those of the other tool."""
    rows, blocks = [], []
    for task, mind, *others in TASKS:
        line = mind.format(jwt=jwt)
        printed = on_terminal(root, line).rstrip("\n")
        zk, basic, nearest = others
        read = str(len(other.printed(basic).splitlines())) if other and basic else "–"
        ours = [str(keys(line)), str(printed.count("\n") + 1)]
        cells = [*ours, count(basic), read, count(zk), count(nearest)]
        rows.append(f"| {task} | {' | '.join(cells)} |\n")
        lines = "\n".join(text for text in (line, *others) if text)
        blocks.append(f"\n{task[0].upper()}{task[1:]}:\n\n```text\n{lines}\n```\n")
    ran = RUN.format(version=other.version) if other else NOT_RUN
    return (
        HEAD.replace("BASIC_MEMORY_RUN", ran) + "".join(rows) + "\n## The lines\n" + "".join(blocks)
    )


def keys(line: str) -> int:
    """Returns the number of keys that a line takes, without completion: its letters and Enter."""
    return len(line) + 1


def count(line: str) -> str:
    """Returns the keys of a line as a cell."""
    return str(keys(line)) if line else "–"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "shop"
        root.mkdir()
        os.environ |= surroundings(root)
        write_story(root)
        decided = (root / ".mind/decisions").glob("*.md")
        (jwt,) = (path.stem[-6:] for path in decided if "Use JWT" in path.read_text("utf-8"))
        home = Path(folder).resolve() / "basic"
        home.mkdir()
        program = os.environ.get("BASIC_MEMORY", "")
        other = BasicMemory(program, home) if program else None
        PAGE.write_text(page(root, jwt[:2], other), encoding="utf-8")


if __name__ == "__main__":
    main()
