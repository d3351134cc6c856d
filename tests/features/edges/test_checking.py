"""Which edges a change runs into."""

import pytest

from mimo.features.edges import diffs
from mimo.features.edges.checking import check
from mimo.features.edges.diffs import Added, Hunk
from mimo.features.edges.edge import Detection, Edge, Severity


def edge(*code, title="An edge", tags=(), context=()):
    return Edge(
        id="edge_x",
        title=title,
        description="",
        workaround="",
        detection=Detection(code=code, context=context),
        stack_tags=tags,
        severity=Severity.WARNING,
    )


def lines(found, text, path="src/a.py", *, own=False, stack=()):
    warned = check([(found, own)], [diffs.whole(path, text)], stack=stack)
    return [one.line for one in warned]


def test_each_matching_line_is_reported_once():
    assert lines(edge("crypto", "import.*crypto"), "x\nimport crypto\n\ncrypto(crypto)") == [2, 4]


@pytest.mark.req("003-23")
def test_an_edge_with_a_language_applies_to_its_files_only():
    python = edge("sort", tags=("python",))

    assert lines(python, "sort", "a.py", stack=("python",)) == [1]
    assert lines(python, "sort", "a.py") == [1]
    assert lines(python, "sort", "a.js", stack=("python",)) == []


@pytest.mark.req("003-23")
def test_an_edge_with_a_stack_needs_it_in_the_project_or_path():
    vercel = edge("crypto", tags=("vercel",))

    assert lines(vercel, "crypto", "a.ts") == []
    assert lines(vercel, "crypto", "a.ts", stack=("vercel",)) == [1]
    assert lines(vercel, "crypto", "vercel/a.ts") == [1]
    assert lines(vercel, "crypto", "a.ts", own=True) == [1]


def test_an_edge_without_patterns_needs_all_its_words_in_one_hunk():
    gotcha = edge(title="Staging refuses uploads")

    assert lines(gotcha, "x = 1\nstaging.refuse(upload)") == [2]
    assert lines(gotcha, "upload(staging)") == []
    apart = Added(path="a", hunks=(Hunk(start=1, lines=("staging refuses",)),
                                   Hunk(start=9, lines=("uploads",))))  # fmt: skip
    assert list(check([(gotcha, True)], [apart], stack=())) == []


def test_a_title_of_one_word_never_applies():
    assert lines(edge(title="Uploads"), "uploads") == []


def test_no_pattern_matches_across_hunks():
    hunks = (Hunk(start=3, lines=("open(",)), Hunk(start=9, lines=("x)",)))

    found = list(check([(edge(r"open\(.*x"), True)], [Added(path="a", hunks=hunks)], stack=()))

    assert found == []


def test_an_edge_is_reported_at_most_twenty_times_in_a_file():
    assert len(lines(edge("crypto"), "crypto\n" * 100)) == 20


@pytest.mark.req("003-16")
def test_an_invalid_pattern_never_applies():
    assert lines(edge("(", "crypto"), "crypto (") == [1]
    assert lines(edge("("), "(") == []
