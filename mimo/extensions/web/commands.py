"""`mind web` and `mind report`: memories in a browser."""

from contextlib import ExitStack
from typing import Annotated

from mimo.api import (
    Arg,
    Call,
    Command,
    Conflict,
    Denied,
    Effect,
    Hint,
    Invalid,
    Needs,
    NoProject,
    NotFound,
    Omitted,
    Operation,
    Out,
    Screen,
    StorageFailed,
    Surface,
    accent,
    command,
    count,
    disk,
    frozen,
    good,
    render,
)

_NOTICE = "it has private memories: you alone can read it, but git does not ignore it"


@frozen
class ViewerStarted:
    """The address of the viewer."""

    url: Annotated[str, Out("Address with the token that opens it, on this machine only")]
    opened: Annotated[bool, Out("Whether it was opened in a browser")]


@frozen
class ViewerStopped:
    """The end of the viewer."""

    url: Annotated[str, Out("Its address, where nothing answers any more")]


@frozen
class ReportWritten:
    """A report."""

    file: Annotated[str, Out("Its path; - for standard output")]
    memories: Annotated[int, Out("Number of memories in it")]
    pitfalls: Annotated[int, Out("Number of pitfalls in it")]
    bytes: int
    document: Annotated[Omitted[str], Out("Its text, for standard output")] = None
    notice: Omitted[str] = None


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
    call: Call,
    *,
    port: Annotated[int, Arg("Port on 127.0.0.1 (default: any free one)", ge=0, le=65535)] = 0,
    open: Annotated[bool, Arg("Open it in your browser")] = False,
) -> ViewerStopped:
    """Show the memory in a browser, until Ctrl-C

    Prints an address that only this machine can open. The page searches as you type, and shows
    lists, a timeline, decisions by topic, the graph, pitfalls and the review queue. It updates
    itself while files change. It is for people: an agent can't start it.
    """
    if call.agent is not None:
        raise Denied(
            "the viewer is for people, who approve memories in it",
            hint=Hint(
                "agents use ", Command("search"), ", ", Command("show"), " and ", Command("graph")
            ),
        )
    _ = call.mind.project
    from mimo.extensions.web import serving

    with ExitStack() as stack:

        def started(url: str) -> None:
            opened = False
            if open:
                import webbrowser

                opened = webbrowser.open(stack.enter_context(serving.leading_to(url)))
            if call.console.partial:
                call.console.partial(ViewerStarted(url=url, opened=opened))

        return ViewerStopped(url=serving.serve(call, port, started))


@command(
    "mind_report",
    cli="report",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.READ, like="mind_list", also="mind_show"),
    errors=(Conflict, Invalid, NotFound, NoProject, StorageFailed),
    examples=("mind report", "mind report docs/memory.html", "mind report - > memory.html"),
)
def report(
    call: Call,
    file: Annotated[str, Arg("File to write; - is standard output", complete="path")] = (
        "mind-report.html"
    ),
    *,
    untrusted: Annotated[bool, Arg("Also memories that are not approved here")] = False,
    private: Annotated[bool, Arg("Also private memories")] = False,
    force: Annotated[bool, Arg("Replace the file even if it is not a report")] = False,
) -> ReportWritten:
    """Write the memory as one HTML file, to read or share

    The file needs no server and no network. It has the views of `mind web` except the review.
    Private memories are left out, and so are unapproved ones and the pitfalls of your own home. The
    same memories give the same file.
    """
    from mimo.api import redacted
    from mimo.extensions.web import report as reporting
    from mimo.extensions.web.answers import contents

    # Masked here: the text that is written to a file is not part of the answer.
    content = redacted(contents(call, untrusted=untrusted, private=private)).value
    text = reporting.document(content)
    if file != "-":
        reporting.write(disk.expanded(file), text, force=force, private=private)
    return ReportWritten(
        file=file,
        memories=len(content.pages),
        pitfalls=len(content.pitfalls),
        bytes=len(text.encode()),
        document=text if file == "-" else None,
        notice=_NOTICE if private and file != "-" else None,
    )


@render.register
def _(result: ReportWritten, screen: Screen) -> None:
    if result.document is not None:
        screen.verbatim(result.document, commands=True)
        return
    memories = count(result.memories, "memory", "memories")
    size = f"{max(1, result.bytes // 1000):,} kB"
    screen.line(good("✓ "), accent(result.file), f"  {memories}, {size}")
    if not result.memories:
        screen.note("unapproved and private memories are left out; see `mind report --help`")


@render.register
def _(result: ViewerStarted, screen: Screen) -> None:
    screen.line("open ", accent(result.url))
    browser = "it opens in your browser; " if result.opened else ""
    screen.note(f"{browser}only this machine can open it; Ctrl-C stops it")


@render.register
def _(result: ViewerStopped, screen: Screen) -> None:
    screen.line(good("✓ "), "the viewer has stopped")
