"""`mind demo`: what mind is for on one screen, with a small story in a scratch project."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Effect, Needs, Out, command
from mimo.call.table import all_commands
from mimo.errors import StorageFailed
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.project.init import init
from mimo.rendering import Screen, accent, dim, strong
from mimo.rendering.results import render

_SECONDS = 60
_COLUMNS = "80"

STORY: tuple[tuple[str, dict[str, object]], ...] = (
    (
        "save decision",
        {
            "topic": "auth",
            "decision": "Keep sessions in server memory",
            "reasoning": "One node, and the framework does it",
        },
    ),
    (
        "evolve outcome",
        {
            "decisionId": "auth",
            "outcome": "failed",
            "failure_reason": "a second node did not know the session",
        },
    ),
    (
        "save decision",
        {
            "topic": "auth",
            "decision": "Use JWT: access tokens for 15 minutes, refresh tokens for 30 days",
            "reasoning": "Any node can check a token, so users stay signed in",
        },
    ),
    (
        "save insight",
        {"insight": "Flaky uploads came from the proxy's body limit of 1 MB, not from our retries"},
    ),
    ("add", {"content": "Staging is rebuilt every night, so test accounts vanish"}),
    (
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
)
"""The commands that write the memory of a team, each with its arguments."""

QUESTION = "how do people stay logged in"
PROMPT = "Let's keep the sessions in server memory, that is simpler"
FILE = "login.ts"
CODE = "localStorage.setItem('refreshToken', token)\n"


@frozen
class Step:
    """One command of the demo and its output."""

    title: str
    command: str
    output: str


@frozen
class Demonstration:
    """The steps of the demo."""

    project: Annotated[str, Out("The scratch project, which you can use further")]
    home: Annotated[str, Out("Its MIND_HOME, so that your own is not changed")]
    memories: Annotated[int, Out("Number of memories that the story begins with")]
    steps: tuple[Step, ...]


@command(
    "mind_demo",
    cli="demo",
    effect=Effect.WRITE,
    any_format=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(StorageFailed,),
    examples=("mind demo",),
)
def demo(call: Call) -> Demonstration:
    """Show what mind is for, in a scratch project

    Writes the memory of a small team, asks it a question, lets an agent repeat a mistake, and
    checks a line of code. Your own memory is not touched.
    """
    from tempfile import mkdtemp

    scratch = Path(mkdtemp(prefix="mind-demo-")) / "project"
    scratch.mkdir()
    count = write_story(scratch)
    return Demonstration(
        project=str(scratch), home=str(_home(scratch)), memories=count, steps=tuple(steps(scratch))
    )


def write_story(scratch: Path) -> int:
    """Writes the memory of the story into a new project; returns the number of memories."""
    opened = Mind.open(scratch, environ=_environment(scratch))
    init(scratch, opened.home, now=opened.now())
    opened.close()
    opened = Mind.open(scratch, environ=_environment(scratch))
    try:
        for path, arguments in STORY:
            invoke(all_commands().at(path), Call(opened), arguments)
    finally:
        opened.close()
    (scratch / FILE).write_text(CODE, encoding="utf-8")
    return sum(1 for _ in (scratch / ".mind").glob("[a-z]*/*.md"))


def steps(scratch: Path) -> Iterator[Step]:
    """Yields each step after it was run in `scratch`."""
    yield Step(
        title="You ask in your own words:",
        command=f"mind search {shlex.quote(QUESTION)}",
        output=_call(scratch, "search", QUESTION),
    )
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "demo", "prompt": PROMPT}
    answer = _call(scratch, "hook", "claude-code", data=json.dumps(event | {"cwd": str(scratch)}))
    yield Step(
        title="You are about to repeat a mistake. The hook gives your agent a note against it:",
        command=f"> {PROMPT}",
        output=json.loads(answer)["hookSpecificOutput"]["additionalContext"],
    )
    yield Step(
        title="A known pitfall is found before an edit, a commit or a merge:",
        command=f"mind pitfalls check {FILE}",
        output=_call(scratch, "pitfalls", "check", FILE),
    )


def _call(scratch: Path, *words: str, data: str = "") -> str:
    """Returns what a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "mimo", *words],
        cwd=scratch,
        env=_environment(scratch),
        input=data,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=_SECONDS,
        check=False,
    )
    return done.stdout.rstrip()


def _home(scratch: Path) -> Path:
    return scratch.parent / "home"


def _environment(scratch: Path) -> dict[str, str]:
    """Returns an environment in which the demo leaves no trace in the user's own home."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("MIND_")}
    changes = {"MIND_HOME": str(_home(scratch)), "MIND_BACKGROUND": "off", "COLUMNS": _COLUMNS}
    return base | changes


@render.register
def _(result: Demonstration, screen: Screen) -> None:
    screen.line(f"A team keeps {result.memories} memories in its repository, as Markdown.")
    for step in result.steps:
        screen.blank()
        screen.line(strong(step.title))
        screen.line(accent(step.command if step.command[0] == ">" else f"$ {step.command}"))
        screen.text(step.output)
    screen.blank()
    screen.line(dim("To go on: "), accent(f"cd {result.project}; export MIND_HOME={result.home}"))
    screen.line(dim("In your project: "), accent("mind init && mind install claude-code"))
    screen.line(dim("To find earlier sessions, too: "), accent("mind config sessions.enabled on"))
