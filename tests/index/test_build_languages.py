"""The steps that learn the rows of other languages, on small inputs."""

import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from mimo.index.embedding.packaged import DIMS, FOLDER, PackagedModel, SortedVocabulary
from scripts.build_languages import (
    GIT,
    PACKAGES,
    RESULT_SHA256,
    Pair,
    aligned,
    binary_catalog,
    catalog,
    cleaned,
    fluent,
    learn,
    mean,
    new_pieces,
    new_words,
    packaged_pieces,
    plain,
    prose,
    write,
)

WORDS = {
    "고양이": "cat",
    "강아지": "dog",
    "물고기": "fish",
    "나무": "tree",
    "산": "mountain",
    "강": "river",
}


def sentences() -> list[Pair]:
    """Returns the translations of all pairs of words, word by word."""
    return [
        Pair("toy", f"{WORDS[first]} {WORDS[second]}", f"{first} {second}")
        for first in WORDS
        for second in WORDS
    ]


def test_learned_rows_point_where_the_english_words_do() -> None:
    rows = learn(list(WORDS), sentences(), ridge=1e-3)

    assert rows.shape == (len(WORDS), DIMS)
    for row, word in zip(rows, WORDS.values(), strict=True):
        ids = PackagedModel().tokens(word)
        english = mean(ids, len(ids))
        assert row @ english / np.linalg.norm(row) / np.linalg.norm(english) > 0.99


def test_a_strong_ridge_shortens_the_rows() -> None:
    weak, strong = (learn(list(WORDS), sentences(), ridge) for ridge in (1e-3, 10.0))

    assert np.linalg.norm(strong) < 0.8 * np.linalg.norm(weak)


def test_english_words_in_a_translation_are_subtracted() -> None:
    pairs = [Pair("toy", f"Redis {WORDS[word]}", f"Redis {word}") for word in WORDS]
    (row, *_) = learn(list(WORDS), pairs, ridge=1e-3)
    cat, redis = (mean(PackagedModel().tokens(word), 1) for word in ("cat", "Redis"))

    assert row @ cat / np.linalg.norm(cat) > row @ redis / np.linalg.norm(redis)


def test_written_files_are_what_the_reader_expects(tmp_path: Path) -> None:
    write(tmp_path, ["나무", "##가", "baum"], np.full((3, DIMS), [[200.0], [-1.4], [0.0]]))
    lines = (tmp_path / "multilingual.vocab.txt").read_bytes()

    assert [SortedVocabulary(lines).find(piece) for piece in ("나무", "##가", "baum")] == [0, 1, 2]
    assert (tmp_path / "multilingual.int8").read_bytes()[::DIMS] == b"\x7f\xff\x00"


def test_pieces_are_cut_from_frequent_words() -> None:
    pieces = new_pieces("ko", [Pair("toy", "x", "데이터베이스를 데이터베이스가 데이터를")] * 9)

    assert "데이터" in pieces
    assert "데이터베이스" in pieces
    assert all(letter in pieces or f"##{letter}" in pieces for letter in "데이터베스를가")


def test_words_of_a_latin_language_are_those_that_english_does_not_use() -> None:
    german = [Pair("toy", "The server restarts", "Der Server beginnt bei Fehlern")] * 3

    assert new_words({"de": german}) == ["der", "beginnt", "bei", "fehlern"]


@pytest.mark.parametrize(("script", "count"), [("ko", 15_999), ("cj", 11_999), ("latin", 11_832)])
def test_the_packaged_pieces_of_a_script_are_read(script: str, count: int) -> None:
    assert len(packaged_pieces(script)) == count


def test_the_packaged_files_have_the_recorded_hashes() -> None:
    for name, digest in RESULT_SHA256.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest


def test_every_source_is_pinned() -> None:
    assert all(len(commit) == 40 for _, commit in GIT.values())
    lines = PACKAGES.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 18
    assert all(len(line.split("  ")[0]) == 64 for line in lines)


def test_the_messages_of_a_catalog_are_joined_and_fuzzy_ones_left_out() -> None:
    text = """
msgid "Open "
"file"
msgstr "파일 "
"열기"

#, fuzzy
msgid "Close"
msgstr "열기"

msgctxt "menu"
msgid "Save \\"all\\""
msgstr "모두 저장"
"""
    assert list(catalog(text)) == [("Open file", "파일 열기"), ('Save "all"', "모두 저장")]


def test_a_binary_catalog_is_read_without_contexts_and_access_keys() -> None:
    texts = [b"menu\x04~Open", "파일 열기".encode()]
    places = [28 + 16, 28 + 16 + len(texts[0]) + 1]
    header = struct.pack("<7I", 0x950412DE, 0, 1, 28, 36, 0, 0)
    tables = struct.pack("<4I", len(texts[0]), places[0], len(texts[1]), places[1])

    assert list(binary_catalog(header + tables + b"\0".join(texts))) == [("Open", "파일 열기")]


def test_messages_and_attributes_of_fluent_have_names() -> None:
    text = "# comment\nopen = Open\n    .label = Open file\nlong =\n    two\n    lines\n"

    assert fluent(text) == {"open": "Open", "open.label": "Open file", "long": " two lines"}


def test_lines_of_two_pages_belong_together_if_their_forms_do() -> None:
    english = prose("---\ntitle: x\n---\n# Files\n```\ncode\n```\n- a | b\n")
    foreign = prose("# 파일\n\n- 가 | 나\n")

    assert list(aligned(english, foreign)) == [
        ("# Files", "# 파일"),
        ("- a ", "- 가 "),
        (" b", " 나"),
    ]
    assert list(aligned(english, foreign[:1])) == []


def test_sentences_are_cleaned_of_markup() -> None:
    assert (
        plain("- See [the **page**](x.md) at https://x.y `code` &amp; %s")
        == "See the page at code &"
    )


def test_pairs_in_other_scripts_and_duplicates_are_dropped() -> None:
    texts = [
        ("Open file", "파일 열기"),
        ("Open file", "파일 열기"),
        ("Open", "Open"),
        ("Red", "Rot"),
    ]

    assert list(cleaned(texts, "ko")) == [("Open file", "파일 열기")]
