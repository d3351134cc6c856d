"""Properties of duplicates for every text."""

from datetime import UTC, datetime

from hypothesis import assume, given
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
def test_a_stored_text_is_not_stored_again(call, kind, content, title, topic):
    """However its file had to put it, be it with a heading, a link or half a header in it."""
    first, again = (
        saving.store_once(call, saving.draft(kind, content, title=title, topic=topic))
        for _ in range(2)
    )
    assert again.already
    assert again.record.memory.id == first.record.memory.id


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.data())
def test_spacing_does_not_change_a_statement(text, data):
    blank = st.sampled_from([" ", "  ", "\n", "\t", "\r\n\r\n"])
    spaced = "".join(data.draw(blank) if c.isspace() else c for c in text)
    memories = [
        Memory(id="x", type=Kind.FACT, content=content, created=NOW) for content in (text, spaced)
    ]
    assert statement(memories[0]) == statement(memories[1])


@given(st.data(), st.dictionaries(st.sampled_from(LETTERS), st.integers(0, 99)))
def test_a_near_duplicate_has_one_of_the_words_that_are_looked_up(data, counts):
    """Only texts with words of them are compared."""
    words = data.draw(WORDS.filter(bool))
    few = len(words) // 3
    removed = data.draw(st.frozensets(st.sampled_from(sorted(words)), max_size=few))
    other = words - removed | data.draw(st.frozensets(st.sampled_from("xyz"), max_size=few))
    assume(likeness(words, other) >= ALIKE)
    asked = telling({word: counts.get(word, 0) for word in words})
    assert other & set(asked)


@given(WORDS, WORDS)
def test_likeness_is_symmetric_and_between_0_and_1(words, other):
    result = likeness(words, other)
    assert result == likeness(other, words)
    assert 0 <= result <= 1
