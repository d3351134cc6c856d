"""The first look at memory of other authors, as text."""

from mimo.cli.render import Part, Screen, accent, dim, strong, warn
from mimo.cli.render.words import count, day
from mimo.commands.look import FirstLook
from mimo.domain.sentences import cut

_MOST = 5
_LONGEST = 200
"""Characters that are shown of a title or a name: a longer one would hide the text around it."""


def show_look(look: FirstLook, screen: Screen) -> None:
    """Write what nobody here has approved."""
    memories = count(look.memories, "memory", "memories")
    screen.line(warn(f"{memories} here that nobody on this machine has approved"))
    rows: list[tuple[str, Part]] = [("types", _listed(look.by_type))]
    if look.authors:
        rows.append(("last committed by", _listed(look.authors)))
    if look.procedures:
        rows.append(("procedures", warn(", ".join(look.procedures))))
    if look.policy:
        rows.append(("policy", "policy.yaml, which can only narrow what is permitted"))
    screen.pairs(rows, indent=2)
    for one in look.newest:
        screen.line(
            dim(f"{day(one.created_at)}  {one.type:<11} "), strong(short(one.title)), indent=2
        )
        screen.line(accent(one.id), indent=4)
    if (more := look.memories - len(look.newest)) > 0:
        screen.line(dim(f"and {more:,} more"), indent=2)
    if look.yours:
        many = count(look.yours, "file was", "files were")
        screen.line(f"{many} last committed under your own address, which anyone can write;")
        screen.line("approve just those with ", accent("`mind trust --mine`"))


def short(text: str) -> str:
    """Returns a title or a name that another author chose, cut if it is long."""
    return cut(text, _LONGEST)


def _listed(numbers: dict[str, int]) -> str:
    first = [f"{short(name)} {number:,}" for name, number in list(numbers.items())[:_MOST]]
    rest = len(numbers) - _MOST
    return ", ".join([*first, *([f"and {rest:,} more"] if rest > 0 else [])])
