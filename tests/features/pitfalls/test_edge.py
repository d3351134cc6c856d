"""Edges, and the fields of a memory that they are read from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.errors import Invalid
from mimo.features.pitfalls.edge import Detection, Severity, edge_of, memory_of, title_key
from tests.features.pitfalls.examples import edge


def read(content="It happens", *, title="A title", **extra):
    return edge_of("edge_x", title, content, extra)


@pytest.mark.req("003-21")
def test_missing_lists_of_a_detection_are_empty():
    assert Detection.read({}) == Detection()
    assert Detection.read({"code": ["x"]}) == Detection(code=("x",))
    assert not Detection.read({"intent": ["", " "]})


@pytest.mark.req("003-15", "003-21")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "`detection` must be an object, not `None`"),
        ("crypto", "`detection` must be an object, not `crypto`"),
        (["crypto"], "`detection` must be an object, not `['crypto']`"),
        ({"intent": "crypto"}, "`intent` of `detection` must be a list of strings, not `crypto`"),
        ({"intent": [1]}, "`intent` of `detection` must be a list of strings, not `[1]`"),
        ({"words": ["crypto"]}, "`detection` has no field `words`"),
        (
            {"intent": [str(number) for number in range(101)]},
            "`intent` of `detection` has 101 items, more than 100",
        ),
        (
            {"code": ["x" * 513]},
            "`code` of `detection` has an item of more than 512 characters: `" + "x" * 59 + "…`",
        ),
    ],
)
def test_a_malformed_detection_is_refused(given, message):
    with pytest.raises(Invalid) as caught:
        Detection.read(given)

    assert caught.value.message == message
    assert caught.value.details == {"field": "detection"}


LINES = st.lists(
    st.sampled_from(["text", "## Workaround", "\\## Workaround", "## Workaround ", "## More", ""])
)


@given(LINES, LINES)
def test_the_text_of_an_edge_round_trips(description, workaround):
    texts = ["\n".join(lines).strip("\n") for lines in (description, workaround)]
    content, extra = memory_of(edge(description=texts[0], workaround=texts[1]))

    again = read(content, **extra)

    assert [again.description, again.workaround] == texts


@given(
    st.lists(st.text(min_size=1).map(str.strip).filter(bool), max_size=3, unique=True),
    st.sampled_from(Severity),
)
def test_the_front_matter_of_an_edge_round_trips(words, severity):
    detection = Detection(context=tuple(words), code=tuple(words))
    result = edge(title="A title", tags=("python",), severity=severity, detection=detection)
    content, extra = memory_of(result)

    assert read(content, **extra) == result


@pytest.mark.parametrize(
    ("extra", "severity"),
    [
        ({}, Severity.INFO),
        ({"detection": {"intent": ["x"]}}, Severity.WARNING),
        ({"severity": "CRITICAL "}, Severity.CRITICAL),
        ({"severity": "terrible"}, Severity.INFO),
        ({"severity": 3, "detection": "x", "stack_tags": {"a": 1}}, Severity.INFO),
    ],
)
def test_malformed_fields_are_ignored(extra, severity):
    result = read(**extra)

    assert result.severity is severity
    assert result.stack_tags == ()
    assert result.verified_count == 0


def test_lists_in_a_header_may_be_text_with_commas():
    result = read(stack_tags="python, go", detection={"intent": ["a", 2, None, "a"]})

    assert result.stack_tags == ("python", "go")
    assert result.detection.intent == ("a", "2")


def test_a_line_of_the_log_has_its_workaround_in_a_field():
    content = "p->next is null → check\n- on CI, too"

    result = read(content, title="p->next is null", workaround="check")

    assert result.description == "p->next is null\n- on CI, too"
    assert result.workaround == "check"


def test_code_in_a_title_is_matched_literally():
    assert edge(title="`p->next` and `x` are null").probes == (("p->next", True),)
    assert edge("y", title="`p->next`").probes == (("y", False),)


@pytest.mark.parametrize(
    "title",
    ["Vercel Edge crypto", "vercel  edge: CRYPTO!", "Vercel Edge ｃｒｙｐｔｏ"],
)
@pytest.mark.req("003-24")
def test_titles_are_compared_without_case_and_punctuation(title):
    assert title_key(title) == title_key("Vercel edge crypto")


def test_titles_without_words_still_differ():
    assert title_key("→") != title_key("←")
