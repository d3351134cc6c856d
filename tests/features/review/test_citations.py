"""Citations of the project's files, and whether the cited place has changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.features.review.stale import MOST, Citation, changed, citations
from mimo.features.review.stale import _times as times
from tests.conftest import assert_linear


def cited(text):
    return [(c.path, c.first, c.last, c.symbol) for c in citations(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see src/auth.py:12", ("src/auth.py", 12, 12, "")),
        ("see src/auth.py:12-20.", ("src/auth.py", 12, 20, "")),
        ("`auth.py:12–20`", ("auth.py", 12, 20, "")),
        ("(./auth.py:12)", ("auth.py", 12, 12, "")),
        ("auth.py:12:7: E501", ("auth.py", 12, 12, "")),
        ("auth.py:12: def login", ("auth.py", 12, 12, "")),
        ("src/auth.py#L3-L9", ("src/auth.py", 3, 9, "")),
        ("src/auth.py#L3", ("src/auth.py", 3, 3, "")),
        ("src/auth.py#login", ("src/auth.py", 0, 0, "login")),
        ("src/auth.py#Session.close", ("src/auth.py", 0, 0, "Session.close")),
        ("docs/guide.md#how-it-works", ("docs/guide.md", 0, 0, "how-it-works")),
        ("Makefile:3", ("Makefile", 3, 3, "")),
        (".github/workflows/ci.yml:7", (".github/workflows/ci.yml", 7, 7, "")),
        ("[here](lib/a-b.test.ts:5)", ("lib/a-b.test.ts", 5, 5, "")),
    ],
)
def test_a_citation_is_recognised(text, expected):
    assert cited(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com/src/auth.py:12",
        "http://localhost:8080/a.py#login",
        "example.com:443",
        "localhost:8080",
        "127.0.0.1:8080",
        "[::1]:80",
        "at 12:30, or 2026-11-20T15:30:00Z",
        "16:9 and 3:1",
        "v1.2:3, python3.11:12, 1.0.0-rc.1:5",
        "i.e.:5 e.g:3 p.m:2",
        "postgres/pg:16 redis:7",
        "owner/repo#12",
        "issue #123",
        "ann@example.com:5",
        "/etc/hosts.conf:3",
        "~/notes.md:3",
        "../other/a.py:3",
        "C:\\src\\a.py:3",
        "a.py:0",
        "a.py:9-3",
        "a.py:12.5",
        "a.py:12/3",
        "spec.json#/definitions",
        "a.py",
        "key: value",
        "c++:3",
    ],
)
def test_similar_texts_are_not_citations(text):
    assert cited(text) == []


def test_duplicates_are_dropped_and_the_number_is_limited():
    assert len(citations("a.py:1 a.py:1 b.py:1")) == 2
    assert len(citations(" ".join(f"a.py:{n}" for n in range(1, 500)))) == MOST


@given(st.text(alphabet="a./:#-12 \nL@+", max_size=400))
def test_any_text_can_be_read(text):
    for citation in citations(text):
        assert bool(citation.symbol) != bool(citation.first)
        assert citation.first <= citation.last


THEN = "def login(user):\n    return user.token\n\ndef logout(user):\n    pass\n"


def lines(first, last, path="auth.py"):
    return Citation(path=path, first=first, last=last)


def named(symbol, path="auth.py"):
    return Citation(path=path, symbol=symbol)


@pytest.mark.parametrize(
    ("citation", "now", "message"),
    [
        (lines(1, 2), THEN, None),
        (lines(1, 2), "import os\n\n" + THEN, None),
        (lines(1, 2), THEN.replace("    return", "\treturn"), None),
        (lines(1, 2), THEN.replace("token", "session"), "lines 1-2 of auth.py changed"),
        (lines(2, 2), THEN.replace("token", "session"), "line 2 of auth.py changed"),
        (lines(4, 4), THEN.replace("token", "session"), None),
        (lines(1, 2), None, "auth.py is missing"),
        (lines(3, 3), None, None),
        (lines(90, 99), THEN, None),
        (lines(90, 99), None, None),
        (named("logout"), THEN, None),
        (named("logout"), "def login(user): ...\n", "logout is not in auth.py"),
        (named("log"), "", None),
        (named("logout"), None, "auth.py is missing"),
        (named("nothing"), None, None),
    ],
)
def test_a_cited_place_has_changed_if_its_text_is_missing(citation, now, message):
    assert changed(citation, THEN, now) == message


@given(st.text("ab", min_size=1, max_size=6), st.text("ab", max_size=60))
def test_a_block_is_counted_as_text_is(block, text):
    assert times(block, text) == text.count(block)


def test_a_repeated_line_has_changed_if_one_copy_is_left():
    then = "x = 1\nreturn None\ny = 2\nreturn None\n"
    assert changed(lines(2, 2), then, then.replace("return None", "return 1", 1)) is not None


def test_a_heading_can_be_cited_by_its_anchor():
    then = "# Guide\n\n## How it works, really\n"
    heading = named("how-it-works-really", "guide.md")
    assert changed(heading, then, then) is None
    assert changed(heading, then, "# Guide\n") == "how-it-works-really is not in guide.md"


HOSTILE = {
    "path": lambda size: citations("a/" * size + "b.py"),
    "path of words": lambda size: citations("a-" * size),
    "symbol": lambda size: citations("a.md#b " + "a." * size),
    "heading": lambda size: changed(named("b", "a.md"), "# b", "# a" + " " * size + "x"),
    "equal lines": lambda size: changed(lines(1, size), "x\n" * 2 * size, "x\n" * 2 * size + "y\n"),
    "missing lines": lambda size: changed(
        lines(1, size), "a\n" * (size - 1) + "b\n", "a\n" * 2 * size
    ),
}


@pytest.mark.attack("repeated text takes quadratic time")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_citations_and_files_are_read_in_linear_time(name):
    assert_linear(HOSTILE[name])
