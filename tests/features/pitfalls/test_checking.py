"""Checking a change against edges."""

import pytest

from mimo.features.pitfalls.checking import Added, Hunk, added, check, whole
from mimo.features.pitfalls.edge import Detection
from mimo.features.pitfalls.matching import Task, matches
from tests.features.pitfalls.examples import edge


def lines(pitfall, text, path="src/a.py", *, stack=()):
    return [hit.line for hit in check([pitfall], [whole(path, text)], stack)]


@pytest.mark.req("003-17")
@pytest.mark.parametrize(
    ("pitfall", "text", "expected"),
    [
        (edge("import.*crypto"), "x\nimport { a } from 'crypto'", [2]),
        (edge("require.*crypto"), "const c = require('Crypto')", [1]),
        (edge(r"\bMath\.random\("), "a\nb\nMath.random()", [3]),
        (edge(title="Never `Math.random()`"), "return Math.random()", [1]),
        (edge("other", title="Never `Math.random()`"), "Math.random()", []),
        (edge("import.*crypto"), "crypto of import", []),
        (edge("(a+)+$"), "aaaa", [1]),
        (edge("(?=a)"), "aaaa", []),
        (edge("x"), "", []),
    ],
)
def test_an_edge_applies_at_the_line_of_its_code(pitfall, text, expected):
    assert lines(pitfall, text) == expected


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

    assert lines(vercel, "crypto", "a.ts", stack=("go",)) == []
    assert lines(vercel, "crypto", "a.ts", stack=("vercel",)) == [1]
    assert lines(vercel, "crypto", "vercel/a.ts", stack=("go",)) == [1]
    assert lines(vercel._replace(of_project=True), "crypto", "a.ts", stack=("go",)) == [1]


@pytest.mark.req("003-23")
def test_every_edge_is_considered_if_the_stack_is_unknown():
    assert lines(edge("crypto", tags=("vercel",)), "crypto", "a.ts") == [1]
    assert lines(edge(title="Staging refuses uploads", tags=("vercel",)), "staging.refuse(upload)")
    assert lines(edge("crypto", tags=("python",)), "crypto", "a.ts") == []


@pytest.mark.parametrize("stack", [(), ("go",)])
def test_the_context_of_an_edge_is_not_a_condition(stack):
    storage = edge(detection=Detection(context=("safari",), code=(r"localStorage\.setItem\(",)))
    code = 'localStorage.setItem("token", t)'

    assert lines(storage, code, "login.js", stack=stack) == [1]
    assert lines(storage._replace(stack_tags=("python",)), code, "login.js", stack=stack) == []
    assert lines(storage._replace(stack_tags=("vercel",)), code, "login.js", stack=("go",)) == []


@pytest.mark.parametrize("context", [(), ("safari",)])
@pytest.mark.parametrize("tags", [(), ("vercel",), ("python",)])
@pytest.mark.parametrize("stack", [(), ("go",), ("vercel",)])
def test_code_that_a_plan_is_warned_of_is_found_in_a_change(context, tags, stack):
    pitfall = edge(tags=tags, detection=Detection(context=context, code=("crypto",)))

    planned = matches([pitfall], Task("hash a password", stack, "import crypto"), None)
    assert bool(lines(pitfall, "import crypto", "a.py", stack=stack)) >= bool(planned)


def test_an_edge_without_patterns_needs_all_its_words_in_one_hunk():
    gotcha = edge(title="Staging refuses uploads")

    assert lines(gotcha, "x = 1\nstaging.refuse(upload)") == [2]
    assert lines(gotcha, "upload(staging)") == []
    apart = (Hunk(start=1, lines=("staging refuses",)), Hunk(start=9, lines=("uploads",)))
    assert list(check([gotcha], [Added(path="a", hunks=apart)], ())) == []


@pytest.mark.parametrize(("between", "expected"), [(3, [5]), (4, [])])
def test_the_words_of_an_edge_without_patterns_are_in_five_lines(between, expected):
    text = "staging\n" + "x = 1\n" * between + "refuse(upload)\n"

    assert lines(edge(title="Staging refuses uploads"), text) == expected


def test_a_failed_decision_applies_to_its_names_in_prose_and_code():
    failed = edge(title="Use PayPal for cards", type="decision", names=("paypal",))

    for text in ("PayPalClient()", "from paypal import x", "usePayPal(1)", "PAYPAL_URL=1"):
        assert lines(failed, f"x\n{text}") == [2], text
    for text in ("repaypal", "pay(pal)", ""):
        assert lines(failed, text) == [], text


@pytest.mark.parametrize(
    ("tags", "path", "expected"),
    [
        (("docker",), "build.sh", []),
        (("docker",), "Dockerfile", [1]),
        (("kubernetes", "docker"), "build.sh", [1]),
        (("rust", "sqlite"), "V1__tours.sql", [1]),
    ],
)
def test_tags_restrict_the_files_only_if_all_are_languages(tags, path, expected):
    mixed = edge("build", tags=tags)

    assert lines(mixed, "build", path, stack=tags) == expected


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.js", "// do not call eval(x)"),
        ("a.js", "run(x) // not eval(x)"),
        ("a.js", "/* as of old:\n eval(x)\n*/"),
        ("a.js", " * eval(x) was here"),
        ("a.py", "# eval(x)"),
        ("a.py", "run(x)  # not eval(x)"),
        ("a.py", 'def f(x):\n    """Replaces\n    eval(x).\n    """\n'),
        ("a.html", "<!-- eval(x) -->"),
        ("a.sql", "SELECT 1 -- eval(x)"),
        ("README.md", "Never call eval(x)."),
        ("docs/notes.txt", "Never call eval(x)."),
    ],
)
def test_comments_and_prose_are_not_code(path, text):
    assert lines(edge(r"eval\("), text, path) == []


@pytest.mark.parametrize(
    ("path", "text", "pattern", "expected"),
    [
        ("a.js", "/* x */ eval(x)", r"eval\(", [1]),
        ("a.js", "fetch('http://x/eval(1)')", r"eval\(", [1]),
        ("a.py", 'query = call(\n"""SELECT eval(x)""")', r"eval\(", [2]),
        ("a.c", "#include <eval.h>", "eval", [1]),
        ("a.ts", "// @ts-ignore\nx", "@ts-ignore", [1]),
        ("a.py", "x  # noqa", "noqa", [1]),
        ("requirements.txt", "redis==5", "redis", [1]),
    ],
)
def test_code_beside_comments_and_directives_are_code(path, text, pattern, expected):
    assert lines(edge(pattern), text, path) == expected


def test_only_the_lines_that_a_text_adds_to_another_one_are_checked():
    old = "def f():\n    return eval(x)\n\ny = 1\n"
    new = "import os\ndef f():\n        return eval(x)\n\nz = 2\n"

    assert added("a.py", new, old).hunks == (Hunk(1, ("import os",)), Hunk(4, ("", "z = 2", "")))
    assert added("a.py", new, "").hunks == (Hunk(1, tuple(new.split("\n"))),)
    assert added("a.py", "a\na", "a").hunks == (Hunk(2, ("a",)),)


def test_a_title_of_one_word_never_applies():
    assert lines(edge(title="Uploads"), "uploads") == []


def test_no_pattern_matches_across_hunks():
    hunks = (Hunk(start=3, lines=("open(",)), Hunk(start=9, lines=("x)",)))

    assert list(check([edge(r"open\(.*x")], [Added(path="a", hunks=hunks)], ())) == []


def test_an_edge_is_reported_at_most_twenty_times_in_a_file():
    assert len(lines(edge("crypto"), "crypto\n" * 100)) == 20


@pytest.mark.req("003-16")
def test_an_invalid_pattern_never_applies():
    assert lines(edge("(", "crypto"), "crypto (") == [1]
    assert lines(edge("("), "(") == []
