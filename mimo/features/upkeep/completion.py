"""`mind completion`: the scripts that let a shell complete command lines."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, command
from mimo.frozen import frozen
from mimo.rendering import Screen
from mimo.rendering.results import render

SCRIPTS = Path(__file__).parents[2] / "completions"


class Shell(StrEnum):
    """A shell that mind has a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


FILES = {Shell.BASH: "mind.bash", Shell.ZSH: "_mind", Shell.FISH: "mind.fish"}


@frozen
class Script:
    """The completion script of a shell."""

    shell: Shell
    script: str


@command(
    "mind_completion",
    cli="completion",
    effect=Effect.READ,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    examples=(
        'eval "$(mind completion bash)"     # in ~/.bashrc',
        'eval "$(mind completion zsh)"      # in ~/.zshrc, after compinit',
        "mind completion fish | source      # in ~/.config/fish/config.fish",
        "mind completion zsh > ~/.zfunc/_mind",
    ),
)
def completion(call: Call, shell: Annotated[Shell, Arg("The shell")]) -> Script:
    """Print the script that completes command lines in a shell

    The shell then completes commands, options, ids with their titles (also of the user's memory),
    topics, tags, revisions, procedures, projects and files. The script asks `mind` each time, so it
    need not be renewed after an update.
    """
    return Script(shell=shell, script=(SCRIPTS / FILES[shell]).read_text(encoding="utf-8"))


@render.register
def _(result: Script, screen: Screen) -> None:
    screen.verbatim(result.script.removesuffix("\n"))
