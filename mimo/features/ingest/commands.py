"""`mind ingest`: files become memories, chunk by chunk."""

from typing import Annotated

from mimo.commands.common import Importance, Private, Tags
from mimo.commands.spec import Arg, Effect, Json, Omitted, Out, Surface, command
from mimo.errors import (
    FileTooLarge,
    Invalid,
    NotFound,
    SandboxViolation,
    SecretDetected,
    StorageFailed,
    TooManyChunks,
)
from mimo.features import ingest as intake
from mimo.features.ingest import Taken, Wish
from mimo.frozen import frozen
from mimo.memory.chunking.model import LINES, Chunking, Strategy
from mimo.memory.model import Category, Kind
from mimo.mind import Mind

MIXED = "mixed"


@frozen
class ChunkRow:
    """A chunk that was, or would be, made."""

    id: str
    path: str
    chunk_index: Annotated[int, Out("Its place among the chunks of its file, from 0")]
    lines: Annotated[str, Out("The lines of the file that it is, such as 120-148")]
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
    file: Annotated[Omitted[str], Out("Where its chunks are kept", omit=True)] = None
    already_ingested: Omitted[bool] = None
    replaced: Annotated[Omitted[int], Out("Older chunks that made room", omit=True)] = None
    skipped: Annotated[Omitted[str], Out("Why it was left out", omit=True)] = None
    code: Annotated[Omitted[str], Out("The code of that error", omit=True)] = None


@frozen
class Ingested:
    """What came of ingesting a file, or several."""

    ingested: Annotated[bool, Out("Whether the content is in memory now")]
    chunks_created: int
    file_size: Annotated[int, Out("In bytes; of all files together where there are several")]
    strategy_used: Annotated[str, Out("What `auto` came to; `mixed` for files that differ in it")]
    ids: Annotated[tuple[str, ...], Out("Ids of the chunks, in the order of the text")]
    source_id: Annotated[Omitted[str], Out("Id of all its chunks together", omit=True)] = None
    file: Annotated[Omitted[str], Out("Where its chunks are kept", omit=True)] = None
    already_ingested: Annotated[
        Omitted[bool], Out("True where it was there already, just as it is", omit=True)
    ] = None
    replaced: Annotated[Omitted[int], Out("Older chunks that made room", omit=True)] = None
    dry_run: Annotated[Omitted[bool], Out("True where nothing was written", omit=True)] = None
    chunks: Annotated[
        Omitted[tuple[ChunkRow, ...]], Out("What would be made, in a dry run", omit=True)
    ] = None
    files: Annotated[
        Omitted[tuple[FileRow, ...]], Out("File by file, where there may be several", omit=True)
    ] = None
    failed: Annotated[Omitted[int], Out("Named files that were left out", omit=True)] = None
    notice: Omitted[str] = None

    @property
    def exit_status(self) -> int:
        """Returns 1 where something that was named could not be taken in."""
        return int(bool(self.failed))


@command(
    "ingest",
    effect=Effect.WRITE,
    idempotent=True,
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
)
def ingest(
    mind: Mind,
    path: Annotated[
        str,
        Arg(
            "A file, a folder, or a glob such as docs/**/*.md",
            complete="path",
            fallback=("update", "."),
        ),
    ],
    paths: Annotated[
        tuple[str, ...], Arg("More of them", complete="path", surfaces=Surface.CLI)
    ] = (),
    *,
    strategy: Annotated[Strategy, Arg("Where to cut; auto goes by the type")] = Strategy.AUTO,
    chunk_size: Annotated[int | None, Arg("Size of a chunk to aim at, in characters", ge=1)] = None,
    overlap: Annotated[
        int, Arg("Characters that neighbours share, less than chunk_size", ge=0)
    ] = 0,
    lines_per_chunk: Annotated[int, Arg("Lines of a chunk, for `lines`", ge=1)] = LINES,
    category: Annotated[Category, Arg("What kind of memory it is")] = Category.FACT,
    importance: Importance = 0.5,
    tags: Tags = (),
    metadata: Annotated[Json, Arg("An object to keep with every chunk")] = None,
    private: Private = False,
    force: Annotated[bool, Arg("Take in anew what is there already")] = False,
    update: Annotated[
        bool, Arg("Ingest changed files again, with their earlier options (PATH default .)")
    ] = False,
    dry_run: Annotated[bool, Arg("Only show the chunks")] = False,
) -> Ingested:
    """Take files in as memories, chunk by chunk

    A file is taken in as a whole or not at all, and one that changed replaces its own older chunks.
    Of a folder or a glob, what .gitignore names, hidden files and links are passed over.
    """
    chunking = Chunking(
        strategy=strategy, chunk_size=chunk_size, overlap=overlap, lines_per_chunk=lines_per_chunk
    )
    wish = Wish(
        chunking=chunking,
        type=Kind(category),
        importance=importance,
        tags=tags,
        metadata=_object(metadata),
        private=private,
        force=force,
        dry_run=dry_run,
    )
    take = intake.update if update else intake.ingest
    return _ingested(mind, take(mind, (path, *paths), wish), dry_run=dry_run)


def _object(metadata: Json) -> dict[str, Json]:
    if metadata is None or isinstance(metadata, dict):
        return metadata or {}
    raise Invalid(
        "`metadata` must be an object",
        hint='such as {"team": "api"}',
        details={"field": "metadata"},
    )


def _ingested(mind: Mind, report: intake.Report, *, dry_run: bool) -> Ingested:
    taken = report.files
    done = [one for one in taken if one.refusal is None]
    one = taken[0] if report.is_single else None
    strategies = list(dict.fromkeys(one.strategy.value for one in done))
    return Ingested(
        ingested=bool(done) and not dry_run,
        chunks_created=0 if dry_run else sum(map(_created, done)),
        file_size=sum(one.size for one in done),
        strategy_used=strategies[0] if len(strategies) == 1 else MIXED,
        ids=tuple(id_ for one in done for id_ in one.ids),
        source_id=one.source_id if one else None,
        file=one.file if one else None,
        already_ingested=(bool(done) and all(one.is_known for one in done)) or None,
        replaced=sum(one.replaced for one in done) or None,
        dry_run=dry_run or None,
        chunks=tuple(row for one in done for row in _chunks(one)) if dry_run else None,
        files=None if one else tuple(map(_file, taken)),
        failed=sum(one.refusal is not None and one.is_named for one in taken) or None,
        notice=mind.notice,
    )


def _created(taken: Taken) -> int:
    return 0 if taken.is_known else len(taken.ids)


def _chunks(taken: Taken) -> list[ChunkRow]:
    return [
        ChunkRow(
            id=id_,
            path=taken.path,
            chunk_index=index,
            lines=f"{chunk.first_line}-{chunk.last_line}",
            heading_path=chunk.path,
            characters=len(chunk.text),
            text=chunk.text,
        )
        for index, (id_, chunk) in enumerate(zip(taken.new_ids, taken.chunks, strict=True))
    ]


def _file(taken: Taken) -> FileRow:
    refusal = taken.refusal
    return FileRow(
        path=taken.path,
        chunks_created=_created(taken),
        file_size=taken.size,
        strategy_used=None if refusal else taken.strategy.value,
        source_id=taken.source_id,
        file=taken.file,
        already_ingested=taken.is_known or None,
        replaced=taken.replaced or None,
        skipped=refusal.message if refusal else None,
        code=refusal.code if refusal else None,
    )
