"""What an edge is, and the memory that holds it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.errors import Invalid
from mimo.features.edges.edge import Detection, Severity, content_of, edge_of, extra_of, title_key
from mimo.memory.model import Kind, Memory


def memory(content="It happens", *, title="A title", **extra):
    created = datetime(2026, 11, 20, tzinfo=UTC)
    return Memory(
        id="edge_x", type=Kind.EDGE, content=content, created=created, title=title, extra=extra
    )


@pytest.mark.req("003-21")
def test_missing_lists_of_a_detection_are_empty():
    assert Detection.read({}) == Detection()
    assert Detection.read({"code": ["x"]}) == Detection(code=("x",))
    assert not Detection.read({"intent": ["", " "]})


@pytest.mark.req("003-15", "003-21")
@pytest.mark.parametrize(
    "given",
    [
        None,
        "crypto",
        ["crypto"],
        {"intent": "crypto"},
        {"intent": [1]},
        {"words": ["crypto"]},
        {"intent": [str(number) for number in range(101)]},
        {"code": ["x" * 513]},
    ],
)
def test_a_malformed_detection_is_refused(given):
    with pytest.raises(Invalid) as caught:
        Detection.read(given)

    assert caught.value.details == {"field": "detection"}


LINES = st.lists(
    st.sampled_from(["text", "## Workaround", "\\## Workaround", "## Workaround ", "## More", ""])
)


def shown(lines):
    return "\n".join(lines).strip("\n")


@given(LINES, LINES)
def test_the_text_of_an_edge_round_trips(description, workaround):
    told, done = shown(description), shown(workaround)

    edge = edge_of(memory(content_of(told, done)))

    assert (edge.description, edge.workaround) == (told, done)


@given(
    st.lists(st.text(min_size=1).map(str.strip).filter(bool), max_size=3, unique=True),
    st.sampled_from(Severity),
)
def test_the_front_matter_of_an_edge_round_trips(words, severity):
    detection = Detection(context=tuple(words), code=tuple(words))
    written = extra_of(detection, ("python",), severity)

    edge = edge_of(memory(**written))

    assert (edge.detection, edge.stack_tags, edge.severity) == (detection, ("python",), severity)


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
    edge = edge_of(memory(**extra))

    assert edge.severity is severity
    assert edge.stack_tags == ()
    assert edge.verified_count == 0


def test_lists_in_a_header_may_be_text_with_commas():
    edge = edge_of(memory(stack_tags="python, go", detection={"intent": ["a", 2, None, "a"]}))

    assert edge.stack_tags == ("python", "go")
    assert edge.detection.intent == ("a", "2")


def test_a_line_of_the_log_has_its_workaround_in_a_field():
    edge = edge_of(memory("p->next is null → check\n- on CI, too", title="p->next is null",
                          workaround="check"))  # fmt: skip

    assert edge.description == "p->next is null\n- on CI, too"
    assert edge.workaround == "check"


def test_code_in_a_title_is_matched_literally():
    assert edge_of(memory(title="`p->next` and `x` are null")).literals == ("p->next",)
    assert edge_of(memory(title="`p->next`", detection={"code": ["y"]})).literals == ()


@pytest.mark.parametrize(
    "title",
    ["Vercel Edge crypto", "vercel  edge: CRYPTO!", "Vercel Edge ｃｒｙｐｔｏ"],
)
@pytest.mark.req("003-24")
def test_titles_are_compared_without_case_and_punctuation(title):
    assert title_key(title) == title_key("Vercel edge crypto")


def test_titles_without_words_still_differ():
    assert title_key("→") != title_key("←")
