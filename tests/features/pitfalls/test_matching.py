"""Matching edges with a task: by meaning, by words, by code and by the stack."""

import pytest

from mimo.features.pitfalls.edge import Detection, Severity
from mimo.features.pitfalls.matching import ENOUGH, NEAR, STRONGEST, Task, matches
from tests.features.pitfalls.examples import edge

CRYPTO = edge(
    title="Vercel Edge crypto limitation",
    detection=Detection(
        context=("vercel", "edge", "middleware"),
        intent=("crypto", "uuid", "random", "token"),
        code=("import.*crypto", "require.*crypto"),
    ),
)


def like(rest=1.0, lacking="", **cosines):
    """Returns a comparison that gives these cosines to texts with these words, else .05.

    No cosine of a task without the word `lacking` is above `rest`.
    """

    def compared(task, texts):
        most = rest if lacking not in task else 1.0
        return [
            min(most, max((v for k, v in cosines.items() if k in t), default=0.05)) for t in texts
        ]

    return compared


def one(pitfall, intent, stack=(), code="", cosines=None, **options):
    """Returns the match of the only edge; None if it does not apply."""
    return next(iter(matches([pitfall], Task(intent, stack, code), cosines, **options)), None)


@pytest.mark.req("003-17")
@pytest.mark.parametrize("cosines", [None, like(crypto=0.4)])
def test_the_documented_intent_finds_the_documented_edge(cosines):
    result = one(CRYPTO, "implementing token generation with crypto", cosines=cosines)

    assert result is not None
    assert result.matched_on.startswith("intent: crypto, token")
    assert 0 < result.confidence <= 1


@pytest.mark.req("003-14", "003-15", "003-18")
@pytest.mark.parametrize(
    ("intent", "stack", "code", "reason"),
    [
        ("auth", (), "import crypto from 'crypto'", "code: import.*crypto (line 1)"),
        ("auth", (), "x\nconst c = REQUIRE('crypto')", "code: require.*crypto (line 2)"),
        ("auth middleware", (), "import crypto", "context: middleware; code: import.*crypto"),
        ("a uuid", ("vercel",), "import crypto", "context: vercel; intent: uuid; code"),
        ("generating tokens", (), "", "intent: token"),
    ],
)
def test_context_intent_and_code_are_separate_signals(intent, stack, code, reason):
    result = one(CRYPTO, intent, stack, code)

    assert result is not None
    assert reason in result.matched_on
    assert 0 < result.confidence <= 1


@pytest.mark.parametrize(
    ("intent", "stack", "code"),
    [
        ("a colour", (), ""),
        ("a colour", ("python",), "import os"),
        ("", (), "imports\ncrypto"),
        ("a colour", ("vercel",), ""),
        ("a new page of the vercel project", ("vercel",), ""),
    ],
)
@pytest.mark.parametrize("cosines", [None, like(crypto=0.3)])
def test_an_unrelated_intent_matches_no_edge(intent, stack, code, cosines):
    assert one(CRYPTO, intent, stack, code, cosines) is None


def test_an_edge_applies_by_the_meaning_of_any_phrase():
    detection = Detection(intent=("cookie", "tracking prevention"), tasks=("keep users logged in",))
    safari = edge(
        title="Safari deletes data",
        description="It counts days. Visits reset it.",
        workaround="Set it on the server.",
        detection=detection,
    )

    for phrase in ("Safari", "keep", "counts", "Visits", "server", "tracking"):
        result = one(safari, "an unrelated sentence", cosines=like(**{phrase: ENOUGH}))
        assert result is not None, phrase
        assert f"like: {phrase}" in result.matched_on.replace("like: It", "like:").replace(
            "like: Set it on the", "like:"
        )
    assert one(safari, "an unrelated sentence", cosines=like(Safari=ENOUGH - 0.01)) is None
    assert one(safari, "an unrelated sentence", cosines=like(cookie=0.9)) is None


def test_a_phrase_among_the_keywords_counts_as_a_task():
    safari = edge(title="X", detection=Detection(intent=("keep users logged in",)))

    assert one(safari, "a login that lasts", cosines=like(keep=0.6)) is not None


def test_rare_shared_words_add_to_the_meaning_and_common_ones_hardly():
    pool = edge(title="Pgbouncer pools calls")

    assert one(pool, "take a lock through pgbouncer", cosines=like(Pgbouncer=0.4)) is not None
    assert one(pool, "show the calls in a table", cosines=like(Pgbouncer=0.4)) is None


@pytest.mark.parametrize(
    ("tags", "applies"),
    [
        (("redis",), True),
        (("safari", "auth", "cookies"), True),
        (("embedded",), True),
        (("nextjs",), False),
        (("nextjs", "redis"), False),
        (("python", "redis"), True),
    ],
)
def test_only_tags_that_can_be_detected_restrict_an_edge(tags, applies):
    pool = edge(title="Keep users logged in", tags=tags)
    match = one(pool, "keep users logged in", ("python",), cosines=like(Keep=0.7))

    assert (match is not None) is applies


def test_a_dependency_of_the_project_is_a_tag_of_its_stack():
    pool = edge(title="Pool", tags=("Redis",))
    task = Task("anything", ("python",), dependencies=("redis",))

    assert matches([pool], task, None, stack_alone=True)[0].of_stack
    both = edge(title="Pool", tags=("nextjs", "redis"))
    assert matches([both], task, None, stack_alone=True)


def test_words_that_name_the_stack_do_not_count():
    pool = edge(title="Pgbouncer pools transactions")

    stack = ("pgbouncer",)
    assert one(pool, "a lock through pgbouncer", stack, cosines=like(Pgbouncer=0.4)) is None


def test_only_the_strongest_edges_apply():
    strong = edge(title="Alpha", id="a")
    near = edge(title="Beta", id="b")
    far = edge(title="Gamma", id="c")

    for strength in (STRONGEST - 0.1, STRONGEST):
        cosines = like(Alpha=strength, Beta=strength - NEAR + 0.01, Gamma=strength - NEAR - 0.01)
        result = matches([far, near, strong], Task("something else"), cosines)
        assert [match.edge.title for match in result] == ["Alpha", "Beta"]

    # A strong edge is not hidden by one that repeats the task word for word.
    cosines = like(Alpha=0.98, Beta=STRONGEST - NEAR + 0.01, Gamma=STRONGEST - NEAR - 0.01)
    result = matches([far, near, strong], Task("something else"), cosines)
    assert [match.edge.title for match in result] == ["Alpha", "Beta"]


def test_a_task_on_looks_or_texts_runs_into_no_edge_but_by_its_code():
    reader = edge(
        title="Card reader is busy", detection=Detection(intent=("reader",), code=("x=",))
    )
    near = like(Card=0.7)

    assert one(reader, "cancel a payment on the card reader", cosines=near) is not None
    assert (
        one(reader, "describe in the README how a card reader is registered", cosines=near) is None
    )
    assert one(reader, "a spinner while the card reader connects", cosines=None) is None
    assert one(reader, "a new icon for the card reader", code="x=1", cosines=near) is not None


def test_a_keyword_with_a_version_is_found_without_it():
    flash = edge(title="Writes tear", detection=Detection(intent=("littlefs2",)))

    assert one(flash, "store readings in littlefs", cosines=like(Writes=0.35)) is not None
    assert one(flash, "store readings in a little file", cosines=like(Writes=0.35)) is None


def test_a_task_that_shares_only_a_noun_runs_into_no_edge():
    redis = edge(title="Redis keys fill the memory", detection=Detection(intent=("redis",)))
    by_noun = like(Redis=0.6, rest=0.19, lacking="redis")
    beside = like(Redis=0.6, rest=0.21, lacking="redis")

    assert one(redis, "upgrade the redis client to 5.2 in requirements", cosines=by_noun) is None
    assert one(redis, "cache the exchange rates in redis", cosines=beside) is not None
    # A second word is evidence, and of a short task the rest is too little.
    assert one(redis, "write the keys of redis", cosines=by_noun) is not None
    assert one(redis, "use redis", cosines=by_noun) is not None
    assert one(redis, "connecting to redis", cosines=by_noun) is not None


def test_the_rest_of_a_task_makes_up_for_a_lower_strength():
    tax = edge(title="A total of floats")
    task = "add the tax to the total of the cart"

    assert one(tax, task, cosines=like(floats=0.4)) is not None
    assert one(tax, task, cosines=like(floats=0.4, rest=0.24, lacking="total")) is None


def test_a_chore_runs_into_an_edge_only_if_its_rest_is_near():
    reader = edge(title="Card reader is busy", detection=Detection(intent=("reader",)))
    for chore in (
        "rename the class of the card reader",
        "list the card readers that we have",
        "move the card reader to another folder",
        "add a button beside the card reader",
    ):
        by_noun = like(Card=0.7, rest=0.29, lacking="card")
        assert one(reader, chore, cosines=by_noun) is None, chore
        assert one(reader, chore, cosines=like(Card=0.7)) is not None, chore


def test_a_chore_runs_into_an_edge_that_shares_its_verb():
    plural = edge(title="Plurals differ", detection=Detection(intent=("translation",)))
    assert one(plural, "translate the number of files", cosines=like(Plurals=0.45)) is not None

    page = edge(title="An old page asks for renamed fields", detection=Detection(intent=("api",)))
    by_noun = like(An=0.45, rest=0.2, lacking="API")

    task = "rename the old fields in all answers of the API"
    assert one(page, task, cosines=by_noun) is not None
    assert one(page, "list the old fields in all answers of the API", cosines=by_noun) is None
    assert one(page, "the old price in the API should have a comment", cosines=by_noun) is None


def test_a_task_on_looks_runs_into_an_edge_about_them():
    dark = edge(title="Screenshots of the dark theme are unreadable in print")

    task = "take new screenshots of the dialog for the manual"
    assert one(dark, task, cosines=like(Screenshots=0.7)) is not None
    assert one(dark, f"{task} in a bigger font", cosines=like(Screenshots=0.7)) is None


def test_an_unapproved_edge_displaces_no_approved_one():
    pulled = edge(title="Alpha", id="a", trusted=False)
    approved = edge(title="Beta", id="b")

    result = matches([pulled, approved], Task("something"), like(Alpha=0.95, Beta=0.5))

    assert {match.edge.title for match in result} == {"Alpha", "Beta"}


def test_a_keyword_suffices_unless_the_meaning_contradicts():
    tokens = edge(title="Guessable", detection=Detection(intent=("token", "call")))

    assert one(tokens, "make a token", cosines=like(Guessable=0.25)) is not None
    assert one(tokens, "put a token on the third page", cosines=like(Guessable=0.25)) is None
    assert one(tokens, "put a token on the third page", cosines=like(Guessable=0.39)) is not None
    assert one(tokens, "make a token", cosines=like(Guessable=0.1)) is None
    assert one(tokens, "make a call", cosines=like(Guessable=0.3)) is None


def test_without_a_model_keywords_and_rare_words_decide():
    pool = edge(title="Advisory locks and pgbouncer", detection=Detection(intent=("listen", "set")))

    assert one(pool, "an advisory lock with pgbouncer") is not None
    assert one(pool, "listen to events") is not None
    assert one(pool, "set a lock") is None


@pytest.mark.req("003-19")
def test_a_given_stack_replaces_the_detected_one():
    supabase = edge(title="Tables are open", tags=("supabase",))

    alike = like(Tables=0.6)
    assert one(supabase, "database queries", ("python",), cosines=alike) is None
    result = one(supabase, "database queries", ("supabase", "edge"), cosines=alike)
    assert result is not None
    assert result.of_stack


def test_the_stack_alone_is_reported_on_request_only():
    supabase = edge(title="Tables are open", tags=("supabase",))
    other = edge(title="Data is open", tags=("firebase",))
    plain = edge(title="Anything")
    task = Task("database queries", ("supabase",))

    assert matches([supabase, other, plain], task, like()) == []
    (result,) = matches([supabase, other, plain], task, like(), stack_alone=True)
    assert (result.edge.title, result.matched_on) == ("Tables are open", "context: supabase")
    assert result.confidence < 0.3


@pytest.mark.parametrize("name", ["next", "Next.js", "nextjs"])
def test_aliases_name_the_same_technology(name):
    assert one(edge(title="X", tags=("nextjs",)), "a", (name,), cosines=like(X=0.9)) is not None


@pytest.mark.parametrize(
    ("tag", "stack"), [("javascript", "node"), ("react", "nextjs"), ("python", "django")]
)
def test_a_technology_implies_the_one_below_it(tag, stack):
    assert one(edge(title="X", tags=(tag,)), "a", (stack,), cosines=like(X=0.9)) is not None
    assert one(edge(title="X", tags=(stack,)), "a", (tag,), cosines=like(X=0.9)) is None


def test_a_technology_that_the_intent_names_counts_unless_its_name_is_a_word():
    alike = like(X=0.9)

    javascript = edge(title="X", tags=("javascript",))
    assert one(javascript, "sort in javascript", ("python",), cosines=alike)
    assert one(javascript, "sort", ("python",), cosines=alike) is None
    assert one(javascript, "sort", cosines=alike) is not None, "the stack is unknown"
    assert one(edge(title="X", tags=("go",)), "let's go", ("python",), cosines=alike) is None


def test_an_edge_of_the_project_needs_no_stack():
    own = edge(title="X", tags=("kysely",), of_project=True)

    assert one(own, "a", ("python",), cosines=like(X=0.9)) is not None


@pytest.mark.req("003-16")
@pytest.mark.parametrize("pattern", ["(", "*", "[a-", "(?<=x)y", r"(a)\1", "a{1001}{1001}", "\\"])
def test_an_invalid_pattern_does_not_affect_others(pattern):
    result = one(edge(pattern, "crypto"), "a", code="import crypto")

    assert result is not None
    assert result.matched_on == "code: crypto (line 1)"


@pytest.mark.req("003-13")
@pytest.mark.parametrize(
    ("title", "intent", "code", "applies"),
    [
        ("Our API allows 100 calls", "calling the API", "", True),
        ("Our API allows 100 calls", "the weather of our town", "", False),
        ("`yaml.load` runs code", "a colour", "x = yaml.load(f)", True),
        ("`yaml.load` runs code", "a colour", "x = yamlXload(f)", False),
    ],
)
def test_a_gotcha_of_the_project_is_recognised_by_its_title(title, intent, code, applies):
    gotcha = edge(title=title, of_project=True, description=title, workaround="")
    cosines = like(API=0.45 if "API" in intent else 0.1)

    assert (one(gotcha, intent, code=code, cosines=cosines) is not None) is applies


@pytest.mark.parametrize(
    ("intent", "applies"),
    [
        ("let us add PayPal", True),
        ("accept card payments", True),
        ("pay the invoice", False),
        ("charge a card", False),
    ],
)
def test_a_failed_decision_applies_by_its_names_and_words_only(intent, applies):
    failed = edge(title="Card payments", type="decision", names=("paypal",), of_project=True)

    result = one(failed, intent, cosines=like(Card=0.9))

    assert (result is not None) is applies


def test_matches_are_sorted_by_confidence_and_severity():
    sure = edge(title="Alpha", id="a", severity=Severity.INFO)
    mild = edge(title="Beta", id="b", severity=Severity.WARNING)
    bad = edge(title="Gamma", id="c", severity=Severity.CRITICAL)

    result = matches([mild, bad, sure], Task("x"), like(Alpha=0.8, Beta=0.7, Gamma=0.7))

    assert [match.edge.title for match in result] == ["Alpha", "Gamma", "Beta"]


def test_a_long_task_is_compared_once_and_not_for_each_edge_again():
    tasks, near = [], like(Redis=0.7)

    def counted(task, texts):
        tasks.append(task)
        return near(task, texts)

    words = [f"server{chr(97 + number)}" for number in range(20)]
    edges = [edge(title=f"Redis loses keys of {word}") for word in words]
    plan = f"restart redis on {' and '.join(words)} " + "and look at each of their logs " * 5

    assert matches(edges, Task(plan), counted)
    assert set(tasks) == {plan}
