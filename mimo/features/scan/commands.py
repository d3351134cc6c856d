"""`mind scan`: secrets that are there already."""

from typing import Annotated

from mimo.commands.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import Invalid, NotFound, SandboxViolation, StorageFailed
from mimo.features import scan as scanning
from mimo.features.scan import Scan
from mimo.frozen import frozen
from mimo.mind import Mind


@frozen
class SecretRow:
    """A secret, and where it stands."""

    kind: Annotated[str, Out("Such as github_token")]
    file: Annotated[str, Out("Its file, relative to the project")]
    line: Annotated[int, Out("From 1")]
    excerpt: Annotated[str, Out("Its surroundings, with the secret masked")]
    commit: Annotated[Omitted[str], Out("The first commit that has it", omit=True)] = None
    trash: Annotated[Omitted[str], Out("The change in the trash that keeps it", omit=True)] = None


@frozen
class Scanned:
    """What a look for secrets found."""

    clean: Annotated[bool, Out("Whether nothing was found")]
    found: tuple[SecretRow, ...]
    files: Annotated[int, Out("Files, or with `history` states of files, that were looked at")]
    unread: Annotated[Omitted[tuple[str, ...]], Out("Files that could not be read", omit=True)] = (
        None
    )

    @property
    def exit_status(self) -> int:
        """Returns 1 where a secret was found, or a file could not be read."""
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
        tuple[str, ...], Arg("Files, folders or globs; else all of .mind/", complete="path")
    ] = (),
    *,
    staged: Annotated[bool, Arg("What the next commit adds")] = False,
    history: Annotated[bool, Arg("Everything that was ever committed, on any branch")] = False,
    all: Annotated[bool, Arg("With staged or history: not .mind/ alone")] = False,
) -> Scanned:
    """Look for secrets that are there already

    Without arguments that includes the trash. A line that holds `mind:allow-secret` is passed
    over. What is found is shown masked; the exit status is then 1.
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
            kind=one.kind,
            file=one.file,
            line=one.line,
            excerpt=one.excerpt,
            commit=one.commit,
            trash=one.trash,
        )
        for one in done.secrets
    )
    return Scanned(clean=not rows, found=rows, files=done.files, unread=done.unread or None)
