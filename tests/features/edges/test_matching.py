"""Comparing edges with a task, its stack and its code."""

import pytest

from mimo.features.edges.edge import Detection, Question, match
from tests.features.edges.examples import edge

CRYPTO = edge(
    title="Vercel Edge crypto limitation",
    detection=Detection(
        context=("vercel", "edge", "middleware"),
        intent=("crypto", "uuid", "random", "token"),
        code=("import.*crypto", "require.*crypto"),
    ),
)


@pytest.mark.req("003-17")
def test_the_documented_intent_finds_the_documented_edge():
    result = match(CRYPTO, Question("implementing token generation with crypto"))

    assert result is not None
    assert result.matched_on == "intent: crypto, token"
    assert result.confidence == pytest.approx(1 / 3)


@pytest.mark.req("003-14", "003-15", "003-18")
@pytest.mark.parametrize(
    ("intent", "stack", "code", "reason", "confidence"),
    [
        ("auth", (), "import crypto from 'crypto'", "code: import.*crypto (line 1)", 1 / 3),
        ("auth", (), "x\nconst c = REQUIRE('crypto')", "code: require.*crypto (line 2)", 1 / 3),
        ("auth middleware", (), "import crypto", "context: middleware", 2 / 3),
        ("a uuid", ("vercel",), "import crypto", "context: vercel; intent: uuid; code", 1.0),
        ("generating tokens", (), "", "intent: token", 1 / 3),
        ("a colour", ("Vercel",), "", "context: vercel", 0.3),
    ],
)
def test_context_intent_and_code_are_separate_signals(intent, stack, code, reason, confidence):
    result = match(CRYPTO, Question(intent, stack, code))

    assert result is not None
    assert reason in result.matched_on
    assert result.confidence == pytest.approx(confidence)


@pytest.mark.parametrize(
    ("intent", "stack", "code"),
    [
        ("a colour", (), ""),
        ("a colour", ("python",), "import os"),
        ("", (), "imports\ncrypto"),
    ],
)
def test_an_unrelated_intent_matches_no_edge(intent, stack, code):
    assert match(CRYPTO, Question(intent, stack, code)) is None


@pytest.mark.req("003-19")
def test_a_given_stack_replaces_the_detected_one():
    supabase = edge(title="Tables are open", tags=("supabase",))

    assert match(supabase, Question("database queries", ("python",))) is None
    result = match(supabase, Question("database queries", ("supabase", "edge")))
    assert result is not None
    assert result.stack_alone


@pytest.mark.parametrize("name", ["next", "Next.js", "nextjs"])
def test_aliases_name_the_same_technology(name):
    assert match(edge(title="X", tags=("nextjs",)), Question("a", (name,))) is not None


def test_a_technology_that_the_intent_names_counts_unless_its_name_is_a_word():
    assert match(edge(title="X", tags=("javascript",)), Question("sort in javascript"))
    assert match(edge(title="X", tags=("go",)), Question("let's go with it")) is None


@pytest.mark.req("003-16")
@pytest.mark.parametrize("pattern", ["(", "*", "[a-", "(?<=x)y", r"(a)\1", "a{1001}{1001}", "\\"])
def test_an_invalid_pattern_does_not_affect_others(pattern):
    result = match(edge(pattern, "crypto"), Question("a", (), "import crypto"))

    assert result is not None
    assert result.matched_on == "code: crypto (line 1)"


@pytest.mark.req("003-13")
@pytest.mark.parametrize(
    ("title", "intent", "stack", "code", "confidence"),
    [
        ("Our API allows 100 calls", "calling the API", (), "", 0.6),
        ("Our API allows 100 calls", "the weather of our", (), "", None),
        ("Redis drops keys", "a colour", ("redis",), "", 0.4),
        ("`yaml.load` runs code", "a colour", (), "x = yaml.load(f)", 0.8),
        ("`yaml.load` runs code", "a colour", (), "x = yamlXload(f)", None),
    ],
)
def test_a_gotcha_of_the_project_is_recognised_by_its_title(title, intent, stack, code, confidence):
    result = match(edge(title=title, of_project=True), Question(intent, stack, code))

    assert (result.confidence if result else None) == confidence


def test_matches_are_sorted_by_confidence_and_severity():
    sure = match(CRYPTO, Question("a token", ("vercel",)))
    vague = match(CRYPTO, Question("a token"))

    assert sure is not None
    assert vague is not None
    assert sure.order < vague.order
