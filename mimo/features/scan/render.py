"""How found secrets are told."""

from mimo.features.scan.commands import Scanned
from mimo.rendering.results import count, render
from mimo.rendering.screen import Screen, accent, bad, dim, good, warn


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
    looked = f"{count(result.files, 'file')} looked at"
    if result.clean:
        screen.line(good("✓ "), f"no secrets; {looked}")
        return
    screen.line(bad(count(len(result.found), "secret")), f"; {looked}")
    screen.line(dim("Revoke what is real: git keeps what was committed."))
    if any(row.trash for row in result.found):
        screen.line(dim("Remove it from the trash: `mind undo ID --purge`."))
    screen.line(dim("Mark what is none: put `mind:allow-secret` on its line."))
