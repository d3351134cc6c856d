"""Memories in comments of code and in messages of commits."""

from datetime import UTC, datetime

import pytest

from mimo.memory.log import in_code, in_message
from mimo.memory.model import Kind, Section

WHEN = datetime(2026, 11, 20, tzinfo=UTC)


def rows(text, path="src/a.py"):
    result = in_code(text, path=path, digest="d", modified=WHEN)
    return [(r.place.line, r.memory.type.value, r.memory.title) for r in result]


@pytest.mark.req("003-09")
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "# MEMORY: decided to use JWT"),
        ("a.py", "x = 1  # MEMORY: decided to use JWT"),
        ("a.ts", "// MEMORY: decided to use JWT"),
        ("a.ts", "/* MEMORY: decided to use JWT */"),
        ("a.ts", " * MEMORY: decided to use JWT"),
        ("a.html", "<!-- MEMORY: decided to use JWT -->"),
        ("a.sql", "-- MEMORY: decided to use JWT"),
        ("a.lisp", ";; MEMORY: decided to use JWT"),
        ("a.tex", "% MEMORY: decided to use JWT"),
        ("Makefile", "# MEMORY: decided to use JWT"),
        ("a.xyz", "// MEMORY: decided to use JWT"),
    ],
)
def test_comment_is_recognized_by_the_marks_of_its_language(path, line):
    assert rows(f"\n{line}\n", path) == [(2, "decision", "use JWT")]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "MEMORY: decided to use JWT"),
        ("a.py", "// MEMORY: decided to use JWT"),
        ("a.ts", "# MEMORY: decided to use JWT"),
        ("a.py", "# memory: decided to use JWT"),
        ("a.py", "#MEMORY:"),
        ("a.py", "x#MEMORY: decided to use JWT"),
        ("a.py", 'print("MEMORY: decided to use JWT")'),
    ],
)
def test_other_lines_of_code_are_ignored(path, line):
    assert rows(line, path) == []


@pytest.mark.attack("repeated text takes quadratic time")
def test_a_comment_with_many_blanks_is_read():
    assert rows(f"# MEMORY: a port{' ' * 200_000}x") == [(1, "fact", "a port")]


def test_the_id_of_a_comment_depends_on_its_file_and_not_on_its_line():
    item = next(in_code("# MEMORY: a port", path="a.py", digest="d", modified=WHEN))
    moved = next(in_code("\n\n# MEMORY: a port", path="a.py", digest="e", modified=WHEN))
    other = next(in_code("# MEMORY: a port", path="b.py", digest="d", modified=WHEN))

    assert item.memory.id == moved.memory.id != other.memory.id
    assert (item.memory.type, item.memory.confidence) == (Kind.FACT, 0.8)


BODY = """\
decided: use JWT, because it is stateless
- Problem: Safari drops cookies
* learned: retries cost
fixed: the redirect
undecided: a colour
dec\u0131ded: in other letters
He decided: nothing
decided:
fixed: no
Fixes: abc1234 ("a title")
"""


@pytest.mark.req("003-09")
def test_four_words_in_a_message_are_memories():
    taken: dict[str, int] = {}
    result = list(in_message(BODY, commit="c" * 40, author="Ann", when=WHEN, taken=taken))

    assert [(m.type.value, m.title, m.status) for m in result] == [
        ("decision", "use JWT", None),
        ("issue", "Safari drops cookies", "open"),
        ("insight", "retries cost", None),
        ("issue", "the redirect", "resolved"),
    ]
    assert {(m.source, m.by, m.confidence) for m in result} == {("commit cccccccccccc", "Ann", 0.7)}
    assert result[0].sections == {Section.REASONING: "it is stateless"}
    assert {m.id for m in result} == taken.keys()


def test_equal_lines_of_two_commits_are_two_memories():
    taken: dict[str, int] = {}
    for commit in ("a" * 40, "b" * 40):
        list(in_message("learned: x is y", commit=commit, author="", when=WHEN, taken=taken))

    assert len(taken) == 2
