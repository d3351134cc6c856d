"""How the daemon's state looks."""

from datetime import timedelta

from mimo.features.daemon.commands import DaemonLog, DaemonReport, DaemonStarted, DaemonStopped
from mimo.rendering.results import render
from mimo.rendering.screen import Screen, accent, dim, good


@render.register
def _(result: DaemonReport, screen: Screen) -> None:
    if not result.running:
        screen.line("the daemon is not running")
        screen.note("everything works without it; `mind daemon start` starts it")
        return
    up = f", up {timedelta(seconds=result.uptime_seconds)}" if result.uptime_seconds else ""
    screen.line(good("running"), dim(f" as process {result.pid}{up}"))
    for root in result.projects:
        screen.line("watching ", accent(root), indent=2)
    if not result.projects:
        screen.line(dim("no project is registered; `mind init` registers one"), indent=2)
    screen.line(dim(f"log: {result.log}"), indent=2)


@render.register
def _(result: DaemonStarted, screen: Screen) -> None:
    told = "runs already" if result.already else "started"
    screen.line(good("✓ "), f"the daemon {told}", dim(f", process {result.pid}"))


@render.register
def _(result: DaemonStopped, screen: Screen) -> None:
    ended = f", process {result.pid}" if result.pid else ""
    screen.line(good("✓ "), "the daemon has ended", dim(ended))


@render.register
def _(result: DaemonLog, screen: Screen) -> None:
    for line in result.lines:
        screen.line(line)
    if not result.lines:
        screen.line("there is no log yet")
        screen.note("`mind daemon start` begins one")
