"""The output of `mind review`, `mind trust` and `mind untrust`."""

from mimo.commands.common import TrustLabel
from mimo.features.review.commands import Review, ReviewChoice, ReviewItem, SettledRow, TrustState
from mimo.features.review.trusting import short, show_look
from mimo.rendering.results import count, day, labels, render, tally
from mimo.rendering.screen import Part, Screen, accent, bad, dim, good, strong, warn

_MOST_LINES = 12
"""Lines of one version that are shown in a list."""


@render.register
def _(result: Review, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    if not result.total:
        screen.line(good("✓ "), "nothing to review")
        return
    if result.arrived:
        show_look(result.arrived, screen)
        screen.blank()
    for item in result.items:
        show_item(item, screen)
        for action in item.actions:
            screen.line(accent(action), indent=4)
        screen.blank()
    cut = len(result.items) < result.total
    shown = f"; the most urgent {len(result.items):,} are shown" if cut else ""
    screen.line(dim(f"to review: {tally(result.counts)}{shown}"))


@render.register
def _(result: SettledRow, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    screen.line(good("✓ "), strong(short(result.title or result.id or "")))
    screen.line(result.told, indent=2)
    for file in result.files:
        screen.line(dim(f"changed {file}"), indent=2)
    if result.left:
        screen.line(f"{count(result.left, 'item')} of it left to review", indent=2)


def show_item(item: ReviewItem, screen: Screen) -> None:
    """Write one item, without its commands."""
    trust = item.trust or TrustLabel.TRUSTED
    marks = labels(trust=trust) if item.kind != "untrusted" else []
    screen.line(_kind(item), "  ", strong(short(item.title or item.file)), *marks)
    screen.line(item.why, indent=2)
    place = f"{item.file}:{item.line}" if item.line else item.file
    about: list[Part] = [accent(item.id), "  "] if item.id else []
    screen.line(*about, dim(place), indent=2)
    for choice in item.choices:
        _choice(choice, screen)


def _kind(item: ReviewItem) -> Part:
    return (
        bad(item.kind) if item.kind in ("unreadable", "versions", "decisions") else warn(item.kind)
    )


def _choice(choice: ReviewChoice, screen: Screen) -> None:
    number = strong(f"{choice.number}. ")
    if choice.id:
        by = f" by {choice.by}" if choice.by else ""
        made = f"  {day(choice.created_at)}{by}" if choice.created_at else ""
        marks = labels(trust=choice.trust or TrustLabel.TRUSTED)
        title = strong(short(choice.title or ""))
        screen.line(number, title, dim(short(made)), *marks, indent=2)
        screen.line(accent(choice.id), indent=5)
        return
    lines = (choice.text or "(nothing)").splitlines()
    screen.line(number, lines[0], indent=2)
    for line in lines[1:_MOST_LINES]:
        screen.line(line, indent=5)
    if len(lines) > _MOST_LINES:
        screen.line(dim(f"… {len(lines) - _MOST_LINES} more lines"), indent=5)


@render.register
def _(result: TrustState, screen: Screen) -> None:
    screen.line(good("✓ "), strong(result.trust))
    if result.left and result.left.memories:
        show_look(result.left, screen)
        screen.line(dim("review them with "), accent("`mind review --kind untrusted`"), indent=2)
