"""How the demo looks."""

from mimo.cli.render import Screen, accent, dim, render, strong
from mimo.commands.demo import Demonstration


@render.register
def _(result: Demonstration, screen: Screen) -> None:
    for number, step in enumerate(result.steps, 1):
        screen.line(dim(f"{number}. "), strong(step.title))
        screen.line(accent(f"$ {step.command}"), indent=3)
        screen.text(step.output, indent=3)
        screen.blank()
    screen.line("Yours to play with:")
    screen.line(accent(f"cd {result.project} && export MIND_HOME={result.home}"), indent=3)
    screen.line(accent("`mind search how is the index kept`"), indent=3)
    screen.line("In a project of your own, begin with ", accent("`mind init`"))
