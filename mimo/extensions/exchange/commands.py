"""`mind export`: the memories for another program, or for another project."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Unpack

from mimo.api import (
    Arg,
    Call,
    Conflict,
    Effect,
    Invalid,
    Kind,
    Needs,
    NoProject,
    Omitted,
    Operation,
    Out,
    Screen,
    StorageFailed,
    Surface,
    accent,
    command,
    count,
    frozen,
    good,
    redacted,
    render,
    replace,
    rows,
    survey,
)
from mimo.extensions.exchange import documents, madr, selection, writing
from mimo.extensions.exchange.documents import File
from mimo.extensions.exchange.lines import Exported
from mimo.extensions.exchange.selection import Selection
from mimo.extensions.exchange.writing import Size

_AT_ONCE = 500
"""Lines that are printed at once."""

_UNSUPPORTED = {"madr": "that are no decisions", "claude": "superseded"}
"""The memories for which a format has no place."""


class Format(StrEnum):
    """The format of an export."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"
    MADR = "madr"
    OKF = "okf"
    LLMS = "llms"
    MCP = "mcp"
    CLAUDE = "claude"

    @property
    def is_folder(self) -> bool:
        """Returns whether it has several files."""
        return self not in (Format.JSONL, Format.LLMS, Format.MCP)


@frozen
class Left:
    """The numbers of memories that pass the filters and were left out."""

    private: Annotated[int, Out("Private memories")]
    untrusted: Annotated[int, Out("Memories that are not approved here")]
    ingested: Annotated[int, Out("Ingested files")]
    elsewhere: Annotated[int, Out("Documents, commits and comments outside .mind/")]
    other: Annotated[int, Out("Memories for which the format has no place")]


@frozen
class ExportWritten:
    """An export."""

    format: Format
    output: Annotated[str, Out("Its path; - for standard output")]
    memories: Annotated[int, Out("Number of memories in it")]
    files: int
    bytes: int
    private: Annotated[int, Out("Number of private memories in it")]
    untrusted: Annotated[int, Out("Number of unapproved memories in it")]
    left_out: Left
    user: Annotated[Omitted[bool], Out("True for the user's memory for all projects")] = None
    notice: Omitted[str] = None


class Masked(str):
    """A document whose secrets were masked before it was made: a mark could break its syntax."""

    __slots__ = ()


@frozen
class ExportPart:
    """A part of an export on standard output."""

    document: Masked


@command(
    "mind_export",
    cli="export",
    effect=Effect.READ,
    toolset="extra",
    surfaces=Surface.CLI,
    of_user=True,
    needs=Needs(Operation.READ, like="mind_list", also="mind_show"),
    errors=(Conflict, Invalid, NoProject, StorageFailed),
    examples=(
        "mind export > memories.jsonl",
        "mind export --format markdown -o vault",
        "mind export --format okf -o knowledge.zip",
        "mind export --format madr -o docs/adr --topic auth",
        "mind export --format llms -o llms.txt --force",
    ),
)
def export(
    call: Call,
    *,
    format: Annotated[
        Format,
        Arg(
            "jsonl for another project; markdown, madr, okf or claude for a folder; llms for"
            " llms.txt; mcp for the MCP memory server",
            short="f",
        ),
    ] = Format.JSONL,
    output: Annotated[
        str, Arg("File or folder to write; - is standard output", short="o", complete="path")
    ] = "-",
    private: Annotated[bool, Arg("Also private memories")] = False,
    untrusted: Annotated[bool, Arg("Also memories that are not approved here")] = False,
    everywhere: rows.OfUser = False,
    force: Annotated[bool, Arg("Replace a file, or an earlier export in a folder")] = False,
    **filters: Unpack[rows.Filters],
) -> ExportWritten:
    """Write the memories for another program or project

    Private and unapproved memories are left out, as are ingested files and documents outside
    .mind/, and secrets are masked. A name that ends with .zip gets an archive in place of a folder.
    The same memories give the same bytes.
    """
    if call.mind.is_users and not everywhere:
        raise NoProject(
            "there is no project here", hint="--user exports your memory for all projects"
        )
    path = _target(call, format, output, force=force)
    conditions = rows.narrowed(call, **filters)
    chosen = selection.select(call, conditions, private=private, untrusted=untrusted)
    document = _Document(call, chosen, format, shows=path is not None)
    is_private = private or call.mind.is_users
    mode = 0o600 if is_private else 0o666
    if path is None:
        size = _print(call, document.parts())
    elif _is_zip(format, path):
        size = writing.to_zip(path, document.files(), force=force, mode=mode)
    elif format.is_folder:
        size = writing.to_folder(path, document.files(), is_private=is_private)
    else:
        size = writing.to_file(path, document.parts(), force=force, mode=mode)
    return document.result(output, size)


def _target(call: Call, format: Format, output: str, *, force: bool) -> Path | None:
    """Returns the path to write to; None for standard output. Raises `Conflict` and `Invalid`."""
    if output == "-":
        if format.is_folder:
            raise Invalid(f"`{format}` is several files", hint="name a folder with -o, or a .zip")
        if call.console.partial is None:
            raise Invalid("there is no standard output here", hint="name a file with -o")
        return None
    path = writing.place(output)
    writing.check_free(path, force=force, folder=format.is_folder and not _is_zip(format, path))
    return path


def _is_zip(format: Format, path: Path) -> bool:
    return format.is_folder and path.suffix.casefold() == ".zip"


class _Document:
    """The memories of an export in their format, counted as they are written."""

    def __init__(self, call: Call, selection: Selection, format: Format, *, shows: bool) -> None:
        self.mind, self.format, self.shows = call, format, shows
        chosen = selection.chosen
        if format is Format.MADR:
            chosen = tuple(standing for standing in chosen if standing.type is Kind.DECISION)
        self.selection = replace(selection, chosen=chosen)
        self.other = len(selection.chosen) - len(chosen)
        self.memories = self.private = self.untrusted = 0

    def parts(self) -> Iterator[bytes]:
        """Yields the parts of a format that is one file."""
        project, user = self._project, self.mind.mind.is_users
        if self.format is Format.LLMS:
            return documents.llms(self._read(), project)
        if self.format is Format.MCP:
            return documents.knowledge_graph(self._read())
        return documents.jsonl(self._read(), project, user=user)

    def files(self) -> Iterator[File]:
        """Yields the files of a format that is a folder."""
        if self.format is Format.MADR:
            return madr.records(self._read(), self._project)
        if self.format is Format.OKF:
            return documents.okf(self._read(), self._names(), self._project)
        if self.format is Format.CLAUDE:
            return documents.claude(self._read(), self._names(), user=self.mind.mind.is_users)
        places = {standing.path: standing.id for standing in self.selection.chosen}
        return documents.markdown(self._read(), self._names(), self._project, places)

    def result(self, output: str, size: Size) -> ExportWritten:
        """Returns the result after all has been written."""
        left = self.selection.left_out
        return ExportWritten(
            format=self.format,
            output=output,
            memories=self.memories,
            files=size.files,
            bytes=size.bytes,
            private=self.private,
            untrusted=self.untrusted,
            left_out=Left(
                private=left.private,
                untrusted=left.untrusted,
                ingested=left.ingested,
                elsewhere=left.elsewhere,
                other=self.other,
            ),
            user=self.mind.mind.is_users or None,
            notice=self.mind.notice,
        )

    @property
    def _project(self) -> str:
        return redacted(self.mind.mind.project.name).value

    def _names(self) -> dict[str, str]:
        """Returns the name of each memory's file."""
        return documents.file_names(
            (self._folder(standing), standing.id) for standing in self.selection.chosen
        )

    def _folder(self, standing: survey.Standing) -> str:
        if self.format is Format.CLAUDE:
            return ""
        is_apart = standing.private and self.format is Format.MARKDOWN
        return f"{'private/' if is_apart else ''}{standing.type.folder}/"

    def _read(self) -> Iterator[Exported]:
        total = len(self.selection.chosen)
        for number, exported in enumerate(selection.exported(self.mind, self.selection), 1):
            if self.shows:
                self.mind.advance("Exporting", number, total)
            if self.format is Format.CLAUDE and exported.is_past:
                self.other += 1
                continue
            self.memories += 1
            self.private += exported.private
            self.untrusted += exported.untrusted
            yield exported


def _print(call: Call, parts: Iterator[bytes]) -> Size:
    """Shows the parts, several at once, and returns their size."""
    size = 0
    while some := b"".join(islice(parts, _AT_ONCE)):
        size += len(some)
        if call.console.partial:
            call.console.partial(ExportPart(document=Masked(some.decode())))
    return Size(1, size)


@render.register
def _(result: ExportPart, screen: Screen) -> None:
    screen.verbatim(result.document, commands=True)


@render.register
def _(result: ExportWritten, screen: Screen) -> None:
    memories = count(result.memories, "memory", "memories")
    if result.output != "-":
        size = f"{max(1, result.bytes // 1000):,} kB"
        files = f" in {count(result.files, 'file')}" if result.format.is_folder else ""
        screen.line(good("✓ "), accent(result.output), f"  {memories}{files}, {size}")
    marked = ((result.private, "private"), (result.untrusted, "unapproved"))
    held = [f"{number:,} {name}" for number, name in marked if number]
    if result.user:
        screen.note("it is your memory for all projects")
    if held:
        screen.note(f"memories in it that were left out by default: {' and '.join(held)}")
    left = result.left_out
    parts = [
        (left.private, "private (--private)"),
        (left.untrusted, "unapproved (--untrusted)"),
        (left.ingested, "ingested files" if left.ingested > 1 else "ingested file"),
        (left.elsewhere, "from outside .mind/"),
        (left.other, _UNSUPPORTED.get(result.format, "other")),
    ]
    if listed := [f"{number:,} {name}" for number, name in parts if number]:
        screen.note(f"left out: {', '.join(listed)}")
    if not result.memories:
        screen.note("no memory passes the filters")
