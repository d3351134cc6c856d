import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.text import phrases

TEXTS = st.text(alphabet="ab -*[]x\n#", max_size=20)


@given(st.lists(TEXTS))
def test_bullets_come_back_as_they_were_given(items: list[str]) -> None:
    wanted = tuple(item.strip() for item in items if item.strip())
    assert tuple(phrases.items_of(phrases.bullets([f"f{item}" for item in wanted]))) == tuple(
        f"f{item}" for item in wanted
    )


@given(st.lists(TEXTS, min_size=1))
def test_tasks_come_back_as_they_were_given(items: list[str]) -> None:
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
def test_lists_that_people_wrote_are_understood(text: str, items: tuple[str, ...]) -> None:
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
def test_a_ticked_step_is_not_left_to_do(text: str, steps: object) -> None:
    assert phrases.steps_of(text) == steps
