"""How the context of the work looks."""

from mimo.features.context.commands import ContextShown, ContextWritten, MemoryUsage, WorkContext
from mimo.rendering.results import count, render
from mimo.rendering.screen import Part, Screen, accent, bad, dim, good

# How the notes for agents look.


@render.register
def _(result: ContextShown, screen: Screen) -> None:
    screen.markdown(result.text)
    screen.note(
        f"{count(result.notes, 'note')}, {result.characters:,} characters, "
        f"about {result.tokens:,} tokens"
    )


@render.register
def _(result: ContextWritten, screen: Screen) -> None:
    for one in result.files:
        told = "made" if one.created else "written" if one.changed else "up to date"
        screen.line(good("✓ "), accent(one.path), dim(f" {told}"))
    if result.notice:
        screen.note(result.notice)


@render.register
def _(result: WorkContext, screen: Screen) -> None:
    rows: list[tuple[str, Part | None]] = [
        ("session", result.session_id),
        ("agent", result.agent_id),
        ("task", result.task_id),
        ("since", f"{result.start_time:%Y-%m-%d %H:%M:%S} UTC" if result.start_time else None),
        ("usage", _usage(result.memory_usage)),
    ]
    screen.pairs([(name, value) for name, value in rows if value])
    for used in result.tool_history or ():
        mark = good("✓") if used.success else bad("✗")
        screen.line(mark, f" {used.timestamp:%H:%M:%S}  {used.tool_name}")
    if result.tool_history == ():
        screen.line(dim("no tool was called in this session yet"))


def _usage(usage: MemoryUsage | None) -> str | None:
    if usage is None:
        return None
    if usage.estimated:
        return "not reported"
    return f"{usage.tokens_used:,} tokens, {usage.usd_spent:.2f} USD"
