"""How ingested files look."""

from mimo.features.ingest.commands import ChunkRow, FileRow, Ingested
from mimo.rendering.results import count, render
from mimo.rendering.screen import Screen, accent, dim, good, strong, warn

_LINES = 4
"""Lines of a chunk that a dry run shows."""


@render.register
def _(result: Ingested, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
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
        held = count(len(result.ids), "chunk")
        screen.line(good("✓ "), f"already ingested, {held}", dim("  (--force does it anew)"))
    elif result.ids:
        old = f", {result.replaced:,} older replaced" if result.replaced else ""
        made = count(result.chunks_created, "chunk")
        screen.line(good("✓ "), strong(made), f" by {result.strategy_used}{old}")
    else:
        screen.line(warn("no chunks: it holds no ten characters of text together"))
        return
    screen.line(accent(result.source_id or ""), indent=2)
    screen.line(dim(result.file or ""), indent=2)


def _total(result: Ingested, files: tuple[FileRow, ...], screen: Screen) -> None:
    done = [file for file in files if not file.skipped]
    known = sum(bool(file.already_ingested) for file in done)
    skipped = len(files) - len(done)
    parts = [
        f"{count(result.chunks_created, 'chunk')} of {count(len(done) - known, 'file')}",
        f"{known:,} ingested before" if known else "",
        f"{count(result.replaced, 'older chunk')} replaced" if result.replaced else "",
        f"{skipped:,} left out" if skipped else "",
    ]
    screen.line(good("✓ ") if done else warn("✗ "), ", ".join(part for part in parts if part))


def _file(file: FileRow, screen: Screen, *, dry_run: bool) -> None:
    if file.skipped:
        screen.line(warn("left out  "), f"{file.path}: {file.skipped}", dim(f"  [{file.code}]"))
    elif not file.already_ingested and not dry_run:
        made = count(file.chunks_created, "chunk")
        screen.line(accent(file.path), dim(f"  {made}, {file.strategy_used}"))


def _chunk(chunk: ChunkRow, screen: Screen) -> None:
    heading = " › ".join(chunk.heading_path)  # noqa: RUF001 - as in titles
    facts = f"  {count(chunk.characters, 'character')}"
    screen.line(accent(f"{chunk.path}:{chunk.lines}"), dim(facts), f"  {heading}" * bool(heading))
    lines = chunk.text.splitlines()
    cut = ["…"] if len(lines) > _LINES else []
    screen.text("\n".join([*lines[:_LINES], *cut]), indent=4)
    screen.blank()
