"""`mind ingest`: files become memories, chunk by chunk."""

from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Json, Omitted, Out, command
from mimo.errors import (
    FileTooLarge,
    Invalid,
    NotFound,
    SandboxViolation,
    SecretDetected,
    StorageFailed,
    TooManyChunks,
    join_texts,
)
from mimo.features.ingest import FileReport, Options, Report, ingest_files, update_files
from mimo.frozen import frozen
from mimo.memory.chunking import LINES, SMALLEST, Chunking, Strategy
from mimo.memory.ids import with_handles
from mimo.memory.model import Category, Kind
from mimo.memory.sources import chunk_id
from mimo.operations import encoding
from mimo.operations.rows import Importance, OtherPrivate, Tags, row_of
from mimo.rendering import Screen, accent, dim, good, ident, path, strong, warn
from mimo.rendering.results import count, first_lines, render

MIXED = "mixed"
_NO_CHUNKS = "no part of it has ten characters, so nothing of it is stored"


@frozen
class ChunkRow:
    """A chunk that would be stored."""

    id: str
    path: str
    chunk_index: Annotated[int, Out("Its index among the chunks of its file, from 0")]
    lines: Annotated[str, Out("Its lines in the file, such as 120-148")]
    heading_path: tuple[str, ...]
    characters: int
    text: str


@frozen
class FileRow:
    """One of several files."""

    path: Annotated[str, Out("Relative to the project")]
    chunks_created: int
    file_size: int
    strategy_used: Omitted[str] = None
    source_id: Omitted[str] = None
    file: Annotated[Omitted[str], Out("The file that holds its chunks")] = None
    already_ingested: Omitted[bool] = None
    replaced: Annotated[Omitted[int], Out("Number of older chunks replaced")] = None
    skipped: Annotated[Omitted[str], Out("Why it was skipped")] = None
    code: Annotated[Omitted[str], Out("The code of that error")] = None
    hint: Annotated[Omitted[str], Out("What to do about it")] = None


@frozen
class Ingested:
    """The result of ingesting one file or several."""

    ingested: Annotated[bool, Out("Whether the content is stored now")]
    chunks_created: int
    file_size: Annotated[int, Out("In bytes; the sum for several files")]
    strategy_used: Annotated[str, Out("The strategy used; `mixed` if the files differ")]
    ids: Annotated[tuple[str, ...], Out("Ids of the chunks, in the order of the text", page=20)]
    source_id: Annotated[Omitted[str], Out("Id for all of its chunks")] = None
    file: Annotated[Omitted[str], Out("The file that holds its chunks")] = None
    already_ingested: Annotated[
        Omitted[bool], Out("True if it was ingested before and is unchanged")
    ] = None
    replaced: Annotated[Omitted[int], Out("Number of older chunks replaced")] = None
    dry_run: Annotated[Omitted[bool], Out("True if nothing was written")] = None
    chunks: Annotated[Omitted[tuple[ChunkRow, ...]], Out("The chunks of a dry run", page=20)] = None
    files: Annotated[
        Omitted[tuple[FileRow, ...]], Out("Each file, if there can be several", page=20)
    ] = None
    failed: Annotated[Omitted[int], Out("Number of named files skipped")] = None
    notice: Omitted[str] = None

    @property
    def exit_status(self) -> int:
        """Returns 1 if a named file could not be ingested."""
        return int(bool(self.failed))


@command(
    "ingest",
    effect=Effect.WRITE,
    toolset="ingest",
    errors=(
        Invalid,
        NotFound,
        SecretDetected,
        FileTooLarge,
        TooManyChunks,
        SandboxViolation,
        StorageFailed,
    ),
    examples=(
        "mind ingest docs/api.md --tag api",
        "mind ingest docs notes/*.txt --chunk-size 1500 --overlap 150",
        "mind ingest CHANGELOG.md --dry-run",
        "mind ingest --update",
    ),
    description="Ingest file content into memory with automatic chunking",
    title="Ingest files",
)
def ingest(
    call: Call,
    path: Annotated[
        str,
        Arg(
            "A file, a folder, or a glob such as docs/**/*.md",
            complete="path",
            fallback=("update", "."),
        ),
    ],
    paths: Annotated[
        tuple[str, ...], Arg("More files, folders or globs", complete="path", surfaces=Surface.CLI)
    ] = (),
    *,
    strategy: Annotated[
        Strategy, Arg("Way to split; auto depends on the file type", agents="")
    ] = Strategy.AUTO,
    chunk_size: Annotated[
        int | None, Arg("Target size of a chunk, in characters", agents="Characters", ge=SMALLEST)
    ] = None,
    overlap: Annotated[
        int, Arg("Characters shared by adjacent chunks, less than a chunk has", agents="", ge=0)
    ] = 0,
    lines_per_chunk: Annotated[int, Arg("Lines per chunk, for `lines`", agents="", ge=1)] = LINES,
    category: Annotated[Category, Arg("Category of the memories", agents="")] = Category.FACT,
    importance: Importance = 0.5,
    tags: Tags = (),
    metadata: Annotated[
        Json, Arg("An object to store with every chunk", agents="", object=True)
    ] = None,
    private: OtherPrivate = False,
    force: Annotated[bool, Arg("Ingest unchanged files again", listed=False)] = False,
    update: Annotated[
        bool,
        Arg(
            "Ingest changed files again, with their earlier options (PATH default .)", listed=False
        ),
    ] = False,
    dry_run: Annotated[bool, Arg("Show the chunks and write nothing", listed=False)] = False,
) -> Ingested:
    """Ingest files as memories, chunk by chunk

    A file is ingested as a whole or not at all, and a changed file replaces its own older chunks.
    In folders and globs, files that git ignores, hidden files and links are skipped.
    """
    chunking = Chunking(
        strategy=strategy, chunk_size=chunk_size, overlap=overlap, lines_per_chunk=lines_per_chunk
    )
    options = Options(
        chunking=chunking,
        type=Kind(category),
        importance=importance,
        tags=tags,
        metadata=metadata if isinstance(metadata, dict) else {},
        private=private,
        force=force,
        dry_run=dry_run,
    )
    run = update_files if update else ingest_files
    return _result(call, run(call, (path, *paths), options), dry_run=dry_run)


def _result(call: Call, report: Report, *, dry_run: bool) -> Ingested:
    files = report.files
    done = [file for file in files if file.refusal is None]
    single = files[0] if report.is_single else None
    if not dry_run:
        encoding.note_missing(call, sum(map(_created, done)))
    is_short = bool(single and done and not single.ids and not dry_run)
    strategies = list(dict.fromkeys(file.strategy.value for file in done))
    return Ingested(
        ingested=any(file.ids for file in done) and not dry_run,
        chunks_created=0 if dry_run else sum(map(_created, done)),
        file_size=sum(file.size for file in done),
        strategy_used=strategies[0] if len(strategies) == 1 else MIXED,
        ids=tuple(id_ for file in done for id_ in file.ids),
        source_id=single.source_id if single and single.ids else None,
        file=single.file if single else None,
        already_ingested=(bool(done) and all(file.is_known for file in done)) or None,
        replaced=sum(file.replaced for file in done) or None,
        dry_run=dry_run or None,
        chunks=tuple(row for file in done for row in _chunk_rows(file)) if dry_run else None,
        files=None if single else tuple(map(_file_row, files)),
        failed=sum(file.refusal is not None and file.is_named for file in files) or None,
        notice=join_texts(call.notice, _NO_CHUNKS if is_short else None),
    )


def _created(file: FileReport) -> int:
    return 0 if file.is_known else len(file.ids)


def _chunk_rows(file: FileReport) -> list[ChunkRow]:
    return [
        ChunkRow(
            id=chunk_id(file.source_id or "", number),
            path=file.path,
            chunk_index=number - 1,
            lines=f"{chunk.first_line}-{chunk.last_line}",
            heading_path=chunk.path,
            characters=len(chunk.text),
            text=chunk.text,
        )
        for number, chunk in enumerate(file.chunks, 1)
    ]


def _file_row(file: FileReport) -> FileRow:
    refusal = file.refusal
    return row_of(
        file,
        FileRow,
        source_id=file.source_id if file.ids else None,
        chunks_created=_created(file),
        file_size=file.size,
        strategy_used=None if refusal else file.strategy.value,
        already_ingested=file.is_known or None,
        replaced=file.replaced or None,
        skipped=refusal.message if refusal else None,
        code=refusal.code if refusal else None,
        hint=refusal.hint or None if refusal else None,
    )


@render.register
def _(result: Ingested, screen: Screen) -> None:
    for chunk in result.chunks or ():
        _chunk(chunk, screen)
    for file in result.files or ():
        _file(file, screen, dry_run=bool(result.dry_run))
    if result.dry_run:
        screen.line(dim(f"{count(len(result.chunks or ()), 'chunk')}; nothing was written"))
        return
    if result.files is None:
        _one(result, screen)
    else:
        _total(result, result.files, screen)


def _one(result: Ingested, screen: Screen) -> None:
    if result.already_ingested:
        chunks = count(len(result.ids), "chunk")
        screen.line(good("✓ "), f"already ingested, {chunks}", dim("  (--force ingests it again)"))
    elif result.ids:
        old = f", {result.replaced:,} older replaced" if result.replaced else ""
        total = count(result.chunks_created, "chunk")
        screen.line(good("✓ "), strong(total), f" by {result.strategy_used}{old}")
    else:
        removed = f"; {count(result.replaced, 'older chunk')} removed" if result.replaced else ""
        screen.line(warn(f"no chunks{removed}"))
        return
    screen.line(ident(result.source_id or ""), "  ", path(result.file or ""), indent=2)


def _total(result: Ingested, files: tuple[FileRow, ...], screen: Screen) -> None:
    done = [file for file in files if not file.skipped]
    unchanged = sum(bool(file.already_ingested) for file in done)
    skipped = len(files) - len(done)
    parts = [
        f"{count(result.chunks_created, 'chunk')} of {count(len(done) - unchanged, 'file')}",
        f"{unchanged:,} ingested before" if unchanged else "",
        f"{count(result.replaced, 'older chunk')} replaced" if result.replaced else "",
        f"{skipped:,} skipped" if skipped else "",
    ]
    screen.line(good("✓ ") if done else warn("✗ "), ", ".join(part for part in parts if part))


def _file(file: FileRow, screen: Screen, *, dry_run: bool) -> None:
    if file.skipped:
        screen.line(warn("skipped  "), f"{file.path}: {file.skipped}")
        if file.hint:
            screen.line(dim("hint: "), with_handles(file.hint), indent=2)
    elif not file.already_ingested and not dry_run:
        total = count(file.chunks_created, "chunk")
        screen.line(accent(file.path), dim(f"  {total}, {file.strategy_used}"))


def _chunk(chunk: ChunkRow, screen: Screen) -> None:
    heading = " › ".join(chunk.heading_path)  # noqa: RUF001 - as in titles
    facts = f"  {count(chunk.characters, 'character')}"
    screen.line(accent(f"{chunk.path}:{chunk.lines}"), dim(facts), f"  {heading}" * bool(heading))
    screen.text(first_lines(chunk.text), indent=4)
    screen.blank()
