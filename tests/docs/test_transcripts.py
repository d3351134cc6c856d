"""The commands on the pages print what the pages show.

Runs the blocks marked `console` of a page in order, in one project, and compares their output with
the page. After a change of an output, `make transcripts` writes the new one into the pages.
"""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from mimo.call import Call, Console
from mimo.cli.main import main
from mimo.features.hooks import capture
from mimo.features.hooks.command import react
from mimo.features.hooks.events import recognised
from mimo.memory.model import Kind
from mimo.memory.note import Note
from mimo.mind import Mind
from mimo.operations import saving
from mimo.project import projects
from mimo.project.init import init
from mimo.surroundings import Question, Timer
from tests import mama_databases, privacy_fakes
from tests.claude_sessions import claude_code
from tests.conftest import NOW
from tests.kit import put

DOCS = Path(__file__).parents[2] / "docs"
ROOT = DOCS.parent
REOPENING = ("init", "config")
"""Commands after which the settings are read again."""
RECORDING = "MIND_RECORD"
"""Set by `make transcripts`: the pages get the output instead of being compared with it."""

CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


@dataclass
class Stage:
    """A page, and the place where its commands run."""

    page: str
    root: Path
    call: Call | None
    text: str
    masks: list[tuple[str, str]] = field(default_factory=list)
    """Patterns of output that differs from run to run, each with what the page has instead."""
    before: Callable[[int], object] = lambda _: None
    """Called before each block with its number."""

    def block(self, language: str, number: int = 0, fence: str = "```") -> str:
        """Returns a fenced block of the page."""
        pattern = rf"^{fence}{language}\n(.*?)^{fence}$"
        return str(re.findall(pattern, self.text, re.DOTALL | re.MULTILINE)[number])

    def write(self, name: str, text: str) -> None:
        """Writes a file of the project."""
        put(self.root / name, text)

    def run(self, line: str) -> tuple[int, str]:
        """Returns the status of a command, and everything that it prints on a terminal."""
        program, *words = shlex.split(line)
        if program == "cat":
            return 0, self._masked(Path(words[0]).read_text("utf-8"))
        if program == "git":
            done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
            return 0, self._masked(f"{done.stdout.rstrip()}\n".lstrip("\n"))
        assert program == "mind", line
        if words[0] == "hook":
            return 0, self._masked(self._hook(*words[1:]))
        terminal = io.StringIO()
        with redirect_stdout(terminal), redirect_stderr(terminal):
            call = self.call
            status = main(words, open=lambda _: call.mind) if call else main(words)
        if call and words[0] in REOPENING:
            self.call = Call(call.mind.reopened())
        return status, self._masked(terminal.getvalue())

    def _masked(self, printed: str) -> str:
        for pattern, shown in self.masks:
            printed = re.sub(pattern, shown, printed)
        return printed

    def _hook(self, client: str, redirection: str, prompt: str) -> str:
        """Returns what `mind hook CLIENT <<< PROMPT` prints at the time of the page."""
        assert redirection == "<<<"
        assert self.call
        event = recognised({"cwd": str(self.root)} | json.loads(prompt), client)
        assert event
        answer = react(event, home=self.call.mind.home, now=NOW, environ=self.call.mind.environ)
        return "" if answer is None else f"{json.dumps(answer, ensure_ascii=False)}\n"

    def played(self, block: str, number: int) -> str:
        """Returns a block with the output of its commands.

        A block that shows no output stays as it is; its commands must succeed.
        """
        self.before(number)
        lines = re.findall(r"^\$ (.*)$", block, re.MULTILINE)
        is_bare = block.splitlines() == [f"$ {line}" for line in lines]
        shown = []
        for line in lines:
            status, printed = self.run(line)
            assert status == 0 or not is_bare, printed
            shown.append(f"$ {line}\n" + ("" if is_bare else printed))
        return "".join(shown)


def audit(stage: Stage) -> None:
    steps = count()
    assert stage.call
    stage.call.mind.timer = Timer(monotonic=lambda: next(steps) * 0.0021)


def pitfalls(stage: Stage) -> None:
    stage.write(".mind/MEMORY.md", stage.block("markdown"))
    stage.write("orders.ts", "const one = await api.get(url)\n")


def fading(stage: Stage) -> None:
    assert stage.call
    for text in ("The staging server runs in the office", "Uploads go through the proxy"):
        saving.store(stage.call, saving.draft(Kind.FACT, text))
    later = NOW + timedelta(days=200)
    stage.call.mind.clock = lambda: later


def filling(stage: Stage) -> None:
    stage.write("src/upload.py", f"# MEMORY: problem: {PROXY}\nPART = 50_000_000\n")
    stage.write("runbook.md", "# Restart\n\nDrain the queue, then restart the worker.\n")
    for words in (["init", "-q", "-b", "main"], ["add", "src"], ["commit", "-q", "-m", COMMIT]):
        subprocess.run(["git", *words], cwd=stage.root, check=True)

    os.utime(stage.root / "src" / "upload.py", (NOW.timestamp(), NOW.timestamp()))

    def before(_: int) -> None:
        assert stage.call
        stage.call = Call(stage.call.mind.reopened())

    stage.before = before


PROXY = "The proxy cuts uploads above 100 MB"
COMMIT = """Send large uploads in parts

decided: Send uploads in parts of 50 MB, because the proxy cuts longer ones
learned: The proxy answers 413 without a body"""


def git(stage: Stage) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=stage.root, check=True)
    assert stage.call
    saving.store(stage.call, saving.draft(Kind.DECISION, "Use JWT"))
    stage.masks += [(r" as [0-9a-f]{7,}", " as COMMIT"), (r"\([0-9a-f]{7,}: ", "(COMMIT: ")]


def ingest(stage: Stage) -> None:
    guide = (
        "# Guide\n\nWords of introduction for all.\n\n## Install\n\nRun make install, then wait.\n"
    )
    stage.write("docs/guide.md", guide)


def install(stage: Stage) -> None:
    user = stage.root.parent / "user"
    stage.root = user / "shop"
    stage.root.mkdir(parents=True)
    init(stage.root, user / ".mind", now=NOW)
    stage.write(".zed/settings.json", '{\n  // ours\n  "theme": "One Light" // by day\n}\n')
    stage.call = Call(
        Mind(
            home=user / ".mind",
            project=projects.explicit(stage.root, user / ".mind"),
            environ={"HOME": str(user), "PATH": os.environ["PATH"]},
        )
    )
    stage.masks = [(str(user), "~"), (r"-[0-9a-f]{12}-[0-9a-f]{16}\.bak", "-….bak")]


def migrating(stage: Stage) -> None:
    home = stage.root.parent / "ana"
    mama_databases.example(home / ".claude" / "mama-memory.db")
    stage.root, stage.call = home / "shop", None
    stage.root.mkdir()
    os.environ["HOME"] = str(home)
    os.chdir(stage.root)
    assert stage.run("mind init")[0] == 0
    stage.masks = [(str(home), "/home/ana"), (r"mama-[0-9a-f]+\.", "mama-….")]


def policy(stage: Stage) -> None:
    typo = "tool_permissions:\n  listMemory:\n    alowed_namespaces: []\n"
    stage.before = lambda n: stage.write(
        ".mind/policy.yaml", stage.block("yaml", 1) if n == 0 else typo
    )


def privacy(stage: Stage) -> None:
    (token,) = (each.text for each in privacy_fakes.secrets(1, 1) if each.kind == "github_token")
    stage.write("deploy.md", f"# Deploys\n\nPush with {token} to deploy.\n")
    stage.write(
        ".mind/facts/fact_deploys_20261119_k3v7mq.md", f"{HEAD}fact\n---\nPush with {token}\n"
    )


HEAD = "---\ncreated: 2026-11-19T08:00:00Z\ntype: "


def undo(stage: Stage) -> None:
    assert stage.call
    saving.store(stage.call, saving.draft(Kind.DECISION, "Use JWT with refresh tokens"))


def trust(stage: Stage) -> None:
    """Makes the project one that came with a clone: nothing is approved."""
    repository(stage)
    stage.write(
        ".mind/facts/fact_cache_20261119_mhpcju.md",
        f"{HEAD}fact\n---\nThe cache holds ten minutes\n",
    )
    stage.write(
        ".mind/decisions/decision_auth_20261119_mlraza.md",
        f"{HEAD}decision\n---\nUse JWT for a week\n",
    )
    for words in (["add", "."], ["commit", "-q", "-m", "Notes", "--author", "Ben <ben@b.example>"]):
        subprocess.run(["git", *words], cwd=stage.root, check=True)
    shutil.rmtree(stage.root / ".mind" / ".local")
    assert stage.call
    stage.call = Call(stage.call.mind.reopened())


def review(stage: Stage) -> None:
    repository(stage)
    stage.write("auth.py", "DAYS = 1\nALGORITHM = 'HS256'\n")
    other = "## Competing: the text\nUse JWT for a day, see auth.py:1-2\n"
    competing = f"## Competing: outcome\nSUCCESS\n\n{other}"
    header = f"{HEAD}decision\ntopic: auth\noutcome: FAILED\n---\n"
    text = f"{header}Use JWT for a week, see auth.py:1-2\n\n{competing}"
    stage.write(".mind/decisions/decision_auth_20261119_mlraza.md", text)
    for words in (["add", "."], ["commit", "-q", "-m", "Use JWT"]):
        subprocess.run(["git", *words], cwd=stage.root, check=True)
    stage.write("auth.py", "DAYS = 7\nALGORITHM = 'RS256'\n")
    assert stage.run("mind init")[0] == 0
    assert stage.run("mind trust")[0] == 0


def procedures(stage: Stage) -> None:
    stage.write("release.md", stage.block("markdown", fence="````"))
    stage.write("Makefile", "test:\n\t@echo 12 passed\n")


def decided(stage: Stage) -> None:
    because = "--because 'Any node can check a token, so users stay signed in'"
    for line in (
        "mind save decision auth 'Keep sessions in server memory' --because 'One node'",
        "mind evolve outcome auth failed --reason 'The second node did not know the session'",
        f"mind save decision auth 'Use JWT with refresh tokens' {because}",
    ):
        assert stage.run(line)[0] == 0


def repository(stage: Stage) -> None:
    """Makes the project a git repository; in the page its commits have no numbers."""
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=stage.root, check=True)
    stage.masks += [(r" as [0-9a-f]{7,}", " as COMMIT"), (r"\b[0-9a-f]{10}\b", "COMMIT")]


def first_minutes(stage: Stage) -> None:
    shutil.rmtree(stage.root / ".mind")
    repository(stage)


def teams_guide(stage: Stage) -> None:
    program = stage.root.parent / "bin" / "mind"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m mimo "$@"\n')
    os.chdir(stage.root)
    repository(stage)
    for line in ("mind init", "mind sync"):
        assert stage.run(line)[0] == 0


def migrating_guide(stage: Stage) -> None:
    record = "# Use PostgreSQL\n\nIt is the database that all of us can operate.\n"
    stage.write("docs/decisions/0001-use-postgres.md", record)
    handbook = "# Handbook\n\n## Leaving\n\nNotice is given thirty days before.\n"
    stage.write("docs/handbook.md", handbook)
    for path in (stage.root / "docs").rglob("*.md"):
        os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    entities = (
        {"name": "Ana", "entityType": "person", "observations": ["Owns payments"]},
        {"name": "payments", "entityType": "service", "observations": ["Deployed on Tuesdays"]},
    )
    graph: list[dict[str, object]] = [{"type": "entity", **entity} for entity in entities]
    link = {"from": "Ana", "to": "payments", "relationType": "maintains"}
    graph.append({"type": "relation", **link})
    lines = (json.dumps(line, separators=(",", ":")) for line in graph)
    stage.write("memory.jsonl", "\n".join(lines) + "\n")


def procedures_guide(stage: Stage) -> None:
    stage.masks.append((r"\b\d\.\d\d s", "0.02 s"))


def pitfalls_guide(stage: Stage) -> None:
    stage.write("login.ts", "localStorage.setItem('refreshToken', token)\n")


IN_MAY = (
    ("user", "Orders take 4 s with OFFSET. Which pagination do we use instead?"),
    ("edit", "orders/pages.py"),
    ("agent", "Keyset pagination: OFFSET reads all rows before. It takes 40 ms now."),
    ("user", "Good. From now on page by key everywhere, because offsets skip rows."),
    ("agent", "Done for orders and invoices."),
)
YESTERDAY = (
    ("user", "Why do uploads fail above 1 MB?"),
    ("agent", "The proxy limits the body: client_max_body_size in nginx.conf is 1m."),
)
REMEMBERED = """\
---
name: Slow tests
description: The tests of invoices need a database
type: feedback
---
Start the database before the tests of invoices, else they wait for a minute.
"""


def sessions_guide(stage: Stage) -> None:
    home = Path(os.environ["HOME"])
    folder = home / ".claude" / "projects" / re.sub("[^A-Za-z0-9]", "-", f"{stage.root}")
    assert stage.call
    saving.store(stage.call, saving.draft(Kind.FACT, "The invoices are tested with every build"))
    talk = [(role, f"{stage.root}/{text}" if role == "edit" else text) for role, text in IN_MAY]
    for id, turns, days in (("00003f9a1c20", talk, 190), ("0000b07d55e1", YESTERDAY, 1)):
        native_id, at = f"1ccba294-0000-4000-8000-{id}", NOW - timedelta(days=days)
        claude_code(home, native_id, stage.root, turns, at, branch="")
    put(folder / "memory" / "slow_tests.md", REMEMBERED)
    os.utime(folder / "memory" / "slow_tests.md", ((NOW - timedelta(days=3)).timestamp(),) * 2)
    stage.masks.append((str(folder), "~/.claude/projects/shop"))


def sessions_page(stage: Stage) -> None:
    sessions_guide(stage)
    assert stage.run("mind config sessions.enabled on")[0] == 0


GUIDES: dict[str, Callable[[Stage], None]] = {
    "first-five-minutes": first_minutes,
    "guides/agents": lambda _: None,
    "guides/migrating": migrating_guide,
    "guides/pitfalls": pitfalls_guide,
    "guides/privacy": repository,
    "guides/procedures": procedures_guide,
    "guides/search": decided,
    "guides/sessions": sessions_guide,
    "guides/teams": teams_guide,
}
"""The guides, each with what it needs in the project."""

PAGES: dict[str, Callable[[Stage], None]] = GUIDES | {
    "audit": audit,
    "context": lambda _: None,
    "duplicates": lambda _: None,
    "fading": fading,
    "filling": filling,
    "git": git,
    "ingest": ingest,
    "install": install,
    "migrating-from-mama": migrating,
    "pitfalls": pitfalls,
    "policy": policy,
    "privacy": privacy,
    "procedures": procedures,
    "review": review,
    "sessions": sessions_page,
    "trust": trust,
    "undo": undo,
    "user-memory": lambda _: None,
    "values": lambda _: None,
}
"""Pages with commands, each with what it needs in the project."""


@pytest.fixture
def staged(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Stage]:
    """Returns a stage for a page, prepared as the page needs it."""
    monkeypatch.setenv("HOME", os.environ["HOME"])
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.com")
        monkeypatch.setenv(f"GIT_{who}_DATE", NOW.isoformat())
    program = project.parent / "bin" / "mind"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def prepared(page: str) -> Stage:
        text = (DOCS / f"{page}.md").read_text("utf-8")
        masks = [(str(call.mind.home), "~/.mind"), (str(project), "~/shop")]
        stage = Stage(page, project, call, text, masks)
        PAGES[page](stage)
        monkeypatch.chdir(stage.root)
        return stage

    return prepared


def played(stage: Stage) -> str:
    numbers = count()
    return CONSOLE.sub(lambda block: stage.played(block[0], next(numbers)), stage.text)


CARRIED = {
    "audit": [pytest.mark.req("002-65")],
    "migrating-from-mama": [pytest.mark.req("004-70")],
    "policy": [pytest.mark.req("002-65")],
    "procedures": [pytest.mark.req("000-01")],
    "values": [pytest.mark.req("002-65")],
}
"""The requirements that a page's example covers."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=CARRIED.get(page, [])) for page in PAGES]
)
def test_a_page_shows_what_its_commands_print(staged: Callable[[str], Stage], page: str) -> None:
    stage = staged(page)
    text = played(stage)
    if os.environ.get(RECORDING):
        (DOCS / f"{page}.md").write_text(text, encoding="utf-8")
    else:
        assert text == stage.text


def test_a_page_with_another_output_is_noticed(staged: Callable[[str], Stage]) -> None:
    stage = staged("duplicates")
    stage.text = stage.text.replace("stored before", "stored twice")

    assert played(stage) != stage.text


def test_an_ingested_file_is_kept_as_the_page_shows(staged: Callable[[str], Stage]) -> None:
    stage = staged("ingest")
    played(stage)
    (kept,) = (stage.root / ".mind" / "sources").iterdir()

    shown = re.sub(r'sha256: "?(.{4}).*', r"sha256: \1…", kept.read_text("utf-8"))
    assert shown == stage.block("markdown")


def test_a_value_is_kept_as_the_page_shows(staged: Callable[[str], Stage]) -> None:
    stage = staged("values")
    played(stage)

    kept = stage.root / ".mind" / "values" / "agent.build" / "last_run.md"
    assert kept.read_text("utf-8") == stage.block("markdown")


def test_an_agent_is_asked_as_the_page_shows(staged: Callable[[str], Stage]) -> None:
    stage = staged("filling")
    memory = "decision_uploads_20261120_pxhaaa", "decision", "Send uploads in parts", ""
    request = capture.worded("underscore", capture.listed([Note(*memory, created=NOW)]))

    assert request.split() == stage.block("text").split()
    assert f"{capture.LIST_BUDGET:,} characters" in stage.text


def test_the_policy_for_agents_on_the_page_is_valid(staged: Callable[[str], Stage]) -> None:
    stage = staged("policy")
    stage.write(".mind/policy.yaml", stage.block("yaml", 2))

    assert stage.run("mind policy check")[0] == 0


@pytest.mark.req("000-01")
def test_the_procedure_on_the_page_asks_and_runs_as_shown(
    staged: Callable[[str], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = staged("procedures")
    played(stage)
    shown = stage.block("text")
    questions: list[str] = []

    def ask(question: Question, seconds: float) -> str:
        questions.append(f"{question.text} [{'/'.join(question.choices)}]\n")
        return "yes"

    monkeypatch.setattr("mimo.cli.main._console", lambda *_: Console(ask=ask))
    (line,) = re.findall(r"^\$ (.*)$", shown, re.MULTILINE)
    status, steps = stage.run(line)

    assert (status, len(questions)) == (0, 2)
    assert all(question in shown for question in questions)
    arrows = re.compile(r"\S+ ─\S+→ \S+")
    assert arrows.findall(steps) == arrows.findall(shown) != []
    assert "completed in released" in steps
