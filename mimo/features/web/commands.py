"""`mind web` and `mind report`: memories in a browser."""

from typing import Annotated

from mimo.commands.spec import Arg, Effect, Needs, Out, Surface, command
from mimo.errors import Denied, Invalid, NoProject, StorageFailed
from mimo.frozen import frozen
from mimo.guard import Operation
from mimo.mind import Mind
from mimo.rendering import Screen, accent, good
from mimo.rendering.results import render


@frozen
class ViewerStarted:
    """The address of the viewer."""

    url: Annotated[str, Out("Address with the token that opens it, on this machine only")]
    opened: Annotated[bool, Out("Whether it was opened in a browser")]


@frozen
class ViewerStopped:
    """The end of the viewer."""

    url: Annotated[str, Out("Its address, where nothing answers any more")]


@command(
    "mind_web",
    cli="web",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, person=True),
    errors=(Denied, Invalid, NoProject, StorageFailed),
    examples=("mind web", "mind web --open", "mind web --port 8123"),
)
def web(
    mind: Mind,
    *,
    port: Annotated[int, Arg("Port on 127.0.0.1 (default: any free one)", ge=0, le=65535)] = 0,
    open: Annotated[bool, Arg("Open it in your browser")] = False,
) -> ViewerStopped:
    """Show the memory in a browser, until Ctrl-C

    Prints an address that only this machine can open. The page searches as you type, and shows
    lists, a timeline, decisions by topic, the graph, pitfalls and the review queue. It updates
    itself while files change. It is for people: an agent can't start it.
    """
    if mind.agent is not None:
        raise Denied(
            "the viewer is for people, who approve memories in it",
            hint="agents use `mind search`, `mind show` and `mind graph`",
        )
    _ = mind.project
    from mimo.features.web import serving

    def started(url: str, once: str) -> None:
        opened = False
        if open:
            import webbrowser

            opened = webbrowser.open(once)
        if mind.partial:
            mind.partial(ViewerStarted(url=url, opened=opened))

    return ViewerStopped(url=serving.serve(mind, port, started))


@render.register
def _(result: ViewerStarted, screen: Screen) -> None:
    screen.line("open ", accent(result.url))
    browser = "it opens in your browser; " if result.opened else ""
    screen.note(f"{browser}only this machine can open it; Ctrl-C stops it")


@render.register
def _(result: ViewerStopped, screen: Screen) -> None:
    screen.line(good("✓ "), "the viewer has stopped")
