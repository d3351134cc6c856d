"""Texts cut into chunks: strategies, sizes, overlap, and texts that are too short."""

import pytest

from mimo.errors import Invalid
from mimo.memory.chunking import Chunking, Strategy, checked, chunks, resolved


def cut(text, strategy, name="a.txt", **asked):
    return chunks(text, Chunking(strategy=Strategy(strategy), **asked), name)


def texts(*args, **asked):
    return [chunk.text for chunk in cut(*args, **asked)]


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        pytest.param("a.md", "markdown", marks=pytest.mark.req("000-79")),
        ("A.MD", "markdown"),
        ("a.markdown", "markdown"),
        pytest.param("a.txt", "paragraphs", marks=pytest.mark.req("000-80")),
        pytest.param("a.json", "whole", marks=pytest.mark.req("000-81")),
        pytest.param("a.yaml", "whole", marks=pytest.mark.req("000-82")),
        ("a.yml", "whole"),
        ("a.toml", "whole"),
        pytest.param("a.ex", "paragraphs", marks=pytest.mark.req("000-83")),
        pytest.param("a.exs", "paragraphs", marks=pytest.mark.req("000-83")),
        pytest.param("a.py", "paragraphs", marks=pytest.mark.req("000-84")),
        ("a.csv", "lines"),
        ("Makefile", "paragraphs"),
        ("md", "paragraphs"),
    ],
)
@pytest.mark.req("000-65")
def test_auto_depends_on_the_type_of_the_file(name, strategy):
    assert resolved(Chunking(), name).strategy == strategy
    explicit = Chunking(strategy=Strategy.LINES)
    assert resolved(explicit, name) == explicit


@pytest.mark.req("000-66")
def test_paragraphs_are_separated_by_blank_lines():
    text = "First paragraph,\nof two lines.\n\n\n  \nSecond paragraph.\r\n\r\n    third, indented\n"
    assert texts(text, "paragraphs") == [
        "First paragraph,\nof two lines.",
        "Second paragraph.",
        "    third, indented",
    ]


@pytest.mark.req("000-67")
def test_a_chunk_has_the_requested_number_of_lines():
    text = "".join(f"this is line {number}\n" for number in range(1, 121))
    result = cut(text, "lines")
    assert [(item.first_line, item.last_line) for item in result] == [
        (1, 50),
        (51, 100),
        (101, 120),
    ]
    assert result[2].text.startswith("this is line 101\n")
    assert [item.last_line for item in cut(text, "lines", lines_per_chunk=60)] == [60, 120]


def test_lines_are_cut_but_never_joined_by_a_size():
    text = "".join(f"this is line {number}\n" for number in range(10, 20))
    assert len(cut(text, "lines", lines_per_chunk=2, chunk_size=1_000)) == 5
    assert texts(text, "lines", lines_per_chunk=5, chunk_size=40)[:3] == [
        "this is line 10\nthis is line 11",
        "this is line 12\nthis is line 13",
        "this is line 14",
    ]


@pytest.mark.req("000-68")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Use a cache, e.g. Redis, for it. It pays off!  Does it always?",
            ["Use a cache, e.g. Redis, for it.", "It pays off!", "Does it always?"],
        ),
        (
            "Python 3.11.4 is out. Version 1.2.3 was not. See Fig. 3 for more.",
            ["Python 3.11.4 is out.", "Version 1.2.3 was not.", "See Fig. 3 for more."],
        ),
        (
            "Dr. Smith met J. Doe in the U.S. Senate. They agreed (mostly.) Then they left.",
            [
                "Dr. Smith met J. Doe in the U.S. Senate.",
                "They agreed (mostly.)",
                "Then they left.",
            ],
        ),
        (
            "我们选择了这个数据库引擎。因为它支持事务处理！你觉得这样做怎么样呢？「是的，我也这么觉得。」好的",
            [
                "我们选择了这个数据库引擎。",
                "因为它支持事务处理！",
                "你觉得这样做怎么样呢？",
                "「是的，我也这么觉得。」",
            ],
        ),
        ("He asked “Really?” and left the room.", ["He asked “Really?” and left the room."]),
        ("Wait... what is this? Nothing at all.", ["Wait... what is this?", "Nothing at all."]),
        (
            "- the first item\n- the second item\n1. the third item",
            ["- the first item", "- the second item", "1. the third item"],
        ),
        ("One sentence over\ntwo lines. Another one.", ["One sentence over\ntwo lines.",
                                                        "Another one."]),
    ],
)  # fmt: skip
def test_sentences_survive_abbreviations_versions_and_other_scripts(text, expected):
    assert texts(text, "sentences") == expected


@pytest.mark.req("000-70")
@pytest.mark.parametrize("text", ["\n\n{\r\n  'a': 1,\n\n}\n\n", "---\nx: 1\n---\n"])
def test_a_whole_file_is_one_unchanged_chunk(text):
    (chunk,) = cut(text, "whole", chunk_size=5, overlap=2)
    assert chunk.text == text
    assert (chunk.first_line, chunk.last_line) == (1, text.count("\n"))


@pytest.mark.req("000-85")
def test_chunks_shorter_than_ten_characters_are_left_out():
    assert texts("short\n\n123456789\n\n1234567890\n\n   \n", "paragraphs") == ["1234567890"]
    assert texts("{}", "whole") == []
    assert texts("", "markdown") == texts("\n \n", "lines") == []


@pytest.mark.req("000-71")
def test_a_size_packs_small_parts_and_cuts_large_ones():
    text = "A short one here.\n\nAnother short one.\n\n" + "A long sentence of words. " * 20
    result = texts(text, "paragraphs", chunk_size=100)
    sentence = "A long sentence of words."
    assert result[0] == f"A short one here.\n\nAnother short one.\n\n{sentence} {sentence}"
    assert all(len(item) <= 100 for item in result)
    assert all(item.endswith("words.") for item in result)


def test_a_word_longer_than_the_size_is_cut_between_characters():
    assert texts("x" * 95, "paragraphs", chunk_size=30) == ["x" * 30, "x" * 30, "x" * 35]
    assert texts("e\u0301" * 30, "paragraphs", chunk_size=15)[0] == "e\u0301" * 7


@pytest.mark.attack("repeated text takes quadratic time")
@pytest.mark.parametrize(
    "text", ["." * 1_000_000 + "x", "Dr. " * 100_000, "e" + "\u0301" * 1_000_000]
)
def test_no_text_takes_long_to_cut(text):
    assert texts(text, "sentences", chunk_size=100_000)


@pytest.mark.req("000-72")
@pytest.mark.attack("repeated text takes quadratic time")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(">" * 99 + "a\n" + "b\n" * 20_000, id="lines in nested quotes"),
        pytest.param(">- " * 49 + "a\n" + "b\n" * 20_000, id="lines in lists and quotes"),
        pytest.param("\n".join(["a|" * 256, "-|" * 256, *"x" * 256, ""]) * 60, id="tables"),
    ],
)
def test_markdown_that_takes_long_to_read_is_cut_as_a_paragraph(text):
    result = texts(text, "markdown", chunk_size=5_000)
    assert "".join("".join(result).split()) == "".join(text.split())


def test_neighbours_share_whole_words_up_to_the_overlap():
    text = " ".join(f"word{number:02}" for number in range(40))
    result = texts(text, "paragraphs", chunk_size=70, overlap=20)
    assert all(len(item) <= 70 for item in result)
    assert result[0].endswith("word05 word06")
    assert result[1].startswith("word05 word06 word07")
    without_spaces = texts("abcdefghij" * 20, "paragraphs", chunk_size=50, overlap=10)
    assert without_spaces[1].startswith(without_spaces[0][-10:])


@pytest.mark.parametrize("size", range(20, 60))
def test_a_size_drops_no_text_of_a_sentence(size):
    text = "The quick brown fox jumps over the lazy dog, twice a day."
    assert " ".join(texts(text, "paragraphs", chunk_size=size)) == text


def test_a_short_paragraph_between_large_ones_is_kept_with_the_next():
    first, third = "A sentence of text.", "The third paragraph."
    text = f"{first}\n\nNo.\n\n{third}\n\nEnd."
    assert texts(text, "paragraphs", chunk_size=20) == [first, f"No.\n\n{third}\n\nEnd."]
    assert texts(f"# One\n\n{first} Yes.\n\n# Two", "markdown", chunk_size=20) == [
        f"# One\n\n{first} Yes."
    ]


@pytest.mark.parametrize("size", [1, 19])
def test_a_size_too_small_for_chunks_is_refused_with_a_hint(size):
    with pytest.raises(Invalid, match="at least 20") as error:
        checked(Chunking(chunk_size=size))
    assert error.value.details["field"] == "chunk_size"
    assert "500" in error.value.hint


@pytest.mark.req("000-72")
@pytest.mark.parametrize(("size", "overlap"), [(10, 10), (10, 11)])
def test_an_overlap_must_be_less_than_the_size(size, overlap):
    with pytest.raises(Invalid) as error:
        checked(Chunking(chunk_size=size, overlap=overlap))
    assert error.value.details["field"] == "overlap"


GUIDE = """\
---
title: "The guide"
---

# Guide

Some words before all.

Setext heading
--------------

- an item
  # not a heading in a list

```sh
# not a heading in a fence

make
```

> # not a heading in a quote

## Deeper `code`

### Deepest

Words of the deepest section.

## TODO

# Another part

The last words.
"""


@pytest.mark.req("000-69")
@pytest.mark.req("000-91")
def test_markdown_is_cut_only_at_headings():
    result = cut(GUIDE, "markdown")
    assert [(item.first_line, item.last_line, item.path) for item in result] == [
        (1, 7, ("The guide", "Guide")),
        (9, 21, ("The guide", "Guide", "Setext heading")),
        (23, 27, ("The guide", "Guide", "Deeper `code`", "Deepest")),
        (31, 33, ("The guide", "Another part")),
    ]
    assert result[1].text.endswith("> # not a heading in a quote")


def test_markdown_is_cut_at_headings_below_a_deeply_nested_list():
    nested = "".join(f"{'  ' * depth}- item {depth}\n" for depth in range(20))

    (_, second) = cut(f"# One\n\n{nested}\n# Two\n\nText below it.\n", "markdown")
    assert second.text == "# Two\n\nText below it."


def test_a_long_section_is_cut_between_blocks_and_never_within_a_fence_or_a_list():
    fence = "```\n" + "code line\n\n" * 20 + "```"
    items = "".join(f"- item number {number}\n\n" for number in range(20))
    text = f"# Long\n\n{'A sentence of prose. ' * 10}\n\n{fence}\n\n{items}\nThe end of it all.\n"
    result = texts(text, "markdown", chunk_size=80, overlap=20)
    assert sum("```\ncode" in item for item in result) == 1
    assert next(item for item in result if "```" in item).count("```") == 2
    assert next(item for item in result if "- item" in item).count("- item") == 20
    assert result[0].startswith("# Long\n\nA sentence of prose.")
    assert result[-1].endswith("The end of it all.")
    assert not any(item.startswith(("code", "item", "number")) for item in result)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Words before\rany heading\r\n# One\r\n\r\nWords.\r\n", [(1, 1), (2, 4)]),
        ("---\ntitle: only a header\n---\n", [(1, 3)]),
        ("just some words\n", [(1, 1)]),
        ("---\n\nA rule, and words.\n\n---\n\n# One heading\n\nmore\n", [(1, 5), (7, 9)]),
        ("# One heading\n[a]: http://x\n\n# Two heading\nwords\n", [(1, 2), (4, 5)]),
    ],
)
def test_chunks_of_markdown_have_the_lines_of_the_file(text, expected):
    result = cut(text, "markdown")
    assert [(item.first_line, item.last_line) for item in result] == expected
