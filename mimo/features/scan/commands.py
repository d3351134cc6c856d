"""`mind scan`: the search for secrets in existing files."""

from typing import Annotated

from mimo.commands.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import Invalid, NotFound, SandboxViolation, StorageFailed
from mimo.features import scan as scanning
from mimo.features.scan import Scan
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.rendering.results import count, render
from mimo.rendering.screen import Screen, accent, bad, dim, good, warn


@frozen
class SecretRow:
    """A secret and its place."""

    kind: Annotated[str, Out("Such as github_token")]
    file: Annotated[str, Out("Its file, relative to the project")]
    line: Annotated[int, Out("From 1")]
    excerpt: Annotated[str, Out("Its surroundings, with the secret masked")]
    commit: Annotated[Omitted[str], Out("The first commit that has it", omit=True)] = None
    trash: Annotated[Omitted[str], Out("The change in the trash that keeps it", omit=True)] = None


@frozen
class Scanned:
    """The result of a scan."""

    clean: Annotated[bool, Out("Whether no secret was found")]
    found: tuple[SecretRow, ...]
    files: Annotated[int, Out("Number of files scanned; with `history`, of their states")]
    unread: Annotated[Omitted[tuple[str, ...]], Out("Files that could not be read", omit=True)] = (
        None
    )

    @property
    def exit_status(self) -> int:
        """Returns 1 if a secret was found, or a file could not be read."""
        return 0 if self.clean and not self.unread else 1


@command(
    "mind_scan",
    cli="scan",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound, SandboxViolation, StorageFailed),
    examples=(
        "mind scan",
        "mind scan docs notes/*.txt",
        "mind scan --staged",
        "mind scan --history",
    ),
)
def scan(
    mind: Mind,
    paths: Annotated[
        tuple[str, ...],
        Arg("Files, folders or globs (default: all of .mind/)", complete="path"),
    ] = (),
    *,
    staged: Annotated[bool, Arg("Scan the changes of the next commit")] = False,
    history: Annotated[bool, Arg("Scan all commits of all branches")] = False,
    all: Annotated[bool, Arg("With staged or history: also outside .mind/")] = False,
) -> Scanned:
    """Search existing files for secrets

    Without arguments that includes the trash. A line with `mind:allow-secret` is skipped. Secrets
    are shown masked; the exit status is 1 if there are any.
    """
    if staged + history + bool(paths) > 1:
        raise Invalid(
            "`paths`, `staged` and `history` exclude each other", hint="run them one by one"
        )
    if all and not (staged or history):
        raise Invalid(
            "`all` goes with `staged` or `history`",
            hint="name a folder instead, such as `mind scan .`",
            details={"field": "all"},
        )
    if staged:
        return _scanned(scanning.scan_staged(mind, everything=all))
    if history:
        return _scanned(scanning.scan_history(mind, everything=all))
    return _scanned(scanning.scan_files(mind, paths))


def _scanned(done: Scan) -> Scanned:
    rows = tuple(
        SecretRow(
            kind=secret.kind,
            file=secret.file,
            line=secret.line,
            excerpt=secret.excerpt,
            commit=secret.commit,
            trash=secret.trash,
        )
        for secret in done.secrets
    )
    return Scanned(clean=not rows, found=rows, files=done.files, unread=done.unread or None)


@render.register
def _(result: Scanned, screen: Screen) -> None:
    for row in result.found:
        where = f"  in {row.commit[:10]}" if row.commit else ""
        where = f"  in the trash, {row.trash}" if row.trash else where
        screen.line(accent(f"{row.file}:{row.line}"), "  ", bad(row.kind), dim(where))
        screen.line(dim(row.excerpt), indent=2)
    for path in result.unread or ():
        screen.line(warn(f"{path} could not be read"))
    if result.found or result.unread:
        screen.blank()
    scanned = f"{count(result.files, 'file')} scanned"
    if result.clean:
        screen.line(good("✓ "), f"no secrets; {scanned}")
        return
    screen.line(bad(count(len(result.found), "secret")), f"; {scanned}")
    screen.line(dim("Revoke real secrets: git keeps everything that was committed."))
    if any(row.trash for row in result.found):
        screen.line(dim("Remove one from the trash: `mind undo ID --purge`."))
    screen.line(dim("Mark a false alarm: put `mind:allow-secret` on its line."))
