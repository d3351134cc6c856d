"""Texts in other languages than English: pieces, vectors, and the network that reads them."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from mimo.index.cosine import cosines
from mimo.index.embedding.encoder import Others, packaged_encoder
from mimo.index.embedding.language import SCRIPTS, is_english, readable, script
from mimo.index.embedding.transformer import Weights
from mimo.index.embedding.unigram import Pieces, Unigram
from mimo.index.embedding.wordpiece import FOLDER
from scripts.build_languages import RESULT_SHA256

REFERENCE = json.loads(Path(__file__).with_name("languages.json").read_text("utf-8"))
"""Pieces of texts, and vectors of the 4-bit weights in float32, by another implementation."""


@pytest.fixture(scope="module")
def others() -> Others:
    return Others(Weights(FOLDER / "languages.bin"))


def test_the_packaged_weights_are_the_built_ones():
    data = (FOLDER / "languages.bin").read_bytes()

    assert hashlib.sha256(data).hexdigest() == RESULT_SHA256


def test_all_models_together_are_small_enough_for_the_package():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 60_000_000


@pytest.mark.parametrize("text", REFERENCE["pieces"])
def test_texts_become_the_pieces_of_the_source(others, text):
    arrays = Weights(FOLDER / "languages.bin").arrays
    ends = [0, *arrays["pieces.ends"].tolist()]
    first = len(arrays["scores"]) - len(ends) + 1

    ids = others.tokenizer.ids(text, 10**6)

    bounds = [(ends[id - first], ends[id - first + 1]) for id in ids]
    pieces = [arrays["pieces"][start:end].tobytes().decode() for start, end in bounds]
    assert pieces == REFERENCE["pieces"][text]


@pytest.mark.parametrize("side", ["queries", "passages"])
def test_vectors_equal_those_of_the_exact_network(others, side):
    exact = np.array(list(REFERENCE[side].values()))

    states = others.states(list(REFERENCE[side]), side)

    assert (states * exact).sum(axis=1) == pytest.approx(1, abs=0.003)


def toy(pieces: dict[str, float], searches: int = 0) -> Unigram:
    """A tokenizer of some pieces with their scores, whose ids begin at 1; 0 is unknown."""
    texts = sorted(piece.encode() for piece in pieces)
    ends = np.cumsum(list(map(len, texts))).tolist()
    table = Pieces(b"".join(texts), ends, 1, max(map(len, pieces)))
    table._searches = searches
    scores = [0.0, *(pieces[text.decode()] for text in texts)]
    return Unigram(table, scores, {0x200B: " "}, [(0xFF21, 0xFF3A)], (0, -20.0))


WORDS = {"\u2581": -3.0, "\u2581ab": -2.0, "a": -5.0, "b": -5.0, "c": -1.0, "bc": -2.5, "A": -4.0}


@pytest.mark.parametrize("searches", [0, 1_000_000])
@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("abc", ["\u2581ab", "c"]),
        ("bc", ["\u2581", "bc"]),
        ("xxa", ["\u2581", None, "a"]),  # Unknown neighbours are one.
        ("  c  \u200bc ", ["\u2581", "c", "\u2581", "c"]),
        ("\uff21", ["\u2581", "A"]),
        ("", []),
        ("c" * 40, ["\u2581", *"c" * 40]),
    ],
)
def test_a_word_becomes_the_pieces_with_the_best_sum(searches, text, pieces):
    ids = [0 if piece is None else sorted(WORDS).index(piece) + 1 for piece in pieces]

    assert toy(WORDS, searches).ids(text, 100) == ids
    assert toy(WORDS, searches).ids(text, 3) == ids[:3]


def test_every_piece_is_found_by_bisection_and_in_the_table(others):
    arrays = Weights(FOLDER / "languages.bin").arrays
    text, ends = arrays["pieces"].tobytes(), arrays["pieces.ends"].tolist()
    bisected, looked_up = Pieces(text, ends, 3, 16), Pieces(text, ends, 3, 16)
    looked_up._searches = 1_000_000
    for place in range(1, len(ends), 97):
        piece = text[ends[place - 1] : ends[place]].decode()
        assert bisected.find(piece) == looked_up.find(piece) == place + 3
    for piece in ("", "no such piece", "\u2581\u2581", "힣힣"):
        assert bisected.find(piece) is looked_up.find(piece) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("세션은 Redis 에", "hangul"),
        ("キャッシュを再起動する", "kana"),
        ("数据库连接失败后重试", "han"),
        ("как хранится сессия", "cyrillic"),
        ("πού αποθηκεύονται", "greek"),
        ("היכן נשמרים הקבצים", "hebrew"),
        ("أين تُحفظ النسخ", "arabic"),
        ("बैकअप कहाँ रखा जाता है", "devanagari"),
        ("สำรองข้อมูลไว้ที่ไหน", "thai"),
        ("wie hoch ist der Turm?", "latin"),
        ("the meaning of 한 in this sentence of English words", "latin"),
        ("123 !", "latin"),
        ("", "latin"),
    ],
)
def test_the_script_of_a_text_is_that_of_some_of_its_letters(text, expected):
    assert script(text) == expected


def test_every_script_has_a_mean():
    header = Weights(FOLDER / "languages.bin").header

    assert {*header["scripts"]} == {*SCRIPTS, "latin"}


QUEUE = (
    "Wer seine Position in der Warteschlange sieht, ruft seltener an:"
    " die Anrufe fielen um vierzig Prozent"
)


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("how do customers stay signed in?", True),
        ("JWT", True),
        ("naïve café in the façade of a résumé", True),
        ("why did die rolls do that as no one was in?", True),
        ("Debezium LogMiner standby", None),  # Names alone prove nothing.
        ("redis eviction", None),
        ("jwt expiry", True),
        ("go modules", True),
        ("a thickset young man", None),
        ("Passwort vergessen", None),
        ("come annullare un ordine", None),
        ("hur avbokar man", False),
        ("Rezept für Apfelkuchen", False),
        ("neue Winterreifen in der Garage", None),
        (QUEUE, False),
        ("kubectl rollout restart deployment", True),
        ("wie hoch ist der Turm?", False),
        ("Datenbankverbindung fehlgeschlagen, Wiederholung folgt", None),
        ("¿cuándo fue fundada la ciudad?", False),
        ("quelle est la durée de la session ?", False),
        ("jak uruchomić testy w kontenerze", False),
        ("Sunucuyu yeniden başlatmak gerekiyor", False),
        ("bagaimana menjalankan pengujian ulang", None),
        ("세션은 어디에 저장하나요", False),
        ("как хранится сессия", False),
        ("", True),
    ],
)
def test_english_is_distinguished_from_other_languages(text, english):
    assert is_english(text) is english


def test_a_korean_text_is_read_as_its_gloss():
    assert readable("쿠키를 삭제").split() == ["cookie", "remove", "delete"]
    assert readable("wie hoch ist der Turm?") == ""


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Rezept für Apfelkuchen", "Für den Kuchen die Äpfel schälen und eine Stunde backen"),
        # Words that are not English follow (codespell:ignore-begin).
        ("neue Winterreifen", "Das Auto bekommt im Oktober Reifen für Schnee und Eis"),
        ("copia de seguridad", "Los datos se guardan cada noche en otro servidor"),
        ("glömt lösenord", "Den som inte kan logga in får en länk med e-post"),
        # English again (codespell:ignore-end).
        ("prometheus alert", "Alarms fire after five minutes above the threshold"),
    ],
)
def test_a_short_query_finds_its_note_before_another_german_one(query, answer):
    notes = [
        answer,
        QUEUE,
        "The office closes at six on Fridays",
    ]
    near = cosines(packaged_encoder().encode(query), packaged_encoder().encode_many(notes))
    assert near.index(max(near)) == 0


PAIRS = {
    "ja": (
        "エラーが発生したときにデータベースに再接続する",
        "reconnect to the database after an error",
    ),
    "ko": ("브라우저에서 쿠키를 삭제하는 방법", "how to delete cookies in the browser"),
    "zh": ("如何更改文件的权限", "how to change the permissions of a file"),
    "de": (
        "wie das Passwort geändert und ein Knopf angezeigt wird",
        "how to change a password and display a button",
    ),
    "es": ("cómo eliminar las imágenes seleccionadas", "how to remove the selected images"),
    "ru": ("где хранятся резервные копии", "the place where backups are stored"),
    "hi": ("इस परियोजना के परीक्षण कैसे चलाएँ", "how to run the tests of this project"),
}


@pytest.mark.req("004-26")
@pytest.mark.parametrize("language", PAIRS)
def test_a_translation_is_nearer_than_other_texts(language):
    foreign, english = PAIRS[language]
    others = [text for pair in PAIRS.values() for text in pair if text not in (foreign, english)]
    texts = [english, *others]

    for query in (packaged_encoder().encode(foreign), packaged_encoder().encode_many([foreign])[0]):
        near = cosines(query, packaged_encoder().encode_many(texts))
        assert texts[near.index(max(near))] == english


def test_an_english_text_has_the_same_vector_as_a_query_and_as_a_passage():
    for text in ("how are cookies deleted?", "cookie"):
        assert packaged_encoder().encode(text) == packaged_encoder().encode_many([text])[0]


def test_a_text_in_an_unknown_script_has_no_vector():
    assert packaged_encoder().encode_many(["ᚠᚢᚦᚨᚱᚲ ᚷᚹᚺ", "x"])[0] == b""
    assert packaged_encoder().encode("ᚠᚢᚦᚨᚱᚲ ᚷᚹᚺ") == b""


def test_vectors_of_all_languages_have_the_same_length():
    texts = [text for pair in PAIRS.values() for text in pair]

    for vector in packaged_encoder().encode_many(texts):
        length = np.linalg.norm(np.frombuffer(vector, np.int8).astype(float))
        assert length == pytest.approx(381, rel=0.02)


def test_a_vector_does_not_depend_on_the_texts_beside_it():
    texts = [text for pair in PAIRS.values() for text in pair]

    alone = [packaged_encoder().encode_many([text])[0] for text in texts]

    assert packaged_encoder().encode_many(texts) == alone
