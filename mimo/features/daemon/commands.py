"""`mind daemon …`: the optional process that keeps index and context fresh."""

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, for_people
from mimo.errors import DaemonNotRunning, StorageFailed
from mimo.features import daemon
from mimo.features.daemon import process
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.rendering import Screen, accent, dim, good
from mimo.rendering.results import render

_command = partial(for_people, any_format=True)

NOT_RUNNING = 4
"""Exit status of `mind daemon status` while none runs."""


@frozen
class DaemonReport:
    """The state of the daemon."""

    running: bool
    pid: int | None
    uptime_seconds: int | None
    projects: Annotated[tuple[str, ...], Out("Roots of the projects that it watches")]
    log: Annotated[str, Out("Path of its log")]
    notice: Omitted[str] = None

    @property
    def exit_status(self) -> int:
        """Returns 0 while it runs, else 4."""
        return 0 if self.running else NOT_RUNNING


@frozen
class DaemonStarted:
    """The result of starting the daemon."""

    pid: int
    already: Annotated[bool, Out("Whether it was running before")]
    notice: Omitted[str] = None


@frozen
class DaemonStopped:
    """The result of stopping the daemon."""

    pid: Annotated[int | None, Out("The process that was stopped; null if none was needed")]


@frozen
class DaemonLog:
    """The end of the daemon's log."""

    lines: tuple[str, ...]


@_command(
    "daemon_start",
    cli="daemon start",
    effect=Effect.WRITE,
    errors=(StorageFailed,),
    examples=("mind daemon start",),
)
def start(call: Call) -> DaemonStarted:
    """Start the daemon in the background

    It watches the registered projects and keeps their index and context fresh. Everything works
    without it.
    """
    current, already = process.start(call.mind)
    return DaemonStarted(pid=current.pid, already=already, notice=_notice(current))


@_command(
    "daemon_stop",
    cli="daemon stop",
    effect=Effect.WRITE,
    errors=(DaemonNotRunning, StorageFailed),
    examples=("mind daemon stop",),
)
def stop(call: Call) -> DaemonStopped:
    """Stop the daemon"""
    return DaemonStopped(pid=process.stop(call.mind).pid)


@_command(
    "daemon_restart",
    cli="daemon restart",
    effect=Effect.WRITE,
    errors=(StorageFailed,),
    examples=("mind daemon restart",),
)
def restart(call: Call) -> DaemonStarted:
    """Stop the daemon if it runs, and start it again"""
    with suppress(DaemonNotRunning):
        process.stop(call.mind)
    return start(call)


@_command(
    "daemon_status",
    cli="daemon status",
    effect=Effect.READ,
    needs=Needs(Operation.READ, person=True, diagnosis=True),
    examples=("mind daemon status", "mind daemon status --json"),
)
def status(call: Call) -> DaemonReport:
    """Show whether the daemon runs and which projects it watches"""
    current = daemon.running(call.mind.home)
    started = current.started if current else None
    return DaemonReport(
        running=current is not None,
        pid=current.pid if current else None,
        uptime_seconds=int((call.mind.now() - started).total_seconds()) if started else None,
        projects=current.watching if current else (),
        log=str(daemon.log_file(call.mind.home)),
        notice=_notice(current),
    )


def _notice(current: daemon.Running | None) -> str | None:
    is_outdated = current is not None and current.has_other_code
    return f"{daemon.OTHER_CODE}; {daemon.RESTART} replaces it" if is_outdated else None


@_command(
    "daemon_logs",
    cli="daemon logs",
    effect=Effect.READ,
    needs=Needs(Operation.READ, person=True),
    examples=("mind daemon logs -n 100", "mind daemon logs --follow"),
)
def logs(
    call: Call,
    *,
    lines: Annotated[int, Arg("Number of lines", short="n", ge=1, le=100_000)] = 20,
    follow: Annotated[bool, Arg("Continue with new lines", surfaces=Surface.CLI)] = False,
) -> DaemonLog:
    """Show the end of the daemon's log"""
    if follow and call.console.partial:
        for some in daemon.followed(call, lines):
            call.console.partial(DaemonLog(lines=some))
    return DaemonLog(lines=daemon.newest(call, lines))


@_command(
    "daemon_run",
    cli="daemon run",
    effect=Effect.WRITE,
    errors=(StorageFailed,),
    examples=("mind daemon run",),
)
def run(call: Call) -> DaemonStopped:
    """Run the daemon in the foreground until Ctrl-C or a signal"""
    process.run(call)
    return DaemonStopped(pid=None)


# The output.


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
    action = "is already running" if result.already else "has started"
    screen.line(good("✓ "), f"the daemon {action}", dim(f", process {result.pid}"))


@render.register
def _(result: DaemonStopped, screen: Screen) -> None:
    ended = f", process {result.pid}" if result.pid else ""
    screen.line(good("✓ "), "the daemon has stopped", dim(ended))


@render.register
def _(result: DaemonLog, screen: Screen) -> None:
    for line in result.lines:
        screen.line(line)
    if not result.lines:
        screen.line("there is no log yet")
        screen.note("`mind daemon start` creates one")
