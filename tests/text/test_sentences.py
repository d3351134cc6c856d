"""Texts cut at the ends of their sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.text.phrases import cut


def test_a_text_that_fits_stays_as_it_is():
    assert cut("One. Two.", 9) == "One. Two."


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("One sentence. Another one. A third.", 27, "One sentence. Another one. …"),
        ("One sentence. Another one. A third.", 25, "One sentence. …"),
        ("He said “stop.” Then he went on and on.", 20, "He said “stop.” …"),
        ("朝の会議。昼の会議。夜の会議。", 11, "朝の会議。昼の会議。 …"),
    ],
)
def test_whole_sentences_are_kept(text, limit, expected):
    assert cut(text, limit) == expected


def test_a_long_sentence_is_cut_between_words():
    assert cut("no sentence ends here at all", 14) == "no sentence…"


def test_a_long_word_is_cut_within():
    assert cut("a" * 50, 10) == f"{'a' * 10}…"


def test_a_short_first_sentence_is_not_all_that_is_told():
    assert cut("Yes. We moved every login to tokens", 30) == "Yes. We moved every login to…"


@given(st.text(max_size=200), st.integers(min_value=1, max_value=80))
def test_what_is_cut_begins_as_the_text_and_is_no_longer_than_asked(text, limit):
    found = cut(text, limit)

    assert len(found) <= max(limit, 0) + 2
    assert text.startswith(found.removesuffix("…").removesuffix(" ")) or found == text
