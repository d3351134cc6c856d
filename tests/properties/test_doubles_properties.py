"""What must hold of doubles for every text, not for those that we thought of."""

from datetime import UTC, datetime

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mimo.memory.duplicates import ALIKE, likeness, statement, telling
from mimo.memory.model import Kind, Memory
from mimo.operations import saving
from tests.properties.test_codec_properties import PROSE, TEXT

LETTERS = "abcdefghijklmnop"
WORDS = st.frozensets(st.sampled_from(LETTERS), max_size=12)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@given(
    st.sampled_from([Kind.FACT, Kind.DECISION]),
    PROSE.filter(str.strip),
    st.none() | TEXT,
    st.none() | TEXT,
)
@settings(max_examples=40)
def test_what_was_stored_is_known_when_it_is_said_again(mind, kind, content, title, topic):
    """However its file had to put it, be it with a heading, a link or half a header in it."""
    first, again = (
        saving.store_once(mind, saving.draft(kind, content, title=title, topic=topic))
        for _ in range(2)
    )
    assert again.already
    assert again.record.memory.id == first.record.memory.id


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.data())
def test_how_a_text_is_spaced_does_not_matter(text, data):
    blank = st.sampled_from([" ", "  ", "\n", "\t", "\r\n\r\n"])
    spaced = "".join(data.draw(blank) if c.isspace() else c for c in text)
    one, other = (
        Memory(id="x", type=Kind.FACT, content=content, created=NOW) for content in (text, spaced)
    )
    assert statement(one) == statement(other)


@given(st.data(), st.dictionaries(st.sampled_from(LETTERS), st.integers(0, 99)))
def test_what_is_much_alike_holds_one_of_the_words_that_are_asked_for(data, counts):
    """Only what holds one of them is compared at all."""
    one = data.draw(WORDS.filter(bool))
    few = len(one) // 3
    gone = data.draw(st.frozensets(st.sampled_from(sorted(one)), max_size=few))
    other = one - gone | data.draw(st.frozensets(st.sampled_from("xyz"), max_size=few))
    assume(likeness(one, other, 1.0) >= ALIKE)
    asked = telling({word: counts.get(word, 0) for word in one})
    assert other & set(asked)


@given(WORDS, WORDS, st.none() | st.floats(-1, 1))
def test_likeness_has_no_direction_and_no_end_beyond_one(one, other, cosine):
    found = likeness(one, other, cosine)
    assert found == likeness(other, one, cosine)
    assert 0 <= found <= 1
