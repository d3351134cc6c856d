"""Ids: new ones, and those of files without one."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.memory import ids
from mimo.memory.model import ID_PATTERN, Kind

DAY = date(2026, 11, 20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auth_strategy", "decision_auth_strategy_20261120_abc234"),
        ("Café, s'il vous plaît!", "decision_cafe_s_il_vous_plait_20261120_abc234"),
        ("한국어", "decision_20261120_abc234"),
        ("", "decision_20261120_abc234"),
        ("한국어 and JWT", "decision_and_jwt_20261120_abc234"),
        ("x" * 60, f"decision_{'x' * 40}_20261120_abc234"),
        ("one two " * 20, f"decision_{'one_two_' * 4}one_two_20261120_abc234"),
    ],
)
def test_a_new_id_has_type_subject_and_day(text, expected):
    assert ids.new_id(Kind.DECISION, text, DAY, "abc234") == expected


@given(st.sampled_from(Kind), st.text(max_size=500), st.dates(), st.binary(min_size=4, max_size=9))
def test_a_new_id_is_always_valid(kind, text, day, randomness):
    letters = ids.suffix(randomness)
    assert len(letters) == 6
    assert set(letters) <= set("abcdefghijklmnopqrstuvwxyz234567")
    made = ids.new_id(kind, text, day, letters)
    assert ids.is_id(made)
    assert len(ids.slug(text)) <= 40


def test_every_random_bit_of_a_suffix_counts():
    made = {ids.suffix((1 << bit).to_bytes(4, "big")) for bit in range(30)}
    assert len(made) == 30


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".mind/decisions/use_git.md", "use_git"),
        (".mind/private/decisions/use_git.md", "use_git"),
        (".mind/note.md", "note"),
        (".mind/decisions/2024.01.02 x.md", None),
        (".mind/notes/README.md", "notes.README"),
        (".mind/decisions/old/README.md", "decisions.old.README"),
        ("README.md", "README"),
        ("docs/decisions/0001-use-git.md", "docs.decisions.0001-use-git"),
        ("docs/v1.2/intro.md", None),
        ("docs/rule.mdc", None),
        (".mind/facts/한국어.md", None),
    ],
)
def test_a_file_without_an_id_has_that_of_its_path(path, expected):
    result = ids.of_path(path)
    assert ids.is_id(result)
    assert result == (expected or ids.unique(path))


@pytest.mark.parametrize(
    ("path", "readable"),
    [
        (".mind/facts/회의 notes 2024.md", "notes-2024"),
        (".mind/facts/中文.md", "note"),
        ("docs/Überblick & Ziele.md", "docs.Uberblick-Ziele"),
        ("a.b/c.md", "a.b.c"),
        (f"docs/{'x' * 300}.md", f"docs.{'x' * 95}"),
    ],
)
def test_invalid_characters_are_left_out_and_a_hash_is_added(path, readable):
    start, _, digest = ids.of_path(path).rpartition("-")
    assert start == readable
    assert len(digest) == 8


def test_both_unicode_forms_of_a_name_have_the_same_id():
    """Some file systems give a name back decomposed, others as it was written."""
    assert ids.of_path("docs/re\u0301sume\u0301.md") == ids.of_path("docs/r\u00e9sum\u00e9.md")


NAME = st.text(st.sampled_from("ab.- é"), min_size=1, max_size=4).filter(
    lambda name: name.strip(".") and not name.startswith(".")
)
PATHS = st.lists(NAME, min_size=1, max_size=3).map(lambda parts: "/".join(parts) + ".md")


@given(st.lists(PATHS, unique=True, max_size=30))
def test_paths_outside_the_type_folders_have_ids_of_their_own(paths):
    result = [ids.of_path(f"docs/{path}") for path in paths]
    assert len(set(result)) == len(paths)
    assert all(map(ids.is_id, result))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".mind/decisions/a.md", Kind.DECISION),
        (".mind/private/insights/a.md", Kind.INSIGHT),
        (".mind/edges/deep/a.md", Kind.EDGE),
        (".mind/notes/a.md", None),
        (".mind/a.md", None),
        (".mind/notes/decisions/a.md", None),
        ("docs/decisions/0001-a.md", Kind.DECISION),
        ("docs/adr/0001-a.md", Kind.DECISION),
        ("docs/adr/0000-use-markdown.md", Kind.DECISION),
        ("docs/adr/0007-template-engine.md", Kind.DECISION),
        ("docs/decisions/0012-x/index.md", Kind.DECISION),
        ("docs/decisions/0012-x/README.md", Kind.DECISION),
        ("docs/decisions/0012-x/notes.md", None),
        ("docs/decisions/README.md", None),
        ("docs/decisions/index.md", None),
        ("docs/decisions/template.md", None),
        ("docs/decisions/0000-template.md", None),
        ("docs/decisions/adr-template-bare.md", None),
        ("docs/plans/README.md", Kind.PLAN),
        ("docs/guide/a.md", None),
        ("README.md", None),
    ],
)
def test_a_folder_named_after_a_type_gives_the_type(path, kind):
    assert ids.folder_kind(path) is kind


HANDLES = {
    "decision_auth_strategy_20261120_k3v7mq": "k3v7mq",
    "decision_20261120_k3v7mq": "k3v7mq",
    "source_api_md_t3o7jx": "t3o7jx",
    "source_t3o7jx": "t3o7jx",
    "source_api_md_t3o7jx.12": "z57g46",
    "notes.README": "34hpep",
    "edge_go_origin": "tuxfkc",
    "fact_20261120_k3v7m1": "xy6r7j",
    "[secret]": "[secret]",
    "": "",
}


@pytest.mark.parametrize(("id", "expected"), HANDLES.items())
def test_a_handle_is_the_random_end_of_an_id_or_a_digest(id, expected):
    assert ids.handle_of(id) == expected


@given(st.from_regex(ID_PATTERN, fullmatch=True))
def test_every_id_has_a_handle(id):
    assert ids.begins_handle(ids.handle_of(id))
    assert len(ids.handle_of(id)) == 6


@given(st.sampled_from(Kind), st.text(max_size=90), st.binary(min_size=4, max_size=9))
def test_the_handle_of_a_new_id_is_its_end(kind, text, randomness):
    letters = ids.suffix(randomness)
    assert ids.handle_of(ids.new_id(kind, text, DAY, letters)) == letters
