"""The pages of decisions are numbered one by one, and everything that names one finds it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))


def test_the_table_has_every_page_by_its_number_and_its_own_title() -> None:
    titles = [page.read_text("utf-8").splitlines()[0] for page in PAGES]
    rows = re.findall(
        r"^\| \[(\d+)\]\((\d{4}-[a-z-]+\.md)\) \| (.*) \|$",
        (FOLDER / "README.md").read_text("utf-8"),
        re.MULTILINE,
    )

    assert [f"# {number}. {title}" for number, _, title in rows] == titles
    assert [name for _, name, _ in rows] == [page.name for page in PAGES]
    assert [int(page.name[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))


def test_our_own_memory_points_to_pages_that_are_there() -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / ".mind").rglob("*.md")]
    named = [page for text in texts for page in re.findall(r"docs/decisions/[\w-]+(?:\.md)?", text)]

    assert named
    assert [page for page in named if not (ROOT / page).is_file()] == []
