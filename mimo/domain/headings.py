"""What a memory is called by where it has no title."""

LONGEST = 80


def heading(title: str | None, content: str, otherwise: str) -> str:
    """Returns the title, or the first line of the content cut to 80 characters."""
    if title:
        return title
    lines = (line.strip() for line in content.splitlines())
    first = next((line for line in lines if line), otherwise)
    return first if len(first) <= LONGEST else first[: LONGEST - 1].rstrip() + "…"
