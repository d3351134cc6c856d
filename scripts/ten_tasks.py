"""Writes docs/ten-tasks.md: ten tasks in mind and in other tools, in keystrokes and lines.

mind's lines are run, in the project of `scripts/screens.py`, and what they print is counted. The
lines of the other tools come from their documentation and were not run; their letters are counted.
"""

import os
import tempfile
from pathlib import Path

from scripts.screens import ROOT, on_terminal, surroundings, write_story

PAGE = ROOT / "docs" / "ten-tasks.md"

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
printed. The lines of the others were written by hand, not run, and compared with their
documentation in part: only their letters are counted, and their output is not known. A dash is a
task without a command: it is done in an editor, or with git. `make tasks` writes this page.

| task | mind: keys | mind: read | zk: keys | basic-memory: keys | jj or gh: keys |
|---|---:|---:|---:|---:|---:|
"""


def page(root: Path, jwt: str) -> str:
    """Returns the page; runs mind's commands."""
    rows, blocks = [], []
    for task, mind, *others in TASKS:
        line = mind.format(jwt=jwt)
        printed = on_terminal(root, line).rstrip("\n")
        cells = [str(keys(line)), str(printed.count("\n") + 1), *(count(text) for text in others)]
        rows.append(f"| {task} | {' | '.join(cells)} |\n")
        lines = "\n".join(text for text in (line, *others) if text)
        blocks.append(f"\n{task[0].upper()}{task[1:]}:\n\n```text\n{lines}\n```\n")
    return HEAD + "".join(rows) + "\n## The lines\n" + "".join(blocks)


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
        PAGE.write_text(page(root, jwt[:2]), encoding="utf-8")


if __name__ == "__main__":
    main()
