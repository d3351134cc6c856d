"""Paths below `/memories`: which are refused, and that what is listed can be opened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.data.disk import STORE
from mimo.errors import Invalid
from mimo.extensions.adapters.memory_files import (
    MOST_CHARACTERS,
    README,
    check_new,
    file_of,
    listing,
    numbered,
    replaced,
    shown,
    stored,
)

REFUSED = [
    "memories/a.md",
    "/memoriesfoo/a.md",
    "/memories/../a.md",
    "/memories/a/../../b.md",
    "/memories/./a.md",
    "/memories//a.md",
    "/memories/..\\a.md",
    "/memories/a\\b.md",
    "/memories/%2e%2e/a.md",
    "/memories/%2E%2E%2Fa.md",
    "/memories/%252e%252e/a.md",
    "/memories/．．/a.md",
    "/memories/a／b.md",
    "/memories/‥/a.md",
    "/memories/…/a.md",
    "/memories/a\0.md",
    "/memories/a\n.md",
    "/memories/a\x1b[2J.md",
    "/memories/a\u202eb.md",
    "/memories/a\ud800.md",
    "/memories/.local/a.md",
    "/memories/.index/index.db",
    "/memories/.gitignore",
    "/memories/Private/a.md",
    "/memories/ｐrivate/a.md",
    "/memories/sources/a.md",
    "/memories/private/Sources/a.md",
    "/memories/values/a.md",
    "/memories/procedures/a.md",
    "/memories/C:/a.md",
    "/memories/con.md",
    "/memories/a.md.",
    "/memories/ a.md",
    "/memories/a .md/ ",
    f"/memories/{'é' * 150}.md",
    f"/memories/{'a/' * 9}b.md",
    "/memories/policy.yaml/x.md",
    "/memories/Policy.YAML/x.md",
    "/memories/policy.yam\uff4c/x.md",
    "/memories/config.toml/x.md",
    "/memories/MEMORY.md/x.md",
    "/etc/passwd",
    "",
    "/",
]


@pytest.mark.attack("path out of the memory tool")
@pytest.mark.parametrize("path", REFUSED)
def test_a_path_that_leads_elsewhere_is_refused(path):
    with pytest.raises(Invalid):
        stored(path)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/memories", ".mind"),
        ("/memories/", ".mind"),
        ("/memories/facts", ".mind/facts"),
        ("/memories/facts/", ".mind/facts"),
        ("/memories/private/facts/a.md", ".mind/private/facts/a.md"),
        ("/memories/100%.md", ".mind/100%.md"),
        ("/memories/cafe\u0301.md", ".mind/caf\u00e9.md"),
    ],
)
def test_a_path_is_a_place_below_the_store(path, place):
    assert stored(path) == place


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/memories/notes.txt", ".mind/notes.txt.md"),
        ("/memories/guide.xml", ".mind/guide.xml.md"),
        ("/memories/a.md", ".mind/a.md"),
        ("/memories/release-1.2.md", ".mind/release-1.2.md"),
        ("/memories/rules.mdc", ".mind/rules.mdc"),
    ],
)
def test_every_file_is_markdown_on_the_disk_and_keeps_its_name_in_the_tool(path, place):
    assert file_of(path) == place
    assert shown(place) == path


@pytest.mark.parametrize("path", ["/memories", "/memories/", "/memories/facts/"])
def test_a_new_file_needs_a_name(path):
    with pytest.raises(Invalid):
        check_new(path)


@pytest.mark.parametrize("name", ["todo", "v1.2", "to do"])
def test_a_name_without_an_ending_is_shown_with_that_of_its_file(name):
    assert check_new(f"/memories/{name}") == f".mind/{name}.md"
    assert shown(f".mind/{name}.md") == f"/memories/{name}.md"


@pytest.mark.parametrize(
    "place",
    [
        "docs/a.md",
        ".mind/sources/api.md",
        ".mind/private/sources/api.md",
        ".mind/values/x/y.md",
        ".mind/README.md",
        ".mind/a:b.md",
        ".mind/Private/a.md",
    ],
)
def test_other_files_of_the_project_are_not_shown(place):
    assert shown(place) is None


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_each_path_is_refused_or_stays_below_the_store(names):
    path = f"/memories/{'/'.join(names)}"
    try:
        place = file_of(path)
    except Invalid:
        return
    parts = place.split("/")
    assert parts[0] == STORE
    assert len(parts) == len(path.removesuffix("/").split("/")) - 1
    assert not {"", ".", ".."} & set(parts)
    assert all(part[0] != "." for part in parts[1:])


@given(st.lists(NAMES, min_size=1, max_size=3), st.sampled_from(["", ".md", ".txt.md", ".b.mdx"]))
def test_what_is_listed_can_be_opened(names, ending):
    place = f"{STORE}/{'/'.join(names)}{ending}"
    path = shown(place)
    if path is not None and place.isascii():
        assert file_of(path) == place
        assert shown(file_of(path)) == path


def test_a_folder_is_listed_two_levels_deep_with_the_sizes_of_what_is_in_it():
    sizes = {
        "/memories/a.txt": 512,
        "/memories/facts/b.md": 1536,
        "/memories/x/y/c.md": 2048,
        "/memories/x/y/z/d.md": 2 * 1024 * 1024,
    }

    assert listing("/memories", sizes, None) == (
        "Here're the files and directories up to 2 levels deep in /memories, "
        "excluding hidden items and node_modules:\n"
        "2.0M\t/memories\n"
        "512B\t/memories/a.txt\n"
        "1.5K\t/memories/facts/\n"
        "1.5K\t/memories/facts/b.md\n"
        "2.0M\t/memories/x/\n"
        "2.0M\t/memories/x/y/"
    )
    assert listing("/memories/x/", sizes, None).splitlines()[1:] == [
        "2.0M\t/memories/x",
        "2.0M\t/memories/x/y/",
        "2K\t/memories/x/y/c.md",
        "2M\t/memories/x/y/z/",
    ]


def test_a_long_list_is_paged():
    sizes = {f"/memories/facts/fact_{number:04}.md": 100 for number in range(2_000)}

    brief = listing("/memories", sizes, None)
    first = listing("/memories/facts", sizes, None)
    rows = [row for row in first.splitlines() if row.endswith(".md")]
    while len(rows) < len(sizes):
        after = listing("/memories/facts", sizes, (len(rows) + 1, 999_999))
        assert len(after) < MOST_CHARACTERS + 300
        rows += [row for row in after.splitlines() if row.endswith(".md")]

    assert len(brief.splitlines()) == 4
    assert brief.endswith("[Files in folders are left out: view a folder to list them]")
    assert len(first) < MOST_CHARACTERS + 300
    shown_first = first.count(".md")
    assert f"view_range [{shown_first + 1}, {2 * shown_first}]" in first
    assert rows == [f"100B\t{path}" for path in sorted(sizes)]


def test_a_long_file_is_paged_until_its_end():
    lines = [f"line {number} {'x' * 60}" for number in range(1_000)]
    text, seen, span = "\n".join(lines), [], None
    while True:
        answer = numbered("/memories/a.md", text, span)
        assert len(answer) < MOST_CHARACTERS + 300
        _, *rows = answer.split("\n")
        seen += [row.partition("\t")[2] for row in rows if "\t" in row]
        if "Truncated" not in rows[-1]:
            break
        span = (int(rows[-1].split("view_range [")[1].split(",")[0]), 999_999)

    assert seen == lines


def test_a_line_that_is_longer_than_an_answer_is_cut():
    answer = numbered("/memories/a.md", f"{'x' * 20_000}\nend", None)

    assert len(answer) < MOST_CHARACTERS + 300
    assert "[Line 1 has 20,000 characters; only 15,992 are shown]" in answer
    assert "view_range [2, -1]" in answer


@pytest.mark.parametrize(
    ("text", "old", "end"),
    [
        ("ab ab ab\n" * 4_000, "ab", f"{', '.join(map(str, range(1, 21)))}, …. Please ensure it"),
        ("ab ab\nc\nab", "ab", "in lines: 1, 3. Please ensure it is unique"),
        ("a" * 1_000_000, "a" * 40_000, "in lines: 1. Please ensure it is unique"),
        ("a", "b" * 40_000, "did not appear verbatim in /memories/a.md."),
    ],
)
def test_an_error_about_a_text_to_replace_is_short(text, old, end):
    with pytest.raises(Invalid) as refused:
        replaced("/memories/a.md", text, old, "x")

    assert end in str(refused.value)
    assert len(str(refused.value)) < 1_000


def test_long_lines_around_a_change_are_cut():
    _, around = replaced("/memories/a.md", f"{'x' * 20_000}\n" * 4 + "end", "end", "e")

    assert len(around) < MOST_CHARACTERS


def test_a_file_of_too_many_lines_is_refused_with_the_documented_text():
    with pytest.raises(Invalid) as refused:
        numbered("/memories/a.md", "\n" * 999_999, None)

    assert str(refused.value) == "File /memories/a.md exceeds maximum line limit of 999,999 lines."


def test_the_guide_is_not_a_file_of_the_project():
    assert shown(file_of(README)) is None
