"""`mind demo`: the main job on real Markdown, in a scratch project."""

from pathlib import Path
from typing import Annotated

from mimo.commands.spec import Arg, Effect, Needs, Surface, command
from mimo.commands.types import Out
from mimo.domain.policy import Operation
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import demo as script


@frozen
class DemoStep:
    """One command and what it printed."""

    title: str
    command: str
    output: str


@frozen
class Demonstration:
    """What the demo did, step by step."""

    project: Annotated[str, Out("The scratch project, yours to play with")]
    home: Annotated[str, Out("Its MIND_HOME, so that your own stays as it is")]
    steps: tuple[DemoStep, ...]


@command(
    "mind_demo",
    cli="demo",
    effect=Effect.WRITE,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    examples=("mind demo", "mind demo ~/notes"),
)
def demo(
    mind: Mind,
    source: Annotated[str, Arg("Folder whose Markdown is searched", complete="path")] = ".",
) -> Demonstration:
    """Show the main job in a scratch project

    Stores memories, searches by meaning and by words, and asks the MCP server over a real pipe, on
    a copy of the Markdown below a folder. Your own memory is not touched.
    """
    from tempfile import mkdtemp

    scratch = Path(mkdtemp(prefix="mind-demo-")) / "project"
    scratch.mkdir()
    rows = tuple(
        DemoStep(title=step.title, command=step.command, output=step.output)
        for step in script.steps(scratch, Path(source).expanduser().resolve())
    )
    return Demonstration(project=str(scratch), home=str(scratch.parent / "home"), steps=rows)
