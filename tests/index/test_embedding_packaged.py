"""The lean reader, model2vec and the files in the package agree."""

import hashlib
import json
import subprocess
import sys
import unicodedata
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model2vec import StaticModel
from safetensors import safe_open

from mimo.index.embedding import Text, open_embedder, packaged
from mimo.index.embedding.packaged import (
    BISECTIONS,
    DIMS,
    ENGLISH_ROWS,
    FOLDER,
    LONGEST_PIECE,
    MAX_CHARACTERS,
    MAX_TOKENS,
    Languages,
    PackagedModel,
    SortedVocabulary,
)

TEXTS = [
    "How do we retry a failed database connection after a timeout?",
    "Use JWT with refresh tokens, 15 minutes and 30 days.",
    "def getUserByID(self, *, x: int=0xFF) -> dict[str, Any]:",
    "Größenänderung überprüfen",
    "Прошлый вторник, кафе на 3-й улице",
    "done 🎉 [PAD] [UNK] x",
    "a",
    "the quick brown fox " * 400,
    "x" * 80 + "-" + "wordpiece " * 600,
    "",
    "☃ \t\n",
    "mem\ud800ory \udfff",
]

OTHER_LANGUAGES = [
    "데이터베이스 연결에 실패하면 다시 시도한다.",
    "Redis를 재시작하면 캐시가 비워진다 [UNK]",
    "データベース接続のリトライ、がんばる",
    "数据库连接失败后重试\uff0c最多三次。",
    "Die Datenbank wird nach einem Fehler neu gestartet, wenn eine Verbindung fehlschlägt",
    "数" * 5000,
    "\u1112\u1161\u11ab\u1100\u1173\u11af",
    "힣힣",
]


@cache
def lean() -> PackagedModel:
    return PackagedModel()


@cache
def stock() -> StaticModel:
    return StaticModel.from_pretrained(FOLDER)


def numbers(vector: bytes) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.frombuffer(vector, dtype=np.int8).astype(np.float64)


@pytest.mark.parametrize("text", TEXTS[:10])
def test_a_vector_points_where_the_vector_of_model2vec_points(text: str) -> None:
    theirs = stock().encode([text])[0].astype(np.float64)
    ours = numbers(lean().encode(text)) if lean().encode(text) else np.zeros(DIMS)

    if not theirs.any():
        assert not ours.any()
    else:
        assert ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs) > 0.999
        assert np.abs(ours - 127 * theirs).max() <= 0.5 + 1e-4


@pytest.mark.parametrize("text", TEXTS[:10])
def test_tokens_are_those_of_model2vec(text: str) -> None:
    """`tokenize` leaves out the cut by characters that its `encode` makes first."""
    stock().tokenizer.enable_truncation(MAX_TOKENS)

    assert lean().tokens(text) == stock().tokenize([text[:MAX_CHARACTERS]])[0]


@given(st.lists(st.text(st.characters(), max_size=60), max_size=8))
def test_vectors_do_not_depend_on_how_many_texts_are_encoded_at_once(texts: list[str]) -> None:
    assert lean().encode_many(texts) == [lean().encode(text) for text in texts]


def test_many_texts_are_added_up_by_numpy_to_the_same_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one_by_one = [lean().encode(text) for text in TEXTS]
    monkeypatch.setattr(packaged, "_BATCH", 5)
    monkeypatch.setattr(packaged, "_quantised", pytest.fail)

    assert PackagedModel().encode_many(TEXTS) == one_by_one


def test_languages_mixed_in_bulk_have_the_same_vectors() -> None:
    mixed = [text for pair in zip(TEXTS, OTHER_LANGUAGES, strict=False) for text in pair]
    mixed.append("ho\u0308ren scho\u0308n mu\u0308ssen " + "a page of other visitors " * 3)
    one_by_one = [lean().encode(text) for text in mixed]

    assert PackagedModel().encode_many(mixed) == one_by_one


def test_texts_of_shared_parts_have_the_vectors_that_they_have_alone() -> None:
    parts: list[tuple[str, ...]] = [
        (first, second) for first in TEXTS for second in (*TEXTS, *OTHER_LANGUAGES)
    ]
    parts += [("der Turm", "steht noch"), ("und", "a lamp"), ("☃",), ("a" * 900, "b c " * 200)]
    texts = [Text("\n".join(each), each) for each in parts]

    assert lean().encode_joined(texts) == [lean().encode(text.whole) for text in texts]


def test_no_texts_have_no_vectors() -> None:
    assert lean().encode_many([]) == []


@pytest.mark.parametrize("text", ["", " \n", "[UNK]", "☃", "x" * 101, "\ud800"])
def test_a_text_without_a_known_token_has_no_vector(text: str) -> None:
    assert lean().encode(text) == b""


@pytest.mark.parametrize("text", TEXTS[:7])
def test_a_vector_has_256_bytes_and_length_127(text: str) -> None:
    vector = lean().encode(text)

    assert len(vector) == DIMS == lean().dims
    assert np.linalg.norm(numbers(vector)) == pytest.approx(127, rel=0.01)


def test_texts_of_like_meaning_are_nearer_than_others() -> None:
    """Each question is nearest to its own answer, though hardly a word is the same."""
    questions = ["how do users sign in?", "the query is slow", "holiday in the mountains"]
    answers = ["authentication by login and password", "database performance", "ski trip"]
    vectors = {text: numbers(lean().encode(text)) for text in questions + answers}

    def nearest_answer(question: str) -> str:
        return max(answers, key=lambda answer: float(vectors[question] @ vectors[answer]))

    assert [nearest_answer(question) for question in questions] == answers


PAIRS = {
    "ja": (
        "エラーが発生したときにデータベースに再接続する",
        "reconnect to the database after an error",
    ),
    "ko": ("브라우저에서 쿠키를 삭제하는 방법", "how to delete cookies in the browser"),
    "zh": ("如何更改文件的权限", "how to change the permissions of a file"),
    "de": (
        "wie ein Kennwort geändert und eine Schaltfläche angezeigt wird",
        "how to change a password and display a button",
    ),
    "es": ("cómo eliminar las imágenes seleccionadas", "how to remove the selected images"),
}


@pytest.mark.req("004-26")
@pytest.mark.parametrize("language", PAIRS)
def test_a_translation_is_nearer_than_other_texts(language: str) -> None:
    foreign, english = PAIRS[language]
    vector = numbers(lean().encode(foreign))
    others = [text for pair in PAIRS.values() for text in pair if text not in (foreign, english)]

    nearest = max([english, *others], key=lambda text: float(vector @ numbers(lean().encode(text))))

    assert nearest == english


def test_the_rows_of_a_text_are_summed_over_all_its_languages() -> None:
    text, parts = "Redis를 재시작", ["Redis", "를", "재시작"]

    assert sorted(lean().tokens(text)) == sorted(id for part in parts for id in lean().tokens(part))
    assert [id < ENGLISH_ROWS for id in map(min, map(lean().tokens, parts))] == [True, False, False]


def test_decomposed_hangul_has_the_vector_of_its_syllables() -> None:
    text = "한글 검색"

    assert lean().encode(unicodedata.normalize("NFD", text)) == lean().encode(text) != b""


TOY = {"검색": 0, "검": 1, "##색": 2, "##엔진": 3, "検索": 4, "fehler": 5, "große": 6, "los": 7}


@pytest.mark.parametrize(
    ("text", "left", "rows"),
    [
        ("검색엔진", " ", [0, 3]),
        ("힣검색", " ", [2]),  # After a skipped character, pieces are inner ones.
        ("검힣색", " ", [1, 2]),
        ("검색検索!", " !", [0, 4]),
        ("ab 검색 cd", "ab   cd", [0]),
        ("Große Fehler", "   ", [6, 5]),
        ("Los Angeles", "Los Angeles", []),
        (f"Los Angeles, fehler{' x' * 11}", f"Los Angeles, fehler{' x' * 11}", []),
        (f"Los Angeles, fehler{' x' * 10}", f"  Angeles,  {' x' * 10}", [7, 5]),
        ("Fehler 검색", "Fehler  ", [0]),  # No words beside other scripts.
        ("naïve cafe\u0301", "naïve cafe\u0301", []),
    ],
)
def test_pieces_of_other_languages_are_separated(text: str, left: str, rows: list[int]) -> None:
    assert Languages(TOY.get).separate(text) == (left, rows)


def test_the_row_of_every_piece_is_found() -> None:
    lines = (FOLDER / "multilingual.vocab.txt").read_bytes()
    rows = dict(line.split("\t") for line in lines.decode().split("\n"))
    bisected, looked_up = SortedVocabulary(lines), SortedVocabulary(lines)
    looked_up._searches = BISECTIONS
    some = [*sorted(rows)[::97], min(rows), max(rows), "", "no such piece", "##", "힣힣"]

    assert lines == b"\n".join(sorted(lines.split(b"\n")))
    assert sorted(map(int, rows.values())) == list(range(len(rows)))
    for piece in some:
        expected = int(rows[piece]) if piece in rows else None
        assert bisected.find(piece) == looked_up.find(piece) == expected
    assert 0 < bisected._searches < BISECTIONS


def test_the_longest_piece_is_the_limit_of_a_cut() -> None:
    lines = (FOLDER / "multilingual.vocab.txt").read_text(encoding="utf-8").split("\n")
    pieces = [line.split("\t")[0].removeprefix("##") for line in lines]

    assert max(len(piece) for piece in pieces if not piece.isascii()) == LONGEST_PIECE


def test_the_name_holds_the_hashes_of_the_weights() -> None:
    names = ("model.safetensors", "multilingual.int8")
    digests = [hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in names]

    assert digests == [packaged.SHA256, packaged.LANGUAGES_SHA256]
    assert lean().model.endswith(f":{digests[0][:12]}+{digests[1][:12]}")


def test_the_constants_match_the_files() -> None:
    config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    with safe_open(FOLDER / "model.safetensors", framework="numpy") as tensors:
        rows = tensors.get_tensor("embeddings")
    pieces = (FOLDER / "vocab.txt").read_bytes().decode().split("\n")

    assert config["hidden_dim"] == DIMS
    assert config["max_length"] == MAX_TOKENS
    assert stock().median_token_length * MAX_TOKENS == MAX_CHARACTERS
    assert dict(zip(pieces, range(len(pieces)), strict=True)) == tokenizer["model"]["vocab"]
    assert rows.dtype == np.int8
    assert rows.shape == (len(pieces), DIMS) == (ENGLISH_ROWS, DIMS)


def test_no_setting_is_the_packaged_model() -> None:
    assert open_embedder().model == open_embedder(None).model == lean().model


def loaded_by(statement: str) -> set[str]:
    code = f"from mimo.index.embedding import *\n{statement}\nimport sys; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert run.stderr == ""
    return set(run.stdout.split())


def test_a_query_is_encoded_without_heavy_packages() -> None:
    loaded = loaded_by("open_embedder().encode('how do we retry?')")

    assert not loaded & {"numpy", "model2vec", "tokenizers", "safetensors"}


def test_bulk_loads_only_numpy_and_prints_nothing() -> None:
    loaded = loaded_by(
        "from mimo.index.embedding import packaged\n"
        "packaged.BULK_CHARACTERS = 1\n"
        "open_embedder().encode_many(['some text'])"
    )

    assert "numpy" in loaded
    assert not loaded & {"model2vec", "tokenizers", "safetensors"}


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("how do customers stay signed in?", True),
        ("JWT", True),
        ("naïve café in the façade of a résumé", True),
        ("why did die rolls do that as no one was in?", True),
        ("wie hoch ist der Turm?", False),
        ("¿cuándo fue fundada la ciudad?", False),
        ("quelle est la durée de la session ?", False),
        ("세션은 어디에 저장하나요", False),
        ("как хранится сессия", False),
        ("", True),
    ],
)
def test_english_is_distinguished_from_other_languages(text, english):
    assert PackagedModel().is_english(text) is english
