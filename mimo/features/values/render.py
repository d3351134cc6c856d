"""How values look."""

from mimo.commands.common import TrustLabel
from mimo.features.values.commands import KeptValue, ValueGone, ValueKeys, ValuePut
from mimo.rendering import as_json
from mimo.rendering.results import count, render
from mimo.rendering.screen import Screen, good


@render.register
def _(result: ValueKeys, screen: Screen) -> None:
    for problem in result.problems or ():
        screen.note(problem)
    for key in result.keys:
        screen.line(key)
    told = f"{len(result.keys):,} of {count(result.total, 'key')}"
    more = f"; go on with --cursor {result.cursor}" if result.cursor else ""
    screen.note(told + more)


@render.register
def _(result: KeptValue, screen: Screen) -> None:
    if isinstance(result.value, str):
        screen.verbatim(result.value or "\n")
    else:
        screen.verbatim(as_json(result.value, indent=2))
    if result.trust is TrustLabel.UNTRUSTED:
        screen.note(f"untrusted: nobody here has approved {result.file}")


@render.register
def _(result: ValuePut, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    if result.expires_at:
        screen.line(good("✓ "), f"kept until {result.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    else:
        screen.line(good("✓ "), f"kept in {result.file}" if result.file else "kept on this machine")


@render.register
def _(_result: ValueGone, screen: Screen) -> None:
    screen.line(good("✓ "), "removed")
