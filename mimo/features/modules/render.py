"""How modules look."""

from pathlib import PurePath

from mimo.features.modules.commands import InstalledModule, ModuleList
from mimo.rendering.results import render
from mimo.rendering.screen import Screen, accent, dim, good, strong, warn


@render.register
def _(result: InstalledModule, screen: Screen) -> None:
    done = "is in place" if result.written else "was in place already"
    screen.line(good("✓ "), strong(result.id), f" {done}  ", dim(result.folder))
    for name in result.written:
        screen.line(dim(f"wrote {name}"), indent=2)
    script = PurePath(result.folder, "memory_module.py")
    sample = PurePath(result.folder, "samples", "test_invocation.json")
    screen.line("try it: ", accent(f"python {script} {sample}"))


@render.register
def _(result: ModuleList, screen: Screen) -> None:
    if not result.modules:
        screen.line(f"no modules in {result.target}/.mcp/modules")
        screen.line("write ours with ", accent("`mind module install`"))
        return
    for row in result.modules:
        mark = good("✓ ") if row.runs else warn("✗ ")
        about = "  ".join(word for word in (row.version, ", ".join(row.commands)) if word)
        screen.line(mark, strong(row.id or "unreadable"), "  ", dim(about))
        screen.line(dim(row.file), indent=2)
        if row.reason:
            screen.line(warn(row.reason), indent=2)
