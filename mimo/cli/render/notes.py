"""How single memories look."""

from mimo.cli.render import Part, Screen, accent, bad, dim, good, render, strong
from mimo.cli.render.words import count, labels, tagged
from mimo.commands.notes import MemoryDetails, Removed, Written


@render.register
def _(result: Written, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    before = "  stored before" if result.already else ""
    screen.line(good("✓ "), strong(result.title), before, *labels(private=result.private))
    screen.line(accent(result.id), indent=2)
    screen.line(dim(result.file), indent=2)


@render.register
def _(result: Removed, screen: Screen) -> None:
    screen.line(good("✓ "), "removed ", strong(result.title), _with_chunks(result))
    screen.line(dim(result.file), indent=2)
    if result.undo:
        screen.note("`mind undo` brings it back")


@render.register
def _(result: MemoryDetails, screen: Screen) -> None:
    marks = labels(
        outcome=result.outcome,
        superseded_by=result.superseded_by,
        trust=result.trust,
        private=result.private,
    )
    screen.line(strong(result.title), *marks)
    if result.warning:
        screen.line(bad(result.warning), indent=2)
    screen.pairs(_facts(result), indent=2)
    if result.extra:
        # Apart from our own rows: anybody can write `trust: trusted` into a header.
        screen.line(dim("also in its header:"), indent=2)
        screen.pairs([(key, str(value)) for key, value in result.extra.items()], indent=4)
    screen.blank()
    screen.markdown(_body(result))


def _with_chunks(result: Removed) -> str:
    return f" with {count(result.chunks, 'chunk')}" if result.chunks else ""


def _facts(result: MemoryDetails) -> list[tuple[str, Part]]:
    stamp = result.created_at.strftime("%Y-%m-%d %H:%M UTC")
    rows: list[tuple[str, Part | None]] = [
        ("id", accent(result.id)),
        ("type", result.type),
        ("topic", result.topic),
        ("tags", tagged(result.tags)),
        ("status", result.status),
        ("category", result.category),
        ("source", result.source),
        ("importance", f"{result.importance:g}"),
        ("confidence", None if result.confidence is None else f"{result.confidence:g}"),
        ("created", f"{stamp}{f' by {result.by}' if result.by else ''}"),
        ("file", f"{result.file}:{result.line}"),
        *((f"{link.type}", f"{link.to}  {link.title or '(not there)'}") for link in result.links),
    ]
    return [(name, value) for name, value in rows if value]


def _body(result: MemoryDetails) -> str:
    sections = [f"## {name}\n\n{text}" for name, text in result.sections.items()]
    return "\n\n".join(part for part in (result.content, *sections) if part)
