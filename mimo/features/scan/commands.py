"""`mind scan`: the search for secrets in existing files, in staged changes and in git's history."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mimo.call import Call
from mimo.call.spec import Arg, Effect, Omitted, Out, command
from mimo.data.disk import STORE
from mimo.errors import (
    UNDECIDED,
    Command,
    Hint,
    Invalid,
    MindError,
    NotFound,
    SandboxViolation,
    StorageFailed,
)
from mimo.features.ingest import relative, sandbox_of
from mimo.frozen import NamedTuple, frozen
from mimo.guard.privacy import secrets_in_file, text_of
from mimo.operations.across import root_in_git
from mimo.privacy.model import excerpts
from mimo.privacy.secrets import secrets_in
from mimo.project import git, sandbox
from mimo.project.sandbox import Sandbox
from mimo.project.trash import FOLDER, Trash
from mimo.project.walk import COMMITS, files_below
from mimo.rendering import Screen, accent, bad, dim, good, warn
from mimo.rendering.results import count, render

if TYPE_CHECKING:
    from subprocess import Popen

_RAW = ("--raw", "-z", "--no-renames", "--no-abbrev", "--relative", "--diff-filter=d")
_SUBMODULE = "160000"
_SECONDS = 600
"""Deadline for listing a whole history."""
_LONGEST = 32 * 1024 * 1024
"""Bytes of the largest file that is scanned."""
_PASSED_OVER = (".index", ".local")


@frozen
class SecretRow:
    """A secret and its place."""

    kind: Annotated[str, Out("Such as github_token")]
    file: Annotated[str, Out("Its file, relative to the project")]
    line: Annotated[int, Out("From 1")]
    excerpt: Annotated[str, Out("Its surroundings, with the secret masked")]
    commit: Annotated[Omitted[str], Out("The first commit that has it")] = None
    trash: Annotated[Omitted[str], Out("The change in the trash that keeps it")] = None


@frozen
class Scanned:
    """The result of a scan."""

    clean: Annotated[bool, Out("Whether no secret was found")]
    found: tuple[SecretRow, ...]
    files: Annotated[int, Out("Number of files scanned; with `history`, of their states")]
    unread: Annotated[Omitted[tuple[str, ...]], Out("Files that could not be read")] = None

    @property
    def exit_status(self) -> int:
        """Returns 1 if a secret was found, else a higher status if a file could not be read."""
        return 1 if not self.clean else UNDECIDED if self.unread else 0


@command(
    "mind_scan",
    cli="scan",
    finds=True,
    effect=Effect.READ,
    toolset="extra",
    needs_project=False,
    errors=(Invalid, NotFound, SandboxViolation, StorageFailed),
    examples=(
        "mind scan",
        "mind scan docs notes/*.txt",
        "mind scan --staged",
        "mind scan --history",
    ),
)
def scan(
    call: Call,
    paths: Annotated[
        tuple[str, ...],
        Arg("Files, folders or globs (default: all of .mind/)", complete="path"),
    ] = (),
    *,
    staged: Annotated[bool, Arg("Scan the changes of the next commit")] = False,
    history: Annotated[bool, Arg("Scan all commits of all branches")] = False,
    all: Annotated[bool, Arg("Also outside .mind/, in staged changes or the history")] = False,
) -> Scanned:
    """Search existing files for secrets

    Without arguments that includes the trash. `staged` and `history` include the .mind/ of projects
    in folders below. A line with `mind:allow-secret` is skipped. Secrets are shown masked; the exit
    status is 1 if there are any, else a higher one if a file could not be read.
    """
    if staged + history + bool(paths) > 1:
        raise Invalid(
            "`paths`, `staged` and `history` exclude each other", hint="run them one by one"
        )
    if all and not (staged or history):
        raise Invalid(
            "`all` goes with `staged` or `history`",
            hint=Hint("name a folder instead, such as ", Command("scan", ".")),
            details={"field": "all"},
        )
    if staged or history:
        root = root_in_git(call)
        glob = "." if all else f"**/{STORE}/**"
        return _scan_versions(call, root, _staged(root, glob) if staged else _history(root, glob))
    return _scan_files(call, paths)


def _scan_files(call: Call, names: Sequence[str]) -> Scanned:
    """Scans files, folders and globs, or everything under `.mind/` if there are no names.

    Raises `NotFound` or `Invalid` for a name without files.
    """
    root = call.mind.project.root
    reader = sandbox_of(call) if names else Sandbox(root, root)
    if names:
        targets = [target for name in names for target in sandbox.targets(reader, name)]
        files = [target.path for target in targets if target.problem is None]
        unread = [relative(call, target.path) for target in targets if target.problem]
    else:
        files, unread = list(_of_memory(call)), []
    secrets: list[SecretRow] = []
    for number, path in enumerate(files, 1):
        try:
            data = reader.read(path, _LONGEST)
        except (MindError, OSError):
            unread.append(relative(call, path))
        else:
            secrets += _in(data, relative(call, path))
        call.advance("Scanning", number, len(files))
    trash_count = 0
    for id_, name, text in () if names else _in_trash(call.mind.trash, unread):
        trash_count += 1
        secrets += _in(text, name, trash=id_)
    return _scanned(secrets, len(files) + trash_count, unread)


def _in_trash(trash: Trash, unread: list[str]) -> Iterator[tuple[str, str, bytes]]:
    """Yields the texts in the trash, each with its change and its path; adds unreadable changes."""
    for id_ in trash.ids():
        try:
            copies = trash.kept(id_)
        except StorageFailed:
            unread.append(f"{FOLDER}/{id_}.jsonl")
            continue
        except NotFound:
            continue
        for file in copies:
            if file.before:
                yield id_, file.path, file.before


def _scanned(secrets: Sequence[SecretRow], files: int, unread: Sequence[str] = ()) -> Scanned:
    return Scanned(
        clean=not secrets, found=tuple(secrets), files=files, unread=tuple(unread) or None
    )


def _of_memory(call: Call) -> Iterator[Path]:
    """Yields every file under `.mind/` that can't be rebuilt, and the documents of `include`."""
    root = call.mind.project.root
    below = files_below(root / STORE, lambda name: name not in _PASSED_OVER)
    yield from (path for path in below if not path.is_symlink())
    if call.mind.config["include"]:
        stamps = call.mind.store.stamps()
        # The messages of commits are not in a file.
        documents = stamps.keys() - {COMMITS}
        yield from (root / path for path in sorted(documents) if not path.startswith(f"{STORE}/"))


# The versions of files in git.


class Version(NamedTuple):
    """One state of a file."""

    path: str
    """Relative to the folder of the scan."""
    blob: str
    """The object id of its content."""
    before: str | None = None
    """The object id of the content that it replaces."""
    commit: str | None = None
    """The first commit with this content."""


def _staged(root: Path, glob: str) -> list[Version]:
    """Returns the files that the next commit changes, of those below a folder that match a glob.

    Raises `Invalid` outside a git repository.
    """
    raw = _output(root, "diff", "--cached", *_RAW, "--", glob)
    return [
        Version(path, new, before=old if old.strip("0") else None)
        for _, old, new, path in _changes(raw)
    ]


def _history(root: Path, glob: str) -> list[Version]:
    """Returns every content that a file of the glob had in any commit of any branch, once.

    Raises `Invalid` outside a git repository.
    """
    words = ("--all", "--topo-order", "--reverse", "-m", "--format=%x01%H")
    raw = _output(root, "log", *words, *_RAW, "--", glob)
    versions: dict[str, Version] = {}
    for commit, _, new, path in _changes(raw):
        versions.setdefault(new, Version(path, new, commit=commit))
    return list(versions.values())


def _changes(raw: bytes) -> Iterator[tuple[str | None, str, str, str]]:
    """Yields commit, old content, new content and path of each change in git's raw format."""
    commit = None
    words = iter(raw.decode("utf-8", "surrogateescape").split("\0"))
    for word in words:
        if word.startswith("\x01"):
            commit = word[1:41]
        elif word.lstrip("\n").startswith(":"):
            _, mode, old, new, _ = word.split()
            path = next(words)
            if mode != _SUBMODULE:
                yield (
                    commit,
                    old,
                    new,
                    path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"),
                )


def _output(root: Path, *words: str) -> bytes:
    result = git.run(root, *words, seconds=_SECONDS, index=True, globs=True)
    if result.returncode:
        reason = git.refusal(root) or git.complaint(result.stderr)
        raise Invalid(f"git {words[0]}: {reason}", hint="see `git status`")
    return result.stdout


def _scan_versions(call: Call, root: Path, versions: Sequence[Version]) -> Scanned:
    """Scans versions of files. Text that the version before already has does not count."""
    secrets: dict[tuple[str, str, str], SecretRow] = {}
    if versions:
        with git.running(root, "cat-file", "--batch") as process:
            for number, version in enumerate(versions, 1):
                old_data = _read(process, version.before) if version.before else b""
                data = _read(process, version.blob)
                for row in _in(data, version.path, commit=version.commit, previous=old_data):
                    # Later commits of a file contain its secrets as well.
                    secrets.setdefault((row.file, row.kind, row.excerpt), row)
                call.advance("Scanning", number, len(versions))
    return _scanned(tuple(secrets.values()), len(versions))


def _read(process: "Popen[bytes]", blob: str) -> bytes:
    """Returns a content from `git cat-file --batch`, empty if it is too large.

    Raises `Invalid` if it is missing.
    """
    ask, answer = process.stdin, process.stdout
    if ask is None or answer is None:
        raise StorageFailed("git could not be asked")
    with suppress(BrokenPipeError):  # git has ended: its answer is empty.
        ask.write(f"{blob}\n".encode())
        ask.flush()
    head = answer.readline().split()
    if len(head) != 3:
        raise Invalid(f"git does not have the content `{blob}`", hint=git.PARTIAL)
    left, content = int(head[2]), b""
    if left <= _LONGEST:
        content, left = answer.read(left), 0
    while left:
        left -= len(answer.read(min(left, 1 << 20))) or left
    answer.read(1)
    return content


def _in(
    data: bytes,
    path: str,
    *,
    commit: str | None = None,
    trash: str | None = None,
    previous: bytes = b"",
) -> list[SecretRow]:
    """Returns the secrets in a file's name, and those in its content that were not there before.

    Files in `.mind/` are texts even with a NUL, as they are for `mind sync`.
    """
    is_ours = f"/{STORE}/" in f"/{path}"
    text, old = (
        text_of(each) if is_ours or "\0" not in text_of(each[:8_192]) else ""
        for each in (data, previous)
    )
    spans = secrets_in_file(path, text)
    # The text alone does not suffice: `- admin` may only now belong to a list of passwords.
    of_old = secrets_in_file(path, old) if spans else ()
    earlier = {(span.kind, old[span.start : span.end]) for span in of_old}
    new = [
        (span, excerpt)
        for span, excerpt in zip(spans, excerpts(text, spans), strict=True)
        if (span.kind, text[span.start : span.end]) not in earlier
    ]
    of_name = secrets_in(path)
    new += zip(of_name, excerpts(path, of_name), strict=True)
    return [
        SecretRow(
            kind=span.kind, file=path, line=span.line, excerpt=excerpt, commit=commit, trash=trash
        )
        for span, excerpt in new
    ]


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
