"""When an edge applies."""

import pytest

from mimo.features.edges.edge import Detection, Edge, Severity, asked, match

CRYPTO = Detection(
    context=("vercel", "edge", "middleware"),
    intent=("crypto", "uuid", "random", "token"),
    code=("import.*crypto", "require.*crypto"),
)


def edge(detection=CRYPTO, *, title="Vercel Edge crypto limitation", tags=()):
    return Edge(
        id="edge_x",
        title=title,
        description="There is none",
        workaround="Use another",
        detection=detection,
        stack_tags=tags,
        severity=Severity.WARNING,
    )


@pytest.mark.req("003-17")
def test_the_documented_intent_finds_the_documented_edge():
    found = match(edge(), asked("implementing token generation with crypto"))

    assert found is not None
    assert found.matched_on == "intent: crypto, token"
    assert found.confidence == pytest.approx(1 / 3)


@pytest.mark.req("003-14", "003-15", "003-18")
@pytest.mark.parametrize(
    ("intent", "stack", "code", "told", "confidence"),
    [
        ("auth", (), "import crypto from 'crypto'", "code: import.*crypto (line 1)", 1 / 3),
        ("auth", (), "x\nconst c = REQUIRE('crypto')", "code: require.*crypto (line 2)", 1 / 3),
        ("auth middleware", (), "import crypto", "context: middleware", 2 / 3),
        ("a uuid", ("vercel",), "import crypto", "context: vercel; intent: uuid; code", 1.0),
        ("generating tokens", (), "", "intent: token", 1 / 3),
        ("a colour", ("Vercel",), "", "context: vercel", 0.3),
    ],
)
def test_context_intent_and_code_are_separate_signals(intent, stack, code, told, confidence):
    found = match(edge(), asked(intent, stack, code))

    assert found is not None
    assert told in found.matched_on
    assert found.confidence == pytest.approx(confidence)


@pytest.mark.parametrize(
    ("intent", "stack", "code"),
    [
        ("a colour", (), ""),
        ("a colour", ("python",), "import os"),
        ("", (), "imports\ncrypto"),
    ],
)
def test_an_unrelated_intent_matches_no_edge(intent, stack, code):
    assert match(edge(), asked(intent, stack, code)) is None


@pytest.mark.req("003-19")
def test_a_given_stack_replaces_the_detected_one():
    supabase = edge(Detection(), title="Tables are open", tags=("supabase",))

    assert match(supabase, asked("database queries", ("python",))) is None
    found = match(supabase, asked("database queries", ("supabase", "edge")))
    assert found is not None
    assert found.stack_alone


@pytest.mark.parametrize("name", ["next", "Next.js", "nextjs"])
def test_aliases_name_the_same_technology(name):
    assert match(edge(Detection(), title="X", tags=("nextjs",)), asked("a", (name,))) is not None


def test_a_technology_that_the_intent_names_counts_unless_its_name_is_a_word():
    assert match(edge(Detection(), title="X", tags=("javascript",)), asked("sort in javascript"))
    assert match(edge(Detection(), title="X", tags=("go",)), asked("let's go with it")) is None


@pytest.mark.req("003-16")
@pytest.mark.parametrize("pattern", ["(", "*", "[a-", "(?<=x)y", r"(a)\1", "a{1001}{1001}", "\\"])
def test_an_invalid_pattern_does_not_affect_others(pattern):
    detection = Detection(code=(pattern, "crypto"))

    found = match(edge(detection), asked("a", (), "import crypto"))

    assert found is not None
    assert found.matched_on == "code: crypto (line 1)"


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
    found = match(edge(Detection(), title=title), asked(intent, stack, code), of_project=True)

    assert (found.confidence if found else None) == confidence


def test_matches_are_sorted_by_confidence_and_severity():
    sure = match(edge(), asked("a token", ("vercel",)))
    vague = match(edge(), asked("a token"))

    assert sure is not None
    assert vague is not None
    assert sure.order < vague.order
