"""How far memory is trusted, told."""

from mimo.cli.render import Screen, accent, dim, good, render, strong
from mimo.cli.render.look import show_look
from mimo.commands.trust import TrustState


@render.register
def _(result: TrustState, screen: Screen) -> None:
    screen.line(good("✓ "), strong(result.trust))
    if result.left and result.left.memories:
        show_look(result.left, screen)
        screen.line(
            dim("go through them with "), accent("`mind review --kind untrusted`"), indent=2
        )
