"""Every documented form of a statement, and its look-alikes."""

import pytest

from mimo.memory.log import begins, line_key, remembered, statement
from mimo.memory.model import Kind

DECISION, ISSUE, INSIGHT = Kind.DECISION, Kind.ISSUE, Kind.INSIGHT

FORMS = [
    ("**Decided:** Use JWT", DECISION, "Use JWT", 1.0),
    ("**Decided**: Use JWT", DECISION, "Use JWT", 1.0),
    ("__Decided:__ Use JWT", DECISION, "Use JWT", 0.9),
    ("We decided to use JWT", DECISION, "use JWT", 0.5),
    ("decided on Postgres", DECISION, "Postgres", 0.5),
    ("Decided: Use JWT", DECISION, "Use JWT", 0.5),
    ("going with Postgres", DECISION, "Postgres", 0.5),
    ("We went with Postgres", DECISION, "Postgres", 0.5),
    ("settled on two-space tabs", DECISION, "two-space tabs", 0.5),
    ("picked Vite", DECISION, "Vite", 0.5),
    ("chose Rust", DECISION, "Rust", 0.6),
    ("using Redis over Memcached", DECISION, "Redis over Memcached", 0.6),
    ("using Redis because it persists", DECISION, "Redis", 0.65),
    ("using Redis instead of Memcached", DECISION, "Redis instead of Memcached", 0.5),
    ("using Redis rather than Memcached", DECISION, "Redis rather than Memcached", 0.5),
    ("chose `uv` over `pip`", DECISION, "`uv` over `pip`", 0.7),
    ('Decided: call it "Shop"', DECISION, 'call it "Shop"', 0.5),
    ("picked https://a.example/x as host", DECISION, "https://a.example/x as host", 0.5),
    ("MEMORY: decided use fly.io", DECISION, "use fly.io", 0.8),
    ("decided to use JWT because it is stateless", DECISION, "use JWT", 0.65),
    ("decided on JWT over sessions because stateless", DECISION, "JWT over sessions", 0.75),
    ("**Problem:** CORS is refused", ISSUE, "CORS is refused", 1.0),
    ("**Issue:** CORS is refused", ISSUE, "CORS is refused", 1.0),
    ("**Bug:** CORS is refused", ISSUE, "CORS is refused", 1.0),
    ("Problem: the login is slow", ISSUE, "the login is slow", 0.6),
    ("issue: the login is slow", ISSUE, "the login is slow", 0.6),
    ("Bug in Safari's cookies", ISSUE, "in Safari's cookies", 0.6),
    ("Hit a problem with the redirect", ISSUE, "the redirect", 0.5),
    ("struggling with the types", ISSUE, "the types", 0.5),
    ("stuck on the migration", ISSUE, "the migration", 0.5),
    ("The build doesn't work on Windows", ISSUE, "The build doesn't work on Windows", 0.4),
    ("Caching won't work here", ISSUE, "Caching won't work here", 0.4),
    ("The proxy isn’t working", ISSUE, "The proxy isn’t working", 0.4),
    ("The nightly build is broken", ISSUE, "The nightly build is broken", 0.4),
    ("tests failing on main", ISSUE, "tests failing on main", 0.4),
    ("the deploy failed", ISSUE, "the deploy failed", 0.4),
    ("MEMORY: problem CORS on preview", ISSUE, "CORS on preview", 0.8),
    ("MEMORY: issue: CORS on preview", ISSUE, "CORS on preview", 0.8),
    ("**Learned:** Safari drops cookies", INSIGHT, "Safari drops cookies", 1.0),
    ("**TIL:** Safari drops cookies", INSIGHT, "Safari drops cookies", 1.0),
    ("**Gotcha:** Safari drops cookies", INSIGHT, "Safari drops cookies", 1.0),
    ("TIL pytest runs in parallel", INSIGHT, "pytest runs in parallel", 0.6),
    ("gotcha: the port is taken", INSIGHT, "the port is taken", 0.6),
    ("learned that retries cost", INSIGHT, "retries cost", 0.5),
    ("discovered a second queue", INSIGHT, "a second queue", 0.5),
    ("realized that we need two", INSIGHT, "we need two", 0.5),
    ("turns out the cache is cold", INSIGHT, "the cache is cold", 0.5),
    ("found out that it is cold", INSIGHT, "it is cold", 0.5),
    ("MEMORY: learned retries cost", INSIGHT, "retries cost", 0.8),
    ("MEMORY: til retries cost", INSIGHT, "retries cost", 0.8),
    ("MEMORY: the port is 8080", Kind.FACT, "the port is 8080", 0.8),
]

LOOK_ALIKES = [
    "We decided not to use Redis",
    "we haven't decided on a colour",
    "We have not yet decided on a colour",
    "should we decide on a colour",
    "if we decide on a colour",
    "we might decide on a colour",
    "we need to decide on a colour",
    "the colour is to be decided",
    "have they decided on it?",
    "The colour is undecided",
    "picked up where we left off",
    "using Redis for sessions",
    "no longer failing",
    "nothing failed today",
    "there was no problem: all went well",
    "Issue tracker moved to the new host",
    "a machine-learned model",
    "have you learned it?",
    "an ordinary line of text",
    "mood: fine",
    "**Fixed:** the redirect",
    "See https://example.com/issue: foo",
    "the docs are at http://host/we-decided-to/use-x",
    "the column `failed` counts runs",
    "`decided: use tabs` is what such a line looks like",
    'the log says "we decided to use tabs"',
    "she asked: “is the build broken”",
    "**Decided:** X",
    "",
]


@pytest.mark.parametrize(("line", "kind", "title", "confidence"), FORMS)
@pytest.mark.req("003-09")
def test_every_documented_form_is_understood(line, kind, title, confidence):
    result = statement(line)

    assert result is not None
    assert (result.kind, result.title, result.confidence) == (kind, title, confidence)


@pytest.mark.parametrize("line", LOOK_ALIKES)
def test_a_look_alike_is_ignored(line):
    assert statement(line) is None


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("**Problem:** CORS is refused", "open"),
        ("**Problem:** CORS is refused, **Fixed**", "resolved"),
        ("Problem: CORS, fixed by a header", "resolved"),
        ("Problem: CORS, resolved", "resolved"),
        ("Problem: CORS, solved by a header", "resolved"),
        ("Problem: CORS ✓", "resolved"),
        ("✓ Problem: CORS", "resolved"),
        ("[x] Problem: CORS", "resolved"),
        ("[X] Problem: CORS", "resolved"),
        ("[ ] Problem: CORS", "open"),
        ("Problem: CORS, blocked by ops", "blocked"),
        ("Problem: CORS, blocked on ops", "blocked"),
        ("Problem: CORS, waiting for ops", "blocked"),
        ("Problem: CORS, waiting on ops", "blocked"),
        ("Problem: CORS needs to be allowed", "blocked"),
        ("Problem: CORS needs more thought", "blocked"),
        ("Problem: CORS is not fixed", "open"),
        ("Problem: CORS isn't solved", "open"),
        ("Problem: CORS is unresolved", "open"),
        ("Problem: CORS needs to be fixed", "blocked"),
        ("Problem: a fixed-width font", "open"),
    ],
)
def test_the_status_of_an_issue_is_read_from_its_line(line, status):
    result = statement(line)

    assert result is not None
    assert result.status == status


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Decided: JWT because it is stateless", "it is stateless"),
        ("Decided: JWT since it is stateless", "it is stateless"),
        ("Decided: JWT so that nodes share nothing", "nodes share nothing"),
        ("Decided: JWT, so nodes share nothing", "nodes share nothing"),
        ("Decided: JWT due to two nodes", "two nodes"),
        ("Decided: JWT (reason: two nodes)", "two nodes)"[:-1]),
        ("Decided: JWT. Why: two nodes", "two nodes"),
        ("Decided: JWT", None),
    ],
)
def test_the_reason_of_a_decision_is_separate(line, reason):
    result = statement(line)

    assert result is not None
    assert result.title == "JWT"
    assert result.reasoning == reason


@pytest.mark.parametrize(
    ("line", "alternatives"),
    [
        ("Decided: JWT over sessions", ("sessions",)),
        ("Decided: JWT instead of sessions or cookies", ("sessions", "cookies")),
        ("Decided: JWT rather than sessions", ("sessions",)),
        ("Decided: JWT, not sessions", ("sessions",)),
        ("Decided: JWT (rejected: sessions, cookies)", ("sessions", "cookies")),
        ("Decided: JWT", ()),
    ],
)
def test_the_alternatives_of_a_decision_are_separate(line, alternatives):
    result = statement(line)

    assert result is not None
    assert result.alternatives == alternatives


@pytest.mark.parametrize("mark", ["KEY:", "**KEY:**", "important:", "**Important:**"])
def test_a_key_statement_never_fades(mark):
    fact, decision = statement(f"{mark} no deploys on Friday"), statement(f"{mark} decided on JWT")

    assert fact is not None
    assert decision is not None
    assert (fact.kind, fact.key, fact.title) == (Kind.FACT, True, "no deploys on Friday")
    assert (decision.kind, decision.key) == (DECISION, True)


def test_a_lower_case_key_is_not_a_mark():
    assert statement("key: value of a pair") is None


def test_a_line_after_next_is_a_plan():
    result = statement("Next: write the expiry test")

    assert result is not None
    assert (result.kind, result.title, result.status) == (
        Kind.PLAN,
        "write the expiry test",
        "open",
    )


def test_a_comment_is_a_fact_unless_it_is_more():
    fact, issue = remembered("the port is 8080"), remembered("the port 8080 fails, broken")

    assert fact is not None
    assert issue is not None
    assert (fact.kind, issue.kind) == (Kind.FACT, ISSUE)


def test_case_spacing_and_a_ticked_box_do_not_change_the_key_of_a_line():
    assert line_key("[ ]  Problem:  CORS") == line_key("[x] problem: CORS")
    assert line_key("Problem: CORS") != line_key("Problem: CORS on preview")


@pytest.mark.parametrize("line", ["**Problem:** X", "Decided: X", "KEY: X", "Next: X"])
def test_a_mark_begins_a_statement(line):
    assert begins(line)
    assert not begins("because of " + line)


def test_a_very_long_line_is_read_in_little_time():
    """A log may have another author: with backtracking this would take hours."""
    assert statement("using " * 100_000) is None
    assert statement("n't " * 100_000) is None
