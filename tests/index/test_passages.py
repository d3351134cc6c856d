"""Cutting a text into units and passages."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.index.documents import analyse, is_chat
from mimo.text.tokens import tokenize


def words(first, last):
    return " ".join(f"word{chr(97 + n % 26)}" for n in range(first, last))


def test_a_word_without_a_token_leaves_no_gap():
    assert analyse("a.\u0300.b").units[0].tokens == "a b"


def test_a_short_text_is_one_unit_and_one_passage():
    analysis = analyse("Use JWT.\n\nWith refresh tokens.")

    (unit,) = analysis.units
    assert unit.text == "Use JWT.\n\nWith refresh tokens."
    assert unit.line0 == 0
    assert unit.tokens == "us jwt with refresh token"
    assert analysis.passages == (unit.tokens,)


def test_lines_are_packed_up_to_sixty_words():
    analysis = analyse("\n".join([words(0, 25)] * 5))

    assert [len(unit.tokens.split()) for unit in analysis.units] == [50, 50, 25]


def test_passages_are_packed_up_to_two_hundred_words():
    analysis = analyse("\n".join([words(0, 50)] * 9))

    assert [len(passage.split()) for passage in analysis.passages] == [200, 200, 50]


def test_a_unit_knows_the_line_on_which_it_begins():
    analysis = analyse(f"\n\nfirst\n{words(0, 60)}\n\nlast")

    assert [unit.line0 for unit in analysis.units] == [2, 3, 5]


def test_a_long_line_is_cut_at_the_ends_of_its_sentences():
    analysis = analyse(f"{words(0, 40)}. Next {words(0, 30)}. End")

    assert [unit.text[:4] for unit in analysis.units] == ["word", "Next"]
    assert [unit.line0 for unit in analysis.units] == [0, 0]


def test_a_long_sentence_is_cut_between_words():
    assert [len(unit.tokens.split()) for unit in analyse(words(0, 150)).units] == [60, 60, 30]


def test_a_text_without_spaces_is_cut_by_pairs_of_characters():
    units = analyse("記憶は" * 100).units

    assert [len(unit.text) for unit in units] == [80, 80, 80, 60]
    assert "".join(unit.text for unit in units) == "記憶は" * 100


def test_encoded_data_does_not_become_one_endless_unit():
    units = analyse("abcdefghij" * 2_000).units

    assert max(len(unit.text) for unit in units) <= 60 * 80


def test_of_a_chat_with_an_assistant_the_passages_hold_the_users_lines():
    analysis = analyse("user: where is it\nand when\nassistant: in the attic\nuser: thanks")

    assert analysis.passages == ("user where i it and when user thank",)
    assert "attic" in analysis.units[0].tokens


def test_a_text_that_mentions_a_user_is_not_a_chat():
    text = "user: the one who signs in\nadmin: the one who may not"

    assert analyse(text).passages == (" ".join(tokenize(text)),)


def test_a_unit_has_the_speakers_of_its_lines():
    (unit,) = analyse("Mary Ann: hello\nJon: hi\nMary Ann: see https://x.org\nuser: and me").units

    assert unit.speakers == "mari_ann jon"


def test_a_text_without_words_has_no_units():
    assert analyse(" \n--\n").units == ()
    assert analyse("").passages == ()


@given(st.text(alphabet="ab .:\n日!é", max_size=900))
def test_no_line_that_fits_is_lost_or_repeated(text):
    analysis = analyse(text)

    assert [t for unit in analysis.units for t in unit.tokens.split() if t.isascii()] == [
        t for t in tokenize(text) if t.isascii()
    ]


@given(st.text(alphabet="ab .\n!", max_size=900))
def test_every_unit_begins_on_its_line(text):
    lines = text.split("\n")
    for unit in analyse(text).units:
        assert unit.text.split("\n")[0] in lines[unit.line0]


@given(
    st.lists(
        st.sampled_from([*"ab.!:-\n日é", "log in", "user: ", "set it up", "x" * 90]), max_size=400
    )
)
def test_parts_of_a_text_have_the_tokens_that_they_have_alone(parts):
    analysis = analyse(" ".join(parts))

    for unit in analysis.units:
        assert unit.tokens == " ".join(tokenize(unit.text))
    if "user:" not in " ".join(parts):
        assert " ".join(analysis.passages) == " ".join(tokenize(" ".join(parts)))


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (
            "My sprint ends on March 29. Can you help me? You could begin with your login page.",
            True,
        ),
        ("You start the server with `run`. Your settings are read from its folder.", False),
        ("My notes on the release: it took me a day, and my tests were slow.", False),
        ("", False),
    ],
)
def test_a_chat_without_names_is_told_by_its_words(text, is_one):
    assert is_chat(Counter(tokenize(text))) is is_one
