"""Tables, and the parts of pages that a program writes: `<!-- NAME -->` to `<!-- /NAME -->`."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def table(titles: Sequence[str], rows: Iterable[Iterable[object]], left: int = 1) -> str:
    """Returns a table in Markdown; the columns after the first `left` ones have figures."""
    marks = ["---"] * left + ["---:"] * (len(titles) - left)
    lines = (f"| {' | '.join(map(str, row))} |" for row in rows)
    return "\n".join([f"| {' | '.join(titles)} |", f"|{'|'.join(marks)}|", *lines])


def part_of(page: Path, name: str) -> str:
    """Returns the part of a page; empty without its marks."""
    rest = page.read_text("utf-8").partition(f"<!-- {name} -->\n")[2]
    return rest.partition(f"<!-- /{name} -->")[0]


def write_part(page: Path, name: str, part: str) -> None:
    """Replaces the part of a page. Raises `ValueError` if the page does not have its marks."""
    before, start, rest = page.read_text("utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not end:
        raise ValueError(f"{page} has no part `{name}`")
    page.write_text(f"{before}{start}{part.rstrip()}\n{end}{after}", "utf-8")
