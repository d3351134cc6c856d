"""Lists of items and of tasks, and texts cut at the ends of sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.text import phrases

TEXTS = st.text(alphabet="ab -*[]x\n#", max_size=20)


@given(st.lists(TEXTS))
def test_bullets_round_trip(items: list[str]) -> None:
    wanted = tuple(item.strip() for item in items if item.strip())
    assert tuple(phrases.items_of(phrases.bullets([f"f{item}" for item in wanted]))) == tuple(
        f"f{item}" for item in wanted
    )


@given(st.lists(TEXTS, min_size=1))
def test_tasks_round_trip(items: list[str]) -> None:
    wanted = tuple(item.strip() for item in items if item.strip())
    assert phrases.steps_of(phrases.tasks(items)) == (wanted or None)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", ()),
        ("- a.py\n- b.py", ("a.py", "b.py")),
        ("* a.py\n\n+ b.py", ("a.py", "b.py")),
        ("a.py\nb.py", ("a.py", "b.py")),
        ("- one\n  and more", ("one\nand more",)),
    ],
)
def test_handwritten_lists_are_read(text: str, items: tuple[str, ...]) -> None:
    assert phrases.items_of(text) == items


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", None),
        (" \n", None),
        ("Write the tests", "Write the tests"),
        ("- a\n- b", "- a\n- b"),
        ("- [ ] a\n- [x] b\n- [ ] c", ("a", "c")),
        ("- [x] a", None),
        ("First:\n- [ ] a", "First:\n- [ ] a"),
    ],
)
def test_ticked_steps_are_left_out(text: str, steps: object) -> None:
    assert phrases.steps_of(text) == steps


def test_text_that_fits_is_unchanged():
    assert phrases.cut("One. Two.", 9) == "One. Two."


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
    assert phrases.cut(text, limit) == expected


def test_a_long_sentence_is_cut_between_words():
    assert phrases.cut("no sentence ends here at all", 14) == "no sentence…"


def test_long_word_is_cut_between_characters():
    assert phrases.cut("a" * 50, 10) == f"{'a' * 10}…"


def test_short_first_sentence_is_continued():
    assert phrases.cut("Yes. We moved every login to tokens", 30) == "Yes. We moved every login to…"


@given(st.text(max_size=200), st.integers(min_value=1, max_value=80))
def test_cut_text_is_a_prefix_within_the_limit(text, limit):
    shortened = phrases.cut(text, limit)

    assert len(shortened) <= max(limit, 0) + 2
    assert text.startswith(shortened.removesuffix("…").removesuffix(" ")) or shortened == text
