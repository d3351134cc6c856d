"""The pages under docs/ point to existing files, and the index lists each of them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("decisions/*.md")), ROOT / "SECURITY.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_code_paths_of_a_page_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    links = re.findall(r"\]\(([^)#:]+)[)#]", text)
    code = re.findall(r"`((?:mimo|tests|scripts)/[\w/.-]+)`", text)

    assert [link for link in links if not (page.parent / link).exists()] == []
    assert [path for path in code if not (ROOT / path).exists()] == []


def test_index_lists_every_page() -> None:
    links = set(re.findall(r"\]\((\w[\w-]*\.md)\)", (DOCS / "README.md").read_text("utf-8")))

    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} == links
