"""Names of namespaces and keys, and the names of their files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.errors import Invalid
from mimo.memory.ids import check_key, check_namespace, covers, is_passing, is_pattern, stem_of

LETTERS = "abcXYZ019_-"
NAMESPACES = st.lists(st.text(LETTERS, min_size=1, max_size=6), min_size=1, max_size=4).map(
    ".".join
)
KEYS = st.text(LETTERS + ".", min_size=1, max_size=40).filter(lambda key: key.strip("."))


@pytest.mark.parametrize(
    ("pattern", "name", "admitted"),
    [
        ("session.*", "session.a", True),
        ("session.*", "session.a.b", True),
        ("session.*", "session", False),
        ("session.*", "sessionevil", False),
        ("session.*", "sessionevil.a", False),
        ("session.*", "Session.a", False),
        ("session.*", "a.session.b", False),
        ("agent.*.log", "agent.x.log", True),
        ("agent.*.log", "agent.x.y.log", False),
        ("agent.*.log", "agent.x.log.y", False),
        ("public", "public", True),
        ("public", "public.a", False),
        ("*", "anything.at.all", True),
    ],
)
@pytest.mark.req("002-27", "002-35")
def test_a_pattern_admits_whole_segments(pattern: str, name: str, admitted: bool) -> None:
    assert covers(pattern, name) is admitted


@given(NAMESPACES, st.text(LETTERS, min_size=1, max_size=3))
@pytest.mark.req("002-35")
def test_a_name_that_only_begins_like_a_namespace_is_not_admitted(name: str, more: str) -> None:
    assert covers(f"{name}.*", f"{name}.{more}")
    assert not covers(f"{name}.*", f"{name}{more}")
    assert not covers(f"{name}.*", name)


@given(st.one_of(NAMESPACES, KEYS), st.one_of(NAMESPACES, KEYS))
def test_two_names_never_share_a_file_even_where_case_is_folded(item: str, other: str) -> None:
    assert (stem_of(item).casefold() == stem_of(other).casefold()) == (item == other)


@given(KEYS)
def test_a_file_name_is_valid_on_every_system(key: str) -> None:
    stem = stem_of(key)

    assert stem[0] not in ".-"
    assert not stem.endswith(".")
    assert not set(stem) & set('/\\:*?"<>|^ ')
    assert len(stem) + len(".md") <= 255


@pytest.mark.parametrize(
    "key", ["con", "NUL", "aux.txt", "com1", ".hidden", "-rf", "a.", "A", "a~b"]
)
def test_unusual_keys_are_refused_or_have_a_file_of_another_name(key: str) -> None:
    try:
        check_key(key)
    except Invalid:
        assert "~" in key
    else:
        assert "~" in stem_of(key)


@pytest.mark.parametrize("key", [".", "..", "..."])
def test_a_key_of_dots_alone_is_refused(key: str) -> None:
    with pytest.raises(Invalid):
        check_key(key)


def test_the_longest_names_are_accepted_and_longer_ones_are_not() -> None:
    assert check_key("k" * 200)
    assert check_namespace("n" * 100)
    with pytest.raises(Invalid):
        check_key("k" * 201)
    with pytest.raises(Invalid):
        check_namespace("n" * 101)


@pytest.mark.parametrize(
    ("namespace", "passing"),
    [("session.a", True), ("SESSION.a", True), ("session", True), ("sessions.a", False)],
)
def test_namespaces_of_a_session_stay_on_this_machine_in_any_case(
    namespace: str, passing: bool
) -> None:
    assert is_passing(namespace) is passing


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("session.*", True),
        ("*", True),
        ("a.*.b", True),
        ("", False),
        ("a*", False),
        ("../x", False),
    ],
)
def test_a_pattern_is_a_namespace_with_stars_for_segments(text: str, right: bool) -> None:
    assert is_pattern(text) is right
