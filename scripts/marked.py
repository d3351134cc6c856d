"""Parts of pages that a program writes, between `<!-- NAME -->` and `<!-- /NAME -->`."""

from pathlib import Path


def write_part(page: Path, name: str, part: str) -> None:
    """Replaces the part of a page. Raises `ValueError` if the page does not have its marks."""
    before, start, rest = page.read_text("utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not end:
        raise ValueError(f"{page} has no part `{name}`")
    page.write_text(f"{before}{start}{part.rstrip()}\n{end}{after}", "utf-8")
