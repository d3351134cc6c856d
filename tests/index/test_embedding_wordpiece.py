"""The Python WordPiece cuts as the tokenizers library does, to the same ids."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from mimo.index.embedding.packaged import MAX_TOKENS
from mimo.index.embedding.wordpiece import FOLDER, UNKNOWN, WordPiece

NO_LIMIT = 1 << 40

TEXTS = {
    "english": "How do we retry a failed connection? It's naïve, isn't it: O'Brien's café.",
    "code": "def getUserByID(self, *, x: int=0xFF) -> dict[str, Any]:\n\treturn a&&b||c<=d^~e",
    "path": "C:\\Users\\me\\.config/foo-bar_baz.tar.gz?x=1&y=%20#top $HOME `ls` a+b=c |x| <y>",
    "korean": "데이터베이스 연결에 실패하면 다시 시도한다.",
    "korean decomposed": "\u1112\u1161\u11ab\u1100\u1173\u11af",
    "chinese": "数据库连接失败后重试\uff0c最多三次。漢字\uf900\U0002f800",
    "japanese": "データベース接続のリトライ、がんばる",
    "german": "Größenänderung überprüfen: STRASSE, Straße, ẞ",
    "greek": "ΟΔΟΣ ΣΟΦΟΣ ὀδός \u037e",
    "turkish": "İSTANBUL ISPARTA \u0131l\u0131k",
    "hindi": "हिन्दी में खोज",
    "thai": "ภาษาไทย",
    "arabic": "البَحْثُ في الذَّاكِرَةِ",
    "emoji": "done 🎉👩\u200d💻 ❤\ufe0f 🇩🇪",
    "combining": "e\u0301 a\u0308\u0323 Z\u0351\u036b\u0343a\u0321lgo \u0301",
    "spaces": " \t\r\n\u00a0a\u3000b\u2028c\x0bd\x1ce\u200bf\ufeffg\u0085h",
    "control": "a\x00b\x07c\ufffdd\u202ee\U000e0041f",
    "special": "[PAD] [UNK]x[PAD][CLS] [pad] [ UNK ] [MASK",
    "numbers": "1,234.56 ½ ² Ⅷ ① 10⁻³ 3×4",
    "at the limit": "a" * 100 + " " + "a" * 101,
    "over the limit once decomposed": "각" * 34,
    "long words": "x" * 5000 + " ok " + "日" * 300,
    "empty": "",
    "white space alone": " \n ",
}


@cache
def library() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@cache
def word_piece() -> WordPiece:
    return WordPiece(library().token_to_id)


def ids_of_library(text: str) -> list[int]:
    ids: list[int] = library().encode(text, add_special_tokens=False).ids
    return ids


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_real_texts_become_the_ids_of_the_library(text: str) -> None:
    assert word_piece().ids(text, NO_LIMIT) == ids_of_library(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_becomes_the_ids_of_the_library(text: str) -> None:
    assert word_piece().ids(text, NO_LIMIT) == ids_of_library(text)


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["the", "Index", "ing", "##s", "[UNK]", "ß", "-", "_", "’", "é", "이"]),
            st.text(st.characters(codec="latin-1"), max_size=8),
        )
    ).map("".join)
)
def test_words_glued_to_marks_become_the_ids_of_the_library(text: str) -> None:
    assert word_piece().ids(text, NO_LIMIT) == ids_of_library(text)


@pytest.mark.parametrize("plane", range(4))
def test_every_character_between_letters_is_treated_as_the_library_treats_it(plane: int) -> None:
    """Of the planes that hold scripts; beyond them nothing but unassigned and private ones is."""
    first = plane << 16
    codes = [code for code in range(first, first + 0x10000) if not 0xD800 <= code < 0xE000]
    lines = [
        "\n".join(f"a{chr(code)}b" for code in codes[i : i + 512])
        for i in range(0, len(codes), 512)
    ]

    different = [line for line in lines if word_piece().ids(line, NO_LIMIT) != ids_of_library(line)]

    assert different == []


def test_only_the_first_pieces_are_taken_up_to_the_limit() -> None:
    text = "memory unbelievability 漢 " * 400
    library_of_512 = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    library_of_512.no_padding()

    ids = word_piece().ids(text, MAX_TOKENS)

    assert len(ids) == MAX_TOKENS
    assert ids == library_of_512.encode(text, add_special_tokens=False).ids


def test_a_word_is_unknown_as_a_whole_where_one_part_is() -> None:
    assert word_piece().ids("memory☃memory", 9) == [UNKNOWN]


def test_a_lone_surrogate_is_skipped() -> None:
    assert word_piece().ids("mem\ud800ory", 9) == ids_of_library("memory")
