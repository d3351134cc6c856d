"""Glosses of Korean: English words in the place of Korean ones."""

import hashlib

import pytest

from mimo.index.cosine import cosines
from mimo.index.embedding.encoder import GLOSSARY_SHA256, packaged_encoder
from mimo.index.embedding.korean import Glossary
from mimo.index.embedding.wordpiece import FOLDER

WRITTEN = """\
# A comment: 서버
remove delete now: 지우다 삭제
quick: 빠르다
easy: 쉽다
help: 돕다
server: 서버
name: 이름
: 를 에서 었 았 어 ㅆ ㅆ어 ㄴ 는 하 해 면 고 웠
"""


@pytest.fixture
def glossary() -> Glossary:
    return Glossary(WRITTEN, "texture: 텍스처\n")


@pytest.mark.parametrize(
    ("text", "gloss"),
    [
        ("서버에서 지웠어", "server remove delete"),
        ("삭제하고 삭제했어", "remove delete remove delete"),
        ("빠른 서버, 빨랐어", "quick server , quick"),
        ("쉬운 이름", "easy name"),
        ("도왔어", "help"),
        ("서버이름를", "server name"),
        ("텍스처를", "texture"),
        ("Redis를 지우면", "Redis remove delete"),
    ],
)
def test_stems_are_found_in_inflected_words(glossary: Glossary, text: str, gloss: str) -> None:
    assert " ".join(glossary.gloss(text).split()) == gloss


def test_decomposed_syllables_are_read_like_composed_ones(glossary: Glossary) -> None:
    decomposed = "\u1109\u1165\u1107\u1165"  # 서버

    assert glossary.gloss(decomposed).strip() == "server"


def test_an_unknown_name_is_the_same_in_every_text(glossary: Glossary) -> None:
    first, second = glossary.gloss("쿄투").strip(), glossary.gloss("서버 쿄투").split()[-1]

    assert first == second
    assert first
    assert first.isascii()


def test_other_texts_stay_unchanged(glossary: Glossary) -> None:
    assert glossary.gloss("日本語 and English") == "日本語 and English"


def test_the_hash_is_that_of_the_packaged_lists() -> None:
    names = ("korean.txt", "korean.names.txt", "korean.learned.txt")
    lists = [FOLDER / name for name in names]

    assert hashlib.sha256(b"".join(path.read_bytes() for path in lists)).hexdigest() == (
        GLOSSARY_SHA256
    )


def test_no_packaged_word_has_two_meanings() -> None:
    lists = [FOLDER / "korean.txt", FOLDER / "korean.names.txt"]
    lines = [line for path in lists for line in path.read_text(encoding="utf-8").splitlines()]
    words = [
        word for line in lines if line[0] not in "#:" for word in line.partition(":")[2].split()
    ]

    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        (
            "문서를 지우면 언제까지 살릴 수 있어?",
            "삭제한 문서는 30일 동안 휴지통에 보관",
            "비밀번호 해시를 변경",
        ),
        (
            "와이파이가 끊기면 어떻게 돼?",
            "Without a network, edits are kept and sent later",
            "Invoices are sent on the first day of a month",
        ),
        (
            "who is on call at night?",
            "야간 당번은 매주 바뀐다",
            "결제는 카드로만 받는다",
        ),
    ],
)
def test_the_encoder_compares_korean(question: str, right: str, wrong: str) -> None:
    asked, *answers = packaged_encoder().encode_many([question, right, wrong])

    near, far = cosines(asked, answers)
    assert near > far + 0.1
