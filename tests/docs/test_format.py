"""The description of the files agrees with the code that reads and writes them."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mimo.config import FORMAT
from mimo.data.disk import PRIVATE_FOLDERS
from mimo.memory import codec
from mimo.memory.codec import file as codec_file
from mimo.memory.codec.document import MAX_FILE_BYTES, MAX_HEADER_BYTES, MAX_SOURCE_BYTES
from mimo.memory.model import KIND_ALIASES, Kind, Link, Memory, Outcome, Section
from mimo.project.walk import walk
from tests.kit import put

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text("utf-8")
FULL, SMALL = re.findall(r"```markdown\n(.*?)```", PAGE, re.DOTALL)
WHEN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def memory(text: str, path: str = ".mind/facts/staging.md") -> Memory:
    parsed = codec.parse(text.encode(), path=path, modified=WHEN)
    assert isinstance(parsed, codec.Parsed)
    return parsed.memory


def table(heading: str) -> dict[str, tuple[str, str]]:
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    part = prose.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \| (.+) \| (.+) \|$", part, re.MULTILINE)
    return {first: (value, last) for first, value, last in rows}


def test_the_example_is_a_file_as_mind_writes_it() -> None:
    whole = memory(FULL)

    assert codec.render(whole).decode() == FULL
    assert whole.outcome is Outcome.PARTIAL
    assert whole.sections.keys() == {Section.REASONING, Section.OUTCOME}
    assert whole.links == (Link(to="decision_auth_20260301_p2wnxa", type="supersedes"),)


def test_each_key_has_a_row_in_the_order_of_a_header() -> None:
    rows = table("A memory")

    assert [key.strip("`") for key in rows] == list(codec_file.KEYS)
    types = set(re.findall(r"`(\w+)`", rows["`type`"][0]))
    assert types == {*Kind, *KIND_ALIASES}
    assert set(re.findall(r"`(\w+)`", rows["`outcome`"][0])) == {*Outcome}


def test_the_folders_are_those_of_the_code() -> None:
    rows = table("Folders")
    names = {name.strip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)}
    unshared = {name.strip("`/") for name, (_, in_git) in rows.items() if in_git == "no"}

    assert {kind.folder for kind in Kind} <= names
    assert unshared == {*PRIVATE_FOLDERS}


def test_which_files_are_memories(tmp_path: Path) -> None:
    for name in (
        "a.md",
        "any/deep/b.md",
        "values/n/c.md",
        "procedures/d.md",
        ".hidden/e.md",
        ".f.md",
    ):
        put(tmp_path / ".mind" / name, "text")
    (tmp_path / ".mind/link.md").symlink_to("a.md")

    assert sorted(walk(tmp_path).files) == [".mind/a.md", ".mind/any/deep/b.md"]


def test_the_limits_and_the_version() -> None:
    assert MAX_FILE_BYTES == 1024**2
    assert MAX_SOURCE_BYTES == 128 * 1024**2
    assert MAX_HEADER_BYTES == 64 * 1024
    assert f"`format = {FORMAT}`" in PAGE
    headings = re.findall(r"`## ([^`:]+)`", PAGE)
    assert headings == [*Section]


def test_a_file_without_a_header() -> None:
    small = memory(SMALL)

    assert (small.id, small.type, small.created) == ("staging", Kind.FACT, WHEN)
    assert small.content == SMALL.strip()
    assert memory(SMALL, ".mind/notes/deep/cache.md").id == "notes.deep.cache"
    assert memory(SMALL, ".mind/plans/cache.md").type is Kind.PLAN
    assert re.fullmatch(r"a-b-[0-9a-f]{8}", memory(SMALL, ".mind/facts/a b.md").id)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("tags: [auth, security]", "tags", ("auth", "security")),
        ("tags: auth, security", "tags", ("auth", "security")),
        ('tags: "#auth #security"', "tags", ("auth", "security")),
        ("type: learning", "type", Kind.INSIGHT),
        ("created: 2026-11-20", "created", datetime(2026, 11, 20, tzinfo=UTC)),
        ("created: 2026-11-20 17:40", "created", datetime(2026, 11, 20, 17, 40, tzinfo=UTC)),
        ("date: 2026-11-20T17:40:00+09:00", "created", datetime(2026, 11, 20, 8, 40, tzinfo=UTC)),
        ("created_at: 2026-11-20", "created", datetime(2026, 11, 20, tzinfo=UTC)),
        ('links: ["[[The title]]", k3v7mq]', "links", (Link(to="The title"), Link(to="k3v7mq"))),
        ("importance: high", "importance", 0.5),
    ],
)
def test_values_of_a_header(line: str, field: str, value: Any) -> None:
    assert getattr(memory(f"---\n{line}\n---\nText\n"), field) == value


def test_sections_begin_only_in_a_file_with_id_and_type() -> None:
    body = "Text\n\n## Reasoning\nBecause\n\n\\## Outcome\n\n## Competing: topic\nother\n"
    owned = memory(f"---\nid: a\ntype: fact\n---\n{body}")

    assert owned.sections == {Section.REASONING: "Because\n\n## Outcome"}
    assert [(version.field, version.text) for version in owned.competing] == [("topic", "other")]
    assert memory(body).sections == {}
