"""Markdown becomes a tree of known elements; nothing in it becomes markup."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.extensions.web.markdown import MOST, TAGS, Node, is_safe, rendered, tree


def elements(nodes: list[Node]) -> Iterator[list[Node]]:
    for node in nodes:
        if not isinstance(node, str):
            yield node
            yield from elements(node[2])


def texts(nodes: list[Node]) -> str:
    return "".join(node if isinstance(node, str) else texts(node[2]) for node in nodes)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("plain", [["p", {}, ["plain"]]]),
        ("# One", [["h2", {}, ["One"]]]),
        ("###### Six", [["h6", {}, ["Six"]]]),
        ("a **b** `c`", [["p", {}, ["a ", ["strong", {}, ["b"]], " ", ["code", {}, ["c"]]]]]),
        ("a\nb", [["p", {}, ["a", "\n", "b"]]]),
        ("a  \nb", [["p", {}, ["a", ["br", {}, []], "b"]]]),
        ("---", [["hr", {}, []]]),
        ("3. x", [["ol", {"start": "3"}, [["li", {}, ["x"]]]]]),
        ("- x\n\n  y", [["ul", {}, [["li", {}, [["p", {}, ["x"]], ["p", {}, ["y"]]]]]]]),
        ("```js\nx < 1\n```", [["pre", {}, [["code", {}, ["x < 1\n"]]]]]),
        ("~~x~~", [["p", {}, [["s", {}, ["x"]]]]]),
        ("[[k3v7mq|Tea]]", [["p", {}, [["a", {"memory": "k3v7mq"}, ["Tea"]]]]]),
        ("[[k3v7mq#Why]]", [["p", {}, [["a", {"memory": "k3v7mq"}, ["k3v7mq"]]]]]),
        ("see [[k3v7mq]]!", [["p", {}, ["see ", ["a", {"memory": "k3v7mq"}, ["k3v7mq"]], "!"]]]),
        (
            "<https://a.example>",
            [["p", {}, [["a", {"href": "https://a.example"}, ["https://a.example"]]]]],
        ),
        ("[x](docs/a.md)", [["p", {}, [["span", {"title": "docs/a.md"}, ["x"]]]]]),
    ],
)
def test_markdown_is_a_tree(text: str, nodes: list[Node]) -> None:
    assert tree(text) == nodes


def test_a_table_keeps_its_alignment() -> None:
    cells = [node for node in elements(tree("|a|b|\n|-|-:|\n|1|2|\n")) if node[0] in ("th", "td")]
    assert [cell[1] for cell in cells] == [{}, {"align": "right"}] * 2


@pytest.mark.attack("web")
@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onclick=alert(1)>b</b>",
        "<!-- x --><iframe src=javascript:alert(1)>",
        "&lt;script&gt;",
        "<svg/onload=alert(1)>",
        "<a href='javascript:alert(1)'>x</a>",
    ],
)
def test_raw_html_stays_text(text: str) -> None:
    assert [node[0] for node in elements(tree(text))] in (["p"], [])
    assert texts(tree(text)) == text.replace("&lt;", "<").replace("&gt;", ">")


@pytest.mark.attack("web")
@pytest.mark.parametrize(
    "href",
    [
        *("javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:x", "java\tscript:x"),
        *("data:text/html,<script>alert(1)</script>", "vbscript:x", "file:///etc/passwd"),
        *("//evil.example", "http:", "https:///x", "blob:http://127.0.0.1/x", "/api/decide"),
        *("#/review", ""),
    ],
)
def test_other_links_lead_nowhere(href: str) -> None:
    assert not is_safe(href)
    for text in (f"[x]({href})", f"[x](<{href}>)", f"![x](<{href}>)", f"[x][1]\n\n[1]: <{href}>"):
        assert not any("href" in node[1] for node in elements(tree(text)))


@pytest.mark.parametrize(
    "href", ["https://a.example/x?y#z", "http://a.example", "mailto:a@b.example"]
)
def test_links_to_sites_and_mail_are_kept(href: str) -> None:
    assert [node[1] for node in elements(tree(f"[x]({href})")) if node[0] == "a"] == [
        {"href": href}
    ]


@pytest.mark.attack("web")
def test_an_image_is_a_link_that_loads_nothing() -> None:
    (paragraph,) = tree("![secret](https://evil.example/pixel.png)")
    assert paragraph[2] == [["a", {"href": "https://evil.example/pixel.png"}, ["image: secret"]]]


@pytest.mark.attack("web")
def test_hidden_and_bidirectional_characters_are_removed() -> None:
    assert tree("a\u202eb\u200b\x1b[31mc\U000e0041") == [["p", {}, ["abc"]]]


def shown_as_written(text: str) -> list[Node]:
    reason = "This text is shown as it is written: formatting it would take too long."
    return [["p", {}, [reason]], ["pre", {}, [text]]]


def test_a_huge_text_is_shown_as_it_is() -> None:
    text = "*x* " * MOST
    assert tree(text) == shown_as_written(text)


@pytest.mark.attack("web")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{first}{text * (MOST // len(text) - 1)}", id=text.strip())
        for first, text in (
            *(("", mark) for mark in ("[", "![", "*a_", "*[", "[*", "[a][", "[[a|", "~~a", "<a")),
            *(("", text) for text in ("<![CDATA[", "a\\\n", "[a](<b", "- a\nb\n")),
            *((f"{marks}a\n", "b\n") for marks in (">" * 40, ">- " * 20)),
        )
    ],
)
def test_markup_that_takes_long_to_format_is_shown_as_it_is(text: str) -> None:
    assert tree(text) == shown_as_written(text)


@pytest.mark.attack("web")
def test_the_texts_of_a_page_take_no_longer_than_a_single_one() -> None:
    text = "[" * 20_000
    page = {"content": text, "sections": {str(number): text for number in range(6)}}
    *_, last = rendered(page)["sections"].values()
    assert last == shown_as_written(text)


@pytest.mark.attack("web")
@pytest.mark.parametrize("before", ["", "> ", "1. "])
def test_tables_that_grow_when_they_are_parsed_are_shown_as_they_are(before: str) -> None:
    inside = " " * len(before) if before == "1. " else before
    rows = [f"{before}{'a|' * 256}", f"{inside}{'-|' * 256}", *[f"{inside}x"] * 256, ""]
    text = "\n".join(rows) * 60
    assert tree(text) == shown_as_written(text)


def test_a_long_table_is_a_table() -> None:
    (table,) = tree("|a|b|c|\n|-|-|-|\n" + "|1|2|3|\n" * 3000)
    assert table[0] == "table"


@pytest.mark.attack("web")
def test_deep_nesting_stays_shallow() -> None:
    def depth(nodes: list[Node]) -> int:
        return 1 + max((depth(node[2]) for node in nodes if not isinstance(node, str)), default=0)

    for text in (
        "> " * 5000 + "x",
        "- " * 5000 + "x",
        "[" * 5000 + "x",
        "*" * 5000 + "x",
        "_a " * 5000,
    ):
        assert depth(tree(text)) < 200


@given(
    st.text(alphabet=st.sampled_from("<>&\"'()[]!*_`~#-|:\\/ \n\tajavscript0123=."), max_size=200)
)
def test_every_element_is_known(text: str) -> None:
    for tag, attributes, _ in elements(tree(text)):
        assert tag in TAGS
        assert attributes.keys() <= {"href", "title", "memory", "start", "align"}
        assert "href" not in attributes or is_safe(attributes["href"])


def test_a_reference_with_a_title_in_a_table_is_a_link():
    (table,) = tree("| a |\n|---|\n| [[k3v7mq\\|Tea]] |")

    assert ["a", {"memory": "k3v7mq"}, ["Tea"]] in table[2][1][2][0][2][0][2]
