"""Takes pictures of real runs: docs/images/terminal.svg for the README, and docs/screens.md.

Each command runs on a terminal of 80 columns, in a scratch project with the memory of a small team.
The clock is fixed, so that another run gives the same pictures.
"""

import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.cli.main import main as run
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.project import projects
from mimo.project.init import init

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "screens.md"

COLUMNS, ROWS = 80, 60
NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)

STORY: tuple[tuple[float, str, dict[str, object]], ...] = (
    (
        63,
        "save decision",
        {
            "topic": "auth",
            "decision": "Keep sessions in server memory",
            "reasoning": "One node, and the framework does it",
            "tags": ["auth"],
        },
    ),
    (41, "add", {"content": "Staging is rebuilt every night, so test accounts vanish"}),
    (
        34,
        "evolve outcome",
        {
            "decisionId": "auth",
            "outcome": "failed",
            "failure_reason": "a second node did not know the session",
        },
    ),
    (
        33,
        "save decision",
        {
            "topic": "auth",
            "decision": "Use JWT: access tokens for 15 minutes, refresh tokens for 30 days",
            "reasoning": "Any node can check a token, so users stay signed in",
            "tags": ["auth", "security"],
        },
    ),
    (
        20,
        "save insight",
        {
            "insight": "Flaky uploads came from the proxy's body limit of 1 MB, not from retries",
            "tags": ["uploads"],
        },
    ),
    (
        9,
        "pitfalls add",
        {
            "title": "Safari deletes tokens in localStorage after 7 days",
            "description": "Its tracking prevention deletes what scripts stored",
            "workaround": "Keep the refresh token in an HttpOnly cookie",
            "task": ["store the refresh token in the browser"],
            "code": [r"localStorage\.setItem\(.*[Tt]oken"],
            "severity": "critical",
            "project": True,
        },
    ),
    (
        2,
        "save decision",
        {
            "topic": "uploads",
            "decision": "Send uploads in parts of 8 MB",
            "reasoning": "Below the limit of every proxy that we know",
            "tags": ["uploads"],
        },
    ),
    (
        0.2,
        "save checkpoint",
        {
            "summary": "Uploads in parts work for files; folders are open",
            "next_steps": ["Send folders as one archive"],
            "open_files": ["src/upload.ts"],
        },
    ),
)
"""The memory: days before now, a command, and its arguments."""

FILES = {
    "login.ts": "localStorage.setItem('refreshToken', token)\n",
    ".mind/facts/deploys.md": (
        "---\ntype: fact\ncreated: 2026-11-19T09:00:00Z\n---\nDeploys stop on Fridays at noon\n"
    ),
}
"""Files beside it; the memory among them is not approved."""

README = ("mind list", "mind search 'how do people stay logged in'", "mind pitfalls check login.ts")

SCREENS = {
    "search": ("mind search 'how do people stay logged in'",),
    "list": ("mind list",),
    "show": ("mind show {jwt}",),
    "add": ("mind add 'The demo account is reset at six' --tag staging",),
    "load": ("mind load context auth",),
    "pitfalls": (
        "mind pitfalls 'keep the login token in the browser'",
        "mind pitfalls check login.ts",
    ),
    "review": ("mind review",),
    "status": ("mind status",),
    "sync": ("mind sync", "mind diff HEAD~1..HEAD"),
    "help": ("mind",),
}
"""The commands on the page, each with the lines that its picture shows."""

ABOUT = {
    "search": "The right memory first, in other words than the question's.",
    "list": "A line for each memory, newest first.",
    "show": "All of one memory, by the beginning of its short id.",
    "add": "Something to remember.",
    "load": "A decision with everything linked to it.",
    "pitfalls": "A plan, and a file, checked against known pitfalls.",
    "review": "What needs a decision, most urgent first.",
    "status": "The state of the memory.",
    "sync": "A commit of the memory and nothing else, and what it changed.",
    "help": "The commands to start with.",
}

FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "<svg ", '<svg xml:space="preserve" ', 1
)
"""The format of rich, without fonts from the network, and with leading spaces everywhere."""


def opened(root: Path, at: datetime, count: Iterator[int]) -> Mind:
    """Returns the memory of the scratch project at a time, whose ids follow from a count."""
    home = root.parent / "home"
    return Mind(
        home=home,
        project=projects.explicit(root, home),
        clock=lambda: at,
        randomness=lambda size: (next(count) * 2_654_435_761 % 2**32).to_bytes(4, "big") * size,
    )


def numbers() -> Iterator[int]:
    """Yields numbers from 1."""
    number = 0
    while True:
        yield (number := number + 1)


def write_story(root: Path) -> None:
    """Writes the memory, and commits most of it."""
    git(root, "init", "-q", "-b", "main")
    init(root, root.parent / "home", now=NOW - timedelta(days=70))
    count = numbers()
    for days, path, arguments in STORY:
        mind = opened(root, NOW - timedelta(days=days), count)
        invoke(all_commands().at(path), Call(mind), arguments)
        mind.close()
        if days > 1:
            git(root, "add", ".mind")
            git(root, "commit", "-qm", f"Remember: {path}")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True)


def on_terminal(root: Path, line: str) -> str:
    """Returns what a command prints on a terminal, with its escape sequences."""
    process, terminal = pty.fork()
    if not process:
        os.environ |= {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
        os.chdir(root)
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - nothing is asked
        sys.stdout, sys.stderr = (
            open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            for number in (1, 2)
        )
        mind = opened(root, NOW, iter(range(100, 200)))
        status = run([*shlex.split(line)[1:], "--no-pager"], open=lambda _: mind)
        sys.stdout.flush()
        os._exit(status)
    printed = b""
    try:
        while data := os.read(terminal, 65_536):
            printed += data
    except OSError:  # the other end was closed
        pass
    os.waitpid(process, 0)
    return printed.decode("utf-8").replace("\r\n", "\n").replace(str(root), "~/shop")


def picture(root: Path, lines: Sequence[str], name: str) -> str:
    """Returns a picture of the commands and what they print."""
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    for number, line in enumerate(lines):
        if number:
            console.print()
        console.print(Text.assemble(("$ ", "bold green"), (line, "bold")), soft_wrap=True)
        console.print(Text.from_ansi(on_terminal(root, line).rstrip()), soft_wrap=True)
    return console.export_svg(
        title="", theme=SVG_EXPORT_THEME, code_format=FORMAT, unique_id=f"mind-{name}"
    )


HEAD = """# Ten commands on a terminal

Pictures of real runs at 80 columns, in the memory of a small team. `make screens` takes them again.
"""


def page() -> str:
    """Returns the page with all pictures."""
    parts = [HEAD]
    for name, about in ABOUT.items():
        lines = " and ".join(SCREENS[name]).format(jwt="ID")
        parts.append(f"## {name}\n\n{about}\n\n![{lines}](images/screens/{name}.svg)\n")
    return "\n".join(parts)


def surroundings(root: Path) -> dict[str, str]:
    """Returns an environment for the scratch project, which leaves no trace in the user's home."""
    own = {"MIND_HOME": str(root.parent / "home"), "HOME": str(root.parent)}
    for who in ("AUTHOR", "COMMITTER"):
        own[f"GIT_{who}_NAME"] = "Ann"
        own[f"GIT_{who}_EMAIL"] = "ann@example.com"
        own[f"GIT_{who}_DATE"] = NOW.isoformat()
    return own | {"MIND_BACKGROUND": "off"}


def main() -> None:
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "shop"
        root.mkdir()
        os.environ |= surroundings(root)
        write_story(root)
        decided = (root / ".mind/decisions").glob("*.md")
        (jwt,) = (path.stem[-6:] for path in decided if "Use JWT" in path.read_text("utf-8"))
        pictures = {"terminal": README} | {f"screens/{name}": SCREENS[name] for name in SCREENS}
        for name, lines in pictures.items():
            path = IMAGES / f"{name}.svg"
            path.parent.mkdir(parents=True, exist_ok=True)
            shown = [line.format(jwt=jwt[:3]) for line in lines]
            path.write_text(picture(root, shown, path.stem), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
